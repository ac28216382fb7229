//! Sizes and dates as a listing shows them.

use std::fmt;

use crate::facts::FileTime;

/// A size in binary units with three significant digits: `0 B`, `999 B`, `1.00 KiB`, `15.3 MiB`, `1023 GiB`.
pub(crate) struct HumanSize(pub(crate) u64);

impl fmt::Display for HumanSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(formatter, "{} B", self.0);
        }
        let mut scaled = self.0 as f64 / 1024.0;
        let mut unit = UNITS[0];
        for larger in &UNITS[1..] {
            // Not 1024: 1023.7 would be shown as 1024.
            if scaled < 1023.5 {
                break;
            }
            scaled /= 1024.0;
            unit = larger;
        }
        let decimals = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
        write!(formatter, "{scaled:.decimals$} {unit}")
    }
}

/// A number with its thousands set apart: `1,234,567`.
pub(crate) struct Grouped(pub(crate) u64);

impl fmt::Display for Grouped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (position, digit) in digits.chars().enumerate() {
            if position > 0 && (digits.len() - position).is_multiple_of(3) {
                formatter.write_str(",")?;
            }
            write!(formatter, "{digit}")?;
        }
        Ok(())
    }
}

/// A time in UTC as ISO 8601 and RFC 3339 write it: `2026-11-21T04:27:51Z`.
pub(crate) struct Timestamp(pub(crate) FileTime);

/// The same to the minute, as a person reads it: `2026-11-21 04:27`.
pub(crate) struct ShortTimestamp(pub(crate) FileTime);

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, second) = split_days(self.0);
        write!(formatter, "{date}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
    }
}

impl fmt::Display for ShortTimestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, second) = split_days(self.0);
        write!(formatter, "{date} {:02}:{:02}", second / 3600, second / 60 % 60)
    }
}

const SECONDS_PER_DAY: i64 = 86_400;

fn split_days(time: FileTime) -> (Date, i64) {
    let days = time.unix_seconds.div_euclid(SECONDS_PER_DAY);
    (Date::from_days(days), time.unix_seconds.rem_euclid(SECONDS_PER_DAY))
}

/// A day of the proleptic Gregorian calendar.
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl Date {
    /// Howard Hinnant's `civil_from_days` (chrono-compatible low-level date algorithms): the year begins in March, so
    /// that the leap day is its last.
    fn from_days(days_since_1970: i64) -> Self {
        const DAYS_PER_ERA: i64 = 146_097;
        let days = days_since_1970 + 719_468;
        let era = days.div_euclid(DAYS_PER_ERA);
        let day_of_era = days.rem_euclid(DAYS_PER_ERA);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Self { year: year_of_era + era * 400 + i64::from(month <= 2), month, day }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_three_digits() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (10_240, "10.0 KiB"),
            (10_235, "10.0 KiB"),
            (102_400, "100 KiB"),
            (1_048_575, "1.00 MiB"),
            (1_047_552, "1023 KiB"),
            (2_000_000_000, "1.86 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(HumanSize(bytes).to_string(), expected);
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567"), (100_000, "100,000")]
        {
            assert_eq!(Grouped(number).to_string(), expected);
        }
    }

    #[test]
    fn dates_of_the_calendar() {
        for (unix_seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
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

    #[test]
    fn no_time_a_file_system_can_give_panics() {
        for unix_seconds in [i64::MIN, i64::MIN + 1, i64::MAX] {
            assert!(!Timestamp(FileTime { unix_seconds, nanoseconds: 0 }).to_string().is_empty());
        }
    }
}
