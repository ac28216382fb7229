//! Session tickets. rustls seals and opens them; what is ours is to take them out of a server's records, and to make a full
//! handshake with a client whose ticket is no good.

use crate::{
    Verdict,
    client_hello::acceptor,
    damaged,
    sealed::{Client as Peer, traffic_key},
};
use linerate_record::{
    AlertDescription, Channel, Cipher, Event, HEADER_BYTES, KeySource, KeyUpdateRate, MAX_PLAINTEXT_BYTES,
    Opener, RecordError, RecordLimit, Sealer, TrafficKey, Version,
};
use linerate_tls::{
    ClientHandshake, ClientKeySchedule, ConnectStep, Connected, Connector, FailureKind, Handshake,
    HandshakeFailure, Step, TlsPolicy, Trust,
};
use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

/// `HandshakeType`
const HANDSHAKE: u8 = 22;
/// Records without data that come one after the other are refused at 33.
const PIECES_LIMIT: usize = 24;
/// More than there are pieces.
const KEY_UPDATES_PER_SECOND: u32 = 100;
/// A ticket that is much longer does not fit into a ClientHello that the server reads.
const TICKET_LIMIT_BYTES: usize = 8192;
/// More than any handshake needs.
const FLIGHTS: usize = 6;
const AEAD: Cipher = Cipher::Aes128Gcm;
const SERVER_NAME: &str = "localhost";

/// The first byte, by threes: 0: the rest is what a server says after the handshake, in records of a size that the first byte
/// gives. 1: the rest is the ticket that a client brings. 2: commands of three bytes follow, each a place in two bytes and a
/// value, which change a real ticket's message before the client takes it.
///
/// # Panics
/// If it matters how a server's messages are cut into records, a session is resumed by anything but the ticket that was given
/// out, or a bad ticket costs the client its connection.
pub fn ticket(data: &[u8]) -> Verdict {
    let Some((&first, rest)) = data.split_first() else { return Verdict::Refused };
    if first % 3 == 0 {
        return messages(rest, usize::from(first / 3) + 1);
    }
    let mut session = Session::shared();
    let mut message = session.message.clone();
    if first % 3 == 1 {
        message.ticket = rest[..rest.len().min(TICKET_LIMIT_BYTES)].to_vec();
        return session.comes_back(&message.encode());
    }
    session.comes_back(&damaged(&message.encode(), rest))
}

/// The payloads of a server's tickets.
type Tickets = Rc<RefCell<Vec<Vec<u8>>>>;

/// Keeps the tickets that a client is given.
#[derive(Default)]
struct Keeper {
    tickets: Tickets,
    key_updates: u8,
}

impl KeySource for Keeper {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        Err(RecordError::Crypto)
    }

    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.key_updates += 1;
        Ok(traffic_key(Version::Tls13, AEAD, self.key_updates))
    }

    fn take_ticket(&mut self, ticket: &[u8]) -> Result<(), RecordError> {
        self.tickets.borrow_mut().push(ticket.to_vec());
        Ok(())
    }
}

/// A client's end that opens with `receiving`; gives where it puts its tickets, too.
fn client_end(receiving: &TrafficKey, sequence: u64) -> (Channel<Keeper>, Tickets) {
    let sending = traffic_key(Version::Tls13, AEAD, 0);
    let sealer = Sealer::new(&sending, 0, RecordLimit::of(AEAD)).expect("the key fits");
    let opener = Opener::new(receiving, sequence).expect("the key fits");
    let keeper = Keeper::default();
    let tickets = Rc::clone(&keeper.tickets);
    (Channel::for_client(sealer, opener, keeper, KeyUpdateRate::new(KEY_UPDATES_PER_SECOND)), tickets)
}

/// Reads the same messages out of one record and out of several.
fn messages(sent: &[u8], piece_bytes: usize) -> Verdict {
    let sent = &sent[..sent.len().min(MAX_PLAINTEXT_BYTES)];
    if sent.is_empty() {
        return Verdict::Refused;
    }
    let (whole, fault) = read(sent, sent.len());
    let (in_pieces, later_fault) = read(sent, piece_bytes.max(sent.len().div_ceil(PIECES_LIMIT)));
    if let Some(fault) = fault {
        // A key update that another message follows in its record is a fault; it is none where a record ends between them.
        assert!(in_pieces.starts_with(&whole), "{fault:?}: {whole:?}, {in_pieces:?}");
        return Verdict::Refused;
    }
    assert_eq!((whole, None), (in_pieces, later_fault));
    Verdict::Taken
}

/// The tickets, and the fault that ended it.
fn read(sent: &[u8], piece_bytes: usize) -> (Vec<Vec<u8>>, Option<RecordError>) {
    let (mut channel, tickets) = client_end(&traffic_key(Version::Tls13, AEAD, 0), 0);
    let mut server = Peer::new(Version::Tls13, AEAD, 0);
    let mut received = || {
        for piece in sent.chunks(piece_bytes) {
            match channel.receive(&mut server.seal(HANDSHAKE, piece, 0), 0)? {
                Event::Nothing => {}
                Event::KeyUpdate(_) => server.update_key(),
                event => panic!("{event:?} of a handshake message"),
            }
        }
        Ok(())
    };
    let fault = received().err();
    if let Some(alert) = fault.and_then(RecordError::alert) {
        assert_ne!(alert, AlertDescription::InternalError, "the server caused a fault of ours");
    }
    (tickets.take(), fault)
}

/// A NewSessionTicket (RFC 8446 4.6.1), written apart from the code under test.
#[derive(Clone, Debug)]
struct Message {
    /// `ticket_lifetime` and `ticket_age_add`
    times: [u8; 8],
    nonce: Vec<u8>,
    ticket: Vec<u8>,
    extensions: Vec<u8>,
}

impl Message {
    /// `None` if it is none.
    fn parse(payload: &[u8]) -> Option<Self> {
        let (times, rest) = payload.split_first_chunk()?;
        let (&nonce_bytes, rest) = rest.split_first()?;
        let (nonce, rest) = rest.split_at_checked(nonce_bytes.into())?;
        let (ticket, rest) = long_vector(rest)?;
        let (extensions, rest) = long_vector(rest)?;
        let [nonce, ticket, extensions] = [nonce, ticket, extensions].map(<[u8]>::to_vec);
        rest.is_empty().then_some(Self { times: *times, nonce, ticket, extensions })
    }

    fn encode(&self) -> Vec<u8> {
        let long = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
        let nonce = [&[self.nonce.len() as u8], &self.nonce[..]].concat();
        [&self.times[..], &nonce, &long(&self.ticket), &long(&self.extensions)].concat()
    }
}

/// A vector behind its length in two bytes, and what follows.
fn long_vector(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// A client that has been here: it may come back with its ticket as often as it likes.
struct Session {
    connector: Connector,
    key_schedule: ClientKeySchedule,
    /// What it was given.
    message: Message,
}

impl Session {
    fn shared() -> MutexGuard<'static, Self> {
        static SESSION: OnceLock<Mutex<Session>> = OnceLock::new();
        SESSION.get_or_init(|| Mutex::new(Self::begin())).lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin() -> Self {
        let mut policy = TlsPolicy::default();
        policy.cipher_suites.retain(|suite| suite.version() == Version::Tls13 && suite.cipher() == AEAD);
        let connector = Connector::new(&policy, &Trust::Anyone).expect("a client");
        let (connected, mut behind) = Self::handshake(&connector).expect("a first visit");
        let (mut channel, tickets) = client_end(&connected.receive.key, connected.receive.sequence_number);
        while let Some(&[_, _, _, high, low]) = behind.first_chunk() {
            let record_bytes = HEADER_BYTES + usize::from(u16::from_be_bytes([high, low]));
            let mut record: Vec<u8> = behind.drain(..record_bytes).collect();
            channel.receive(&mut record, 0).expect("the server's records are sound");
        }
        let tickets = tickets.take();
        let message = Message::parse(tickets.first().expect("a ticket")).expect("our own ticket is sound");
        Self { connector, key_schedule: connected.key_schedule, message }
    }

    /// Runs a handshake. Gives what the server said behind it, too.
    fn handshake(connector: &Connector) -> Result<(Box<Connected>, Vec<u8>), HandshakeFailure> {
        let (mut to_server, mut to_client, mut connected) = (Vec::new(), Vec::new(), None);
        let mut client =
            ClientHandshake::start(connector, SERVER_NAME, &mut to_server).expect("a first flight");
        let mut server = Handshake::new(acceptor());
        for _ in 0..FLIGHTS {
            let step = server.advance(&mut to_server, &mut to_client)?;
            if connected.is_none() {
                match client.advance(&mut to_client, &mut to_server).expect("what we answer is sound") {
                    ConnectStep::NeedInput => {}
                    ConnectStep::Connected(now) => connected = Some(now),
                }
            }
            if let Step::Established(established) = step {
                let connected = connected.expect("the client is done before the server");
                assert_eq!(established.resumed, connected.resumed);
                return Ok((connected, to_client));
            }
        }
        panic!("the handshake does not end");
    }

    /// The client takes a ticket's message, and comes back.
    fn comes_back(&mut self, message: &[u8]) -> Verdict {
        if self.key_schedule.take_ticket(message).is_err() {
            return Verdict::Refused;
        }
        let brought = Message::parse(message).expect("the client has taken it");
        let is_ours = brought.ticket == self.message.ticket;
        match Self::handshake(&self.connector) {
            Ok((connected, _)) if connected.resumed => {
                assert!(is_ours && brought.nonce == self.message.nonce, "resumed by {brought:?}");
                Verdict::Taken
            }
            Ok(_) => Verdict::Refused,
            // The nonce is a part of the key that the client proves to have (RFC 8446 4.6.1).
            Err(failure) => {
                assert!(is_ours && brought.nonce != self.message.nonce, "{failure} after {brought:?}");
                assert_ne!(failure.kind(), FailureKind::Internal);
                Verdict::Refused
            }
        }
    }
}
