//! What a connection does on its socket, whatever it speaks: it sends what waits, is woken for large pieces, and opens
//! records.

use std::{io, mem};

use linerate_os::socket::{self, Follows, Socket};
use linerate_record::{AlertDescription, Channel, ContentType, Event, RecordHeader};
use linerate_tls::ClientKeySchedule;

use crate::{fault::Fault, report::Totals};

/// What is waited for at once of a large body.
const LOW_WATER_BYTES: usize = 128 * 1024;
/// Less than this is not worth the system calls.
const LEAST_LOW_WATER_BYTES: usize = 24 * 1024;
/// Plaintext of a record.
const RECORD_BYTES: usize = 1 << 14;

/// What is to be sent, in the order in which it was added.
#[derive(Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    sent_bytes: usize,
}

impl Outgoing {
    /// Whether all of it was sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// To append to.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends data in records, and before it what the connection owes.
    ///
    /// # Errors
    /// [`Fault::Record`]: the keys are used up.
    pub(crate) fn seal(
        &mut self,
        channel: &mut Channel<ClientKeySchedule>,
        data: &[u8],
    ) -> Result<(), Fault> {
        for plaintext in data.chunks(RECORD_BYTES) {
            channel.prepare_sending(&mut self.bytes).map_err(Fault::Record)?;
            let sealer = channel.sealer().map_err(Fault::Record)?;
            let sealed = sealer.seal_append(ContentType::ApplicationData, plaintext, &mut self.bytes);
            sealed.map_err(Fault::Record)?;
        }
        Ok(())
    }

    /// Sends as much as the socket takes.
    ///
    /// # Errors
    /// The kernel's: the connection is broken.
    pub(crate) fn send(&mut self, socket: &Socket, totals: &mut Totals) -> io::Result<()> {
        while self.sent_bytes < self.bytes.len() {
            match socket::send(socket, &self.bytes[self.sent_bytes..], Follows::Nothing) {
                Ok(bytes) => {
                    self.sent_bytes += bytes;
                    totals.sent_bytes += bytes as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.sent_bytes = 0;
        Ok(())
    }
}

/// How much a socket waits for before it counts as readable.
pub(crate) struct LowWater(usize);

impl Default for LowWater {
    /// The kernel's.
    fn default() -> Self {
        Self(1)
    }
}

impl LowWater {
    /// While so much is certain to come, the kernel wakes us for large pieces of it, not for each record that the server
    /// sends.
    ///
    /// # Errors
    /// [`Fault::Socket`]; none is known.
    pub(crate) fn set(&mut self, socket: &Socket, certain_bytes: usize) -> Result<(), Fault> {
        let low_water_bytes = match certain_bytes {
            0..LEAST_LOW_WATER_BYTES => 1,
            certain_bytes => certain_bytes.min(LOW_WATER_BYTES),
        };
        if low_water_bytes != self.0 {
            socket::set_receive_low_water(socket, low_water_bytes).map_err(Fault::Socket)?;
            self.0 = low_water_bytes;
        }
        Ok(())
    }
}

/// Records as they come, opened in place.
#[derive(Default)]
pub(crate) struct Incoming {
    /// The beginning of a record that is not whole.
    pub(crate) partial: Vec<u8>,
    /// The server said that it will send no more.
    pub(crate) close_notified: bool,
}

impl Incoming {
    /// The data of the next record in `wire` that has any, and `wire` behind it. What has to be answered is sent at once; the
    /// beginning of a record is kept. Nothing is left once this gives `None`.
    ///
    /// # Errors
    /// [`Fault::Record`], of which the server is told as far as it can be; [`Fault::Socket`] where an answer cannot be sent.
    pub(crate) fn next_data<'wire>(
        &mut self,
        channel: &mut Channel<ClientKeySchedule>,
        wire: &mut &'wire mut [u8],
        elapsed_ms: u64,
        (outgoing, socket, totals): (&mut Outgoing, &Socket, &mut Totals),
    ) -> Result<Option<&'wire [u8]>, Fault> {
        while !self.close_notified {
            let rest = mem::take(wire);
            let header = RecordHeader::parse(rest, channel.incoming_layout()).map_err(Fault::Record)?;
            let Some(header) = header.filter(|header| header.record_bytes() <= rest.len()) else {
                self.partial.extend_from_slice(rest);
                break;
            };
            let (record, behind) = rest.split_at_mut(header.record_bytes());
            *wire = behind;
            match channel.receive(record, elapsed_ms) {
                Ok(Event::Data(range)) if range.is_empty() => {}
                Ok(Event::Data(range)) => return Ok(Some(&record[range])),
                Ok(Event::Nothing) => {}
                Ok(Event::CloseNotify) => self.close_notified = true,
                Ok(Event::KeyUpdate(_)) => {
                    if channel.owes_key_update() {
                        channel.prepare_sending(outgoing.buffer()).map_err(Fault::Record)?;
                    }
                    outgoing.send(socket, totals).map_err(Fault::Socket)?;
                }
                Ok(Event::RenegotiationRefused) => {
                    let refusal = channel.alert(AlertDescription::NoRenegotiation, outgoing.buffer());
                    refusal.map_err(Fault::Record)?;
                    outgoing.send(socket, totals).map_err(Fault::Socket)?;
                }
                Err(fault) => {
                    if let Some(description) = fault.alert() {
                        // The fault is what counts, whether or not the server can be told.
                        let _ = channel.alert(description, outgoing.buffer());
                        let _ = outgoing.send(socket, totals);
                    }
                    return Err(Fault::Record(fault));
                }
            }
        }
        Ok(None)
    }
}
