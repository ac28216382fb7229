//! The switch: a connection's sending side goes from the user engine into the kernel. There is no way back from it.

use super::{Carried, Departure, bytes_for, records_at_most};
use linerate_os::kernel_tls::{Calls, DirectionKey};
use linerate_placement::{Combination, Lack, Reason};
use linerate_record::{Channel, ContentType, HandOverFault, Handover, KeySource, Lent};
use rustix::io::Errno;
use std::{fmt, io, os::fd::BorrowedFd};

/// Why a connection that was to be promoted stays on the user engine, which goes on as if nothing had been tried.
#[derive(Debug)]
pub struct Refusal {
    /// As placement calls it. After [`Reason::NotReady`] alone another record boundary may do.
    pub reason: Reason,
    /// What the kernel said, where it said something that the reason does not tell.
    pub error: Option<io::Error>,
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self { reason, error: None }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self { reason: Reason::Refused, error: Some(error) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => error.fmt(formatter),
            None => self.reason.fmt(formatter),
        }
    }
}

/// A connection about to be switched: nobody seals for it, nor sends, until [`settle`].
#[derive(Debug)]
pub struct Prepared {
    lent: Lent,
    /// Bytes that TCP had taken.
    before_bytes: u64,
}

/// Promotes a connection whose `carried` was found out for its version and cipher, `response_bytes` before the end of
/// the response that is under way.
///
/// The switch is one system call, the last. These must hold before it; each is looked at in this order:
///
/// 1. Everything that was sealed here has been written to the socket, to the last byte: the kernel's first record must
///    follow a whole one. (The caller's: it flushes first and asserts.)
/// 2. The key is not about to be changed, by its limit or because the peer asked for it, and no `close_notify` was sent:
///    those are sealed here, under the key and the count that would be given away. (The channel looks at the last two.)
/// 3. The key has records left for the rest of the response at their most, unless the kernel takes new keys: a
///    response that has begun must not end at a limit that was known before.
/// 4. It is known how many bytes TCP has taken so far: what the kernel still holds back at the end is told by that
///    ([`Departure`]). (FreeBSD's holds nothing back.)
/// 5. The connection is established, so that the kernel lets the `tls` module attach. Attached and without a key, the
///    socket goes on as it was: this step can fail, or be followed by a failure, without harm. (FreeBSD attaches nothing, and
///    says with the next step that there is no connection.)
/// 6. The kernel takes the key (the switch).
///
/// Where an adapter may take the connection, the last two wait for its firmware: then the three steps of which this is
/// made are called one by one, and [`Prepared::switch`] by another thread.
///
/// # Errors
/// The user engine goes on. Only after [`Reason::NotReady`] is there a use in trying again.
pub fn promote<K: KeySource>(
    calls: &dyn Calls,
    socket: BorrowedFd<'_>,
    channel: &mut Channel<K>,
    carried: Carried,
    response_bytes: u64,
) -> Result<Departure, Refusal> {
    let prepared = prepare(calls, socket, channel, carried.takes_new_keys, response_bytes)?;
    let switched = prepared.switch(calls, socket).map(|()| carried.takes_new_keys);
    settle(channel, prepared, switched)
}

/// Preconditions 2 to 4. Nothing is sealed from here on. `takes_new_keys`: what gets the key is certain to take another.
///
/// # Errors
/// As those of [`promote`].
pub fn prepare<K: KeySource>(
    calls: &dyn Calls,
    socket: BorrowedFd<'_>,
    channel: &mut Channel<K>,
    takes_new_keys: bool,
    response_bytes: u64,
) -> Result<Prepared, Refusal> {
    let habits = calls.habits();
    if bytes_for(habits, channel.remaining_records()) == 0 {
        return Err(Reason::NotReady.into());
    }
    let (needed, left) = (records_at_most(habits, response_bytes), channel.remaining_records());
    if !(takes_new_keys && channel.can_change_key()) && needed >= left {
        return Err(Reason::RecordLimit { needed, left }.into());
    }
    let before_bytes = if habits.holds_back { calls.taken_bytes(socket)? } else { 0 };
    let lent = channel.lend().map_err(|_| Reason::NotReady)?;
    Ok(Prepared { lent, before_bytes })
}

impl Prepared {
    /// Precondition 5, and the switch.
    ///
    /// # Errors
    /// Nobody has the key.
    pub fn switch(&self, calls: &dyn Calls, socket: BorrowedFd<'_>) -> Result<(), Refusal> {
        let handover = self.lent.handover().map_err(|_| Reason::NotReady)?;
        let combination = Combination { version: handover.version(), cipher: handover.cipher() };
        calls.attach(socket).map_err(attaching_failed)?;
        install(calls, socket, &handover).map_err(|error| installing_failed(combination, error))
    }
}

/// What became of the switch: the kernel (or the adapter) has the key, and takes other keys or not; or nobody has it, and
/// the user engine goes on.
///
/// # Errors
/// As `switched`.
pub fn settle<K: KeySource>(
    channel: &mut Channel<K>,
    prepared: Prepared,
    switched: Result<bool, Refusal>,
) -> Result<Departure, Refusal> {
    let Prepared { lent, before_bytes } = prepared;
    match switched {
        Ok(takes_new_keys) => {
            let first_sequence = lent.handover().map_or(0, |handover| handover.sequence());
            channel.handed_over(lent, takes_new_keys);
            Ok(Departure::new(before_bytes, first_sequence))
        }
        Err(refusal) => {
            channel.take_back(lent);
            Err(refusal)
        }
    }
}

/// To be called when the next control record has left. If it was a key update, the key that follows it is installed: true.
///
/// # Errors
/// The peer expects the new key, and the kernel has only the old one: the connection can only be cut.
pub fn after_control<K: KeySource>(
    calls: &dyn Calls,
    socket: BorrowedFd<'_>,
    channel: &mut Channel<K>,
    departure: &mut Departure,
) -> io::Result<bool> {
    let Some(record) = channel.next_control() else { return Ok(false) };
    departure.add(record.payload().len() as u64);
    if record.content_type() == ContentType::Handshake {
        departure.key_ends(calls, socket, channel)?;
    }
    channel.control_left(|handover| install(calls, socket, handover)).map_err(|fault| match fault {
        HandOverFault::NotReady(fault) => io::Error::other(fault),
        HandOverFault::Refused(error) => error,
    })
}

fn install(calls: &dyn Calls, socket: BorrowedFd<'_>, handover: &Handover<'_>) -> io::Result<()> {
    calls.install(socket, &direction_key(handover))
}

pub(crate) fn direction_key<'a>(handover: &'a Handover<'_>) -> DirectionKey<'a> {
    DirectionKey {
        version: handover.version(),
        cipher: handover.cipher(),
        key: handover.key(),
        vector: handover.vector(),
        sequence: handover.sequence(),
    }
}

pub(crate) fn attaching_failed(error: io::Error) -> Refusal {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => Reason::Lacking(Lack::Module).into(),
        Some(Errno::NOTCONN) => Reason::NotConnected.into(),
        _ => error.into(),
    }
}

pub(crate) fn installing_failed(combination: Combination, error: io::Error) -> Refusal {
    match Errno::from_io_error(&error) {
        // EINVAL: a version or cipher that this kernel does not know. ENOENT: it knows it and lacks the algorithm.
        Some(Errno::INVAL | Errno::NOENT) => Reason::Lacking(Lack::NotInKernel(combination)).into(),
        Some(Errno::NOTCONN) => Reason::NotConnected.into(),
        _ => error.into(),
    }
}
