//! Numbers and names as a reader wants them: few digits, units that fit, no exponent.

use crate::statistics::{Ratio, Verdict};

/// `value` with three significant digits: "0.294", "12.3", "326", "12,400".
pub(crate) fn short(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    // Rounded first: 9.996 is 10.0 and not 10.00.
    let exponent = magnitude.log10().floor() as i32;
    let unit = 10f64.powi(exponent - 2);
    let rounded = (value / unit).round() * unit;
    let exponent = rounded.abs().log10().floor() as i32;
    let decimals = (2 - exponent).clamp(0, 6) as usize;
    grouped(&format!("{rounded:.decimals$}"))
}

/// A number that a person has chosen, with all its digits: "40,000", "0.25".
pub(super) fn chosen(value: f64) -> String {
    plain(value)
}

/// A count: "40,000".
pub(super) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Commas between thousands.
fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(a, b)| (a, Some(b)));
    let mut text = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// A tick of an axis: "0.5", "250", "10k", "1.5M".
pub(super) fn tick(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        magnitude if magnitude >= 1e9 => (value / 1e9, "G"),
        magnitude if magnitude >= 1e6 => (value / 1e6, "M"),
        magnitude if magnitude >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{}{suffix}", plain(scaled))
}

/// As many digits as it has, six at most, and no trailing zeros.
fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    grouped(if text == "-0" { "0" } else { text })
}

/// A size: "10 kB", "2 GB", and "16 KiB" where only that is round.
pub(super) fn bytes(value: f64) -> String {
    let binary = value >= 1024.0 && value % 1024.0 == 0.0 && value % 1000.0 != 0.0;
    let (base, units) = if binary {
        (1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
    } else {
        (1000.0, ["B", "kB", "MB", "GB", "TB"])
    };
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= base && unit + 1 < units.len() {
        scaled /= base;
        unit += 1;
    }
    let is_short = (10.0 * scaled - (10.0 * scaled).round()).abs() < 1e-6;
    let number = if is_short { plain(scaled) } else { short(scaled) };
    format!("{number} {}", units[unit])
}

/// A time given in µs: "85 µs", "1.23 ms", "2.10 s".
pub(super) fn microseconds(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} s", short(value / 1e6)),
        value if value >= 1e3 => format!("{} ms", short(value / 1e3)),
        value if value >= 100.0 || value.fract() == 0.0 => format!("{} µs", plain(value.round())),
        value => format!("{} µs", short(value)),
    }
}

/// How many times: "1.21 ×", "12 ×".
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 99.5 => format!("{} ×", short(ratio)),
        ratio if ratio >= 9.95 => format!("{ratio:.0} ×"),
        ratio => format!("{ratio:.2} ×"),
    }
}

/// A ratio, as far as it is known: "1.21 ×", "1.15 to 1.32 ×" where the rounds leave that open, "about 1.2 ×" where they
/// are too few to say how open it is.
pub(super) fn quoted(ratio: &Ratio) -> String {
    match ratio.verdict() {
        Verdict::TooFewRounds => format!("about {}", times(ratio.ratio)),
        _ if ratio.is_settled() => times(ratio.ratio),
        _ => format!("{} to {}", times(ratio.low).trim_end_matches(" ×"), times(ratio.high)),
    }
}

/// A change: "+9.8 %", "−3.0 %".
pub(super) fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { '−' } else { '+' };
    let decimals = usize::from(percent.abs() < 99.95);
    format!("{sign}{:.decimals$} %", percent.abs())
}

/// "1 round", "3 rounds".
pub(crate) fn plural(number: usize, one: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {one}{ending}", count(number as u64))
}

/// "a, b and c".
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// A moment as "2026-11-21 13:45 UTC" (the civil calendar by Howard Hinnant's `civil_from_days`).
pub(super) fn moment(unix_s: u64) -> String {
    let (days, seconds) = (unix_s / 86_400, unix_s % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_enough() {
        let cases = [
            (0.0, "0"),
            (0.294_41, "0.294"),
            (0.003_356, "0.00336"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (326.4, "326"),
            (999.6, "1,000"),
            (12_399.0, "12,400"),
            (-1.5, "-1.50"),
            (f64::NAN, "–"),
        ];
        for (value, expected) in cases {
            assert_eq!(short(value), expected, "{value}");
        }
    }

    #[test]
    fn ticks_and_sizes_have_units() {
        assert_eq!(
            [0.0, 0.25, 500.0, 2_000.0, 10_000.0, 1_500_000.0].map(tick),
            ["0", "0.25", "500", "2,000", "10k", "1.5M"]
        );
        let sizes = [
            (100.0, "100 B"),
            (10_000.0, "10 kB"),
            (16_384.0, "16 KiB"),
            (2e9, "2 GB"),
            (4.2e6, "4.2 MB"),
            (1_536_000.0, "1.54 MB"),
        ];
        for (value, expected) in sizes {
            assert_eq!(bytes(value), expected);
        }
        assert_eq!(bytes(1_048_576.0), "1 MiB");
        let times = [
            (12.0, "12 µs"),
            (12.34, "12.3 µs"),
            (999.6, "1,000 µs"),
            (1_234.0, "1.23 ms"),
            (2_100_000.0, "2.10 s"),
        ];
        for (value, expected) in times {
            assert_eq!(microseconds(value), expected);
        }
    }

    #[test]
    fn words_around_numbers() {
        assert_eq!(plural(1, "round"), "1 round");
        assert_eq!(plural(1_200, "point"), "1,200 points");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!(
            (times(1.214), times(12.4), times(250.0)),
            ("1.21 ×".into(), "12 ×".into(), "250 ×".into())
        );
        assert_eq!(
            (change(1.098), change(0.97), change(3.0)),
            ("+9.8 %".into(), "−3.0 %".into(), "+200 %".into())
        );
    }

    #[test]
    fn moments_fall_on_the_right_day() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(moment(1_795_268_700), "2026-11-21 13:45 UTC");
    }
}
