//! Dates as a listing shows them.

use std::fmt;

use linerate_figures::{DateTime, civil};

use crate::facts::FileTime;

/// A time in UTC as ISO 8601 and RFC 3339 write it: `2026-11-21T04:27:51Z`.
pub(crate) struct Timestamp(pub(crate) FileTime);

/// The same to the minute, as a person reads it: `2026-11-21 04:27`.
pub(crate) struct ShortTimestamp(pub(crate) FileTime);

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DateTime { year, month, day, hour, minute, second } = civil(self.0.unix_seconds);
        write!(formatter, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl fmt::Display for ShortTimestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DateTime { year, month, day, hour, minute, .. } = civil(self.0.unix_seconds);
        write!(formatter, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_both_forms() {
        for (unix_seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (253_402_300_800, "10000-01-01T00:00:00Z"),
        ] {
            let time = FileTime { unix_seconds, nanoseconds: 0 };
            assert_eq!(Timestamp(time).to_string(), expected);
            assert_eq!(
                ShortTimestamp(time).to_string(),
                expected.replace('T', " ")[..expected.len() - 4].to_owned()
            );
        }
    }
}
