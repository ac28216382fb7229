//! From a request and a representation to a response: conditions, then ranges, then the head (RFC 9110
//! section 13.2.2).

use crate::coding::Coding;
use crate::conditional::{Precondition, Validators};
use crate::date::ImfFixdate;
use crate::media_type::MediaType;
use crate::range::{ByteRange, Selection, select_ranges};
use crate::request::{Method, Request};
use crate::response::{Body, Multipart, Part, Responder, ResponsePlan, field, number_field, push_decimal};
use crate::status::Status;
use std::hash::{BuildHasher, RandomState};

/// What was chosen to answer with: a file, one of its precompressed siblings, or a page made for it.
#[derive(Debug, Clone, Copy)]
pub struct Representation<'a> {
    /// The length of what is sent (of the sibling, where one was chosen).
    pub length_bytes: u64,
    /// Entity tag, quotes included, and time of change. Siblings in different codings need different strong
    /// tags.
    pub validators: Validators<'a>,
    /// The type of the file itself, not of its coding.
    pub media_type: MediaType<'a>,
    /// The coding of the sibling that was chosen.
    pub content_coding: Option<Coding>,
    /// The choice depended on Accept-Encoding: caches are told by Vary.
    pub varies_by_coding: bool,
}

impl Responder<'_> {
    /// Answers a GET or HEAD with `representation`: 200, 206, 304, 412 or 416.
    ///
    /// Appends the head to `head`, without allocation for 200, 304 and a 206 with one range when `head` has
    /// room. Range counts for GET only (RFC 9110 section 14.2).
    pub fn file(
        &self,
        request: &Request<'_>,
        representation: &Representation<'_>,
        head: &mut Vec<u8>,
    ) -> ResponsePlan {
        let length_bytes = representation.length_bytes;
        match request.conditions.evaluate(&representation.validators) {
            Precondition::NotModified => return self.not_modified(representation, head),
            Precondition::Failed => {
                let explanation = "The file is not the version that was asked for.";
                return self.error(Status::PreconditionFailed, explanation, head);
            }
            Precondition::Proceed => {}
        }
        match self.selection(request, representation) {
            Selection::Whole => self.whole(representation, head),
            Selection::Single(range) => self.single_range(representation, range, head),
            Selection::Multiple(ranges) => self.multipart(representation, &ranges, head),
            Selection::Unsatisfiable => self.range_not_satisfiable(length_bytes, head),
        }
    }

    fn selection(&self, request: &Request<'_>, representation: &Representation<'_>) -> Selection {
        match request.range {
            Some(value)
                if request.method == Method::Get
                    && request.conditions.allow_range(&representation.validators, self.now.unix_s()) =>
            {
                select_ranges(value, representation.length_bytes, self.ranges_limit)
            }
            _ => Selection::Whole,
        }
    }

    fn whole(&self, representation: &Representation<'_>, head: &mut Vec<u8>) -> ResponsePlan {
        self.begin(Status::Ok, head);
        write_content_type(representation.media_type, head);
        number_field(head, "Content-Length: ", representation.length_bytes);
        self.describe(Status::Ok, representation, head);
        let range = ByteRange { start: 0, length: representation.length_bytes };
        let body = if range.length == 0 { Body::None } else { Body::Range(range) };
        self.plan(Status::Ok, range.length, body)
    }

    fn single_range(
        &self,
        representation: &Representation<'_>,
        range: ByteRange,
        head: &mut Vec<u8>,
    ) -> ResponsePlan {
        self.begin(Status::PartialContent, head);
        write_content_type(representation.media_type, head);
        number_field(head, "Content-Length: ", range.length);
        write_content_range(range, representation.length_bytes, head);
        self.describe(Status::PartialContent, representation, head);
        self.plan(Status::PartialContent, range.length, Body::Range(range))
    }

    fn multipart(
        &self,
        representation: &Representation<'_>,
        ranges: &[ByteRange],
        head: &mut Vec<u8>,
    ) -> ResponsePlan {
        let boundary = boundary(representation, self.now);
        let parts: Vec<Part> = ranges
            .iter()
            .enumerate()
            .map(|(index, range)| part(representation, *range, &boundary, index == 0))
            .collect();
        let closing = format!("\r\n--{boundary}--\r\n").into_bytes();
        let parts_bytes: u64 = parts.iter().map(|part| part.preamble.len() as u64 + part.range.length).sum();
        let content_bytes = parts_bytes + closing.len() as u64;

        self.begin(Status::PartialContent, head);
        head.extend_from_slice(b"Content-Type: multipart/byteranges; boundary=");
        head.extend_from_slice(boundary.as_bytes());
        head.extend_from_slice(b"\r\n");
        number_field(head, "Content-Length: ", content_bytes);
        self.describe(Status::PartialContent, representation, head);
        self.plan(Status::PartialContent, content_bytes, Body::Multipart(Multipart { parts, closing }))
    }

    /// RFC 9110 section 15.4.5: what a cache needs to refresh what it has, and no more.
    fn not_modified(&self, representation: &Representation<'_>, head: &mut Vec<u8>) -> ResponsePlan {
        self.begin(Status::NotModified, head);
        self.write_validators(representation, head);
        self.finish(Status::NotModified, head);
        ResponsePlan { status: Status::NotModified, content_bytes: 0, body: Body::None }
    }

    /// The lines that 200 and 206 have in common, to the end of the head.
    fn describe(&self, status: Status, representation: &Representation<'_>, head: &mut Vec<u8>) {
        self.write_validators(representation, head);
        if let Some(coding) = representation.content_coding {
            field(head, "Content-Encoding: ", coding.token().as_bytes());
        }
        head.extend_from_slice(b"Accept-Ranges: bytes\r\n");
        self.finish(status, head);
    }

    fn write_validators(&self, representation: &Representation<'_>, head: &mut Vec<u8>) {
        if let Some(modified_unix_s) = representation.validators.modified_unix_s {
            // RFC 9110 section 8.8.2.1: never later than Date.
            let modified = ImfFixdate::at(modified_unix_s.min(self.now.unix_s()));
            field(head, "Last-Modified: ", modified.as_bytes());
        }
        if let Some(etag) = representation.validators.etag {
            field(head, "ETag: ", etag.as_bytes());
        }
        if representation.varies_by_coding {
            head.extend_from_slice(b"Vary: Accept-Encoding\r\n");
        }
    }

    fn plan(&self, status: Status, content_bytes: u64, body: Body) -> ResponsePlan {
        if self.head_only {
            return ResponsePlan { status, content_bytes: 0, body: Body::None };
        }
        ResponsePlan { status, content_bytes, body }
    }
}

fn write_content_type(media_type: MediaType<'_>, head: &mut Vec<u8>) {
    head.extend_from_slice(b"Content-Type: ");
    media_type.write(head);
    head.extend_from_slice(b"\r\n");
}

/// `range` is not empty, so that it has a last byte.
fn write_content_range(range: ByteRange, length_bytes: u64, head: &mut Vec<u8>) {
    head.extend_from_slice(b"Content-Range: bytes ");
    push_decimal(head, range.start);
    head.push(b'-');
    push_decimal(head, range.end() - 1);
    head.push(b'/');
    push_decimal(head, length_bytes);
    head.extend_from_slice(b"\r\n");
}

fn part(representation: &Representation<'_>, range: ByteRange, boundary: &str, is_first: bool) -> Part {
    let mut preamble = Vec::with_capacity(192);
    if !is_first {
        preamble.extend_from_slice(b"\r\n");
    }
    preamble.extend_from_slice(b"--");
    preamble.extend_from_slice(boundary.as_bytes());
    preamble.extend_from_slice(b"\r\n");
    write_content_type(representation.media_type, &mut preamble);
    write_content_range(range, representation.length_bytes, &mut preamble);
    preamble.extend_from_slice(b"\r\n");
    Part { preamble, range }
}

/// A boundary that nobody can have put into a file beforehand: hashed with keys that differ by process and by
/// call.
fn boundary(representation: &Representation<'_>, now: &ImfFixdate) -> String {
    let subject = (representation.length_bytes, representation.validators.etag, now.unix_s());
    let [first, second] = [RandomState::new().hash_one(subject), RandomState::new().hash_one(subject)];
    format!("{first:016x}{second:016x}")
}
