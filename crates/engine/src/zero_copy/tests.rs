//! The ring over real sockets, with a receiver that lets the sender go ahead: what is written too early is what arrives.

use super::{
    sealed::{Passed, SealedRing},
    *,
};
use crate::{Piece, Queue, kernel::peer::Peer, pattern::Pattern, trial, user::Sizing};
use linerate_os::{
    socket::connected_pair,
    zero_copy::{Completion, Notices, Submissions},
};
use linerate_record::{Cipher, Combination, MAX_PLAINTEXT_BYTES, RecordError, Version};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::{
    collections::VecDeque,
    io::Read,
    net::TcpStream,
    os::fd::AsFd,
    time::{Duration, Instant},
};

const PATTERN: Pattern = Pattern::new(77);
/// Bytes of a batch, sealed: so few that the sending socket takes many.
const BATCH_BYTES: usize = 20_000;
const TOTAL_BYTES: usize = 600_001;

/// A sender's socket that takes 1 MiB, and one of a receiver that holds little until it is read.
fn sockets() -> (TcpStream, TcpStream) {
    let (ours, theirs) = connected_pair(Some(4096)).unwrap();
    set_socket_send_buffer_size(&ours, 1 << 20).unwrap();
    (ours, theirs)
}

fn patience() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

struct SealedRun {
    peer: Peer<trial::TrialKeys>,
    opened: Result<(), RecordError>,
    counts: Counts,
    waited_for_completions: usize,
}

type Make = fn(&TcpStream) -> Option<Box<dyn ZeroCopySend>>;

/// Both ways to lend; `io_uring` where this process may use it.
const CARRIERS: [Make; 2] = [
    |socket| Some(Box::new(Notices::of(socket).unwrap())),
    |_| match Submissions::new() {
        Ok(submissions) => Some(Box::new(submissions)),
        Err(refusal) => {
            eprintln!("SKIPPED: the part of zero_copy that is by io_uring: {refusal}");
            None
        }
    },
];

/// Sends the pattern by a ring of three batches. The receiver takes nothing until the sender can do nothing more, and then a little.
fn send_sealed(combination: Combination, carrier: Make, rule_is_off: bool) -> Option<SealedRun> {
    let channel = || trial::channel(combination, 7).unwrap();
    let (ours, theirs) = sockets();
    let mut ring = SealedRing::new(BATCH_BYTES, 3, carrier(&ours)?);
    if rule_is_off {
        ring.switch_the_rule_off();
    }
    // TLS 1.2 cannot change its key on the way.
    let mut sender = match combination.version {
        Version::Tls13 => channel(),
        Version::Tls12 => trial::channel(combination, u64::MAX).unwrap(),
    };
    let mut run = SealedRun {
        peer: Peer::new(channel()),
        opened: Ok(()),
        counts: Counts::default(),
        waited_for_completions: 0,
    };
    let mut queue = Queue::from_iter([Piece::Pattern { pattern: PATTERN, range: 0..TOTAL_BYTES as u64 }]);
    let sizing = Sizing { record_bytes: MAX_PLAINTEXT_BYTES, batch_bytes: BATCH_BYTES, opening_bytes: 0 };
    let deadline = patience();
    let take = |run: &mut SealedRun| {
        assert!(Instant::now() < deadline, "it stalled at {} bytes", run.peer.opened.len());
        if run.opened.is_ok() && run.peer.receive(&theirs, 3000).is_ok_and(|bytes| bytes > 0) {
            run.opened = run.peer.open();
        }
    };
    while !(queue.is_done() && ring.is_at_boundary()) && run.opened.is_ok() {
        match ring.turn(ours.as_fd(), &mut sender, &mut queue, sizing).unwrap() {
            Passed::Sent(_) => {}
            Passed::Full(_) => take(&mut run),
            Passed::AllLent => {
                run.waited_for_completions += 1;
                take(&mut run);
            }
            Passed::Cold(_) => panic!("no file is sent"),
        }
    }
    while run.opened.is_ok() && (run.peer.opened.len() < TOTAL_BYTES || ring.counts().in_flight() > 0) {
        take(&mut run);
        ring.take_completions(ours.as_fd()).unwrap();
    }
    run.counts = ring.counts();
    Some(run)
}

/// INV-LENT-1: every byte arrives as it was sealed, though the receiver was behind by the whole ring all the time.
#[test]
fn a_batch_is_sealed_anew_only_when_the_kernel_has_completed_it() {
    let cases =
        Combination::ALL.into_iter().flat_map(|combination| CARRIERS.map(|carrier| (combination, carrier)));
    for (combination, carrier) in cases {
        let Some(run) = send_sealed(combination, carrier, false) else { continue };
        run.opened.unwrap();
        assert_eq!(PATTERN.check(0, &run.peer.opened), Ok(()), "{combination:?}");
        assert_eq!(run.peer.opened.len(), TOTAL_BYTES);
        assert!(run.waited_for_completions > 0, "the receiver was not slow enough for this test");
        assert_eq!(run.counts.in_flight(), 0);
        assert!(run.counts.sends >= (TOTAL_BYTES / BATCH_BYTES) as u64);
        assert_eq!((run.counts.copied_share(), run.counts.refused), (Some(1.0), 0), "loopback copies");
        assert_eq!(run.peer.key_updates > 0, combination.version == Version::Tls13);
    }
}

/// What the rule is good for: without it records arrive that were overwritten on their way.
#[test]
fn without_the_rule_records_are_overwritten_on_their_way() {
    let combination = Combination { version: Version::Tls12, cipher: Cipher::Aes128Gcm };
    for carrier in CARRIERS {
        let Some(run) = send_sealed(combination, carrier, true) else { continue };
        assert!(
            run.opened.is_err(),
            "the kernel had no page of a batch that was sealed anew: the test above proves nothing"
        );
    }
}

/// In the clear: slots are filled one after the other, and come back when they are complete.
#[test]
fn bytes_in_the_clear_arrive_as_they_were_written() {
    let (ours, mut theirs) = sockets();
    let slots = (0..3).map(|_| Pages::new(BATCH_BYTES).unwrap()).collect();
    let mut ring = Ring::new(slots, Box::new(Notices::of(&ours).unwrap()));
    let (mut sent_bytes, mut received, mut behind) = (0_u64, Vec::new(), 0);
    let deadline = patience();
    let mut take = |received: &mut Vec<u8>| {
        assert!(Instant::now() < deadline, "it stalled at {} bytes", received.len());
        let mut buffer = [0; 3000];
        if let Ok(bytes) = theirs.read(&mut buffer) {
            received.extend_from_slice(&buffer[..bytes]);
        }
    };
    while (sent_bytes as usize) < TOTAL_BYTES {
        let Some(slot) = ring.free(ours.as_fd()).unwrap() else {
            behind += 1;
            take(&mut received);
            continue;
        };
        let length = 17_001.min(TOTAL_BYTES - sent_bytes as usize);
        PATTERN.fill(sent_bytes, &mut ring.write(slot)[..length]);
        sent_bytes += length as u64;
        let mut done = 0;
        while done < length {
            match ring.send(ours.as_fd(), slot, done..length, Follows::Nothing) {
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => take(&mut received),
                Err(error) => panic!("{error}"),
            }
        }
        let lent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ring.write(slot).fill(0)));
        assert!(lent.is_err(), "INV-LENT-1 is asserted where it could break");
    }
    while received.len() < TOTAL_BYTES || ring.counts().in_flight() > 0 {
        take(&mut received);
        ring.take_completions(ours.as_fd()).unwrap();
    }
    assert!(behind > 0 && received.len() == TOTAL_BYTES);
    assert_eq!(PATTERN.check(0, &received), Ok(()));
    assert!(ring.free(ours.as_fd()).unwrap().is_some());
}

/// A kernel that takes no loan until something was completed, or never.
#[derive(Default)]
struct Short {
    /// The next sends' outcomes.
    sends: VecDeque<Result<usize, i32>>,
    completions: Vec<Completion>,
}

impl ZeroCopySend for Short {
    fn send(&mut self, _: BorrowedFd<'_>, _: &Pages, _: Range<usize>, _: Follows) -> io::Result<usize> {
        self.sends.pop_front().unwrap().map_err(io::Error::from_raw_os_error)
    }

    fn completions(&mut self, _: BorrowedFd<'_>, take: &mut dyn FnMut(Completion)) -> io::Result<()> {
        self.completions.drain(..).for_each(take);
        Ok(())
    }

    fn wait(&mut self, _: BorrowedFd<'_>, _: Duration) -> io::Result<bool> {
        Ok(!self.completions.is_empty())
    }
}

#[test]
fn a_kernel_that_takes_no_loan_is_given_a_copy() {
    const ENOBUFS: i32 = 105;
    let (ours, mut theirs) = connected_pair(None).unwrap();
    let mut slot_memory = Pages::new(100).unwrap();
    slot_memory[..5].copy_from_slice(b"bytes");
    let completion = Completion { first: 0, last: 0, copied: false };
    let short = Short {
        sends: [Ok(3), Err(ENOBUFS), Ok(2), Err(ENOBUFS), Err(ENOBUFS), Err(32)].into(),
        completions: vec![completion],
    };
    let mut ring = Ring::new(vec![slot_memory], Box::new(short));
    let slot = ring.free(ours.as_fd()).unwrap().unwrap();
    let mut send = |range| ring.send(ours.as_fd(), slot, range, Follows::Nothing);
    assert_eq!(send(0..3).unwrap(), 3);
    assert_eq!(send(3..5).unwrap(), 2, "a completion made room");
    assert_eq!(send(0..5).unwrap(), 5, "it is copied");
    let mut copied = [0; 5];
    theirs.set_nonblocking(false).unwrap();
    theirs.read_exact(&mut copied).unwrap();
    assert_eq!(&copied, b"bytes");
    assert_eq!(send(0..5).unwrap_err().raw_os_error(), Some(32), "other errors are the caller's");
    let counts = ring.counts();
    assert_eq!((counts.sends, counts.completed, counts.refused, counts.in_flight()), (2, 1, 1, 1));
    assert_eq!(ring.free(ours.as_fd()).unwrap(), None, "what was copied does not free what is lent");
}

#[test]
fn a_completion_of_what_was_not_sent_is_a_fault() {
    let (ours, _theirs) = connected_pair(None).unwrap();
    let completions = vec![Completion { first: 0, last: 5, copied: false }];
    let short = Short { sends: [Ok(1)].into(), completions };
    let mut ring = Ring::new(vec![Pages::new(1).unwrap()], Box::new(short));
    let slot = ring.free(ours.as_fd()).unwrap().unwrap();
    ring.send(ours.as_fd(), slot, 0..1, Follows::Nothing).unwrap();
    assert_eq!(ring.wait(ours.as_fd(), Duration::ZERO).unwrap_err().kind(), io::ErrorKind::InvalidData);
}
