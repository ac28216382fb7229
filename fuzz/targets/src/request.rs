//! Requests, from bytes to the response that they ask for: where a request ends does not depend on what follows, and no
//! byte of it reaches the head of the response.

use crate::{Verdict, body, path, range};
use linerate_http::{
    Body, Coding, ImfFixdate, MediaType, Method, Representation, Request, RequestLimits, Responder,
    ResponsePlan, Validators, decode_path, parse_request,
};

const LIMITS: RequestLimits = RequestLimits { head_bytes: 2048, header_count: 24, request_line_bytes: 512 };

const LENGTH_BYTES: u64 = 10_000;

/// What a client sends in the clear, or under TLS after the handshake: a request, and whatever comes after it.
///
/// # Panics
/// If the end of the head is uncertain, or the response is not what its own head says.
pub fn request(data: &[u8]) -> Verdict {
    let (request, head_bytes) = match parse_request(data, &LIMITS) {
        Err(_) => return Verdict::Refused,
        Ok(None) => {
            assert!(data.len() < LIMITS.head_bytes, "a full buffer must come to an end");
            return Verdict::Refused;
        }
        Ok(Some(parsed)) => parsed,
    };
    assert!(head_bytes <= LIMITS.head_bytes && data[..head_bytes].ends_with(b"\r\n\r\n"));
    let alone = parse_request(&data[..head_bytes], &LIMITS);
    assert!(matches!(alone, Ok(Some((_, alone_bytes))) if alone_bytes == head_bytes), "{alone:?}");
    let cut = parse_request(&data[..head_bytes - 1], &LIMITS);
    assert!(matches!(cut, Ok(None)), "complete before its end: {cut:?}");

    assert!(request.target.bytes().all(|byte| !byte.is_ascii_control() && byte != b' '));
    if let Ok(decoded) = decode_path(request.path) {
        path::check(&decoded);
    }
    assert!(request.accepted_codings().iter().count() <= Coding::ALL.len());
    body::drained(request.body, &data[head_bytes..]);
    if matches!(request.method, Method::Get | Method::Head) {
        answer(&request);
    }
    Verdict::Taken
}

/// Makes the response for a file of [`LENGTH_BYTES`] and holds the head against the plan.
fn answer(request: &Request<'_>) {
    let now = ImfFixdate::at(1_800_000_000);
    let representation = Representation {
        length_bytes: LENGTH_BYTES,
        validators: Validators { etag: Some("\"a1\""), modified_unix_s: Some(784_111_777) },
        media_type: MediaType::OCTET_STREAM,
        content_coding: None,
        varies_by_coding: true,
    };
    let mut buffer = Vec::new();
    let plan = Responder::for_request(request, &now, Some("linerate"), true).file(
        request,
        &representation,
        &mut buffer,
    );

    let end = buffer.windows(4).position(|window| window == b"\r\n\r\n").expect("the head ends") + 4;
    let (head, content) = buffer.split_at(end);
    let head = std::str::from_utf8(head).expect("the head is text");
    assert!(head.starts_with("HTTP/1.1 "), "{head}");
    for line in head.split("\r\n") {
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
    }

    let planned_bytes = content.len() as u64 + remaining_bytes(&plan);
    assert_eq!(planned_bytes, plan.content_bytes, "{head}");
    if request.method == Method::Head {
        assert_eq!(plan.content_bytes, 0);
    } else if let Some(length) = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")) {
        assert_eq!(length.parse(), Ok(plan.content_bytes), "{head}");
    } else {
        assert_eq!(plan.content_bytes, 0, "content without a length: {head}");
    }
}

/// Bytes that are still to be sent after the buffer.
fn remaining_bytes(plan: &ResponsePlan) -> u64 {
    match &plan.body {
        Body::None => 0,
        Body::Range(part) => {
            range::check(&[*part], LENGTH_BYTES);
            part.length
        }
        Body::Multipart(multipart) => {
            let ranges: Vec<_> = multipart.parts.iter().map(|part| part.range).collect();
            range::check(&ranges, LENGTH_BYTES);
            let parts = multipart.parts.iter().map(|part| part.preamble.len() as u64 + part.range.length);
            parts.sum::<u64>() + multipart.closing.len() as u64
        }
    }
}
