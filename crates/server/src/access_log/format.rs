//! One line of the access log, as nginx's `combined` plus what TLS adds, or as JSON.

use linerate_config::LogFormat;
use linerate_figures::{DateTime, civil};
use std::{io::Write, net::IpAddr, time::Duration};

/// What TLS did for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protection<'a> {
    pub(crate) version: &'static str,
    pub(crate) cipher: &'static str,
    pub(crate) server_name: Option<&'a str>,
    pub(crate) resumed: bool,
}

/// A request and what became of it.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) peer: IpAddr,
    /// Local time zones are the reader's matter: the log is in UTC.
    pub(crate) unix_seconds: u64,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) http_version: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) referer: Option<&'a str>,
    pub(crate) user_agent: Option<&'a str>,
    pub(crate) protection: Option<Protection<'a>>,
    pub(crate) engine: &'static str,
    /// Why that engine, in a word; `None` without TLS.
    pub(crate) reason: Option<&'static str>,
    pub(crate) duration: Duration,
    /// Whether the response was sent to its end.
    pub(crate) complete: bool,
    /// Why what was received is no request, as a sentence.
    pub(crate) refused: Option<&'static str>,
}

/// The most bytes of a line that is no sound request line that are logged.
const REFUSED_LINE_LIMIT_BYTES: usize = 512;

/// The line that somebody sent in place of a request's first, as far as it is logged.
#[derive(Debug)]
pub(crate) struct RequestLine {
    text: String,
    is_cut: bool,
}

impl RequestLine {
    /// The first line of what was received that is not empty.
    pub(crate) fn of(received: &[u8]) -> Self {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let line = received.split(is_end).find(|line| !line.is_empty()).unwrap_or_default();
        let logged = &line[..line.len().min(REFUSED_LINE_LIMIT_BYTES)];
        Self { text: String::from_utf8_lossy(logged).into_owned(), is_cut: logged.len() < line.len() }
    }

    /// Method, target and version where it has these three; else all of it stands in the target's place. What was cut off
    /// is three dots.
    pub(crate) fn words(&self) -> [&str; 3] {
        let text = self.text.as_str();
        if text.is_empty() {
            return ["-"; 3];
        }
        let mut words = text.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some(method), Some(target), Some(version)) if !method.is_empty() && !target.is_empty() => {
                [method, target, if self.is_cut { "..." } else { version }]
            }
            (Some(method), Some(target), None) if self.is_cut && !method.is_empty() => {
                [method, target, "..."]
            }
            _ => ["-", text, if self.is_cut { "..." } else { "-" }],
        }
    }
}

impl Entry<'_> {
    /// Appends the line. Writing to memory cannot fail: the results of `write!` are dropped on purpose.
    pub(crate) fn write(&self, format: LogFormat, line: &mut Vec<u8>) {
        match format {
            LogFormat::Combined => self.combined(line),
            LogFormat::Json => self.json(line),
        }
        line.push(b'\n');
    }

    fn combined(&self, line: &mut Vec<u8>) {
        let _ = write!(line, "{} - - [", self.peer);
        common_log_time(self.unix_seconds, line);
        line.extend_from_slice(b"] \"");
        escape(self.method, line);
        line.push(b' ');
        escape(self.target, line);
        line.push(b' ');
        escape(self.http_version, line);
        let _ = write!(line, "\" {} {} \"", self.status, self.bytes);
        escape(self.referer.unwrap_or("-"), line);
        line.extend_from_slice(b"\" \"");
        escape(self.user_agent.unwrap_or("-"), line);
        let (version, cipher) = self.protection.map_or(("-", "-"), |tls| (tls.version, tls.cipher));
        let outcome = if self.complete { "ok" } else { "cut" };
        let _ = write!(
            line,
            "\" {version} {cipher} {} {}.{:06} {outcome} {}",
            self.engine,
            self.duration.as_secs(),
            self.duration.subsec_micros(),
            self.reason.unwrap_or("-")
        );
        if let Some(why) = self.refused {
            line.extend_from_slice(b" \"");
            escape(why, line);
            line.push(b'"');
        }
    }

    fn json(&self, line: &mut Vec<u8>) {
        let _ = write!(line, "{{\"time\":\"{}\"", rfc3339(self.unix_seconds));
        let _ = write!(line, ",\"peer\":\"{}\",\"method\":", self.peer);
        json_string(self.method, line);
        for (name, value) in [
            ("target", Some(self.target)),
            ("protocol", Some(self.http_version)),
            ("host", self.host),
            ("referer", self.referer),
            ("user_agent", self.user_agent),
            ("tls_version", self.protection.map(|tls| tls.version)),
            ("cipher", self.protection.map(|tls| tls.cipher)),
            ("server_name", self.protection.and_then(|tls| tls.server_name)),
            ("engine", Some(self.engine)),
            ("reason", self.reason),
            ("refused", self.refused),
        ] {
            let _ = write!(line, ",\"{name}\":");
            match value {
                Some(value) => json_string(value, line),
                None => line.extend_from_slice(b"null"),
            }
        }
        let resumed = self.protection.is_some_and(|tls| tls.resumed);
        let _ = write!(
            line,
            ",\"resumed\":{resumed},\"status\":{},\"bytes\":{},\"duration_us\":{},\"complete\":{}}}",
            self.status,
            self.bytes,
            self.duration.as_micros(),
            self.complete
        );
    }
}

/// As nginx escapes: quotes, backslashes and what is not printable ASCII become `\xHH`.
fn escape(text: &str, line: &mut Vec<u8>) {
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' | 0..=31 | 127..=255 => {
                let _ = write!(line, "\\x{byte:02X}");
            }
            _ => line.push(byte),
        }
    }
}

/// JSON lets U+007F to U+009F stand for themselves; terminals take some of them for commands.
fn json_string(text: &str, line: &mut Vec<u8>) {
    let is_command = |character: char| matches!(character, '\u{7f}'..='\u{9f}');
    // Writing into memory cannot fail.
    if !text.contains(is_command) {
        let _ = serde_json::to_writer(line, text);
        return;
    }
    for character in serde_json::to_string(text).unwrap_or_default().chars() {
        let _ = match character {
            command if is_command(command) => write!(line, "\\u{:04x}", u32::from(command)),
            other => write!(line, "{other}"),
        };
    }
}

fn rfc3339(unix_seconds: u64) -> String {
    let DateTime { year, month, day, hour, minute, second } = civil(unix_seconds as i64);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn common_log_time(unix_seconds: u64, line: &mut Vec<u8>) {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let DateTime { year, month, day, hour, minute, second } = civil(unix_seconds as i64);
    let month = MONTHS[usize::from(month - 1) % 12];
    let _ = write!(line, "{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry<'static> {
        Entry {
            peer: "192.0.2.7".parse().unwrap(),
            unix_seconds: 1_456_704_000 + 3661,
            method: "GET",
            target: "/a\"b\\\u{e9}\n",
            http_version: "HTTP/1.1",
            host: Some("example.org"),
            status: 206,
            bytes: 12,
            referer: None,
            user_agent: Some("curl/8 \"x\""),
            protection: Some(Protection {
                version: "TLSv1.3",
                cipher: "TLS_AES_128_GCM_SHA256",
                server_name: Some("example.org"),
                resumed: true,
            }),
            engine: "user",
            reason: Some("not_cheaper"),
            duration: Duration::from_micros(1_000_042),
            complete: true,
            refused: None,
        }
    }

    fn line(format: LogFormat) -> String {
        let mut line = Vec::new();
        entry().write(format, &mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn combined_is_one_line_whatever_the_client_sends() {
        assert_eq!(
            line(LogFormat::Combined),
            "192.0.2.7 - - [29/Feb/2016:01:01:01 +0000] \"GET /a\\x22b\\x5C\\xC3\\xA9\\x0A HTTP/1.1\" 206 12 \"-\" \
             \"curl/8 \\x22x\\x22\" TLSv1.3 TLS_AES_128_GCM_SHA256 user 1.000042 ok not_cheaper\n"
        );
    }

    #[test]
    fn json_is_json() {
        let value: serde_json::Value = serde_json::from_str(&line(LogFormat::Json)).unwrap();
        assert_eq!(value["time"], "2016-02-29T01:01:01Z");
        assert_eq!(value["target"], "/a\"b\\\u{e9}\n");
        assert_eq!(value["duration_us"], 1_000_042);
        assert_eq!(value["referer"], serde_json::Value::Null);
        assert_eq!(value["complete"], true);
        assert_eq!(value["reason"], "not_cheaper");
    }

    #[test]
    fn a_line_that_is_no_request_line_is_logged_as_far_as_it_goes() {
        let long = format!("GET /{} HTTP/1.1", "x".repeat(600));
        let cut = format!("/{}", "x".repeat(507));
        for (received, words) in [
            ("GET /a HTTP/9.9\r\nHost: a\r\n\r\n", ["GET", "/a", "HTTP/9.9"]),
            ("\r\n\nGET /a b HTTP/1.1\n", ["GET", "/a", "b HTTP/1.1"]),
            ("rubbish\r\n\r\n", ["-", "rubbish", "-"]),
            ("GET /a", ["-", "GET /a", "-"]),
            (" GET /a", ["-", " GET /a", "-"]),
            ("\r\n\r\n", ["-", "-", "-"]),
            ("", ["-", "-", "-"]),
            (&long, ["GET", &cut, "..."]),
            (&"x".repeat(513), ["-", &"x".repeat(512), "..."]),
        ] {
            assert_eq!(RequestLine::of(received.as_bytes()).words(), words, "{received:?}");
        }
        assert_eq!(
            RequestLine::of(b"\x16\x03\x01 \xff \xfe").words(),
            ["\x16\x03\x01", "\u{fffd}", "\u{fffd}"]
        );
    }

    #[test]
    fn what_was_refused_is_told_with_the_reason_and_forges_nothing() {
        let line = RequestLine::of(b"G\"ET /\\\x1b[2J\xc2\x9b HTTP/1.1\"");
        let [method, target, http_version] = line.words();
        let refused =
            Entry { method, target, http_version, refused: Some("The Host header is missing."), ..entry() };
        let written = |format| {
            let mut line = Vec::new();
            refused.write(format, &mut line);
            String::from_utf8(line).unwrap()
        };
        let combined = written(LogFormat::Combined);
        assert!(combined.contains("\"G\\x22ET /\\x5C\\x1B[2J\\xC2\\x9B HTTP/1.1\\x22\" 206 "), "{combined}");
        assert!(combined.ends_with(" ok not_cheaper \"The Host header is missing.\"\n"), "{combined}");
        let json = written(LogFormat::Json);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["method"], &value["target"]), (&"G\"ET".into(), &"/\\\u{1b}[2J\u{9b}".into()));
        assert_eq!(value["refused"], "The Host header is missing.");
    }

    #[test]
    fn json_has_no_control_character_of_any_kind() {
        let target: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        let mut line = Vec::new();
        Entry { target: &target, ..entry() }.write(LogFormat::Json, &mut line);
        let line = String::from_utf8(line).unwrap();
        assert!(!line.trim_end_matches('\n').contains(char::is_control), "{line:?}");
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["target"], target);
    }

    #[test]
    fn dates_are_right_around_leap_days_and_centuries() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), expected);
        }
    }
}
