//! Receiving: from the socket, through the record layer, to the bytes of requests.

use super::{Link, Protection};
use crate::{ending::Ending, metrics::Direction, workplace::RECEIVE_BYTES};
use linerate_os::socket;
use linerate_record::{AlertDescription, Channel, Event, KeySource, RecordError, RecordHeader};
use std::io;
use tokio::io::Interest;

/// Bytes of further requests that may wait behind the one that is answered; the socket holds the others back
/// (INV-BOUND-1).
const ARRIVED_LIMIT_BYTES: usize = 64 * 1024;

impl<K: KeySource> Link<K> {
    /// Waits until bytes of a request arrive. False once the peer will send no more.
    pub(crate) async fn receive_some(&mut self) -> Result<bool, Ending> {
        let before = self.arrived.len();
        loop {
            self.answer_key_update()?;
            if !self.unsent.is_empty() || self.has_control() {
                // Waiting for the peer to take an answer is no reason to wait longer for what it has to say.
                let waited_for = self.watch.wait();
                self.flush().await?;
                self.watch.begin(waited_for.0, waited_for.1);
            }
            if self.arrived.len() > before {
                return Ok(true);
            }
            if self.peer_closed || !self.can_send() {
                // Nor is anything awaited that could not be answered.
                return Ok(false);
            }
            self.wait(true, false).await?;
            self.receive_ready()?;
        }
    }

    /// Whether incoming bytes are wanted at the moment.
    pub(super) fn wants_to_receive(&self) -> bool {
        !self.peer_closed && self.arrived.len() < ARRIVED_LIMIT_BYTES
    }

    /// Takes what has arrived, if the runtime says that something has: no system call otherwise.
    pub(super) fn receive_if_ready(&mut self) -> Result<(), Ending> {
        if self.wants_to_receive() && self.stream.try_io(Interest::READABLE, || Ok(())).is_ok() {
            self.receive_ready()?;
        }
        Ok(())
    }

    /// One `recv` and what follows from it.
    pub(super) fn receive_ready(&mut self) -> Result<(), Ending> {
        let workplace = std::rc::Rc::clone(&self.workplace);
        let mut buffer = workplace.receive.borrow_mut();
        let carried = std::mem::take(&mut self.partial);
        // A record's beginning is shorter than a record, and the buffer holds more than one.
        buffer[..carried.len()].copy_from_slice(&carried);
        let room = &mut buffer[carried.len()..];
        let received = match socket::receive(&self.stream, room) {
            Ok(0) => {
                self.peer_closed = true;
                return Ok(());
            }
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.clear_readiness(Interest::READABLE);
                self.partial = carried;
                return Ok(());
            }
            Err(error) => return Err(Ending::Socket(error)),
        };
        if received < room.len() {
            // The socket is empty now; the next edge will say when it is not. Saves a `recv` that finds nothing.
            self.clear_readiness(Interest::READABLE);
        }
        match self.protection {
            Protection::Plain => self.arrived.extend_from_slice(&buffer[..received]),
            Protection::Tls(_) => self.open_records(&mut buffer[..carried.len() + received])?,
        }
        Ok(())
    }

    /// Takes bytes that came together with the handshake's last: records that are still sealed.
    ///
    /// # Errors
    /// A fault in them; closing the link sends the alert.
    pub(crate) fn take_records(&mut self, mut wire: Vec<u8>) -> Result<(), Ending> {
        self.open_records(&mut wire)
    }

    /// Opens all whole records in `wire` and keeps the rest for later.
    fn open_records(&mut self, mut wire: &mut [u8]) -> Result<(), Ending> {
        let Protection::Tls(channel) = &mut self.protection else { return Ok(()) };
        let now_ms = self.workplace.now_ms();
        let metrics = &self.workplace.metrics;
        while !self.peer_closed {
            let header = match RecordHeader::parse(wire, channel.incoming_layout()) {
                Ok(header) => header,
                Err(fault) => return Err(answer(channel, fault, self.unsent.behind())),
            };
            let Some(header) = header.filter(|header| header.record_bytes() <= wire.len()) else { break };
            let (record, behind) = wire.split_at_mut(header.record_bytes());
            match channel.receive(record, now_ms) {
                Ok(Event::Data(range)) => self.arrived.extend_from_slice(&record[range]),
                Ok(Event::Nothing) => {}
                Ok(Event::CloseNotify) => self.peer_closed = true,
                Ok(Event::KeyUpdate(_)) => metrics.key_updates.of(Direction::Received).increment(),
                Ok(Event::RenegotiationRefused) => {
                    channel
                        .alert(AlertDescription::NoRenegotiation, self.unsent.behind())
                        .map_err(Ending::Record)?;
                }
                Err(fault) => return Err(answer(channel, fault, self.unsent.behind())),
            }
            wire = behind;
        }
        if self.peer_closed {
            // RFC 8446 6.1: anything behind a close_notify is ignored.
            return Ok(());
        }
        debug_assert!(wire.len() < RECEIVE_BYTES / 2 + 1024, "a record's beginning is shorter than a record");
        self.partial.extend_from_slice(wire);
        Ok(())
    }

    /// Sends the key update that the peer waits for, without waiting for a response to send it with.
    fn answer_key_update(&mut self) -> Result<(), Ending> {
        if let Protection::Tls(channel) = &mut self.protection
            && channel.owes_key_update()
            && channel.prepare_sending(self.unsent.behind()).map_err(Ending::Record)?
        {
            self.workplace.metrics.key_updates.of(Direction::Sent).increment();
        }
        Ok(())
    }
}

/// Seals the alert that a fault deserves, so that closing sends it.
fn answer<K: KeySource>(channel: &mut Channel<K>, fault: RecordError, unsent: &mut Vec<u8>) -> Ending {
    if let Some(description) = fault.alert() {
        // If even that fails there is nothing left to say; the fault itself is what counts.
        let _ = channel.alert(description, unsent);
    }
    Ending::Record(fault)
}
