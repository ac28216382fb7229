//! The receiving engines side by side: the same records into each, over real sockets, and the switch from one to the other. The
//! kernel is a model (`tests/kernel-model`).

use super::{kernel::Padding, *};
use linerate_kernel_model::{Counting, Script, Simulated, channel, content, padded_record};
use linerate_os::{kernel_tls::Calls, socket::connected_pair};
use linerate_placement::{Combination, Lack, Reason};
use linerate_record::{Cipher, ContentType, KeyUpdateRequest, Version};
use std::{
    io::Write,
    net::TcpStream,
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

const ENOENT: i32 = 2;
const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const ECONNRESET: i32 = 104;
const ENOTCONN: i32 = 107;

enum Engine {
    User(user::Incoming),
    Kernel(kernel::Incoming),
}

/// A connection whose peer seals in this process.
struct Pair {
    calls: Simulated,
    script: Arc<Script>,
    ours: TcpStream,
    theirs: TcpStream,
    channel: Channel<Counting>,
    peer: Channel<Counting>,
    engine: Engine,
    buffer: Vec<u8>,
    data: Vec<u8>,
    answers: Vec<u8>,
}

impl Pair {
    fn new(version: Version, cipher: Cipher) -> Self {
        let calls = Simulated::default();
        let script = Arc::clone(&calls.script);
        let (theirs, ours) = connected_pair(None).unwrap();
        theirs.set_nonblocking(false).unwrap();
        Self {
            calls,
            script,
            ours,
            theirs,
            channel: channel(version, cipher, u64::MAX),
            peer: channel(version, cipher, u64::MAX),
            engine: Engine::User(user::Incoming::default()),
            buffer: vec![0; LEAST_BUFFER_BYTES],
            data: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// A pair whose receiving side the kernel has.
    fn promoted(version: Version, cipher: Cipher) -> Self {
        let mut pair = Self::new(version, cipher);
        pair.promote(Padding::NotExpected).unwrap();
        pair
    }

    fn promote(&mut self, padding: Padding) -> Result<(), crate::kernel::Refusal> {
        let Engine::User(incoming) = &self.engine else { panic!("it was promoted before") };
        let promoted = kernel::promote(&self.calls, self.ours.as_fd(), &mut self.channel, incoming, padding)?;
        self.engine = Engine::Kernel(promoted);
        Ok(())
    }

    fn seal(&mut self, content_type: ContentType, payload: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        self.peer.sealer().unwrap().seal_append(content_type, payload, &mut record).unwrap();
        record
    }

    fn send(&mut self, bytes: &[u8]) {
        self.theirs.write_all(bytes).unwrap();
    }

    fn send_data(&mut self, text: &[u8]) {
        let record = self.seal(ContentType::ApplicationData, text);
        self.send(&record);
    }

    /// The peer changes the key that it sends with.
    fn seal_key_update(&mut self, request: KeyUpdateRequest) -> Vec<u8> {
        let mut record = Vec::new();
        self.peer.update_key(request).unwrap();
        assert!(self.peer.prepare_sending(&mut record).unwrap());
        record
    }

    fn update_key(&mut self, request: KeyUpdateRequest) {
        let record = self.seal_key_update(request);
        self.send(&record);
    }

    fn turn(&mut self) -> Result<Arrival, Fault> {
        let Self { calls, ours, channel, engine, buffer, data, answers, .. } = self;
        let connection = Connection { socket: ours.as_fd(), channel, now_ms: 0, answers };
        let take = |bytes: &[u8]| data.extend_from_slice(bytes);
        match engine {
            Engine::User(incoming) => incoming.turn(connection, buffer, take),
            Engine::Kernel(incoming) => incoming.turn(&*calls, connection, buffer, take),
        }
    }

    fn turn_to_boundary(&mut self) -> Result<Arrival, Fault> {
        let Self { ours, channel, engine, buffer, data, answers, .. } = self;
        let connection = Connection { socket: ours.as_fd(), channel, now_ms: 0, answers };
        let Engine::User(incoming) = engine else { panic!("the kernel keeps boundaries by itself") };
        incoming.turn_to_boundary(connection, buffer, |bytes| data.extend_from_slice(bytes))
    }

    fn is_at_boundary(&self) -> bool {
        matches!(&self.engine, Engine::User(incoming) if incoming.is_at_boundary())
    }

    /// Takes turns until it is so.
    fn until(&mut self, mut is_so: impl FnMut(&Self, Arrival) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let arrival = self.turn().unwrap();
            if is_so(self, arrival) {
                return;
            }
            assert!(Instant::now() < deadline, "it stalled at {} bytes", self.data.len());
        }
    }

    fn until_data(&mut self, expected: &[u8]) {
        self.until(|pair, _| pair.data.len() >= expected.len());
        assert!(self.data == expected, "other bytes came");
    }

    fn fault(&mut self) -> Fault {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match self.turn() {
                Err(fault) => return fault,
                Ok(arrival) => assert!(!matches!(arrival, Arrival::End(_)), "{arrival:?}"),
            }
            assert!(Instant::now() < deadline, "there was no fault");
        }
    }
}

/// Both engines that know records.
fn each_engine(version: Version, cipher: Cipher) -> [Pair; 2] {
    [Pair::new(version, cipher), Pair::promoted(version, cipher)]
}

/// Every length, however the bytes are cut on their way, in every combination; keys change on the way where they can.
#[test]
fn every_byte_arrives_once_and_in_order_on_both_engines() {
    let lengths = [1, 16_383, 16_384, 0, 4097, 1, 1, 9000, 16_384, 7];
    for Combination { version, cipher } in Combination::ALL {
        for mut pair in each_engine(version, cipher) {
            let mut expected = Vec::new();
            let mut wire = Vec::new();
            for (number, length) in lengths.into_iter().enumerate() {
                let text = &content(20_000)[number..number + length];
                expected.extend_from_slice(text);
                wire.extend(pair.seal(ContentType::ApplicationData, text));
                if version == Version::Tls13 && number % 4 == 2 {
                    wire.extend(pair.seal_key_update(KeyUpdateRequest::NotRequested));
                }
            }
            let mut cuts = [1, 4, 5, 6, 1000, 16_406, 30_001].into_iter().cycle();
            while !wire.is_empty() {
                let rest = wire.split_off(cuts.next().unwrap().min(wire.len()));
                pair.send(&wire);
                wire = rest;
                pair.turn().unwrap();
            }
            pair.until_data(&expected);
            let updates = if version == Version::Tls13 { 2 } else { 0 };
            assert_eq!(pair.channel.key_updates_received(), updates);
            let close = pair.seal(ContentType::Alert, &[1, 0]);
            pair.send(&close);
            pair.until(|_, arrival| arrival == Arrival::End(End::Announced));
            assert_eq!(pair.turn().unwrap(), Arrival::End(End::Announced), "it stays so");
        }
    }
}

/// INV-RECEIVE-1: wherever the user engine stands when the switch is tried, it is made at a boundary alone, and the kernel goes on
/// at the next byte and the next number.
#[test]
fn receiving_is_promoted_at_a_boundary_and_nowhere_else() {
    for Combination { version, cipher } in Combination::ALL {
        for cut in [1, 5, 6, 700] {
            let mut pair = Pair::new(version, cipher);
            pair.send_data(b"opened here ");
            let begun = pair.seal(ContentType::ApplicationData, &[b'-'; 1000]);
            let behind = pair.seal(ContentType::ApplicationData, b" opened by the kernel");
            pair.send(&begun[..cut]);
            pair.until(|pair, _| !pair.is_at_boundary());
            let refusal = pair.promote(Padding::NotExpected).unwrap_err();
            assert!(matches!(refusal.reason, Reason::NotReady), "{refusal:?}");
            assert_eq!(*pair.script.log.lock(), [""; 0], "the kernel was not even asked");
            // All of it is there, and no byte behind the record is taken.
            pair.send(&[&begun[cut..], &behind[..]].concat());
            while !pair.is_at_boundary() {
                pair.turn_to_boundary().unwrap();
            }
            assert_eq!(pair.turn_to_boundary().unwrap(), Arrival::Nothing);
            pair.promote(Padding::NotExpected).unwrap();
            assert!(pair.channel.receiving_is_handed_over());
            pair.until_data(&[&b"opened here "[..], &[b'-'; 1000], b" opened by the kernel"].concat());
        }
    }
}

/// Before the switch every failure leaves the connection with the user engine, working, and names its reason.
#[test]
fn before_the_switch_every_failure_falls_back() {
    type Prepare = fn(&Script);
    let failures: [(Prepare, &str); 6] = [
        (|script| script.attach.lock().push_back(Some(ENOENT)), "no_module"),
        (|script| script.attach.lock().push_back(Some(ENOTCONN)), "not_connected"),
        (|script| script.attach.lock().push_back(Some(ENOMEM)), "refused"),
        (|script| script.install_receiving.lock().push_back(Some(EINVAL)), "not_in_kernel"),
        (|script| script.install_receiving.lock().push_back(Some(ENOENT)), "not_in_kernel"),
        (|script| script.install_receiving.lock().push_back(Some(EBUSY)), "refused"),
    ];
    for Combination { version, cipher } in Combination::ALL {
        for (prepare, expected) in &failures {
            let mut pair = Pair::new(version, cipher);
            pair.send_data(b"before ");
            pair.until_data(b"before ");
            prepare(&pair.script);
            let refusal = pair.promote(Padding::Possible).unwrap_err();
            assert_eq!(refusal.reason.label(), *expected, "{refusal:?}");
            pair.send_data(b"after");
            pair.until_data(b"before after");
        }
    }
}

/// A channel that gave its key away at once has nothing to hand over, nor has one twice.
#[test]
fn what_cannot_be_handed_over_is_not_tried() {
    let mut pair = Pair::promoted(Version::Tls13, Cipher::Aes128Gcm);
    let again = kernel::promote(
        &pair.calls,
        pair.ours.as_fd(),
        &mut pair.channel,
        &user::Incoming::default(),
        Padding::Possible,
    );
    assert!(matches!(again.unwrap_err().reason, Reason::NotReady));
    let mut ended = Pair::new(Version::Tls13, Cipher::Aes128Gcm);
    let close = ended.seal(ContentType::Alert, &[1, 0]);
    ended.send(&close);
    ended.until(|_, arrival| matches!(arrival, Arrival::End(_) | Arrival::Came { .. }));
    assert!(matches!(ended.promote(Padding::Possible).unwrap_err().reason, Reason::NotReady));
    // Bytes that are opened by two engines would be opened twice.
    let mut record = pair.seal(ContentType::ApplicationData, b"here?");
    assert!(matches!(pair.channel.receive(&mut record, 0), Err(RecordError::Misuse(_))));
}

/// The module that sending attached serves receiving, too, and keys change in both directions.
#[test]
fn both_directions_are_the_kernels_and_change_their_keys() {
    let mut pair = Pair::new(Version::Tls13, Cipher::Aes256Gcm);
    let carried = crate::kernel::Carried { takes_new_keys: true, zero_copy: false };
    let socket = pair.ours.try_clone().unwrap();
    let mut departure =
        crate::kernel::promote(&pair.calls, socket.as_fd(), &mut pair.channel, carried, 0).unwrap();
    pair.promote(Padding::NotExpected).unwrap();
    pair.send_data(b"one ");
    pair.update_key(KeyUpdateRequest::Requested);
    pair.send_data(b"two");
    pair.until_data(b"one two");
    assert!(pair.channel.owes_key_update());
    assert!(pair.channel.prepare_sending(&mut Vec::new()).unwrap());
    let record = *pair.channel.next_control().unwrap();
    pair.calls.send_control(socket.as_fd(), record.content_type().wire(), record.payload()).unwrap();
    let changed =
        crate::kernel::after_control(&pair.calls, socket.as_fd(), &mut pair.channel, &mut departure);
    assert!(changed.unwrap(), "the key update was followed by its key");
    pair.calls.send(socket.as_fd(), b"answered", linerate_os::socket::Follows::Nothing).unwrap();
    let mut peer = crate::kernel::peer::Peer::new(pair.peer);
    pair.theirs.set_nonblocking(true).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while peer.opened != b"answered" {
        let _ = peer.receive(&pair.theirs, 1000);
        peer.open().unwrap();
        assert!(Instant::now() < deadline);
    }
    assert_eq!(peer.key_updates, 1);
}

/// Before Linux 6.14: what came before the key update was given on, and the end has a reason in words.
#[test]
fn a_kernel_that_takes_no_new_key_ends_the_connection_with_that_reason() {
    let mut pair = Pair::promoted(Version::Tls13, Cipher::Aes128Gcm);
    pair.script.one_key_only.set(true);
    pair.send_data(b"before");
    pair.update_key(KeyUpdateRequest::NotRequested);
    pair.send_data(b"behind");
    let fault = pair.fault();
    assert!(matches!(fault, Fault::NoNewKey(_)), "{fault:?}");
    assert!(fault.to_string().contains("Linux 6.14"), "{fault}");
    assert_eq!(pair.data, b"before");
    assert!(!pair.answers.is_empty(), "the peer is told by an alert");
    assert_eq!(pair.turn().unwrap(), Arrival::End(End::CutOff));
}

/// INV-OPEN-1, on both engines: a record that was tampered with ends the connection with its alert, and a sound one behind it is
/// not opened.
#[test]
fn nothing_is_opened_behind_a_record_that_was_refused() {
    for Combination { version, cipher } in Combination::ALL {
        for mut pair in each_engine(version, cipher) {
            pair.send_data(b"sound");
            pair.until_data(b"sound");
            let mut record = pair.seal(ContentType::ApplicationData, b"tampered with");
            *record.last_mut().unwrap() ^= 1;
            pair.send(&record);
            pair.send_data(b"behind");
            let fault = pair.fault();
            assert!(matches!(fault, Fault::Record(RecordError::BadRecordMac)), "{fault:?}");
            assert!(!pair.answers.is_empty());
            assert_eq!(pair.turn().unwrap(), Arrival::End(End::CutOff));
            assert_eq!(pair.data, b"sound");
            let opened =
                pair.channel.receive_opened(ContentType::ApplicationData, b"x", 0, |_| Ok::<_, ()>(()));
            assert!(opened.is_err(), "not by another way either");
        }
    }
}

/// What the kernel says by an error's number is said in the words of TLS, and answered with the alert that is due.
#[test]
fn the_kernels_errors_are_faults_of_records_or_of_the_socket() {
    type Expected = fn(&Fault) -> bool;
    let errors: [(i32, Expected); 5] = [
        (74, |fault| matches!(fault, Fault::Record(RecordError::BadRecordMac))),
        (90, |fault| matches!(fault, Fault::Record(RecordError::Overflow))),
        (EINVAL, |fault| matches!(fault, Fault::Record(RecordError::UnexpectedMessage(_)))),
        (127, |fault| matches!(fault, Fault::NoNewKey(_))),
        (ECONNRESET, |fault| matches!(fault, Fault::Socket(_))),
    ];
    for (number, is_expected) in errors {
        let mut pair = Pair::promoted(Version::Tls13, Cipher::Aes128Gcm);
        pair.script.receive.lock().extend([Some(EAGAIN), Some(number)]);
        assert_eq!(pair.turn().unwrap(), Arrival::Nothing);
        let fault = pair.turn().unwrap_err();
        assert!(is_expected(&fault), "{number}: {fault:?}");
        assert_eq!(pair.answers.is_empty(), number == ECONNRESET, "{number}");
    }
}

#[test]
fn an_end_without_close_notify_is_no_end_in_order() {
    for mut pair in each_engine(Version::Tls12, Cipher::ChaCha20Poly1305) {
        pair.send_data(b"some");
        pair.theirs.shutdown(std::net::Shutdown::Write).unwrap();
        pair.until(|_, arrival| arrival == Arrival::End(End::CutOff));
        assert_eq!(pair.data, b"some");
    }
}

#[test]
fn a_wish_to_renegotiate_is_refused_on_both_engines() {
    for mut pair in each_engine(Version::Tls12, Cipher::Aes128Gcm) {
        // An empty ClientHello: what is in it is not looked at.
        let wish = pair.seal(ContentType::Handshake, &[1, 0, 0, 0]);
        pair.send(&wish);
        pair.send_data(b"on");
        pair.until_data(b"on");
        assert!(!pair.answers.is_empty(), "a warning goes back");
    }
}

#[test]
fn a_fatal_alert_of_the_peer_is_its_fault_and_not_answered() {
    for mut pair in each_engine(Version::Tls13, Cipher::Aes128Gcm) {
        let alert = pair.seal(ContentType::Alert, &[2, 80]);
        pair.send(&alert);
        let fault = pair.fault();
        assert!(matches!(fault, Fault::Record(RecordError::PeerAlert(_))), "{fault:?}");
        assert!(pair.answers.is_empty());
    }
}

/// RFC 8446 5.4: padding is no content, however much there is, and a record may be nothing else.
#[test]
fn padded_records_are_received_without_their_padding() {
    for cipher in Cipher::ALL {
        let mut pair = Pair::new(Version::Tls13, cipher);
        // Keys and numbers are those of the fixture's channels, which have each sealed a record.
        let (key, mut sequence) = (vec![1; cipher.key_bytes()], 1);
        let mut expected = Vec::new();
        for (content_bytes, padding_bytes) in [(5, 1), (0, 700), (1, 16_383), (16_384, 0), (9000, 7384)] {
            let content = content(content_bytes);
            let text = (ContentType::ApplicationData, &content[..]);
            let record = padded_record(cipher, &key, [1; 12], sequence, text, padding_bytes);
            sequence += 1;
            pair.send(&record);
            expected.extend_from_slice(&content);
            pair.until(|pair, _| pair.is_at_boundary() && pair.data.len() == expected.len());
        }
        let closing = (ContentType::Alert, &[1, 0][..]);
        pair.send(&padded_record(cipher, &key, [1; 12], sequence, closing, 100));
        pair.until(|_, arrival| arrival == Arrival::End(End::Announced));
        assert!(pair.data == expected);
    }
}

/// The promise that no record is padded is made where it means something, and not insisted on.
#[test]
fn padding_is_promised_away_only_where_asked_and_known() {
    let expects = |version, padding, unknown| {
        let mut pair = Pair::new(version, Cipher::Aes128Gcm);
        pair.script.no_padding_unknown.set(unknown);
        pair.promote(padding).unwrap();
        let Engine::Kernel(incoming) = &pair.engine else { panic!("it was promoted") };
        incoming.expects_no_padding()
    };
    assert!(expects(Version::Tls13, Padding::NotExpected, false));
    assert!(!expects(Version::Tls13, Padding::NotExpected, true));
    assert!(!expects(Version::Tls13, Padding::Possible, false));
    assert!(!expects(Version::Tls12, Padding::NotExpected, false));
}

#[test]
fn what_the_kernel_opens_is_found_out_by_trying() {
    let calls = Simulated::default();
    let [tls12, tls13] =
        [Version::Tls12, Version::Tls13].map(|version| Combination { version, cipher: Cipher::Aes128Gcm });
    let yes = CarriedReceiving { takes_new_keys: true, knows_no_padding: true };
    assert_eq!(carried(&calls, tls13), Ok(yes));
    let no = CarriedReceiving { takes_new_keys: false, knows_no_padding: false };
    assert_eq!(carried(&calls, tls12), Ok(no));
    calls.script.one_key_only.set(true);
    calls.script.no_padding_unknown.set(true);
    assert_eq!(carried(&calls, tls13), Ok(no));
    calls.script.install_receiving.lock().push_back(Some(EINVAL));
    assert_eq!(carried(&calls, tls13).unwrap_err().lack, Lack::NotInKernel(tls13));
    calls.script.attach.lock().push_back(Some(ENOENT));
    assert_eq!(carried(&calls, tls13).unwrap_err().lack, Lack::Module);
}

#[test]
fn what_is_received_in_the_clear_is_what_was_sent() {
    let (mut theirs, ours) = connected_pair(None).unwrap();
    let mut data = Vec::new();
    let mut buffer = vec![0; 1000];
    assert_eq!(plain::turn(ours.as_fd(), &mut buffer, |_| panic!("nothing came")).unwrap(), Arrival::Nothing);
    theirs.write_all(&content(1500)).unwrap();
    let first = plain::turn(ours.as_fd(), &mut buffer, |bytes| data.extend_from_slice(bytes)).unwrap();
    assert_eq!(first, Arrival::Came { data_bytes: 1000, drained: false });
    let second = plain::turn(ours.as_fd(), &mut buffer, |bytes| data.extend_from_slice(bytes)).unwrap();
    assert_eq!(second, Arrival::Came { data_bytes: 500, drained: true });
    assert!(data == content(1500));
    theirs.write_all(&content(700)).unwrap();
    let discarded = plain::turn_discarding(ours.as_fd(), &mut buffer).unwrap();
    assert_eq!(discarded, Arrival::Came { data_bytes: 700, drained: true });
    drop(theirs);
    assert_eq!(plain::turn(ours.as_fd(), &mut buffer, |_| ()).unwrap(), Arrival::End(End::Announced));
    assert_eq!(plain::turn_discarding(ours.as_fd(), &mut buffer).unwrap(), Arrival::End(End::Announced));
}

/// Every byte comes once and in order, and the counts say how; what was sent the ordinary way over loopback lies in no pages of
/// its own.
#[test]
fn what_is_mapped_and_what_is_copied_is_what_was_sent() {
    let (mut theirs, ours) = connected_pair(None).unwrap();
    let sent = content(200_001);
    let mut incoming = mapped::Incoming::new(ours.as_fd(), 65_536, 16_384).unwrap();
    assert_eq!(incoming.turn(ours.as_fd(), |_| panic!("nothing came")).unwrap(), Arrival::Nothing);
    assert_eq!(incoming.obstacle(ours.as_fd()), None, "nothing was copied");
    let (mut data, mut sent_bytes) = (Vec::new(), 0);
    let deadline = Instant::now() + Duration::from_secs(20);
    while data.len() < sent.len() {
        if let Ok(bytes) = theirs.write(&sent[sent_bytes..]) {
            sent_bytes += bytes;
        }
        incoming.turn(ours.as_fd(), |bytes| data.extend_from_slice(bytes)).unwrap();
        assert!(Instant::now() < deadline, "it stalled at {}", data.len());
    }
    assert!(data == sent);
    assert_eq!(incoming.mapped_bytes() + incoming.copied_bytes(), sent.len() as u64);
    if incoming.copied_bytes() >= incoming.mapped_bytes() {
        let obstacle = incoming.obstacle(ours.as_fd()).expect("the kernel tells of segments");
        assert!(obstacle.to_string().contains("segments"), "{obstacle}");
    }
    drop(theirs);
    let end = loop {
        match incoming.turn(ours.as_fd(), |_| panic!("all has come")).unwrap() {
            Arrival::Nothing => assert!(Instant::now() < deadline),
            other => break other,
        }
    };
    assert_eq!(end, Arrival::End(End::Announced));
}

#[test]
fn memory_shorter_than_a_record_is_refused_before_anything_is_received() {
    for mut pair in each_engine(Version::Tls13, Cipher::Aes128Gcm) {
        pair.buffer.truncate(LEAST_BUFFER_BYTES - 1);
        pair.send_data(b"waits");
        assert!(matches!(pair.turn(), Err(Fault::Record(RecordError::Misuse(_)))));
        pair.buffer.resize(LEAST_BUFFER_BYTES, 0);
        pair.until_data(b"waits");
    }
}
