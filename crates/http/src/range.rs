//! The Range header: which bytes of a representation are wanted (RFC 9110 section 14).

use crate::field_lines::{list_elements, trim_whitespace};

/// The ranges that one request is served unless the operator says otherwise; with more the whole is sent
/// instead (RFC 9110 section 14.2 lets a server ignore such a header). Media players and package tools ask
/// for one or a few.
pub const DEFAULT_RANGES_LIMIT: usize = 16;

/// The most ranges that are ever served, whatever the limit: each is compared with all others.
pub const RANGES_CAP: usize = 128;

/// Bytes of a representation that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// Offset of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub length: u64,
}

impl ByteRange {
    /// The offset after the last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Whether the two overlap or one begins where the other ends.
    fn touches(&self, other: &Self) -> bool {
        self.start <= other.end() && other.start <= self.end()
    }

    fn joined(&self, other: &Self) -> Self {
        let start = self.start.min(other.start);
        Self { start, length: self.end().max(other.end()) - start }
    }
}

/// What a Range header selects of a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The header is to be ignored: 200 with the whole.
    Whole,
    /// 206 with one range.
    Single(ByteRange),
    /// 206 as multipart/byteranges: at least two ranges that do not touch, in the order asked for.
    Multiple(Vec<ByteRange>),
    /// 416: no range begins within the representation.
    Unsatisfiable,
}

/// One member of the header's list, before the length is known to it.
#[derive(Debug, Clone, Copy)]
enum RangeSpec {
    /// `first-last`, both inclusive; `last` is the largest number when it was left out.
    Between { first: u64, last: u64 },
    /// `-length`: so many bytes from the end.
    Suffix { length: u64 },
}

impl RangeSpec {
    fn parse(element: &[u8]) -> Option<Self> {
        let dash = element.iter().position(|byte| *byte == b'-')?;
        let (first, last) = (&element[..dash], &element[dash + 1..]);
        if first.is_empty() {
            return Some(Self::Suffix { length: parse_number(last)? });
        }
        let first = parse_number(first)?;
        let last = if last.is_empty() { u64::MAX } else { parse_number(last)? };
        // RFC 9110 section 14.1.1: a range whose last position is before its first is invalid.
        (first <= last).then_some(Self::Between { first, last })
    }

    /// `None` when there is no such byte. `length_bytes` is not zero.
    fn resolve(self, length_bytes: u64) -> Option<ByteRange> {
        match self {
            Self::Between { first, last } if first < length_bytes => {
                Some(ByteRange { start: first, length: last.min(length_bytes - 1) - first + 1 })
            }
            Self::Suffix { length } if length > 0 => {
                let length = length.min(length_bytes);
                Some(ByteRange { start: length_bytes - length, length })
            }
            _ => None,
        }
    }
}

/// `1*DIGIT`. Numbers beyond 64 bits become the largest one: no file reaches there, so the meaning is kept.
fn parse_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, number))
}

/// What the value of a Range header selects of a representation of `length_bytes`.
///
/// Ignored, so that the whole is served: other units than bytes, invalid syntax, more ranges than
/// `ranges_limit` (at most [`RANGES_CAP`]), and any range of an empty representation (some clients put Range on every request; 206 cannot
/// express no bytes). Ranges that overlap or touch are joined, at the place of the first of them, so that a
/// response never repeats a byte.
#[must_use]
pub fn select_ranges(value: &[u8], length_bytes: u64, ranges_limit: usize) -> Selection {
    let Some(set) = byte_range_set(value) else { return Selection::Whole };
    if length_bytes == 0 {
        return Selection::Whole;
    }
    // One range, as nearly always: no list is made.
    if !set.contains(&b',') {
        return match RangeSpec::parse(trim_whitespace(set)) {
            None => Selection::Whole,
            Some(spec) => spec.resolve(length_bytes).map_or(Selection::Unsatisfiable, Selection::Single),
        };
    }
    select_from_list(set, length_bytes, ranges_limit.min(RANGES_CAP)).unwrap_or(Selection::Whole)
}

fn select_from_list(set: &[u8], length_bytes: u64, ranges_limit: usize) -> Option<Selection> {
    let mut ranges = Vec::new();
    let mut count = 0;
    // RFC 9110 section 5.6.1.2: empty list elements do not count.
    for element in list_elements(set).filter(|element| !element.is_empty()) {
        count += 1;
        if count > ranges_limit {
            return None;
        }
        if let Some(range) = RangeSpec::parse(element)?.resolve(length_bytes) {
            join_into(&mut ranges, range);
        }
    }
    match (count, ranges.as_slice()) {
        (0, _) => None,
        (_, []) => Some(Selection::Unsatisfiable),
        (_, [single]) => Some(Selection::Single(*single)),
        _ => Some(Selection::Multiple(ranges)),
    }
}

/// The list after `bytes=`; range units are case-insensitive (RFC 9110 section 14.1).
fn byte_range_set(value: &[u8]) -> Option<&[u8]> {
    let (unit, set) = value.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(set)
}

/// Adds a range to those that do not touch each other, joining it with all that it touches.
fn join_into(ranges: &mut Vec<ByteRange>, mut range: ByteRange) {
    let mut place = ranges.len();
    while let Some(touching) = ranges.iter().position(|other| other.touches(&range)) {
        range = range.joined(&ranges.remove(touching));
        place = place.min(touching);
    }
    ranges.insert(place.min(ranges.len()), range);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, length: u64) -> ByteRange {
        ByteRange { start, length }
    }

    fn select(value: &str, length_bytes: u64) -> Selection {
        select_ranges(value.as_bytes(), length_bytes, DEFAULT_RANGES_LIMIT)
    }

    #[test]
    fn resolves_single_ranges() {
        for (value, start, length) in [
            ("bytes=0-0", 0, 1),
            ("bytes=0-499", 0, 500),
            ("bytes=500-999", 500, 500),
            ("bytes=500-", 500, 500),
            ("bytes=999-", 999, 1),
            ("bytes=0-", 0, 1000),
            ("bytes=0-5000", 0, 1000),
            ("bytes=0-99999999999999999999999", 0, 1000),
            ("bytes=-1", 999, 1),
            ("bytes=-500", 500, 500),
            ("bytes=-5000", 0, 1000),
            ("BYTES=007-8", 7, 2),
            ("bytes= 1-2 ", 1, 2),
        ] {
            assert_eq!(select(value, 1000), Selection::Single(range(start, length)), "{value}");
        }
    }

    #[test]
    fn tells_unsatisfiable_from_invalid() {
        for value in
            ["bytes=1000-", "bytes=1000-2000", "bytes=-0", "bytes=5000-,-0", "bytes=99999999999999999999-"]
        {
            assert_eq!(select(value, 1000), Selection::Unsatisfiable, "{value}");
        }
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-4",
            "bytes=1-2-3",
            "bytes=+1-2",
            "bytes=1",
            "bytes=0-1,x",
            "bytes=0-1,5-4",
            "bytes =0-1",
            "bytes=0 - 1",
            "items=0-1",
            "bytes:0-1",
            "bytes=--1",
        ] {
            assert_eq!(select(value, 1000), Selection::Whole, "{value}");
        }
    }

    #[test]
    fn an_empty_representation_is_always_whole() {
        for value in ["bytes=0-", "bytes=-5", "bytes=7-9", "bytes=0-0,1-1"] {
            assert_eq!(select(value, 0), Selection::Whole, "{value}");
        }
    }

    #[test]
    fn several_ranges_keep_their_order_and_join_where_they_touch() {
        assert_eq!(
            select("bytes=500-599, 0-99", 1000),
            Selection::Multiple(vec![range(500, 100), range(0, 100)])
        );
        assert_eq!(select("bytes=0-9,10-19", 1000), Selection::Single(range(0, 20)));
        assert_eq!(select("bytes=0-9,5-7,,9-30", 1000), Selection::Single(range(0, 31)));
        assert_eq!(
            select("bytes=900-,0-9,20-29,10-19,5000-", 1000),
            Selection::Multiple(vec![range(900, 100), range(0, 30)])
        );
        assert_eq!(select("bytes=0-9,11-19", 1000), Selection::Multiple(vec![range(0, 10), range(11, 9)]));
        assert_eq!(select("bytes=1-2,3000-", 1000), Selection::Single(range(1, 2)));
    }

    #[test]
    fn too_many_ranges_are_ignored() {
        let list = |count: usize| {
            let members: Vec<String> = (0..count).map(|index| format!("{0}-{0}", index * 2)).collect();
            format!("bytes={}", members.join(","))
        };
        for (ranges_limit, served) in
            [(2, 2), (DEFAULT_RANGES_LIMIT, 16), (RANGES_CAP, 128), (RANGES_CAP + 1, 128)]
        {
            let select = |count| select_ranges(list(count).as_bytes(), 1000, ranges_limit);
            assert!(matches!(select(served), Selection::Multiple(ranges) if ranges.len() == served));
            assert_eq!(select(served + 1), Selection::Whole, "{ranges_limit}");
        }
        // A single one is no list, and joined ones count all the same.
        assert_eq!(select_ranges(b"bytes=0-1", 1000, 1), Selection::Single(range(0, 2)));
        assert_eq!(select_ranges(b"bytes=0-1,2-3", 1000, 1), Selection::Whole);
    }
}
