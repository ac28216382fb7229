//! An access log that nobody takes holds nothing up: neither requests nor signals, nor the end (INV-LOG-1).

use crate::early_signals::listener;
use crate::service_manager::Running;
use crate::support::{Connection, Fixture, Transport, get};
use linerate_end_to_end::{Signal, Site, linerate_binary, wait_until};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Stdio},
};

fn site() -> Site {
    let site = Site::empty();
    site.add_pattern("file.bin", 12_345);
    site
}

fn fifo(path: &Path) {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
}

#[test]
fn a_pipe_that_nobody_reads_holds_no_end_up_and_what_is_lost_is_told() {
    const REQUESTS: usize = 300;
    let site = site();
    let state = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::QUIT, Signal::INT] {
        let child = Command::new(linerate_binary())
            .args(["serve", "--listen", "http://127.0.0.1:0", "--workers", "1", "--access-log", "-"])
            .arg(site.path())
            .env("XDG_STATE_HOME", state.path())
            .env_remove("NOTIFY_SOCKET")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Running(child);
        let mut stderr = BufReader::new(server.0.stderr.take().unwrap());
        let address = listener(&mut stderr);
        // The pipe holds 64 KiB: these are 300.
        let target = format!("/file.bin?{}", "x".repeat(1000));
        let mut connection = Connection::plain(address);
        for _ in 0..REQUESTS {
            connection.get(&target, "").assert_is(200, &site.bytes("file.bin"));
        }
        drop(connection);
        server.signal(signal);
        let mut ended = None;
        wait_until("the server's end", || {
            ended = server.0.try_wait().unwrap();
            ended.is_some()
        });
        assert!(ended.unwrap().success(), "{signal:?}");
        let mut written = String::new();
        server.0.stdout.take().unwrap().read_to_string(&mut written).unwrap();
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        let lost = said
            .lines()
            .find_map(|line| line.split_once("the access log lacks up to ")?.1.split_once(" lines"));
        let lost: usize = lost.unwrap_or_else(|| panic!("{said}")).0.parse().unwrap();
        // The batch that was being written is there in part.
        let missing = REQUESTS - written.lines().filter(|line| line.ends_with(" ok -")).count();
        assert!((missing..=REQUESTS).contains(&lost), "{missing} of {REQUESTS} are missing, {lost} said");
        assert!(missing > 200, "{missing}");
    }
}

#[test]
fn a_fifo_that_nobody_reads_in_the_logs_place_is_refused_by_usr1_and_all_else_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let mut fixture = Fixture::start_with(site(), |setup| setup.flag("--access-log").flag(&log));
    let bytes = fixture.site.bytes("file.bin");
    fs::rename(&log, folder.path().join("old")).unwrap();
    fifo(&log);
    fixture.server.signal(Signal::USR1);
    fixture.server.wait_for_stderr("nobody reads this FIFO");
    let page = Connection::plain(fixture.server.admin()).get("/healthz", "");
    assert_eq!(page.status, 200);
    fixture.server.reload();
    for transport in Transport::ALL {
        fixture.connect(transport).get("/file.bin?still", "").assert_is(200, &bytes);
    }
    wait_until("the old log goes on", || {
        fs::read_to_string(folder.path().join("old")).unwrap().matches("?still").count() == 2
    });
    assert!(fixture.server.stop().success());
}

#[test]
fn a_fifo_that_nobody_reads_yet_is_no_reason_not_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    fifo(&log);
    let mut fixture = Fixture::start_with(site(), |setup| setup.flag("--access-log").flag(&log));
    fixture.server.wait_for_stderr("nobody reads this FIFO");
    let mut connection = fixture.connect(Transport::Tls);
    connection.get("/file.bin?unread", "");
    wait_until("a line is dropped", || fixture.server.metric("linerate_access_log_dropped_total", "") == 1.0);
    let (read, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(File::open(log).unwrap()).lines() {
            read.send(line.unwrap()).unwrap();
        }
    });
    // The reader opens the FIFO some time from now.
    let mut seen = None;
    wait_until("a line is read", || {
        connection.get("/file.bin?read", "");
        seen = lines.try_recv().ok();
        seen.is_some()
    });
    assert!(seen.unwrap().contains("?read"));
    fixture.server.wait_for_stderr("the access log is written again");
    connection.send(get("/file.bin?last", ""));
    connection.response();
    drop(connection);
    assert!(fixture.server.stop().success());
    assert!(lines.iter().last().unwrap().contains("?last"));
}
