//! A worker: one thread, pinned to a CPU, with its own listening sockets, runtime, memory and cache. Workers share
//! read-only snapshots, and a few counts that change once a connection.

mod accept;
mod admission;
#[cfg(test)]
mod tests;

use crate::{
    access_log::{AccessLog, Sink},
    exchange::Service,
    listeners::WorkerListener,
    metrics::Metrics,
    nfs::Mappings,
    places::{handshakes::Handshakes, totals::Totals},
    report,
    snapshot::Snapshot,
    watch::SWEEP_INTERVAL,
    workplace::Workplace,
};
use arc_swap::ArcSwap;
use linerate_config::{ListenerKind, LogFormat};
use linerate_content::{Cache, CacheLimits};
use linerate_os::processor;
use std::{
    cell::{Cell, RefCell},
    future::Future,
    io,
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tokio::sync::{
    Notify,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

/// Threads that wait for the disk, per worker.
const WAITING_THREADS: usize = 16;
/// How long a listener that is given up takes connections that had begun: the time in which a client answers that is
/// as far away as the network goes, and in which a lost segment is sent again.
pub(crate) const RETIREMENT: Duration = Duration::from_secs(1);
/// How often cached files are looked at for having changed or gone.
const CACHE_SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// What a worker is told while it runs.
#[derive(Debug)]
pub(crate) enum Command {
    /// Take connections here, too.
    Listen(WorkerListener),
    /// Serve new connections there in another way.
    ChangeKind(SocketAddr, ListenerKind),
    /// Let no more connections begin there, and take those that have begun; [`Command::ChangeKind`] takes that back.
    Retire(SocketAddr),
    /// Take what waits there, and close it.
    Close(SocketAddr),
    /// Take no more connections at all, finish what is under way within this time, and end.
    Drain(Duration),
    /// End now.
    Stop,
}

/// Everything a worker starts with.
pub(crate) struct Setup {
    pub(crate) index: usize,
    pub(crate) cpu: Option<usize>,
    pub(crate) listeners: Vec<WorkerListener>,
    pub(crate) snapshots: Arc<ArcSwap<Snapshot>>,
    pub(crate) totals: Arc<Totals>,
    pub(crate) log: Option<(Arc<AccessLog>, LogFormat)>,
    pub(crate) open_files_cached: usize,
    /// Notified when the worker's thread ends, whyever.
    pub(crate) ended: Arc<Notify>,
}

/// A running worker.
pub(crate) struct Handle {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) commands: UnboundedSender<Command>,
    pub(crate) thread: JoinHandle<()>,
}

/// Starts a worker's thread.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(setup: Setup) -> io::Result<Handle> {
    let metrics = Arc::new(Metrics::default());
    let (commands, inbox) = unbounded_channel();
    let name = format!("worker-{}", setup.index);
    let worker_metrics = Arc::clone(&metrics);
    let ended = NotifyWhenDropped(Arc::clone(&setup.ended));
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        let _ended = ended;
        run(setup, worker_metrics, inbox);
    })?;
    Ok(Handle { metrics, commands, thread })
}

struct NotifyWhenDropped(Arc<Notify>);

impl Drop for NotifyWhenDropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

fn run(setup: Setup, metrics: Arc<Metrics>, inbox: UnboundedReceiver<Command>) {
    if let Some(cpu) = setup.cpu
        && let Err(error) = processor::pin_current_thread(cpu)
    {
        report::warn(&format!("worker {} could not be pinned to CPU {cpu}: {error}", setup.index));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WAITING_THREADS)
        .build_local(tokio::runtime::LocalOptions::default());
    match runtime {
        Ok(runtime) => {
            runtime.block_on(Worker::new(setup, metrics).run(inbox));
            // Threads that still wait for a disk are left to themselves.
            runtime.shutdown_background();
        }
        Err(error) => report::warn(&format!("worker {} could not start: {error}", setup.index)),
    }
}

/// What is wanted of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Take connections, and serve them so.
    Serve(ListenerKind),
    /// Take those that have begun.
    Retire,
    /// Take those that wait, and close it.
    Close,
}

/// How the task that takes a listener's connections is told what to do: it looks here when woken.
struct ListenerControl {
    address: SocketAddr,
    wanted: Cell<Wanted>,
    changed: Notify,
}

impl ListenerControl {
    fn change(&self, wanted: Wanted) {
        self.wanted.set(wanted);
        self.changed.notify_one();
    }
}

struct Worker {
    service: Rc<Service>,
    totals: Arc<Totals>,
    handshakes: Rc<Handshakes>,
    listeners: RefCell<Vec<Rc<ListenerControl>>>,
    generation: Cell<u64>,
    initial: RefCell<Vec<WorkerListener>>,
    /// Listeners that are not closed yet.
    listeners_open: Cell<usize>,
    /// One of the tasks that the worker cannot be without has panicked.
    failed: Notify,
}

impl Worker {
    fn new(setup: Setup, metrics: Arc<Metrics>) -> Rc<Self> {
        let snapshot = setup.snapshots.load_full();
        let log_format = setup.log.as_ref().map_or(LogFormat::Combined, |(_, format)| *format);
        let sink = setup.log.map(|(log, _)| Sink::new(log));
        let handshakes = Rc::new(Handshakes::new(Arc::clone(&metrics)));
        let workplace =
            Workplace::new(metrics, sink, snapshot.tuning, snapshot.time_limits, Arc::clone(&snapshot.plan));
        workplace.mapped_bytes.set_limit(snapshot.mapped_bytes_limit);
        workplace.kernel.replace(snapshot.kernel.clone());
        workplace.adapters.replace(Arc::clone(&snapshot.adapters));
        let limits = CacheLimits { entries: setup.open_files_cached, ..CacheLimits::default() };
        Rc::new(Self {
            service: Rc::new(Service {
                workplace: Rc::new(workplace),
                files: RefCell::new(Cache::new(limits)),
                mappings: Mappings::default(),
                snapshots: setup.snapshots,
                log_format,
            }),
            totals: setup.totals,
            handshakes,
            listeners: RefCell::default(),
            generation: Cell::new(snapshot.generation),
            initial: RefCell::new(setup.listeners),
            listeners_open: Cell::new(0),
            failed: Notify::new(),
        })
    }

    async fn run(self: Rc<Self>, mut inbox: UnboundedReceiver<Command>) {
        for listener in self.initial.take() {
            self.listen(listener);
        }
        self.spawn_vital(Rc::clone(&self).sweep());
        loop {
            let command = tokio::select! {
                biased;
                () = self.failed.notified() => return,
                command = inbox.recv() => command,
            };
            match command {
                Some(Command::Listen(listener)) => self.listen(listener),
                Some(Command::ChangeKind(address, kind)) => {
                    self.change(Wanted::Serve(kind), |known| known == address)
                }
                Some(Command::Retire(address)) => self.change(Wanted::Retire, |known| known == address),
                Some(Command::Close(address)) => self.change(Wanted::Close, |known| known == address),
                Some(Command::Drain(limit)) => return self.drain(limit, &mut inbox).await,
                Some(Command::Stop) | None => return,
            }
        }
    }

    /// Starts a task without which the worker is none: its heartbeat, a listener's. A panic there ends the worker, and with
    /// it the server: what such a task left half done is not known, and a worker that ends no deadline, or takes nobody, must
    /// not go on unnoticed.
    fn spawn_vital(self: &Rc<Self>, task: impl Future<Output = ()> + 'static) {
        let vital = Vital(Rc::clone(self));
        tokio::task::spawn_local(async move {
            let _vital = vital;
            task.await;
        });
    }

    fn listen(self: &Rc<Self>, listener: WorkerListener) {
        let control = Rc::new(ListenerControl {
            address: listener.address,
            wanted: Cell::new(Wanted::Serve(listener.kind)),
            changed: Notify::new(),
        });
        self.listeners.borrow_mut().push(Rc::clone(&control));
        self.listeners_open.set(self.listeners_open.get() + 1);
        let worker = Rc::clone(self);
        self.spawn_vital(async move {
            accept::run(Rc::clone(&worker), listener, control).await;
            worker.listeners_open.set(worker.listeners_open.get() - 1);
        });
    }

    fn change(&self, wanted: Wanted, which: impl Fn(SocketAddr) -> bool) {
        self.listeners.borrow_mut().retain(|listener| {
            let is_meant = which(listener.address);
            if is_meant {
                listener.change(wanted);
            }
            !is_meant || wanted != Wanted::Close
        });
    }

    /// Finishes what is under way. A `Stop` that comes meanwhile ends it at once.
    async fn drain(&self, limit: Duration, inbox: &mut UnboundedReceiver<Command>) {
        self.service.workplace.watches.drain();
        self.change(Wanted::Retire, |_| true);
        let started = Instant::now();
        loop {
            let elapsed = started.elapsed();
            if elapsed >= RETIREMENT.min(limit) {
                self.change(Wanted::Close, |_| true);
            }
            let is_done = self.listeners_open.get() == 0
                && self.service.workplace.metrics.connections_active.value() == 0;
            if is_done || elapsed >= limit {
                return;
            }
            let pause = (limit - elapsed).min(SWEEP_INTERVAL / 4);
            tokio::select! {
                biased;
                () = self.failed.notified() => return,
                command = tokio::time::timeout(pause, inbox.recv()) => {
                    if let Ok(Some(Command::Stop) | None) = command {
                        return;
                    }
                }
            }
        }
    }

    /// The worker's heartbeat: deadlines, the date, the log, the cache, a new snapshot.
    async fn sweep(self: Rc<Self>) {
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut cache_swept = Instant::now();
        loop {
            ticks.tick().await;
            self.service.workplace.sweep();
            self.adopt_snapshot();
            self.give_up_excess_handshakes();
            self.give_up_excess_connections();
            if cache_swept.elapsed() >= CACHE_SWEEP_INTERVAL {
                cache_swept = Instant::now();
                self.service.files.borrow_mut().sweep(cache_swept);
            }
        }
    }

    fn adopt_snapshot(&self) {
        let snapshot = self.service.snapshots.load();
        if self.generation.replace(snapshot.generation) == snapshot.generation {
            return;
        }
        let workplace = &self.service.workplace;
        workplace.time_limits.set(snapshot.time_limits);
        workplace.adopt_tuning(snapshot.tuning);
        workplace.mapped_bytes.set_limit(snapshot.mapped_bytes_limit);
        workplace.kernel.replace(snapshot.kernel.clone());
        workplace.adapters.replace(Arc::clone(&snapshot.adapters));
        workplace.placer.adopt(Arc::clone(&snapshot.plan));
        self.service.files.borrow_mut().clear();
        // What connections inherit from their listener may be another from now on.
        for listener in self.listeners.borrow().iter() {
            listener.changed.notify_one();
        }
    }
}

/// Tells the worker if its task ends by a panic.
struct Vital(Rc<Worker>);

impl Drop for Vital {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.notify_one();
        }
    }
}
