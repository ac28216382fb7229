//! Byte ranges (RFC 9110 section 14).

use crate::support::{Fixture, Transport, add_at_rest, parse_multipart};
use linerate_end_to_end::Site;

/// One that is mapped, one that is read, one of a single record.
const LENGTHS: [(&str, usize); 3] = [("mapped.mp4", 3_000_001), ("read.mp4", 300_007), ("small.mp4", 1000)];

fn fixture() -> (Fixture, Vec<(&'static str, Vec<u8>)>) {
    let site = Site::empty();
    let files = LENGTHS.map(|(name, length)| (name, add_at_rest(&site, name, length)));
    (Fixture::start(site), files.into())
}

#[test]
fn one_range_is_a_206_with_exactly_these_bytes() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (name, bytes) in &files {
            let last = bytes.len() - 1;
            let ranges = [
                ("bytes=0-0".to_owned(), 0, 0),
                ("bytes=1-17".into(), 1, 17),
                (format!("bytes=0-{last}"), 0, last),
                (format!("bytes={last}-"), last, last),
                ("bytes=7-".into(), 7, last),
                ("bytes=-1".into(), last, last),
                ("bytes=-999".into(), last - 998, last),
                (format!("bytes=-{}", bytes.len() * 2), 0, last),
                (format!("bytes=5-{}", u64::MAX), 5, last),
                ("BYTES= 3-4 ".into(), 3, 4),
                ("bytes=0-9,5-20".into(), 0, 20),
            ];
            for (value, first, last) in ranges {
                let response = connection.get(&format!("/{name}"), &format!("Range: {value}\r\n"));
                response.assert_is(206, &bytes[first..=last]);
                assert_eq!(
                    response.expect("Content-Range"),
                    format!("bytes {first}-{last}/{}", bytes.len()),
                    "{transport:?} {name} {value}"
                );
                assert_eq!(response.expect("Content-Type"), "video/mp4");
            }
        }
    }
}

#[test]
fn ranges_at_the_edges_of_records_and_batches_are_exact() {
    let (fixture, files) = fixture();
    let (name, bytes) = &files[0];
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for edge in [16_384, 131_072, 524_288, 1_048_576, 2_097_152] {
            for (first, last) in
                [(edge - 1, edge), (edge, edge), (0, edge - 1), (0, edge), (edge - 3, edge + 524_288)]
            {
                let range = format!("Range: bytes={first}-{last}\r\n");
                connection.get(&format!("/{name}"), &range).assert_is(206, &bytes[first..=last]);
            }
        }
    }
}

#[test]
fn several_ranges_come_as_parts_in_the_order_asked_for() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (name, bytes) in &files {
            let (length, last) = (bytes.len(), bytes.len() - 1);
            let range = "Range: bytes=900-999, 0-9 ,,100-100,-1\r\n";
            // The last byte of the smallest file touches the first range and is joined to it.
            let expected = if length == 1000 {
                vec![(900, 999), (0, 9), (100, 100)]
            } else {
                vec![(900, 999), (0, 9), (100, 100), (last, last)]
            };
            let response = connection.get(&format!("/{name}"), range);
            assert!(response.status == 206 && response.complete, "{}", response.head);
            assert_eq!(response.header("Content-Range"), None);
            let parts = parse_multipart(&response);
            assert_eq!(parts.len(), expected.len(), "{transport:?} {name}");
            for (part, (first, last)) in parts.iter().zip(expected) {
                assert_eq!(part.range, format!("bytes {first}-{last}/{length}"));
                assert_eq!(part.media_type, "video/mp4");
                assert!(part.bytes == bytes[first..=last], "{transport:?} {name} {first}-{last}");
            }
        }
        let (name, bytes) = &files[0];
        let response = connection.get(&format!("/{name}"), "Range: bytes=2000000-2999999,3-1500000\r\n");
        let parts = parse_multipart(&response);
        assert!(parts[0].bytes == bytes[2_000_000..3_000_000] && parts[1].bytes == bytes[3..=1_500_000]);
    }
}

#[test]
fn what_lies_beyond_the_file_is_a_416_that_tells_the_length() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (name, bytes) in &files {
            let just_beyond = format!("{}-", bytes.len());
            for value in [&just_beyond, "99999999-", "-0", "8888888-9999999,7777777-"] {
                let response = connection.get(&format!("/{name}"), &format!("Range: bytes={value}\r\n"));
                assert_eq!(response.status, 416, "{value}");
                assert_eq!(response.expect("Content-Range"), format!("bytes */{}", bytes.len()));
            }
            // The connection goes on.
            connection.get(&format!("/{name}"), "").assert_is(200, bytes);
        }
    }
}

#[test]
fn ranges_that_make_no_sense_are_ignored() {
    let (fixture, files) = fixture();
    let (name, bytes) = &files[2];
    let many = (0..40).map(|index| format!("{0}-{0}", index * 2)).collect::<Vec<_>>().join(",");
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for value in
            ["bytes=", "bytes=5", "bytes=9-3", "bytes=a-b", "lines=0-4", "bytes=0x1-2", "bytes=--1", &many]
        {
            let response = connection.get(&format!("/{name}"), &format!("Range: {value}\r\n"));
            response.assert_is(200, bytes);
            assert_eq!(response.expect("Accept-Ranges"), "bytes");
        }
        connection.get(&format!("/{name}"), "Range: bytes=0-1\r\nRange: bytes=4-5\r\n").assert_is(200, bytes);
    }
}

#[test]
fn a_range_of_an_empty_file_is_the_empty_file() {
    let site = Site::empty();
    site.add("empty.bin", b"");
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for range in ["Range: bytes=0-\r\n", "Range: bytes=-5\r\n", "Range: bytes=0-0,2-3\r\n", ""] {
            connection.get("/empty.bin", range).assert_is(200, b"");
        }
    }
}

#[test]
fn head_knows_no_ranges() {
    let (fixture, files) = fixture();
    let (name, bytes) = &files[1];
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        connection.send(format!("HEAD /{name} HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-4\r\n\r\n"));
        let response = connection.response_to(true);
        assert_eq!((response.status, response.content_length()), (200, Some(bytes.len())));
        connection.get(&format!("/{name}"), "").assert_is(200, bytes);
    }
}
