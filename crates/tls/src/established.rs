//! What a finished handshake leaves: what was agreed, the keys, and the schedule of the next ones.

use crate::{Certificate, CipherSuite, ClientKeySchedule, Connected, Group};
use linerate_record::{
    Channel, KeySource, KeyUpdateRate, Opener, RecordError, RecordLimit, Sealer, TrafficKey, Version,
};
use rustls::{ConnectionTrafficSecrets, kernel::KernelConnection, server::ServerConnectionData};
use std::{fmt, sync::Arc};

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

    /// Opens on from where the handshake stopped.
    fn into_opener(self) -> Result<Opener, RecordError> {
        Opener::new(&self.key, self.sequence_number)
    }
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
        let sealer = self.send.into_sealer(limit, keeps_key)?;
        Ok(Channel::new(sealer, self.receive.into_opener()?, self.key_schedule, rate))
    }
}

impl Connected {
    /// The same at a client's end.
    ///
    /// # Errors
    /// As [`Established::into_channel`].
    pub fn into_channel(self, rate: KeyUpdateRate) -> Result<Channel<ClientKeySchedule>, RecordError> {
        let limit = RecordLimit::of(self.send.key.cipher());
        let sealer = self.send.into_sealer(limit, false)?;
        Ok(Channel::for_client(sealer, self.receive.into_opener()?, self.key_schedule, rate))
    }
}

/// A handshake that succeeded.
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
    /// From us to the client.
    pub send: DirectionSecrets,
    /// From the client to us.
    pub receive: DirectionSecrets,
    /// Where the next keys come from.
    pub key_schedule: KeySchedule,
}

/// The key schedule after the handshake (RFC 8446 7.2). Of a TLS 1.2 connection, which never changes its keys, it is
/// empty and takes no memory beyond itself.
pub struct KeySchedule(Option<Box<KernelConnection<ServerConnectionData>>>);

impl KeySchedule {
    pub(crate) fn new(connection: KernelConnection<ServerConnectionData>) -> Self {
        let is_tls13 = connection.protocol_version() == rustls::ProtocolVersion::TLSv1_3;
        Self(is_tls13.then(|| Box::new(connection)))
    }
}

impl KeySource for KeySchedule {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        let connection = self.0.as_mut().ok_or(RecordError::Crypto)?;
        let (_, secrets) = connection.update_tx_secret().map_err(|_| RecordError::Crypto)?;
        traffic_key(Version::Tls13, &secrets)
    }

    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        let connection = self.0.as_mut().ok_or(RecordError::Crypto)?;
        let (_, secrets) = connection.update_rx_secret().map_err(|_| RecordError::Crypto)?;
        traffic_key(Version::Tls13, &secrets)
    }
}

impl fmt::Debug for KeySchedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KeySchedule").finish_non_exhaustive()
    }
}

/// rustls' secrets as the record layer takes them. rustls wipes its own when they go.
pub(crate) fn traffic_key(
    version: Version,
    secrets: &ConnectionTrafficSecrets,
) -> Result<TrafficKey, RecordError> {
    use linerate_record::Cipher;
    let (cipher, key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Cipher::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Cipher::ChaCha20Poly1305, key, iv),
        _ => return Err(RecordError::Misuse("a cipher that the record layer does not know")),
    };
    let iv = iv.as_ref().try_into().map_err(|_| RecordError::Misuse("an iv that is not 12 bytes long"))?;
    TrafficKey::new(version, cipher, key.as_ref(), iv)
}
