//! What a link waits for, and against which time limit.

use super::{fetches::Fetches, wire::Woken, *};
use crate::placement::{Basis, PlacementPlan};
use crate::{watch::Expiry, workplace::FETCH_BYTES};
use linerate_config::{Flags, Settings};
use linerate_engine::{
    FileRange, Piece, Queue,
    source::{OpenFile, Source},
};
use linerate_kernel_model::{Counting, content, temporary};
use linerate_os::socket::{self, connected_pair};
use linerate_placement::Costs;
use std::{
    fs::File,
    future::poll_fn,
    io::{self, Read, Write},
    net::TcpStream as Peer,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

fn workplace() -> Workplace {
    let settings = Settings::from_toml(Path::new("f"), b"[[site]]\nroot = \"r\"\n", &Flags::default());
    let plan = PlacementPlan::new(&settings.unwrap(), (Basis::Defaults, Costs::defaults()), 1);
    Workplace::of_test(plan, 1000, 1 << 20)
}

fn link(workplace: Workplace) -> (Link<Counting>, Peer) {
    let (ours, theirs) = connected_pair(None).unwrap();
    theirs.set_nonblocking(false).unwrap();
    theirs.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let stream = TcpStream::from_std(ours).unwrap();
    let workplace = Rc::new(workplace);
    (Link::plain(stream, workplace.watches.enter(), workplace), theirs)
}

/// More than any time limit later, and the peer has taken nothing.
fn sweep_late(link: &Link<Counting>) {
    for sweep in 1..=10 {
        link.wire.workplace.watches.sweep(3_600_000 * sweep, Some(1000));
    }
}

/// The disk takes longer than a client may take nothing, of a response of which some waits for the client.
#[tokio::test]
async fn a_slow_disk_is_not_charged_to_the_client() {
    static HAS_READ: AtomicBool = AtomicBool::new(false);
    fn slow(_: &File, _: u64, _: u64) -> io::Result<()> {
        while !HAS_READ.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
    let mut workplace = workplace();
    workplace.read_ahead = slow;
    let (mut link, mut peer) = link(workplace);
    let (head, body) = (content(317), content(30_001));
    let file = temporary(&body);
    let cold = FileRange { source: OpenFile::of(file).unwrap(), range: 0..30_001 };
    link.begin(Stage::Sending);
    {
        let watch = Rc::clone(&link.wire.watch);
        let watches = Rc::clone(&link.wire.workplace);
        let mut fetches = Fetches::default();
        let fetch = fetches.bring(&link.wire, &cold, 30_001);
        let hours = async {
            // The fetch is asked first: it is under way by now.
            for sweep in 1..=10 {
                watches.watches.sweep(3_600_000 * sweep, Some(1000));
            }
            assert!(!watch.take_request_to_measure() && !watch.take_request_to_note());
            HAS_READ.store(true, Ordering::Release);
        };
        let (fetched, ()) = tokio::join!(biased; fetch, hours);
        fetched.unwrap();
    }
    // Nothing has begun since: the watch has no deadline that could have passed.
    let waits = poll_fn(|context| Poll::Ready(link.wire.watch.poll_expired(context))).await;
    assert_eq!(waits, None);
    let mut queue = Queue::from_iter([Piece::Bytes(head.clone()), Piece::File(cold)]);
    link.send(&mut queue).await.unwrap();
    drop(link);
    let mut received = Vec::new();
    peer.read_to_end(&mut received).unwrap();
    assert!(received == [head, body].concat());
}

/// What was read of a response's file, in order.
static ASKED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Notes what is asked for.
fn noting(_: &File, offset: u64, length_bytes: u64) -> io::Result<()> {
    ASKED.lock().unwrap().push((offset, length_bytes));
    Ok(())
}

/// INV-COLD-1: nothing is read beyond what is sent, and ahead only where the peer waited for the disk.
#[tokio::test]
async fn a_fetch_goes_ahead_of_a_peer_that_waits_and_never_beyond_the_end() {
    const BATCH: u64 = 65_536;
    const END: u64 = 5 * FETCH_BYTES + 17;
    let mut workplace = workplace();
    workplace.read_ahead = noting;
    let (link, _peer) = link(workplace);
    let source: Rc<dyn Source> = OpenFile::of(temporary(&content(1))).unwrap();
    let cold = |start: u64| FileRange { source: Rc::clone(&source), range: start..END.min(start + BATCH) };
    // Pieces end with whole pages, wherever the first begins.
    let first = (1001, FETCH_BYTES - 1001);
    let pieces =
        [first, (FETCH_BYTES, FETCH_BYTES), (2 * FETCH_BYTES, FETCH_BYTES), (3 * FETCH_BYTES, FETCH_BYTES)];
    let asked = || std::mem::take(&mut *ASKED.lock().unwrap());
    // What was read ahead of the first response may come late.
    let asked_since = || asked().into_iter().filter(|read| *read != pieces[3]).collect::<Vec<_>>();

    let mut fetches = Fetches::default();
    fetches.bring(&link.wire, &cold(1001), END).await.unwrap();
    // A batch of which the last piece had the beginning.
    fetches.bring(&link.wire, &cold(FETCH_BYTES - 4096), END).await.unwrap();
    fetches.bring(&link.wire, &cold(2 * FETCH_BYTES), END).await.unwrap();
    drop(fetches);
    let read = asked();
    assert!(read.starts_with(&pieces[..3]), "each once and in order: {read:?}");

    // The last piece is short, and another place than the one that is read ahead is read by itself.
    let mut fetches = Fetches::default();
    fetches.bring(&link.wire, &cold(0), FETCH_BYTES + 1).await.unwrap();
    assert!(fetches.is_ahead());
    fetches.bring(&link.wire, &cold(FETCH_BYTES), FETCH_BYTES + 1).await.unwrap();
    assert!(!fetches.is_ahead());
    fetches.bring(&link.wire, &cold(END - 5), END).await.unwrap();
    fetches.bring(&link.wire, &cold(7), 4096).await.unwrap();
    assert_eq!(asked_since(), [(0, FETCH_BYTES), (FETCH_BYTES, 1), (END - 5, 5), (7, 4089)]);

    // A peer that takes nothing keeps bytes waiting: none is read ahead for it.
    while socket::send(&link.wire.stream, &[0; 65_536], socket::Follows::Nothing).is_ok() {}
    let mut fetches = Fetches::default();
    fetches.bring(&link.wire, &cold(0), END).await.unwrap();
    assert!(!fetches.is_ahead());
    fetches.bring(&link.wire, &cold(FETCH_BYTES), END).await.unwrap();
    assert!(!fetches.is_ahead());
    assert_eq!(asked_since(), [(0, FETCH_BYTES), pieces[1]]);
}

#[tokio::test]
async fn what_came_before_an_idle_connection_was_looked_at_is_taken() {
    let (mut link, mut peer) = link(workplace());
    link.begin(Stage::Idle);
    peer.write_all(b"G").unwrap();
    while !socket::is_readable(&link.wire.stream) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sweep_late(&link);
    assert_eq!(link.wire.wait(true, false).await.unwrap(), Woken::Readable);
    link.receive_ready().unwrap();
    assert_eq!(link.arrived(), b"G");
    // Once: a client whose bytes make no request is not kept for ever.
    peer.write_all(b"E").unwrap();
    while !socket::is_readable(&link.wire.stream) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(matches!(link.wire.wait(true, false).await, Err(Ending::Expired(Expiry::Deadline(Stage::Idle)))));
}
