//! Reloads, restarts, and the end.

use crate::peer::{Answer, Peer};
use linerate_end_to_end::{ServerSetup, Signal, Site};
use std::fs;

fn export(name: &str, site: &Site) -> String {
    format!("[[export]]\nname = {name:?}\ndirectory = {:?}\ntls = \"off\"\n", site.path())
}

#[test]
fn a_reload_changes_exports_under_connections_that_go_on() {
    let (first, second) = (Site::empty(), Site::empty());
    first.add("file", b"first");
    second.add("file", b"second");
    let listen = "listen = [\"nfs://127.0.0.1:0\"]\nworkers = 1\n";
    let server = ServerSetup::toml(&format!("{listen}{}", export("first", &first))).admin().start();
    let mut peer = Peer::connect(server.listener("nfs", 0));
    peer.begin_session("client").unwrap();
    let handle = peer.look_up(&["first", "file"]).unwrap();
    let file = server.folder().join("linerate.toml");
    fs::write(&file, format!("{listen}{}{}", export("first", &first), export("second", &second))).unwrap();
    server.reload();
    let other = peer.look_up(&["second", "file"]).unwrap();
    assert_eq!(peer.read_all(&other, 100), b"second", "the session goes on");
    assert_eq!(peer.read_all(&handle, 100), b"first", "and so does the handle");
    fs::write(&file, format!("{listen}{}", export("second", &second))).unwrap();
    server.reload();
    assert_eq!(peer.read(&handle, 0, 100).unwrap(), Err(70), "NFS4ERR_STALE");
    assert_eq!(peer.read_all(&other, 100), b"second");

    // What is wrong leaves the old serving.
    fs::write(&file, format!("{listen}[[export]]\ndirectory = \"/nowhere/at/all\"\n")).unwrap();
    server.signal(Signal::HUP);
    server.wait_for_stderr("the folder /nowhere/at/all cannot be exported");
    assert_eq!(peer.read_all(&other, 100), b"second");
}

#[test]
fn handles_survive_a_restart_and_an_idle_connection_a_drain_does_not() {
    let site = Site::empty();
    site.add("file", b"content");
    let state = tempfile::tempdir().unwrap();
    let start = || {
        ServerSetup::toml(&format!(
            "listen = [\"nfs://127.0.0.1:0\"]\nworkers = 1\n{}",
            export("name", &site)
        ))
        .env("XDG_STATE_HOME", state.path())
        .admin()
        .start()
    };
    let mut server = start();
    let mut peer = Peer::connect(server.listener("nfs", 0));
    peer.begin_session("client").unwrap();
    let handle = peer.look_up(&["name", "file"]).unwrap();
    server.signal(Signal::QUIT);
    assert!(peer.null().is_ok_and(|answer| answer == Answer::Accepted) || peer.receive().is_err());
    assert!(server.wait_for_end().success());

    let server = start();
    let mut peer = Peer::connect(server.listener("nfs", 0));
    peer.begin_session("client").unwrap();
    assert_eq!(peer.read_all(&handle, 100), b"content");
}

#[test]
fn sites_and_exports_share_a_server() {
    let site = Site::empty();
    let expected = site.add_pattern("file", 5000);
    let toml = format!("[[site]]\nroot = {:?}\n{}", site.path(), export("name", &site));
    let server = ServerSetup::toml(&format!(
        "listen = [\"nfs://127.0.0.1:0\", \"http://127.0.0.1:0\"]\nworkers = 2\n{toml}"
    ))
    .admin()
    .start();
    let mut peer = Peer::connect(server.listener("nfs", 0));
    peer.begin_session("client").unwrap();
    let handle = peer.look_up(&["name", "file"]).unwrap();
    assert_eq!(peer.read_all(&handle, 4096), expected);
    let http = linerate_end_to_end::curl([format!("http://{}/file", server.listener("http", 0))]).run();
    assert_eq!(http.stdout, expected);
}
