//! Clients that mean harm, while a run goes on: the run is not disturbed, and the next client is served.

use super::support::{Quiet, SECRET, listen, plan, run, try_run};
use linerate_stream::{
    Limits, StreamPlan,
    control::preamble::{preamble, token},
    plan::{Amount, Direction, StreamEngine},
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// A run of both directions that lasts until `harm` is done, and a further one after that.
fn undisturbed_by(harm: impl FnOnce(SocketAddr)) {
    let address = listen("127.0.0.1:0", Some(SECRET), Limits::default());
    let secret = linerate_stream::Secret::new(SECRET).ok();
    let plan = StreamPlan {
        secret,
        streams: 2,
        direction: Direction::Both,
        engine: StreamEngine::User,
        amount: Amount::Milliseconds(600_000),
        ..plan(address)
    };
    let (interrupt, is_under_way) = (AtomicBool::new(false), AtomicBool::new(false));
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| linerate_stream::run(&plan, &interrupt, &mut Telling(&is_under_way)));
        while !is_under_way.load(Relaxed) && !running.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
        harm(address);
        interrupt.store(true, Relaxed);
        running.join().unwrap().unwrap()
    });
    assert_eq!(report.faults, Vec::<String>::new());
    assert!(report.local.bytes(true) > 0 && report.local.bytes(false) > 0);
    run(&StreamPlan { amount: Amount::Bytes(100_000), ..plan });
}

/// Says when the run has begun.
struct Telling<'a>(&'a AtomicBool);

impl linerate_stream::Watch for Telling<'_> {
    fn connected(&mut self, _streams: &[linerate_stream::report::Connected]) {
        self.0.store(true, Relaxed);
    }

    fn interval(&mut self, _interval: &linerate_stream::report::Interval) {}
}

#[test]
fn garbage_harms_nobody() {
    undisturbed_by(|address| {
        for garbage in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"LRST\x01aaaaaaaaaaaaaaaa",
            b"LRST\x02",
            b"LRS",
            b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
            b"\x16\x03\x01\xff\xff",
            &[0xFF; 70_000],
            b"",
        ] {
            let mut socket = TcpStream::connect(address).unwrap();
            // It may have been cut already.
            let _ = socket.write_all(garbage);
            let _ = socket.shutdown(std::net::Shutdown::Write);
            let _ = socket.read(&mut [0; 100]);
        }
    });
}

#[test]
fn a_thousand_connections_that_say_nothing_or_half_harm_nobody() {
    undisturbed_by(|address| {
        let half_open: Vec<TcpStream> = (0..1000)
            .filter_map(|number| {
                let mut socket = TcpStream::connect(address).ok()?;
                match number % 4 {
                    0 => {}
                    1 => socket.write_all(b"LRST\x01half").ok()?,
                    2 => socket.write_all(b"\x16\x03\x01\x02").ok()?,
                    _ => socket.write_all(&[0x16, 3, 1, 0, 200, 1]).ok()?,
                }
                Some(socket)
            })
            .collect();
        assert!(half_open.len() > 500, "{}", half_open.len());
    });
}

#[test]
fn wrong_secrets_and_guessed_tokens_harm_nobody() {
    undisturbed_by(|address| {
        let wrong = linerate_stream::Secret::new(b"this is not the secret of the listener").ok();
        for _ in 0..20 {
            try_run(&StreamPlan { secret: wrong.clone(), ..plan(address) }).unwrap_err();
        }
        for number in 0..200 {
            let mut socket = TcpStream::connect(address).unwrap();
            let _ = socket.write_all(&preamble(&token(&[7; 32], number)));
        }
    });
}

/// A wire between a client and a listener that somebody watches: all that goes to the listener is kept.
struct Tap {
    address: SocketAddr,
    first_bytes: std::sync::Arc<Mutex<Vec<Vec<u8>>>>,
}

fn tap(listener: SocketAddr) -> Tap {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let first_bytes = std::sync::Arc::new(Mutex::new(Vec::new()));
    let kept = std::sync::Arc::clone(&first_bytes);
    thread::spawn(move || {
        for client in socket.incoming().flatten() {
            let server = TcpStream::connect(listener).unwrap();
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let kept = std::sync::Arc::clone(&kept);
            thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                let mut is_first = true;
                while let Ok(bytes @ 1..) = from_client.read(&mut buffer) {
                    if std::mem::take(&mut is_first) {
                        kept.lock().unwrap().push(buffer[..bytes].to_vec());
                    }
                    if to_server.write_all(&buffer[..bytes]).is_err() {
                        break;
                    }
                }
                let _ = to_server.shutdown(std::net::Shutdown::Write);
            });
            let (mut from_server, mut to_client) = (server, client);
            thread::spawn(move || {
                let _ = std::io::copy(&mut from_server, &mut to_client);
                let _ = to_client.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    Tap { address, first_bytes }
}

/// What was seen on the wire is said again: the control connection's handshake, and the streams' preambles.
#[test]
fn what_was_said_once_is_of_no_use_again() {
    let listener = listen("127.0.0.1:0", Some(SECRET), Limits::default());
    let tap = tap(listener);
    let secret = linerate_stream::Secret::new(SECRET).ok();
    let plan = StreamPlan {
        secret,
        streams: 2,
        rate_bits: Some(8_000_000),
        amount: Amount::Milliseconds(60_000),
        ..plan(tap.address)
    };
    let (interrupt, is_under_way) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let running = scope.spawn(|| linerate_stream::run(&plan, &interrupt, &mut Telling(&is_under_way)));
        while !is_under_way.load(Relaxed) && !running.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
        let seen = tap.first_bytes.lock().unwrap().clone();
        assert_eq!(seen.iter().filter(|first| first.starts_with(b"LRST")).count(), 2);
        for first in seen {
            let mut socket = TcpStream::connect(listener).unwrap();
            socket.write_all(&first).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            if first.starts_with(b"LRST") {
                // Closed unread: the token is spent.
                assert!(matches!(socket.read(&mut [0; 100]), Ok(0) | Err(_)));
            }
        }
        interrupt.store(true, Relaxed);
        let report = running.join().unwrap().unwrap();
        assert_eq!(report.faults, Vec::<String>::new());
    });
}

/// What a wire does once a megabyte of a stream has passed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Death {
    /// The other end's process dies: its system closes or resets its connections.
    Closed,
    /// Its machine does, or the cable: nothing comes any more.
    Silent,
}

#[test]
fn a_listener_that_dies_ends_the_run_with_what_was_measured() {
    let listener = listen("127.0.0.1:0", None, Limits::default());
    for death in [Death::Closed, Death::Silent] {
        for direction in [Direction::Send, Direction::Receive] {
            let dying = dying_wire(listener, death);
            let plan = StreamPlan { direction, amount: Amount::Milliseconds(60_000), ..plan(dying) };
            let began = Instant::now();
            let report = linerate_stream::run(&plan, &AtomicBool::new(false), &mut Quiet).unwrap();
            assert!(began.elapsed() < Duration::from_secs(40), "it did not wait for its time");
            let said = match death {
                Death::Closed => "the listener is gone: ",
                Death::Silent => "the listener is gone: nothing was heard of it for ",
            };
            assert!(report.faults.iter().any(|fault| fault.contains(said)), "{death:?}: {:?}", report.faults);
            assert!(report.remote.is_none());
            assert!(report.local.bytes(true) + report.local.bytes(false) > 0);
        }
    }
}

/// Passes everything on until a megabyte of a stream has passed.
fn dying_wire(listener: SocketAddr, death: Death) -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let all = std::sync::Arc::new(Mutex::new(Vec::<TcpStream>::new()));
        let is_dead = std::sync::Arc::new(AtomicBool::new(false));
        // The control connection, and one stream.
        for client in socket.incoming().flatten().take(2) {
            let server = TcpStream::connect(listener).unwrap();
            let mut kept = all.lock().unwrap();
            kept.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
            drop(kept);
            for (mut from, mut to) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
            {
                let (all, is_dead) = (std::sync::Arc::clone(&all), std::sync::Arc::clone(&is_dead));
                thread::spawn(move || {
                    let (mut buffer, mut passed) = (vec![0; 65_536], 0);
                    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
                        // A dead wire takes nothing and keeps its connections open, as long as `all` does.
                        if is_dead.load(Relaxed) || to.write_all(&buffer[..bytes]).is_err() {
                            return;
                        }
                        passed += bytes;
                        if passed > 1_000_000 {
                            is_dead.store(true, Relaxed);
                            for one in all.lock().unwrap().iter() {
                                if death == Death::Closed {
                                    let _ = one.shutdown(std::net::Shutdown::Both);
                                }
                            }
                            return;
                        }
                    }
                });
            }
        }
        thread::sleep(Duration::from_secs(60));
    });
    address
}
