//! Descriptors that run out: clients with a connection are served, new ones are told at once, and the operator sees why.

use crate::{
    process::open_descriptors,
    support::{Connection, End, Fixture, Transport, add_at_rest, get},
};
use linerate_end_to_end::{Server, Site};
use linerate_os::process::limit_open_files_of;
use rustls::ClientConnection;
use std::{net::TcpStream, thread};

const CLIENTS: usize = 40;

fn site() -> Site {
    let site = Site::empty();
    site.add("small", b"small");
    for index in 0..CLIENTS {
        site.add(&format!("file-{index}"), format!("the file {index}").as_bytes());
    }
    site
}

/// Lets the server have only so many descriptors more than it has.
fn leave(server: &Server, descriptors: u64) {
    limit(server, open_descriptors(server) + descriptors);
}

/// Lets the server have no descriptor whose number is not below this.
fn limit(server: &Server, open_files: u64) {
    limit_open_files_of(server.pid(), open_files).unwrap();
}

/// What is answered to a request for a small file on a connection of its own: nothing if it is refused. Either comes at once.
fn answer(fixture: &Fixture, transport: Transport) -> Vec<u8> {
    let session = (transport == Transport::Tls)
        .then(|| ClientConnection::new(fixture.trust(), "localhost".try_into().unwrap()).unwrap());
    let stream = TcpStream::connect(fixture.address(transport)).unwrap();
    let mut connection = Connection::over(stream, session);
    if connection.try_send(get("/small", "Connection: close\r\n").as_bytes()).is_err() {
        return Vec::new();
    }
    connection.end().0
}

/// Whether such a request is served instead of refused.
fn is_served(fixture: &Fixture, transport: Transport) -> bool {
    let answer = answer(fixture, transport);
    assert!(answer.is_empty() || answer.ends_with(b"\r\n\r\nsmall"), "{}", String::from_utf8_lossy(&answer));
    !answer.is_empty()
}

fn refused(fixture: &Fixture) -> f64 {
    fixture.server.metric("linerate_refused_total", "descriptors")
}

/// The clients that hold what descriptors there are are in the middle of a response, so that none makes room.
#[test]
fn without_descriptors_everyone_is_told_and_those_who_are_there_are_served() {
    let site = site();
    let bytes = add_at_rest(&site, "big.bin", (16 << 20) + 5);
    let fixture = Fixture::start(site);
    let mut busy: Vec<Connection> =
        (0..4).map(|index| fixture.connect_with_small_window(Transport::ALL[index % 2], 16 * 1024)).collect();
    for connection in &mut busy {
        connection.get("/small", "").assert_is(200, b"small");
    }
    leave(&fixture.server, 1);
    for connection in &mut busy[1..] {
        connection.send(get("/big.bin", ""));
        let mut begun = [0; 1];
        assert_eq!(connection.receive(&mut begun).unwrap(), 1);
        connection.unread(&begun);
    }
    let served = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|index| {
                let fixture = &fixture;
                scope.spawn(move || is_served(fixture, Transport::ALL[index % 2]))
            })
            .collect();
        clients.into_iter().map(|client| usize::from(client.join().unwrap())).sum::<usize>()
    });
    // The admin page answers, although there is no descriptor left.
    let told = refused(&fixture) + fixture.server.metric("linerate_connections_closed_total", "_evicted");
    assert!(told >= (CLIENTS - served) as f64, "{told} are counted, and {served} of {CLIENTS} were served");
    assert!(refused(&fixture) <= CLIENTS as f64 && refused(&fixture) > 0.0);
    for (index, mut connection) in busy.drain(1..).enumerate() {
        connection.response().assert_is(200, &bytes);
        // Each asks for files that are not open yet.
        for file in [index, index + 10, index + 20] {
            let expected = format!("the file {file}");
            connection.get(&format!("/file-{file}"), "").assert_is(200, expected.as_bytes());
        }
    }
}

/// Far below what it has open already, so that a descriptor is of use only if its number is low.
#[test]
fn the_admin_page_answers_below_a_limit_that_was_lowered() {
    let fixture = Fixture::start(site());
    // The worker has begun, and has what it runs on.
    assert!(is_served(&fixture, Transport::Tls));
    limit(&fixture.server, 24);
    thread::scope(|scope| {
        // Others want descriptors all the time.
        let clients = Transport::ALL.map(|transport| {
            let fixture = &fixture;
            // One that got the last descriptor is told that there is none for its file.
            scope.spawn(move || {
                for _ in 0..4 {
                    let answer = answer(fixture, transport);
                    assert!(
                        answer.is_empty()
                            || answer.ends_with(b"\r\n\r\nsmall")
                            || answer.starts_with(b"HTTP/1.1 503 "),
                        "{}",
                        String::from_utf8_lossy(&answer)
                    );
                }
            })
        });
        while !clients.iter().all(|client| client.is_finished()) {
            assert!(fixture.server.metric("linerate_workers", "") > 0.0);
        }
    });
    assert!(fixture.server.metric("linerate_workers", "") > 0.0);
}

#[test]
fn what_descriptors_do_not_suffice_for_is_said_and_not_promised() {
    const OPEN_FILES: u64 = 256;
    let fixture = Fixture::start_with(site(), |setup| setup.open_files(OPEN_FILES));
    let said = fixture.server.stderr();
    let line =
        said.lines().find(|line| line.contains("this process may open 256 files: ")).expect("it is said");
    let (_, rest) = line.split_once("files: ").unwrap();
    let connections: usize = rest.split(' ').next().unwrap().parse().expect("how many connections");
    assert!(
        line.contains(" connections are taken instead of 65536") && line.contains("LimitNOFILE"),
        "{line}"
    );
    // All of these connections and more: each is served, those that were idle for longest having made room.
    let mut all: Vec<Connection> = Vec::new();
    for index in 0..connections + 20 {
        let mut connection = fixture.connect(Transport::ALL[index % 2]);
        let file = index % CLIENTS;
        connection.get(&format!("/file-{file}"), "").assert_is(200, format!("the file {file}").as_bytes());
        all.push(connection);
    }
    assert_eq!(fixture.server.metric("linerate_refused_total", ""), 0.0);
    assert_eq!(fixture.server.metric("linerate_connections_closed_total", "idle_evicted"), 20.0);
    assert_eq!(fixture.server.metric("linerate_connections_active", ""), connections as f64);
    assert_eq!(all[0].end(), (Vec::new(), End::Closed), "as it should be, with close_notify");
    assert_eq!(all[19].end(), (Vec::new(), End::Closed));
    all[20].get("/small", "").assert_is(200, b"small");
}
