//! Runs against a server whose faults are known: what is counted, and that nothing is hidden.

mod support;

use std::{
    fs,
    io::Write,
    net::TcpListener,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use linerate_load::{
    LoadError, Sayings,
    plan::{BodyUse, RangeChoice, SocketShape, Until},
};
use support::{plan, respond, run, serve};

const BODY: &[u8] = &[7; 10_000];

#[test]
fn every_request_is_made_once_and_answered() {
    for (connections, threads, close) in [(1, 1, false), (7, 3, false), (5, 2, true)] {
        for body in [BodyUse::Read, BodyUse::Discard] {
            // The first are answered when each connection has asked: no thread makes all requests before another begins.
            let all_have_asked = Barrier::new(connections as usize);
            let address = serve(move |request, stream| {
                if request.number < u64::from(connections) {
                    all_have_asked.wait();
                }
                let closes = request.headers.contains("Connection: close");
                respond(stream, "200 OK", "", BODY) && !closes
            });
            let mut plan = plan(address, "/f");
            (plan.connections, plan.threads, plan.close) = (connections, threads, close);
            plan.until = Until::Requests(500);
            plan.body = body;
            let report = run(&plan);
            let totals = report.totals;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            assert_eq!((totals.requests, totals.responses, totals.unanswered), (500, 500, 0));
            assert_eq!(totals.body_bytes, 500 * BODY.len() as u64);
            let head_bytes = "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n".len() as u64;
            assert_eq!(totals.received_bytes, 500 * (head_bytes + BODY.len() as u64));
            assert_eq!(totals.connections, if close { 500 } else { u64::from(connections) });
            assert_eq!(
                (report.latency.count, report.first_byte.count, report.transfer.count),
                (500, 500, 500)
            );
            assert_eq!(report.statuses[&200], 500);
        }
    }
}

/// The mistake of clients that wait for a response before they count the next request: a stall of a second is one slow
/// request to them. Here 100 requests a second were due in it, and each has waited.
#[test]
fn a_stall_shows_in_the_percentiles() {
    let address = serve(|request, stream| {
        if request.number == 100 {
            thread::sleep(Duration::from_secs(1));
        }
        respond(stream, "200 OK", "", b"x")
    });
    let mut plan = plan(address, "/");
    plan.until = Until::Time(Duration::from_secs(3));
    plan.rate = Some(100.0);
    let at_a_rate = run(&plan);
    // A third of the requests were due in the second that nothing was answered in.
    let latency = at_a_rate.latency;
    assert!((250..=301).contains(&latency.count), "{latency:?}");
    assert!(latency.p75_us > 200_000, "a quarter waited for longer: {latency:?}");
    assert!(latency.p90_us > 600_000 && latency.max_us > 950_000, "{latency:?}");
    assert!(at_a_rate.first_byte.p90_us > 600_000, "{:?}", at_a_rate.first_byte);
    assert!(latency.p50_us < 100_000, "the others did not: {latency:?}");

    // Without a rate the same stall is one request among thousands.
    plan.rate = None;
    plan.targets = vec![format!("http://{address}/").parse().unwrap()];
    assert!(run(&plan).latency.p99_us < 100_000);
}

#[test]
fn what_is_never_answered_is_told() {
    let address = serve(|request, stream| {
        if request.number >= 10 {
            thread::sleep(Duration::from_secs(60));
        }
        respond(stream, "200 OK", "", b"x")
    });
    let mut plan = plan(address, "/");
    plan.until = Until::Time(Duration::from_secs(1));
    plan.rate = Some(100.0);
    let report = run(&plan);
    assert_eq!(report.latency.count, 10);
    assert!((85..=91).contains(&report.totals.unanswered), "{:?}", report.totals);
    assert!(report.totals.oldest_unanswered_us > 800_000, "{:?}", report.totals);
}

#[test]
fn a_rate_is_kept() {
    let address = serve(|_, stream| respond(stream, "200 OK", "", b"x"));
    let mut plan = plan(address, "/");
    (plan.connections, plan.threads) = (8, 2);
    plan.until = Until::Time(Duration::from_secs(2));
    plan.rate = Some(500.0);
    let report = run(&plan);
    assert!((980..=1001).contains(&report.totals.responses), "{:?}", report.totals);
    assert_eq!(report.rate_per_s, Some(500.0));
}

#[test]
fn idle_connections_have_asked_once_and_stay() {
    let closes_after = Arc::new(AtomicBool::new(false));
    let closes = Arc::clone(&closes_after);
    let address =
        serve(move |_, stream| respond(stream, "200 OK", "", BODY) && !closes.load(Ordering::Relaxed));
    let mut plan = plan(address, "/");
    (plan.connections, plan.threads, plan.once) = (7, 2, true);
    plan.until = Until::Time(Duration::from_millis(500));
    for spin in [false, true] {
        plan.spin = spin;
        let report = run(&plan);
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        let totals = report.totals;
        assert_eq!((totals.connections, totals.responses, totals.unanswered), (7, 7, 0));
    }
    // A server that closes them is found out.
    closes_after.store(true, Ordering::Relaxed);
    let report = run(&plan);
    assert_eq!(report.errors.get("closed while idle"), Some(&7), "{:?}", report.errors);
    assert_eq!(report.totals.connections, 7);
    plan.close = true;
    assert!(plan.check().unwrap_err().to_string().contains("--once"));
}

#[test]
fn sockets_have_the_shape_that_was_asked_for() {
    let address = serve(|_, stream| {
        let segment_bytes = socket2::SockRef::from(&*stream).tcp_mss().unwrap();
        respond(stream, "200 OK", "", &vec![7; segment_bytes as usize])
    });
    let mut plan = plan(address, "/");
    // Loopback's own is 65,483.
    assert!(run(&plan).totals.body_bytes > 10_000);
    plan.shape = SocketShape { receive_buffer_bytes: Some(32_768), segment_bytes: Some(1448) };
    let body_bytes = run(&plan).totals.body_bytes;
    assert!((1400..=1448).contains(&body_bytes), "{body_bytes}");
}

#[test]
fn nobody_waits_for_ever() {
    let address = serve(|request, stream| {
        if request.path == "/silent" {
            thread::sleep(Duration::from_secs(60));
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1234");
        thread::sleep(Duration::from_secs(60));
        false
    });
    for (path, kind) in [("/silent", "timed out: first byte"), ("/half", "timed out: response")] {
        let mut plan = plan(address, path);
        plan.timeout = Duration::from_millis(300);
        let started = Instant::now();
        let report = run(&plan);
        assert_eq!(report.errors.get(kind), Some(&1), "{:?}", report.errors);
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn faults_are_counted_by_kind() {
    let address = serve(|request, stream| match request.path.as_str() {
        "/404" => respond(stream, "404 Not Found", "", b"no"),
        "/cut" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
            false
        }
        "/nothing" => false,
        "/garbage" => stream.write_all(b"220 mail.example ESMTP\r\n").is_ok(),
        "/more" => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab").is_ok(),
        "/ignored" => respond(stream, "200 OK", "", BODY),
        "/other" => respond(stream, "206 Partial", "Content-Range: bytes 1-2/10\r\n", b"12"),
        _ => respond(stream, "500 Oh", "", b""),
    });
    for (path, ranged, kind, responses) in [
        ("/404", false, "status 404", 3),
        ("/500", false, "status 500", 3),
        ("/cut", false, "closed in the response", 0),
        ("/nothing", false, "closed before the response", 0),
        ("/garbage", false, "response: a malformed head", 0),
        ("/more", false, "response: bytes that nobody asked for", 3),
        ("/ignored", true, "response: the range was ignored (200)", 3),
        ("/other", true, "response: another range than was asked for", 3),
        ("/other", false, "response: 206 to a request for the whole", 3),
    ] {
        for body in [BodyUse::Read, BodyUse::Discard] {
            let mut plan = plan(address, path);
            plan.until = Until::Requests(3);
            plan.range = ranged.then_some(RangeChoice::Fixed { first: 0, last: 9 });
            plan.body = body;
            let report = run(&plan);
            assert_eq!(report.errors.values().sum::<u64>(), 3, "{path}: {:?}", report.errors);
            assert_eq!(report.errors.get(kind), Some(&3), "{path}: {:?}", report.errors);
            assert_eq!(report.totals.responses, responses, "{path}");
        }
    }
}

#[test]
fn a_connection_that_the_server_has_closed_is_replaced_without_a_failure() {
    let address = serve(|request, stream| {
        respond(stream, "200 OK", "", BODY);
        // Says nothing of it, as a server does whose time for idle connections is over.
        request.number % 5 != 4
    });
    let mut plan = plan(address, "/");
    plan.until = Until::Requests(100);
    let report = run(&plan);
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert_eq!((report.totals.responses, report.totals.body_bytes), (100, 100 * BODY.len() as u64));
    assert!(report.totals.connections >= 20, "{:?}", report.totals);
}

#[test]
fn every_framing_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..100_003u32).map(|number| (number % 249) as u8).collect();
    let file = folder.path().join("f");
    fs::write(&file, &bytes).unwrap();
    let served = bytes.clone();
    let address = serve(move |request, stream| match request.path.as_str() {
        "/length" => respond(stream, "200 OK", "", &served),
        "/close" => {
            let _ = stream.write_all(&[b"HTTP/1.1 200 OK\r\n\r\n", served.as_slice()].concat());
            false
        }
        "/chunked" => {
            let mut wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in served.chunks(777) {
                wire.extend(format!("{:x}\r\n", chunk.len()).bytes());
                wire.extend(chunk);
                wire.extend(b"\r\n");
            }
            wire.extend(b"0\r\n\r\n");
            stream.write_all(&wire).is_ok()
        }
        _ => {
            let span = request.headers.split("bytes=").nth(1).unwrap().split_once('-').unwrap();
            let first: usize = span.0.parse().unwrap();
            let last: usize = span.1.lines().next().unwrap().parse().unwrap();
            let last = last.min(served.len() - 1);
            let range = format!("Content-Range: bytes {first}-{last}/{}\r\n", served.len());
            respond(stream, "206 Partial Content", &range, &served[first..=last])
        }
    });
    for (path, range) in [
        ("/length", None),
        ("/close", None),
        ("/chunked", None),
        ("/range", Some(RangeChoice::Random { size_bytes: 5_001 })),
        ("/range", Some(RangeChoice::Fixed { first: 99_999, last: 200_000 })),
    ] {
        let mut plan = plan(address, path);
        plan.until = Until::Requests(20);
        plan.connections = 3;
        plan.range = range;
        plan.body = BodyUse::Verify(file.clone());
        let report = run(&plan);
        assert!(report.errors.is_empty() && report.verified, "{path}: {:?}", report.errors);
        assert_eq!(report.totals.responses, 20);

        // One byte of the source is another now: every response that has it is found out, at the right place.
        let mut wrong = bytes.clone();
        wrong[100_000] ^= 1;
        fs::write(&file, &wrong).unwrap();
        plan.range = range.map(|_| RangeChoice::Fixed { first: 99_990, last: 100_002 });
        let report = run(&plan);
        assert_eq!(report.errors.get("verify: a byte differs"), Some(&20), "{path}: {:?}", report.errors);
        let mismatch = &report.mismatches[0];
        assert_eq!((mismatch.offset, mismatch.wanted), (100_000, Some(bytes[100_000] ^ 1)), "{mismatch:?}");
        assert_eq!(mismatch.received, Some(bytes[100_000]));
        fs::write(&file, &bytes).unwrap();
    }
    fs::write(&file, &bytes[..50]).unwrap();
    let mut plan = plan(address, "/length");
    plan.body = BodyUse::Verify(file);
    let report = run(&plan);
    assert_eq!(report.errors.values().sum::<u64>(), 1, "{:?}", report.errors);
}

#[test]
fn the_warm_up_is_in_no_figure() {
    let address = serve(|request, stream| {
        if request.number < 3 {
            thread::sleep(Duration::from_millis(400));
        }
        respond(stream, "200 OK", "", BODY)
    });
    let mut plan = plan(address, "/");
    plan.warm_up = Duration::from_millis(1500);
    plan.until = Until::Time(Duration::from_millis(500));
    let report = run(&plan);
    assert!(report.latency.max_us < 300_000, "{:?}", report.latency);
    assert_eq!(report.totals.connections, 0, "it was opened while warming up");
    assert!((report.measured_s - 0.5).abs() < 0.1, "{}", report.measured_s);
}

#[test]
fn an_interrupt_ends_the_run_and_leaves_what_was_measured() {
    static INTERRUPT: AtomicBool = AtomicBool::new(false);
    let address = serve(|request, stream| {
        if request.number == 100 {
            INTERRUPT.store(true, Ordering::Relaxed);
        }
        respond(stream, "200 OK", "", BODY)
    });
    let mut plan = plan(address, "/");
    plan.until = Until::Time(Duration::from_secs(600));
    let report = linerate_load::run(&plan, &INTERRUPT, Sayings::default()).unwrap();
    assert!(report.interrupted && report.totals.responses >= 90, "{:?}", report.totals);
    assert!((0.0..60.0).contains(&report.measured_s), "{}", report.measured_s);
}

#[test]
fn where_nothing_listens_there_is_no_run() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut plan = plan(address, "/");
    (plan.connections, plan.threads) = (20, 2);
    plan.until = Until::Time(Duration::from_secs(60));
    let started = Instant::now();
    let result = linerate_load::run(&plan, &AtomicBool::new(false), Sayings::default());
    let Err(LoadError::Unreachable { server, reason, .. }) = result else { panic!("{result:?}") };
    assert_eq!(server, address.to_string());
    assert!(reason.contains("refused") && started.elapsed() < Duration::from_secs(20), "{reason}");
}

/// Whatever a server says: no panic, and an end.
#[test]
fn nonsense_from_the_server_is_survived() {
    let address = serve(|request, stream| {
        let mut wire = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec();
        let mut random = request.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for _ in 0..=request.number % 5 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let at = random as usize % wire.len();
            wire[at] = (random >> 32) as u8;
        }
        wire.truncate(wire.len() - (random >> 40) as usize % 10);
        let _ = stream.write_all(&wire);
        false
    });
    let mut plan = plan(address, "/");
    plan.until = Until::Requests(2000);
    plan.connections = 4;
    plan.timeout = Duration::from_secs(2);
    let started = Instant::now();
    // A slot that fails rests for up to a second: the run is ended when it has seen enough.
    let interrupt = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(4));
            interrupt.store(true, Ordering::Relaxed);
        });
        linerate_load::run(&plan, &interrupt, Sayings::default()).unwrap()
    });
    assert!(report.errors.values().sum::<u64>() > 5, "{:?}", report.errors);
    assert!(started.elapsed() < Duration::from_secs(20));
}
