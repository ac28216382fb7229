//! What one request costs this crate: parse, decode the path, find the media type, write the head.
//!
//! `cargo run --release -p linerate-http --example request_cost`

use linerate_http::*;
use std::hint::black_box;
use std::time::Instant;

const WRK: &str = "GET /10k.bin HTTP/1.1\r\nHost: localhost:8443\r\n\r\n";

const CURL: &str =
    "GET /films/a.mp4 HTTP/1.1\r\nHost: localhost:8443\r\nUser-Agent: curl/8.14.1\r\nAccept: */*\r\n\r\n";

const BROWSER: &str = "GET /films/A%20film.mp4 HTTP/1.1\r\nHost: media.example\r\nConnection: keep-alive\r\n\
    sec-ch-ua: \"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\"\r\nsec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: \"Linux\"\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n\
    Accept-Encoding: identity;q=1, *;q=0\r\nAccept: */*\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: no-cors\r\n\
    Sec-Fetch-Dest: video\r\nReferer: https://media.example/films/\r\nAccept-Language: en-GB,en;q=0.9,de;q=0.8\r\n\
    Range: bytes=1048576-\r\nIf-Range: \"68ff0000-40000000\"\r\n\r\n";

const REVALIDATION: &str = "GET /style.css HTTP/1.1\r\nHost: media.example\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    If-None-Match: \"68ff0000-40000000\"\r\nIf-Modified-Since: Mon, 27 Oct 2025 05:32:32 GMT\r\n\r\n";

const ROUNDS: u32 = 7;
const REQUESTS_PER_ROUND: u32 = 200_000;

fn answer(request: &[u8], types: &MediaTypes, now: &ImfFixdate, head: &mut Vec<u8>) -> Option<ResponsePlan> {
    let (request, _head_bytes) = parse_request(request, &RequestLimits::default()).ok()??;
    let path = decode_path(request.path).ok()?;
    black_box(request.accepted_codings());
    let representation = Representation {
        length_bytes: 1 << 30,
        validators: Validators { etag: Some("\"68ff0000-40000000\""), modified_unix_s: Some(1_761_543_152) },
        media_type: types.of(&path.relative),
        content_coding: None,
        varies_by_coding: false,
    };
    head.clear();
    Some(Responder::for_request(&request, now, Some("linerate"), true).file(&request, &representation, head))
}

fn main() {
    let types = MediaTypes::default();
    let now = ImfFixdate::at(1_763_700_000);
    let mut head = Vec::with_capacity(1024);
    println!("best of {ROUNDS} rounds, {REQUESTS_PER_ROUND} requests each");
    for (name, request) in
        [("wrk", WRK), ("curl", CURL), ("browser, 206", BROWSER), ("browser, 304", REVALIDATION)]
    {
        let mut best_ns = u128::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for _ in 0..REQUESTS_PER_ROUND {
                black_box(answer(black_box(request.as_bytes()), &types, &now, &mut head));
            }
            best_ns = best_ns.min(start.elapsed().as_nanos() / u128::from(REQUESTS_PER_ROUND));
        }
        let status = head.get(9..12).map(String::from_utf8_lossy).unwrap_or_default();
        println!(
            "{name:>14}: {best_ns:>5} ns a request, {:>4} bytes in, {:>4} out, {status}",
            request.len(),
            head.len()
        );
    }
}
