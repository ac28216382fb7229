//! Files that change while they are sent: never padded, never of the wrong length, never mixed (INV-FILE-1,
//! INV-FILE-2).

use crate::support::{Connection, End, Fixture, Transport, add_at_rest};
use linerate_end_to_end::{Site, wait_until};
use std::{fs::File, io::Write, os::unix::fs::FileExt};

const NAME: &str = "film.bin";
/// Far more than the sockets between server and client hold.
const LENGTH: usize = 48 << 20;
/// What is left of a file that is cut: odd, and beyond what is under way when it happens.
const LEFT: usize = (30 << 20) + 12_345;

/// How a file reaches the engine.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// TLS, sealed from a mapping.
    Mapped,
    /// TLS, read: the file is younger than ten seconds.
    Read,
    /// In the clear, by sendfile.
    SendFile,
}

const WAYS: [Way; 3] = [Way::Mapped, Way::Read, Way::SendFile];

/// A server, the file's bytes, and a client that has read the head and a little, and waits.
fn half_way(way: Way) -> (Fixture, Vec<u8>, Connection, Vec<u8>) {
    let site = Site::empty();
    let bytes =
        if let Way::Read = way { site.add_pattern(NAME, LENGTH) } else { add_at_rest(&site, NAME, LENGTH) };
    let fixture = Fixture::start(site);
    let transport = if let Way::SendFile = way { Transport::Plain } else { Transport::Tls };
    let mut connection = fixture.connect_with_small_window(transport, 64 * 1024);
    connection.send(crate::support::get(&format!("/{NAME}"), ""));
    let mut beginning = Vec::new();
    let mut buffer = [0; 4096];
    while beginning.len() < 10_000 {
        let count = connection.receive(&mut buffer).expect("the server sends");
        assert!(count > 0);
        beginning.extend_from_slice(&buffer[..count]);
    }
    let head_bytes = beginning.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&beginning[..head_bytes]).into_owned();
    assert!(head.contains(&format!("Content-Length: {LENGTH}\r\n")), "{head}");
    beginning.drain(..head_bytes);
    (fixture, bytes, connection, beginning)
}

#[test]
fn a_file_cut_short_cuts_the_connection() {
    for way in WAYS {
        let (fixture, bytes, mut connection, mut body) = half_way(way);
        let path = fixture.site.path().join(NAME);
        File::options().write(true).open(path).unwrap().set_len(LEFT as u64).unwrap();
        let (rest, end) = connection.end();
        body.extend_from_slice(&rest);
        assert!(body.len() <= LEFT, "{way:?}: {} bytes of a file of {LEFT}", body.len());
        assert!(body == bytes[..body.len()], "{way:?}: what came is what was there");
        assert_eq!(end, End::Cut, "{way:?}: a reset, or no close_notify that vouches for a broken response");
        fixture.server.wait_for_stderr(&format!("/{NAME}: the file was cut short at byte {LEFT} "));
        wait_until("the fault is counted", || {
            fixture.server.metric("linerate_connections_closed_total", "broken_file") == 1.0
        });
        // What is left is a file like any other.
        let transport = if let Way::SendFile = way { Transport::Plain } else { Transport::Tls };
        fixture.connect(transport).get(&format!("/{NAME}"), "").assert_is(200, &bytes[..LEFT]);
    }
}

/// How a file is changed in place so that it is as long as it was.
#[derive(Clone, Copy, Debug)]
enum Rewriting {
    /// Written over, as by `rsync --inplace`.
    Over,
    /// Cut to nothing and written anew, as by `cp`.
    Anew,
    /// One byte of it, behind all that was sent.
    OneByte,
}

#[test]
fn a_file_overwritten_while_it_is_sent_cuts_the_connection() {
    for way in WAYS {
        for rewriting in [Rewriting::Over, Rewriting::Anew, Rewriting::OneByte] {
            let (fixture, mut bytes, mut connection, mut body) = half_way(way);
            let file = File::options().write(true).open(fixture.site.path().join(NAME)).unwrap();
            match rewriting {
                Rewriting::Over => bytes.fill(b'!'),
                Rewriting::Anew => {
                    file.set_len(0).unwrap();
                    bytes.fill(b'!');
                }
                Rewriting::OneByte => bytes[LENGTH - 1] ^= 1,
            }
            file.write_all_at(&bytes, 0).unwrap();
            let (rest, end) = connection.end();
            body.extend_from_slice(&rest);
            assert!(body.len() < LENGTH, "{way:?}, {rewriting:?}: the response ended as if it were whole");
            assert_eq!(end, End::Cut, "{way:?}, {rewriting:?}");
            // Between the cut and the writing of a file that is written anew it is shorter: that is seen, too.
            let seen = if let Rewriting::Anew = rewriting { "" } else { "overwritten " };
            fixture.server.wait_for_stderr(&format!("/{NAME}: the file was {seen}"));
            fixture.server.wait_for_stderr("while it was sent; the connection to ");
            wait_until("the fault is counted", || {
                fixture.server.metric("linerate_connections_closed_total", "broken_file") == 1.0
            });
            // Another response is of the file as it is now, and says so.
            let transport = if let Way::SendFile = way { Transport::Plain } else { Transport::Tls };
            fixture.connect(transport).get(&format!("/{NAME}"), "").assert_is(200, &bytes);
        }
    }
}

/// What `sendfile` puts into a socket is the file's own pages: what waits there changes with the file.
#[test]
fn a_file_changed_behind_its_response_cuts_the_connection_while_the_client_has_not_all() {
    /// What the socket takes at once of a response, and a client with a small window does not.
    const WAITING: usize = 300_001;
    for (headers, ends_its_side) in [("", false), ("Connection: close\r\n", false), ("", true)] {
        let site = Site::empty();
        let bytes = add_at_rest(&site, NAME, WAITING);
        let fixture = Fixture::start(site);
        let mut connection = fixture.connect_with_small_window(Transport::Plain, 4096);
        connection.send(crate::support::get(&format!("/{NAME}"), headers));
        if ends_its_side {
            connection.finish_sending();
        }
        wait_until("all of it is in the socket", || {
            fixture.server.metric("linerate_http_responses_total", "plain") == 1.0
        });
        let file = File::options().write(true).open(fixture.site.path().join(NAME)).unwrap();
        file.write_all_at(&vec![b'!'; WAITING], 0).unwrap();
        fixture.server.wait_for_stderr(&format!(
            "/{NAME}: the file was changed before the client had all of it; the connection to "
        ));
        let (received, end) = connection.end();
        assert_eq!(end, End::Cut, "{headers:?} {ends_its_side}");
        assert!(received.len() < bytes.len(), "{headers:?} {ends_its_side}: {} bytes", received.len());
    }
}

/// The same file is nobody's fault once the client has all of it.
#[test]
fn a_file_may_be_changed_once_the_client_has_it() {
    let site = Site::empty();
    let mut bytes = add_at_rest(&site, NAME, 300_001);
    let fixture = Fixture::start(site);
    let mut connection = fixture.connect(Transport::Plain);
    let path = fixture.site.path().join(NAME);
    for round in 0..3 {
        connection.get(&format!("/{NAME}"), "").assert_is(200, &bytes);
        bytes[round] ^= 1;
        File::options().write(true).open(&path).unwrap().write_all_at(&bytes, 0).unwrap();
    }
    connection.get(&format!("/{NAME}"), "").assert_is(200, &bytes);
    assert_eq!(fixture.server.metric("linerate_connections_closed_total", "broken_file"), 0.0);
}

/// A client that has all of one response and takes its time over the next is not cut for the first one's file: sweeps look
/// at that while bytes of the second wait.
#[test]
fn a_file_may_be_changed_while_another_response_is_under_way() {
    const OTHER: &str = "other.bin";
    let site = Site::empty();
    let mut bytes = add_at_rest(&site, NAME, 300_001);
    let other = add_at_rest(&site, OTHER, 2_000_003);
    let fixture = Fixture::start(site);
    let mut connection = fixture.connect_with_small_window(Transport::Plain, 4096);
    connection.get(&format!("/{NAME}"), "").assert_is(200, &bytes);
    connection.send(crate::support::get(&format!("/{OTHER}"), "Connection: close\r\n"));
    bytes[7] ^= 1;
    let path = fixture.site.path().join(NAME);
    File::options().write(true).open(path).unwrap().write_all_at(&bytes, 0).unwrap();
    // Some sweeps, in which the client takes nothing. Fewer, on a slow machine, show less and break nothing.
    std::thread::sleep(std::time::Duration::from_millis(700));
    let (received, _) = connection.end();
    assert!(received.ends_with(&other[other.len() - 100_000..]), "{} bytes came", received.len());
    assert_eq!(fixture.server.metric("linerate_connections_closed_total", "broken_file"), 0.0);
}

/// A file that is kept open, and mapped, may be changed between two requests of one connection.
#[test]
fn a_file_changed_between_two_requests_is_described_as_it_is() {
    for way in WAYS {
        let site = Site::empty();
        let length = 300_001;
        let mut bytes = match way {
            Way::Read => site.add_pattern(NAME, length),
            Way::Mapped | Way::SendFile => add_at_rest(&site, NAME, length),
        };
        let fixture = Fixture::start(site);
        let transport = if let Way::SendFile = way { Transport::Plain } else { Transport::Tls };
        let mut connection = fixture.connect(transport);
        let mut etags = Vec::new();
        let mut expect = |bytes: &[u8]| {
            let response = connection.get(&format!("/{NAME}"), "");
            response.assert_is(200, bytes);
            etags.push(response.header("etag").expect("a tag").to_owned());
        };
        expect(&bytes);
        let file = File::options().write(true).open(fixture.site.path().join(NAME)).unwrap();
        bytes[length - 1] ^= 1;
        file.write_all_at(&bytes[length - 1..], length as u64 - 1).unwrap();
        expect(&bytes);
        file.set_len(length as u64 - 3).unwrap();
        expect(&bytes[..length - 3]);
        file.set_len(length as u64 + 4097).unwrap();
        let grown = [&bytes[..length - 3], &[0; 4100]].concat();
        expect(&grown);
        etags.sort();
        etags.dedup();
        assert_eq!(etags.len(), 4, "{way:?}: {etags:?}");
    }
}

#[test]
fn a_file_replaced_by_renaming_is_sent_to_its_end() {
    for way in WAYS {
        let (fixture, bytes, mut connection, mut body) = half_way(way);
        fixture.site.replace(NAME, b"the new one");
        let transport = if let Way::SendFile = way { Transport::Plain } else { Transport::Tls };
        fixture.connect(transport).get(&format!("/{NAME}"), "").assert_is(200, b"the new one");
        let mut buffer = [0; 64 * 1024];
        while body.len() < LENGTH {
            let count = connection.receive(&mut buffer).expect("the server sends");
            assert!(count > 0, "{way:?} ended after {} bytes", body.len());
            body.extend_from_slice(&buffer[..count]);
        }
        assert!(body == bytes, "{way:?}: the old file, whole");
        // The same connection sees the new one now.
        connection.get(&format!("/{NAME}"), "").assert_is(200, b"the new one");
        assert_eq!(fixture.server.metric("linerate_connections_closed_total", "broken_file"), 0.0);
    }
}

#[test]
fn a_file_that_grows_is_sent_as_long_as_it_was_announced() {
    for way in WAYS {
        let (fixture, mut bytes, mut connection, mut body) = half_way(way);
        let path = fixture.site.path().join(NAME);
        File::options().append(true).open(path).unwrap().write_all(b"more").unwrap();
        let mut buffer = [0; 64 * 1024];
        while body.len() < LENGTH {
            let count = connection.receive(&mut buffer).expect("the server sends");
            assert!(count > 0, "{way:?} ended after {} bytes", body.len());
            body.extend_from_slice(&buffer[..count]);
        }
        assert!(body == bytes, "{way:?}");
        bytes.extend_from_slice(b"more");
        connection.get(&format!("/{NAME}"), "").assert_is(200, &bytes);
    }
}

#[test]
fn a_file_removed_while_it_is_sent_is_sent_to_its_end() {
    for way in WAYS {
        let (fixture, bytes, mut connection, mut body) = half_way(way);
        std::fs::remove_file(fixture.site.path().join(NAME)).unwrap();
        let mut buffer = [0; 64 * 1024];
        while body.len() < LENGTH {
            let count = connection.receive(&mut buffer).expect("the server sends");
            assert!(count > 0, "{way:?} ended after {} bytes", body.len());
            body.extend_from_slice(&buffer[..count]);
        }
        assert!(body == bytes, "{way:?}");
        assert_eq!(connection.get(&format!("/{NAME}"), "").status, 404);
    }
}
