//! How large the next batch of a connection is: it ends where a burst of the kernel's ends.
//!
//! What hangs over a burst leaves as a small segment, or waits for the next batch. Where the kernel paces (BBR), a batch
//! is one burst: it leaves at once and nothing is held back, so that the kernel arms no timer; and a connection that
//! never has more to send than it can counts as limited by the application, so that BBR's estimate of the path is not
//! spoilt by its own pacing. Figures: docs/MEASUREMENTS.md.

use linerate_os::socket;
use linerate_record::MAX_PLAINTEXT_BYTES;
use std::{io, os::fd::AsFd};

/// Batches between two looks at the size of a burst. It grows in a connection's first round trips where segments are
/// large: the kernel keeps a segment below half of the peer's window (`tcp_bound_to_half_wnd`, include/net/tcp.h).
const BATCHES_PER_LOOK: u32 = 16;

/// Where a batch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEnd {
    /// Where bursts of the kernel's end, as in the server: for what is long.
    AtBursts,
    /// Where the queue ends, if it fits into a batch: what was queued leaves by one call. For a connection that is paced, and
    /// for what does not fit, as [`BatchEnd::AtBursts`].
    WithTheQueue,
}

/// One connection's batches.
#[derive(Debug, Default)]
pub struct Batches {
    /// The most bytes of a segment, if that was asked within the last few batches.
    segment_bytes: Option<usize>,
    /// The kernel paces this connection; asked once.
    paced: Option<bool>,
    /// Bursts in the next batch.
    bursts: usize,
    batches_until_look: u32,
}

impl Batches {
    /// A response begins: the size of a segment is looked up once for its first batches.
    pub fn begin_response(&mut self) {
        self.look_again();
    }

    fn look_again(&mut self) {
        self.segment_bytes = None;
        self.batches_until_look = BATCHES_PER_LOOK;
    }

    /// The most bytes of a segment of this connection, as of a few batches ago at most.
    pub fn segment_bytes(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        match self.segment_bytes {
            Some(bytes) => Ok(bytes),
            None => Ok(*self.segment_bytes.insert(socket::segment_bytes(socket)?)),
        }
    }

    /// Bytes of the next batch as it is sent: whole bursts, as many as fit `largest_bytes`; that, where not even one does.
    pub fn next_bytes(&mut self, socket: &impl AsFd, largest_bytes: usize) -> io::Result<usize> {
        if self.batches_until_look == 0 {
            self.look_again();
        }
        self.batches_until_look -= 1;
        let burst_bytes = socket::whole_segments(self.segment_bytes(socket)?);
        let paced = match self.paced {
            Some(paced) => paced,
            None => *self.paced.insert(socket::is_paced(socket)?),
        };
        let most = if paced { 1 } else { (largest_bytes / burst_bytes).max(1) };
        self.bursts = self.bursts.clamp(1, most);
        Ok((self.bursts * burst_bytes).min(largest_bytes))
    }

    /// The same where `queued_bytes` of plaintext wait: a batch that takes all of them has no bound but its memory.
    ///
    /// # Errors
    /// The kernel's.
    pub fn queue_bytes(
        &mut self,
        socket: &impl AsFd,
        queued_bytes: u64,
        largest_bytes: usize,
        end: BatchEnd,
    ) -> io::Result<usize> {
        let queued_bytes = usize::try_from(queued_bytes).unwrap_or(usize::MAX);
        if queued_bytes <= MAX_PLAINTEXT_BYTES {
            return Ok(usize::MAX);
        }
        let burst_bytes = self.next_bytes(socket, largest_bytes)?;
        let fits = end == BatchEnd::WithTheQueue && queued_bytes <= largest_bytes;
        Ok(if fits && !self.is_paced() { usize::MAX } else { burst_bytes })
    }

    /// Whether the kernel paces the connection, as of the last look; none was made where [`Self::next_bytes`] was not asked.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.paced == Some(true)
    }

    /// The socket took a batch whole: the next may be larger.
    pub fn taken_whole(&mut self) {
        self.bursts = self.bursts.saturating_mul(2);
    }

    /// The socket took part of a batch. The rest waits in our memory: so that little has to, the next is one burst.
    pub fn taken_in_part(&mut self) {
        self.bursts = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 45 segments of 1448 bytes are a burst of 65 160 bytes.
    const SEGMENT_BYTES: usize = 1448;

    fn batches(segment_bytes: usize, paced: bool) -> Batches {
        let segment_bytes = Some(segment_bytes);
        Batches { segment_bytes, paced: Some(paced), bursts: 1, batches_until_look: 1000 }
    }

    fn next(batches: &mut Batches) -> usize {
        // Nothing is asked of the socket in these tests: any file descriptor does.
        batches.next_bytes(&std::io::stdin(), 262_144).unwrap()
    }

    #[test]
    fn an_unpaced_connection_grows_to_whole_bursts_within_the_limit() {
        let mut batches = batches(SEGMENT_BYTES, false);
        let mut sizes = Vec::new();
        for _ in 0..4 {
            sizes.push(next(&mut batches));
            batches.taken_whole();
        }
        assert_eq!(sizes, [65_160, 130_320, 260_640, 260_640]);
        batches.taken_in_part();
        assert_eq!(next(&mut batches), 65_160);
    }

    #[test]
    fn a_paced_connection_sends_one_burst_at_a_time() {
        let mut batches = batches(SEGMENT_BYTES, true);
        for _ in 0..3 {
            assert_eq!(next(&mut batches), 65_160);
            batches.taken_whole();
        }
    }

    /// Standard input has no segments: where it is asked, it refuses.
    #[test]
    fn the_size_of_a_segment_is_asked_once_for_some_batches() {
        let mut batches = batches(SEGMENT_BYTES, false);
        batches.begin_response();
        assert!(batches.segment_bytes(&std::io::stdin()).is_err());
        batches.segment_bytes = Some(SEGMENT_BYTES);
        assert_eq!(batches.segment_bytes(&std::io::stdin()).unwrap(), SEGMENT_BYTES);
        for _ in 0..BATCHES_PER_LOOK {
            assert_eq!(next(&mut batches), 65_160);
        }
        assert!(batches.next_bytes(&std::io::stdin(), 262_144).is_err(), "it may have grown");
    }

    #[test]
    fn a_batch_that_is_configured_smaller_than_a_burst_stays_so() {
        let mut batches = batches(300_000, false);
        for _ in 0..2 {
            assert_eq!(next(&mut batches), 262_144);
            batches.taken_whole();
        }
    }
}
