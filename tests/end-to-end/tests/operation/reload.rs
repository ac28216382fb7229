//! HUP: a new configuration takes effect without a request failing (INV-RELOAD-2), or the old one stays
//! (INV-RELOAD-1).

use crate::support::{Connection, Fixture, Transport, client_config, toml_for};
use linerate_end_to_end::{Signal, Site, wait_until};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

const LENGTH: usize = 100_000;

fn fixture() -> (Fixture, Vec<u8>) {
    let site = Site::empty();
    let bytes = site.add_pattern("file", LENGTH);
    (Fixture::start_toml(site, &generation(0)), bytes)
}

/// Keys of the default site that tell one configuration from another.
fn generation(number: usize) -> String {
    format!("headers = [{{ path = \"/**\", set = {{ X-Generation = \"{number}\" }} }}]")
}

fn configure(fixture: &Fixture, toml: &str) {
    fs::write(fixture.server.folder().join("linerate.toml"), toml_for(&fixture.site, &fixture.pair, toml))
        .unwrap();
}

fn generation_of(connection: &mut Connection) -> String {
    connection.get("/file", "").expect("X-Generation").to_owned()
}

/// Requests without a pause, now and then on a new connection, until told to stop.
fn load(fixture: &Fixture, transport: Transport, bytes: &[u8], stop: &AtomicBool, done: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        let mut connection = fixture.connect(transport);
        for _ in 0..20 {
            connection.get("/file", "").assert_is(200, bytes);
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Asks for a configuration that lies on a disk that hangs: a FIFO that nobody writes to.
fn reload_from_hanging_disk(fixture: &Fixture) {
    let path = fixture.server.folder().join("linerate.toml");
    let fifo = path.with_extension("fifo");
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
    fs::rename(&fifo, &path).unwrap();
    fixture.server.signal(Signal::HUP);
    fixture
        .server
        .wait_for_stderr("not reloaded yet: the configuration and what it names are still being read");
}

#[test]
fn a_configuration_on_a_hanging_disk_delays_no_end_and_no_answer() {
    let (mut fixture, bytes) = fixture();
    reload_from_hanging_disk(&fixture);
    fixture.connect(Transport::Tls).get("/file", "").assert_is(200, &bytes);
    let [done, failed] =
        ["succeeded", "failed"].map(|what| fixture.server.metric(&format!("linerate_reloads_{what}"), ""));
    assert_eq!((done, failed), (0.0, 0.0), "the admin page answers, and nothing is decided yet");
    assert!(fixture.server.stop().success());
}

#[test]
fn a_hanging_disk_that_is_mended_is_read_at_the_next_signal() {
    let (fixture, _) = fixture();
    reload_from_hanging_disk(&fixture);
    fs::remove_file(fixture.server.folder().join("linerate.toml")).unwrap();
    configure(&fixture, &generation(1));
    fixture.server.signal(Signal::HUP);
    wait_until("the reload", || generation_of(&mut fixture.connect(Transport::Tls)) == "1");
}

#[test]
fn no_request_fails_over_twelve_reloads_and_each_takes_effect() {
    let (fixture, bytes) = fixture();
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for transport in [Transport::Tls, Transport::Plain, Transport::Tls] {
            let (fixture, bytes, stop, done) = (&fixture, &bytes, &stop, &done);
            scope.spawn(move || load(fixture, transport, bytes, stop, done));
        }
        // However this ends, the others end, too.
        let _stopper = Stopper(&stop);
        let mut long_lived = fixture.connect(Transport::Tls);
        for number in 1..=12 {
            configure(&fixture, &generation(number));
            let before = done.load(Ordering::Relaxed);
            fixture.server.reload();
            assert_eq!(generation_of(&mut long_lived), number.to_string(), "an old connection");
            assert_eq!(
                generation_of(&mut fixture.connect(Transport::Plain)),
                number.to_string(),
                "a new one"
            );
            wait_until("requests in between", || done.load(Ordering::Relaxed) > before + 20);
        }
    });
    assert_eq!(fixture.server.metric("linerate_reloads_succeeded", ""), 12.0);
    assert!(done.into_inner() > 240);
}

struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_configuration_that_does_not_load_leaves_the_old_one_serving() {
    let (fixture, bytes) = fixture();
    let mut connection = fixture.connect(Transport::Tls);
    for (index, (broken, place, reason)) in [
        ("listing = maybe", ":7:11: ", "must be quoted"),
        ("lisitng = true", ":7:1:", "listing"),
        ("listing = 7", ":7:11:", "true or false"),
        ("\n[limits]\nhead = \"3KiB\"\nheader_cuont = 5", ":10:1:", "header_count"),
    ]
    .into_iter()
    .enumerate()
    {
        configure(&fixture, broken);
        let said_before = fixture.server.stderr().len();
        fixture.server.reload();
        let said = fixture.server.stderr().split_off(said_before);
        assert!(said.contains(&format!("linerate.toml{place}")) && said.contains(reason), "{broken}: {said}");
        assert!(said.contains("not reloaded: the old configuration keeps serving"), "{said}");
        let response = connection.get("/file", "");
        response.assert_is(200, &bytes);
        assert_eq!(response.expect("X-Generation"), "0");
        assert_eq!(fixture.server.metric("linerate_reloads_failed", ""), index as f64 + 1.0);
    }
    configure(&fixture, &generation(1));
    fixture.server.reload();
    assert_eq!(generation_of(&mut connection), "1");
}

#[test]
fn what_the_new_configuration_names_must_be_there() {
    let (fixture, _) = fixture();
    let config = fixture.server.folder().join("linerate.toml");
    let sound = toml_for(&fixture.site, &fixture.pair, &generation(5));
    let root = format!("root = {:?}", fixture.site.path());
    for broken in [
        sound.replace(&root, "root = \"/nowhere/at/all\""),
        sound.replace("localhost.key", "missing.key"),
        sound.replace("workers = 1", "workers = 1\nlisten = []"),
    ] {
        assert_ne!(broken, sound);
        fs::write(&config, broken).unwrap();
        fixture.server.reload();
        for transport in Transport::ALL {
            assert_eq!(generation_of(&mut fixture.connect(transport)), "0");
        }
    }
    assert_eq!(fixture.server.metric("linerate_reloads_failed", ""), 3.0);
}

/// An address that nobody listens on at the moment.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn listeners_come_and_go() {
    let (fixture, bytes) = fixture();
    let (plain, secure) = (free_address(), free_address());
    let config = fixture.server.folder().join("linerate.toml");
    let with = |listeners: &str| {
        let toml = toml_for(&fixture.site, &fixture.pair, &generation(0));
        toml.replace("\"http://127.0.0.1:0\"", &format!("\"http://127.0.0.1:0\"{listeners}"))
    };
    assert!(TcpStream::connect(plain).is_err());
    fs::write(&config, with(&format!(", \"http://{plain}\", \"{secure}\""))).unwrap();
    fixture.server.reload();
    let mut on_plain = Connection::plain(plain);
    let config_of_client = client_config(&fixture.pair);
    let mut on_secure = Connection::try_tls(secure, &config_of_client, "localhost").unwrap();
    for connection in [&mut on_plain, &mut on_secure] {
        connection.get("/file", "").assert_is(200, &bytes);
    }

    fs::write(&config, with("")).unwrap();
    fixture.server.reload();
    wait_until("the listeners are gone", || {
        TcpStream::connect(plain).is_err() && TcpStream::connect(secure).is_err()
    });
    // Clients that were connected stay connected.
    for connection in [&mut on_plain, &mut on_secure] {
        connection.get("/file", "").assert_is(200, &bytes);
    }
    for transport in Transport::ALL {
        fixture.connect(transport).get("/file", "").assert_is(200, &bytes);
    }
}

/// Connects, asks for the file on its own, and checks it byte by byte. False if the connection was refused.
fn is_served(address: SocketAddr, bytes: &[u8]) -> bool {
    let mut connection = match TcpStream::connect(address) {
        Ok(connection) => connection,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
            return false;
        }
    };
    let mut response = Vec::new();
    connection
        .write_all(b"GET /file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .and_then(|()| connection.read_to_end(&mut response))
        .unwrap_or_else(|error| panic!("connected, and then {error}"));
    assert!(response.starts_with(b"HTTP/1.1 200 ") && response.ends_with(bytes), "{} bytes", response.len());
    true
}

/// Every client that has connected is served, although closing a listener resets connections that it has not handed over.
#[test]
fn nobody_who_has_connected_is_lost_when_a_listener_goes() {
    const CLIENTS: usize = 4;
    let (fixture, bytes) = fixture();
    let address = free_address();
    let config = fixture.server.folder().join("linerate.toml");
    let without = toml_for(&fixture.site, &fixture.pair, &generation(0));
    let with =
        without.replace("\"http://127.0.0.1:0\"", &format!("\"http://127.0.0.1:0\", \"http://{address}\""));
    let (stop, served, refused) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        if is_served(address, &bytes) {
                            served.fetch_add(1, Ordering::Relaxed);
                        } else {
                            refused.fetch_add(1, Ordering::Relaxed);
                            // Others need the processor, too.
                            thread::sleep(Duration::from_millis(20));
                        }
                    }
                })
            })
            .collect();
        let _stopper = Stopper(&stop);
        let waits_for = |counter: &AtomicUsize, more: usize| {
            let enough = counter.load(Ordering::Relaxed) + more;
            wait_until("the clients", || {
                counter.load(Ordering::Relaxed) >= enough || clients.iter().any(|client| client.is_finished())
            });
        };
        for _ in 0..4 {
            fs::write(&config, &with).unwrap();
            fixture.server.reload();
            waits_for(&served, 10 * CLIENTS);
            fs::write(&config, &without).unwrap();
            fixture.server.reload();
            waits_for(&refused, CLIENTS);
        }
        // Given up and wanted again at once: nobody need notice.
        for toml in [&with, &without, &with] {
            fs::write(&config, toml).unwrap();
            fixture.server.reload();
        }
        waits_for(&served, 10 * CLIENTS);
    });
    assert_eq!(fixture.server.metric("linerate_reloads_failed", ""), 0.0);
    assert_eq!(fixture.server.metric("linerate_connections_closed_total", "reset"), 0.0);
}

#[test]
fn a_listener_changes_its_scheme_where_it_is() {
    let (fixture, bytes) = fixture();
    let address = free_address();
    let config = fixture.server.folder().join("linerate.toml");
    let reload_as = |listener: String| {
        let toml = toml_for(&fixture.site, &fixture.pair, &generation(0));
        let listeners = format!("\"http://127.0.0.1:0\", {listener:?}");
        fs::write(&config, toml.replace("\"http://127.0.0.1:0\"", &listeners)).unwrap();
        fixture.server.reload();
    };
    let trust = client_config(&fixture.pair);
    let secure = || Connection::try_tls(address, &trust, "localhost");

    reload_as(format!("http://{address}"));
    let mut was_plain = Connection::plain(address);
    was_plain.get("/file", "").assert_is(200, &bytes);
    // The worker hears of the change after the reload is reported.
    reload_as(format!("https://{address}"));
    wait_until("TLS where there was none", || secure().is_ok());
    let mut was_secure = secure().unwrap();
    was_secure.get("/file", "").assert_is(200, &bytes);
    reload_as(format!("redirect://{address}"));
    wait_until("a redirect where there was TLS", || secure().is_err());
    let moved = Connection::plain(address).get("/file", "");
    assert_eq!(moved.status, 308);
    let port = fixture.address(Transport::Tls).port();
    assert_eq!(moved.expect("Location"), format!("https://localhost:{port}/file"));
    // Clients that were connected stay connected, as before.
    was_plain.get("/file", "").assert_is(200, &bytes);
    was_secure.get("/file", "").assert_is(200, &bytes);
    assert_eq!(fixture.server.metric("linerate_reloads_succeeded", ""), 3.0);
}

#[test]
fn a_listener_that_cannot_be_had_leaves_all_as_it_was() {
    let (fixture, bytes) = fixture();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let toml = toml_for(&fixture.site, &fixture.pair, &generation(1));
    let toml =
        toml.replace("\"http://127.0.0.1:0\"", &format!("\"http://127.0.0.1:0\", \"http://{address}\""));
    fs::write(fixture.server.folder().join("linerate.toml"), toml).unwrap();
    fixture.server.reload();
    let said = fixture.server.stderr();
    assert!(said.contains(&format!("cannot listen on http://{address}")), "{said}");
    for transport in Transport::ALL {
        let response = fixture.connect(transport).get("/file", "");
        response.assert_is(200, &bytes);
        assert_eq!(response.expect("X-Generation"), "0");
    }
}
