//! What all responses have in common, and those that carry no file: errors, redirects, answers to OPTIONS.
//!
//! A response is appended to a buffer that the caller keeps: head and, for pages made here, the body. What is
//! left to send from the representation is in the [`ResponsePlan`].

use crate::date::ImfFixdate;
use crate::header_block::HeaderBlock;
use crate::header_field::HeaderName;
use crate::media_type::MediaType;
use crate::page::{self, Link, html_page};
use crate::path::encode_location;
use crate::range::{ByteRange, DEFAULT_RANGES_LIMIT};
use crate::request::{Method, Request, begins_with_head};
use crate::status::Status;
use crate::version::Version;

/// What remains to be sent after the bytes that were appended to the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    None,
    /// These bytes of the representation; never empty.
    Range(ByteRange),
    /// Several ranges, each after its own lines.
    Multipart(Multipart),
}

/// The body of a multipart/byteranges response (RFC 9110 section 14.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multipart {
    /// In the order in which they are sent.
    pub parts: Vec<Part>,
    /// The last boundary, after all parts.
    pub closing: Vec<u8>,
}

/// One range of a multipart/byteranges body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Boundary and header lines, sent before the bytes of the range.
    pub preamble: Vec<u8>,
    /// The bytes of the representation.
    pub range: ByteRange,
}

/// A response whose head is written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the body is still to be sent"]
pub struct ResponsePlan {
    /// The status, for the log.
    pub status: Status,
    /// Bytes of content that go over the wire after the head, whether they are in the buffer already or come
    /// from the representation. Zero for HEAD and 304.
    pub content_bytes: u64,
    /// What remains to be sent.
    pub body: Body,
}

/// What all responses on a connection have in common.
#[derive(Debug, Clone, Copy)]
pub struct Responder<'a> {
    /// The time of the response, for Date.
    pub now: &'a ImfFixdate,
    /// The value of Server; `None` leaves it out. The caller answers for its being printable ASCII.
    pub server: Option<&'a str>,
    /// The site's own fields, on every response.
    pub headers: &'a HeaderBlock,
    /// How long the response may be kept; not said on errors, which would be kept as long as the file.
    pub cache_control: Option<&'a str>,
    /// The connection stays open after this response.
    pub persist: bool,
    /// The version of the request: 1.0 clients must be told when the connection persists.
    pub version: Version,
    /// The request was HEAD: the same head, no content.
    pub head_only: bool,
    /// The pages for errors lead home: the reader is not there already.
    pub leads_home: bool,
    /// A request for more ranges gets the whole; see [`select_ranges`](crate::select_ranges).
    pub ranges_limit: usize,
}

impl<'a> Responder<'a> {
    /// For the answer to `request`. The connection persists when both the client (`request.keep_alive`) and
    /// the caller (`may_persist`) want it to.
    #[must_use]
    pub fn for_request(
        request: &Request<'_>,
        now: &'a ImfFixdate,
        server: Option<&'a str>,
        may_persist: bool,
    ) -> Self {
        Self {
            now,
            server,
            headers: HeaderBlock::standard(),
            cache_control: None,
            persist: may_persist && request.keep_alive,
            version: request.version,
            head_only: request.method == Method::Head,
            leads_home: request.path != "/",
            ranges_limit: DEFAULT_RANGES_LIMIT,
        }
    }

    /// For an answer when no request could be read of what was received (malformed, timed out, refused): the
    /// connection closes after it.
    #[must_use]
    pub fn without_request(received: &[u8], now: &'a ImfFixdate, server: Option<&'a str>) -> Self {
        Self {
            now,
            server,
            headers: HeaderBlock::standard(),
            cache_control: None,
            persist: false,
            version: Version::Http11,
            // RFC 9110 section 9.3.2: no content in an answer to HEAD, whatever is wrong with the rest of it.
            head_only: begins_with_head(received),
            leads_home: true,
            ranges_limit: DEFAULT_RANGES_LIMIT,
        }
    }

    /// The same with a site's own fields in the place of the standard ones.
    #[must_use]
    pub fn with_headers(self, headers: &'a HeaderBlock) -> Self {
        Self { headers, ..self }
    }

    /// The same with Cache-Control on what is no error.
    #[must_use]
    pub fn with_cache_control(self, cache_control: Option<&'a str>) -> Self {
        Self { cache_control, ..self }
    }

    /// The same with the operator's limit on the ranges of one request.
    #[must_use]
    pub fn with_ranges_limit(self, ranges_limit: usize) -> Self {
        Self { ranges_limit, ..self }
    }

    /// An error with a small HTML page: `explanation` is escaped. For 405 use [`Self::method_not_allowed`].
    pub fn error(&self, status: Status, explanation: &str, head: &mut Vec<u8>) -> ResponsePlan {
        self.page(status, &html_page(status, explanation, self.link(status)), MediaType::HTML, "", head)
    }

    /// The same as plain text, for a client that most likely is no browser (plain HTTP on the TLS port).
    pub fn plain_error(&self, status: Status, explanation: &str, head: &mut Vec<u8>) -> ResponsePlan {
        self.page(status, &format!("{explanation}\n"), MediaType::PLAIN_TEXT, "", head)
    }

    /// 405 with the methods that are allowed, e.g. `GET, HEAD, OPTIONS` (RFC 9110 section 15.5.6 wants them
    /// named).
    pub fn method_not_allowed(&self, allow: &str, head: &mut Vec<u8>) -> ResponsePlan {
        let status = Status::MethodNotAllowed;
        let explanation = format!("Files here can be read only: {allow}.");
        let page = html_page(status, &explanation, self.link(status));
        self.page(status, &page, MediaType::HTML, &format!("Allow: {allow}\r\n"), head)
    }

    /// The same as plain text.
    pub fn plain_method_not_allowed(&self, allow: &str, head: &mut Vec<u8>) -> ResponsePlan {
        let page = format!("This can be read only: {allow}.\n");
        self.page(
            Status::MethodNotAllowed,
            &page,
            MediaType::PLAIN_TEXT,
            &format!("Allow: {allow}\r\n"),
            head,
        )
    }

    /// 416 with the length that there is (RFC 9110 section 15.5.17).
    pub(crate) fn range_not_satisfiable(&self, length_bytes: u64, head: &mut Vec<u8>) -> ResponsePlan {
        let status = Status::RangeNotSatisfiable;
        let explanation = format!("The file has {length_bytes} bytes; the range lies beyond.");
        let page = html_page(status, &explanation, self.link(status));
        self.page(status, &page, MediaType::HTML, &format!("Content-Range: bytes */{length_bytes}\r\n"), head)
    }

    /// A redirect to `location`, an absolute address or one that begins with a slash, percent-encoded;
    /// whatever may not stand in a header is encoded here. `status` is one of 301, 302, 307 and 308.
    pub fn redirect(&self, status: Status, location: &str, head: &mut Vec<u8>) -> ResponsePlan {
        let location: String = encode_location(location).collect();
        let page = html_page(status, "It is here:", Link::To(&location));
        self.page(status, &page, MediaType::HTML, &format!("Location: {location}\r\n"), head)
    }

    /// 200 without content for OPTIONS, with the methods that are allowed (RFC 9110 section 9.3.7).
    pub fn options(&self, allow: &str, head: &mut Vec<u8>) -> ResponsePlan {
        self.begin(Status::Ok, head);
        field(head, "Allow: ", allow.as_bytes());
        number_field(head, "Content-Length: ", 0);
        self.finish(Status::Ok, head);
        ResponsePlan { status: Status::Ok, content_bytes: 0, body: Body::None }
    }

    /// Where the page for an error leads. A host that nothing here answers for has no home either.
    fn link(&self, status: Status) -> Link<'static> {
        if self.leads_home && status != Status::MisdirectedRequest { Link::Home } else { Link::None }
    }

    /// A page that is made here: head and content go into the buffer. `lines` are complete header lines.
    fn page(
        &self,
        status: Status,
        content: &str,
        media_type: MediaType<'_>,
        lines: &str,
        head: &mut Vec<u8>,
    ) -> ResponsePlan {
        let content_bytes = content.len() as u64;
        self.begin(status, head);
        head.extend_from_slice(b"Content-Type: ");
        media_type.write(head);
        head.extend_from_slice(b"\r\n");
        number_field(head, "Content-Length: ", content_bytes);
        head.extend_from_slice(lines.as_bytes());
        if media_type == MediaType::HTML && !self.headers.has(&HeaderName::CONTENT_SECURITY_POLICY) {
            field(head, "Content-Security-Policy: ", page::CONTENT_SECURITY_POLICY.as_bytes());
        }
        self.finish(status, head);
        if self.head_only {
            return ResponsePlan { status, content_bytes: 0, body: Body::None };
        }
        head.extend_from_slice(content.as_bytes());
        ResponsePlan { status, content_bytes, body: Body::None }
    }

    /// Status line, Server and Date.
    pub(crate) fn begin(&self, status: Status, head: &mut Vec<u8>) {
        head.extend_from_slice(status.line().as_bytes());
        if let Some(server) = self.server {
            field(head, "Server: ", server.as_bytes());
        }
        field(head, "Date: ", self.now.as_bytes());
    }

    /// The site's own lines, Connection where the version's default is not meant, and the empty line.
    pub(crate) fn finish(&self, status: Status, head: &mut Vec<u8>) {
        head.extend_from_slice(self.headers.as_str().as_bytes());
        if let Some(cache_control) = self.cache_control.filter(|_| !status.is_error()) {
            field(head, "Cache-Control: ", cache_control.as_bytes());
        }
        match (self.persist, self.version) {
            (true, Version::Http11) => {}
            (true, Version::Http10) => head.extend_from_slice(b"Connection: keep-alive\r\n"),
            (false, _) => head.extend_from_slice(b"Connection: close\r\n"),
        }
        head.extend_from_slice(b"\r\n");
    }
}

/// A header line; `name` with its colon and space.
pub(crate) fn field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// A header line with a number.
pub(crate) fn number_field(head: &mut Vec<u8>, name: &str, value: u64) {
    head.extend_from_slice(name.as_bytes());
    push_decimal(head, value);
    head.extend_from_slice(b"\r\n");
}

/// Writes a number without the machinery of `std::fmt`, which costs as much as all the rest of a head.
pub(crate) fn push_decimal(head: &mut Vec<u8>, mut value: u64) {
    // 2^64 has 20 digits.
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    head.extend_from_slice(&digits[first..]);
}
