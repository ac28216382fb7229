//! The user engine: one `recv`, and every record that is whole is opened where it lies.
//!
//! The beginning of a record whose end has not come is kept aside, and stands in front of what comes next: less than a record is
//! copied for each `recv`, however long that is.

use super::{Arrival, Connection, End, Fault, check_room};
use linerate_os::socket;
use linerate_record::{Event, HEADER_BYTES, KeySource, RecordError, RecordHeader};
use std::io;

/// What a connection has beside its socket and its channel.
#[derive(Debug, Default)]
pub struct Incoming {
    /// The beginning of a record.
    partial: Vec<u8>,
    ended: Option<End>,
}

impl Incoming {
    /// Whether every byte that came was opened: the socket's next is the first of a record (INV-RECEIVE-1).
    #[must_use]
    pub fn is_at_boundary(&self) -> bool {
        self.partial.is_empty()
    }

    /// How the peer ended its side, if it did.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Takes records that came behind the handshake's last, before anything else is received. Data goes to `take`; gives how
    /// much that was, in bytes.
    ///
    /// # Errors
    /// As those of [`Incoming::turn`].
    pub fn take_records<K: KeySource>(
        &mut self,
        mut connection: Connection<'_, K>,
        records: &mut [u8],
        take: impl FnMut(&[u8]),
    ) -> Result<u64, Fault> {
        debug_assert!(self.is_at_boundary(), "they come first");
        self.open_records(&mut connection, records, take)
    }

    /// Receives once, into `buffer` (at least [`super::LEAST_BUFFER_BYTES`]), opens the records that are whole, and gives their
    /// data to `take`.
    ///
    /// # Errors
    /// The socket's, or a fault of the peer, whose alert is among the answers. Nothing can be received any more.
    pub fn turn<K: KeySource>(
        &mut self,
        connection: Connection<'_, K>,
        buffer: &mut [u8],
        take: impl FnMut(&[u8]),
    ) -> Result<Arrival, Fault> {
        let room_bytes = buffer.len().saturating_sub(self.partial.len());
        self.turn_of(connection, buffer, room_bytes, take)
    }

    /// As [`Incoming::turn`], but receives no more than to the end of the record that has begun: for a connection that is to be
    /// handed over. At a boundary it receives nothing.
    ///
    /// # Errors
    /// As those of [`Incoming::turn`].
    pub fn turn_to_boundary<K: KeySource>(
        &mut self,
        connection: Connection<'_, K>,
        buffer: &mut [u8],
        take: impl FnMut(&[u8]),
    ) -> Result<Arrival, Fault> {
        if self.is_at_boundary() {
            return Ok(self.ended.map_or(Arrival::Nothing, Arrival::End));
        }
        let header = RecordHeader::parse(&self.partial, connection.channel.incoming_layout())?;
        let wanted_bytes = header.map_or(HEADER_BYTES, RecordHeader::record_bytes);
        let room_bytes = wanted_bytes.saturating_sub(self.partial.len());
        self.turn_of(connection, buffer, room_bytes, take)
    }

    fn turn_of<K: KeySource>(
        &mut self,
        mut connection: Connection<'_, K>,
        buffer: &mut [u8],
        room_bytes: usize,
        take: impl FnMut(&[u8]),
    ) -> Result<Arrival, Fault> {
        if let Some(end) = self.ended {
            return Ok(Arrival::End(end));
        }
        check_room(buffer)?;
        let carried_bytes = self.partial.len();
        // A record's beginning is shorter than a record, and the buffer as long as one.
        let room = &mut buffer[carried_bytes..carried_bytes + room_bytes];
        let bytes = match socket::receive(&connection.socket, room) {
            Ok(0) => {
                self.ended = Some(End::CutOff);
                return Ok(Arrival::End(End::CutOff));
            }
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Arrival::Nothing),
            Err(error) => return Err(Fault::Socket(error)),
        };
        buffer[..carried_bytes].copy_from_slice(&self.partial);
        self.partial.clear();
        let data_bytes = self.open_records(&mut connection, &mut buffer[..carried_bytes + bytes], take)?;
        Ok(Arrival::Came { data_bytes, drained: bytes < room_bytes })
    }

    /// Opens all whole records in `wire` and keeps the rest for later.
    fn open_records<K: KeySource>(
        &mut self,
        connection: &mut Connection<'_, K>,
        wire: &mut [u8],
        mut take: impl FnMut(&[u8]),
    ) -> Result<u64, Fault> {
        let layout = connection.channel.incoming_layout();
        let mut data_bytes = 0;
        let mut rest = wire;
        while self.ended.is_none() {
            let header = match RecordHeader::parse(rest, layout) {
                Ok(header) => header,
                Err(fault) => return Err(self.refuse(connection, fault)),
            };
            let Some(header) = header.filter(|header| header.record_bytes() <= rest.len()) else { break };
            let (record, behind) = rest.split_at_mut(header.record_bytes());
            match connection.channel.receive(record, connection.now_ms) {
                Ok(Event::Data(range)) => {
                    data_bytes += range.len() as u64;
                    take(&record[range]);
                }
                Ok(Event::Nothing | Event::KeyUpdate(_)) => {}
                // RFC 8446 6.1: anything behind a close_notify is ignored.
                Ok(Event::CloseNotify) => self.ended = Some(End::Announced),
                Ok(Event::RenegotiationRefused) => connection.refuse_renegotiation()?,
                Err(fault) => return Err(self.refuse(connection, fault)),
            }
            rest = behind;
        }
        if self.ended.is_none() {
            debug_assert!(
                rest.len() < layout.record_limit_bytes(),
                "a record's beginning is shorter than a record"
            );
            self.partial.extend_from_slice(rest);
        }
        Ok(data_bytes)
    }
}

impl Incoming {
    /// A record at fault is the last of its connection (INV-OPEN-1).
    fn refuse<K: KeySource>(&mut self, connection: &mut Connection<'_, K>, fault: RecordError) -> Fault {
        self.ended = Some(End::CutOff);
        connection.refuse(fault.into())
    }
}

/// What keeps a receiving side from being handed over.
pub(super) fn check_boundary(incoming: &Incoming) -> Result<(), RecordError> {
    if incoming.ended.is_some() {
        return Err(RecordError::Misuse("the peer has ended its side"));
    }
    if !incoming.is_at_boundary() {
        return Err(RecordError::Misuse("a record has begun, and its end has not come"));
    }
    Ok(())
}
