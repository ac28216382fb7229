//! From the bytes received to a request: borrowed, without allocation, strict about everything that decides
//! where the request ends (RFC 9112; the defences against request smuggling of its section 11.2).

use crate::body::BodyFraming;
use crate::coding::AcceptedCodings;
use crate::conditional::Conditions;
use crate::error::RequestError;
use crate::field_lines::FieldLines;
use crate::fields::{Fields, Single};
use crate::target::{Authority, Target};
use crate::version::Version;
use std::mem::MaybeUninit;

/// The most header lines that are ever accepted, whatever [`RequestLimits::header_count`] says: their table
/// is kept on the stack.
pub const HEADER_COUNT_CAP: usize = 128;

/// Empty lines tolerated before a request line: RFC 9112 section 2.2 asks for at least one, and old clients
/// send one after a body.
const LEADING_EMPTY_LINES_LIMIT: usize = 4;

/// Bounds on a request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// The whole head to the empty line that ends it, with any empty lines before it. A receive buffer of
    /// this size always suffices.
    pub head_bytes: usize,
    /// Header lines; at most [`HEADER_COUNT_CAP`].
    pub header_count: usize,
    /// The request line without its CRLF.
    pub request_line_bytes: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self { head_bytes: 32 * 1024, header_count: 100, request_line_bytes: 8 * 1024 }
    }
}

/// The method; names are case-sensitive (RFC 9110 section 9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method<'a> {
    /// GET
    Get,
    /// HEAD
    Head,
    /// OPTIONS
    Options,
    /// Any other token.
    Other(&'a str),
}

impl<'a> Method<'a> {
    /// The method as sent.
    #[must_use]
    pub fn as_str(&self) -> &'a str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Other(name) => name,
        }
    }

    fn from_name(name: &'a str) -> Self {
        match name {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "OPTIONS" => Self::Options,
            _ => Self::Other(name),
        }
    }
}

/// A request whose head is complete and sound. Header values are bytes: HTTP does not promise UTF-8.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The method.
    pub method: Method<'a>,
    /// The target as sent, for logs.
    pub target: &'a str,
    /// The path, still percent-encoded. `*` for an OPTIONS of the server as a whole, empty for CONNECT;
    /// otherwise it begins with a slash.
    pub path: &'a str,
    /// What follows the first `?`.
    pub query: Option<&'a str>,
    /// The version whose rules it is read by.
    pub version: Version,
    /// The version as sent, for logs: a later minor version is read as HTTP/1.1.
    pub stated_version: &'a str,
    /// The host that is meant: from the target in absolute form, else from Host. `None` only in HTTP/1.0.
    pub authority: Option<Authority<'a>>,
    /// Whether the client wants the connection to persist (RFC 9112 section 9.3).
    pub keep_alive: bool,
    /// How the end of the body is found.
    pub body: BodyFraming,
    /// The client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
    /// Range; `None` also when it is repeated, or when If-Range is: then the whole is served (RFC 9110
    /// section 14.2).
    pub range: Option<&'a [u8]>,
    /// If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range.
    pub conditions: Conditions<'a>,
    /// The first line of Accept.
    pub accept: Option<&'a [u8]>,
    /// Accept-Encoding; see [`Request::accepted_codings`].
    pub accept_encoding: FieldLines<'a>,
    /// User-Agent, for logs: it may hold any byte from 0x80, and quotes.
    pub user_agent: Option<&'a [u8]>,
    /// Referer, for logs, as above.
    pub referer: Option<&'a [u8]>,
}

impl Request<'_> {
    /// The content codings that the client accepts.
    #[must_use]
    pub fn accepted_codings(&self) -> AcceptedCodings {
        AcceptedCodings::parse(self.accept_encoding.iter())
    }
}

/// Parses the request at the beginning of `buffer`.
///
/// Returns the request and the number of bytes that its head takes (empty lines before it included), or
/// `None` when the head is not complete yet and more bytes are needed. What follows the head in `buffer` is
/// body, if [`Request::body`] says that there is one, or the next request.
///
/// # Errors
/// What is wrong, with the status to answer; the connection must be closed after that.
pub fn parse_request<'a>(
    buffer: &'a [u8],
    limits: &RequestLimits,
) -> Result<Option<(Request<'a>, usize)>, RequestError> {
    let received = &buffer[..buffer.len().min(limits.head_bytes)];
    let skipped = skip_empty_lines(received)?;
    let window = &received[skipped..];

    let mut headers = [const { MaybeUninit::uninit() }; HEADER_COUNT_CAP];
    let mut head = httparse::Request::new(&mut []);
    let header_count = limits.header_count.min(HEADER_COUNT_CAP);
    let parsed = head.parse_with_uninit_headers(window, &mut headers[..header_count]);
    match parsed {
        Ok(httparse::Status::Complete(head_bytes)) => {
            check_head(&window[..head_bytes], limits)?;
            let stated = head.version.map(|minor| if minor == 0 { "HTTP/1.0" } else { "HTTP/1.1" });
            Ok(Some((assemble(head.method, head.path, stated, head.headers)?, skipped + head_bytes)))
        }
        Ok(httparse::Status::Partial) => check_incomplete(received, window, limits).map(|()| None),
        Err(httparse::Error::Version) => {
            let parsed = parse_later_version(head.method, head.path, window, limits)?;
            if parsed.is_none() {
                check_incomplete(received, window, limits)?;
            }
            Ok(parsed.map(|(request, head_bytes)| (request, skipped + head_bytes)))
        }
        Err(error) => Err(explain(error, window)),
    }
}

/// Reads a request that says HTTP/1.2 to HTTP/1.9 as one of HTTP/1.1, the highest minor version spoken here (RFC 9110
/// section 2.5). The parser knows no such version: it has stopped behind `target`, and goes on here behind the
/// request line. `None` when the head is not complete yet.
fn parse_later_version<'a>(
    method: Option<&'a str>,
    target: Option<&'a str>,
    window: &'a [u8],
    limits: &RequestLimits,
) -> Result<Option<(Request<'a>, usize)>, RequestError> {
    let version_at = method.map_or(0, str::len) + 1 + target.map_or(0, str::len) + 1;
    let words = window.get(version_at..).and_then(|rest| rest.split_first_chunk::<8>());
    let Some((stated @ [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'], line_end)) = words else {
        return Err(explain_version(window));
    };
    let Some(lines) = line_end.strip_prefix(b"\r\n") else {
        return if b"\r\n".starts_with(line_end) { Ok(None) } else { Err(RequestError::LineEnding) };
    };
    let mut headers = [httparse::EMPTY_HEADER; HEADER_COUNT_CAP];
    let header_count = limits.header_count.min(HEADER_COUNT_CAP);
    match httparse::parse_headers(lines, &mut headers[..header_count]) {
        Ok(httparse::Status::Complete((lines_bytes, headers))) => {
            let head_bytes = window.len() - lines.len() + lines_bytes;
            check_head(&window[..head_bytes], limits)?;
            Ok(Some((assemble(method, target, std::str::from_utf8(stated).ok(), headers)?, head_bytes)))
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(explain(error, window)),
    }
}

/// Whether what was received is, or can become, a HEAD: whatever else is wrong with it, it is answered without content.
pub(crate) fn begins_with_head(received: &[u8]) -> bool {
    let mut rest = received;
    while let Some(after) = rest.strip_prefix(b"\r\n") {
        rest = after;
    }
    rest.starts_with(b"HEAD ")
}

fn check_head(head: &[u8], limits: &RequestLimits) -> Result<(), RequestError> {
    check_request_line(head, limits)?;
    check_line_endings(head)
}

/// Whether a head of which `received` is the beginning can still become one within the limits.
fn check_incomplete(received: &[u8], window: &[u8], limits: &RequestLimits) -> Result<(), RequestError> {
    check_request_line(window, limits)?;
    if received.len() == limits.head_bytes { Err(RequestError::HeadTooLarge) } else { Ok(()) }
}

/// Bytes taken by empty lines before the request line.
fn skip_empty_lines(buffer: &[u8]) -> Result<usize, RequestError> {
    let mut skipped = 0;
    while buffer[skipped..].starts_with(b"\r\n") {
        skipped += 2;
        if skipped > 2 * LEADING_EMPTY_LINES_LIMIT {
            return Err(RequestError::LeadingEmptyLines);
        }
    }
    Ok(skipped)
}

/// `head` may be the beginning of one. The line is looked for only when it could be too long at all.
fn check_request_line(head: &[u8], limits: &RequestLimits) -> Result<(), RequestError> {
    // The line's end counts from its LF; a CR before it is not a part of the line.
    let line_and_crlf_bytes = limits.request_line_bytes.saturating_add(2);
    if head.len() > limits.request_line_bytes {
        let beginning = &head[..head.len().min(line_and_crlf_bytes)];
        let ends = beginning.contains(&b'\n');
        let may_still_end = beginning[limits.request_line_bytes..] == *b"\r";
        if !ends && !may_still_end {
            return Err(RequestError::RequestLineTooLong);
        }
    }
    Ok(())
}

/// Refuses lines that end in LF alone. httparse takes them, as RFC 9112 section 2.2 allows; a server in front
/// of this one may not, and then the two would disagree on where a line ends.
fn check_line_endings(head: &[u8]) -> Result<(), RequestError> {
    // httparse accepts a CR only before an LF, so that equal counts leave no LF without its CR. They are
    // counted in bytes, over pieces short enough not to overflow, because that is what the compiler makes
    // vector code of.
    let surplus = |piece: &[u8]| -> i8 {
        piece.iter().map(|byte| i8::from(*byte == b'\n') - i8::from(*byte == b'\r')).sum()
    };
    let line_feeds_alone: i64 = head.chunks(127).map(|piece| i64::from(surplus(piece))).sum();
    if line_feeds_alone == 0 { Ok(()) } else { Err(RequestError::LineEnding) }
}

fn explain(error: httparse::Error, window: &[u8]) -> RequestError {
    match error {
        httparse::Error::HeaderName => RequestError::HeaderName,
        httparse::Error::HeaderValue => RequestError::HeaderValue,
        httparse::Error::NewLine => RequestError::LineEnding,
        httparse::Error::TooManyHeaders => RequestError::HeaderCount,
        httparse::Error::Version => explain_version(window),
        httparse::Error::Token | httparse::Error::Status => RequestError::RequestLine,
    }
}

/// Tells a version that exists elsewhere (HTTP/2.0) from one that is none (HTTP/one).
fn explain_version(window: &[u8]) -> RequestError {
    let line = window.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let third_word = line.splitn(3, |byte| *byte == b' ').nth(2).unwrap_or_default();
    if third_word.contains(&b' ') {
        return RequestError::RequestLine;
    }
    match third_word.strip_prefix(b"HTTP/") {
        Some([major, ..]) if major.is_ascii_digit() && *major != b'1' => RequestError::VersionNotSupported,
        _ => RequestError::Version,
    }
}

fn assemble<'a>(
    method: Option<&'a str>,
    target: Option<&'a str>,
    stated_version: Option<&'a str>,
    headers: &[httparse::Header<'a>],
) -> Result<Request<'a>, RequestError> {
    // All three are there once the head is complete.
    let (Some(name), Some(target), Some(stated_version)) = (method, target, stated_version) else {
        return Err(RequestError::RequestLine);
    };
    let version = if stated_version == "HTTP/1.0" { Version::Http10 } else { Version::Http11 };
    let fields = Fields::gather(headers)?;
    let body = fields.body_framing(version)?;
    let host = fields.host.map(Authority::parse).transpose()?;
    if host.is_none() && version == Version::Http11 {
        return Err(RequestError::HostMissing);
    }
    let parts = Target::parse(name, target)?;
    // RFC 9110 section 13.1.5: Range counts only when If-Range holds, and a repeated one holds nothing.
    let range = if matches!(fields.if_range, Single::Repeated) { None } else { fields.range.once() };
    Ok(Request {
        method: Method::from_name(name),
        target,
        path: parts.path,
        query: parts.query,
        version,
        stated_version,
        authority: parts.authority.or(host),
        keep_alive: fields.keep_alive(version),
        body,
        expect_continue: fields.expect_continue(version)?,
        range,
        conditions: Conditions {
            if_match: fields.if_match,
            if_none_match: fields.if_none_match,
            if_modified_since: fields.if_modified_since.once(),
            if_unmodified_since: fields.if_unmodified_since.once(),
            if_range: fields.if_range.once(),
        },
        accept: fields.accept,
        accept_encoding: fields.accept_encoding,
        user_agent: fields.user_agent,
        referer: fields.referer,
    })
}

/// Whether the first bytes of a connection are, or can become, the beginning of an HTTP request: for the TLS
/// port, to answer plain HTTP in words. A TLS record begins with a byte from 20 to 24, never with a letter.
#[must_use]
pub fn looks_like_http(first_bytes: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 11] = [
        b"GET ",
        b"HEAD ",
        b"POST ",
        b"PUT ",
        b"DELETE ",
        b"OPTIONS ",
        b"CONNECT ",
        b"PATCH ",
        b"TRACE ",
        b"PROPFIND ",
        b"PRI * HTTP/2.0",
    ];
    let begins = |known: &&[u8]| {
        let common = known.len().min(first_bytes.len());
        known[..common] == first_bytes[..common]
    };
    !first_bytes.is_empty() && BEGINNINGS.iter().any(begins)
}
