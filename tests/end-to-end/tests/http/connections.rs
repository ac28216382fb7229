//! Connections: how long they last, and many requests on one (RFC 9112 section 9).

use crate::support::{Connection, End, Fixture, Transport, add_at_rest, get};
use linerate_end_to_end::Site;
use std::{
    thread,
    time::{Duration, Instant},
};

const LENGTHS: [usize; 10] = [0, 1, 100, 16_384, 16_385, 70_000, 5, 300_001, 1_048_577, 3];

fn fixture() -> (Fixture, Vec<Vec<u8>>) {
    let site = Site::empty();
    let files = LENGTHS
        .iter()
        .enumerate()
        .map(|(index, length)| add_at_rest(&site, &format!("{index}.bin"), *length));
    let files = files.collect();
    (Fixture::start(site), files)
}

#[test]
fn many_requests_follow_each_other_on_one_connection() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for _ in 0..20 {
            for (index, bytes) in files.iter().enumerate() {
                let response = connection.get(&format!("/{index}.bin"), "");
                response.assert_is(200, bytes);
                assert_eq!(response.header("Connection"), None);
            }
        }
    }
    assert_eq!(fixture.server.metric("linerate_connections_total", ""), 2.0);
}

#[test]
fn ten_requests_in_one_segment_are_answered_in_order() {
    let (fixture, files) = fixture();
    let requests: String = (0..files.len()).map(|index| get(&format!("/{index}.bin"), "")).collect();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        connection.send(&requests);
        for bytes in &files {
            connection.response().assert_is(200, bytes);
        }
        // Nothing is left over, and the connection is still good.
        connection.get("/5.bin", "").assert_is(200, &files[5]);
    }
}

/// RFC 9112 9.6: what follows a request that ends the connection is not answered, and does not destroy the answer.
#[test]
fn what_follows_the_last_request_does_not_destroy_its_response() {
    let site = Site::empty();
    let bytes = add_at_rest(&site, "large.bin", 8_000_001);
    let fixture = Fixture::start_changed_toml(site, "", |toml| {
        toml.replace("\"http://127.0.0.1:0\"]", "\"http://127.0.0.1:0\", \"redirect://127.0.0.1:0\"]")
    });
    // More than the server reads ahead, so that some of it lies unread when the server closes.
    let behind = get("/large.bin", "X-More: of it\r\n").repeat(12_000);
    for transport in Transport::ALL {
        for last in [get("/large.bin", "Connection: close\r\n"), "GET /large.bin HTTP/1.0\r\n\r\n".to_owned()]
        {
            let mut connection = fixture.connect_with_small_window(transport, 32 * 1024);
            connection.send(format!("{last}{behind}"));
            connection.response().assert_is(200, &bytes);
            assert_eq!(connection.end(), (Vec::new(), End::Closed), "{transport:?}: {last}");
        }
    }
    let mut connection = Connection::plain(fixture.server.listener("http", 1));
    connection.send(format!("{}{behind}", get("/large.bin", "Connection: close\r\n")));
    assert_eq!(connection.response().status, 308);
    assert_eq!(connection.end(), (Vec::new(), End::Closed));
}

#[test]
fn requests_may_be_cut_anywhere() {
    let (fixture, files) = fixture();
    let first = format!("\r\n{}", get("/2.bin", "Range: bytes=3-90\r\nX-Empty:\r\n"));
    let both = format!("{first}{}", get("/6.bin", ""));
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for cut in 1..both.len() {
            let (beginning, rest) = both.split_at(cut);
            connection.send(beginning);
            if cut % 8 == 0 {
                // Long enough for the server to see the cut more often than not.
                thread::sleep(Duration::from_millis(1));
            }
            connection.send(rest);
            connection.response().assert_is(206, &files[2][3..=90]);
            connection.response().assert_is(200, &files[6]);
        }
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for byte in get("/2.bin", "Range: bytes=50-59\r\n").into_bytes() {
            connection.send([byte]);
        }
        connection.response().assert_is(206, &files[2][50..60]);
    }
}

#[test]
fn a_client_that_says_close_gets_its_answer_and_a_proper_end() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        for target in [3, 7, 8] {
            let mut connection = fixture.connect(transport);
            let response = connection.get(&format!("/{target}.bin"), "Connection: close\r\n");
            response.assert_is(200, &files[target]);
            assert!(response.closes(), "{}", response.head);
            assert_eq!(connection.end(), (Vec::new(), End::Closed), "{transport:?}");
        }
    }
}

#[test]
fn what_follows_a_last_request_is_not_answered() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        connection.send(get("/2.bin", "Connection: close\r\n") + &get("/6.bin", ""));
        connection.response().assert_is(200, &files[2]);
        assert_eq!(connection.end().0, b"", "{transport:?}");
    }
}

#[test]
fn http_1_0_ends_unless_it_asks_to_go_on() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        connection.send("GET /5.bin HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
        let response = connection.response();
        response.assert_is(200, &files[5]);
        assert_eq!(response.expect("Connection"), "keep-alive");

        connection.send("GET /6.bin HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let response = connection.response();
        response.assert_is(200, &files[6]);
        assert!(response.closes());
        assert_eq!(connection.end(), (Vec::new(), End::Closed));
    }
}

#[test]
fn a_client_may_finish_sending_before_it_has_its_answers() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        connection.send(get("/8.bin", "") + &get("/7.bin", ""));
        connection.finish_sending();
        connection.response().assert_is(200, &files[8]);
        connection.response().assert_is(200, &files[7]);
        assert_eq!(connection.end(), (Vec::new(), End::Closed), "{transport:?}");
    }
}

#[test]
fn head_is_the_head_of_get() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        for (index, bytes) in files.iter().enumerate() {
            let got = connection.get(&format!("/{index}.bin"), "");
            connection.send(format!("HEAD /{index}.bin HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            let head = connection.response_to(true);
            assert_eq!(head.content_length(), Some(bytes.len()));
            let without_date = |head: &str| {
                head.lines().filter(|line| !line.starts_with("Date: ")).collect::<Vec<_>>().join("\n")
            };
            assert_eq!(without_date(&head.head), without_date(&got.head));
        }
    }
}

/// The lower quartile of how long `step` takes, over 24 times. A timer of the kernel delays every time but the first few
/// (a connection begins with quick acknowledgements); a busy machine delays some, and none by as much as three in four.
fn lower_quartile(mut step: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..24)
        .map(|_| {
            let started = Instant::now();
            step();
            started.elapsed()
        })
        .collect();
    times.sort();
    times[6]
}

#[test]
fn no_response_waits_for_a_timer_of_the_kernel() {
    let (fixture, files) = fixture();
    for transport in Transport::ALL {
        let mut connection = fixture.connect(transport);
        // The end of one behind the beginning of the next: an acknowledgement is delayed by 40 ms.
        let small = get("/2.bin", "").repeat(8);
        let pipelined = lower_quartile(|| {
            connection.send(&small);
            (0..8).for_each(|_| connection.response().assert_is(200, &files[2]));
        });
        assert!(pipelined < Duration::from_millis(35), "{transport:?}: {pipelined:?} for eight");
        // More than a socket takes at once, and not a whole number of segments: they are held back by up to 200 ms.
        let large = lower_quartile(|| {
            let response = connection.get("/8.bin", "Range: bytes=131069-655360\r\n");
            response.assert_is(206, &files[8][131_069..=655_360]);
        });
        assert!(large < Duration::from_millis(100), "{transport:?}: {large:?} for 512 KiB");
    }
}
