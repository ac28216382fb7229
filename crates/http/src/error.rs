//! What can be wrong with a request: the peer's fault.

use crate::status::Status;
use std::fmt;

macro_rules! request_errors {
    ($($(#[$doc:meta])* $name:ident => $status:ident, $explanation:literal;)*) => {
        /// A request that is refused. Each names the status to answer with and a sentence for the page.
        ///
        /// After any of these, and unless it came from [`decode_path`](crate::decode_path), the end of the
        /// request is not known: the connection must be closed once the answer is sent.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum RequestError {
            $($(#[$doc])* $name,)*
        }

        impl RequestError {
            /// The status to answer with.
            #[must_use]
            pub const fn status(self) -> Status {
                match self { $(Self::$name => Status::$status,)* }
            }

            /// What is wrong, as a sentence for the person who sent it. Never quotes what was received.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$name => $explanation,)* }
            }
        }

        #[cfg(test)]
        pub(crate) const ALL_REQUEST_ERRORS: &[RequestError] = &[$(RequestError::$name,)*];
    };
}

request_errors! {
    /// More empty lines before the request line than are tolerated (RFC 9112 section 2.2).
    LeadingEmptyLines => BadRequest, "Too many empty lines come before the request line.";
    /// The request line is not `method SP target SP version CRLF` (RFC 9112 section 3).
    RequestLine => BadRequest,
        "The request line is malformed: it must be a method, a target and a version with one space between them.";
    /// The request line is longer than [`RequestLimits::request_line_bytes`](crate::RequestLimits).
    RequestLineTooLong => UriTooLong, "The request line is longer than this server accepts.";
    /// The target fits none of the forms of RFC 9112 section 3.2.
    Target => BadRequest, "The request target is malformed: it must be a path, or an http or https address.";
    /// The last word of the request line is no HTTP version.
    Version => BadRequest, "The request line does not end in an HTTP version such as HTTP/1.1.";
    /// An HTTP version other than 1.0 and 1.1.
    VersionNotSupported => HttpVersionNotSupported, "This server speaks HTTP/1.0 and HTTP/1.1 here.";
    /// A line that does not end in CRLF (RFC 9112 section 2.2).
    LineEnding => BadRequest, "A line of the request does not end in CR LF.";
    /// A malformed header name, whitespace before the colon, or a folded line (RFC 9112 sections 5.1 and
    /// 5.2).
    HeaderName => BadRequest,
        "A header line is malformed: it must be a name, a colon directly after it and the value, on one line.";
    /// A header value with a control character (RFC 9110 section 5.5).
    HeaderValue => BadRequest, "A header value holds a control character.";
    /// More header lines than [`RequestLimits::header_count`](crate::RequestLimits).
    HeaderCount => RequestHeaderFieldsTooLarge, "The request has more header lines than this server accepts.";
    /// The head is longer than [`RequestLimits::head_bytes`](crate::RequestLimits).
    HeadTooLarge => RequestHeaderFieldsTooLarge, "The request's headers are larger than this server accepts.";
    /// One list header on more lines than [`FIELD_LINES_LIMIT`](crate::FIELD_LINES_LIMIT).
    FieldLines => RequestHeaderFieldsTooLarge, "A header is repeated on more lines than this server accepts.";
    /// HTTP/1.1 without Host (RFC 9112 section 3.2).
    HostMissing => BadRequest, "The Host header is missing.";
    /// Host more than once (RFC 9112 section 3.2).
    HostRepeated => BadRequest, "The Host header is given more than once.";
    /// A Host, or an authority in the target, that is no host with an optional port (RFC 9112 section 3.2).
    Host => BadRequest, "The host is malformed: it must be a name or an address, with an optional port.";
    /// Content-Length that is no decimal number of 64 bits (RFC 9110 section 8.6).
    ContentLength => BadRequest, "The Content-Length header is not a number of bytes.";
    /// Content-Length more than once, refused whether or not the values agree (RFC 9112 section 6.3 allows
    /// that).
    ContentLengthRepeated => BadRequest, "The Content-Length header is given more than once.";
    /// Transfer-Encoding beside Content-Length (RFC 9112 section 6.1).
    TwoFramings => BadRequest, "Both Content-Length and Transfer-Encoding are given.";
    /// Transfer-Encoding in an HTTP/1.0 request (RFC 9112 section 6.1).
    TransferEncodingInHttp10 => BadRequest, "Transfer-Encoding is not part of HTTP/1.0.";
    /// `chunked` missing, repeated, not last, or an empty element (RFC 9112 section 6.3).
    TransferEncoding => BadRequest, "The Transfer-Encoding header must name chunked once, and last.";
    /// A transfer coding before `chunked` that this server does not know (RFC 9112 section 6.1).
    TransferCodingUnknown => NotImplemented, "Of the transfer codings this server knows chunked only.";
    /// An expectation other than `100-continue` (RFC 9110 section 10.1.1).
    Expectation => ExpectationFailed, "Of the expectations this server knows 100-continue only.";
    /// A malformed chunk size line or chunk end (RFC 9112 section 7.1).
    Chunk => BadRequest, "The chunked request body is malformed.";
    /// Chunk extensions and trailers larger than [`FRAMING_LIMIT_BYTES`](crate::FRAMING_LIMIT_BYTES).
    ChunkFramingTooLarge => ContentTooLarge, "The request body has too many chunk extensions or trailers.";
    /// A body larger than the caller is willing to skip.
    BodyTooLarge => ContentTooLarge, "The request body is larger than this server is willing to skip.";
    /// A path that does not begin with a slash.
    PathNotAbsolute => BadRequest, "The path must begin with a slash.";
    /// `%` without two hexadecimal digits.
    PathEscape => BadRequest, "The path has a percent sign without two hexadecimal digits after it.";
    /// `%2F`: a slash within a file name cannot exist.
    PathEncodedSlash => BadRequest, "The path has an encoded slash.";
    /// `%00`: a NUL within a file name cannot exist.
    PathNul => BadRequest, "The path has an encoded NUL.";
    /// A control byte that is not encoded (RFC 3986 section 2.1).
    PathControlByte => BadRequest, "The path has a control character that is not encoded.";
    /// A `..` segment, encoded or not.
    PathParent => BadRequest, "The path has a segment of two dots.";
}

impl fmt::Display for RequestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.explanation())
    }
}

impl std::error::Error for RequestError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_an_error_status_and_a_sentence() {
        for error in ALL_REQUEST_ERRORS {
            assert!((400..600).contains(&error.status().code()), "{error:?}");
            assert!(error.explanation().ends_with('.'), "{error:?}");
            assert_eq!(error.to_string(), error.explanation());
        }
    }
}
