//! The admin listener: `/healthz` for load balancers, `/metrics` for Prometheus, `/placement` for people, and a page that names them. Plain
//! HTTP, one request a connection, meant for the machine itself.

use crate::{
    access_log::AccessLog,
    descriptors::Reserve,
    metrics::{self, Metrics, Single},
    placement, report,
    snapshot::Snapshot,
};
use arc_swap::ArcSwap;
use linerate_export::Refusal;
use linerate_http::{ImfFixdate, Method, RequestLimits, Responder, Status, parse_request};
use linerate_os::{kernel_tls, limits};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// Connections served at once; more wait.
const CONNECTIONS_LIMIT: usize = 32;
/// A request and its response take no longer.
const TIME_LIMIT: Duration = Duration::from_secs(10);
const HEAD_LIMIT_BYTES: usize = 8 * 1024;

/// What the admin pages tell.
pub(crate) struct State {
    pub(crate) workers: Vec<Arc<Metrics>>,
    /// The access log, if there is one.
    pub(crate) log: Option<Arc<AccessLog>>,
    pub(crate) snapshots: Arc<ArcSwap<Snapshot>>,
    /// `/healthz` says no from the moment the server begins to drain.
    pub(crate) draining: AtomicBool,
    pub(crate) started: SystemTime,
    pub(crate) reloads: [std::sync::atomic::AtomicU64; 2],
}

impl State {
    fn metrics(&self) -> String {
        let started = self.started.duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
        let [succeeded, failed] = [0, 1].map(|index| self.reloads[index].load(Ordering::Relaxed));
        let dropped_lines = self.log.as_ref().map_or(0, |log| log.dropped_lines());
        let gauge = |name, help, value| Single { name, kind: "gauge", help, value };
        let snapshot = self.snapshots.load();
        let kernel = snapshot.kernel.clone();
        let nfs = snapshot.nfs.as_ref();
        let nfs_refusals: Vec<_> = nfs.map_or_else(Vec::new, |nfs| {
            let value = |reason: Refusal| (reason.label(), nfs.exports.refusals().value(reason));
            Refusal::ALL.map(value).to_vec()
        });
        let self_test_failures = kernel.map_or(0, |kernel| kernel.failures().len() as u64);
        metrics::render(
            &self.workers,
            &[
                Single {
                    name: "linerate_access_log_dropped_total",
                    kind: "counter",
                    help: "Access log lines dropped because the disk was too slow, or did not take them.",
                    value: dropped_lines,
                },
                Single {
                    name: "linerate_messages_dropped_total",
                    kind: "counter",
                    help: "Messages dropped because nobody read those before them from standard error.",
                    value: report::dropped_messages(),
                },
                Single {
                    name: "linerate_panics_total",
                    kind: "counter",
                    help: "Faults in linerate itself that ended a connection (or, in a worker's own tasks, the server).",
                    value: report::panics(),
                },
                gauge(
                    "linerate_start_time_seconds",
                    "When the server started, in seconds since 1970.",
                    started,
                ),
                gauge("linerate_reloads_succeeded", "Reloads that took effect.", succeeded),
                gauge(
                    "linerate_reloads_failed",
                    "Reloads that left the old configuration or certificate serving.",
                    failed,
                ),
                gauge(
                    "linerate_kernel_tls_self_test_failures",
                    "What the self-test of kernel TLS found wrong and switched off.",
                    self_test_failures,
                ),
                gauge("linerate_workers", "Workers.", self.workers.len() as u64),
            ],
            &nfs_refusals,
            kernel_tls::statistics().ok().as_deref(),
        )
    }
}

/// Serves until dropped. `reserve` is its own: where there is no descriptor left, it is here that an operator looks why.
pub(crate) async fn run(listener: TcpListener, state: Arc<State>, reserve: Arc<Reserve>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_LIMIT));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        reserve.refill();
        // What is given up here is not taken back before the connection has it.
        let accepted = loop {
            match listener.accept().await {
                Err(error) if limits::is_without_descriptor(&error) && reserve.release() => {}
                accepted => break accepted,
            }
        };
        match accepted {
            Ok((mut stream, _)) => {
                let (state, reserve) = (Arc::clone(&state), Arc::clone(&reserve));
                tokio::spawn(async move {
                    // A client that is slow or gone is its own problem.
                    let _ = tokio::time::timeout(TIME_LIMIT, answer(&mut stream, &state)).await;
                    if let Ok(stream) = stream.into_std() {
                        reserve.keep(stream.into());
                    }
                    drop(place);
                });
            }
            Err(error) => {
                report::warn(&format!("the admin listener: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn answer(stream: &mut TcpStream, state: &State) -> io::Result<()> {
    let mut buffer = Vec::new();
    let limits = RequestLimits { head_bytes: HEAD_LIMIT_BYTES, ..RequestLimits::default() };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let date = ImfFixdate::at(i64::try_from(now).unwrap_or(i64::MAX));
    let response = loop {
        match parse_request(&buffer, &limits) {
            Ok(Some((request, _))) => {
                let responder = Responder::for_request(&request, &date, crate::SERVER, false);
                break respond(&responder, request.method, request.path, state);
            }
            Ok(None) => {
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            }
            Err(error) => {
                let mut page = Vec::new();
                let responder = Responder::without_request(&buffer, &date, crate::SERVER);
                let _ = responder.plain_error(error.status(), error.explanation(), &mut page);
                break page;
            }
        }
    };
    stream.write_all(&response).await?;
    stream.shutdown().await
}

fn respond(responder: &Responder<'_>, method: Method<'_>, path: &str, state: &State) -> Vec<u8> {
    let mut page = Vec::new();
    let _ = match (method, path) {
        (Method::Get | Method::Head, "/healthz") if state.draining.load(Ordering::Relaxed) => {
            responder.plain_error(Status::ServiceUnavailable, "draining", &mut page)
        }
        (Method::Get | Method::Head, "/healthz") => responder.plain_error(Status::Ok, "ok", &mut page),
        (Method::Get | Method::Head, "/metrics") => {
            // The content ends with its own line feed; the format asks for exactly one.
            responder.plain_error(Status::Ok, state.metrics().trim_end(), &mut page)
        }
        (Method::Get | Method::Head, "/") => {
            responder.plain_error(Status::Ok, "linerate admin\n\n/healthz\n/metrics\n/placement", &mut page)
        }
        (Method::Get | Method::Head, "/placement") => {
            let plan = Arc::clone(&state.snapshots.load().plan);
            responder.plain_error(
                Status::Ok,
                placement::page::page(&plan, &state.workers).trim_end(),
                &mut page,
            )
        }
        (Method::Get | Method::Head, _) => {
            responder.plain_error(Status::NotFound, "Here are /healthz, /metrics and /placement.", &mut page)
        }
        _ => responder.plain_method_not_allowed("GET, HEAD", &mut page),
    };
    page
}
