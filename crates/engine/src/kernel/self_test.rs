//! The self-test: what the kernel makes of odd offsets and lengths, bodies over 64 KiB and a socket that is kept full,
//! read back and compared byte for byte.
//!
//! There were kernels and servers that sent wrong bytes with valid tags in these very cases: a client notices nothing. So
//! a combination of version and cipher is not used before it has passed.

use super::{Carried, Departure, after_control, peer::Peer, promote, turn};
use crate::{
    FileRange, Piece, Queue, Turn,
    plain::COPIED_BYTES,
    source::OpenFile,
    trial::{TrialKeys, channel},
};
use linerate_os::{
    file,
    kernel_tls::Calls,
    socket::{self, connected_pair},
};
use linerate_record::{AlertDescription, Channel, Combination};
use std::{
    fs::File,
    io,
    net::TcpStream,
    os::fd::AsFd,
    time::{Duration, Instant},
};

/// Bytes of the sending socket's buffer, so small that it is full most of the time.
const BUFFER_BYTES: usize = 16 * 1024;
/// As much goes by `sendfile`, and then the copied end.
const FILE_BYTES: usize = 150_001 + COPIED_BYTES;
/// The peer takes so many bytes at a time, in turn.
const SIPS_BYTES: [usize; 4] = [1, 4099, 16_411, 977];
/// The most a call is asked to send, in turn: no call ends where a record does.
const LIMITS_BYTES: [u64; 3] = [1 << 20, 5003, 70_001];
/// Small enough that keys change on the way where they can, large enough for all of it where they cannot.
const RECORDS_PER_KEY: u64 = 1000;
const RECORDS_PER_KEY_CHANGING: u64 = 12;
const TIME_LIMIT: Duration = Duration::from_secs(10);

fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|index| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// Whether adapters may read the file while it is sent (`TLS_TX_ZEROCOPY_RO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZeroCopy {
    No,
    Yes,
}

/// Puts a combination through the test.
///
/// # Errors
/// What went wrong, in words.
pub(super) fn run(
    calls: &dyn Calls,
    combination: Combination,
    carried: Carried,
    zero_copy: ZeroCopy,
) -> Result<(), String> {
    Test::new(calls, combination, carried)?.run(zero_copy)
}

struct Test<'a> {
    calls: &'a dyn Calls,
    ours: TcpStream,
    theirs: TcpStream,
    sender: Channel<TrialKeys>,
    peer: Peer<TrialKeys>,
    carried: Carried,
    file: File,
    content: Vec<u8>,
    turn: usize,
    deadline: Instant,
}

impl<'a> Test<'a> {
    fn new(calls: &'a dyn Calls, combination: Combination, carried: Carried) -> Result<Self, String> {
        let records_per_key = if carried.takes_new_keys { RECORDS_PER_KEY_CHANGING } else { RECORDS_PER_KEY };
        let end = || channel(combination, records_per_key).map_err(|fault| fault.to_string());
        let content = pattern(FILE_BYTES);
        let (ours, theirs) =
            connected_pair(Some(BUFFER_BYTES)).map_err(|error| format!("no sockets: {error}"))?;
        Ok(Self {
            calls,
            ours,
            theirs,
            sender: end()?,
            peer: Peer::new(end()?),
            carried,
            file: file::in_memory(&content).map_err(|error| format!("no file: {error}"))?,
            content,
            turn: 0,
            deadline: Instant::now() + TIME_LIMIT,
        })
    }

    fn run(mut self, zero_copy: ZeroCopy) -> Result<(), String> {
        let socket = self.ours.try_clone().map_err(|error| error.to_string())?;
        let mut departure = promote(self.calls, socket.as_fd(), &mut self.sender, self.carried, 0)
            .map_err(|refusal| format!("the switch was refused: {refusal:?}"))?;
        if zero_copy == ZeroCopy::Yes {
            self.calls.set_zero_copy(socket.as_fd(), true).map_err(|error| error.to_string())?;
        }
        let head = pattern(317);
        // Offsets and lengths on neither side of any boundary, one body over 64 KiB, parts with heads in between.
        let file = OpenFile::of(self.file.try_clone().map_err(|error| error.to_string())?)
            .map_err(|error| error.to_string())?;
        let mut queue = Queue::default();
        let mut expected = Vec::new();
        for (head_bytes, range) in
            [(317, 1..70_002), (1, 4095..4097), (129, 16_383..49_154), (0, 0..FILE_BYTES as u64)]
        {
            expected.extend_from_slice(&head[..head_bytes]);
            expected.extend_from_slice(&self.content[range.start as usize..range.end as usize]);
            queue.push(Piece::Bytes(head[..head_bytes].to_vec()));
            queue.push(Piece::file(&file, range));
        }
        while !queue.is_done() {
            self.send_control(&socket, &mut departure)?;
            let limit_bytes = LIMITS_BYTES[self.turn % LIMITS_BYTES.len()];
            let (calls, sender) = (self.calls, &mut self.sender);
            match turn(calls, socket.as_fd(), sender, &mut queue, limit_bytes) {
                Ok(Turn::Full(bytes)) => {
                    departure.add(bytes);
                    self.sip()?;
                }
                Ok(Turn::Sent(bytes)) => departure.add(bytes),
                Ok(Turn::KeyUpdate) => {}
                // Memory that was swapped out comes back when it is read.
                Ok(Turn::Cold(FileRange { source, range })) => {
                    let length_bytes = range.end - range.start;
                    file::read_ahead(source.file(), range.start, length_bytes)
                        .map_err(|error| error.to_string())?
                }
                Err(fault) => return Err(format!("sending failed: {fault:?}")),
            }
            self.turn += 1;
            self.in_time()?;
        }
        self.sender
            .alert(AlertDescription::CloseNotify, &mut Vec::new())
            .map_err(|fault| fault.to_string())?;
        self.send_control(&socket, &mut departure)?;
        // What is told to have left must arrive even if the sending side is closed at once.
        while !departure
            .is_complete(self.calls, socket.as_fd(), &self.sender)
            .map_err(|error| error.to_string())?
        {
            self.sip()?;
        }
        socket::finish_sending(&socket).map_err(|error| error.to_string())?;
        while !self.peer.is_closed {
            self.sip()?;
        }
        self.compare(&expected)
    }

    fn compare(&self, expected: &[u8]) -> Result<(), String> {
        let opened = &self.peer.opened;
        if opened == expected {
            return Ok(());
        }
        let differing = opened.iter().zip(expected).position(|(one, other)| one != other);
        let at = differing.unwrap_or_else(|| opened.len().min(expected.len()));
        Err(format!("byte {at} of {} is not what was sent ({} arrived)", expected.len(), opened.len()))
    }

    fn in_time(&self) -> Result<(), String> {
        if Instant::now() < self.deadline { Ok(()) } else { Err("it stalled".to_owned()) }
    }

    /// Control records go first, however full the socket is.
    fn send_control(&mut self, socket: &TcpStream, departure: &mut Departure) -> Result<(), String> {
        while let Some(record) = self.sender.next_control().copied() {
            let sent =
                self.calls.send_control(socket.as_fd(), record.content_type().wire(), record.payload());
            match sent {
                Ok(()) => after_control(self.calls, socket.as_fd(), &mut self.sender, departure)
                    .map(|_| ())
                    .map_err(|error| format!("the next key was refused: {error}"))?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.sip()?,
                Err(error) => return Err(format!("a control record was refused: {error}")),
            }
        }
        Ok(())
    }

    /// The peer takes a little, and opens the records that are whole.
    fn sip(&mut self) -> Result<(), String> {
        let bytes = SIPS_BYTES[self.turn % SIPS_BYTES.len()];
        self.turn += 1;
        match self.peer.receive(&self.theirs, bytes) {
            Ok(0) => return Err("the connection ended too early".to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_micros(200));
            }
            Err(error) => return Err(format!("receiving failed: {error}")),
        }
        self.peer.open().map_err(|fault| format!("a record does not open: {fault}"))?;
        self.in_time()
    }
}
