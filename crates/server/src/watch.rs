//! Deadlines of connections, without a timer each (INV-PEER-2), and which of them goes when there is no room.
//!
//! A connection notes in its [`Watch`] what it waits for and until when; a sweep of the worker ends the waits that
//! took too long. On the hot path a deadline costs a few stores. Precision is that of the sweep: [`SWEEP_INTERVAL`].

mod idle;

use idle::Idle;
use linerate_os::socket::acknowledged_between;
use std::{
    cell::{Cell, RefCell},
    rc::{Rc, Weak},
    task::{Context, Waker},
    time::Duration,
};

/// How often deadlines are looked at.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_millis(200);

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The handshake's end.
    Handshake,
    /// The next request's first byte.
    Idle,
    /// The rest of a request's head, or of a body that is thrown away.
    Head,
    /// The peer taking some of the response.
    Sending,
    /// The peer closing its side after we closed ours.
    Closing,
    /// The server itself: its disk, an adapter that sets a connection up. No deadline runs.
    Working,
}

/// Why a wait was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It took too long.
    Deadline(Stage),
    /// The peer took less of a response than it has to, for too long.
    TooSlow,
    /// The server is going down: idle connections are closed, others after their response.
    Drain,
    /// There was no place for a newcomer, and nothing happened here.
    Evicted(Stage),
}

/// Where a peer stood when it was last measured.
#[derive(Clone, Copy, Debug)]
struct Pace {
    since_ms: u64,
    /// Bytes that it had acknowledged by then.
    acknowledged_bytes: u64,
}

/// One connection's entry.
pub(crate) struct Watch {
    stage: Cell<Stage>,
    deadline_ms: Cell<u64>,
    expired: Cell<Option<Expiry>>,
    /// The wait was ended, and what had come by then was looked at all the same.
    is_pardoned: Cell<bool>,
    /// The deadline that the last sweep saw: still the same, it tells that nothing was sent in between.
    swept_deadline_ms: Cell<u64>,
    /// A response is stuck: what the peer has taken so far is to be noted.
    is_to_note: Cell<bool>,
    /// For which deadline, and what, was noted; [`Watch::note`].
    noted: Cell<Option<(u64, Option<u64>)>>,
    /// A response has been under way for as long as a peer's pace is averaged over: it is to be measured.
    is_to_measure: Cell<bool>,
    pace: Cell<Option<Pace>>,
    /// Something is looked at in each sweep, whatever is waited for.
    is_followed: Cell<bool>,
    is_to_look_back: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Watch {
    /// Notes what is waited for, until `deadline_ms` on the worker's clock. That the wait before it took too long, which
    /// nobody has looked at yet, says nothing about this one.
    pub(crate) fn begin(&self, stage: Stage, deadline_ms: u64) {
        self.stage.set(stage);
        self.deadline_ms.set(deadline_ms);
        self.expired.set(None);
        self.is_pardoned.set(false);
    }

    /// Whether a wait that was ended may still take what has come by now: a request that arrives on an idle connection just
    /// before it is closed is one that the peer counts on. Once for each wait.
    pub(crate) fn may_be_pardoned(&self) -> bool {
        self.stage.get() == Stage::Idle && !self.is_pardoned.get()
    }

    pub(crate) fn pardon(&self) {
        self.is_pardoned.set(true);
    }

    /// What is waited for, and until when.
    pub(crate) fn wait(&self) -> (Stage, u64) {
        (self.stage.get(), self.deadline_ms.get())
    }

    /// Whether this wait was ended; otherwise the task will be woken when it is.
    pub(crate) fn poll_expired(&self, context: &Context<'_>) -> Option<Expiry> {
        if self.expired.get().is_none() {
            let mut waker = self.waker.borrow_mut();
            if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
        }
        self.expired.get()
    }

    /// Whether the task was woken to [`note`](Self::note) what the peer has taken; true once for each wait.
    pub(crate) fn take_request_to_note(&self) -> bool {
        self.is_to_note.take()
    }

    /// Notes what the peer has acknowledged since the connection was made, for the wait that is under way.
    pub(crate) fn note(&self, acknowledged_bytes: Option<u64>) {
        self.noted.set(Some((self.deadline_ms.get(), acknowledged_bytes)));
    }

    /// Whether the peer has taken something since that was noted. What it has left would not tell: that grows again with what
    /// is sent meanwhile.
    pub(crate) fn has_taken(&self, acknowledged_bytes: Option<u64>) -> bool {
        let noted = self.noted.get().filter(|(deadline_ms, _)| *deadline_ms == self.deadline_ms.get());
        noted
            .and_then(|(_, before_bytes)| before_bytes)
            .zip(acknowledged_bytes)
            .is_some_and(|(before_bytes, now_bytes)| acknowledged_between(before_bytes, now_bytes) > 0)
    }

    /// Whether the task was woken to [`measure`](Self::measure) the peer's pace; true once for each time.
    pub(crate) fn take_request_to_measure(&self) -> bool {
        self.is_to_measure.take() && self.stage.get() == Stage::Sending
    }

    /// Notes what the peer has acknowledged since the connection was made. Returns what it took since that was last noted,
    /// and in how many milliseconds; `None` the first time.
    pub(crate) fn measure(&self, now_ms: u64, acknowledged_bytes: u64) -> Option<(u64, u64)> {
        let before = self.pace.replace(Some(Pace { since_ms: now_ms, acknowledged_bytes }))?;
        Some((
            acknowledged_between(before.acknowledged_bytes, acknowledged_bytes),
            now_ms.saturating_sub(before.since_ms),
        ))
    }

    /// The time up to now does not count: the response did not wait for the peer.
    pub(crate) fn forget_pace(&self) {
        self.pace.set(None);
    }

    /// Has the task woken in each sweep to [look back](Self::take_request_to_look_back), or not any more.
    pub(crate) fn follow(&self, followed: bool) {
        self.is_followed.set(followed);
    }

    /// Whether a sweep has gone by since this was last asked, for a connection that is [followed](Self::follow).
    pub(crate) fn take_request_to_look_back(&self) -> bool {
        self.is_to_look_back.take()
    }

    /// Whether it is time to measure: a response is under way, and nothing was noted yet or it was `window_ms` ago.
    fn is_due(&self, now_ms: u64, window_ms: u64) -> bool {
        if self.stage.get() != Stage::Sending {
            self.pace.set(None);
            return false;
        }
        self.pace.get().is_none_or(|pace| now_ms.saturating_sub(pace.since_ms) >= window_ms)
    }

    /// Whether a response is stuck, and what the peer has taken was not noted yet. True from the second sweep on, so
    /// that a transfer that goes well costs nothing.
    fn is_stuck(&self) -> bool {
        let deadline_ms = self.deadline_ms.get();
        self.swept_deadline_ms.replace(deadline_ms) == deadline_ms
            && self.stage.get() == Stage::Sending
            && self.noted.get().is_none_or(|(noted_for_ms, _)| noted_for_ms != deadline_ms)
    }

    /// Starts afresh after a wait was ended: closing is allowed its own time.
    pub(crate) fn reset(&self) {
        self.expired.set(None);
    }

    /// Makes room for another connection.
    pub(crate) fn evict(&self) {
        self.expire(Expiry::Evicted(self.stage.get()));
    }

    fn expire(&self, expiry: Expiry) {
        self.expired.set(Some(expiry));
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// All connections of a worker.
#[derive(Default)]
pub(crate) struct Watches {
    all: RefCell<Vec<Weak<Watch>>>,
    draining: Cell<bool>,
    idle: RefCell<Idle>,
}

impl Watches {
    /// A new connection's entry. It leaves by itself when the connection drops it.
    pub(crate) fn enter(&self) -> Rc<Watch> {
        let watch = Rc::new(Watch {
            stage: Cell::new(Stage::Handshake),
            deadline_ms: Cell::new(u64::MAX),
            expired: Cell::new(None),
            is_pardoned: Cell::new(false),
            swept_deadline_ms: Cell::new(u64::MAX),
            is_to_note: Cell::new(false),
            noted: Cell::new(None),
            is_to_measure: Cell::new(false),
            pace: Cell::new(None),
            is_followed: Cell::new(false),
            is_to_look_back: Cell::new(false),
            waker: RefCell::new(None),
        });
        self.all.borrow_mut().push(Rc::downgrade(&watch));
        watch
    }

    /// Ends the waits whose deadline is before `now_ms`, asks for the pace of peers that take a response for longer than
    /// `pace_window_ms`, and forgets the connections that are gone.
    pub(crate) fn sweep(&self, now_ms: u64, pace_window_ms: Option<u64>) {
        let draining = self.draining.get();
        self.all.borrow_mut().retain(|watch| {
            let Some(watch) = watch.upgrade() else { return false };
            if watch.is_followed.get() {
                watch.is_to_look_back.set(true);
                watch.wake();
            }
            if draining && watch.stage.get() == Stage::Idle {
                watch.expire(Expiry::Drain);
            } else if watch.deadline_ms.get() < now_ms && watch.expired.get().is_none() {
                watch.expire(Expiry::Deadline(watch.stage.get()));
            } else {
                let is_stuck = watch.is_stuck();
                let is_due = pace_window_ms.is_some_and(|window_ms| watch.is_due(now_ms, window_ms));
                watch.is_to_note.set(watch.is_to_note.get() | is_stuck);
                watch.is_to_measure.set(watch.is_to_measure.get() | is_due);
                if is_stuck || is_due {
                    watch.wake();
                }
            }
            true
        });
    }

    /// From now on idle connections are closed, at the next sweep.
    pub(crate) fn drain(&self) {
        self.draining.set(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, sync::atomic::AtomicU32, sync::atomic::Ordering, task::Wake};

    struct Counts(AtomicU32);
    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_wait_that_takes_too_long_is_ended_and_its_task_woken() {
        let watches = Watches::default();
        let (slow, quick) = (watches.enter(), watches.enter());
        slow.begin(Stage::Head, 100);
        quick.begin(Stage::Idle, 300);
        let wakes = Arc::new(Counts(AtomicU32::new(0)));
        let waker = Waker::from(Arc::clone(&wakes));
        let context = Context::from_waker(&waker);
        assert_eq!((slow.poll_expired(&context), quick.poll_expired(&context)), (None, None));
        watches.sweep(100, None);
        assert_eq!(slow.poll_expired(&context), None, "not before the deadline has passed");
        watches.sweep(200, None);
        assert_eq!(slow.poll_expired(&context), Some(Expiry::Deadline(Stage::Head)));
        assert_eq!(quick.poll_expired(&context), None);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_wait_that_has_begun_is_not_ended_by_the_one_before() {
        let watches = Watches::default();
        let watch = watches.enter();
        let context = Context::from_waker(Waker::noop());
        watch.begin(Stage::Head, 100);
        watches.sweep(200, None);
        watch.begin(Stage::Sending, 300);
        assert_eq!(watch.poll_expired(&context), None);
        watch.begin(Stage::Idle, 400);
        watches.sweep(500, None);
        assert!(watch.may_be_pardoned());
        watch.pardon();
        assert!(!watch.may_be_pardoned(), "once");
        assert_eq!(watch.poll_expired(&context), Some(Expiry::Deadline(Stage::Idle)));
        watch.begin(Stage::Working, u64::MAX);
        watches.sweep(u64::MAX, None);
        assert_eq!(watch.poll_expired(&context), None);
    }

    #[test]
    fn a_response_that_is_stuck_is_looked_at_once_before_its_deadline() {
        let watches = Watches::default();
        let watch = watches.enter();
        let context = Context::from_waker(Waker::noop());
        let is_asked_at = |now_ms| {
            watches.sweep(now_ms, None);
            watch.take_request_to_note()
        };
        watch.begin(Stage::Sending, 1000);
        assert!(!is_asked_at(200));
        watch.begin(Stage::Sending, 1300);
        assert!(!is_asked_at(400), "something was sent in between");
        assert!(is_asked_at(600));
        assert!(!watch.has_taken(Some(99)), "nothing to compare with");
        watch.note(Some(50));
        assert!(!is_asked_at(800), "noted already");
        assert!(watch.has_taken(Some(51)) && !watch.has_taken(Some(50)) && !watch.has_taken(None));
        assert_eq!(watch.poll_expired(&context), None);
        watches.sweep(1400, None);
        assert_eq!(watch.poll_expired(&context), Some(Expiry::Deadline(Stage::Sending)));
        watch.reset();
        watch.begin(Stage::Sending, 2400);
        assert!(!watch.has_taken(Some(99)), "noted for another wait");
        watch.begin(Stage::Idle, 2500);
        assert!(!is_asked_at(1600) && !is_asked_at(1800), "only responses are sent");
    }

    #[test]
    fn a_response_under_way_is_measured_once_in_a_window() {
        let watches = Watches::default();
        let watch = watches.enter();
        let is_asked_at = |now_ms| {
            watches.sweep(now_ms, Some(1000));
            watch.take_request_to_measure()
        };
        watch.begin(Stage::Idle, 90_000);
        assert!(!is_asked_at(100));
        watch.begin(Stage::Sending, 90_000);
        assert!(is_asked_at(200), "where it begins");
        assert_eq!(watch.measure(200, 5_000), None);
        assert!(!is_asked_at(400) && !is_asked_at(1100));
        watch.begin(Stage::Sending, 95_000);
        assert!(is_asked_at(1200), "progress begins no other window");
        assert_eq!(watch.measure(1200, 5_700), Some((700, 1000)));
        watch.forget_pace();
        assert!(is_asked_at(1400));
        assert_eq!(watch.measure(1400, 5_700), None, "what was before does not count");
        watch.begin(Stage::Idle, 99_000);
        assert!(!is_asked_at(2600));
        watch.begin(Stage::Sending, 99_000);
        assert!(is_asked_at(2800));
        assert_eq!(watch.measure(2800, 9_000), None, "another response");
    }

    #[test]
    fn a_connection_that_is_followed_looks_back_once_a_sweep_whatever_it_waits_for() {
        let watches = Watches::default();
        let watch = watches.enter();
        watch.begin(Stage::Idle, u64::MAX);
        watches.sweep(100, None);
        assert!(!watch.take_request_to_look_back());
        watch.follow(true);
        let wakes = Arc::new(Counts(AtomicU32::new(0)));
        let waker = Waker::from(Arc::clone(&wakes));
        for (number, stage) in [Stage::Idle, Stage::Sending, Stage::Closing].into_iter().enumerate() {
            watch.begin(stage, u64::MAX);
            assert_eq!(watch.poll_expired(&Context::from_waker(&waker)), None);
            watches.sweep(200, None);
            assert_eq!(wakes.0.load(Ordering::Relaxed), number as u32 + 1);
            assert!(watch.take_request_to_look_back() && !watch.take_request_to_look_back());
        }
        watch.follow(false);
        watches.sweep(300, None);
        assert!(!watch.take_request_to_look_back());
    }

    #[test]
    fn draining_ends_idle_waits_only_and_entries_leave_by_themselves() {
        let watches = Watches::default();
        let (idle, busy) = (watches.enter(), watches.enter());
        idle.begin(Stage::Idle, u64::MAX);
        busy.begin(Stage::Sending, u64::MAX);
        watches.drain();
        watches.sweep(5, None);
        let context = Context::from_waker(Waker::noop());
        assert_eq!(idle.poll_expired(&context), Some(Expiry::Drain));
        assert_eq!(busy.poll_expired(&context), None);
        drop((idle, busy));
        watches.sweep(6, None);
        assert!(watches.all.borrow().is_empty());
    }
}
