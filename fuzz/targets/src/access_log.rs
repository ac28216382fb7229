//! The access log: whatever a client sends, a request is one line, and the line says what was sent and nothing else.

use crate::Verdict;
use format::{Entry, Protection, RequestLine};
use linerate_config::LogFormat;
use std::time::Duration;

// The server's own module, as the server has it.
#[path = "../../../crates/server/src/access_log/format.rs"]
mod format;

/// What the server itself writes into a line: dates, numbers, the names of fields.
const OWN_BYTES: usize = 640;
/// A byte that is not printable, as `\xHH`.
const ESCAPED_BYTES: usize = 4;
/// A character in JSON, as `\uHHHH`.
const ESCAPED_JSON_BYTES: usize = 6;
/// As much of a line that is no request is logged. A byte that is not UTF-8 becomes a character of three.
const REFUSED_LINE_BYTES: usize = 3 * 512 + "-...".len();

/// What a client sends. It is logged twice: as a request that is refused, and as the fields of a request, set apart by 0xFF.
///
/// # Panics
/// If a line is not one line, is not bounded, or does not say what was sent.
pub fn access_log(data: &[u8]) -> Verdict {
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let fields: Vec<String> = data.split(|byte| *byte == 0xff).map(text).collect();
    let field = |index: usize| fields.get(index).map(String::as_str);
    check(&Entry {
        method: field(0).unwrap_or_default(),
        target: field(1).unwrap_or_default(),
        http_version: field(2).unwrap_or_default(),
        host: field(3),
        referer: field(4),
        user_agent: field(5),
        protection: field(6).map(|name| Protection {
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256",
            server_name: Some(name),
            resumed: false,
        }),
        ..entry()
    });

    let line = RequestLine::of(data);
    let [method, target, http_version] = line.words();
    assert!(method.len() + target.len() + http_version.len() <= REFUSED_LINE_BYTES);
    check(&Entry { method, target, http_version, refused: Some("The request is malformed."), ..entry() });
    if method == "-" { Verdict::Refused } else { Verdict::Taken }
}

fn entry() -> Entry<'static> {
    Entry {
        peer: "2001:db8::7".parse().expect("an address"),
        unix_seconds: 1_456_704_000,
        method: "-",
        target: "-",
        http_version: "-",
        host: None,
        status: 400,
        bytes: u64::MAX,
        referer: None,
        user_agent: None,
        protection: None,
        engine: "user",
        reason: None,
        duration: Duration::MAX,
        complete: false,
        refused: None,
    }
}

fn check(entry: &Entry<'_>) {
    let sent = [entry.method, entry.target, entry.http_version].into_iter();
    let optional = [entry.host, entry.referer, entry.user_agent, server_name(entry)];
    let sent_bytes: usize = sent.chain(optional.into_iter().flatten()).map(str::len).sum();
    check_combined(entry, &line(entry, LogFormat::Combined, OWN_BYTES + ESCAPED_BYTES * sent_bytes));
    check_json(entry, &line(entry, LogFormat::Json, OWN_BYTES + ESCAPED_JSON_BYTES * sent_bytes));
}

fn server_name<'a>(entry: &Entry<'a>) -> Option<&'a str> {
    entry.protection.and_then(|protection| protection.server_name)
}

/// The line without its end.
fn line(entry: &Entry<'_>, format: LogFormat, limit_bytes: usize) -> String {
    let mut line = Vec::new();
    entry.write(format, &mut line);
    assert!(line.len() <= limit_bytes, "{} bytes, more than {limit_bytes}", line.len());
    assert_eq!(line.pop(), Some(b'\n'));
    let line = String::from_utf8(line).expect("a line is UTF-8");
    assert!(!line.contains(char::is_control), "{line:?}");
    line
}

/// Quotes part what the client said from what the server says.
fn check_combined(entry: &Entry<'_>, line: &str) {
    assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
    let parts: Vec<&str> = line.split('"').collect();
    assert_eq!(parts.len(), if entry.refused.is_some() { 9 } else { 7 }, "{line}");
    let request_line = format!("{} {} {}", entry.method, entry.target, entry.http_version);
    assert_eq!(unescaped(parts[1]), request_line.as_bytes());
    assert_eq!(unescaped(parts[3]), entry.referer.unwrap_or("-").as_bytes());
    assert_eq!(unescaped(parts[5]), entry.user_agent.unwrap_or("-").as_bytes());
    assert_eq!(parts[2], format!(" {} {} ", entry.status, entry.bytes));
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    assert!(!bytes.is_empty() || text.is_empty());
    bytes
}

fn check_json(entry: &Entry<'_>, line: &str) {
    let value: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
    for (name, expected) in [
        ("method", Some(entry.method)),
        ("target", Some(entry.target)),
        ("protocol", Some(entry.http_version)),
        ("host", entry.host),
        ("referer", entry.referer),
        ("user_agent", entry.user_agent),
        ("server_name", server_name(entry)),
        ("refused", entry.refused),
    ] {
        assert_eq!(value[name].as_str(), expected, "{name}");
    }
    assert_eq!((&value["status"], &value["bytes"]), (&entry.status.into(), &entry.bytes.into()));
}
