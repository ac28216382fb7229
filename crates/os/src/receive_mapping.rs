//! Receiving without a copy: the kernel puts the pages that segments arrived in into a mapping of ours.

pub use crate::system::receive_mapping::ReceiveMapping;

use crate::socket;
use std::{fmt, os::fd::AsFd};

/// What was received: first what is mapped, then what was copied. Lent until the next call: the kernel takes the pages back then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Whole pages, where the kernel received them.
    pub mapped: &'a [u8],
    /// What follows them.
    pub copied: &'a [u8],
}

/// Why what a connection receives is not mapped, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Segments are shorter than a page.
    ShortSegments {
        /// Bytes of data in a segment that arrives.
        segment_bytes: u32,
        /// Bytes of a page.
        page_bytes: usize,
    },
    /// Segments are longer than a page, and no multiple of one: the end of each is copied.
    OddSegments {
        /// As above.
        segment_bytes: u32,
        /// As above.
        page_bytes: usize,
    },
    /// Segments would fit: their data does not begin where pages do.
    NotAligned,
}

impl Obstacle {
    /// What stands in the way on this connection, by the segments that arrive; to be asked when data has come that was not
    /// mapped. `None` where the kernel does not tell.
    #[must_use]
    pub fn of(socket: &impl AsFd) -> Option<Self> {
        let segment_bytes = socket::received_segment_bytes(socket).filter(|&bytes| bytes > 0)?;
        Some(Self::by(segment_bytes, rustix::param::page_size()))
    }

    fn by(segment_bytes: u32, page_bytes: usize) -> Self {
        match segment_bytes as usize {
            bytes if bytes < page_bytes => Self::ShortSegments { segment_bytes, page_bytes },
            bytes if bytes % page_bytes != 0 => Self::OddSegments { segment_bytes, page_bytes },
            _ => Self::NotAligned,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShortSegments { segment_bytes, page_bytes } => write!(
                formatter,
                "segments carry {segment_bytes} bytes, and only whole pages of {page_bytes} can be mapped: that takes an MTU \
                 above {page_bytes} at both ends and on the way between them"
            ),
            Self::OddSegments { segment_bytes, page_bytes } => write!(
                formatter,
                "segments carry {segment_bytes} bytes, which is no multiple of a page of {page_bytes}: set the MTU, or the sender's \
                 segment size (TCP_MAXSEG), so that it is"
            ),
            Self::NotAligned => formatter.write_str(
                "segments are as long as pages, and their data does not begin where a page does: the adapter must split headers \
                 from data (ethtool -G DEVICE tcp-data-split on) into pages of their own; loopback and veth do so only for \
                 what is sent by MSG_ZEROCOPY",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::connected_pair;
    use std::io::Write;

    #[test]
    fn the_obstacle_is_told_by_the_segments() {
        let by = |segment_bytes| Obstacle::by(segment_bytes, 4096).to_string();
        assert!(by(1448).contains("segments carry 1448 bytes") && by(1448).contains("MTU above 4096"));
        assert!(by(8948).contains("no multiple of a page of 4096"));
        assert!(by(4096).contains("tcp-data-split") && by(8192).contains("tcp-data-split"));
        let (mut ours, theirs) = connected_pair(None).unwrap();
        ours.write_all(&[7; 100_000]).unwrap();
        assert!(Obstacle::of(&theirs).is_some());
    }
}
