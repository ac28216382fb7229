//! Throwing bodies away unread, so that the sender is what is measured.
//!
//! *Plaintext:* a body of announced length is thrown away by the kernel, exactly that many bytes. Other bodies
//! (chunked, or until the connection closes) are read.
//!
//! *TLS, connections that are kept:* where the response ends has to be known, and how many bytes of records a body takes
//! is not announced. So the records are walked: the five bytes of each header are read, and what follows is thrown
//! away. Records that are short, or have to be understood (the head's), are read and opened: key updates, tickets and
//! alerts are among the short ones. A server that pads its records (none is known) would break the count, which shows
//! as a fault.
//!
//! *TLS, a connection for each response:* everything after the head's record is thrown away until the server closes. The
//! response counts as whole if at least as many bytes came as its head announced.
//!
//! What is thrown away is neither authenticated nor compared.

use std::time::Instant;

use linerate_os::socket;
use linerate_record::RecordHeader;

use super::{Connection, Link, Received};
use crate::{fault::Fault, response_fault::ResponseFault, workbench::Workbench};

/// Read at a time while a head is waited for: what of the body comes with it is copied in vain.
pub(super) const HEAD_READ_BYTES: usize = 4096;
/// Records up to this length are opened: any that is about the connection is shorter.
const OPENED_RECORD_BYTES: usize = 4096;
/// A full record's plaintext and what goes around it: how many bytes of a body are in bytes thrown away with their
/// records, as long as that is not known.
const FULL_RECORD: (u64, u64) = (16_384, 16_384 + 22);

/// Where the walk along the records stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walk {
    /// Left of the record that is being thrown away.
    skip_bytes: usize,
    /// Its plaintext.
    plaintext_bytes: u64,
}

impl Connection {
    /// Receives in the way of a run that discards; nothing if the bytes that come next have to be read.
    pub(super) fn receive_discarding(
        &mut self,
        bench: &mut Workbench<'_>,
    ) -> Result<Option<Received>, Fault> {
        let announced = self.exchange.as_ref().and_then(|exchange| exchange.response.remaining_bytes());
        match (&self.link, announced) {
            (Link::Connecting | Link::Handshaking { .. }, _) => Ok(None),
            (Link::Plain, Some(remaining @ 1..)) => self.discard_body(remaining, bench).map(Some),
            (Link::Plain, _) => Ok(None),
            (Link::Tls(_), Some(1..)) if bench.run.closes && self.walk.skip_bytes == 0 => {
                self.throw_away(bench).map(Some)
            }
            (Link::Tls(_), _) => self.walk_on(bench).map(Some),
        }
    }

    /// Throws away up to `limit_bytes`; gives how many, and whether there may be more.
    fn discard(&mut self, limit_bytes: usize, bench: &mut Workbench<'_>) -> Result<Received, Fault> {
        let length = limit_bytes.min(bench.scratch.len());
        let discarded = socket::discard(&self.socket, &mut bench.scratch[..length]);
        match self.received(discarded)? {
            None => Ok(Received::Nothing),
            Some(0) => Ok(Received::End),
            Some(bytes) => {
                bench.tally.totals.received_bytes += bytes as u64;
                self.progressed = Instant::now();
                Ok(Received::Bytes(bytes))
            }
        }
    }

    /// Plaintext: the body alone.
    fn discard_body(&mut self, remaining: u64, bench: &mut Workbench<'_>) -> Result<Received, Fault> {
        let limit = usize::try_from(remaining).unwrap_or(usize::MAX);
        let received = self.discard(limit, bench)?;
        if let Received::Bytes(bytes) = received {
            self.pass_over(bytes as u64, bench)?;
        }
        Ok(received)
    }

    /// The body's next `bytes` were thrown away.
    fn pass_over(&mut self, bytes: u64, bench: &mut Workbench<'_>) -> Result<(), Fault> {
        let Some(exchange) = &mut self.exchange else { return Ok(()) };
        exchange.response.skip(bytes).map_err(Fault::Response)?;
        bench.tally.totals.body_bytes += bytes;
        if exchange.response.remaining_bytes() == Some(0) {
            self.complete(bench, self.progressed);
        }
        Ok(())
    }

    /// TLS: the rest of the connection.
    fn throw_away(&mut self, bench: &mut Workbench<'_>) -> Result<Received, Fault> {
        let received = self.discard(usize::MAX, bench)?;
        if let (Received::Bytes(bytes), Some(exchange)) = (&received, &mut self.exchange) {
            let before = exchange.thrown_away_body_bytes();
            exchange.thrown_away_bytes += *bytes as u64 + self.incoming.partial.len() as u64;
            self.incoming.partial.clear();
            bench.tally.totals.body_bytes += exchange.thrown_away_body_bytes() - before;
        }
        Ok(received)
    }

    /// The server has closed: whether that is the end of a response that was thrown away.
    pub(super) fn finish_thrown_away(&mut self, bench: &mut Workbench<'_>) -> bool {
        let Some(exchange) = &mut self.exchange else { return false };
        let remaining = match exchange.response.remaining_bytes() {
            Some(remaining) if exchange.thrown_away_bytes >= remaining.max(1) => remaining,
            _ => return false,
        };
        bench.tally.totals.body_bytes += remaining - exchange.thrown_away_body_bytes();
        true
    }

    /// TLS: a record's header, a record that is opened, or a part of one that is not.
    fn walk_on(&mut self, bench: &mut Workbench<'_>) -> Result<Received, Fault> {
        if self.walk.skip_bytes > 0 {
            let received = self.discard(self.walk.skip_bytes, bench)?;
            if let Received::Bytes(bytes) = received {
                self.walk.skip_bytes -= bytes;
                if self.walk.skip_bytes == 0 {
                    let Link::Tls(channel) = &mut self.link else { return Ok(received) };
                    channel.skip_record().map_err(Fault::Record)?;
                    self.pass_over(self.walk.plaintext_bytes, bench)?;
                }
            }
            return Ok(received);
        }
        let Link::Tls(channel) = &self.link else { return Ok(Received::Nothing) };
        let layout = channel.incoming_layout();
        let held_bytes = self.incoming.partial.len();
        let header = RecordHeader::parse(&self.incoming.partial, layout).map_err(Fault::Record)?;
        let wanted_bytes = header.map_or(linerate_record::HEADER_BYTES, RecordHeader::record_bytes);
        self.incoming.partial.resize(wanted_bytes, 0);
        let received = socket::receive(&self.socket, &mut self.incoming.partial[held_bytes..]);
        let bytes = match self.received(received) {
            Ok(Some(bytes @ 1..)) => bytes,
            other => {
                self.incoming.partial.truncate(held_bytes);
                return Ok(if other?.is_some() { Received::End } else { Received::Nothing });
            }
        };
        self.incoming.partial.truncate(held_bytes + bytes);
        bench.tally.totals.received_bytes += bytes as u64;
        self.progressed = Instant::now();
        let Some(header) = RecordHeader::parse(&self.incoming.partial, layout).map_err(Fault::Record)? else {
            return Ok(Received::Bytes(bytes));
        };
        if self.incoming.partial.len() == header.record_bytes() {
            let mut record = std::mem::take(&mut self.incoming.partial);
            self.open_records(&mut record, bench, self.progressed)?;
            record.clear();
            self.incoming.partial = record;
        } else if self.incoming.partial.len() == linerate_record::HEADER_BYTES
            && header.record_bytes() > OPENED_RECORD_BYTES
        {
            let plaintext_bytes = (header.record_bytes().saturating_sub(layout.overhead_bytes())) as u64;
            let announced = self.exchange.as_ref().and_then(|exchange| exchange.response.remaining_bytes());
            if announced.is_some_and(|remaining| remaining >= plaintext_bytes) {
                self.incoming.partial.clear();
                self.walk = Walk { skip_bytes: header.body_bytes, plaintext_bytes };
            } else if announced.is_some_and(|remaining| remaining > 0) {
                return Err(Fault::Response(ResponseFault("more bytes than the head announced")));
            }
        }
        Ok(Received::Bytes(bytes))
    }
}

impl super::exchange::Exchange {
    /// Bytes of the body in what was thrown away: an estimate, until the server closes.
    fn thrown_away_body_bytes(&self) -> u64 {
        let (plaintext, record) = FULL_RECORD;
        (self.thrown_away_bytes / record * plaintext + self.thrown_away_bytes % record)
            .min(self.response.remaining_bytes().unwrap_or(0))
    }
}
