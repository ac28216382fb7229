//! Figures as people read them.

/// `512 B`, `10 kB`, `1.5 MB`: two digits that count, decimal units.
#[must_use]
pub fn bytes_in_words(bytes: u64) -> String {
    if bytes < 1000 {
        format!("{bytes} B")
    } else {
        short(bytes as f64, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
    }
}

/// `640 ns`, `12 µs`, `1.3 ms`, `2 s`.
#[must_use]
pub fn time_in_words(time_ns: f64) -> String {
    short(time_ns, &["ns", "µs", "ms", "s"])
}

/// Each unit is a thousand of the one before.
fn short(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // What rounds up to the next unit is written in it.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 9.95 && (value * 10.0).round() % 10.0 != 0.0 {
        format!("{value:.1} {}", units[unit])
    } else {
        format!("{value:.0} {}", units[unit])
    }
}

/// `1.4 %`, `12 %`, of a part of one.
#[must_use]
pub fn share_in_words(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 && (percent * 10.0).round() % 10.0 != 0.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (bytes, words) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (1234, "1.2 kB"),
            (10_240, "10 kB"),
            (379_600, "380 kB"),
            (999_600, "1 MB"),
            (1_500_000, "1.5 MB"),
            (u64::MAX, "18 EB"),
        ] {
            assert_eq!(bytes_in_words(bytes), words);
        }
        for (share, words) in [(0.0, "0 %"), (0.0139, "1.4 %"), (0.01, "1 %"), (0.123, "12 %")] {
            assert_eq!(share_in_words(share), words);
        }
    }

    #[test]
    fn times_have_their_unit() {
        for (time_ns, words) in [
            (0.0, "0 ns"),
            (640.4, "640 ns"),
            (12_345.0, "12 µs"),
            (1_349_000.0, "1.3 ms"),
            (2e9, "2 s"),
            (5e12, "5000 s"),
        ] {
            assert_eq!(time_in_words(time_ns), words);
        }
    }
}
