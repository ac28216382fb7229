//! The kernel engine: Linux opens the records (kTLS), and gives their data straight into the receiver's memory.
//!
//! Records that are no application data come one at a time, with their type. What they mean is said by the [`Channel`], as for
//! records that are opened here: alerts, `close_notify`, key updates. Behind a key update of the peer's the kernel opens nothing
//! until it gets the next key (Linux 6.14); an older one takes no other, and the connection ends with that reason.

use super::{Arrival, Connection, End, Fault, check_room, user};
use crate::kernel::{Refusal, attaching_failed, direction_key, installing_failed};
use linerate_os::kernel_tls::{Calls, Opened, lacks_next_key};
use linerate_placement::Reason;
use linerate_record::{
    Channel, Combination, ContentType, Event, HandOverFault, Handover, KeySource, RecordError, Version,
};
use rustix::io::Errno;
use std::{io, os::fd::BorrowedFd};

/// Whether the peer is expected to pad records (TLS 1.3 alone).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// It may: the kernel decrypts into memory of its own, and copies.
    Possible,
    /// It does not: the kernel decrypts straight into ours, and decrypts a padded record twice. For a peer of our own alone, which pads
    /// nothing: behind a record that was padding and no content, Linux 6.12 gave a wrong byte where this was promised
    /// (tests/guest, `padded_records_are_opened_without_their_padding`).
    NotExpected,
}

/// What a connection has beside its socket and its channel.
#[derive(Debug)]
pub struct Incoming {
    ended: Option<End>,
    expects_no_padding: bool,
}

/// Hands the receiving side of a connection over. The kernel opens the records from the next byte on that the socket gives.
///
/// The switch is one system call, the last that can fail. These must hold before it; each is looked at in this order:
///
/// 1. Every byte that was received here has been opened here: no record has begun whose end has not come. (`incoming` tells;
///    [`user::Incoming::turn_to_boundary`] gets there.)
/// 2. No record was refused, and the peer has not ended its side.
/// 3. The connection is established, so that the kernel lets the `tls` module attach; it is attached already where sending was
///    handed over. Attached and without a key, the socket goes on as it was.
/// 4. The kernel takes the key (the switch).
///
/// # Errors
/// The user engine goes on as if nothing had been tried. Only after [`Reason::NotReady`] is there a use in trying again.
pub fn promote<K: KeySource>(
    calls: &dyn Calls,
    socket: BorrowedFd<'_>,
    channel: &mut Channel<K>,
    incoming: &user::Incoming,
    padding: Padding,
) -> Result<Incoming, Refusal> {
    // INV-RECEIVE-1
    user::check_boundary(incoming).map_err(|_| Reason::NotReady)?;
    if !channel.keeps_receiving_key() {
        return Err(Reason::NotReady.into());
    }
    match calls.attach(socket) {
        Ok(()) => {}
        Err(error) if Errno::from_io_error(&error) == Some(Errno::EXIST) => {}
        Err(error) => return Err(attaching_failed(error)),
    }
    let switched = channel.hand_over_receiving(|handover| {
        let combination = Combination { version: handover.version(), cipher: handover.cipher() };
        install(calls, socket, handover).map_err(|error| installing_failed(combination, error))
    });
    switched.map_err(|fault| match fault {
        HandOverFault::NotReady(_) => Reason::NotReady.into(),
        HandOverFault::Refused(refusal) => refusal,
    })?;
    let is_due = padding == Padding::NotExpected && channel.version() == Version::Tls13;
    // An older kernel copies: that is no reason against it.
    let expects_no_padding = is_due && calls.expect_no_padding(socket, true).is_ok();
    Ok(Incoming { ended: None, expects_no_padding })
}

impl Incoming {
    /// Whether the kernel decrypts straight into the receiver's memory: always in TLS 1.2, and in TLS 1.3 if no padding is
    /// expected and the kernel knows that promise (Linux 6.0).
    #[must_use]
    pub fn expects_no_padding(&self) -> bool {
        self.expects_no_padding
    }

    /// How the peer ended its side, if it did.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Takes once what the kernel has opened, into `buffer` (at least [`super::LEAST_BUFFER_BYTES`]), and gives data to `take`.
    ///
    /// # Errors
    /// The socket's, or a fault of the peer, whose alert is among the answers; [`Fault::NoNewKey`]. Nothing can be received any
    /// more.
    pub fn turn<K: KeySource>(
        &mut self,
        calls: &dyn Calls,
        mut connection: Connection<'_, K>,
        buffer: &mut [u8],
        take: impl FnOnce(&[u8]),
    ) -> Result<Arrival, Fault> {
        if let Some(end) = self.ended {
            return Ok(Arrival::End(end));
        }
        check_room(buffer)?;
        let opened = match calls.receive(connection.socket, buffer) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Arrival::Nothing),
            Err(error) => return Err(self.refuse(&mut connection, receiving_failed(error))),
        };
        let (content_type, bytes) = match opened {
            Opened::Data(bytes) => (ContentType::ApplicationData, bytes),
            Opened::Control { content_type, bytes } => match ContentType::from_wire(content_type) {
                Some(content_type) => (content_type, bytes),
                None => {
                    let fault =
                        RecordError::UnexpectedMessage("a protected record of an unknown content type");
                    return Err(self.refuse(&mut connection, fault.into()));
                }
            },
            Opened::End => {
                self.ended = Some(End::CutOff);
                return Ok(Arrival::End(End::CutOff));
            }
        };
        let payload = &buffer[..bytes];
        let (socket, now_ms) = (connection.socket, connection.now_ms);
        let event = connection
            .channel
            .receive_opened(content_type, payload, now_ms, |handover| install(calls, socket, handover));
        let event = event.map_err(|fault| match fault {
            HandOverFault::NotReady(fault) => Fault::Record(fault),
            HandOverFault::Refused(error) => Fault::NoNewKey(error),
        });
        let mut data_bytes = 0;
        match event.map_err(|fault| self.refuse(&mut connection, fault))? {
            Event::Data(_) => {
                data_bytes = bytes as u64;
                take(payload);
            }
            Event::Nothing | Event::KeyUpdate(_) => {}
            Event::CloseNotify => {
                self.ended = Some(End::Announced);
                return Ok(Arrival::End(End::Announced));
            }
            Event::RenegotiationRefused => connection.refuse_renegotiation()?,
        }
        // A record of another type may wait behind a call that gave less than there was room for.
        Ok(Arrival::Came { data_bytes, drained: false })
    }
}

impl Incoming {
    /// A record at fault is the last of its connection (INV-OPEN-1).
    fn refuse<K: KeySource>(&mut self, connection: &mut Connection<'_, K>, fault: Fault) -> Fault {
        self.ended = Some(End::CutOff);
        connection.channel.fail_receiving();
        connection.refuse(fault)
    }
}

fn install(calls: &dyn Calls, socket: BorrowedFd<'_>, handover: &Handover<'_>) -> io::Result<()> {
    calls.install_receiving(socket, &direction_key(handover))
}

/// What the kernel says of a record that it does not open (net/tls/tls_sw.c: `tls_rx_msg_size`, `tls_rx_one_record`).
fn receiving_failed(error: io::Error) -> Fault {
    match Errno::from_io_error(&error) {
        Some(Errno::BADMSG) => RecordError::BadRecordMac.into(),
        Some(Errno::MSGSIZE) => RecordError::Overflow.into(),
        Some(Errno::INVAL) => RecordError::UnexpectedMessage("a record of another version").into(),
        // The kernel waits behind a KeyUpdate whose rest is in another record, which it would have to open first.
        _ if lacks_next_key(&error) => Fault::NoNewKey(error),
        _ => Fault::Socket(error),
    }
}
