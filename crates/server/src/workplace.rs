//! What the connections of one worker share: its memory, its clock, its counters. Nothing here is shared between
//! workers but by reading.

use crate::{
    access_log::Sink,
    clock::WorkerClock,
    descriptors::Reserve,
    mapped_bytes::MappedBytes,
    metrics::Metrics,
    placement::{PlacementPlan, worker_placer::WorkerPlacer},
    watch::Watches,
};
use linerate_engine::{
    kernel::Capabilities,
    nic::{Adapters, SetUps},
    user::Batch,
};
use linerate_http::ImfFixdate;
use linerate_os::{
    file,
    kernel_tls::{Calls, System},
};
use std::{
    cell::{Cell, Ref, RefCell},
    fs::File,
    io,
    rc::Rc,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// Bytes read from a socket in one go: a full record and the rest of another.
pub(crate) const RECEIVE_BYTES: usize = 32 * 1024;

/// Room for an ordinary response head.
const HEAD_BYTES: usize = 1024;
/// Heads kept between responses.
const KEPT_HEADS: usize = 64;

/// How the user engine cuts and sends; from the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// The largest batch when reading.
    pub(crate) read_batch_bytes: usize,
    /// The largest batch when sealing from a mapping.
    pub(crate) map_batch_bytes: usize,
    /// Files of at least this size are mapped once they are hot.
    pub(crate) map_threshold_bytes: u64,
    /// Bytes a connection may send before others get their turn.
    pub(crate) quantum_bytes: u64,
}

/// Time limits in milliseconds; from the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimits {
    pub(crate) handshake_ms: u64,
    pub(crate) idle_ms: u64,
    pub(crate) head_ms: u64,
    pub(crate) write_progress_ms: u64,
    pub(crate) closing_ms: u64,
    /// What a peer must take of a response, in the mean over each `write_progress_ms`.
    pub(crate) least_rate_bytes_per_s: u64,
}

impl TimeLimits {
    /// How long what a peer takes is averaged over; `None` if it need not take anything.
    fn pace_window_ms(&self) -> Option<u64> {
        (self.least_rate_bytes_per_s > 0).then_some(self.write_progress_ms)
    }
}

/// [`file::read_ahead`], or another like it.
pub(crate) type ReadAhead = fn(&File, u64, u64) -> io::Result<()>;

/// The most that is asked of it at once for one response or one file that is read in order.
pub(crate) const FETCH_BYTES: u64 = 2 << 20;

/// A worker's own.
pub(crate) struct Workplace {
    pub(crate) batch: RefCell<Batch>,
    pub(crate) receive: RefCell<Box<[u8]>>,
    pub(crate) watches: Watches,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: Option<Sink>,
    pub(crate) tuning: Cell<Tuning>,
    pub(crate) time_limits: Cell<TimeLimits>,
    pub(crate) mapped_bytes: Rc<MappedBytes>,
    /// What the kernel carries, tested, if connections may move there.
    pub(crate) kernel: RefCell<Option<Arc<Capabilities>>>,
    /// Decides which engine carries each connection.
    pub(crate) placer: WorkerPlacer,
    /// The system calls of kernel TLS; tests put others here.
    pub(crate) calls: Arc<dyn Calls>,
    /// Descriptors for when there are no others.
    pub(crate) reserve: Reserve,
    /// Brings a part of a file into memory, and waits for the disk; tests put a slower one here.
    pub(crate) read_ahead: ReadAhead,
    /// The adapters that encrypt, or could.
    pub(crate) adapters: RefCell<Arc<Adapters>>,
    /// Set-ups of connections on them that are under way.
    pub(crate) set_ups: SetUps,
    /// Memory for response heads, lent to one response at a time.
    heads: RefCell<Vec<Vec<u8>>>,
    date: RefCell<ImfFixdate>,
    clock: WorkerClock,
}

#[cfg(test)]
impl Workplace {
    /// For a test: without a log, and with this time for everything that a peer is waited for.
    pub(crate) fn of_test(
        plan: crate::placement::PlacementPlan,
        limit_ms: u64,
        least_rate_bytes_per_s: u64,
    ) -> Self {
        let tuning = Tuning {
            read_batch_bytes: 65_536,
            map_batch_bytes: 65_536,
            map_threshold_bytes: u64::MAX,
            quantum_bytes: 1 << 20,
        };
        let limits = TimeLimits {
            handshake_ms: limit_ms,
            idle_ms: limit_ms,
            head_ms: limit_ms,
            write_progress_ms: limit_ms,
            closing_ms: limit_ms,
            least_rate_bytes_per_s,
        };
        Self::new(Arc::default(), None, tuning, limits, Arc::new(plan))
    }
}

impl Workplace {
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        log: Option<Sink>,
        tuning: Tuning,
        time_limits: TimeLimits,
        plan: Arc<PlacementPlan>,
    ) -> Self {
        Self {
            batch: RefCell::new(Batch::new(tuning.read_batch_bytes.max(tuning.map_batch_bytes))),
            receive: RefCell::new(vec![0; RECEIVE_BYTES].into_boxed_slice()),
            watches: Watches::default(),
            metrics,
            log,
            tuning: Cell::new(tuning),
            time_limits: Cell::new(time_limits),
            mapped_bytes: Rc::default(),
            kernel: RefCell::default(),
            placer: WorkerPlacer::new(plan),
            calls: Arc::new(System),
            reserve: Reserve::new(),
            read_ahead: file::read_ahead,
            adapters: RefCell::default(),
            set_ups: SetUps::default(),
            heads: RefCell::default(),
            date: RefCell::new(ImfFixdate::at(Self::unix_seconds_signed())),
            clock: WorkerClock::new(),
        }
    }

    /// Milliseconds that the worker has run, as of the last sweep; see [`WorkerClock`].
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Looks at the real clock, ends what took too long, hands the log over. Called by the worker's sweep.
    pub(crate) fn sweep(&self) {
        if self.clock.advance() {
            self.watches.sweep(self.now_ms(), self.time_limits.get().pace_window_ms());
        }
        self.reserve.refill();
        self.date.borrow_mut().advance_to(Self::unix_seconds_signed());
        let has_adapter = self.adapters.borrow().any_on();
        self.metrics.show_placement(self.placer.refresh(self.now_ms(), has_adapter));
        if let Some(log) = &self.log {
            log.hand_over();
        }
    }

    /// Takes over new tuning; the batch's memory is made anew if it has to be larger.
    pub(crate) fn adopt_tuning(&self, tuning: Tuning) {
        self.tuning.set(tuning);
        *self.batch.borrow_mut() = Batch::new(tuning.read_batch_bytes.max(tuning.map_batch_bytes));
    }

    /// The Date header's value, as of the last sweep.
    pub(crate) fn date(&self) -> Ref<'_, ImfFixdate> {
        self.date.borrow()
    }

    /// Empty memory for a response's head.
    pub(crate) fn lend_head(&self) -> Vec<u8> {
        self.heads.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(HEAD_BYTES))
    }

    /// Takes a head's memory back, unless a page made it large.
    pub(crate) fn return_head(&self, mut head: Vec<u8>) {
        if head.capacity() <= 4 * HEAD_BYTES && self.heads.borrow().len() < KEPT_HEADS {
            head.clear();
            self.heads.borrow_mut().push(head);
        }
    }

    fn unix_seconds_signed() -> i64 {
        i64::try_from(Self::unix_seconds()).unwrap_or(i64::MAX)
    }

    /// Seconds since 1970.
    pub(crate) fn unix_seconds() -> u64 {
        // A clock before 1970 reads as 1970: nothing depends on it but dates shown to people.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
    }
}
