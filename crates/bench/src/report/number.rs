//! Numbers and names as a reader wants them: few digits, units that fit, no exponent.

use linerate_figures::{self as figures, DateTime, civil};

use crate::statistics::{Ratio, Verdict};

/// `value` with three significant digits: "0.294", "12.3", "326", "12,400".
pub(crate) fn short(value: f64) -> String {
    figures::number(value, 3)
}

/// A number that a person has chosen, with all its digits: "40,000", "0.25".
pub(super) fn chosen(value: f64) -> String {
    plain(value)
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
    figures::grouped(if text == "-0" { "0" } else { text })
}

/// A size: "10 kB", "2 GB", and "16 KiB" where only that is round.
pub(super) fn bytes(value: f64) -> String {
    let is_binary = value >= 1024.0 && value % 1024.0 == 0.0 && value % 1000.0 != 0.0;
    if is_binary { figures::binary_bytes(value, 3) } else { figures::bytes(value, 3) }
}

/// A time given in µs: "85 µs", "1.23 ms", "2.1 s".
pub(super) fn microseconds(value: f64) -> String {
    figures::time(value * 1e3, 3)
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
    format!("{} {one}{ending}", figures::count(number as u64))
}

/// "a, b and c".
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// A moment as "2026-11-21 13:45 UTC".
pub(super) fn moment(unix_s: u64) -> String {
    let DateTime { year, month, day, hour, minute, .. } = civil(unix_s as i64);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
