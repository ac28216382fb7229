//! How Linux opens records: whole ones alone, types never mixed in one call, and nothing behind a KeyUpdate before there is
//! another key.

use linerate_os::{
    kernel_tls::{DirectionKey, Opened},
    socket,
};
use linerate_record::{
    Cipher, ContentType, HEADER_BYTES, Layout, Opener, RecordError, RecordHeader, TrafficKey, Version,
};
use std::{io, os::fd::BorrowedFd};

const EBADMSG: i32 = 74;
const EMSGSIZE: i32 = 90;
const EKEYEXPIRED: i32 = 127;
/// `HandshakeType.key_update`
const KEY_UPDATE: u8 = 24;

fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

fn number_of(fault: RecordError) -> i32 {
    if fault == RecordError::Overflow { EMSGSIZE } else { EBADMSG }
}

/// A record that is open, and not taken to its end.
struct OpenRecord {
    content_type: ContentType,
    payload: Vec<u8>,
    taken_bytes: usize,
}

/// The receiving side of a socket.
pub(crate) struct Receiver {
    version: Version,
    layout: Layout,
    opener: Opener,
    /// Bytes of a record that is not whole.
    partial: Vec<u8>,
    open: Option<OpenRecord>,
    /// Nothing is opened behind a KeyUpdate until there is another key: since Linux 6.14.
    pauses: bool,
    waits_for_key: bool,
    /// The peer has ended.
    ended: bool,
}

fn opener(key: &DirectionKey<'_>) -> Opener {
    let traffic = TrafficKey::new(key.version, key.cipher, key.key, vector(key)).unwrap();
    Opener::new(&traffic, key.sequence).unwrap()
}

/// The salt alone, where records bring their nonces.
fn vector(key: &DirectionKey<'_>) -> [u8; 12] {
    let mut vector = *key.vector;
    if key.version == Version::Tls12 && key.cipher != Cipher::ChaCha20Poly1305 {
        vector[4..].fill(0xEE);
    }
    vector
}

impl Receiver {
    pub(crate) fn new(key: &DirectionKey<'_>, pauses: bool) -> Self {
        Self {
            version: key.version,
            layout: Layout::new(key.version, key.cipher),
            opener: opener(key),
            partial: Vec::new(),
            open: None,
            pauses,
            waits_for_key: false,
            ended: false,
        }
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn install(&mut self, key: &DirectionKey<'_>) {
        self.opener = opener(key);
        self.waits_for_key = false;
    }

    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Opened> {
        let mut taken_bytes = 0;
        loop {
            match self.open_next(socket) {
                Ok(true) => {}
                Ok(false) if taken_bytes > 0 => return Ok(Opened::Data(taken_bytes)),
                Ok(false) => return Ok(Opened::End),
                Err(_) if taken_bytes > 0 => return Ok(Opened::Data(taken_bytes)),
                Err(error) => return Err(error),
            }
            let Some(record) = &mut self.open else { continue };
            let is_data = record.content_type == ContentType::ApplicationData;
            if !is_data && taken_bytes > 0 {
                return Ok(Opened::Data(taken_bytes));
            }
            let rest = &record.payload[record.taken_bytes..];
            let bytes = rest.len().min(buffer.len() - taken_bytes);
            buffer[taken_bytes..taken_bytes + bytes].copy_from_slice(&rest[..bytes]);
            record.taken_bytes += bytes;
            taken_bytes += bytes;
            let content_type = record.content_type;
            if record.taken_bytes == record.payload.len() {
                self.open = None;
            }
            if !is_data {
                return Ok(Opened::Control { content_type: content_type.wire(), bytes });
            }
            if taken_bytes == buffer.len() {
                return Ok(Opened::Data(taken_bytes));
            }
        }
    }

    /// Has a record open; false at the end of the connection.
    fn open_next(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        if self.open.is_some() {
            return Ok(true);
        }
        if self.waits_for_key {
            return Err(error(EKEYEXPIRED));
        }
        let mut wanted_bytes = HEADER_BYTES;
        loop {
            if let Some(header) =
                RecordHeader::parse(&self.partial, self.layout).map_err(|fault| error(number_of(fault)))?
            {
                wanted_bytes = header.record_bytes();
                if self.partial.len() == wanted_bytes {
                    break;
                }
            }
            let had_bytes = self.partial.len();
            self.partial.resize(wanted_bytes, 0);
            let received =
                if self.ended { Ok(0) } else { socket::receive(&socket, &mut self.partial[had_bytes..]) };
            self.partial.truncate(had_bytes + received.as_ref().unwrap_or(&0));
            if received? == 0 {
                self.ended = true;
                return Ok(false);
            }
        }
        let mut record = std::mem::take(&mut self.partial);
        let opened = self.opener.open(&mut record).map_err(|fault| error(number_of(fault)))?;
        let payload = record[opened.plaintext].to_vec();
        let is_key_update =
            opened.content_type == ContentType::Handshake && payload.first() == Some(&KEY_UPDATE);
        self.waits_for_key = self.pauses && self.version == Version::Tls13 && is_key_update;
        self.open = Some(OpenRecord { content_type: opened.content_type, payload, taken_bytes: 0 });
        Ok(true)
    }
}
