//! Figures as people read them: sizes, times and dates, and the quantiles of samples.
//!
//! `digits` is how many of a figure's digits count: 3 where it was measured, 2 where only its size matters. The part before
//! the decimal point stays whole.

// A fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]
#![forbid(unsafe_code)]

mod date;

pub use date::{DateTime, civil};
use std::time::Duration;

/// `1.5 MB`, in powers of 1000.
#[must_use]
pub fn bytes(bytes: f64, digits: usize) -> String {
    scaled(bytes, digits, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// `1.5 MiB`, in powers of 1024.
#[must_use]
pub fn binary_bytes(bytes: f64, digits: usize) -> String {
    scaled(bytes, digits, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// `9.87 Gbit`, in powers of 1000.
#[must_use]
pub fn bits(bits: f64, digits: usize) -> String {
    scaled(bits, digits, 1000.0, &["bit", "kbit", "Mbit", "Gbit", "Tbit"])
}

/// `640 ns`, `12.3 µs`, `1.3 ms`, `2 s`.
#[must_use]
pub fn time(time_ns: f64, digits: usize) -> String {
    scaled(time_ns, digits, 1000.0, &["ns", "µs", "ms", "s"])
}

/// `1.4 %`, of a part of one.
#[must_use]
pub fn share(part: f64, digits: usize) -> String {
    format!("{} %", trimmed(part * 100.0, digits, digits - 1))
}

/// Each unit is `base` of the one before.
fn scaled(mut value: f64, digits: usize, base: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // What rounds up to the next unit is written in it.
    while value.abs() >= base - 0.5 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    format!("{} {}", trimmed(value, digits, digits - 1), units[unit])
}

/// `0.294`, `12.3`, `326`: at most as many decimals as digits, without zeros at their end.
#[must_use]
pub fn figure(value: f64, digits: usize) -> String {
    trimmed(value, digits, digits)
}

fn trimmed(value: f64, digits: usize, most_decimals: usize) -> String {
    let decimals = decimals(value, digits).clamp(0, most_decimals as i32) as usize;
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `0.00336`, `10.0`, `12,400`: exactly so many digits count, so that the figures of a column compare; a dash for what is no
/// number.
#[must_use]
pub fn number(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let rounded = rounded(value, digits);
    let decimals = if value == 0.0 { 0 } else { decimals(value, digits).clamp(0, 6) as usize };
    grouped(&format!("{rounded:.decimals$}"))
}

/// `value` with no more digits than count.
#[must_use]
pub fn rounded(value: f64, digits: usize) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let places = digits as i32 - 1 - exponent(value);
    // A power of ten that is a whole number, so that 98,800 does not become 98,799.999.
    let scale = 10_f64.powi(places.abs());
    if places < 0 { (value / scale).round() * scale } else { (value * scale).round() / scale }
}

fn exponent(value: f64) -> i32 {
    if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 }
}

/// How many decimals `digits` digits need; of the rounded value, so that 9.996 is 10.0 and not 10.00.
fn decimals(value: f64, digits: usize) -> i32 {
    digits as i32 - 1 - exponent(rounded(value, digits))
}

/// `12,345`.
#[must_use]
pub fn count(count: u64) -> String {
    grouped(&count.to_string())
}

/// A decimal number with its thousands set apart.
#[must_use]
pub fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut text = String::new();
    for (place, character) in number.char_indices() {
        let follows_digit = number[..place].ends_with(|before: char| before.is_ascii_digit());
        if place < whole && follows_digit && (whole - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(character);
    }
    text
}

/// `500 ms`, `45 s`, `1 min 50 s`, `2 h 5 min`.
#[must_use]
pub fn duration(duration: Duration) -> String {
    let two = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        small => format!("{large} {unit} {small} {small_unit}"),
    };
    match duration.as_secs() {
        0 if !duration.is_zero() => format!("{} ms", duration.as_millis()),
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        seconds => two(seconds / 3600, "h", seconds / 60 % 60, "min"),
    }
}

/// The value below which this share of the samples lies, by linear interpolation between order statistics (Hyndman and
/// Fan's type 7); `None` without samples.
#[must_use]
pub fn quantile(samples: &[f64], share: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len().checked_sub(1)? as f64);
    let (below, above) = (sorted.get(place.floor() as usize)?, sorted.get(place.ceil() as usize)?);
    Some(below + (above - below) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (value, digits, text) in [
            (0.0, 3, "0"),
            (0.0123, 3, "0.012"),
            (9.4, 3, "9.4"),
            (8.704, 3, "8.7"),
            (9.996, 3, "10"),
            (37.66, 3, "37.7"),
            (99.96, 3, "100"),
            (243.86, 3, "244"),
            (12_345.6, 3, "12346"),
            (-0.0001, 3, "0"),
            (9.96, 2, "10"),
        ] {
            assert_eq!(figure(value, digits), text, "{value}");
        }
        for (part, text) in [(0.0, "0 %"), (0.0139, "1.4 %"), (0.01, "1 %"), (0.123, "12 %")] {
            assert_eq!(share(part, 2), text);
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.294_41, "0.294"),
            (0.003_356, "0.00336"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (326.4, "326"),
            (999.6, "1,000"),
            (12_399.0, "12,400"),
            (-1.5, "-1.50"),
            (-123_456.0, "-123,000"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value, 3), text, "{value}");
        }
        for (value, expected) in [
            (0.123_456, 0.123),
            (98_765.4, 98_800.0),
            (7.07e8, 7.07e8),
            (0.0, 0.0),
            (7.0, 7.0),
            (12.66, 12.7),
        ] {
            assert_eq!(rounded(value, 3).to_string(), expected.to_string());
        }
        let counts = [0, 999, 1000, 123_456, 12_345_678].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "123,456", "12,345,678"]);
    }

    #[test]
    fn sizes_have_their_unit() {
        for (value, digits, text) in [
            (0.0, 2, "0 B"),
            (999.0, 2, "999 B"),
            (1000.0, 2, "1 kB"),
            (1234.0, 2, "1.2 kB"),
            (10_240.0, 2, "10 kB"),
            (379_600.0, 2, "380 kB"),
            (999_600.0, 2, "1 MB"),
            (1_500_000.0, 2, "1.5 MB"),
            (u64::MAX as f64, 2, "18 EB"),
            (12_345.0, 3, "12.3 kB"),
        ] {
            assert_eq!(bytes(value, digits), text);
        }
        assert_eq!(bits(9.87e9, 3), "9.87 Gbit");
        let sizes = [1023.0, 16_384.0, 1_047_552.0, 1_048_575.0].map(|value| binary_bytes(value, 3));
        assert_eq!(sizes, ["1023 B", "16 KiB", "1023 KiB", "1 MiB"]);
    }

    #[test]
    fn times_have_their_unit() {
        for (time_ns, text) in [
            (0.0, "0 ns"),
            (640.4, "640 ns"),
            (12_345.0, "12 µs"),
            (1_349_000.0, "1.3 ms"),
            (2e9, "2 s"),
            (5e12, "5000 s"),
        ] {
            assert_eq!(time(time_ns, 2), text);
        }
        let texts =
            [0, 500, 45_000, 60_000, 110_000, 3_600_000, 7_500_000].map(Duration::from_millis).map(duration);
        assert_eq!(texts, ["0 s", "500 ms", "45 s", "1 min", "1 min 50 s", "1 h", "2 h 5 min"]);
    }

    #[test]
    fn quantiles_lie_between_samples() {
        let samples = [5.0, 1.0, 3.0, 100.0, 4.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 1.0].map(|share| quantile(&samples, share)),
            [1.0, 3.0, 4.0, 100.0].map(Some)
        );
        assert_eq!(quantile(&[1.0, 2.0], 0.5), Some(1.5));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
