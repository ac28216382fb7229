//! The user engine on a connection whose thread may wait for room: batches as the server seals them, and the same rule for
//! when the next is sealed.

use crate::{
    Fault, FileRange, Queue,
    batches::{BatchEnd, Batches},
    user::{Batch, Sealed, Sizing},
};
use linerate_os::socket::{self, Follows};
use linerate_record::{Channel, KeySource, MAX_PLAINTEXT_BYTES};
use std::{io, os::fd::AsFd};

/// A connection's sealing half, with the memory for its batches.
pub struct Sealing<K> {
    /// Record protection of both directions.
    pub channel: Channel<K>,
    batch: Batch,
    batches: Batches,
    largest_batch_bytes: usize,
}

/// What a turn came to.
#[derive(Debug)]
pub enum Passed {
    /// All that was sealed is in the socket, which has room again.
    On,
    /// These bytes of a file are not in memory: nothing was sealed. Fetch them, and try again.
    Cold(FileRange),
}

impl<K: KeySource> Sealing<K> {
    /// With batches of up to `largest_batch_bytes` of plaintext.
    #[must_use]
    pub fn new(channel: Channel<K>, largest_batch_bytes: usize) -> Self {
        Self {
            channel,
            batch: Batch::new(largest_batch_bytes),
            batches: Batches::default(),
            largest_batch_bytes,
        }
    }

    /// A batch, sealed and sent whole. `wait` waits until the socket can be written; its error ends the connection.
    ///
    /// # Errors
    /// The socket's, `wait`'s, the record layer's, or a file's. Part of the batch may have left: nothing may follow it.
    pub fn turn(
        &mut self,
        socket: &impl AsFd,
        queue: &mut Queue,
        end: BatchEnd,
        mut wait: impl FnMut() -> io::Result<()>,
    ) -> Result<Passed, Fault> {
        let batch_bytes = self
            .batches
            .queue_bytes(socket, queue.remaining_bytes(), self.largest_batch_bytes, end)
            .map_err(Fault::Socket)?;
        let sizing = Sizing { record_bytes: MAX_PLAINTEXT_BYTES, batch_bytes, opening_bytes: 0 };
        if let Sealed::Cold(range) = self.batch.seal(&mut self.channel, queue, sizing)? {
            return Ok(Passed::Cold(range));
        }
        let sealed = self.batch.sealed();
        let mut sent = sent_now(socket, sealed).map_err(Fault::Socket)?;
        if sent == sealed.len() {
            self.batches.taken_whole();
        } else {
            self.batches.taken_in_part();
        }
        while sent < sealed.len() {
            wait().map_err(Fault::Socket)?;
            sent += sent_now(socket, &sealed[sent..]).map_err(Fault::Socket)?;
        }
        // What is sealed before there is room is out of the processor's cache when it leaves.
        let has_room =
            socket::not_sent_bytes(socket).is_none_or(|bytes| bytes == 0) || socket::is_writable(socket);
        if !has_room {
            wait().map_err(Fault::Socket)?;
        }
        Ok(Passed::On)
    }
}

/// Sends what the socket takes; nothing, if it is full.
fn sent_now(socket: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    match socket::send(socket, bytes, Follows::Nothing) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Piece, SharedBytes, kernel::peer::Peer, trial};
    use linerate_os::{pages::Pages, socket::connected_pair};
    use linerate_record::{Cipher, Combination, Version};
    use std::sync::Arc;

    /// Sends what is shared, in pieces of these lengths, past a peer that takes a little whenever the socket is full.
    fn through(lengths_bytes: &[usize], end: BatchEnd) -> (Vec<u8>, Vec<u8>) {
        let combination = Combination { version: Version::Tls13, cipher: Cipher::Aes128Gcm };
        let channel = || trial::channel(combination, u64::MAX).unwrap();
        let (ours, theirs) = connected_pair(Some(16_384)).unwrap();
        let mut memory = Pages::allocated(300_000);
        memory.iter_mut().zip((0..251).cycle()).for_each(|(byte, value)| *byte = value);
        let memory = Arc::new(memory);
        let mut sealing = Sealing::new(channel(), 65_536);
        let mut peer = Peer::new(channel());
        let mut expected = Vec::new();
        for &length_bytes in lengths_bytes {
            expected.extend_from_slice(&memory[..length_bytes]);
            let mut queue = Queue::from_iter([Piece::Shared(SharedBytes::of(&memory, 0..length_bytes))]);
            while !queue.is_done() {
                let wait = || {
                    // There is room when something was taken.
                    let _ = peer.receive(&theirs, 30_000);
                    peer.open().map_err(io::Error::other)
                };
                let passed = sealing.turn(&ours, &mut queue, end, wait).unwrap();
                assert!(matches!(passed, Passed::On), "nothing here is of a file");
            }
        }
        drop(ours);
        theirs.set_nonblocking(false).unwrap();
        while peer.opened.len() < expected.len() {
            match peer.receive(&theirs, 30_000) {
                Ok(0) => panic!("{} of {} bytes came", peer.opened.len(), expected.len()),
                Ok(_) => peer.open().unwrap(),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        (peer.opened, expected)
    }

    #[test]
    fn every_byte_arrives_wherever_batches_end() {
        let lengths_bytes = [1, 16_384, 16_385, 0, 40_000, 65_536, 65_537, 300_000, 7];
        for end in [BatchEnd::AtBursts, BatchEnd::WithTheQueue] {
            let (opened, expected) = through(&lengths_bytes, end);
            assert!(opened == expected, "{end:?}");
        }
    }
}
