//! The messages of the control connection.

use crate::{
    data::Engines,
    keys::KeyUse,
    plan::{Amount, Cipher, Direction, Reception, StreamEngine, Version, ZeroCopySend},
    report::EndReport,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;

/// The version of this protocol. Both ends have to have the same.
pub const PROTOCOL_VERSION: u32 = 2;

/// Bytes that are written as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hexadecimal<const BYTES: usize>(pub [u8; BYTES]);

impl<const BYTES: usize> fmt::Debug for Hexadecimal<BYTES> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a stream's preamble is made from is among them.
        write!(formatter, "{BYTES} bytes")
    }
}

impl<const BYTES: usize> Serialize for Hexadecimal<BYTES> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&digits)
    }
}

impl<'de, const BYTES: usize> Deserialize<'de> for Hexadecimal<BYTES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
            return Err(D::Error::custom("an odd number of digits"));
        };
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(D::Error::custom("no hexadecimal digit")),
        };
        if pairs.len() != BYTES {
            return Err(D::Error::custom(format_args!("{} bytes instead of {BYTES}", pairs.len())));
        }
        let mut bytes = [0; BYTES];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = value(*high)? << 4 | value(*low)?;
        }
        Ok(Self(bytes))
    }
}

/// Something that one end says to the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// The client's first.
    Hello {
        /// [`PROTOCOL_VERSION`].
        version: u32,
        /// Used once.
        nonce: Hexadecimal<32>,
    },
    /// The listener's first.
    Challenge {
        /// [`PROTOCOL_VERSION`].
        version: u32,
        /// Used once.
        nonce: Hexadecimal<32>,
        /// Whether clients have to know a secret.
        needs_secret: bool,
    },
    /// The client's answer.
    Proof {
        /// That it knows the secret; nothing where it has none.
        proof: Option<Hexadecimal<32>>,
    },
    /// The client may ask.
    Welcome {
        /// That the listener knows the secret; nothing where it has none.
        proof: Option<Hexadecimal<32>>,
    },
    /// What the client wants.
    Run(Request),
    /// The run may begin when its streams are connected.
    Accepted {
        /// What the streams' preambles are made from.
        key: Hexadecimal<32>,
        /// The rate that the listener holds each stream to.
        rate_bits: Option<u64>,
    },
    /// There is no run, or no more of it.
    Refused {
        /// Why, in words.
        reason: String,
    },
    /// All streams are connected at the listener's end.
    Ready {},
    /// The time begins.
    Start {},
    /// The other end lives.
    Alive {},
    /// The run ends now.
    Stop {},
    /// What the listener's end measured: the run is over.
    Result(Box<EndReport>),
}

/// What a client wants of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Streams each way.
    pub streams: u32,
    /// Which way the bytes go.
    pub direction: Direction,
    /// What carries them, where they are sent.
    pub engine: StreamEngine,
    /// What opens their records, where they are received.
    pub receive_engine: StreamEngine,
    /// How memory is lent where the bytes are sent.
    pub zero_copy_send: Option<ZeroCopySend>,
    /// What becomes of bytes in the clear where they are received.
    pub reception: Reception,
    /// The version of TLS: "1.2" or "1.3".
    #[serde(with = "version")]
    pub version: Version,
    /// Each sender changes its key after so many records.
    pub key_records: Option<u64>,
    /// The cipher by its name.
    #[serde(with = "cipher")]
    pub cipher: Option<Cipher>,
    /// Bytes that a stream hands to the system at once.
    pub io_bytes: u32,
    /// Of both socket buffers.
    pub socket_buffer_bytes: Option<u32>,
    /// When it is over.
    pub amount: Amount,
    /// Bits of payload a second, each stream.
    pub rate_bits: Option<u64>,
    /// The congestion control.
    pub congestion: Option<String>,
    /// Each byte is verified, by this seed.
    pub verify_seed: Option<u64>,
}

impl Request {
    pub(crate) fn engines(&self) -> Engines {
        Engines { sending: self.engine, receiving: self.receive_engine }
    }

    /// What a stream's keys are for, at the end that sends it or at the other.
    pub(crate) fn key_use(&self, sends: bool) -> KeyUse {
        KeyUse { kept: self.engines().kept_keys(sends), records: self.key_records }
    }

    /// What the stream of this number sends, 0 if a time ends it.
    pub(crate) fn stream_bytes(&self, number: u32) -> u64 {
        let streams = self.streams.max(1);
        self.amount.share_bytes(number % streams, streams).unwrap_or(0)
    }
}

mod version {
    use super::*;

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    pub(super) fn serialize<S: Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(version.number())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
        let number = String::deserialize(deserializer)?;
        let known = [Version::Tls12, Version::Tls13].into_iter().find(|version| version.number() == number);
        known.ok_or_else(|| D::Error::custom("no version of TLS that is spoken here"))
    }
}

mod cipher {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        cipher: &Option<Cipher>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        cipher.map(Cipher::name).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Cipher>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        name.map(|name| Cipher::named(&name).ok_or_else(|| D::Error::custom("no cipher that is known here")))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            streams: 3,
            direction: Direction::Both,
            engine: StreamEngine::User,
            receive_engine: StreamEngine::Kernel,
            zero_copy_send: Some(ZeroCopySend::IoUring),
            reception: Reception::Mapped,
            version: Version::Tls12,
            key_records: Some(77),
            cipher: Some(Cipher::ChaCha20Poly1305),
            io_bytes: 4096,
            socket_buffer_bytes: None,
            amount: Amount::Bytes(77),
            rate_bits: Some(1),
            congestion: Some("cubic".to_owned()),
            verify_seed: Some(u64::MAX),
        }
    }

    #[test]
    fn messages_can_be_read_again() {
        let nonce = Hexadecimal([0xA7; 32]);
        for message in [
            Message::Hello { version: 1, nonce },
            Message::Challenge { version: 1, nonce, needs_secret: true },
            Message::Proof { proof: None },
            Message::Welcome { proof: Some(nonce) },
            Message::Run(request()),
            Message::Run(Request { cipher: None, amount: Amount::Milliseconds(5), ..request() }),
            Message::Accepted { key: nonce, rate_bits: None },
            Message::Refused { reason: "\u{1F600}".to_owned() },
            Message::Ready {},
            Message::Result(Box::default()),
        ] {
            let text = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let text = serde_json::to_string(&Message::Run(request())).unwrap();
        for (from, to) in [
            ("\"1.2\"", "\"1.1\""),
            ("ChaCha20-Poly1305", "RC4"),
            ("\"user\"", "\"magic\""),
            ("\"streams\":3", "\"streams\":-3"),
            ("\"streams\":3", "\"streams\":3,\"streams\":3"),
            ("\"streams\":3", "\"streams\":3,\"colour\":3"),
        ] {
            assert!(text.contains(from), "{from}: {text}");
            assert!(serde_json::from_str::<Message>(&text.replace(from, to)).is_err(), "{to}");
        }
        for digits in ["a", "zz", "AA", "é", "a7a7"] {
            let text = format!(r#"{{"message":"proof","proof":"{digits}"}}"#);
            assert!(serde_json::from_str::<Message>(&text).is_err(), "{digits}");
        }
    }
}
