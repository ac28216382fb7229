//! Dates as HTTP writes them: IMF-fixdate out, all three historical forms in (RFC 9110 section 5.6.7).

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

/// Bytes of an IMF-fixdate, e.g. `Sun, 06 Nov 1994 08:49:37 GMT`.
const TEXT_BYTES: usize = 29;

/// 9999-12-31T23:59:59Z, the last second that the four digits of the year can express.
const LAST_UNIX_S: i64 = 253_402_300_799;

/// A second since the Unix epoch together with its text, so that it is formatted once and written often.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ImfFixdate {
    unix_s: i64,
    text: [u8; TEXT_BYTES],
}

impl ImfFixdate {
    /// Formats `unix_s`, seconds since the Unix epoch. Times before 1970 become 1970's first second and those
    /// after 9999 its last: the format has no others.
    #[must_use]
    pub fn at(unix_s: i64) -> Self {
        let unix_s = unix_s.clamp(0, LAST_UNIX_S);
        let time = UNIX_EPOCH + Duration::from_secs(unix_s.unsigned_abs());
        let mut text = FixedText { bytes: [b' '; TEXT_BYTES], used: 0 };
        // The clamp keeps the year to four digits, so the text fits and the write cannot fail.
        let _fits = write!(text, "{}", httpdate::HttpDate::from(time));
        Self { unix_s, text: text.bytes }
    }

    /// Formats anew when `unix_s` is another second; a worker calls it for every response or once a second.
    pub fn advance_to(&mut self, unix_s: i64) {
        if unix_s != self.unix_s {
            *self = Self::at(unix_s);
        }
    }

    /// Seconds since the Unix epoch.
    #[must_use]
    pub fn unix_s(&self) -> i64 {
        self.unix_s
    }

    /// The text as written in headers, 29 bytes of ASCII.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

impl std::fmt::Debug for ImfFixdate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.text))
    }
}

struct FixedText {
    bytes: [u8; TEXT_BYTES],
    used: usize,
}

impl std::fmt::Write for FixedText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.used + text.len();
        self.bytes.get_mut(self.used..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

/// Seconds since the Unix epoch of an HTTP-date in any of its three forms; `None` when it is not one.
#[must_use]
pub(crate) fn parse_http_date(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let time = httpdate::parse_http_date(text).ok()?;
    let since_epoch = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_epoch.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_parses_the_example_of_rfc_9110() {
        let date = ImfFixdate::at(784_111_777);
        assert_eq!(date.as_bytes(), b"Sun, 06 Nov 1994 08:49:37 GMT");
        for form in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse_http_date(form.as_bytes()), Some(784_111_777), "{form}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_date() {
        for text in ["", "now", "Sun, 06 Nov 1994 08:49:37", "Mon, 06 Nov 1994 08:49:37 GMT, x", "784111777"]
        {
            assert_eq!(parse_http_date(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_http_date(b"\xff\xfe"), None);
    }

    #[test]
    fn damaged_dates_never_panic() {
        for form in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Wednesday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            for position in 0..form.len() {
                for byte in 0..=255 {
                    let mut damaged = form.as_bytes().to_vec();
                    damaged[position] = byte;
                    let _parsed = parse_http_date(&damaged);
                    let _shorter = parse_http_date(&damaged[..position]);
                }
            }
        }
    }

    #[test]
    fn clamps_times_that_the_format_cannot_express() {
        assert_eq!(ImfFixdate::at(-5).as_bytes(), b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(ImfFixdate::at(i64::MAX).as_bytes(), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn advances_only_to_another_second() {
        let mut date = ImfFixdate::at(0);
        date.advance_to(0);
        assert_eq!(date, ImfFixdate::at(0));
        date.advance_to(1);
        assert_eq!(date.as_bytes(), b"Thu, 01 Jan 1970 00:00:01 GMT");
        assert_eq!(date.unix_s(), 1);
        assert_eq!(format!("{date:?}"), "Thu, 01 Jan 1970 00:00:01 GMT");
    }
}
