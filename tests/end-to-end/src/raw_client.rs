//! A TLS client that seals its own records after the handshake, so that it can break every rule.

use crate::{
    ClientSetup,
    client::{connect, get_request},
    raw_record::RecordProtection,
};
use rustls::{
    ProtocolVersion,
    client::{ClientConnectionData, UnbufferedClientConnection},
    kernel::KernelConnection,
    unbuffered::{ConnectionState, EncodeError, UnbufferedStatus},
};
use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
};

/// Content types on the wire.
pub mod content_type {
    /// `change_cipher_spec`
    pub const CHANGE_CIPHER_SPEC: u8 = 20;
    /// `alert`
    pub const ALERT: u8 = 21;
    /// `handshake`
    pub const HANDSHAKE: u8 = 22;
    /// `application_data`
    pub const APPLICATION_DATA: u8 = 23;
}
use content_type::{ALERT, APPLICATION_DATA, HANDSHAKE};

/// The client.
pub struct RawClient {
    stream: TcpStream,
    is_tls13: bool,
    sending: RecordProtection,
    receiving: RecordProtection,
    schedule: KernelConnection<ClientConnectionData>,
    /// Bytes received and not yet opened.
    incoming: Vec<u8>,
    /// The last flight of the handshake, if it was held back.
    held_back: Vec<u8>,
    key_updates_received: usize,
}

/// What came from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A record: its real content type and its plaintext.
    Record(u8, Vec<u8>),
    /// FIN, at a record's boundary.
    End,
    /// A reset.
    Reset,
}

impl RawClient {
    /// Connects and finishes the handshake.
    ///
    /// # Panics
    /// If that fails.
    #[track_caller]
    #[must_use]
    pub fn connect(setup: &ClientSetup, address: SocketAddr) -> Self {
        let mut client = Self::connect_holding_back(setup, address);
        let held_back = std::mem::take(&mut client.held_back);
        client.send(&held_back);
        client
    }

    /// Connects, and finishes the handshake except that the client's last flight is not sent: [`RawClient::held_back`]
    /// has it. TLS 1.3 only: in TLS 1.2 the server has the last word.
    ///
    /// # Panics
    /// If that fails.
    #[track_caller]
    #[must_use]
    pub fn connect_holding_back(setup: &ClientSetup, address: SocketAddr) -> Self {
        let (config, name) = setup.parts();
        let mut stream = connect(address).expect("the server listens");
        let mut connection = UnbufferedClientConnection::new(config, name).expect("a valid set-up");
        let (mut incoming, mut outgoing) = (Vec::new(), Vec::new());
        while !advance(&mut connection, &mut incoming, &mut outgoing) {
            stream.write_all(&outgoing).expect("the server takes the handshake");
            outgoing.clear();
            let mut buffer = [0; 16 * 1024];
            let bytes = stream.read(&mut buffer).expect("the server answers");
            assert_ne!(bytes, 0, "the server closed in the handshake");
            incoming.extend_from_slice(&buffer[..bytes]);
        }
        let is_tls13 = connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        let (secrets, schedule) =
            connection.dangerous_into_kernel_connection().expect("the handshake is over");
        Self {
            stream,
            is_tls13,
            sending: RecordProtection::new(is_tls13, secrets.tx.0, &secrets.tx.1),
            receiving: RecordProtection::new(is_tls13, secrets.rx.0, &secrets.rx.1),
            schedule,
            incoming,
            held_back: outgoing,
            key_updates_received: 0,
        }
    }

    /// What [`RawClient::connect_holding_back`] held back; to be sent first.
    #[must_use]
    pub fn held_back(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held_back)
    }

    /// A sealed record.
    #[must_use]
    pub fn seal(&mut self, content_type: u8, payload: &[u8]) -> Vec<u8> {
        self.sending.seal(content_type, payload, 0)
    }

    /// A sealed record with so many zeros of padding; TLS 1.3 only.
    #[must_use]
    pub fn seal_padded(&mut self, content_type: u8, payload: &[u8], padding_bytes: usize) -> Vec<u8> {
        self.sending.seal(content_type, payload, padding_bytes)
    }

    /// A sealed record with this in place of plaintext, content type and padding.
    #[must_use]
    pub fn seal_text(&mut self, outer_type: u8, text: &[u8]) -> Vec<u8> {
        self.sending.seal_text(outer_type, text.to_vec())
    }

    /// A sealed GET request.
    #[must_use]
    pub fn seal_request(&mut self, target: &str) -> Vec<u8> {
        self.seal(APPLICATION_DATA, get_request(target).as_bytes())
    }

    /// A sealed KeyUpdate; everything sealed later is under the next key.
    #[must_use]
    pub fn seal_key_update(&mut self, requested: bool) -> Vec<u8> {
        let record = self.seal(HANDSHAKE, &[24, 0, 0, 1, requested.into()]);
        self.next_sending_key();
        record
    }

    /// Takes the next sending key, as after a KeyUpdate.
    pub fn next_sending_key(&mut self) {
        let (sequence, secrets) = self.schedule.update_tx_secret().expect("TLS 1.3 has a next key");
        self.sending = RecordProtection::new(true, sequence, &secrets);
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// If the server takes none.
    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes bytes");
    }

    /// Sends bytes as they are; the server may have gone.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next record from the server. A KeyUpdate is acted on, and returned as well.
    ///
    /// # Panics
    /// If nothing comes in time, or a record does not authenticate.
    #[track_caller]
    pub fn receive(&mut self) -> Received {
        let record = loop {
            if let Some(header) = self.incoming.first_chunk::<5>() {
                let record_bytes = 5 + usize::from(u16::from_be_bytes([header[3], header[4]]));
                if self.incoming.len() >= record_bytes {
                    break self.incoming.drain(..record_bytes).collect::<Vec<u8>>();
                }
            }
            let mut buffer = [0; 64 * 1024];
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    assert!(self.incoming.is_empty(), "the server closed in the middle of a record");
                    return Received::End;
                }
                Ok(bytes) => self.incoming.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Received::Reset,
                Err(error) => panic!("nothing comes from the server: {error}"),
            }
        };
        let (content_type, plaintext) =
            self.receiving.open(&record).expect("records of the server authenticate");
        if self.is_tls13 && content_type == HANDSHAKE && plaintext.first() == Some(&24) {
            let (sequence, secrets) = self.schedule.update_rx_secret().expect("TLS 1.3 has a next key");
            self.receiving = RecordProtection::new(true, sequence, &secrets);
            self.key_updates_received += 1;
        }
        Received::Record(content_type, plaintext)
    }

    /// Reads application data until there are so many bytes of it; whatever else comes is passed over.
    ///
    /// # Panics
    /// If an alert or the end comes first.
    #[track_caller]
    pub fn receive_data(&mut self, length_bytes: usize) -> Vec<u8> {
        let mut data = Vec::new();
        while data.len() < length_bytes {
            match self.receive() {
                Received::Record(APPLICATION_DATA, plaintext) => data.extend(plaintext),
                Received::Record(ALERT, alert) => panic!("the alert {alert:?} after {} bytes", data.len()),
                Received::Record(..) => {}
                end => panic!("{end:?} after {} bytes", data.len()),
            }
        }
        data
    }

    /// Reads a response whose body is as long as `body_bytes`, and returns the body.
    ///
    /// # Panics
    /// As [`RawClient::receive_data`], and if the response is longer.
    #[track_caller]
    pub fn receive_body(&mut self, body_bytes: usize) -> Vec<u8> {
        let mut data = self.receive_data(1);
        let head_bytes = loop {
            match data.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => data.extend(self.receive_data(1)),
            }
        };
        let missing = (head_bytes + body_bytes).saturating_sub(data.len());
        data.extend(self.receive_data(missing));
        assert_eq!(data.len(), head_bytes + body_bytes, "the response is longer than expected");
        data.split_off(head_bytes)
    }

    /// Passes over records until an alert comes, and returns its level and description.
    ///
    /// # Panics
    /// If the connection ends first.
    #[track_caller]
    pub fn receive_alert(&mut self) -> [u8; 2] {
        loop {
            match self.receive() {
                Received::Record(ALERT, alert) => {
                    return alert.as_slice().try_into().expect("an alert is two bytes long");
                }
                Received::Record(..) => {}
                end => panic!("{end:?}, but no alert"),
            }
        }
    }

    /// KeyUpdates that came from the server so far.
    #[must_use]
    pub fn key_updates_received(&self) -> usize {
        self.key_updates_received
    }

    /// Sends FIN.
    pub fn shut_down_sending(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("the connection is open");
    }
}

/// Lets rustls take what has come and append what is to be sent. True when the handshake is over.
fn advance(
    connection: &mut UnbufferedClientConnection,
    incoming: &mut Vec<u8>,
    outgoing: &mut Vec<u8>,
) -> bool {
    loop {
        let UnbufferedStatus { discard, state } = connection.process_tls_records(incoming);
        let is_over = match state.expect("the server keeps to the protocol") {
            ConnectionState::EncodeTlsData(mut chunk) => {
                let Err(EncodeError::InsufficientSize(size)) = chunk.encode(&mut []) else {
                    panic!("no handshake message is empty");
                };
                let start = outgoing.len();
                outgoing.resize(start + size.required_size, 0);
                chunk.encode(&mut outgoing[start..]).expect("there is room");
                None
            }
            ConnectionState::TransmitTlsData(flight) => {
                flight.done();
                None
            }
            ConnectionState::BlockedHandshake => Some(false),
            ConnectionState::WriteTraffic(_) => Some(true),
            other => panic!("{other:?} in the handshake"),
        };
        incoming.drain(..discard);
        if let Some(is_over) = is_over {
            return is_over;
        }
    }
}
