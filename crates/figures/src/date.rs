//! The calendar, in UTC.

/// A moment's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateTime {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
}

/// The moment of a Unix time, in the proleptic Gregorian calendar: Howard Hinnant's `civil_from_days`. Its years begin in
/// March, so that a leap day is a year's last.
#[must_use]
pub fn civil(unix_s: i64) -> DateTime {
    const DAY_S: i64 = 86_400;
    const DAYS_PER_ERA: i64 = 146_097;
    let days = unix_s.div_euclid(DAY_S) + 719_468;
    let second = unix_s.rem_euclid(DAY_S);
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    DateTime {
        year: year_of_era + days.div_euclid(DAYS_PER_ERA) * 400 + i64::from(month <= 2),
        month: month as u8,
        day: (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8,
        hour: (second / 3600) as u8,
        minute: (second / 60 % 60) as u8,
        second: (second % 60) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, expected) in [
            (0, "1970-01-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_709_164_800, "2024-02-29 00:00:00"),
            (1_735_689_599, "2024-12-31 23:59:59"),
            (1_795_268_700, "2026-11-21 13:45:00"),
            (4_107_542_400, "2100-03-01 00:00:00"),
            (253_402_300_800, "10000-01-01 00:00:00"),
        ] {
            let DateTime { year, month, day, hour, minute, second } = civil(unix_s);
            let text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn no_time_panics() {
        for unix_s in [i64::MIN, i64::MIN + 1, i64::MAX] {
            let moment = civil(unix_s);
            assert!((1..=12).contains(&moment.month) && (1..=31).contains(&moment.day));
        }
    }
}
