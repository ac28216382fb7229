//! The kernel engine on FreeBSD's kernel TLS, against a model of that kernel: its code (`os::kernel_tls::freebsd`) is what is run,
//! and only the system calls are the model's.

use super::{peer::Peer, *};
use crate::{Piece, source::OpenFile};
use linerate_kernel_model::{Counting, FreeBsd, FreeBsdScript, channel, content, temporary};
use linerate_os::{
    kernel_tls::{Carrier, Carriers, freebsd::KernelTls},
    socket::{Follows, connected_pair},
};
use linerate_placement::{Lack, Reason};
use linerate_record::{AlertDescription, Cipher, Combination, ContentType, Version};
use rustix::io::Errno;
use std::{io::Write, net::TcpStream, os::fd::AsFd, sync::Arc};

/// Short of a page, of a record, of the room from which on a socket takes anything; and beyond all of them.
const LENGTHS_BYTES: [usize; 6] = [1, 2047, 4099, 16_385, 70_001, 300_003];

struct Connection {
    calls: KernelTls<FreeBsd>,
    script: Arc<FreeBsdScript>,
    ours: TcpStream,
    theirs: TcpStream,
    sender: Channel<Counting>,
    peer: Peer<Counting>,
}

const CARRIED: Carried = Carried { takes_new_keys: false, zero_copy: true };

impl Connection {
    fn new(version: Version, cipher: Cipher) -> Self {
        let kernel = FreeBsd::default();
        let script = Arc::clone(&kernel.script);
        let (ours, theirs) = connected_pair(Some(16_384)).unwrap();
        let end = || channel(version, cipher, u64::MAX);
        Self { calls: KernelTls(kernel), script, ours, theirs, sender: end(), peer: Peer::new(end()) }
    }

    fn promote(&mut self) -> Result<Departure, Refusal> {
        promote(&self.calls, self.ours.as_fd(), &mut self.sender, CARRIED, 1 << 20)
    }

    fn promoted(version: Version, cipher: Cipher) -> (Self, Departure) {
        let mut connection = Self::new(version, cipher);
        let departure = connection.promote().unwrap();
        (connection, departure)
    }

    fn read(&mut self) {
        match self.peer.receive(&self.theirs, 7001) {
            Ok(_) => self.peer.open().unwrap(),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }

    /// Sends all, reading when the socket is full. Says how often it was.
    fn send_all(&mut self, queue: &mut Queue, limit_bytes: u64) -> usize {
        let mut full = 0;
        while !queue.is_done() {
            let (calls, sender) = (&self.calls, &mut self.sender);
            match turn(calls, self.ours.as_fd(), sender, queue, limit_bytes).unwrap() {
                Turn::Full(_) => {
                    full += 1;
                    self.read();
                }
                Turn::Sent(_) => {}
                other => panic!("{other:?}"),
            }
        }
        full
    }

    fn control(&mut self, departure: &mut Departure) -> io::Result<()> {
        while let Some(record) = self.sender.next_control().copied() {
            let (calls, socket) = (&self.calls, self.ours.as_fd());
            match calls.send_control(socket, record.content_type().wire(), record.payload()) {
                Ok(()) => drop(after_control(calls, socket, &mut self.sender, departure)?),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.read(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Closes at once, and reads what is left.
    fn opened(self) -> Vec<u8> {
        let Self { ours, theirs, mut peer, .. } = self;
        drop(ours);
        while !peer.is_closed {
            match peer.receive(&theirs, 65_536) {
                Ok(0) => break,
                Ok(_) => peer.open().unwrap(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(peer.is_closed, "close_notify came");
        peer.opened
    }
}

/// INV-NONCE-1, INV-LIMIT-1: every combination goes through the self-test as it is, by explicit nonces that the kernel makes up;
/// one key is all that there is.
#[test]
fn every_combination_passes_the_self_test_and_has_one_key() {
    for interface_takes in [false, true] {
        let kernel = FreeBsd::default();
        kernel.script.interface_takes.set(interface_takes);
        let found = Capabilities::find(&KernelTls(kernel.clone()), true);
        assert_eq!(found.failures(), &[] as &[String]);
        for (combination, verdict) in found.all() {
            assert_eq!(verdict, Ok(CARRIED), "{combination}");
        }
        let nonces = kernel.script.first_nonces.lock().clone();
        // Two ciphers of TLS 1.2: a probe, and a self-test with and without zero-copy. None begins where another did.
        assert_eq!(nonces.len(), 6);
        assert!(nonces.iter().enumerate().all(|(place, nonce)| !nonces[..place].contains(nonce)));
    }
}

#[test]
fn before_the_switch_every_failure_falls_back() {
    let refused = |why: &'static str| ("refused", why);
    for (errno, (label, words)) in [
        (Errno::INVAL, ("not_in_kernel", "does not have")),
        (Errno::NOTCONN, ("not_connected", "")),
        (Errno::OPNOTSUPP, refused("kern.ipc.tls.enable=1")),
        (Errno::NXIO, refused("kern.ipc.mb_use_ext_pgs=1")),
        (Errno::NOPROTOOPT, refused("KERN_TLS")),
        (Errno::NOMEM, refused("emory")),
        (Errno::ALREADY, refused("already")),
    ] {
        let mut connection = Connection::new(Version::Tls13, Cipher::Aes128Gcm);
        connection.script.enable.lock().push_back(Some(errno));
        let refusal = connection.promote().unwrap_err();
        assert_eq!(refusal.reason.label(), label, "{errno}");
        assert!(refusal.to_string().contains(words), "{refusal}");
        // The user engine goes on, and the next boundary may do.
        let mut record = Vec::new();
        let sealer = connection.sender.sealer().unwrap();
        sealer.seal_append(ContentType::ApplicationData, b"goes on", &mut record).unwrap();
        connection.ours.write_all(&record).unwrap();
        while connection.peer.opened != b"goes on" {
            connection.read();
        }
        connection.promote().unwrap();
        assert_eq!(connection.script.calls("enable"), 2);
    }
}

#[test]
fn a_kernel_that_lacks_it_is_described_by_what_to_do() {
    let kernel = FreeBsd::default();
    *kernel.script.enable.lock() = [Some(Errno::OPNOTSUPP); Combination::ALL.len()].into();
    let found = Capabilities::find(&KernelTls(kernel), true);
    for (_, verdict) in found.all() {
        let objection = verdict.unwrap_err();
        assert!(matches!(objection.lack, Lack::NotKnown(_)));
        assert!(objection.to_string().contains("sysctl kern.ipc.tls.enable=1"), "{objection}");
    }
    assert!(!found.lacks_nothing_that_may_come(), "a reload looks again");
}

/// INV-ORDER-1, INV-ORDER-2, INV-LIMIT-1.
#[test]
fn everything_arrives_however_full_the_socket_is_and_records_are_bounded() {
    let (file_bytes, mut was_full) = (content(400_000), 0);
    for (version, cipher) in [(Version::Tls13, Cipher::Aes256Gcm), (Version::Tls12, Cipher::Aes128Gcm)] {
        for (number, length_bytes) in LENGTHS_BYTES.into_iter().enumerate() {
            for buffer_bytes in [2048, 5000, 32 * 1024] {
                let (mut connection, mut departure) = Connection::promoted(version, cipher);
                connection.script.buffer_bytes.set(buffer_bytes);
                let file = OpenFile::of(temporary(&file_bytes)).unwrap();
                let start = [0, 1, 4095, 16_384][number % 4];
                let range = start..start + length_bytes as u64;
                let mut queue =
                    Queue::from_iter([Piece::Bytes(content(317)), Piece::file(&file, range.clone())]);
                let left_before = connection.sender.remaining_records();
                let full = connection.send_all(&mut queue, 60_000);
                was_full += full;
                let (counted, made) =
                    (left_before - connection.sender.remaining_records(), connection.script.records.get());
                assert!(made <= counted, "{made} records, {counted} counted");
                connection.sender.alert(AlertDescription::CloseNotify, &mut Vec::new()).unwrap();
                connection.control(&mut departure).unwrap();
                let (calls, socket) = (connection.calls.clone(), connection.ours.try_clone().unwrap());
                assert!(departure.is_complete(&calls, socket.as_fd(), &connection.sender).unwrap());
                drop(socket);
                let expected =
                    [&content(317)[..], &file_bytes[range.start as usize..range.end as usize]].concat();
                assert!(connection.opened() == expected, "{version} {length_bytes} {buffer_bytes}");
            }
        }
    }
    assert!(was_full > 10, "{was_full}");
}

#[test]
fn sendfile_counts_what_went_before_an_error_and_waits_for_a_page_that_is_read() {
    let file = temporary(&content(100_000));
    let send = |connection: &Connection, bytes| {
        connection.calls.send_file(connection.ours.as_fd(), &file, 0, bytes).map_err(|error| error.kind())
    };
    let new = || Connection::promoted(Version::Tls13, Cipher::Aes128Gcm).0;
    // No bytes are all bytes to the kernel.
    let connection = new();
    assert_eq!(send(&connection, 0), Ok(0));
    assert_eq!(connection.script.calls("sendfile"), 0);
    for errno in [Errno::AGAIN, Errno::INTR, Errno::BUSY] {
        let connection = new();
        connection.script.fails_midway.set(true);
        connection.script.data.lock().push_back(Some(errno));
        assert_eq!(send(&connection, 20_000), Ok(16_384), "{errno}");
        assert_eq!(connection.script.calls("sendfile"), 1);
    }
    for (errno, flags) in [(Errno::BUSY, &[1, 0][..]), (Errno::INTR, &[1, 1])] {
        let connection = new();
        connection.script.data.lock().push_back(Some(errno));
        assert_eq!(send(&connection, 5000), Ok(5000), "{errno}");
        assert_eq!(*connection.script.flags.lock(), flags);
    }
    let connection = new();
    connection.script.data.lock().extend([Some(Errno::AGAIN), Some(Errno::PIPE)]);
    assert_eq!(send(&connection, 5000), Err(io::ErrorKind::WouldBlock));
    assert_eq!(send(&connection, 5000), Err(io::ErrorKind::BrokenPipe));
    assert_eq!(connection.calls.send(connection.ours.as_fd(), b"", Follows::Nothing).unwrap(), 0);
}

/// `close_notify` is taken whole or not at all, and waits for its room.
#[test]
fn control_records_wait_for_room_and_leave_whole() {
    for errno in [None, Some(Errno::AGAIN), Some(Errno::INTR)] {
        let (mut connection, mut departure) = Connection::promoted(Version::Tls13, Cipher::Aes128Gcm);
        connection.script.buffer_bytes.set(2048);
        let mut queue = Queue::from_iter([Piece::Bytes(content(2040))]);
        connection.send_all(&mut queue, u64::MAX);
        connection.script.control.lock().push_back(errno);
        connection.sender.alert(AlertDescription::CloseNotify, &mut Vec::new()).unwrap();
        connection.control(&mut departure).unwrap();
        assert!(connection.opened() == content(2040), "{errno:?}");
    }
    let (mut connection, mut departure) = Connection::promoted(Version::Tls13, Cipher::Aes128Gcm);
    connection.script.control.lock().push_back(Some(Errno::PIPE));
    connection.sender.alert(AlertDescription::CloseNotify, &mut Vec::new()).unwrap();
    assert_eq!(connection.control(&mut departure).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn a_second_key_is_refused_and_a_response_too_long_for_one_stays() {
    let (connection, _) = Connection::promoted(Version::Tls13, Cipher::Aes128Gcm);
    let calls = &connection.calls;
    let key = linerate_os::kernel_tls::DirectionKey {
        version: Version::Tls13,
        cipher: Cipher::Aes128Gcm,
        key: &[9; 16],
        vector: &[9; 12],
        sequence: 0,
    };
    let refused = calls.install(connection.ours.as_fd(), &key).unwrap_err();
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::ALREADY));
    let mut sender = channel(Version::Tls13, Cipher::Aes128Gcm, 100);
    let (ours, _theirs) = connected_pair(None).unwrap();
    let refusal = promote(calls, ours.as_fd(), &mut sender, CARRIED, 1 << 20).unwrap_err();
    assert!(matches!(refusal.reason, Reason::RecordLimit { .. }), "{refusal}");
}

#[test]
fn the_mode_is_the_proof_and_loss_takes_a_connection_from_its_adapter_for_good() {
    let kernel = FreeBsd::default();
    kernel.script.interface_takes.set(true);
    let calls = KernelTls(kernel.clone());
    let (ours, _theirs) = connected_pair(None).unwrap();
    let socket = ours.as_fd();
    let sending = || calls.carriers(socket).unwrap().sending;
    let set =
        |carrier| calls.set_carrier(socket, carrier).map_err(|error| Errno::from_io_error(&error).unwrap());
    assert_eq!(calls.carriers(socket).unwrap(), Carriers::default());
    assert_eq!((set(Carrier::Adapter), sending()), (Ok(()), None), "without a key nothing happens");
    let mut sender = channel(Version::Tls13, Cipher::Aes128Gcm, u64::MAX);
    promote(&calls, socket, &mut sender, CARRIED, 0).unwrap();
    assert_eq!((sending(), set(Carrier::Adapter)), (Some(Carrier::Adapter), Err(Errno::ALREADY)));
    assert_eq!((set(Carrier::Software), sending()), (Ok(()), Some(Carrier::Software)));
    assert_eq!((set(Carrier::Adapter), sending()), (Ok(()), Some(Carrier::Adapter)));
    kernel.script.set_mode.lock().push_back(Some(Errno::BUSY));
    assert_eq!((set(Carrier::Software), sending()), (Err(Errno::BUSY), Some(Carrier::Adapter)));
    kernel.lose(socket);
    assert_eq!((sending(), set(Carrier::Adapter)), (Some(Carrier::Software), Err(Errno::NXIO)));
    kernel.script.mode.lock().push_back(Some(Errno::CONNRESET));
    assert_eq!(calls.carriers(socket).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}
