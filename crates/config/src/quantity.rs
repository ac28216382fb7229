//! Durations and sizes with their unit: `"75s"`, `"512KiB"`.

use std::ops::RangeInclusive;

use crate::Error;
use crate::choice::shortened;

const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZE_UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Reads a duration into milliseconds.
///
/// # Errors
/// Where `text` is no number followed by one of the units, or is outside of `allowed`.
pub fn parse_duration_ms(text: &str, allowed: RangeInclusive<u64>) -> Result<u64, Error> {
    let duration_ms = parse(text, &DURATION_UNITS).ok_or_else(|| {
        let text = shortened(text);
        Error::value(format!("\"{text}\" is no duration: write a number and ms, s, m, h or d, like \"75s\""))
    })?;
    within(duration_ms, allowed, duration_text)
}

/// Reads a size into bytes.
///
/// # Errors
/// Where `text` is no number followed by one of the units, or is outside of `allowed`.
pub fn parse_size_bytes(text: &str, allowed: RangeInclusive<u64>) -> Result<u64, Error> {
    let size_bytes = parse(text, &SIZE_UNITS).ok_or_else(|| {
        let text = shortened(text);
        Error::value(format!(
            "\"{text}\" is no size: write a number and B, KiB, MiB, GiB or TiB, like \"512KiB\""
        ))
    })?;
    within(size_bytes, allowed, size_text)
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn within(value: u64, allowed: RangeInclusive<u64>, text: fn(u64) -> String) -> Result<u64, Error> {
    if allowed.contains(&value) {
        return Ok(value);
    }
    let (least, most) = (text(*allowed.start()), text(*allowed.end()));
    Err(Error::value(format!("{} is out of range: {least} to {most} is allowed", text(value))))
}

/// Milliseconds as the configuration writes them, in the largest unit that needs no fraction.
#[must_use]
pub fn duration_text(duration_ms: u64) -> String {
    in_largest_unit(duration_ms, &DURATION_UNITS, "0s")
}

/// Bytes as the configuration writes them, in the largest unit that needs no fraction.
#[must_use]
pub fn size_text(size_bytes: u64) -> String {
    in_largest_unit(size_bytes, &SIZE_UNITS, "0B")
}

fn in_largest_unit(value: u64, units: &[(&str, u64)], zero: &str) -> String {
    match units.iter().find(|(_, factor)| value != 0 && value.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}", value / factor),
        None => zero.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_written_back() {
        for (text, duration_ms) in [
            ("1ms", 1),
            ("75s", 75_000),
            ("90m", 5_400_000),
            ("5h", 18_000_000),
            ("365d", 31_536_000_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration_ms(text, 0..=u64::MAX).unwrap(), duration_ms);
            assert_eq!(duration_text(duration_ms), text);
        }
        for (text, size_bytes) in
            [("1B", 1), ("512KiB", 524_288), ("3MiB", 3 << 20), ("1GiB", 1 << 30), ("2TiB", 2 << 40)]
        {
            assert_eq!(parse_size_bytes(text, 0..=u64::MAX).unwrap(), size_bytes);
            assert_eq!(size_text(size_bytes), text);
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in
            ["", "s", "75", "75 s", "-1s", "+1s", "1.5s", "1S", "1s ", "99999999999999999999s", "1sé", "é"]
        {
            assert!(parse_duration_ms(text, 0..=u64::MAX).is_err(), "{text:?}");
        }
        for text in ["", "512", "512k", "512KB", "1 MiB", "17179869184GiB", "0x1B"] {
            assert!(parse_size_bytes(text, 0..=u64::MAX).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_range_is_told_in_the_same_unit() {
        let message = parse_duration_ms("2d", 1_000..=86_400_000).unwrap_err().to_string();
        assert_eq!(message, "2d is out of range: 1s to 1d is allowed");
        let message = parse_size_bytes("1KiB", 16_384..=1 << 24).unwrap_err().to_string();
        assert_eq!(message, "1KiB is out of range: 16KiB to 16MiB is allowed");
    }
}
