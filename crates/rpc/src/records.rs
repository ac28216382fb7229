//! Records on a stream (RFC 5531 section 11): each is a number of fragments, and each fragment four bytes of header and as many bytes as
//! the header says.
//!
//! ```text
//!   0   1                    31
//! +---+-----------------------+----------------+
//! | L | length of the fragment|  the fragment  |  L = 1: the record's last
//! +---+-----------------------+----------------+
//! ```

use std::error::Error;
use std::fmt;

/// The bit that says that no fragment of the record follows.
const LAST_FRAGMENT: u32 = 1 << 31;
/// A fragment's header.
const HEADER_BYTES: usize = 4;

/// Finds the records in what arrives.
#[derive(Debug)]
pub struct Records {
    limit_bytes: usize,
    /// Of the header that is arriving, the bytes that have come.
    header: Vec<u8>,
    /// What has come of the record that is arriving.
    record: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing of a record has come, or `record` is one that was returned.
    Between,
    /// A header is next.
    Header,
    /// So many bytes of a fragment are next.
    Fragment { left_bytes: usize, is_last: bool },
    /// Nothing is believed any more.
    Failed,
}

/// What came of the bytes that were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<'a> {
    /// So many of them are done with. All, unless `record` is present.
    pub consumed_bytes: usize,
    /// A whole record.
    pub record: Option<&'a [u8]>,
}

/// A record that is longer than the limit. The stream cannot be followed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The limit.
    pub limit_bytes: usize,
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a record is longer than {} bytes", self.limit_bytes)
    }
}

impl Error for RecordError {}

impl Records {
    /// Takes records of at most `limit_bytes`, headers of fragments not counted.
    #[must_use]
    pub const fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, header: Vec::new(), record: Vec::new(), state: State::Between }
    }

    /// Whether a part of a record has come, and not all of it.
    #[must_use]
    pub fn is_midway(&self) -> bool {
        !matches!(self.state, State::Between | State::Failed)
    }

    /// Takes what was received: up to the end of the first record in it. A record that is whole within `received` is borrowed from
    /// there. Of any other the bytes are kept here, as many as have come.
    ///
    /// # Errors
    /// [`RecordError`], as soon as a header announces too much, and ever after.
    pub fn take<'a>(&'a mut self, received: &'a [u8]) -> Result<Taken<'a>, RecordError> {
        if self.state == State::Failed {
            return Err(self.failed());
        }
        if self.state == State::Between {
            if let Some((length, rest)) = whole_fragment(received)
                && length <= self.limit_bytes
            {
                let record = rest.get(..length);
                return Ok(Taken { consumed_bytes: HEADER_BYTES + length, record });
            }
            self.record.clear();
            if received.is_empty() {
                return Ok(Taken { consumed_bytes: 0, record: None });
            }
            self.state = State::Header;
        }
        let mut rest = received;
        while !rest.is_empty() || matches!(self.state, State::Fragment { left_bytes: 0, .. }) {
            match self.state {
                State::Between | State::Failed => return Err(self.failed()),
                State::Header => {
                    let wanted = HEADER_BYTES.saturating_sub(self.header.len()).min(rest.len());
                    let (bytes, behind) = rest.split_at(wanted);
                    rest = behind;
                    self.header.extend_from_slice(bytes);
                    if let Some(header) = self.header.first_chunk() {
                        self.state = self.fragment(u32::from_be_bytes(*header))?;
                        self.header.clear();
                    }
                }
                State::Fragment { left_bytes, is_last } => {
                    let (bytes, behind) = rest.split_at(left_bytes.min(rest.len()));
                    rest = behind;
                    self.record.extend_from_slice(bytes);
                    let left_bytes = left_bytes - bytes.len();
                    self.state = State::Fragment { left_bytes, is_last };
                    if left_bytes == 0 {
                        self.state = if is_last { State::Between } else { State::Header };
                    }
                    if self.state == State::Between {
                        let consumed_bytes = received.len() - rest.len();
                        return Ok(Taken { consumed_bytes, record: Some(&self.record) });
                    }
                }
            }
        }
        Ok(Taken { consumed_bytes: received.len(), record: None })
    }

    fn fragment(&mut self, header: u32) -> Result<State, RecordError> {
        let left_bytes = (header & !LAST_FRAGMENT) as usize;
        if left_bytes > self.limit_bytes - self.record.len().min(self.limit_bytes) {
            return Err(self.failed());
        }
        Ok(State::Fragment { left_bytes, is_last: header & LAST_FRAGMENT != 0 })
    }

    fn failed(&mut self) -> RecordError {
        self.state = State::Failed;
        self.record = Vec::new();
        RecordError { limit_bytes: self.limit_bytes }
    }
}

/// The length of a record of one fragment, and what follows its header, if all of it is there.
fn whole_fragment(received: &[u8]) -> Option<(usize, &[u8])> {
    let (header, rest) = received.split_first_chunk()?;
    let header = u32::from_be_bytes(*header);
    let length = (header & !LAST_FRAGMENT) as usize;
    (header & LAST_FRAGMENT != 0 && rest.len() >= length).then_some((length, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(limit_bytes: usize, stream: &[u8], piece_bytes: usize) -> (Vec<Vec<u8>>, bool) {
        let mut records = Records::new(limit_bytes);
        let mut found = Vec::new();
        for mut piece in stream.chunks(piece_bytes) {
            while !piece.is_empty() {
                let Ok(taken) = records.take(piece) else {
                    assert!(!records.is_midway());
                    assert!(records.take(b"\x80\0\0\0").is_err(), "a failure is final");
                    return (found, false);
                };
                assert!(taken.consumed_bytes > 0);
                found.extend(taken.record.map(<[u8]>::to_vec));
                piece = &piece[taken.consumed_bytes..];
            }
        }
        (found, true)
    }

    #[test]
    fn records_are_the_same_however_they_arrive() {
        let stream = b"\x80\0\0\x03abc\0\0\0\x02de\0\0\0\0\x80\0\0\x01f\x80\0\0\0\0\0\0\x01g\x80\0\0\0\x80\0\0\x04hijk";
        let expected = [b"abc".as_slice(), b"def", b"", b"g", b"hijk"].map(<[u8]>::to_vec);
        for piece_bytes in 1..=stream.len() {
            assert_eq!(all(4, stream, piece_bytes), (expected.to_vec(), true), "in pieces of {piece_bytes}");
        }
    }

    #[test]
    fn a_record_above_the_limit_ends_the_stream() {
        for (stream, before) in [
            (b"\x80\0\0\x05abcde".as_slice(), 0),
            (b"\x80\0\0\x05", 0),
            (b"\x80\0\0\x04abcd\0\0\0\x03abc\x80\0\0\x02de", 1),
            (b"\xff\xff\xff\xff", 0),
            (b"\x7f\xff\xff\xff", 0),
            (b"GET / HTTP/1.1\r\n", 0),
        ] {
            for piece_bytes in 1..=stream.len() {
                let (found, sound) = all(4, stream, piece_bytes);
                assert_eq!(
                    (found.len(), sound),
                    (before, false),
                    "{} in {piece_bytes}",
                    stream.escape_ascii()
                );
            }
        }
    }

    #[test]
    fn a_part_of_a_record_is_told_from_none() {
        let mut records = Records::new(100);
        assert!(!records.is_midway());
        for part in [b"\x80".as_slice(), b"\0\0\x02", b"a"] {
            assert_eq!(records.take(part).unwrap(), Taken { consumed_bytes: part.len(), record: None });
            assert!(records.is_midway());
        }
        assert_eq!(records.take(b"bc").unwrap(), Taken { consumed_bytes: 1, record: Some(b"ab") });
        assert!(!records.is_midway());
        assert_eq!(records.take(b"").unwrap(), Taken { consumed_bytes: 0, record: None });
        assert!(!records.is_midway());
    }

    #[test]
    fn no_memory_is_taken_for_what_is_only_announced() {
        let mut records = Records::new(1 << 30);
        assert!(records.take(b"\xbf\xff\xff\xffx").is_ok());
        assert!(records.record.capacity() < 1000);
    }
}
