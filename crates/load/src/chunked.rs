//! The chunked transfer coding, as a client reads it (RFC 9112 7.1), without I/O and within bounds.

use crate::response_fault::ResponseFault;

/// Digits of a chunk's size: 64 bits.
const SIZE_DIGITS_LIMIT: u8 = 16;
/// Bytes of extensions and trailers in one body.
const FRAMING_LIMIT_BYTES: u32 = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the digits of a size.
    Size {
        digits: u8,
    },
    /// Behind them, up to the end of the line.
    SizeLine,
    Data,
    /// Behind the data: CR, or LF.
    DataEnd,
    /// At the beginning of a trailer, or of the empty line that ends the body.
    TrailerStart,
    Trailer,
    Done,
}

/// Where a chunked body stands.
#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    state: State,
    /// Left of the chunk; while its size is read, the size so far.
    remaining_bytes: u64,
    framing_budget_bytes: u32,
}

/// What [`Chunked::step`] found at the front of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChunkStep {
    /// So many bytes of framing.
    Framing(usize),
    /// So many bytes of the body.
    Data(usize),
    /// Framing up to and with the end of the body.
    End(usize),
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Size { digits: 0 },
            remaining_bytes: 0,
            framing_budget_bytes: FRAMING_LIMIT_BYTES,
        }
    }

    /// Takes either framing or data off the front of `bytes`, which are not empty.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Result<ChunkStep, ResponseFault> {
        let mut taken = 0;
        while let Some(&byte) = bytes.get(taken) {
            match self.state {
                State::Data if taken > 0 => break,
                State::Data => {
                    let count = bytes.len().min(usize::try_from(self.remaining_bytes).unwrap_or(usize::MAX));
                    self.remaining_bytes -= count as u64;
                    if self.remaining_bytes == 0 {
                        self.state = State::DataEnd;
                    }
                    return Ok(ChunkStep::Data(count));
                }
                State::Done => return Ok(ChunkStep::End(taken)),
                _ => self.framing(byte)?,
            }
            taken += 1;
        }
        Ok(if self.state == State::Done { ChunkStep::End(taken) } else { ChunkStep::Framing(taken) })
    }

    fn framing(&mut self, byte: u8) -> Result<(), ResponseFault> {
        self.framing_budget_bytes =
            self.framing_budget_bytes.checked_sub(1).ok_or(ResponseFault("chunks with endless framing"))?;
        self.state = match (self.state, byte) {
            (State::Size { digits }, _) if byte.is_ascii_hexdigit() => {
                if digits == SIZE_DIGITS_LIMIT {
                    return Err(ResponseFault("a chunk of an impossible size"));
                }
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                self.remaining_bytes = self.remaining_bytes << 4 | u64::from(digit);
                State::Size { digits: digits + 1 }
            }
            (State::Size { digits: 1.. } | State::SizeLine, b'\n') => {
                // The budget is for one chunk's framing: a body may have any number of chunks.
                self.framing_budget_bytes = FRAMING_LIMIT_BYTES;
                if self.remaining_bytes == 0 { State::TrailerStart } else { State::Data }
            }
            (State::Size { digits: 1.. }, b';' | b' ' | b'\t' | b'\r') | (State::SizeLine, _) => {
                State::SizeLine
            }
            (State::DataEnd, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Size { digits: 0 },
            (State::TrailerStart, b'\r') => State::TrailerStart,
            (State::TrailerStart, b'\n') => State::Done,
            (State::Trailer, b'\n') => State::TrailerStart,
            (State::TrailerStart | State::Trailer, _) => State::Trailer,
            _ => return Err(ResponseFault("malformed chunks")),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(wire: &[u8], step_bytes: usize) -> Result<(Vec<u8>, usize, bool), ResponseFault> {
        let (mut chunked, mut body, mut at) = (Chunked::new(), Vec::new(), 0);
        for piece in wire.chunks(step_bytes) {
            let mut rest = piece;
            while !rest.is_empty() {
                let taken = match chunked.step(rest)? {
                    ChunkStep::Framing(count) => count,
                    ChunkStep::Data(count) => {
                        body.extend_from_slice(&rest[..count]);
                        count
                    }
                    ChunkStep::End(count) => return Ok((body, at + count, true)),
                };
                at += taken;
                rest = &rest[taken..];
            }
        }
        Ok((body, at, false))
    }

    #[test]
    fn bodies_are_read_at_every_split() {
        let wire = b"5\r\nhello\r\n00A;name=\"v\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nHTTP";
        for step in 1..wire.len() {
            let (body, end, done) = read(wire, step).unwrap();
            assert_eq!(
                (body.as_slice(), end, done),
                (&b"hello0123456789"[..], wire.len() - 4, true),
                "{step}"
            );
        }
        assert!(!read(&wire[..wire.len() - 5], 7).unwrap().2);
    }

    #[test]
    fn malformed_chunks_are_refused() {
        for bad in [&b"x\r\n"[..], b"\r\n", b"-1\r\n", b"5\r\nhelloX", b"11112222333344445\r\n"] {
            assert!(read(bad, 100).is_err(), "{bad:?}");
        }
        let endless = [b"1;".to_vec(), vec![b'x'; 100_000]].concat();
        assert!(read(&endless, 4096).is_err());
        let trailers = [b"0\r\n".to_vec(), b"a: b\r\n".repeat(20_000)].concat();
        assert!(read(&trailers, 4096).is_err());
    }
}
