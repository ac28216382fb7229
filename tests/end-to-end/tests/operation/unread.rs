//! What others do not read, standard error and notices to the service manager, holds nothing up (INV-LOG-1).

use crate::service_manager::Running;
use crate::support::{Connection, Fixture, Transport, certificate_folder, client_config, get, toml_for};
use linerate_end_to_end::{Signal, Site, linerate_binary, skip, wait_until};
use rustix::process::{Pid, kill_process};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Command, Stdio},
};

/// A file that claims 4096 bytes and has fewer: each request for it cuts the connection, with a warning.
const SHORTER_THAN_IT_SAYS: &str = "/sys/kernel/uevent_seqnum";

#[test]
fn standard_error_that_nobody_reads_holds_no_worker_up() {
    if !fs::metadata(SHORTER_THAN_IT_SAYS).is_ok_and(|facts| facts.len() == 4096) {
        let reason = format!("{SHORTER_THAN_IT_SAYS} is not there");
        return skip("standard_error_that_nobody_reads_holds_no_worker_up", &reason);
    }
    let site = Site::empty();
    site.add("small", b"small");
    std::os::unix::fs::symlink(SHORTER_THAN_IT_SAYS, site.path().join("short")).unwrap();
    let (keys, pair) = certificate_folder();
    let child = Command::new(linerate_binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--workers", "1", "--symlinks", "anywhere"])
        .args(["--admin", "127.0.0.1:0", "--cert"])
        .args([pair.certificate.as_os_str(), "--key".as_ref(), pair.key.as_os_str(), site.path().as_os_str()])
        .env("XDG_STATE_HOME", keys.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut server = Running(child);
    let mut stderr = BufReader::new(server.0.stderr.take().unwrap());
    let mut next_address = |scheme: &str| -> SocketAddr {
        let prefix = format!("linerate: {scheme}://");
        let lines = stderr.by_ref().lines().map(Result::unwrap);
        let mut urls = lines.filter_map(|line| line.strip_prefix(&prefix).map(str::to_owned));
        urls.next().unwrap().split('/').next().unwrap().parse().unwrap()
    };
    let (address, admin) = (next_address("https"), next_address("http"));
    let trust = client_config(&pair);
    let connect = || Connection::try_tls(address, &trust, "localhost").unwrap();
    // The pipe holds 64 KiB, and a thousand messages may wait: these are more.
    let target = format!("/short?{}", "x".repeat(900));
    for _ in 0..1300 {
        let mut connection = connect();
        connection.send(get(&target, ""));
        connection.end();
    }
    connect().get("/small", "").assert_is(200, b"small");
    let metrics = Connection::plain(admin).get("/metrics", "").text();
    let dropped = metrics.lines().find_map(|line| line.strip_prefix("linerate_messages_dropped_total "));
    let dropped: usize = dropped.expect("a metric").parse().unwrap();
    assert!(dropped > 0, "none of 1300 messages was dropped");

    // A reader that resumes is told how many are missing.
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        stderr.read_to_string(&mut said).map(|_| said)
    });
    server.signal(Signal::TERM);
    wait_until("the server's end", || server.0.try_wait().unwrap().is_some());
    let said = reader.join().unwrap().unwrap();
    assert!(said.contains("/short?xxx"), "{said}");
    assert!(said.contains(&format!("{dropped} messages were dropped")), "{dropped}");
}

#[test]
fn a_manager_that_takes_no_notice_holds_nothing_up() {
    let site = Site::empty();
    let bytes = site.add_pattern("file", 1000);
    let generation =
        |number| format!("headers = [{{ path = \"/**\", set = {{ X-Generation = \"{number}\" }} }}]");
    let fixture = Fixture::start_toml(site, &generation(0));
    fill(&fixture.server.folder().join("notify"));
    for number in 1..=3 {
        let toml = toml_for(&fixture.site, &fixture.pair, &generation(number));
        fs::write(fixture.server.folder().join("linerate.toml"), toml).unwrap();
        // Not by `Server::signal`, which makes room for notices.
        let pid = Pid::from_raw(fixture.server.pid().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
        wait_until("the reload's effect", || {
            let response = fixture.connect(Transport::Tls).get("/file", "");
            response.assert_is(200, &bytes);
            response.expect("X-Generation") == number.to_string()
        });
    }
    // The kernel gives the manager what waited once there is room: all of it, in order.
    let mut server = fixture.server;
    server.stop();
}

/// Sends to a datagram socket until it takes no more.
fn fill(path: &Path) {
    let filler = UnixDatagram::unbound().unwrap();
    filler.connect(path).unwrap();
    filler.set_nonblocking(true).unwrap();
    while filler.send(b"STATUS=unread").is_ok() {}
}
