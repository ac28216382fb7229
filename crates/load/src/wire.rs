//! What a connection does on its socket, whatever it speaks: it sends what waits, is woken for large pieces, and opens
//! records.

use std::io;

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

    /// How much was not sent.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.bytes.len() - self.sent_bytes
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

/// A record that was opened in place.
pub(crate) struct Opened<'wire> {
    /// Its data; empty in any other record.
    pub(crate) data: &'wire [u8],
    /// The server will send no more.
    pub(crate) is_close_notify: bool,
    /// What follows it.
    pub(crate) rest: &'wire mut [u8],
}

/// What opening the first record of some bytes came to.
pub(crate) enum First<'wire> {
    /// It was opened.
    Opened(Opened<'wire>),
    /// It is not whole: these are its beginning.
    Partial(&'wire [u8]),
}

/// Opens the first record in `wire`. What it has to be answered with goes to `outgoing`.
///
/// # Errors
/// [`Fault::Record`], with the alert that tells the server in `outgoing`.
pub(crate) fn open_first<'wire>(
    channel: &mut Channel<ClientKeySchedule>,
    wire: &'wire mut [u8],
    elapsed_ms: u64,
    outgoing: &mut Outgoing,
) -> Result<First<'wire>, Fault> {
    let header = RecordHeader::parse(wire, channel.incoming_layout()).map_err(Fault::Record)?;
    let Some(header) = header.filter(|header| header.record_bytes() <= wire.len()) else {
        return Ok(First::Partial(wire));
    };
    let (record, rest) = wire.split_at_mut(header.record_bytes());
    let (mut data, mut is_close_notify) = (0..0, false);
    match channel.receive(record, elapsed_ms) {
        Ok(Event::Data(range)) => data = range,
        Ok(Event::Nothing) => {}
        Ok(Event::CloseNotify) => is_close_notify = true,
        Ok(Event::KeyUpdate(_)) => {
            if channel.owes_key_update() {
                channel.prepare_sending(outgoing.buffer()).map_err(Fault::Record)?;
            }
        }
        Ok(Event::RenegotiationRefused) => {
            let refusal = channel.alert(AlertDescription::NoRenegotiation, outgoing.buffer());
            refusal.map_err(Fault::Record)?;
        }
        Err(fault) => {
            if let Some(description) = fault.alert() {
                // The fault is what counts, whether or not the server can be told.
                let _ = channel.alert(description, outgoing.buffer());
            }
            return Err(Fault::Record(fault));
        }
    }
    Ok(First::Opened(Opened { data: &record[data], is_close_notify, rest }))
}
