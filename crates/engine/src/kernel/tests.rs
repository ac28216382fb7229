//! The kernel engine against a model of the kernel: every order of failure before the switch and after it, and what the
//! self-test has to find.

use super::{peer::Peer, *};
use crate::{
    FileRange, Piece,
    source::{Change, OpenFile},
};
use linerate_kernel_model::{Counting, FreeBsd, Script, Simulated, channel, content, temporary};
use linerate_os::{file::read_ahead, kernel_tls::freebsd::KernelTls, socket::connected_pair};
use linerate_placement::{Lack, Reason};
use linerate_record::{AlertDescription, Cipher, Combination, ContentType, Version};
use std::{collections::VecDeque, io::Write, net::TcpStream, os::fd::AsFd, sync::Arc};

const EPIPE: i32 = 32;
const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;
const ENOMEM: i32 = 12;

/// A connection whose peer reads when it is told to.
struct Connection {
    calls: Simulated,
    script: Arc<Script>,
    ours: TcpStream,
    theirs: TcpStream,
    sender: Channel<Counting>,
    peer: Peer<Counting>,
}

const NEW_KEYS: Carried = Carried { takes_new_keys: true, zero_copy: true };
const ONE_KEY: Carried = Carried { takes_new_keys: false, zero_copy: true };

impl Connection {
    fn new(version: Version, cipher: Cipher, limit: u64) -> Self {
        let calls = Simulated::default();
        let script = Arc::clone(&calls.script);
        let (ours, theirs) = connected_pair(Some(16_384)).unwrap();
        let (sender, peer) = (channel(version, cipher, limit), Peer::new(channel(version, cipher, limit)));
        Self { calls, script, ours, theirs, sender, peer }
    }

    fn promote(&mut self, carried: Carried, response_bytes: u64) -> Result<Departure, Refusal> {
        promote(&self.calls, self.ours.as_fd(), &mut self.sender, carried, response_bytes)
    }

    fn turn(&mut self, queue: &mut Queue, limit_bytes: u64) -> Result<Turn, Fault> {
        turn(&self.calls, self.ours.as_fd(), &mut self.sender, queue, limit_bytes)
    }

    /// Seals in user space, as the user engine does.
    fn send_sealed(&mut self, text: &[u8]) {
        let mut record = Vec::new();
        self.sender.sealer().unwrap().seal_append(ContentType::ApplicationData, text, &mut record).unwrap();
        self.ours.write_all(&record).unwrap();
    }

    fn read(&mut self, at_most: usize) {
        let _ = self.peer.receive(&self.theirs, at_most);
        self.peer.open().unwrap();
    }

    fn read_until(&mut self, done: impl Fn(&Self) -> bool) {
        let started = std::time::Instant::now();
        while !done(self) {
            self.read(10_000);
            assert!(started.elapsed().as_secs() < 20, "it stalled at {} bytes", self.peer.opened.len());
        }
    }

    /// Sends control records, however often the socket is full.
    fn control(&mut self, departure: &mut Departure) -> io::Result<()> {
        while let Some(record) = self.sender.next_control().copied() {
            let socket = self.ours.as_fd();
            match self.calls.send_control(socket, record.content_type().wire(), record.payload()) {
                Ok(()) => drop(after_control(&self.calls, socket, &mut self.sender, departure)?),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.read(4099),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends all of `pieces`; the peer reads only when the socket is full.
    fn send_all(
        &mut self,
        departure: &mut Departure,
        pieces: impl IntoIterator<Item = Piece>,
        limit_bytes: u64,
    ) {
        let mut queue: Queue = pieces.into_iter().collect();
        while !queue.is_done() {
            self.control(departure).unwrap();
            match self.turn(&mut queue, limit_bytes).unwrap() {
                Turn::Sent(bytes) => departure.add(bytes),
                Turn::Full(bytes) => {
                    departure.add(bytes);
                    self.read(1369);
                }
                Turn::KeyUpdate => {}
                // The page cache gives its memory to others when it is short.
                Turn::Cold(FileRange { source, range }) => {
                    let length_bytes = range.end - range.start;
                    read_ahead(source.file(), range.start, length_bytes).unwrap();
                }
            }
        }
    }
}

fn of<T>(one: T) -> VecDeque<T> {
    VecDeque::from([one])
}

/// Before the switch every failure leaves the connection with the user engine, working, and names its reason.
#[test]
fn before_the_switch_every_failure_falls_back() {
    type Prepare = fn(&Script);
    let failures: [(Prepare, &str); 7] = [
        (|script| *script.attach.lock() = of(Some(2)), "no_module"),
        (|script| *script.attach.lock() = of(Some(107)), "not_connected"),
        (|script| *script.attach.lock() = of(Some(ENOMEM)), "refused"),
        (|script| *script.install.lock() = of(Some(22)), "not_in_kernel"),
        (|script| *script.install.lock() = of(Some(2)), "not_in_kernel"),
        (|script| *script.install.lock() = of(Some(ENOMEM)), "refused"),
        (|script| *script.install.lock() = of(Some(EBUSY)), "refused"),
    ];
    for Combination { version, cipher } in Combination::ALL {
        for (prepare, expected) in &failures {
            let mut connection = Connection::new(version, cipher, u64::MAX);
            connection.send_sealed(b"before ");
            prepare(&connection.script);
            let refusal = connection.promote(NEW_KEYS, 1000).unwrap_err();
            assert_eq!(refusal.reason.label(), *expected, "{refusal:?}");
            // What no reason tells is said in the kernel's own words.
            assert_eq!(refusal.error.is_some(), *expected == "refused", "{refusal:?}");
            let words =
                refusal.error.as_ref().map_or_else(|| refusal.reason.to_string(), ToString::to_string);
            assert_eq!(refusal.to_string(), words);
            assert!(!connection.sender.is_handed_over());
            connection.send_sealed(b"after");
            connection.read_until(|connection| connection.peer.opened == b"before after");
        }
    }
}

/// INV-LIMIT-1: what a call may send is as much as needs no more records than are left, and no byte less.
#[test]
fn bytes_and_records_are_counted_the_same_way() {
    for habits in [Habits::LINUX, KernelTls(FreeBsd::default()).habits()] {
        let (records_at_most, bytes_for) =
            (|bytes| records_at_most(habits, bytes), |records| bytes_for(habits, records));
        assert_eq!((records_at_most(0), bytes_for(0), bytes_for(1)), (0, 0, 0));
        for records in 2..1000 {
            let bytes = bytes_for(records);
            assert_eq!((records_at_most(bytes), records_at_most(bytes + 1)), (records, records + 1));
        }
    }
}

/// A system call each turn would be dear.
#[test]
fn the_kernel_is_asked_for_its_count_only_near_the_limit() {
    for (limit, is_near) in [(u64::MAX, false), (9, true)] {
        let mut connection = Connection::new(Version::Tls13, Cipher::Aes128Gcm, limit);
        connection.promote(NEW_KEYS, 1).unwrap();
        let before = connection.script.calls("sequence");
        let mut queue = Queue::from_iter([Piece::Bytes(content(100))]);
        assert!(matches!(connection.turn(&mut queue, 1 << 20), Ok(Turn::Sent(100))));
        assert_eq!(connection.script.calls("sequence") > before, is_near, "limit {limit}");
    }
}

#[test]
fn the_switch_is_not_tried_before_its_preconditions_hold() {
    let (version, cipher) = (Version::Tls13, Cipher::Aes128Gcm);
    // A response that could meet the limit of a key that stays.
    let mut limited = Connection::new(version, cipher, 100);
    assert!(matches!(
        limited.promote(ONE_KEY, 97 * 4096),
        Err(Refusal { reason: Reason::RecordLimit { .. }, .. })
    ));
    assert_eq!(limited.script.log.lock().len(), 0, "nothing was called");
    assert!(limited.promote(NEW_KEYS, 97 * 4096).is_ok(), "a key that can be changed is no hindrance");
    // A key that is about to change.
    let mut ending = Connection::new(version, cipher, 5);
    ending.send_sealed(b"1");
    assert!(matches!(ending.promote(NEW_KEYS, 1), Err(Refusal { reason: Reason::NotReady, .. })));
    // The end of the connection.
    let mut closing = Connection::new(version, cipher, 100);
    closing.sender.alert(AlertDescription::CloseNotify, &mut Vec::new()).unwrap();
    assert!(matches!(closing.promote(NEW_KEYS, 1), Err(Refusal { reason: Reason::NotReady, .. })));
    for connection in [ending, closing] {
        assert_eq!(connection.script.log.lock().len(), 0, "nothing was called");
    }
}

/// What was sealed here, then what the kernel seals: one stream to the peer, whatever the socket takes at a time.
#[test]
fn everything_arrives_whatever_the_socket_takes() {
    let bytes = content(200_003);
    let file = OpenFile::of(temporary(&bytes)).unwrap();
    let head = content(317);
    let pieces = [
        Piece::Bytes(head.clone()),
        Piece::file(&file, 1..70_002),
        Piece::Bytes(head[..3].to_vec()),
        Piece::file(&file, 16_383..16_385),
        Piece::file(&file, 0..200_003),
    ];
    let expected: Vec<u8> =
        [b"first", &head[..], &bytes[1..70_002], &head[..3], &bytes[16_383..16_385], &bytes].concat();
    for Combination { version, cipher } in Combination::ALL {
        for (bite_bytes, full, limit_bytes, limit) in [
            (0, false, 1 << 20, u64::MAX),
            (0, true, 1 << 20, u64::MAX),
            (5003, true, 70_001, u64::MAX),
            (977, true, 4097, u64::MAX),
            (0, false, 1 << 20, 9),
            (5003, true, 30_000, 6),
        ] {
            if version == Version::Tls12 && limit < u64::MAX {
                continue;
            }
            let mut connection = Connection::new(version, cipher, limit);
            connection.send_sealed(b"first");
            connection.script.bite_bytes.set(bite_bytes);
            connection.script.full_every_other_time.set(full);
            let mut departure = connection.promote(NEW_KEYS, 1).unwrap();
            connection.send_all(&mut departure, pieces.clone(), limit_bytes);
            connection.sender.alert(AlertDescription::CloseNotify, &mut Vec::new()).unwrap();
            connection.control(&mut departure).unwrap();
            connection.read_until(|connection| connection.peer.is_closed);
            assert!(
                connection.peer.opened == expected,
                "{version:?} {cipher:?} {bite_bytes} {limit_bytes} {limit}"
            );
            assert_eq!(
                connection.peer.key_updates > 2,
                limit < u64::MAX,
                "key updates: {}",
                connection.peer.key_updates
            );
        }
    }
}

/// After the switch there is no way back: an error is the connection's.
#[test]
fn after_the_switch_every_failure_is_the_connections_end() {
    let file = OpenFile::of(temporary(&content(100_000))).unwrap();
    let all = || Queue::from_iter([Piece::file(&file, 0..100_000)]);
    let new = || {
        let mut connection = Connection::new(Version::Tls13, Cipher::Aes256Gcm, 50);
        let departure = connection.promote(NEW_KEYS, 1).unwrap();
        (connection, departure)
    };
    let (mut connection, _) = new();
    *connection.script.data.lock() = of(Some(EPIPE));
    let mut queue = all();
    assert!(matches!(connection.turn(&mut queue, 1 << 20), Err(Fault::Socket(_))));
    assert_eq!(queue.remaining_bytes(), 100_000);

    let (mut connection, mut departure) = new();
    connection.sender.alert(AlertDescription::CloseNotify, &mut Vec::new()).unwrap();
    *connection.script.control.lock() = VecDeque::from([Some(EAGAIN), Some(EAGAIN), Some(EPIPE)]);
    assert_eq!(connection.control(&mut departure).unwrap_err().raw_os_error(), Some(EPIPE));
    assert_eq!(connection.script.calls("control"), 3, "it was queued while the socket was full");
    assert!(connection.sender.next_control().is_some(), "and never given up silently");

    // The peer was told of a new key that the kernel does not take.
    let (mut connection, mut departure) = new();
    let mut queue = all();
    connection.sender.spend(connection.sender.remaining_records());
    *connection.script.sequence.lock() = of(Some(22));
    assert!(matches!(connection.turn(&mut queue, 1 << 20).unwrap(), Turn::KeyUpdate));
    let early = connection.turn(&mut queue, 1 << 20);
    assert!(matches!(early, Err(Fault::Record(RecordError::Misuse(_)))), "it goes first");
    *connection.script.install.lock() = of(Some(EBUSY));
    assert_eq!(connection.control(&mut departure).unwrap_err().raw_os_error(), Some(EBUSY));
    assert_eq!(queue.remaining_bytes(), 100_000, "no byte of data left under the old key");
}

/// INV-LIMIT-1 where the key stays: the stream stops whole, below the limit.
#[test]
fn a_key_that_stays_stops_below_its_limit() {
    let bytes = content(1 << 20);
    let file = OpenFile::of(temporary(&bytes)).unwrap();
    for version in [Version::Tls12, Version::Tls13] {
        let mut connection = Connection::new(version, Cipher::Aes128Gcm, 20);
        let mut departure = connection.promote(ONE_KEY, 1000).unwrap();
        let mut queue = Queue::from_iter([Piece::file(&file, 0..1 << 20)]);
        let fault = loop {
            match connection.turn(&mut queue, 1 << 20) {
                Ok(Turn::Sent(bytes) | Turn::Full(bytes)) => departure.add(bytes),
                Ok(other) => panic!("{other:?}"),
                Err(fault) => break fault,
            }
            connection.read(50_000);
        };
        assert!(matches!(fault, Fault::Record(RecordError::KeyExhausted)));
        assert!(!connection.sender.can_send());
        connection.sender.alert(AlertDescription::CloseNotify, &mut Vec::new()).unwrap();
        connection.control(&mut departure).unwrap();
        connection.read_until(|connection| connection.peer.is_closed);
        let sequence = connection.calls.sequence(connection.ours.as_fd(), version, Cipher::Aes128Gcm);
        assert!(sequence.unwrap() <= 20);
        let sent = (1 << 20) - queue.remaining_bytes() as usize;
        assert!(sent > 100_000, "most of the key was used: {sent} bytes");
        assert!(connection.peer.opened == bytes[..sent]);
    }
}

/// What the module still holds would be lost by closing the socket: the departure is complete only when TCP has it.
#[test]
fn a_departure_is_complete_only_when_tcp_has_everything() {
    let bytes = content(18 * 16_384);
    let file = OpenFile::of(temporary(&bytes)).unwrap();
    let mut waited = false;
    // Whether the last record finds room depends on when the other end reads: it is tried until once it did not.
    let once_more = std::iter::repeat_n(Combination::ALL, 20).flatten();
    for (number, Combination { version, cipher }) in once_more.enumerate() {
        if waited && number >= Combination::ALL.len() {
            break;
        }
        let limit = if version == Version::Tls13 { 9 } else { u64::MAX };
        let mut connection = Connection::new(version, cipher, limit);
        let mut departure = connection.promote(NEW_KEYS, 1).unwrap();
        connection.send_all(&mut departure, [Piece::file(&file, 0..18 * 16_384)], 1 << 20);
        let complete = |connection: &Connection, departure: &Departure| {
            departure.is_complete(&connection.calls, connection.ours.as_fd(), &connection.sender).unwrap()
        };
        let started = std::time::Instant::now();
        while !complete(&connection, &departure) {
            waited = true;
            connection.read(1000);
            assert!(started.elapsed().as_secs() < 20, "it never became complete: {version:?} {cipher:?}");
        }
        linerate_os::socket::finish_sending(&connection.ours).unwrap();
        connection.read_until(|connection| connection.peer.opened.len() >= bytes.len());
        assert!(connection.peer.opened == bytes, "{version:?} {cipher:?}");
    }
    assert!(waited, "a whole record is more than the socket mostly has room for");
}

#[test]
fn a_truncated_file_is_told_at_the_right_byte() {
    let file = OpenFile::of(temporary(&content(70_001))).unwrap();
    let mut connection = Connection::new(Version::Tls13, Cipher::Aes128Gcm, u64::MAX);
    connection.promote(NEW_KEYS, 1).unwrap();
    let mut queue = Queue::from_iter([Piece::file(&file, 0..100_000)]);
    loop {
        match connection.turn(&mut queue, 1 << 20) {
            Ok(Turn::Sent(_) | Turn::Full(_)) => connection.read(50_000),
            other => {
                assert!(matches!(other, Err(Fault::Changed(Change::CutShort(70_001)))), "{other:?}");
                break;
            }
        }
    }
}

#[test]
fn capabilities_say_what_is_lacking_and_why() {
    let calls = Simulated::default();
    let all = Capabilities::find(&calls, true);
    assert!(all.failures().is_empty(), "{:?}", all.failures());
    for (Combination { version, .. }, verdict) in all.all() {
        let takes_new_keys = version == Version::Tls13;
        assert_eq!(verdict, Ok(Carried { takes_new_keys, zero_copy: true }));
    }
    assert!(all.lacks_nothing_that_may_come());

    let old = Simulated::default();
    old.script.one_key_only.set(true);
    old.script.zero_copy_unknown.set(true);
    let found = Capabilities::find(&old, true);
    assert!(
        found.all().all(|(_, verdict)| verdict == Ok(Carried { takes_new_keys: false, zero_copy: false }))
    );

    for (numbers, knows_module) in [((Some(2), None), false), ((None, Some(22)), true)] {
        let lacking = Simulated::default();
        *lacking.script.attach.lock() = std::iter::repeat_n(numbers.0, 6).collect();
        *lacking.script.install.lock() = std::iter::repeat_n(numbers.1, 6).collect();
        let found = Capabilities::find(&lacking, true);
        let expected = |combination| if knows_module { Lack::NotInKernel(combination) } else { Lack::Module };
        assert!(
            found.all().all(|(combination, verdict)| verdict == Err(&expected(combination).into())),
            "{found:?}"
        );
        assert!(found.all().all(|(_, verdict)| verdict.is_err()));
        assert_eq!(found.lacks_nothing_that_may_come(), knows_module);
    }
}

/// Wherever a byte is wrong, the self-test notices, and switches off no more than what is wrong.
#[test]
fn the_self_test_finds_wrong_bytes() {
    for place in [0, 1, 65_536, 70_000, 100_000, 200_000] {
        let calls = Simulated::default();
        calls.script.corrupt_byte.set(Some(place));
        let found = Capabilities::find(&calls, true);
        let verdicts: Vec<_> = found.all().map(|(_, verdict)| verdict).collect();
        assert!(
            matches!(verdicts[0], Err(Objection { lack: Lack::SelfTest(_), .. })),
            "byte {place}: {:?}",
            verdicts[0]
        );
        assert!(verdicts[1..].iter().all(Result::is_ok), "{verdicts:?}");
        assert_eq!(found.failures().len(), 1);
    }
    let calls = Simulated::default();
    calls.script.zero_copy_corrupts.set(true);
    let found = Capabilities::find(&calls, true);
    assert!(found.all().all(|(_, verdict)| verdict.is_ok_and(|carried| !carried.zero_copy)));
    assert_eq!(found.failures().len(), 6);
}

#[test]
fn what_is_told_names_each_reason_once() {
    let calls = Simulated::default();
    *calls.script.install.lock() = std::iter::repeat_n(Some(22), 1).collect();
    let text = note(&Capabilities::find(&calls, false));
    assert!(text.starts_with("kernel TLS: TLSv1.3 AES-256-GCM, "), "{text}");
    assert!(text.ends_with("; TLSv1.3 AES-128-GCM: no: this kernel does not have it"), "{text}");
    let none = Simulated::default();
    *none.script.attach.lock() = std::iter::repeat_n(Some(2), 6).collect();
    let text = note(&Capabilities::find(&none, false));
    assert_eq!(text.matches("modprobe").count(), 1, "{text}");
}
