//! Where the keys come from that follow those of the handshake.

use linerate_record::{Cipher, KeySource, RecordError, TrafficKey, Version};
use rustls::{
    ConnectionTrafficSecrets, ProtocolVersion, client::ClientConnectionData, kernel::KernelConnection,
    server::ServerConnectionData,
};
use std::fmt;

/// What rustls keeps of a TLS 1.3 connection after the handshake. Of a TLS 1.2 connection, which never changes its
/// keys, it is empty and takes no memory beyond itself.
pub(crate) struct NextKeys<Data>(Option<Box<KernelConnection<Data>>>);

impl<Data> NextKeys<Data> {
    pub(crate) fn new(connection: KernelConnection<Data>) -> Self {
        let is_tls13 = connection.protocol_version() == ProtocolVersion::TLSv1_3;
        Self(is_tls13.then(|| Box::new(connection)))
    }

    fn next(&mut self, update: Update<Data>) -> Result<TrafficKey, RecordError> {
        let connection = self.0.as_mut().ok_or(RecordError::Crypto)?;
        let (_, secrets) = update(connection).map_err(|_| RecordError::Crypto)?;
        traffic_key(Version::Tls13, &secrets)
    }
}

/// One of rustls' two, for sending or for receiving.
type Update<Data> = fn(&mut KernelConnection<Data>) -> Result<(u64, ConnectionTrafficSecrets), rustls::Error>;

impl<Data> fmt::Debug for NextKeys<Data> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("NextKeys").finish_non_exhaustive()
    }
}

/// The key schedule after a server's handshake (RFC 8446 7.2).
#[derive(Debug)]
pub struct KeySchedule(pub(crate) NextKeys<ServerConnectionData>);

/// The key schedule after a client's handshake, which also takes the session tickets that the server sends. Those of
/// TLS 1.2 come in the handshake.
#[derive(Debug)]
pub struct ClientKeySchedule {
    pub(crate) next_keys: NextKeys<ClientConnectionData>,
    pub(crate) keeps_tickets: bool,
}

impl KeySource for KeySchedule {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.0.next(KernelConnection::update_tx_secret)
    }

    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.0.next(KernelConnection::update_rx_secret)
    }
}

impl KeySource for ClientKeySchedule {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.next_keys.next(KernelConnection::update_tx_secret)
    }

    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.next_keys.next(KernelConnection::update_rx_secret)
    }

    fn take_ticket(&mut self, ticket: &[u8]) -> Result<(), RecordError> {
        match &mut self.next_keys.0 {
            Some(connection) if self.keeps_tickets => connection
                .handle_new_session_ticket(ticket)
                .map_err(|_| RecordError::Malformed("NewSessionTicket")),
            _ => Ok(()),
        }
    }
}

/// rustls' secrets as the record layer takes them. rustls wipes its own when they go.
pub(crate) fn traffic_key(
    version: Version,
    secrets: &ConnectionTrafficSecrets,
) -> Result<TrafficKey, RecordError> {
    let (cipher, key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Cipher::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Cipher::ChaCha20Poly1305, key, iv),
        _ => return Err(RecordError::Misuse("a cipher that the record layer does not know")),
    };
    let iv = iv.as_ref().try_into().map_err(|_| RecordError::Misuse("an iv that is not 12 bytes long"))?;
    TrafficKey::new(version, cipher, key.as_ref(), iv)
}
