//! Receiving: from the socket, through the record layer, to the bytes of requests.

use super::{Link, Protection, secure::Secure, wire::Wire};
use crate::{ending::Ending, metrics::Direction, workplace::RECEIVE_BYTES};
use linerate_os::socket::Follows;
use linerate_record::{AlertDescription, Channel, Event, KeySource, RecordError, RecordHeader};
use std::rc::Rc;

impl<K: KeySource> Link<K> {
    /// Waits until bytes of a request arrive. False once the peer will send no more.
    pub(crate) async fn receive_some(&mut self) -> Result<bool, Ending> {
        let before = self.wire.arrived.len();
        loop {
            if let Protection::Tls(secure) = &mut self.protection {
                secure.answer(&mut self.wire).await?;
            }
            if self.wire.arrived.len() > before {
                return Ok(true);
            }
            if self.wire.peer_closed || !self.can_send() {
                // Nor is anything awaited that could not be answered.
                return Ok(false);
            }
            self.wire.wait(true, false).await?;
            self.receive_ready()?;
        }
    }

    /// Takes what has arrived, if the runtime says that something has: no system call otherwise.
    pub(super) fn receive_if_ready(&mut self) -> Result<(), Ending> {
        if self.wire.has_something() { self.receive_ready() } else { Ok(()) }
    }

    /// One `recv` and what follows from it.
    pub(super) fn receive_ready(&mut self) -> Result<(), Ending> {
        match &mut self.protection {
            Protection::Plain => self.wire.receive_in_the_clear(),
            Protection::Tls(secure) => secure.receive(&mut self.wire),
        }
    }

    /// Takes bytes that came together with the handshake's last: records that are still sealed.
    ///
    /// # Errors
    /// A fault in them; closing the link sends the alert.
    pub(crate) fn take_records(&mut self, mut wire: Vec<u8>) -> Result<(), Ending> {
        match &mut self.protection {
            Protection::Plain => {
                Err(Ending::Record(RecordError::Misuse("there are no records in the clear")))
            }
            Protection::Tls(secure) => secure.open_records(&mut self.wire, &mut wire),
        }
    }
}

impl<K: KeySource> Secure<K> {
    /// Sends the key update that the peer waits for, and what else waits, without waiting for a response to send it with.
    async fn answer(&mut self, wire: &mut Wire) -> Result<(), Ending> {
        if self.channel.owes_key_update()
            && self.channel.prepare_sending(self.unsent.behind()).map_err(Ending::Record)?
        {
            wire.workplace.metrics.key_updates.of(Direction::Sent).increment();
        }
        if self.has_waiting() {
            // Waiting for the peer to take an answer is no reason to wait longer for what it has to say.
            let waited_for = wire.watch.wait();
            self.flush(wire, Follows::Nothing).await?;
            wire.watch.begin(waited_for.0, waited_for.1);
        }
        Ok(())
    }

    /// One `recv`, and the records that are whole by then.
    pub(super) fn receive(&mut self, wire: &mut Wire) -> Result<(), Ending> {
        let workplace = Rc::clone(&wire.workplace);
        let mut buffer = workplace.receive.borrow_mut();
        let carried = std::mem::take(&mut self.partial);
        // A record's beginning is shorter than a record, and the buffer holds more than one.
        buffer[..carried.len()].copy_from_slice(&carried);
        match wire.receive(&mut buffer[carried.len()..])? {
            Some(received) => self.open_records(wire, &mut buffer[..carried.len() + received]),
            None => {
                self.partial = carried;
                Ok(())
            }
        }
    }

    /// Opens all whole records in `incoming` and keeps the rest for later.
    fn open_records(&mut self, wire: &mut Wire, mut incoming: &mut [u8]) -> Result<(), Ending> {
        let Self { channel, unsent, .. } = self;
        let now_ms = wire.workplace.now_ms();
        while !wire.peer_closed {
            let header = match RecordHeader::parse(incoming, channel.incoming_layout()) {
                Ok(header) => header,
                Err(fault) => return Err(answer(channel, fault, unsent.behind())),
            };
            let Some(header) = header.filter(|header| header.record_bytes() <= incoming.len()) else { break };
            let (record, behind) = incoming.split_at_mut(header.record_bytes());
            match channel.receive(record, now_ms) {
                Ok(Event::Data(range)) => wire.arrived.extend_from_slice(&record[range]),
                Ok(Event::Nothing) => {}
                Ok(Event::CloseNotify) => wire.peer_closed = true,
                Ok(Event::KeyUpdate(_)) => {
                    wire.workplace.metrics.key_updates.of(Direction::Received).increment();
                }
                Ok(Event::RenegotiationRefused) => {
                    channel
                        .alert(AlertDescription::NoRenegotiation, unsent.behind())
                        .map_err(Ending::Record)?;
                }
                Err(fault) => return Err(answer(channel, fault, unsent.behind())),
            }
            incoming = behind;
        }
        if wire.peer_closed {
            // RFC 8446 6.1: anything behind a close_notify is ignored.
            return Ok(());
        }
        debug_assert!(
            incoming.len() < RECEIVE_BYTES / 2 + 1024,
            "a record's beginning is shorter than a record"
        );
        self.partial.extend_from_slice(incoming);
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
