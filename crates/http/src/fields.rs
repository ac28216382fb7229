//! One pass over the header lines: picks out the fields that matter to a file server, decides the body's
//! framing.

use crate::body::BodyFraming;
use crate::error::RequestError;
use crate::field_lines::{FieldLines, list_elements};
use crate::version::Version;

/// The fields that are looked at.
#[derive(Clone, Copy)]
enum Field {
    Accept,
    AcceptEncoding,
    Connection,
    ContentLength,
    Expect,
    Host,
    IfMatch,
    IfModifiedSince,
    IfNoneMatch,
    IfRange,
    IfUnmodifiedSince,
    Range,
    Referer,
    TransferEncoding,
    UserAgent,
}

impl Field {
    /// By length first, so that most of the lines of a browser cost one comparison of numbers.
    fn named(name: &str) -> Option<Self> {
        let candidates: &[(&str, Self)] = match name.len() {
            4 => &[("host", Self::Host)],
            5 => &[("range", Self::Range)],
            6 => &[("accept", Self::Accept), ("expect", Self::Expect)],
            7 => &[("referer", Self::Referer)],
            8 => &[("if-match", Self::IfMatch), ("if-range", Self::IfRange)],
            10 => &[("connection", Self::Connection), ("user-agent", Self::UserAgent)],
            13 => &[("if-none-match", Self::IfNoneMatch)],
            14 => &[("content-length", Self::ContentLength)],
            15 => &[("accept-encoding", Self::AcceptEncoding)],
            17 => {
                &[("if-modified-since", Self::IfModifiedSince), ("transfer-encoding", Self::TransferEncoding)]
            }
            19 => &[("if-unmodified-since", Self::IfUnmodifiedSince)],
            _ => &[],
        };
        candidates.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, field)| *field)
    }
}

/// A field that may stand once. What a repetition means differs by field, so it is kept apart from absence.
#[derive(Clone, Copy, Default)]
pub(crate) enum Single<'a> {
    #[default]
    Absent,
    Once(&'a [u8]),
    Repeated,
}

impl<'a> Single<'a> {
    fn put(&mut self, value: &'a [u8]) {
        *self = match self {
            Self::Absent => Self::Once(value),
            _ => Self::Repeated,
        };
    }

    /// The value, when it stands exactly once.
    pub(crate) fn once(self) -> Option<&'a [u8]> {
        match self {
            Self::Once(value) => Some(value),
            Self::Absent | Self::Repeated => None,
        }
    }
}

/// What Transfer-Encoding said, over all of its lines.
#[derive(Clone, Copy, Default)]
struct TransferEncoding {
    is_present: bool,
    chunked_count: u32,
    chunked_is_last: bool,
    has_other: bool,
    has_empty: bool,
}

impl TransferEncoding {
    fn line(&mut self, value: &[u8]) {
        self.is_present = true;
        for coding in list_elements(value) {
            self.chunked_is_last = coding.eq_ignore_ascii_case(b"chunked");
            self.chunked_count += u32::from(self.chunked_is_last);
            self.has_empty |= coding.is_empty();
            self.has_other |= !self.chunked_is_last;
        }
    }

    /// RFC 9112 section 6.3. Empty list elements, which RFC 9110 section 5.6.1.2 would have ignored, are
    /// refused: no ordinary client sends them here, and implementations that disagree on them can be played
    /// against each other.
    fn check(&self) -> Result<(), RequestError> {
        if self.has_empty || !self.chunked_is_last || self.chunked_count != 1 {
            return Err(RequestError::TransferEncoding);
        }
        if self.has_other {
            return Err(RequestError::TransferCodingUnknown);
        }
        Ok(())
    }
}

/// The fields of one request, as they stand in the head.
#[derive(Default)]
pub(crate) struct Fields<'a> {
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) range: Single<'a>,
    pub(crate) if_range: Single<'a>,
    pub(crate) if_modified_since: Single<'a>,
    pub(crate) if_unmodified_since: Single<'a>,
    pub(crate) if_match: FieldLines<'a>,
    pub(crate) if_none_match: FieldLines<'a>,
    pub(crate) accept: Option<&'a [u8]>,
    pub(crate) accept_encoding: FieldLines<'a>,
    pub(crate) user_agent: Option<&'a [u8]>,
    pub(crate) referer: Option<&'a [u8]>,
    pub(crate) expects_continue: bool,
    has_other_expectation: bool,
    says_close: bool,
    says_keep_alive: bool,
    content_length: Option<u64>,
    transfer_encoding: TransferEncoding,
}

impl<'a> Fields<'a> {
    pub(crate) fn gather(headers: &[httparse::Header<'a>]) -> Result<Self, RequestError> {
        let mut fields = Self::default();
        for header in headers {
            if let Some(field) = Field::named(header.name) {
                fields.take(field, header.value)?;
            }
        }
        Ok(fields)
    }

    fn take(&mut self, field: Field, value: &'a [u8]) -> Result<(), RequestError> {
        match field {
            Field::Host if self.host.is_some() => return Err(RequestError::HostRepeated),
            Field::Host => self.host = Some(value),
            Field::ContentLength if self.content_length.is_some() => {
                return Err(RequestError::ContentLengthRepeated);
            }
            Field::ContentLength => self.content_length = Some(parse_content_length(value)?),
            Field::TransferEncoding => self.transfer_encoding.line(value),
            Field::Connection => self.connection(value),
            Field::Expect => self.expect(value),
            Field::Range => self.range.put(value),
            Field::IfRange => self.if_range.put(value),
            Field::IfModifiedSince => self.if_modified_since.put(value),
            Field::IfUnmodifiedSince => self.if_unmodified_since.put(value),
            Field::IfMatch => self.if_match.push(value)?,
            Field::IfNoneMatch => self.if_none_match.push(value)?,
            // It only chooses between the formats of a page that the server makes: the first line will do.
            Field::Accept => self.accept = self.accept.or(Some(value)),
            Field::AcceptEncoding => self.accept_encoding.push(value)?,
            // Only for the log, where the first is as good as any.
            Field::UserAgent => self.user_agent = self.user_agent.or(Some(value)),
            Field::Referer => self.referer = self.referer.or(Some(value)),
        }
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in list_elements(value) {
            self.says_close |= option.eq_ignore_ascii_case(b"close");
            self.says_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn expect(&mut self, value: &[u8]) {
        for expectation in list_elements(value) {
            if expectation.eq_ignore_ascii_case(b"100-continue") {
                self.expects_continue = true;
            } else if !expectation.is_empty() {
                self.has_other_expectation = true;
            }
        }
    }

    /// RFC 9112 section 9.3: `close` wins; 1.1 persists by default, 1.0 only when asked to.
    pub(crate) fn keep_alive(&self, version: Version) -> bool {
        !self.says_close && (version == Version::Http11 || self.says_keep_alive)
    }

    /// RFC 9110 section 10.1.1: expectations of an HTTP/1.0 client are ignored.
    pub(crate) fn expect_continue(&self, version: Version) -> Result<bool, RequestError> {
        if version == Version::Http10 {
            return Ok(false);
        }
        if self.has_other_expectation {
            return Err(RequestError::Expectation);
        }
        Ok(self.expects_continue)
    }

    /// RFC 9112 section 6.3, with every doubtful case refused.
    pub(crate) fn body_framing(&self, version: Version) -> Result<BodyFraming, RequestError> {
        if !self.transfer_encoding.is_present {
            return Ok(match self.content_length {
                None | Some(0) => BodyFraming::None,
                Some(length_bytes) => BodyFraming::Length(length_bytes),
            });
        }
        if self.content_length.is_some() {
            return Err(RequestError::TwoFramings);
        }
        if version == Version::Http10 {
            return Err(RequestError::TransferEncodingInHttp10);
        }
        self.transfer_encoding.check()?;
        Ok(BodyFraming::Chunked)
    }
}

/// `1*DIGIT` that fits into 64 bits. Signs, blanks and lists ("5, 5") are refused.
fn parse_content_length(value: &[u8]) -> Result<u64, RequestError> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(RequestError::ContentLength);
    }
    value
        .iter()
        .try_fold(0_u64, |length, digit| length.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .ok_or(RequestError::ContentLength)
}
