//! What a running worker takes over from a new snapshot.

use super::*;
use crate::{
    metrics::Closed,
    placement::{Basis, PlacementPlan},
    places::totals::{Count, Place},
    sites::Sites,
    snapshot::{Found, Served},
};
use linerate_config::{Flags, Settings};
use linerate_os::socket;
use linerate_os::socket::not_sent_low_water;
use linerate_placement::Costs;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn snapshot_of(generation: u64, root: &Path, toml: &str) -> Snapshot {
    let text = format!("{toml}\n[[site]]\nroot = {root:?}\n");
    let settings = Settings::from_toml(Path::new("test.toml"), text.as_bytes(), &Flags::default()).unwrap();
    let sites = Sites::open(&settings).unwrap();
    let plan = PlacementPlan::new(&settings, (Basis::Defaults, Costs::defaults()), 1);
    let connections = settings.limits.connections;
    let served = Served { sites, acceptor: None, nfs: None };
    Snapshot::new(generation, (&settings, connections), served, None, Found::default(), plan)
}

fn snapshot(generation: u64, root: &Path, low_water: &str) -> Snapshot {
    snapshot_of(generation, root, &format!("[user_engine]\nnot_sent_low_water = {low_water:?}"))
}

/// A worker that does not run, for what it decides.
pub(super) fn idle_worker(root: &Path, toml: &str, totals: &Arc<Totals>) -> Rc<Worker> {
    let setup = Setup {
        index: 0,
        cpu: None,
        listeners: Vec::new(),
        snapshots: Arc::new(ArcSwap::from_pointee(snapshot_of(0, root, toml))),
        totals: Arc::clone(totals),
        log: None,
        open_files_cached: 8,
        ended: Arc::default(),
    };
    Worker::new(setup, Arc::default())
}

#[test]
fn a_new_low_water_mark_reaches_listeners_that_are_open() {
    let root = tempfile::tempdir().unwrap();
    let listening = |kind| {
        let socket = socket::listen("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = socket.local_addr().unwrap();
        (socket.try_clone().unwrap(), WorkerListener { socket, address, kind, is_inherited: false })
    };
    let (secure, secure_listener) = listening(ListenerKind::Tls);
    let (plain, plain_listener) = listening(ListenerKind::Plaintext);
    let snapshots = Arc::new(ArcSwap::from_pointee(snapshot(0, root.path(), "16KiB")));
    let worker = start(Setup {
        index: 0,
        cpu: None,
        listeners: vec![secure_listener, plain_listener],
        snapshots: Arc::clone(&snapshots),
        totals: Arc::new(Totals::new(1)),
        log: None,
        open_files_cached: 8,
        ended: Arc::default(),
    });
    let worker = worker.unwrap();
    let becomes = |mark_bytes| {
        let give_up = Instant::now() + Duration::from_secs(20);
        while not_sent_low_water(&secure).unwrap() != mark_bytes {
            assert!(Instant::now() < give_up, "it never becomes {mark_bytes}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    snapshots.store(Arc::new(snapshot(1, root.path(), "48KiB")));
    becomes(48 * 1024);
    assert_eq!(not_sent_low_water(&plain).unwrap(), 0, "the system's own");
    worker.commands.send(Command::Stop).unwrap();
    worker.thread.join().unwrap();
}

/// Runs `test` in a worker's own thread and runtime, with a plaintext listener. The site has one file, `file`.
fn on_a_worker<Test: Future<Output = ()>>(test: impl FnOnce(Rc<Worker>, SocketAddr) -> Test) {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), FILE).unwrap();
    let socket = socket::listen("127.0.0.1:0".parse().unwrap(), false).unwrap();
    let address = socket.local_addr().unwrap();
    let setup = Setup {
        index: 0,
        cpu: None,
        listeners: Vec::new(),
        snapshots: Arc::new(ArcSwap::from_pointee(snapshot(0, root.path(), "16KiB"))),
        totals: Arc::new(Totals::new(1)),
        log: None,
        open_files_cached: 8,
        ended: Arc::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap();
    runtime.block_on(async {
        let worker = Worker::new(setup, Arc::default());
        worker.listen(WorkerListener { socket, address, kind: ListenerKind::Plaintext, is_inherited: false });
        let limit = Duration::from_secs(20);
        tokio::time::timeout(limit, test(worker, address)).await.expect("within the time limit");
    });
}

const FILE: &[u8] = b"what is served";

/// Connects without giving the runtime a chance to notice.
fn connect(address: SocketAddr) -> std::net::TcpStream {
    std::net::TcpStream::connect(address).unwrap()
}

/// Asks for the file and checks that it comes.
async fn assert_is_served(client: std::net::TcpStream) {
    client.set_nonblocking(true).unwrap();
    let mut client = tokio::net::TcpStream::from_std(client).unwrap();
    client.write_all(b"GET /file HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut response = Vec::new();
    client.read_to_end(&mut response).await.unwrap();
    assert!(response.starts_with(b"HTTP/1.1 200 ") && response.ends_with(FILE), "{response:?}");
}

#[test]
fn who_waits_in_the_queue_of_a_listener_that_is_closed_is_served() {
    on_a_worker(async |worker, address| {
        assert_is_served(connect(address)).await;
        let waiting: Vec<_> = (0..50).map(|_| connect(address)).collect();
        worker.change(Wanted::Close, |known| known == address);
        for client in waiting {
            assert_is_served(client).await;
        }
        let refused = std::net::TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(worker.listeners_open.get(), 0);
    });
}

#[test]
fn a_listener_that_retires_begins_no_connection_and_can_be_taken_back() {
    on_a_worker(async |worker, address| {
        assert_is_served(connect(address)).await;
        let waiting = connect(address);
        worker.change(Wanted::Retire, |known| known == address);
        assert_is_served(waiting).await;
        let beginning = tokio::net::TcpStream::connect(address);
        let accepted = || worker.service.workplace.metrics.connections_accepted.value();
        let beginning = tokio::task::spawn_local(beginning);
        // Not yet a second, in which its kernel tries again.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(accepted(), 2);
        worker.change(Wanted::Serve(ListenerKind::Plaintext), |known| known == address);
        let connected = beginning.await.unwrap().unwrap();
        assert_is_served(connected.into_std().unwrap()).await;
        assert_eq!(accepted(), 3);
    });
}

/// INV-MEMORY-1: an idle connection is its task, and the task is the larger of a handshake and a response, once.
#[test]
fn a_connection_is_in_its_task_once() {
    fn size_bytes<A, B, C, D, E, F>(_: impl Fn(A, B, C, D, E) -> F) -> usize {
        size_of::<F>()
    }
    let bytes = size_bytes(crate::connection::run::<accept::Active>);
    assert!(bytes <= 3072, "{bytes} bytes");
}

#[test]
fn a_panic_ends_its_connection_and_no_other() {
    on_a_worker(async |worker, address| {
        let metrics = Arc::clone(&worker.service.workplace.metrics);
        for _ in 0..3 {
            let place = Place::take(&worker.totals, Count::Connections, 10).unwrap();
            let handshake = Place::take(&worker.totals, Count::Handshakes, 10).unwrap();
            let (ours, _) = socket::connected_pair(None).unwrap();
            let stream = tokio::net::TcpStream::from_std(ours).unwrap();
            let watch = worker.service.workplace.watches.enter();
            let ticket = worker.handshakes.enter(stream, watch, 0, (handshake, None));
            let active = accept::Active::new(Arc::clone(&metrics), admission::Places::of(place));
            accept::spawn(active, async move |_active| {
                let _ticket = ticket;
                tokio::task::yield_now().await;
                panic!("a fault that a test makes");
            });
        }
        assert_eq!((metrics.connections_active.value(), metrics.handshakes_in_flight.value()), (3, 3));
        while metrics.connections_active.value() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(metrics.closed.of(Closed::Panic).value(), 3);
        assert_eq!(metrics.handshakes_in_flight.value(), 0);
        assert_eq!(worker.totals.now(Count::Connections), 0);
        assert_eq!(worker.totals.now(Count::Handshakes), 0);
        assert_is_served(connect(address)).await;
    });
}

#[test]
fn a_panic_in_what_a_worker_cannot_be_without_ends_it_and_tells() {
    let root = tempfile::tempdir().unwrap();
    let ended = Arc::new(Notify::new());
    let snapshots = Arc::new(ArcSwap::from_pointee(snapshot(0, root.path(), "16KiB")));
    let setup = Setup {
        index: 0,
        cpu: None,
        listeners: Vec::new(),
        snapshots,
        totals: Arc::new(Totals::new(1)),
        log: None,
        open_files_cached: 8,
        ended: Arc::clone(&ended),
    };
    let (_commands, inbox) = unbounded_channel();
    let thread = std::thread::spawn(move || {
        let _ended = NotifyWhenDropped(Arc::clone(&setup.ended));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(tokio::runtime::LocalOptions::default())
            .unwrap();
        runtime.block_on(async {
            let worker = Worker::new(setup, Arc::default());
            worker.spawn_vital(async { panic!("a fault that a test makes") });
            // Nobody tells it to stop.
            worker.run(inbox).await;
        });
    });
    let waiting = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    waiting.block_on(async {
        tokio::time::timeout(Duration::from_secs(20), ended.notified()).await.expect("it tells");
    });
    thread.join().unwrap();
}
