//! Ranges: whatever is asked for, only bytes that exist are selected, and none of them twice.

use crate::Verdict;
use linerate_http::{ByteRange, DEFAULT_RANGES_LIMIT, Selection, select_ranges};

/// Eight bytes of length, big-endian, then the value of the Range header.
///
/// # Panics
/// If a range lies outside of the representation, is empty, or touches another.
pub fn range(data: &[u8]) -> Verdict {
    let Some((length, value)) = data.split_first_chunk() else { return Verdict::Refused };
    let length_bytes = u64::from_be_bytes(*length);
    match select_ranges(value, length_bytes, DEFAULT_RANGES_LIMIT) {
        Selection::Whole => Verdict::Refused,
        Selection::Unsatisfiable => {
            assert!(value.len() >= b"bytes=".len(), "a default must not be 416");
            Verdict::Refused
        }
        Selection::Single(range) => {
            check(&[range], length_bytes);
            Verdict::Taken
        }
        Selection::Multiple(ranges) => {
            assert!((2..=DEFAULT_RANGES_LIMIT).contains(&ranges.len()));
            check(&ranges, length_bytes);
            Verdict::Taken
        }
    }
}

/// What holds for all ranges that are served together.
pub(crate) fn check(ranges: &[ByteRange], length_bytes: u64) {
    let mut ordered = ranges.to_vec();
    ordered.sort_by_key(|range| range.start);
    for range in &ordered {
        assert!(range.length > 0 && range.start < length_bytes);
        assert!(range.length <= length_bytes - range.start, "{range:?} of {length_bytes}");
    }
    for pair in ordered.windows(2) {
        assert!(pair[0].end() < pair[1].start, "{pair:?} could have been one");
    }
}
