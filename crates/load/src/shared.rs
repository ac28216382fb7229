//! What the threads of a run tell each other: the requests left, whether to stop, how far they are.

use std::{
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, Thread},
    time::Instant,
};

use crate::{LoadError, resolve::LocalAddresses};

/// How many attempts have to fail, before one succeeds, for the run to be given up.
const HOPELESS_ATTEMPTS: u64 = 10;

/// One thread's counts, for the progress line.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) responses: AtomicU64,
    pub(crate) body_bytes: AtomicU64,
    pub(crate) errors: AtomicU64,
}

/// The threads' common ground.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    /// Requests that may still begin.
    budget: AtomicU64,
    /// Requests that have not ended.
    unended: AtomicU64,
    /// Some connection came about.
    connected: AtomicBool,
    failed_attempts: AtomicU64,
    hopeless_attempts: u64,
    failure: Mutex<Option<LoadError>>,
    /// Threads that are ready to begin.
    ready: AtomicU32,
    /// When the run began, once it has.
    began: (Mutex<Option<Instant>>, Condvar),
    /// Threads may close their connections.
    released: (Mutex<bool>, Condvar),
    /// The thread that watches; to be woken at the end.
    watcher: Thread,
    pub(crate) progress: Vec<Progress>,
    pub(crate) local: LocalAddresses,
}

impl Shared {
    /// To be made by the thread that watches.
    pub(crate) fn new(threads: u32, connections: u32, requests: u64) -> Self {
        Self {
            stop: AtomicBool::new(false),
            budget: AtomicU64::new(requests),
            unended: AtomicU64::new(requests),
            connected: AtomicBool::new(false),
            failed_attempts: AtomicU64::new(0),
            hopeless_attempts: HOPELESS_ATTEMPTS.min(u64::from(connections)).min(requests),
            failure: Mutex::new(None),
            ready: AtomicU32::new(0),
            began: (Mutex::new(None), Condvar::new()),
            released: (Mutex::new(false), Condvar::new()),
            watcher: thread::current(),
            progress: (0..threads).map(|_| Progress::default()).collect(),
            local: LocalAddresses::default(),
        }
    }

    /// All threads are to stop.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Relaxed);
        self.watcher.unpark();
    }

    /// A thread is ready: waits until all are, and gives the moment at which the run began.
    pub(crate) fn wait_for_begin(&self) -> Instant {
        self.ready.fetch_add(1, Relaxed);
        self.watcher.unpark();
        let mut began = self.began.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *began {
                Some(at) => return at,
                None => began = self.began.1.wait(began).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits until all threads are ready, or one has failed; then the run begins.
    pub(crate) fn begin(&self) -> Instant {
        while self.ready.load(Relaxed) < self.progress.len() as u32 && !self.is_stopped() {
            thread::park();
        }
        let now = Instant::now();
        *self.began.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        self.began.1.notify_all();
        now
    }

    /// The end of the measured time was told: connections may be closed.
    pub(crate) fn release(&self) {
        *self.released.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.released.1.notify_all();
    }

    /// Waits for [`Shared::release`].
    pub(crate) fn wait_for_release(&self) {
        let mut released = self.released.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*released {
            released = self.released.1.wait(released).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Takes one request from those that may begin. False if none is left.
    pub(crate) fn take_request(&self) -> bool {
        self.budget.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// A request has ended, in whatever way. With the last the run is over.
    pub(crate) fn request_ended(&self) {
        if self.unended.fetch_sub(1, Relaxed) == 1 {
            self.stop();
        }
    }

    /// A connection came about.
    pub(crate) fn connected(&self) {
        if !self.connected.load(Relaxed) {
            self.connected.store(true, Relaxed);
        }
    }

    /// An attempt to connect failed. `why` is asked where none ever succeeded, and ends the run.
    pub(crate) fn not_connected(&self, why: impl FnOnce() -> LoadError) {
        if self.connected.load(Relaxed) {
            return;
        }
        if self.failed_attempts.fetch_add(1, Relaxed) + 1 >= self.hopeless_attempts {
            self.give_up(why());
        }
    }

    /// Ends the run with an error; the first one counts.
    pub(crate) fn give_up(&self, error: LoadError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop();
    }

    /// Why the run was given up, if it was.
    pub(crate) fn take_failure(&self) -> Option<LoadError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
