//! Messages as bytes: a length in four bytes, then JSON. The length has a bound that depends on what may come.
//!
//! JSON, because the result is printed as JSON anyway, by the same types; a control connection carries a few hundred bytes
//! a second.

use super::message::Message;
use std::fmt;

/// The longest message that a listener takes.
pub const REQUEST_LIMIT_BYTES: usize = 16 * 1024;
/// The longest message that a client takes: a result of many streams.
pub const RESULT_LIMIT_BYTES: usize = 16 << 20;

const LENGTH_BYTES: usize = 4;

/// What is wrong with what came.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameFault {
    /// A message of so many bytes is announced.
    TooLong {
        /// Bytes that were announced.
        announced_bytes: usize,
        /// The most that are taken.
        limit_bytes: usize,
    },
    /// It is no message.
    NoMessage(String),
}

impl fmt::Display for FrameFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { announced_bytes, limit_bytes } => {
                write!(formatter, "a message of {announced_bytes} bytes, where {limit_bytes} are the most")
            }
            Self::NoMessage(reason) => write!(formatter, "no message of this protocol: {reason}"),
        }
    }
}

impl std::error::Error for FrameFault {}

/// Appends `message` to `outgoing`.
pub fn encode(message: &Message, outgoing: &mut Vec<u8>) {
    let start = outgoing.len();
    outgoing.extend_from_slice(&[0; LENGTH_BYTES]);
    // Plain data with text for keys: it always has a JSON form, and memory takes it.
    let _ = serde_json::to_writer(&mut *outgoing, message);
    let payload_bytes = outgoing.len() - start - LENGTH_BYTES;
    let length = u32::try_from(payload_bytes).unwrap_or(u32::MAX);
    outgoing[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// Takes bytes as they come, and gives messages as they are whole.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    limit_bytes: usize,
}

impl Frames {
    /// For messages of up to `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self { bytes: Vec::new(), limit_bytes }
    }

    /// Takes what came. Call [`Frames::next_message`] until it has nothing before the next call: what is held stays below the limit
    /// and the length of one call.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if one is whole.
    ///
    /// # Errors
    /// What came is no message: nothing behind it can be understood.
    pub fn next_message(&mut self) -> Result<Option<Message>, FrameFault> {
        let Some(length) = self.bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let announced_bytes = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if announced_bytes > self.limit_bytes {
            return Err(FrameFault::TooLong { announced_bytes, limit_bytes: self.limit_bytes });
        }
        let end = LENGTH_BYTES + announced_bytes;
        let Some(payload) = self.bytes.get(LENGTH_BYTES..end) else { return Ok(None) };
        let message =
            serde_json::from_slice(payload).map_err(|error| FrameFault::NoMessage(error.to_string()))?;
        self.bytes.drain(..end);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in_whatever_the_pieces() {
        let messages = [
            Message::Ready {},
            Message::Alive {},
            Message::Refused { reason: "no \"streams\"\n".to_owned() },
        ];
        let mut wire = Vec::new();
        messages.iter().for_each(|message| encode(message, &mut wire));
        for piece_bytes in [1, 3, 7, wire.len()] {
            let mut frames = Frames::new(100);
            let mut came = Vec::new();
            for piece in wire.chunks(piece_bytes) {
                frames.take(piece);
                while let Some(message) = frames.next_message().unwrap() {
                    came.push(message);
                }
            }
            assert_eq!(came, messages, "{piece_bytes}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_comes() {
        let mut frames = Frames::new(100);
        frames.take(&101_u32.to_be_bytes());
        let fault = frames.next_message().unwrap_err();
        assert_eq!(fault, FrameFault::TooLong { announced_bytes: 101, limit_bytes: 100 });
    }

    #[test]
    fn what_is_no_message_is_told() {
        for payload in
            ["", "{}", "[]", "\"ready\"", r#"{"message":"ready","more":1}"#, r#"{"message":"sing"}"#]
        {
            let mut frames = Frames::new(100);
            frames.take(&(payload.len() as u32).to_be_bytes());
            frames.take(payload.as_bytes());
            assert!(matches!(frames.next_message(), Err(FrameFault::NoMessage(_))), "{payload}");
        }
    }
}
