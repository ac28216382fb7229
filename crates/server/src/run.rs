//! The server as a whole: from settings to running workers, and through its signals to its end.

mod configuration;
mod exports;
mod kernel;
mod notices;
mod reload;
mod retire;
mod roots;
mod signals;
mod start;

pub use start::{break_evens, check};

use crate::{
    access_log::AccessLog,
    admin,
    descriptors::{Budget, Reserve},
    listeners::{Binder, ListenFault, WorkerListener},
    placement::PlacementPlan,
    places::totals::Totals,
    report,
    sites::SiteFault,
    snapshot::{Found, Snapshot},
    worker::{self, Command, Handle},
};
use arc_swap::ArcSwap;
use configuration::{Readings, What};
use linerate_config::{Listener, ListenerKind, LogTarget, Settings, Source, cpu_ranges};
use linerate_os::processor;
use linerate_tls::DevelopmentCertificate;
use sd_notify::NotifyState;
use std::{
    fmt, io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::Notify;

/// How long the end of the process waits for workers that were told to stop.
const WORKER_PATIENCE: Duration = Duration::from_secs(2);

/// Why the server did not start, or ended other than it was told to.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// Settings that cannot be read, or are wrong.
    Settings(String),
    /// Sites that cannot be served.
    Sites(Vec<SiteFault>),
    /// Directories that cannot be exported, each with the place that names it.
    Exports(Vec<String>),
    /// Certificates that cannot be used, each with the place that names it.
    Certificates(Vec<String>),
    /// Addresses that cannot be listened on.
    Listen(Vec<String>),
    /// The calibration cannot be read, with the place that names it.
    Calibration(String),
    /// The access log cannot be opened.
    AccessLog {
        /// Where it was configured.
        origin: String,
        /// What it is.
        target: LogTarget,
        /// Why.
        error: io::Error,
    },
    /// CPUs that were asked for and may not be used.
    Cpus(String),
    /// A worker has ended by a fault of this program's own.
    Worker,
    /// The system refused something else.
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for ServeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines =
            |formatter: &mut fmt::Formatter<'_>, lines: &[String]| formatter.write_str(&lines.join("\n"));
        match self {
            Self::Sites(faults) => {
                lines(formatter, &faults.iter().map(ToString::to_string).collect::<Vec<_>>())
            }
            Self::Exports(faults) | Self::Certificates(faults) | Self::Listen(faults) => {
                lines(formatter, faults)
            }
            Self::AccessLog { origin, target, error } => {
                write!(formatter, "{origin}: the access log {target} cannot be opened: {error}")
            }
            Self::Settings(message) | Self::Calibration(message) | Self::Cpus(message) => formatter.write_str(message),
            Self::Worker => formatter.write_str(
                "a worker has ended by a fault in linerate itself, and the server with it: please report what was said \
                 before",
            ),
            Self::System { doing, error } => write!(formatter, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Serves until a signal ends it: TERM or INT at once, QUIT when all responses are sent.
///
/// `source` is where the settings are read, now and at a reload (HUP). Signals are taken from the beginning on: one that
/// ends the server does so at once, while it starts as well, and what asks for a reload or for another log waits until it
/// has started.
///
/// # Errors
/// Whatever keeps the server from starting. A server that has started ends without an error.
pub fn run(source: Source) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ServeError::System { doing: "starting the control thread", error })?;
    let result = runtime.block_on(async {
        let mut signals = signals::Signals::new()
            .map_err(|error| ServeError::System { doing: "listening for signals", error })?;
        report::tell_panics();
        // INV-START-1: starting waits for disks, and for the process that writes a pipe that is read.
        let starting = tokio::task::spawn_blocking(move || Server::start(source));
        let started = tokio::select! {
            biased;
            () = signals.end() => return Ok(()),
            started = starting => started,
        };
        let server = started
            .map_err(|error| ServeError::System { doing: "starting", error: io::Error::other(error) })??;
        server.run(signals).await
    });
    // Threads that still wait for a disk are left to themselves.
    runtime.shutdown_background();
    report::settle();
    result
}

/// Listeners in use: address as configured, as bound, and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listening {
    configured: SocketAddr,
    bound: SocketAddr,
    kind: ListenerKind,
}

impl Listening {
    /// Whether this is that listener, as it is configured.
    fn is(&self, listener: &Listener) -> bool {
        self.configured == listener.address && self.kind == listener.kind
    }

    /// Whether only the scheme differs. Port 0 is another port each time.
    fn can_become(&self, listener: &Listener) -> bool {
        self.configured == listener.address && self.kind != listener.kind && listener.address.port() != 0
    }
}

struct Server {
    source: Source,
    settings: Settings,
    snapshots: Arc<ArcSwap<Snapshot>>,
    /// What was found out about this machine.
    found: Found,
    /// What decides which engine carries a connection, as far as the settings say it.
    plan: PlacementPlan,
    /// The files that the process may open.
    budget: Budget,
    search: kernel::Search,
    readings: Readings,
    /// Made because no site brings a certificate.
    development: Option<DevelopmentCertificate>,
    /// Tells when certificates are to be read anew.
    changes: reload::CertificateWatch,
    roots: roots::RootWatch,
    notices: notices::Notices,
    binder: Binder,
    listening: Vec<Listening>,
    /// Given up, and not closed yet.
    retiring: Vec<retire::Retiring>,
    workers: Vec<Handle>,
    /// Notified when a worker's thread ends.
    worker_ended: Arc<Notify>,
    log: Option<Arc<AccessLog>>,
    admin_state: Arc<admin::State>,
    admin_socket: Option<std::net::TcpListener>,
    admin_reserve: Arc<Reserve>,
}

/// The CPUs that workers are pinned to, in their order; `None` is not pinned.
fn worker_cpus(settings: &Settings) -> Result<Vec<Option<usize>>, ServeError> {
    let allowed = processor::allowed().unwrap_or_default();
    let chosen: Vec<usize> = match &settings.cpus {
        Some(list) => {
            let refused: Vec<usize> =
                list.as_slice().iter().copied().filter(|cpu| !allowed.contains(cpu)).collect();
            if !refused.is_empty() {
                return Err(ServeError::Cpus(format!(
                    "{}: this process cannot use the CPUs {}; it may use {}",
                    settings.cpus_origin,
                    cpu_ranges(&refused),
                    cpu_ranges(&allowed)
                )));
            }
            list.as_slice().to_vec()
        }
        None => allowed,
    };
    let count = settings.workers.map_or(chosen.len().max(1), std::num::NonZero::get);
    // More workers than CPUs share them without being pinned.
    Ok((0..count).map(|index| chosen.get(index).copied().filter(|_| count <= chosen.len())).collect())
}

impl Server {
    async fn run(mut self, mut signals: signals::Signals) -> Result<(), ServeError> {
        let admin = self.admin_socket.take().map(tokio::net::TcpListener::from_std).transpose();
        let admin =
            admin.map_err(|error| ServeError::System { doing: "opening the admin listener", error })?;
        if let Some(listener) = admin {
            let (state, reserve) = (Arc::clone(&self.admin_state), Arc::clone(&self.admin_reserve));
            tokio::spawn(admin::run(listener, state, reserve));
        }
        self.notices.tell(vec![NotifyState::Ready]);
        let mut ended = Ok(());
        loop {
            let event = tokio::select! {
                event = signals.next() => event,
                () = self.changes.changed() => signals::Event::CertificatesChanged,
                outcome = self.readings.outcome() => {
                    self.adopt_read(outcome);
                    continue;
                }
                found = self.search.ended() => {
                    self.adopt_found(found);
                    continue;
                }
                replaced = self.roots.replaced() => {
                    self.adopt_roots(replaced);
                    continue;
                }
                () = retire::is_due(&self.retiring) => {
                    self.close_retired();
                    continue;
                }
                () = self.worker_ended.notified() => {
                    // Nobody told it to: what is left is not the server that was asked for.
                    self.tell_all(|| Command::Stop);
                    ended = Err(ServeError::Worker);
                    break;
                }
            };
            match event {
                signals::Event::Reload => self.reload(What::All),
                signals::Event::CertificatesChanged => self.reload(What::Certificates),
                signals::Event::ReopenLogs => self.reopen_logs(),
                signals::Event::Drain => {
                    self.drain(&mut signals).await;
                    break;
                }
                signals::Event::Stop => {
                    self.tell_all(|| Command::Stop);
                    break;
                }
            }
        }
        self.finish();
        ended
    }

    fn tell_all(&self, command: impl Fn() -> Command) {
        for worker in &self.workers {
            // A worker that has ended needs no telling.
            let _ = worker.commands.send(command());
        }
    }

    /// Stops taking connections, lets the workers finish, and stops them when told to in the meantime.
    async fn drain(&mut self, signals: &mut signals::Signals) {
        report::note("draining: no new connections; open responses are finished");
        self.notices.tell(vec![NotifyState::Stopping]);
        self.admin_state.draining.store(true, std::sync::atomic::Ordering::Relaxed);
        let limit = Duration::from_millis(self.settings.timeouts.drain_ms);
        self.tell_all(|| Command::Drain(limit));
        // They keep to it themselves, unless one waits for a disk.
        let give_up = Instant::now() + limit;
        while self.workers.iter().any(|worker| !worker.thread.is_finished()) && Instant::now() < give_up {
            tokio::select! {
                event = signals.next() => if event == signals::Event::Stop {
                    self.tell_all(|| Command::Stop);
                    return;
                },
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
    }

    fn reopen_logs(&self) {
        if let Some(log) = &self.log {
            log.reopen();
        }
    }

    /// Waits for the workers and for the log, neither for ever.
    fn finish(self) {
        self.notices.tell(vec![NotifyState::Stopping]);
        let give_up = Instant::now() + WORKER_PATIENCE;
        while self.workers.iter().any(|worker| !worker.thread.is_finished()) && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(1));
        }
        for worker in self.workers {
            if !worker.thread.is_finished() {
                report::warn("a worker does not end: it waits for a disk, and is left behind");
            } else if worker.thread.join().is_err() {
                report::warn("a worker ended by a panic");
            }
        }
        if let Some(log) = self.log {
            let unwritten = log.settle();
            let lost = log.dropped_lines() + unwritten;
            if lost > 0 {
                report::warn(&format!(
                    "the access log lacks up to {lost} lines: {unwritten} were not taken in time at the end, the others before"
                ));
            }
        }
        self.notices.settle();
    }
}

fn listen_faults(faults: &[ListenFault]) -> ServeError {
    ServeError::Listen(faults.iter().map(ToString::to_string).collect())
}

fn new_admin_state(
    workers: &[Handle],
    log: Option<&Arc<AccessLog>>,
    snapshots: &Arc<ArcSwap<Snapshot>>,
) -> admin::State {
    admin::State {
        workers: workers.iter().map(|worker| Arc::clone(&worker.metrics)).collect(),
        log: log.cloned(),
        snapshots: Arc::clone(snapshots),
        draining: false.into(),
        started: SystemTime::now(),
        reloads: Default::default(),
    }
}

/// Starts a worker on each CPU of `cpus`.
fn start_workers(
    cpus: &[Option<usize>],
    mut listeners: Vec<Vec<WorkerListener>>,
    snapshots: &Arc<ArcSwap<Snapshot>>,
    log: Option<&Arc<AccessLog>>,
    settings: &Settings,
    (ended, open_files_cached): (&Arc<Notify>, usize),
) -> Result<Vec<Handle>, ServeError> {
    let totals = Arc::new(Totals::new(cpus.len()));
    let format = settings.access_log.as_ref().map(|log| log.format).unwrap_or_default();
    cpus.iter()
        .enumerate()
        .map(|(index, cpu)| {
            worker::start(worker::Setup {
                index,
                cpu: *cpu,
                listeners: std::mem::take(&mut listeners[index]),
                snapshots: Arc::clone(snapshots),
                totals: Arc::clone(&totals),
                log: log.map(|log| (Arc::clone(log), format)),
                open_files_cached,
                ended: Arc::clone(ended),
            })
            .map_err(|error| ServeError::System { doing: "starting a worker", error })
        })
        .collect()
}
