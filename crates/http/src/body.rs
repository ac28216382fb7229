//! Where a request's body ends, and a state machine that skips it, so that no byte of it is taken for a
//! request (INV-BODY-1).

use crate::error::RequestError;

/// The most bytes of chunk extensions and trailers together that are skipped in one body. Without a bound a
/// peer could make the server read for ever while it sends one byte of data a chunk.
pub const FRAMING_LIMIT_BYTES: u64 = 8_192;

/// Digits of a chunk size: 64 bits.
const CHUNK_SIZE_DIGITS_LIMIT: u8 = 16;

/// How the end of a request's body is found (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body (no Content-Length, or zero).
    None,
    /// So many bytes; never zero.
    Length(u64),
    /// The chunked transfer coding.
    Chunked,
}

/// What [`BodyDrain::feed`] did with the bytes it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the bytes after `consumed` belong to the next request"]
pub struct Drained {
    /// Bytes that belonged to the body. Those after them are the beginning of the next request.
    pub consumed: usize,
    /// The body is over. Otherwise every byte given was consumed.
    pub done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a body of known length, or in the data of a chunk.
    Data {
        is_chunk: bool,
    },
    /// In the digits of a chunk size.
    Size {
        digits: u8,
    },
    /// In the blanks between a chunk size and a semicolon (RFC 9112 section 7.1.1 has us accept them).
    BlankAfterSize,
    /// After the semicolon.
    Extension,
    /// After the CR of a chunk size line.
    SizeLineFeed,
    /// After the data of a chunk.
    DataReturn,
    /// After the CR that follows the data.
    DataLineFeed,
    /// At the beginning of a trailer line, or of the empty line that ends the body.
    TrailerStart,
    /// In a trailer line.
    Trailer,
    /// After the CR of a trailer line.
    TrailerLineFeed,
    /// After the CR of the last, empty line.
    LastLineFeed,
    Done,
    Failed(RequestError),
}

/// Skips one request's body from the bytes as they arrive. Chunked bodies must be exact: CRLF at every line's
/// end, no control characters, nothing between the size and its line end but an extension.
#[derive(Debug, Clone)]
pub struct BodyDrain {
    state: State,
    /// Left of the body, or of the current chunk.
    remaining_bytes: u64,
    /// Left of what the caller is willing to read, framing included.
    budget_bytes: u64,
    framing_budget_bytes: u64,
}

impl BodyDrain {
    /// A drain for the body of one request, willing to read `limit_bytes` of it, framing included.
    #[must_use]
    pub fn new(framing: BodyFraming, limit_bytes: u64) -> Self {
        let (state, remaining_bytes) = match framing {
            BodyFraming::None | BodyFraming::Length(0) => (State::Done, 0),
            BodyFraming::Length(length_bytes) if length_bytes > limit_bytes => {
                (State::Failed(RequestError::BodyTooLarge), 0)
            }
            BodyFraming::Length(length_bytes) => (State::Data { is_chunk: false }, length_bytes),
            BodyFraming::Chunked => (State::Size { digits: 0 }, 0),
        };
        Self { state, remaining_bytes, budget_bytes: limit_bytes, framing_budget_bytes: FRAMING_LIMIT_BYTES }
    }

    /// Whether the body is over (at once, when there is none).
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Skips what belongs to the body at the beginning of `bytes`.
    ///
    /// # Errors
    /// Malformed chunks, or more than the drain is willing to read (known at once for a Content-Length, even
    /// with no bytes given). The end of the body is then unknown: every later call fails in the same way, and
    /// the connection must be closed.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Drained, RequestError> {
        let mut consumed = 0;
        while self.state != State::Done {
            if let State::Failed(error) = self.state {
                return Err(error);
            }
            let Some(&next) = bytes.get(consumed) else { break };
            let step = match self.state {
                State::Data { is_chunk } => self.skip_data(bytes.len() - consumed, is_chunk),
                state => self.step(state, next).map(|next_state| (next_state, 1)),
            };
            let spent = step.and_then(|(state, count)| {
                self.budget_bytes =
                    self.budget_bytes.checked_sub(count as u64).ok_or(RequestError::BodyTooLarge)?;
                Ok((state, count))
            });
            match spent {
                Ok((state, count)) => {
                    self.state = state;
                    consumed += count;
                }
                Err(error) => self.state = State::Failed(error),
            }
        }
        Ok(Drained { consumed, done: self.is_done() })
    }

    /// Skips as much data as there is; `available` is not zero, and neither is what remains in this state.
    fn skip_data(&mut self, available: usize, is_chunk: bool) -> Result<(State, usize), RequestError> {
        let count =
            usize::try_from(self.remaining_bytes).map_or(available, |remaining| remaining.min(available));
        self.remaining_bytes -= count as u64;
        let state = match (self.remaining_bytes, is_chunk) {
            (0, true) => State::DataReturn,
            (0, false) => State::Done,
            _ => State::Data { is_chunk },
        };
        Ok((state, count))
    }

    /// One byte of the framing of a chunked body (RFC 9112 section 7.1).
    fn step(&mut self, state: State, byte: u8) -> Result<State, RequestError> {
        match (state, byte) {
            (State::Size { digits }, _) => self.size_byte(digits, byte),
            (State::BlankAfterSize, b' ' | b'\t') => self.framing_byte(State::BlankAfterSize),
            (State::BlankAfterSize, b';') => self.framing_byte(State::Extension),
            (State::Extension, b'\r') => Ok(State::SizeLineFeed),
            (State::Extension, _) if is_text(byte) => self.framing_byte(State::Extension),
            (State::SizeLineFeed, b'\n') if self.remaining_bytes == 0 => Ok(State::TrailerStart),
            (State::SizeLineFeed, b'\n') => Ok(State::Data { is_chunk: true }),
            (State::DataReturn, b'\r') => Ok(State::DataLineFeed),
            (State::DataLineFeed, b'\n') => Ok(State::Size { digits: 0 }),
            (State::TrailerStart, b'\r') => Ok(State::LastLineFeed),
            // A line that begins with a blank would continue the one before it (obs-fold): refused as in the
            // head.
            (State::TrailerStart, b' ' | b'\t') => Err(RequestError::Chunk),
            (State::Trailer, b'\r') => Ok(State::TrailerLineFeed),
            (State::TrailerStart | State::Trailer, _) if is_text(byte) => self.framing_byte(State::Trailer),
            (State::TrailerLineFeed, b'\n') => Ok(State::TrailerStart),
            (State::LastLineFeed, b'\n') => Ok(State::Done),
            _ => Err(RequestError::Chunk),
        }
    }

    fn size_byte(&mut self, digits: u8, byte: u8) -> Result<State, RequestError> {
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ if digits == 0 => return Err(RequestError::Chunk),
            b'\r' => return Ok(State::SizeLineFeed),
            b';' => return self.framing_byte(State::Extension),
            b' ' | b'\t' => return self.framing_byte(State::BlankAfterSize),
            _ => return Err(RequestError::Chunk),
        };
        if digits == CHUNK_SIZE_DIGITS_LIMIT {
            return Err(RequestError::Chunk);
        }
        // The size starts from zero: the state before ends with nothing remaining, or the drain is new.
        self.remaining_bytes = self.remaining_bytes * 16 + u64::from(value);
        Ok(State::Size { digits: digits + 1 })
    }

    fn framing_byte(&mut self, next: State) -> Result<State, RequestError> {
        self.framing_budget_bytes =
            self.framing_budget_bytes.checked_sub(1).ok_or(RequestError::ChunkFramingTooLarge)?;
        Ok(next)
    }
}

/// What may stand in an extension or a trailer line: no control characters but the tab.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
