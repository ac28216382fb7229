//! The kernel engine: the kernel makes the records (kTLS), files go from the page cache into them by `sendfile`.
//!
//! A connection begins on the user engine and is promoted at a record boundary (`switch`), for good. Which versions and
//! ciphers the kernel of this machine carries is found out once, by doing it (`capabilities`, `self_test`). What is
//! decided for each record while we make them ourselves (when the key is used up, what a peer's key update asks for) is
//! still decided by the [`Channel`]; here it is carried out.

mod capabilities;
mod departure;
#[cfg(test)]
mod freebsd_tests;
pub mod peer;
mod report;
mod self_test;
mod switch;
#[cfg(test)]
mod tests;

pub(crate) use capabilities::probe_socket;
pub use capabilities::{Capabilities, Carried, Objection, verdict};
pub use departure::Departure;
pub use report::{note, tried};
pub use switch::{Prepared, Refusal, after_control, prepare, promote, settle};
pub(crate) use switch::{attaching_failed, direction_key, installing_failed};

use crate::{
    Fault, Queue, Turn,
    plain::{self, LastPage},
};
use linerate_os::kernel_tls::{Calls, Habits};
use linerate_record::{Channel, KeySource, MAX_PLAINTEXT_BYTES, RecordError};
use std::{io, os::fd::BorrowedFd};

/// A full record is counted as so many: the kernel may end records earlier ([`Habits::least_record_bytes`]).
pub fn counted_for_one(habits: Habits) -> u64 {
    MAX_PLAINTEXT_BYTES as u64 / habits.least_record_bytes.max(1)
}

/// Records that a call may need beside those: a part at its beginning (of a page, of a file), another at its end.
const ENDS: u64 = 2;

/// The most records that the kernel can have made of so many bytes that one call took.
pub fn records_at_most(habits: Habits, bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { bytes / habits.least_record_bytes.max(1) + ENDS }
}

/// The most bytes that need no more than so many records; 0 where no call is safe.
fn bytes_for(habits: Habits, records: u64) -> u64 {
    let least_bytes = habits.least_record_bytes.max(1);
    records
        .checked_sub(ENDS)
        .map_or(0, |whole| whole.saturating_mul(least_bytes).saturating_add(least_bytes - 1))
}

/// Sends what comes next in `queue`, at most `limit_bytes`, without waiting, and strikes it off.
///
/// # Errors
/// The connection cannot go on. [`RecordError::Misuse`] if a control record waits: those leave before anything else.
pub fn turn<K: KeySource>(
    calls: &dyn Calls,
    socket: BorrowedFd<'_>,
    channel: &mut Channel<K>,
    queue: &mut Queue,
    limit_bytes: u64,
) -> Result<Turn, Fault> {
    if channel.next_control().is_some() {
        return Err(RecordError::Misuse("control records go first").into());
    }
    let habits = calls.habits();
    count_exactly_near_the_limit(calls, socket, channel, limit_bytes);
    if bytes_for(habits, channel.remaining_records()) == 0 {
        // Not enough for a call whose records cannot be counted beforehand.
        channel.spend(channel.remaining_records());
    }
    // A peer that asked for a key update gets it before any further data (RFC 8446 4.6.3), and so does a key's limit.
    if channel.prepare_sending(&mut Vec::new())? {
        return Ok(Turn::KeyUpdate);
    }
    // INV-LIMIT-1: no call makes more records than are left.
    let left_bytes = bytes_for(habits, channel.remaining_records());
    let turn = plain::turn(calls, socket, queue, limit_bytes.min(left_bytes), LastPage::Copied)?;
    if let Turn::Sent(bytes) | Turn::Full(bytes) = turn {
        channel.spend(records_at_most(habits, bytes));
    }
    Ok(turn)
}

/// Our count is of the most records that there can be. Before it stops anybody, the kernel is asked for its own.
pub fn count_exactly_near_the_limit<K: KeySource>(
    calls: &dyn Calls,
    socket: BorrowedFd<'_>,
    channel: &mut Channel<K>,
    wanted_bytes: u64,
) {
    if channel.remaining_records() > records_at_most(calls.habits(), wanted_bytes) {
        return;
    }
    // A kernel that does not tell leaves us with our own count, which is safe.
    if let Ok(sequence) = next_sequence(calls, socket, channel) {
        // A record that is open, waiting for more bytes, is not in the kernel's count.
        channel.count_from(sequence.saturating_add(1));
    }
}

/// The number of the record that the kernel makes next.
fn next_sequence<K: KeySource>(
    calls: &dyn Calls,
    socket: BorrowedFd<'_>,
    channel: &Channel<K>,
) -> io::Result<u64> {
    calls.sequence(socket, channel.version(), channel.cipher())
}
