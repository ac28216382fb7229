//! What a running worker takes over from a new snapshot.

use super::*;
use crate::{
    placement::{Basis, Plan},
    sites::Sites,
    snapshot::Found,
};
use linerate_config::{Flags, Settings};
use linerate_os::socket;
use linerate_placement::Costs;
use socket2::SockRef;
use std::path::Path;

fn snapshot(generation: u64, root: &Path, low_water: &str) -> Snapshot {
    let text = format!("[user_engine]\nnot_sent_low_water = {low_water:?}\n[[site]]\nroot = {root:?}\n");
    let settings = Settings::from_toml(Path::new("test.toml"), text.as_bytes(), &Flags::default()).unwrap();
    let sites = Sites::open(&settings, true).unwrap();
    let plan = Plan::new(&settings, (Basis::Defaults, Costs::defaults()), 1);
    Snapshot::new(generation, &settings, sites, None, None, Found::default(), plan)
}

#[test]
fn a_new_low_water_mark_reaches_listeners_that_are_open() {
    let root = tempfile::tempdir().unwrap();
    let listening = |kind| {
        let socket = socket::listen("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = socket.local_addr().unwrap();
        (socket.try_clone().unwrap(), Ear { socket, address, kind })
    };
    let (secure, secure_ear) = listening(ListenerKind::Tls);
    let (plain, plain_ear) = listening(ListenerKind::Plaintext);
    let snapshots = Arc::new(ArcSwap::from_pointee(snapshot(0, root.path(), "16KiB")));
    let worker = start(Setup {
        index: 0,
        cpu: None,
        ears: vec![secure_ear, plain_ear],
        snapshots: Arc::clone(&snapshots),
        totals: Arc::default(),
        log: None,
        open_files_cached: 8,
    });
    let worker = worker.unwrap();
    let becomes = |mark_bytes| {
        let give_up = Instant::now() + Duration::from_secs(20);
        while SockRef::from(&secure).tcp_notsent_lowat().unwrap() != mark_bytes {
            assert!(Instant::now() < give_up, "it never becomes {mark_bytes}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    snapshots.store(Arc::new(snapshot(1, root.path(), "48KiB")));
    becomes(48 * 1024);
    assert_eq!(SockRef::from(&plain).tcp_notsent_lowat().unwrap(), 0, "the system's own");
    worker.commands.send(Command::Stop).unwrap();
    worker.thread.join().unwrap();
}
