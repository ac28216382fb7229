//! What a finished handshake leaves: what was agreed, the keys, and the schedule of the next ones.

use crate::{Certificate, Chain, CipherSuite, ClientIdentity, ClientKeySchedule, Group, KeySchedule};
use linerate_record::{
    Channel, KeyUpdateRate, Opener, RecordError, RecordLimit, Sealer, TrafficKey, Version,
};
use std::sync::Arc;

/// One direction's key and where its record count stands.
#[derive(Debug)]
pub struct DirectionSecrets {
    /// The key.
    pub key: TrafficKey,
    /// The sequence number of the next record under it: the handshake has used some already.
    pub sequence_number: u64,
}

impl DirectionSecrets {
    /// Seals on from where the handshake stopped. `keeps_key` as in [`Sealer::keeping`].
    fn into_sealer(self, limit: RecordLimit, keeps_key: bool) -> Result<Sealer, RecordError> {
        if keeps_key {
            Sealer::keeping(self.key, self.sequence_number, limit)
        } else {
            Sealer::new(&self.key, self.sequence_number, limit)
        }
    }

    /// Opens on from where the handshake stopped. `keeps_key` as in [`Opener::keeping`].
    fn into_opener(self, keeps_key: bool) -> Result<Opener, RecordError> {
        if keeps_key {
            Opener::keeping(self.key, self.sequence_number)
        } else {
            Opener::new(&self.key, self.sequence_number)
        }
    }
}

/// Which directions may be handed over to the kernel later: their keys are kept as they came, beside the expanded ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptKeys {
    /// What we send.
    pub sending: bool,
    /// What we receive.
    pub receiving: bool,
}

/// A server's handshake that succeeded.
#[derive(Debug)]
pub struct Established {
    /// The version agreed.
    pub version: Version,
    /// The suite agreed.
    pub cipher_suite: CipherSuite,
    /// The key exchange group; `None` when a TLS 1.2 session was resumed, which exchanges no keys.
    pub group: Option<Group>,
    /// The name the client asked for by SNI, in lower case.
    pub server_name: Option<Box<str>>,
    /// The site that the name led to: its index in the order given to the builder.
    pub site: usize,
    /// The certificate that the client was shown, or would have been if it hadn't resumed a session.
    pub certificate: Arc<Certificate>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// The protocol agreed by ALPN; `None` if the client offered none.
    pub application_protocol: Option<&'static str>,
    /// Who the client is by its certificate.
    pub client: ClientIdentity,
    /// From us to the client.
    pub send: DirectionSecrets,
    /// From the client to us.
    pub receive: DirectionSecrets,
    /// Where the next keys come from.
    pub key_schedule: KeySchedule,
}

/// A client's handshake that succeeded.
#[derive(Debug)]
pub struct Connected {
    /// The version agreed.
    pub version: Version,
    /// The suite agreed.
    pub cipher_suite: CipherSuite,
    /// The key exchange group; `None` when a TLS 1.2 session was resumed, which exchanges no keys.
    pub group: Option<Group>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// What the server showed: in this handshake, or in the one whose session was resumed.
    pub server_certificates: Chain,
    /// From us to the server.
    pub send: DirectionSecrets,
    /// From the server to us.
    pub receive: DirectionSecrets,
    /// Where the next keys come from, and where tickets go.
    pub key_schedule: ClientKeySchedule,
}

impl Established {
    /// The record layer, which goes on at the sequence numbers where the handshake stopped (INV-NONCE-2). `keeps_key`: the
    /// sending direction may be handed over later.
    ///
    /// # Errors
    /// [`RecordError::Crypto`] if the cipher does not take a key.
    pub fn into_channel(
        self,
        limit: RecordLimit,
        keeps_key: bool,
        rate: KeyUpdateRate,
    ) -> Result<Channel<KeySchedule>, RecordError> {
        self.into_channel_keeping(limit, KeptKeys { sending: keeps_key, receiving: false }, rate)
    }

    /// As [`Established::into_channel`], for either direction.
    ///
    /// # Errors
    /// As there.
    pub fn into_channel_keeping(
        self,
        limit: RecordLimit,
        kept: KeptKeys,
        rate: KeyUpdateRate,
    ) -> Result<Channel<KeySchedule>, RecordError> {
        let sealer = self.send.into_sealer(limit, kept.sending)?;
        Ok(Channel::new(sealer, self.receive.into_opener(kept.receiving)?, self.key_schedule, rate))
    }
}

impl Connected {
    /// The same at a client's end.
    ///
    /// # Errors
    /// As [`Established::into_channel`].
    pub fn into_channel(self, rate: KeyUpdateRate) -> Result<Channel<ClientKeySchedule>, RecordError> {
        let limit = RecordLimit::of(self.send.key.cipher());
        self.into_channel_keeping(limit, KeptKeys::default(), rate)
    }

    /// As [`Connected::into_channel`], with a limit, and for directions that may be handed over.
    ///
    /// # Errors
    /// As there.
    pub fn into_channel_keeping(
        self,
        limit: RecordLimit,
        kept: KeptKeys,
        rate: KeyUpdateRate,
    ) -> Result<Channel<ClientKeySchedule>, RecordError> {
        let sealer = self.send.into_sealer(limit, kept.sending)?;
        let opener = self.receive.into_opener(kept.receiving)?;
        Ok(Channel::for_client(sealer, opener, self.key_schedule, rate))
    }
}
