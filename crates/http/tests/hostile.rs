//! Seeded damage to everything that the network can reach: no panic, and promises kept whatever comes.

use fastrand::Rng;
use linerate_http::*;

const LIMITS: RequestLimits = RequestLimits { head_bytes: 512, header_count: 8, request_line_bytes: 128 };

const FRAGMENTS: [&str; 36] = [
    "GET ",
    "HEAD ",
    "POST ",
    "OPTIONS ",
    "/",
    "/a%20b",
    "*",
    "http://a/",
    " HTTP/1.1",
    " HTTP/1.0",
    " HTTP/2.0",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    "Host: a",
    "Host: [::1]:80",
    "Content-Length: 5",
    "Transfer-Encoding: ",
    "chunked",
    ", ",
    "Range: bytes=0-5",
    "If-None-Match: \"a\"",
    "If-Range: W/\"a",
    "Connection: close",
    "Expect: 100-continue",
    ":",
    " ",
    "\t",
    "\0",
    "%2F",
    "..",
    "ä",
    "0",
    "-",
    "Accept-Encoding: br;q=0.5",
];

fn sentence(seeded: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..seeded.usize(..24) {
        bytes.extend_from_slice(FRAGMENTS[seeded.usize(..FRAGMENTS.len())].as_bytes());
    }
    damage(seeded, &mut bytes);
    bytes
}

fn damage(seeded: &mut Rng, bytes: &mut [u8]) {
    for _ in 0..seeded.usize(..3) {
        if !bytes.is_empty() {
            let place = seeded.usize(..bytes.len());
            bytes[place] = seeded.u8(..);
        }
    }
}

/// A request that is mostly sound, so that the damage reaches beyond the request line.
fn damaged_request(seeded: &mut Rng) -> Vec<u8> {
    let mut request = b"GET /a/b?c HTTP/1.1\r\nHost: a\r\n".to_vec();
    for _ in 0..seeded.usize(..6) {
        let header = &FRAGMENTS[15..26];
        request.extend_from_slice(header[seeded.usize(..header.len())].as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    damage(seeded, &mut request);
    request
}

#[test]
fn requests_never_panic_and_never_depend_on_how_they_arrive() {
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..20_000 {
        let mut seeded = Rng::with_seed(seed);
        let bytes = if seed % 2 == 0 { sentence(&mut seeded) } else { damaged_request(&mut seeded) };
        let whole = parse_request(&bytes, &LIMITS);
        let in_pieces = (0..=bytes.len())
            .map(|length| parse_request(&bytes[..length], &LIMITS))
            .find(|parsed| !matches!(parsed, Ok(None)))
            .unwrap_or(Ok(None));
        match (&whole, &in_pieces) {
            (Ok(Some((one, one_bytes))), Ok(Some((other, other_bytes)))) => {
                assert_eq!((one_bytes, one.target), (other_bytes, other.target), "seed {seed}");
                assert!(*one_bytes <= LIMITS.head_bytes && bytes[..*one_bytes].ends_with(b"\r\n\r\n"));
                taken += 1;
            }
            (Err(_), Err(_)) => refused += 1,
            (Ok(None), Ok(None)) => {}
            _ => panic!("seed {seed}: whole {whole:?}, in pieces {in_pieces:?}"),
        }
    }
    assert!(taken > 1000 && refused > 1000, "the generator reaches both: {taken} {refused}");
}

#[test]
fn decoded_paths_stay_beneath_the_root() {
    let pieces = [
        "/", "a", ".", "..", "%2e", "%2E", "%2f", "%00", "%0d%0a", "%7f", "%", "%c3%a4", "%ff", "\\", "//",
        "b.c", "%25", "ü",
    ];
    let mut taken = 0;
    for seed in 0..50_000 {
        let mut seeded = Rng::with_seed(seed);
        let mut path = String::from("/");
        for _ in 0..seeded.usize(..10) {
            path.push_str(pieces[seeded.usize(..pieces.len())]);
        }
        let Ok(decoded) = decode_path(&path) else { continue };
        taken += 1;
        let relative = &decoded.relative;
        assert!(!relative.contains(&0), "{path}");
        if !relative.is_empty() {
            for segment in relative.split(|byte| *byte == b'/') {
                assert!(!matches!(segment, b"" | b"." | b".."), "{path}");
            }
        }
        let location = decoded.directory_location(None);
        let again = decode_path(&location).unwrap();
        assert_eq!((&again.relative, again.is_directory), (relative, true), "{path}");
        assert!(!location.starts_with("//"), "{path}");
    }
    assert!(taken > 1000, "{taken}");
}

/// RFC 9110's definition, byte by byte: which bytes a list of ranges selects.
fn selected_bytes(specs: &[(Option<u64>, Option<u64>)], length: u64) -> Vec<bool> {
    let is_selected = |byte: u64| {
        specs.iter().any(|spec| match *spec {
            (Some(first), last) => first <= byte && last.is_none_or(|last| byte <= last),
            (None, Some(suffix)) => byte + suffix >= length,
            (None, None) => false,
        })
    };
    (0..length).map(is_selected).collect()
}

#[test]
fn ranges_select_exactly_the_bytes_asked_for_and_each_once() {
    for seed in 0..20_000 {
        let mut seeded = Rng::with_seed(seed);
        let length = 1 + seeded.usize(..60) as u64;
        let specs: Vec<(Option<u64>, Option<u64>)> = (0..1 + seeded.usize(..6))
            .map(|_| {
                let first = seeded.usize(..70) as u64;
                match seeded.usize(..4) {
                    0 => (Some(first), None),
                    1 => (None, Some(first)),
                    _ => (Some(first), Some(first + seeded.usize(..12) as u64)),
                }
            })
            .collect();
        let text = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        let list: Vec<String> =
            specs.iter().map(|(first, last)| format!("{}-{}", text(*first), text(*last))).collect();
        let value = format!("bytes={}", list.join(", "));
        let ranges = match select_ranges(value.as_bytes(), length, DEFAULT_RANGES_LIMIT) {
            Selection::Whole => panic!("{value} is valid"),
            Selection::Unsatisfiable => vec![],
            Selection::Single(range) => vec![range],
            Selection::Multiple(ranges) => {
                assert!(ranges.len() > 1, "{value}");
                ranges
            }
        };
        let mut sent = vec![false; length as usize];
        for range in ranges {
            assert!(range.length > 0 && range.end() <= length, "{value}");
            for byte in range.start..range.end() {
                assert!(!std::mem::replace(&mut sent[byte as usize], true), "{value} repeats byte {byte}");
            }
        }
        assert_eq!(sent, selected_bytes(&specs, length), "{value} of {length}");
    }
}

#[test]
fn header_values_of_any_bytes_never_panic() {
    let seeds = [
        "bytes=0-5,-7,9-",
        "\"a\", W/\"b\", *",
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "br;q=0.5, *;q=0",
        "a.TAR.gz",
    ];
    let types = MediaTypes::default();
    for seed in 0..20_000 {
        let mut seeded = Rng::with_seed(seed);
        let mut value = seeds[seeded.usize(..seeds.len())].as_bytes().to_vec();
        damage(&mut seeded, &mut value);
        damage(&mut seeded, &mut value);
        let length = seeded.u64(..) >> seeded.usize(..64);
        if let Selection::Single(range) = select_ranges(&value, length, RANGES_CAP) {
            assert!(range.length > 0 && range.end() <= length);
        }
        let lines = FieldLines::from(value.as_slice());
        let conditions = Conditions {
            if_match: lines,
            if_none_match: lines,
            if_modified_since: Some(&value),
            if_unmodified_since: Some(&value),
            if_range: Some(&value),
        };
        let validators = Validators { etag: Some("\"a\""), modified_unix_s: Some(784_111_777) };
        if conditions.evaluate(&validators) == Precondition::Proceed {
            assert!(value.contains(&b'"') || value.contains(&b'*'), "If-Match held without a tag: {value:?}");
        }
        let _allowed = conditions.allow_range(&validators, 784_111_777 + 3600);
        assert!(AcceptedCodings::parse([value.as_slice()]).iter().count() <= 3);
        assert!(!types.of(&value).name.is_empty());
    }
}
