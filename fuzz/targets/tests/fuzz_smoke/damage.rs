//! Seeded damage, so that every failure can be repeated from its number.

use fastrand::Rng;

/// A seed, damaged in one to four places.
pub(crate) fn damaged(seeds: &[Vec<u8>], seeded: &mut Rng) -> Vec<u8> {
    let mut bytes = seeds[seeded.usize(..seeds.len())].clone();
    for _ in 0..=seeded.usize(..4) {
        let place = seeded.usize(..bytes.len() + 1);
        match seeded.usize(..7) {
            0 if place < bytes.len() => bytes[place] ^= 1 << seeded.usize(..8),
            1 if place < bytes.len() => bytes[place] = seeded.u8(..),
            2 if place < bytes.len() => bytes[place] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][seeded.usize(..6)],
            3 => bytes.truncate(place),
            4 => drop(bytes.drain(place..(place + seeded.usize(..16)).min(bytes.len()))),
            5 => {
                // A piece of this or another seed: also how a thing comes to stand twice.
                let other = &seeds[seeded.usize(..seeds.len())];
                let start = seeded.usize(..other.len() + 1);
                let end = (start + seeded.usize(..64)).min(other.len());
                bytes.splice(place..place, other[start..end].iter().copied());
            }
            _ => {
                let token = TOKENS[seeded.usize(..TOKENS.len())];
                bytes.splice(place..place, token.iter().copied());
            }
        }
    }
    bytes
}

/// What means something to one target or another.
const TOKENS: [&[u8]; 28] = [
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"\0",
    b" ",
    b"\t",
    b"/",
    b"..",
    b"%2e%2e",
    b"%2F",
    b"%00",
    b"%",
    b"-",
    b",",
    b"bytes=",
    b"18446744073709551615",
    b"Content-Length: 1\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Range: bytes=-1,0-0,5-9\r\n",
    b"If-Range: \"a1\"\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"\"",
    b"[[site]]\n",
    b"\x1b[2J",
    b"\x16\x03\x01",
    b"\x17\x03\x03\x00\x10",
    b"\xc3\xa4",
];
