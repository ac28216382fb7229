//! One response, from its first byte to its last, without I/O: the head, and where the body ends (RFC 9112 6.3).
//!
//! What a server sends is not trusted: heads are bounded, framing that leaves a doubt is a fault.

use crate::chunked::{ChunkStep, Chunked};
use crate::request::Span;
pub use crate::response_fault::ResponseFault;

/// The longest head, interim ones included.
const HEAD_LIMIT_BYTES: usize = 32 * 1024;
/// The most header lines.
const HEADERS_LIMIT: usize = 96;

/// What is needed of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code: not an interim one.
    pub status: u16,
    /// The part that the body is, and the length of the whole, of a `206`.
    pub content_range: Option<((u64, u64), u64)>,
    /// The body is encoded (Content-Encoding): not the file's bytes.
    pub encoded: bool,
    /// Nothing comes behind this response.
    pub closes: bool,
}

#[derive(Clone, Debug)]
enum State {
    /// The head, as far as it is there and was not parsed in one piece.
    Head(Vec<u8>),
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Done,
}

/// What stands at the front of the bytes that arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Nothing more: more bytes are needed.
    More,
    /// The head is whole.
    Head,
    /// Bytes of the body.
    Body(&'a [u8]),
    /// The response is over.
    Done,
}

/// A response that is being read.
#[derive(Clone, Debug)]
pub struct Response {
    state: State,
    head: Option<Head>,
    interim_bytes: usize,
}

impl Default for Response {
    fn default() -> Self {
        Self::new()
    }
}

impl Response {
    /// One of which nothing has come.
    #[must_use]
    pub fn new() -> Self {
        Self { state: State::Head(Vec::new()), head: None, interim_bytes: 0 }
    }

    /// The head, once it is whole.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Takes what stands at the front of `bytes`, and says how many bytes that were.
    ///
    /// # Errors
    /// It is no HTTP response, or one that leaves a doubt about where it ends.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Piece<'a>), ResponseFault> {
        match &mut self.state {
            State::Done | State::Length(0) => {
                self.state = State::Done;
                Ok((0, Piece::Done))
            }
            _ if bytes.is_empty() => Ok((0, Piece::More)),
            State::Head(_) => self.take_head(bytes),
            State::Length(remaining) => {
                let count = bytes.len().min(usize::try_from(*remaining).unwrap_or(usize::MAX));
                *remaining -= count as u64;
                Ok((count, Piece::Body(&bytes[..count])))
            }
            State::UntilClose => Ok((bytes.len(), Piece::Body(bytes))),
            State::Chunked(chunked) => match chunked.step(bytes)? {
                ChunkStep::Framing(count) => Ok((count, Piece::Body(&[]))),
                ChunkStep::Data(count) => Ok((count, Piece::Body(&bytes[..count]))),
                ChunkStep::End(count) => {
                    self.state = State::Done;
                    Ok((count, Piece::Done))
                }
            },
        }
    }

    /// Bytes of the body that are to come, where its length was announced.
    pub(crate) fn remaining_bytes(&self) -> Option<u64> {
        match self.state {
            State::Length(remaining) => Some(remaining),
            _ => None,
        }
    }

    /// Passes over bytes of a body of announced length that were thrown away; more than remain are refused.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<(), ResponseFault> {
        match &mut self.state {
            State::Length(remaining) if *remaining >= bytes => {
                *remaining -= bytes;
                Ok(())
            }
            _ => Err(ResponseFault("more bytes than the head announced")),
        }
    }

    /// Whether the server's closing now is the regular end of this response.
    pub(crate) fn ends_with_close(&self) -> bool {
        matches!(self.state, State::UntilClose)
    }

    fn take_head<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Piece<'a>), ResponseFault> {
        let State::Head(held) = &mut self.state else { return Ok((0, Piece::More)) };
        let held_bytes = held.len();
        // Heads come whole nearly always: then nothing is copied.
        let whole: &[u8] = if held.is_empty() {
            bytes
        } else {
            let room = (HEAD_LIMIT_BYTES + 1).saturating_sub(held_bytes);
            held.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if !bytes.contains(&b'\n') && held.len() <= HEAD_LIMIT_BYTES {
                return Ok((bytes.len(), Piece::More));
            }
            held
        };
        match parse(whole)? {
            Parsed::Partial if whole.len() + self.interim_bytes > HEAD_LIMIT_BYTES => {
                Err(ResponseFault("a head without end"))
            }
            Parsed::Partial => {
                if held_bytes == 0 {
                    held.extend_from_slice(bytes);
                }
                Ok((bytes.len(), Piece::More))
            }
            Parsed::Interim { head_bytes } => {
                self.interim_bytes += head_bytes;
                if self.interim_bytes > HEAD_LIMIT_BYTES {
                    return Err(ResponseFault("interim responses without end"));
                }
                self.state = State::Head(Vec::new());
                Ok((head_bytes - held_bytes, Piece::Body(&[])))
            }
            Parsed::Whole { head_bytes, head, state } => {
                self.head = Some(head);
                self.state = state;
                Ok((head_bytes - held_bytes, Piece::Head))
            }
        }
    }
}

enum Parsed {
    Partial,
    Interim { head_bytes: usize },
    Whole { head_bytes: usize, head: Head, state: State },
}

fn parse(bytes: &[u8]) -> Result<Parsed, ResponseFault> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
    let mut response = httparse::Response::new(&mut headers);
    let head_bytes = match response.parse(&bytes[..bytes.len().min(HEAD_LIMIT_BYTES)]) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) => return Ok(Parsed::Partial),
        Err(httparse::Error::TooManyHeaders) => return Err(ResponseFault("a head with too many headers")),
        Err(_) => return Err(ResponseFault("a malformed head")),
    };
    let status = response.code.unwrap_or(0);
    if (100..200).contains(&status) {
        if status == 101 {
            return Err(ResponseFault("a switch of protocol that nobody asked for"));
        }
        return Ok(Parsed::Interim { head_bytes });
    }
    let mut fields = Fields { closes: response.version == Some(0), ..Fields::default() };
    for header in response.headers.iter() {
        fields.take(header.name, header.value)?;
    }
    let state = match (fields.chunked, fields.length) {
        _ if status == 204 || status == 304 => State::Length(0),
        (Some(true), Some(_)) => return Err(ResponseFault("a head with both a length and chunks")),
        (Some(true), None) => State::Chunked(Chunked::new()),
        (Some(false), _) | (None, None) => State::UntilClose,
        (None, Some(length)) => State::Length(length),
    };
    let closes = fields.closes || matches!(state, State::UntilClose);
    let head = Head { status, content_range: fields.content_range, encoded: fields.encoded, closes };
    Ok(Parsed::Whole { head_bytes, head, state })
}

#[derive(Default)]
struct Fields {
    length: Option<u64>,
    /// There is a Transfer-Encoding, and whether chunked is its last.
    chunked: Option<bool>,
    content_range: Option<(Span, u64)>,
    encoded: bool,
    closes: bool,
}

impl Fields {
    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), ResponseFault> {
        let value = std::str::from_utf8(value).unwrap_or_default().trim();
        if name.eq_ignore_ascii_case("content-length") {
            let length = number(value).ok_or(ResponseFault("a malformed Content-Length"))?;
            if self.length.replace(length).is_some_and(|other| other != length) {
                return Err(ResponseFault("two different lengths"));
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            let last = value.rsplit(',').next().unwrap_or_default().trim();
            self.chunked = Some(last.eq_ignore_ascii_case("chunked"));
        } else if name.eq_ignore_ascii_case("connection") {
            for word in value.split(',') {
                match word.trim() {
                    word if word.eq_ignore_ascii_case("close") => self.closes = true,
                    word if word.eq_ignore_ascii_case("keep-alive") => self.closes = false,
                    _ => {}
                }
            }
        } else if name.eq_ignore_ascii_case("content-range") {
            self.content_range =
                Some(content_range(value).ok_or(ResponseFault("a malformed Content-Range"))?);
        } else if name.eq_ignore_ascii_case("content-encoding") {
            self.encoded = !value.eq_ignore_ascii_case("identity");
        }
        Ok(())
    }
}

fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// `bytes 0-9/100`; of `bytes */100` (in a 416) the range is empty at the end.
fn content_range(value: &str) -> Option<(Span, u64)> {
    let (span, whole) = value.strip_prefix("bytes ")?.split_once('/')?;
    let whole = number(whole)?;
    if span == "*" {
        return Some(((whole, whole), whole));
    }
    let (first, last) = span.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    (first <= last && last < whole).then_some(((first, last), whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `wire` in steps; gives the body, how much belonged to the response, and whether it ended.
    fn read(wire: &[u8], step_bytes: usize) -> Result<(Option<Head>, Vec<u8>, usize, bool), ResponseFault> {
        let (mut response, mut body, mut at) = (Response::new(), Vec::new(), 0);
        for piece in wire.chunks(step_bytes) {
            let mut rest = piece;
            loop {
                let (taken, found) = response.next(rest)?;
                rest = &rest[taken..];
                at += taken;
                match found {
                    Piece::More => break,
                    Piece::Head => {}
                    Piece::Body(bytes) => body.extend_from_slice(bytes),
                    Piece::Done => return Ok((response.head().copied(), body, at, true)),
                }
            }
        }
        Ok((response.head().copied(), body, at, false))
    }

    #[test]
    fn responses_are_read_at_every_split() {
        for (wire, status, body, closes) in [
            (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..], 200, &b"hello"[..], false),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\ncontent-length: 0\r\nConnection: Close\r\n\r\n", 404, b"", true),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200, b"abc", false),
            (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", 200, b"ab", true),
            (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", 304, b"", false),
        ] {
            let padded = [wire, b"NEXT"].concat();
            for step in 1..=padded.len() {
                let (head, found, end, done) = read(&padded, step).unwrap();
                let head = head.unwrap();
                assert_eq!((head.status, head.closes), (status, closes));
                assert_eq!((found.as_slice(), end, done), (body, wire.len(), true), "{step}");
            }
        }
        let (head, body, _, done) = read(b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 7).unwrap();
        assert_eq!((body.as_slice(), done), (&b"until the end"[..], false));
        assert!(head.unwrap().closes);
    }

    #[test]
    fn ranges_are_read() {
        let wire = b"HTTP/1.1 206 P\r\nContent-Range: bytes 5-9/100\r\nContent-Length: 5\r\n\r\n01234";
        assert_eq!(read(wire, 100).unwrap().0.unwrap().content_range, Some(((5, 9), 100)));
        for bad in ["bytes 9-5/100", "bytes 0-100/100", "bytes 1-2/*", "items 1-2/3", "bytes +1-2/3"] {
            assert_eq!(content_range(bad), None, "{bad}");
        }
        assert_eq!(content_range("bytes */7"), Some(((7, 7), 7)));
    }

    #[test]
    fn what_leaves_a_doubt_is_a_fault() {
        for bad in [
            &b"\x16\x03\x03\0"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 101 Switching\r\n\r\n",
        ] {
            assert!(read(bad, 1000).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        for filler in ["X: y\r\n".repeat(10_000), format!("X: {}", "y".repeat(100_000))] {
            let wire = format!("HTTP/1.1 200 OK\r\n{filler}");
            assert!(read(wire.as_bytes(), 1000).is_err());
            assert!(read(wire.as_bytes(), 1_000_000).is_err());
        }
        assert!(read(&b"HTTP/1.1 100 Continue\r\n\r\n".repeat(5000), 1000).is_err());
    }

    #[test]
    fn what_was_thrown_away_is_passed_over() {
        let mut response = Response::new();
        let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(response.next(wire).unwrap(), (wire.len(), Piece::Head));
        assert_eq!(response.remaining_bytes(), Some(5));
        response.skip(4).unwrap();
        assert!(response.skip(2).is_err());
        assert_eq!(response.next(b"").unwrap().1, Piece::More);
        response.skip(1).unwrap();
        assert_eq!(response.next(b"").unwrap().1, Piece::Done);
    }
}
