//! Bodies are skipped exactly, however they arrive.

use fastrand::Rng;
use linerate_http::*;

const LIMIT_BYTES: u64 = 1 << 20;
const NEXT_REQUEST: &[u8] = b"GET /next HTTP/1.1\r\n";

/// Feeds `stream` in pieces that end at `cuts`; returns how many bytes belonged to the body.
fn drain(framing: BodyFraming, stream: &[u8], cuts: &[usize]) -> Result<usize, RequestError> {
    let mut drain = BodyDrain::new(framing, LIMIT_BYTES);
    let mut position = 0;
    for end in cuts.iter().copied().chain([stream.len()]) {
        let drained = drain.feed(&stream[position..end])?;
        position += drained.consumed;
        assert_eq!(drained.done, drain.is_done());
        if drained.done {
            return Ok(position);
        }
        assert_eq!(position, end, "without the end every byte belongs to the body");
    }
    Ok(usize::MAX)
}

#[test]
fn chunked_bodies_end_where_they_end_at_every_split() {
    let body = [
        &b"5\r\nGET /\r\n"[..],
        b"11;name=value;q=\"a;b\"\r\n0\r\n\r\nGET / HTTP/1\r\n",
        b"A \t ;x\r\n0123456789\r\n",
        b"00\r\nTrailer: GET / HTTP/1.1\r\nB:\r\n\r\n",
    ]
    .concat();
    let stream = [&body[..], NEXT_REQUEST].concat();
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            assert_eq!(
                drain(BodyFraming::Chunked, &stream, &[first, second]),
                Ok(body.len()),
                "{first} {second}"
            );
        }
    }
    let every_byte: Vec<usize> = (0..stream.len()).collect();
    assert_eq!(drain(BodyFraming::Chunked, &stream, &every_byte), Ok(body.len()));
}

#[test]
fn bodies_of_known_length_end_where_they_end_at_every_split() {
    let body = b"GET / HTTP/1.1\r\n\r\n";
    let stream = [&body[..], NEXT_REQUEST].concat();
    for cut in 0..=stream.len() {
        assert_eq!(drain(BodyFraming::Length(body.len() as u64), &stream, &[cut]), Ok(body.len()), "{cut}");
    }
    assert_eq!(drain(BodyFraming::None, &stream, &[]), Ok(0));
    assert_eq!(drain(BodyFraming::Length(0), &stream, &[]), Ok(0));
}

#[test]
fn incomplete_bodies_are_not_done() {
    for body in ["", "5", "5\r", "5\r\n", "5\r\nabcde", "5\r\nabcde\r\n", "0\r\n", "0\r\n\r", "0\r\nA: b\r\n"]
    {
        assert_eq!(drain(BodyFraming::Chunked, body.as_bytes(), &[]), Ok(usize::MAX), "{body:?}");
    }
    assert_eq!(drain(BodyFraming::Length(5), b"1234", &[]), Ok(usize::MAX));
}

#[test]
fn malformed_chunks_are_refused_for_good() {
    for body in [
        "\r\n",
        "x",
        "-1\r\n",
        "0x5\r\n",
        " 5\r\n",
        "5 \r\n",
        "5\n",
        "5\r5",
        ";a\r\n",
        "5\r\nabcdef",
        "5\r\nabcde\n",
        "5\r\nabcde\rX",
        "5;a\nb",
        "5;a\0",
        "5;a\r\r\n",
        "5 5\r\n",
        "11111111111111111\r\n",
        "0\r\n A: b\r\n",
        "0\r\nA: b\n",
        "0\r\n\n",
        "0\r\n\rX",
        "0\r\nA\x7f",
        "0\r\nA: b\rX",
    ] {
        let mut drain = BodyDrain::new(BodyFraming::Chunked, LIMIT_BYTES);
        assert_eq!(drain.feed(body.as_bytes()), Err(RequestError::Chunk), "{body:?}");
        assert_eq!(drain.feed(b"0\r\n\r\n"), Err(RequestError::Chunk), "{body:?}");
        assert_eq!(drain.feed(b""), Err(RequestError::Chunk), "{body:?}");
        assert!(!drain.is_done());
    }
}

#[test]
fn what_is_skipped_is_bounded() {
    let mut drain = BodyDrain::new(BodyFraming::Length(11), 10);
    assert_eq!(drain.feed(b""), Err(RequestError::BodyTooLarge));
    let mut drain = BodyDrain::new(BodyFraming::Length(10), 10);
    assert_eq!(drain.feed(b"0123456789x"), Ok(Drained { consumed: 10, done: true }));

    let chunk = b"1\r\na\r\n";
    let mut drain = BodyDrain::new(BodyFraming::Chunked, 100 * chunk.len() as u64);
    for _ in 0..100 {
        assert_eq!(drain.feed(chunk), Ok(Drained { consumed: chunk.len(), done: false }));
    }
    assert_eq!(drain.feed(chunk), Err(RequestError::BodyTooLarge));
    assert_eq!(RequestError::BodyTooLarge.status(), Status::ContentTooLarge);

    let mut drain = BodyDrain::new(BodyFraming::Chunked, 1 << 40);
    assert_eq!(drain.feed(b"FFFFFFFFFFFFFFFF\r\n").unwrap().consumed, 18);

    for beginning in ["5;", "5 ", "0\r\nA"] {
        let mut drain = BodyDrain::new(BodyFraming::Chunked, LIMIT_BYTES);
        let _begun = drain.feed(beginning.as_bytes()).unwrap();
        let blanks = vec![b' '; FRAMING_LIMIT_BYTES as usize];
        assert_eq!(drain.feed(&blanks), Err(RequestError::ChunkFramingTooLarge), "{beginning:?}");
    }
}

#[test]
fn random_bodies_end_where_they_end_in_random_pieces() {
    for seed in 0..500 {
        let mut seeded = Rng::with_seed(seed);
        let mut body = Vec::new();
        for _ in 0..seeded.usize(..8) {
            let size = 1 + seeded.usize(..300);
            let line = match seeded.usize(..4) {
                0 => format!("{size:x}\r\n"),
                1 => format!("{size:X};a=b\r\n"),
                2 => format!("{size:08x} ;a\r\n"),
                _ => format!("{size:x};\r\n"),
            };
            body.extend_from_slice(line.as_bytes());
            body.extend((0..size).map(|_| b"\r\n0;GET"[seeded.usize(..7)]));
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\n");
        for _ in 0..seeded.usize(..3) {
            body.extend_from_slice(b"X-Trailer: 0\r\n");
        }
        body.extend_from_slice(b"\r\n");
        let stream = [&body[..], NEXT_REQUEST].concat();
        let mut cuts: Vec<usize> = (0..seeded.usize(..20)).map(|_| seeded.usize(..stream.len())).collect();
        cuts.sort_unstable();
        assert_eq!(drain(BodyFraming::Chunked, &stream, &cuts), Ok(body.len()), "seed {seed}");

        // Damaged in one place: however it is split, the outcome is the same.
        let mut damaged = stream.clone();
        let place = seeded.usize(..body.len());
        damaged[place] = seeded.u8(..);
        let whole = drain(BodyFraming::Chunked, &damaged, &[]);
        assert_eq!(drain(BodyFraming::Chunked, &damaged, &cuts), whole, "seed {seed}");
    }
}
