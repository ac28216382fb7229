//! Seeded damage, so that every failure can be repeated from its number.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// A seed, damaged in one to four places.
pub(crate) fn damaged(seeds: &[Vec<u8>], seeded: &mut Seeded) -> Vec<u8> {
    let mut bytes = seeds[seeded.below(seeds.len())].clone();
    for _ in 0..=seeded.below(4) {
        let place = seeded.below(bytes.len() + 1);
        match seeded.below(7) {
            0 if place < bytes.len() => bytes[place] ^= 1 << seeded.below(8),
            1 if place < bytes.len() => bytes[place] = seeded.next() as u8,
            2 if place < bytes.len() => bytes[place] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][seeded.below(6)],
            3 => bytes.truncate(place),
            4 => drop(bytes.drain(place..(place + seeded.below(16)).min(bytes.len()))),
            5 => {
                // A piece of this or another seed: also how a thing comes to stand twice.
                let other = &seeds[seeded.below(seeds.len())];
                let start = seeded.below(other.len() + 1);
                let end = (start + seeded.below(64)).min(other.len());
                bytes.splice(place..place, other[start..end].iter().copied());
            }
            _ => {
                let token = TOKENS[seeded.below(TOKENS.len())];
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
