//! Records that are sealed and that the socket did not take yet.

use std::collections::VecDeque;

/// Sealed bytes in their order, and which of them carry what of a response.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    sealed: Vec<u8>,
    /// Bytes at the front of `sealed` that have left; cheaper than moving the rest up each time.
    done_bytes: usize,
    /// Of each record of the response that has not left whole: where it ends in `sealed`, and its plaintext bytes. What else
    /// is in `sealed` (alerts, key updates) carries nothing of the response.
    records: VecDeque<(usize, u64)>,
}

impl From<Vec<u8>> for Unsent {
    /// Sealed bytes that carry nothing of a response.
    fn from(sealed: Vec<u8>) -> Self {
        Self { sealed, ..Self::default() }
    }
}

impl Unsent {
    pub(super) fn is_empty(&self) -> bool {
        self.done_bytes == self.sealed.len()
    }

    /// What is to be sent first.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.sealed[self.done_bytes..]
    }

    /// Where an alert or a key update is appended.
    pub(super) fn behind(&mut self) -> &mut Vec<u8> {
        &mut self.sealed
    }

    /// Keeps what the socket did not take of a batch: all but the first `sent_bytes`. `records` are the batch's: where each
    /// ends, and its plaintext bytes. Returns the plaintext bytes of those that the socket took to their end.
    pub(super) fn keep(
        &mut self,
        batch: &[u8],
        sent_bytes: usize,
        records: impl Iterator<Item = (usize, u64)>,
    ) -> u64 {
        debug_assert!(self.is_empty(), "what is sealed goes first");
        let before_bytes = self.sealed.len();
        self.sealed.extend_from_slice(&batch[sent_bytes..]);
        let mut taken_bytes = 0;
        for (end, plaintext_bytes) in records {
            if end <= sent_bytes {
                taken_bytes += plaintext_bytes;
            } else {
                self.records.push_back((before_bytes + end - sent_bytes, plaintext_bytes));
            }
        }
        taken_bytes
    }

    /// The socket took so many bytes more. Returns the plaintext bytes of the records that it has now taken to their end.
    ///
    /// The memory stays for what the socket does not take of the next batch: given back each time, it costs a slow peer's
    /// connection a tenth of its CPU in page faults.
    pub(super) fn advance(&mut self, sent_bytes: usize) -> u64 {
        self.done_bytes += sent_bytes;
        let mut taken_bytes = 0;
        while let Some(&(end, plaintext_bytes)) = self.records.front()
            && end <= self.done_bytes
        {
            self.records.pop_front();
            taken_bytes += plaintext_bytes;
        }
        if self.is_empty() {
            self.sealed.clear();
            self.done_bytes = 0;
        }
        taken_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_when_its_last_byte_is_taken() {
        // A key update of 5 bytes, then records of 10, 20 and 7, which carry 4, 14 and 1.
        let batch: Vec<u8> = (0..42).collect();
        let records = [(15, 4), (35, 14), (42, 1)];
        let counted = |taken: usize| -> u64 {
            records.iter().filter(|(end, _)| *end <= taken).map(|(_, plaintext_bytes)| plaintext_bytes).sum()
        };
        for first in 0..batch.len() {
            for step in 1..10 {
                let mut unsent = Unsent::default();
                let mut total = unsent.keep(&batch, first, records.into_iter());
                let mut sent = first;
                assert_eq!(total, counted(sent));
                unsent.behind().extend_from_slice(b"alert");
                while !unsent.is_empty() {
                    let now = step.min(unsent.bytes().len());
                    let expected = batch.iter().chain(b"alert").skip(sent).take(now);
                    assert!(unsent.bytes()[..now].iter().eq(expected));
                    sent += now;
                    total += unsent.advance(now);
                    assert_eq!(total, counted(sent), "{first} and then {step} at a time");
                }
                assert_eq!((total, sent), (19, batch.len() + 5));
                // And again, from the beginning.
                assert_eq!(unsent.keep(&batch, 40, records.into_iter()), 18);
                assert_eq!(unsent.bytes(), [40, 41]);
            }
        }
    }
}
