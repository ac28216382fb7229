//! Figures for people: three digits or so, with their unit.

use std::time::Duration;

/// `1.23 GB`, in powers of 1000.
pub(crate) fn bytes(bytes: f64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// `9.87 Gbit`, in powers of 1000.
pub(crate) fn bits(bits: f64) -> String {
    scaled(bits, &["bit", "kbit", "Mbit", "Gbit", "Tbit"])
}

fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", digits(value), units[unit])
}

/// Three significant digits, no more.
pub(crate) fn digits(value: f64) -> String {
    match value {
        value if value >= 99.95 || value == 0.0 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value if value >= 0.9995 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// `12,345`.
pub(crate) fn count(count: u64) -> String {
    let plain = count.to_string();
    let mut grouped = String::new();
    for (at, digit) in plain.char_indices() {
        if at > 0 && (plain.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A time in microseconds: `87 µs`, `1.23 ms`, `4.56 s`.
pub(crate) fn microseconds(us: f64) -> String {
    match us {
        us if us < 999.5 => format!("{us:.0} µs"),
        us if us < 999_500.0 => format!("{} ms", digits(us / 1e3)),
        us => format!("{} s", digits(us / 1e6)),
    }
}

/// `7 s`, `2 m 5 s`.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        0 if !duration.is_zero() => format!("{} ms", duration.as_millis()),
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds.is_multiple_of(60) => format!("{} m", seconds / 60),
        seconds => format!("{} m {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(
            [0.0, 7.0, 999.4, 999.6, 12_345.0].map(bytes),
            ["0 B", "7.00 B", "999 B", "1.00 kB", "12.3 kB"]
        );
        assert_eq!(bits(9.87e9), "9.87 Gbit");
        assert_eq!([0, 999, 1000, 12_345_678].map(count), ["0", "999", "1,000", "12,345,678"]);
        assert_eq!([87.0, 1234.0, 4_560_000.0].map(microseconds), ["87 µs", "1.23 ms", "4.56 s"]);
        let spoken = [500, 7_000, 125_000, 180_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(spoken, ["500 ms", "7 s", "2 m 5 s", "3 m"]);
    }
}
