//! The entity tag of a file (RFC 9110, 8.8.3): made from what `fstat` says, without reading a byte of it.
//!
//! A strong tag promises that equal tags mean equal bytes. Length, time of modification in nanoseconds and inode keep
//! that promise for files that have come to rest. The kernel stamps a write with the time of its last tick, though (1
//! to 10 ms; finer since Linux 6.13 on some file systems), and NFS with the server's: a file read now and written again
//! within the same tick keeps its tag. So a file modified within the last two seconds gets a weak tag, as RFC 9110,
//! 8.8.2.2 has it for dates; the cache replaces it by a strong one when the file has come to rest. What no tag made
//! like this can see is a writer that sets the old time and length again.

use std::time::{SystemTime, UNIX_EPOCH};

use linerate_http::Coding;

use crate::facts::Facts;
use crate::policy::EtagSource;

/// How long a file must have been left alone before its tag is strong.
const REST_SECONDS: i64 = 2;

/// Whether the file was modified so long ago (or has its time set so far ahead) that another write would be seen.
pub(crate) fn is_at_rest(facts: &Facts, now_unix_seconds: i64) -> bool {
    now_unix_seconds.saturating_sub(facts.modified.unix_seconds).saturating_abs() > REST_SECONDS
}

/// The present time in whole seconds since 1970.
pub(crate) fn now_unix_seconds() -> i64 {
    // A clock before 1970 only makes tags strong or weak at the wrong time of a year nobody serves files in.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX))
}

/// The tag as it stands in the header, quotes and `W/` included.
///
/// The inode goes in through a mixing function: servers that print it are reported by security scanners
/// (CVE-2003-1418), and it's nobody's business. The coding goes in too, so that no variant of a file ever shares a tag
/// with another.
pub(crate) fn etag(facts: &Facts, coding: Option<Coding>, source: EtagSource, at_rest: bool) -> String {
    let inode = match source {
        EtagSource::File => facts.identity.inode,
        EtagSource::Replicas => 0,
    };
    let coding_number = match coding {
        None => 0,
        Some(Coding::Brotli) => 1,
        Some(Coding::Zstd) => 2,
        Some(Coding::Gzip) => 3,
    };
    let seconds = facts.modified.unix_seconds.cast_unsigned();
    let mixed = [seconds, u64::from(facts.modified.nanoseconds), inode, coding_number]
        .into_iter()
        .fold(facts.length_bytes, |state, field| mix(state ^ field));
    let weak = if at_rest { "" } else { "W/" };
    format!("{weak}\"{:x}-{mixed:016x}\"", facts.length_bytes)
}

/// The step of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which every bit depends on every other.
fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{FileTime, Identity, Kind};

    fn facts() -> Facts {
        let time = FileTime { unix_seconds: 1_700_000_000, nanoseconds: 5 };
        Facts {
            kind: Kind::Regular,
            identity: Identity { device: 1, inode: 77 },
            length_bytes: 0x1234,
            modified: time,
            changed: time,
            has_name: true,
        }
    }

    #[test]
    fn every_field_tells() {
        let tag = |facts: &Facts, coding| etag(facts, coding, EtagSource::File, true);
        let base = facts();
        let mut tags = vec![tag(&base, None)];
        tags.extend([Coding::Brotli, Coding::Zstd, Coding::Gzip].map(|coding| tag(&base, Some(coding))));
        let mut other = base;
        other.length_bytes += 1;
        tags.push(tag(&other, None));
        let mut other = base;
        other.modified.nanoseconds += 1;
        tags.push(tag(&other, None));
        let mut other = base;
        other.modified.unix_seconds += 1;
        tags.push(tag(&other, None));
        let mut other = base;
        other.identity.inode += 1;
        tags.push(tag(&other, None));
        let count = tags.len();
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), count);
    }

    #[test]
    fn replicas_agree_and_the_inode_does_not_show() {
        let mut copy = facts();
        copy.identity = Identity { device: 9, inode: 9 };
        let tag = |facts: &Facts, source| etag(facts, None, source, true);
        assert_eq!(tag(&facts(), EtagSource::Replicas), tag(&copy, EtagSource::Replicas));
        assert_ne!(tag(&facts(), EtagSource::File), tag(&copy, EtagSource::File));
    }

    #[test]
    fn it_is_a_well_formed_tag_and_stable_over_versions() {
        let strong = etag(&facts(), None, EtagSource::File, true);
        assert!(
            strong.starts_with("\"1234-") && strong.ends_with('"') && strong.len() == 2 + 4 + 1 + 16,
            "{strong}"
        );
        assert_eq!(etag(&facts(), None, EtagSource::File, false), format!("W/{strong}"));
    }

    #[test]
    fn only_the_last_two_seconds_are_unrest() {
        let facts = facts();
        let modified = facts.modified.unix_seconds;
        for (now, at_rest) in [(0, false), (2, false), (3, true), (-2, false), (-3, true), (1_000_000, true)]
        {
            assert_eq!(is_at_rest(&facts, modified + now), at_rest, "{now}");
        }
    }
}
