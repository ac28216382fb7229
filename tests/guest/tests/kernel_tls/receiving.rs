//! Kernel TLS in the receiving direction: this kernel opens what was sealed in user space, and what it sealed itself.

use linerate_end_to_end::runs_all;
use linerate_engine::{
    kernel::{self as sending, Departure},
    pattern::Pattern,
    receive::{
        Arrival, Connection, End, Fault, carried,
        kernel::{self, Padding},
        user,
    },
    trial::{self, TrialKeys},
};
use linerate_guest_tests::{Kernel, TlsStatistics, has_kernel_tls};
use linerate_kernel_model::padded_record;
use linerate_os::{
    kernel_tls::{Calls, System},
    socket::{Follows, connected_pair, is_readable, is_writable},
};
use linerate_record::{
    AlertDescription, Channel, Cipher, Combination, ContentType, KeyUpdateRequest, RecordError, Version,
};
use std::{
    io,
    net::TcpStream,
    os::fd::AsFd,
    time::{Duration, Instant},
};

const PATTERN: Pattern = Pattern::new(0x6C69_6E65_7261_7465);
/// On neither side of any boundary.
const ODD_BYTES: [usize; 9] = [1, 16_383, 16_384, 4097, 7, 16_384, 9001, 16_384, 2];
const TIME_LIMIT: Duration = Duration::from_secs(240);

/// What seals.
enum Seals {
    Here,
    Kernel(Departure),
}

/// What opens.
enum Opens {
    Here(user::Incoming),
    Kernel(kernel::Incoming),
}

/// A connection within this process. The receiver checks every byte.
struct Stream {
    sender: TcpStream,
    sending: Channel<TrialKeys>,
    seals: Seals,
    unsent: Vec<u8>,
    sent_bytes: u64,
    receiver: TcpStream,
    receiving: Channel<TrialKeys>,
    opens: Opens,
    buffer: Vec<u8>,
    received_bytes: u64,
    answers: Vec<u8>,
    deadline: Instant,
}

impl Stream {
    fn new(combination: Combination) -> Self {
        let (sender, receiver) = connected_pair(None).unwrap();
        Self {
            sender,
            sending: trial::channel(combination, u64::MAX).unwrap(),
            seals: Seals::Here,
            unsent: Vec::new(),
            sent_bytes: 0,
            receiver,
            receiving: trial::channel(combination, u64::MAX).unwrap(),
            opens: Opens::Here(user::Incoming::default()),
            buffer: vec![0; 100_003],
            received_bytes: 0,
            answers: Vec::new(),
            deadline: Instant::now() + TIME_LIMIT,
        }
    }

    fn promote_receiving(&mut self, padding: Padding) {
        let Opens::Here(incoming) = &self.opens else { panic!("it was promoted before") };
        let promoted =
            kernel::promote(&System, self.receiver.as_fd(), &mut self.receiving, incoming, padding).unwrap();
        self.opens = Opens::Kernel(promoted);
    }

    fn promote_sending(&mut self) {
        let takes_new_keys = Kernel::running().takes_new_keys();
        let carried = sending::Carried { takes_new_keys, zero_copy: false };
        let promoted = sending::promote(&System, self.sender.as_fd(), &mut self.sending, carried, 0).unwrap();
        self.seals = Seals::Kernel(promoted);
    }

    /// One turn of the receiver.
    fn receive(&mut self) -> Result<Arrival, Fault> {
        assert!(Instant::now() < self.deadline, "it stalled at {} bytes", self.received_bytes);
        let (channel, received_bytes) = (&mut self.receiving, &mut self.received_bytes);
        let connection =
            Connection { socket: self.receiver.as_fd(), channel, now_ms: 0, answers: &mut self.answers };
        let take = |bytes: &[u8]| {
            PATTERN.check(*received_bytes, bytes).unwrap_or_else(|mismatch| panic!("{mismatch}"));
            *received_bytes += bytes.len() as u64;
        };
        match &mut self.opens {
            Opens::Here(incoming) => incoming.turn(connection, &mut self.buffer, take),
            Opens::Kernel(incoming) => incoming.turn(&System, connection, &mut self.buffer, take),
        }
    }

    /// Sends what waits; the receiver takes its turns when the socket is full.
    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match linerate_os::socket::send(&self.sender, &self.unsent, Follows::Nothing) {
                Ok(bytes) => drop(self.unsent.drain(..bytes)),
                Err(error) => self.full(&error),
            }
        }
    }

    fn full(&mut self, error: &io::Error) {
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
        while !is_writable(&self.sender) {
            self.receive().unwrap();
        }
    }

    /// A record of the pattern's next bytes.
    fn send(&mut self, length_bytes: usize) {
        let mut text = vec![0; length_bytes];
        PATTERN.fill(self.sent_bytes, &mut text);
        self.sent_bytes += length_bytes as u64;
        match &mut self.seals {
            Seals::Here => {
                let sealer = self.sending.sealer().unwrap();
                sealer.seal_append(ContentType::ApplicationData, &text, &mut self.unsent).unwrap();
                self.flush();
            }
            Seals::Kernel(_) => {
                let mut left = &text[..];
                while !left.is_empty() {
                    match System.send(self.sender.as_fd(), left, Follows::Nothing) {
                        Ok(bytes) => left = &left[bytes..],
                        Err(error) => self.full(&error),
                    }
                }
            }
        }
    }

    /// Sends what the channel wants sent, and the key behind it.
    fn send_control(&mut self) {
        self.flush();
        while let Some(record) = self.sending.next_control().copied() {
            match System.send_control(self.sender.as_fd(), record.content_type().wire(), record.payload()) {
                Ok(()) => {
                    let Seals::Kernel(departure) = &mut self.seals else { panic!("it has control records") };
                    let sender = self.sender.as_fd();
                    sending::after_control(&System, sender, &mut self.sending, departure).unwrap();
                }
                Err(error) => self.full(&error),
            }
        }
    }

    fn update_key(&mut self) {
        self.sending.update_key(KeyUpdateRequest::NotRequested).unwrap();
        assert!(self.sending.prepare_sending(&mut self.unsent).unwrap());
        self.send_control();
    }

    fn close(&mut self) {
        self.sending.alert(AlertDescription::CloseNotify, &mut self.unsent).unwrap();
        self.send_control();
        loop {
            match self.receive().unwrap() {
                Arrival::End(end) => {
                    assert_eq!((end, self.received_bytes), (End::Announced, self.sent_bytes));
                    return;
                }
                Arrival::Nothing => wait_for(&self.receiver),
                Arrival::Came { .. } => {}
            }
        }
    }

    /// What the receiver says of the record that is at fault.
    fn fault(&mut self) -> Fault {
        loop {
            match self.receive() {
                Err(fault) => return fault,
                Ok(Arrival::Nothing) => wait_for(&self.receiver),
                Ok(arrival) => assert!(!matches!(arrival, Arrival::End(_)), "{arrival:?}"),
            }
        }
    }
}

fn wait_for(socket: &TcpStream) {
    if !is_readable(socket) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// INV-RECEIVE-1, with this kernel: from a boundary on it opens, in every combination, whatever opened before.
#[test]
fn the_kernel_goes_on_where_the_user_engine_stopped() {
    const NAME: &str = "the_kernel_goes_on_where_the_user_engine_stopped";
    if !has_kernel_tls(NAME) {
        return;
    }
    for combination in Combination::ALL {
        let found = carried(&System, combination).unwrap();
        let is_13 = combination.version == Version::Tls13;
        assert_eq!(found.takes_new_keys, is_13 && Kernel::running().takes_new_keys(), "{combination:?}");
        assert_eq!(found.knows_no_padding, is_13, "{combination:?}");
        for (opened_here, padding) in [(0, Padding::Possible), (3, Padding::NotExpected)] {
            let before = TlsStatistics::now();
            let mut stream = Stream::new(combination);
            for length_bytes in ODD_BYTES.into_iter().cycle().take(opened_here) {
                stream.send(length_bytes);
            }
            while stream.received_bytes < stream.sent_bytes {
                stream.receive().unwrap();
            }
            stream.promote_receiving(padding);
            let Opens::Kernel(incoming) = &stream.opens else { panic!("it was promoted") };
            assert_eq!(incoming.expects_no_padding(), is_13 && padding == Padding::NotExpected);
            let carriers = System.carriers(stream.receiver.as_fd()).unwrap();
            assert!(carriers.receiving.is_some() && carriers.sending.is_none(), "{carriers:?}");
            assert_eq!(carriers.expects_no_padding, incoming.expects_no_padding());
            for length_bytes in ODD_BYTES.into_iter().cycle().take(40) {
                stream.send(length_bytes);
            }
            stream.close();
            assert_eq!(before.moved("TlsRxSw"), 1, "{combination:?}");
            assert_eq!(before.new_faults(), [], "{combination:?}");
        }
    }
}

/// RFC 8446 5.4, with this kernel, where it was not told that no record is padded. Where it was (`TLS_RX_EXPECT_NO_PAD`), Linux 6.12
/// gave a wrong byte behind a record that is padding alone: the promise is for a peer of our own, which pads nothing.
#[test]
fn padded_records_are_opened_without_their_padding() {
    const NAME: &str = "padded_records_are_opened_without_their_padding";
    if !has_kernel_tls(NAME) {
        return;
    }
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm] {
        let before = TlsStatistics::now();
        let mut stream = Stream::new(Combination { version: Version::Tls13, cipher });
        stream.promote_receiving(Padding::Possible);
        let (key, vector) = (vec![1; cipher.key_bytes()], [1 ^ 0x3C; 12]);
        let mut sequence = 1;
        for (content_bytes, padding_bytes) in [(5, 1), (0, 700), (1, 16_383), (16_384, 0), (9000, 7384)] {
            let mut text = vec![0; content_bytes];
            PATTERN.fill(stream.sent_bytes, &mut text);
            stream.sent_bytes += content_bytes as u64;
            let content = (ContentType::ApplicationData, &text[..]);
            stream.unsent = padded_record(cipher, &key, vector, sequence, content, padding_bytes);
            sequence += 1;
            stream.flush();
            while stream.received_bytes < stream.sent_bytes {
                if stream.receive().unwrap() == Arrival::Nothing {
                    wait_for(&stream.receiver);
                }
            }
        }
        let closing = (ContentType::Alert, &[1, 0][..]);
        stream.unsent = padded_record(cipher, &key, vector, sequence, closing, 100);
        stream.flush();
        loop {
            match stream.receive().unwrap() {
                Arrival::End(end) => break assert_eq!(end, End::Announced),
                Arrival::Nothing => wait_for(&stream.receiver),
                Arrival::Came { .. } => {}
            }
        }
        assert_eq!(stream.received_bytes, stream.sent_bytes, "{cipher:?}");
        assert_eq!(before.new_faults(), []);
    }
}

/// Both directions are the kernel's, and the module is attached once. Keys change where the kernel takes new ones; where it does
/// not, the receiver ends with that reason, and with all that came before.
#[test]
fn keys_change_in_both_directions_or_the_end_has_its_reason() {
    const NAME: &str = "keys_change_in_both_directions_or_the_end_has_its_reason";
    if !has_kernel_tls(NAME) {
        return;
    }
    let before = TlsStatistics::now();
    let combination = Combination { version: Version::Tls13, cipher: Cipher::Aes128Gcm };
    let mut stream = Stream::new(combination);
    stream.send(1000);
    stream.promote_sending();
    while stream.received_bytes < stream.sent_bytes {
        stream.receive().unwrap();
    }
    stream.promote_receiving(Padding::NotExpected);
    stream.send(20_000);
    if !Kernel::running().takes_new_keys() {
        // This kernel's sending side has one key, too: a peer in user space changes its own.
        let mut stream = Stream::new(combination);
        stream.promote_receiving(Padding::NotExpected);
        stream.send(5000);
        stream.update_key();
        stream.send(5000);
        let fault = stream.fault();
        assert!(matches!(fault, Fault::NoNewKey(_)), "{fault}");
        assert_eq!(stream.received_bytes, 5000);
        return;
    }
    for _ in 0..5 {
        stream.update_key();
        stream.send(16_385);
        stream.send(3);
    }
    stream.close();
    assert_eq!(stream.receiving.key_updates_received(), 5);
    assert_eq!((before.moved("TlsRxRekeyOk"), before.moved("TlsTxRekeyOk")), (5, 5));
    assert_eq!(before.new_faults(), []);
}

#[test]
fn records_at_fault_are_told_as_they_are() {
    const NAME: &str = "records_at_fault_are_told_as_they_are";
    if !has_kernel_tls(NAME) {
        return;
    }
    type Damage = fn(&mut Vec<u8>);
    type Expected = fn(RecordError) -> bool;
    let cases: [(Damage, Expected); 3] = [
        (|record| *record.last_mut().unwrap() ^= 1, |fault| fault == RecordError::BadRecordMac),
        // A length that no record may have, and one that has no room for a tag.
        (|record| record[3] = 0x80, |fault| fault == RecordError::Overflow),
        (|record| (record[3], record[4]) = (0, 3), |fault| fault == RecordError::BadRecordMac),
    ];
    for combination in Combination::ALL {
        for (number, (damage, is_expected)) in cases.into_iter().enumerate() {
            let mut stream = Stream::new(combination);
            stream.promote_receiving(Padding::Possible);
            stream.send(300);
            let mut record = Vec::new();
            let sealer = stream.sending.sealer().unwrap();
            sealer.seal_append(ContentType::ApplicationData, &[0; 100], &mut record).unwrap();
            damage(&mut record);
            stream.unsent = record;
            stream.flush();
            match stream.fault() {
                Fault::Record(fault) => assert!(is_expected(fault), "{number}, {combination:?}: {fault}"),
                other => panic!("{number}, {combination:?}: {other}"),
            }
            assert_eq!(stream.received_bytes, 300);
            assert!(!stream.answers.is_empty(), "an alert is due");
            assert_eq!(stream.receive().unwrap(), Arrival::End(End::CutOff));
        }
    }
}

/// 200 MB, or 10 GB (`make test-all`): sealed by the kernel and opened by it, in calls of odd lengths.
#[test]
fn every_byte_of_a_long_transfer_arrives() {
    const NAME: &str = "every_byte_of_a_long_transfer_arrives";
    if !has_kernel_tls(NAME) {
        return;
    }
    let total_bytes: u64 = if runs_all() { 10_000_000_000 } else { 150_000_000 };
    for (version, total_bytes) in
        [(Version::Tls12, total_bytes.min(50_000_000)), (Version::Tls13, total_bytes)]
    {
        let mut stream = Stream::new(Combination { version, cipher: Cipher::Aes128Gcm });
        stream.deadline = Instant::now() + Duration::from_secs(total_bytes / 200_000 + 100);
        stream.promote_sending();
        stream.promote_receiving(Padding::NotExpected);
        let mut lengths = [70_001, 16_384, 131_071, 1, 99_991].into_iter().cycle();
        while stream.sent_bytes < total_bytes {
            stream.send(lengths.next().unwrap());
        }
        stream.close();
    }
}
