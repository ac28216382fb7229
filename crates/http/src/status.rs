//! The status codes that this server sends, with their reason phrases.

use std::fmt;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $code:literal $reason:literal;)*) => {
        /// A status code of a final response (RFC 9110 section 15).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Status {
            $($(#[$doc])* $name = $code,)*
        }

        impl Status {
            /// The reason phrase as registered, e.g. `Not Found`.
            #[must_use]
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$name => $reason,)* }
            }

            /// The status line of the response, with its CRLF.
            pub(crate) const fn line(self) -> &'static str {
                match self { $(Self::$name => concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n"),)* }
            }
        }
    };
}

statuses! {
    /// 200
    Ok = 200 "OK";
    /// 206
    PartialContent = 206 "Partial Content";
    /// 301
    MovedPermanently = 301 "Moved Permanently";
    /// 302
    Found = 302 "Found";
    /// 304
    NotModified = 304 "Not Modified";
    /// 307
    TemporaryRedirect = 307 "Temporary Redirect";
    /// 308
    PermanentRedirect = 308 "Permanent Redirect";
    /// 400
    BadRequest = 400 "Bad Request";
    /// 403
    Forbidden = 403 "Forbidden";
    /// 404
    NotFound = 404 "Not Found";
    /// 405
    MethodNotAllowed = 405 "Method Not Allowed";
    /// 406
    NotAcceptable = 406 "Not Acceptable";
    /// 408
    RequestTimeout = 408 "Request Timeout";
    /// 412
    PreconditionFailed = 412 "Precondition Failed";
    /// 413
    ContentTooLarge = 413 "Content Too Large";
    /// 414
    UriTooLong = 414 "URI Too Long";
    /// 416
    RangeNotSatisfiable = 416 "Range Not Satisfiable";
    /// 417
    ExpectationFailed = 417 "Expectation Failed";
    /// 421
    MisdirectedRequest = 421 "Misdirected Request";
    /// 429
    TooManyRequests = 429 "Too Many Requests";
    /// 431
    RequestHeaderFieldsTooLarge = 431 "Request Header Fields Too Large";
    /// 500
    InternalServerError = 500 "Internal Server Error";
    /// 501
    NotImplemented = 501 "Not Implemented";
    /// 503
    ServiceUnavailable = 503 "Service Unavailable";
    /// 505
    HttpVersionNotSupported = 505 "HTTP Version Not Supported";
}

impl Status {
    /// The three digits, e.g. 404.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Whether the request was not fulfilled (RFC 9110 sections 15.5 and 15.6).
    #[must_use]
    pub(crate) const fn is_error(self) -> bool {
        self.code() >= 400
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.code(), self.reason())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_the_code_and_the_reason_agree() {
        let status = Status::RangeNotSatisfiable;
        assert_eq!(status.code(), 416);
        assert_eq!(status.to_string(), "416 Range Not Satisfiable");
        assert_eq!(status.line(), "HTTP/1.1 416 Range Not Satisfiable\r\n");
    }
}
