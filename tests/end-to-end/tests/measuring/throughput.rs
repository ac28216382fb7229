//! Throughput and what crossed the wire, as a measurement has them, within 2 % of what `ss` and `ip` saw.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use linerate_bench::{
    accounting::{Costs, Meter},
    result::{Measurement, Reading},
};
use linerate_end_to_end::{
    CertificatePair, ClientSetup, Server, ServerSetup, Site, connect, is_installed, pattern, skip, wait_until,
};
use linerate_load::report::{LoadReport, SCHEMA, Totals};

use crate::link::{Acknowledged, INTERFACE, Link, SERVER, Sent};

const FILE_BYTES: usize = 8_000_001;
const TIMES: u64 = 6;

/// Headers of Ethernet (14), IPv4 (20), TCP with time stamps (32); preamble (8), checksum (4) and gap (12) of a frame.
const SEGMENT_OVERHEAD_BYTES: u64 = 90;

/// A transfer that was measured, and what others saw of it.
struct Seen {
    elapsed_s: f64,
    costs: Costs,
    measurement: Measurement,
    link: Sent,
    ss: Acknowledged,
}

impl Seen {
    fn costs_without_interface(&self) -> Costs {
        let mut costs = self.costs.clone();
        costs.network.interface = Reading::NotAvailable("left out".to_owned());
        costs
    }
}

fn link(name: &str, bursts: bool) -> Option<Link> {
    let link = match is_installed("ss") {
        true => Link::up(bursts),
        false => Err("ss (iproute2) is not installed".to_owned()),
    };
    link.map_err(|reason| skip(name, &reason)).ok()
}

fn site() -> Site {
    let site = Site::empty();
    site.add_pattern("file", FILE_BYTES);
    site.add("small", b"small");
    site
}

/// Measures `transfer`, which gives the bytes of TCP that the client received.
fn measure(link: &Link, server: &Server, address: SocketAddr, transfer: impl FnOnce() -> u64) -> Seen {
    let (before, acknowledged) = (link.sent(), link.acknowledged(address));
    assert_eq!(acknowledged.connections, 1, "one connection, which stays: {acknowledged:?}");
    let meter = Meter::begin(&[server.pid()], &[], Some(INTERFACE)).expect("a meter");
    let begin = Instant::now();
    let received_bytes = transfer();
    let elapsed_s = begin.elapsed().as_secs_f64();
    let costs = meter.end().expect("costs");
    // The last acknowledgement may be on its way.
    wait_until("all bytes acknowledged", || {
        link.acknowledged(address).bytes - acknowledged.bytes >= received_bytes
    });
    let (after, now) = (link.sent(), link.acknowledged(address));
    let load = report(elapsed_s, received_bytes);
    Seen {
        elapsed_s,
        measurement: costs.measurement(vec![load]),
        costs,
        link: Sent { bytes: after.bytes - before.bytes, frames: after.frames - before.frames },
        ss: Acknowledged {
            bytes: now.bytes - acknowledged.bytes,
            sent_bytes: now.sent_bytes - acknowledged.sent_bytes,
            segments: now.segments - acknowledged.segments,
            retransmitted: now.retransmitted - acknowledged.retransmitted,
            connections: 1,
        },
    }
}

/// As the load client would report it.
fn report(measured_s: f64, received_bytes: u64) -> LoadReport {
    let totals = Totals {
        responses: TIMES,
        body_bytes: TIMES * FILE_BYTES as u64,
        received_bytes,
        connections: 1,
        ..Totals::default()
    };
    LoadReport { schema: SCHEMA.to_owned(), measured_s, totals, ..LoadReport::default() }
}

#[track_caller]
fn assert_within(share: f64, what: &str, measured: f64, reference: f64) {
    let difference = (measured - reference).abs() / reference;
    eprintln!("{what}: {measured:.5}, reference {reference:.5}, {:.2} % apart", 100.0 * difference);
    assert!(difference < share, "{what}: {measured} against {reference}");
}

#[track_caller]
fn value(reading: &Reading<f64>) -> f64 {
    match reading {
        Reading::Value(value) => *value,
        Reading::NotAvailable(reason) => panic!("not available: {reason}"),
    }
}

fn gbit_s(bytes: u64, elapsed_s: f64) -> f64 {
    bytes as f64 * 8.0 / 1e9 / elapsed_s
}

/// Fetches the file over a connection that stays open, and compares every byte. Gives what came by TCP.
fn fetch(stream: &mut TcpStream, expected: &[u8]) -> u64 {
    stream.write_all(b"GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let mut received = Vec::with_capacity(expected.len() + 1024);
    let mut piece = vec![0; 1 << 16];
    let body = loop {
        if let Some(end) = received.windows(4).take(4096).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        let count = stream.read(&mut piece).expect("a response");
        assert!(count > 0, "the head ended early");
        received.extend_from_slice(&piece[..count]);
    };
    while received.len() < body + expected.len() {
        let count = stream.read(&mut piece).expect("a response");
        assert!(count > 0, "the body ended early");
        received.extend_from_slice(&piece[..count]);
    }
    assert!(received[body..] == *expected, "the bytes of the file");
    received.len() as u64
}

/// A server in the clear, and a connection that has had the file once.
fn connected_in_the_clear(link: &Link) -> (Site, Server, SocketAddr, TcpStream) {
    let site = site();
    let listen = format!("http://{SERVER}:0");
    let setup = ServerSetup::new().flag(site.path()).flags(["--listen", &listen, "--workers", "1"]);
    let server = link.start(setup);
    let address = server.listener("http", 0);
    let mut stream = link.at_client(|| connect(address)).expect("the server listens");
    fetch(&mut stream, &pattern("file", FILE_BYTES));
    (site, server, address, stream)
}

fn transfer_in_the_clear(name: &str, bursts: bool) -> Option<Seen> {
    let link = link(name, bursts)?;
    let (_site, server, address, mut stream) = connected_in_the_clear(&link);
    let expected = pattern("file", FILE_BYTES);
    Some(measure(&link, &server, address, || (0..TIMES).map(|_| fetch(&mut stream, &expected)).sum()))
}

#[test]
fn throughput_is_what_ss_and_the_interface_saw() {
    const NAME: &str = "throughput_is_what_ss_and_the_interface_saw";
    let Some(seen) = transfer_in_the_clear(NAME, false) else { return };
    let measured = &seen.measurement;
    let acknowledged = gbit_s(seen.ss.bytes, seen.elapsed_s);
    assert_within(0.02, "application Gb/s, ss", measured.application_gbit_s, acknowledged);
    let counted = gbit_s(seen.link.bytes, measured.elapsed_s);
    assert_within(0.02, "wire Gb/s, ip", value(&measured.wire_gbit_s), counted);
    assert!(seen.link.bytes / seen.link.frames <= 1514, "no bursts: {:?}", seen.link);
    assert!(measured.wire_source.contains("interface counters of veth0"), "{}", measured.wire_source);

    // A transfer that kept the server busy is not free.
    let (demand, cost) = (&measured.service_demand_us_per_kb, &measured.server_s_per_gb);
    assert!(demand.value() > Some(&0.0) && cost.value() > Some(&0.0), "{measured:?}");

    // Without an interface it is computed: the same wire, by arithmetic, which knows of nothing that was sent again. In
    // bytes, as the meter's time is longer than the transfer's: by a whole time slice, where the machine is busy.
    if seen.ss.retransmitted > 0 {
        return skip(
            NAME,
            &format!("the computed part only: {} segments were sent again", seen.ss.retransmitted),
        );
    }
    let computed = seen.costs_without_interface().measurement(measured.load.clone());
    let bytes = |gbit_s: &Reading<f64>, elapsed_s: f64| value(gbit_s) * elapsed_s * 1e9 / 8.0;
    let (arithmetic, counted) =
        (bytes(&computed.wire_gbit_s, seen.elapsed_s), bytes(&measured.wire_gbit_s, measured.elapsed_s));
    assert_within(0.02, "bytes on the wire, computed", arithmetic, counted);
    assert!(computed.wire_source.contains("computed for MSS 1448"), "{}", computed.wire_source);
}

#[test]
fn bursts_weigh_on_the_wire_what_their_segments_weigh() {
    const NAME: &str = "bursts_weigh_on_the_wire_what_their_segments_weigh";
    let Some(seen) = transfer_in_the_clear(NAME, true) else { return };
    assert!(seen.link.bytes / seen.link.frames > 3000, "bursts: {:?}", seen.link);
    assert!(seen.measurement.wire_source.contains("TCP segments"), "{}", seen.measurement.wire_source);
    let measured = value(&seen.measurement.wire_gbit_s) * seen.costs.elapsed_s * 1e9 / 8.0;
    // What the connection says that it sent, however a busy machine cut it, and again, each segment with its headers.
    let reference = (seen.ss.sent_bytes + seen.ss.segments * SEGMENT_OVERHEAD_BYTES) as f64;
    assert_within(0.01, "bytes on the wire", measured, reference);
    // What the counter alone would have said is further off.
    assert!((seen.link.bytes as f64) < 0.97 * reference, "{:?}", seen.link);
}

#[test]
fn throughput_over_tls_is_what_ss_saw() {
    let Some(link) = link("throughput_over_tls_is_what_ss_saw", false) else { return };
    let site = site();
    let folder = tempfile::tempdir().expect("a folder");
    let certificate = CertificatePair::for_localhost(folder.path());
    let listen = format!("{SERVER}:0");
    let setup = ServerSetup::new()
        .flag(site.path())
        .flags(["--listen", &listen, "--workers", "1"])
        .certificate(&certificate);
    let server = link.start(setup);
    let address = server.address();
    let mut client = link.at_client(|| ClientSetup::new([&certificate]).connect(address));
    let expected = pattern("file", FILE_BYTES);
    let mut fetch = || {
        let response = client.get("/file");
        assert!(response.body == expected, "the bytes of the file");
        response.body.len() as u64
    };
    fetch();
    let seen = measure(&link, &server, address, || (0..TIMES).map(|_| fetch()).sum());
    let acknowledged = gbit_s(seen.ss.bytes, seen.elapsed_s);
    assert_within(0.02, "application Gb/s, ss", seen.measurement.application_gbit_s, acknowledged);
    let counted = gbit_s(seen.link.bytes, seen.costs.elapsed_s);
    assert_within(0.02, "wire Gb/s, ip", value(&seen.measurement.wire_gbit_s), counted);
}

#[test]
fn retransmissions_are_those_that_ss_counted() {
    let Some(link) = link("retransmissions_are_those_that_ss_counted", false) else { return };
    let (_site, server, address, mut stream) = connected_in_the_clear(&link);
    let expected = pattern("file", FILE_BYTES);
    let at_first = link.acknowledged(address);
    let seen = measure(&link, &server, address, || {
        thread::scope(|scope| {
            let transfer = scope.spawn(|| (0..TIMES).map(|_| fetch(&mut stream, &expected)).sum());
            // What is on its way when the link breaks is lost. Again, until some of it was the server's; each time only when
            // the transfer goes on: a link that breaks under every attempt doubles the wait for the next, beyond any patience.
            loop {
                let before = link.acknowledged(address);
                link.set_up(false);
                thread::sleep(Duration::from_millis(300));
                link.set_up(true);
                let mut sent_again = false;
                wait_until("the transfer goes on", || {
                    let now = link.acknowledged(address);
                    sent_again = now.retransmitted > at_first.retransmitted;
                    sent_again || now.bytes > before.bytes || transfer.is_finished()
                });
                if sent_again || transfer.is_finished() {
                    break;
                }
            }
            transfer.join().expect("a whole transfer")
        })
    });
    if seen.ss.retransmitted == 0 {
        skip("retransmissions_are_those_that_ss_counted", "the transfer was over before the link broke");
        return;
    }
    assert_eq!(seen.measurement.retransmitted_segments, Reading::Value(seen.ss.retransmitted));
}
