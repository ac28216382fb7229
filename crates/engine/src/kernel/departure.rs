//! Whether all that the kernel took has gone on to TCP.
//!
//! A call that sends on kernel TLS succeeds when a record is made. Where TCP has no room for all of it the rest waits in
//! the `tls` module, and leaves when there is. But closing the socket meanwhile, or only its sending side, throws
//! it away (net/tls/tls_main.c, `tls_sk_proto_close`; `shutdown` does not ask the module at all): a client then misses
//! the end of the last response, and `close_notify` (INV-ORDER-2). Nothing tells what waits there, so we count what must come out:
//! plaintext, and what each record adds to it; the kernel tells how many records it has made, and TCP how many bytes
//! it has taken. On FreeBSD what a call took is in the socket's buffer, in order, and there is nothing to count.

use super::next_sequence;
use linerate_os::kernel_tls::Calls;
use linerate_record::{Channel, KeySource};
use std::{io, os::fd::BorrowedFd};

/// What has to reach TCP, counted from the switch on.
#[derive(Debug, Default)]
pub struct Departure {
    /// Bytes that TCP had taken of the connection when it was promoted.
    before_bytes: u64,
    /// Payloads of records, control records included.
    payload_bytes: u64,
    /// The number of the key's first record that the kernel made.
    first_sequence: u64,
    /// Records that it made under the keys before this one.
    records_before: u64,
}

impl Departure {
    /// At the switch: TCP had taken so many bytes, and the kernel's first record has this number.
    pub(super) fn new(before_bytes: u64, first_sequence: u64) -> Self {
        Self { before_bytes, first_sequence, ..Self::default() }
    }

    /// The kernel took so many bytes of payload.
    pub fn add(&mut self, payload_bytes: u64) {
        self.payload_bytes += payload_bytes;
    }

    /// The key's last record has been made; the next key begins at 0.
    ///
    /// # Errors
    /// The kernel's.
    pub fn key_ends<K: KeySource>(
        &mut self,
        calls: &dyn Calls,
        socket: BorrowedFd<'_>,
        channel: &Channel<K>,
    ) -> io::Result<()> {
        if !calls.habits().holds_back {
            return Ok(());
        }
        self.records_before += next_sequence(calls, socket, channel)? - self.first_sequence;
        self.first_sequence = 0;
        Ok(())
    }

    /// Whether all of it is TCP's, which delivers it however the socket is closed. To be asked when no record is open:
    /// behind a control record.
    ///
    /// # Errors
    /// The kernel's.
    pub fn is_complete<K: KeySource>(
        &self,
        calls: &dyn Calls,
        socket: BorrowedFd<'_>,
        channel: &Channel<K>,
    ) -> io::Result<bool> {
        if !calls.habits().holds_back {
            return Ok(true);
        }
        let records = self.records_before + next_sequence(calls, socket, channel)? - self.first_sequence;
        let overhead_bytes = records * channel.outgoing_layout().overhead_bytes() as u64;
        Ok(calls.taken_bytes(socket)? >= self.before_bytes + self.payload_bytes + overhead_bytes)
    }
}
