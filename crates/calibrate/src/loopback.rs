//! Connections over loopback whose other end throws away what comes, on a CPU of its own; and the sender's CPU time.

use std::{
    fs::File,
    io,
    net::TcpStream,
    os::fd::AsFd,
    thread::{self, JoinHandle},
};

use linerate_os::{
    file,
    mapping::Mapping,
    processor,
    socket::{self, Follows},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    time::{ClockId, clock_gettime},
};

/// Larger than most caches of level 2: a transfer's source comes from level 3 or memory, as a server's does.
pub(crate) const CONTENT_BYTES: usize = 32 << 20;
/// `user_engine.batch` if nobody says otherwise.
const LARGEST_BATCH_BYTES: usize = 256 * 1024;
/// What listeners of TLS have (crates/server).
const NOT_SENT_LOW_WATER_BYTES: u32 = 16 * 1024;
/// A peer that takes nothing for so long is gone.
const PATIENCE_S: i64 = 10;

/// What all measurements share: content in memory, and where the other end runs.
pub(crate) struct Bench {
    pub(crate) content: File,
    pub(crate) mapping: Mapping,
    receiving_cpu: usize,
    batch_bytes: usize,
}

impl Bench {
    pub(crate) fn new(receiving_cpu: usize) -> io::Result<Self> {
        let pattern: Vec<u8> = (0..CONTENT_BYTES as u64)
            .map(|index| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
            .collect();
        let content = file::in_memory(&pattern)?;
        let mapping = Mapping::new(&content, CONTENT_BYTES as u64)?;
        let mut bench = Self { content, mapping, receiving_cpu, batch_bytes: LARGEST_BATCH_BYTES };
        let connection = bench.connect()?;
        let burst_bytes = socket::burst_bytes(&connection.socket)?;
        // As crates/server's link does: one burst where the kernel paces, else as many as fit.
        let bursts =
            if socket::is_paced(&connection.socket)? { 1 } else { LARGEST_BATCH_BYTES / burst_bytes };
        bench.batch_bytes = bursts.max(1) * burst_bytes;
        Ok(bench)
    }

    /// Bytes that the user engine hands to the kernel at once.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.batch_bytes
    }

    /// A connection as a TLS listener takes it.
    pub(crate) fn connect(&self) -> io::Result<Connection> {
        let (ours, theirs) = socket::connected_pair(None)?;
        socket::prepare_listener(&ours, Some(NOT_SENT_LOW_WATER_BYTES))?;
        let cpu = self.receiving_cpu;
        let drain = thread::Builder::new().name("calibrate-sink".to_owned()).spawn(move || {
            // Where it cannot be pinned it runs where the kernel has it.
            let _ = processor::pin_current_thread(cpu);
            drain(&theirs)
        })?;
        Ok(Connection { socket: ours, drain: Some(drain) })
    }
}

/// Throws away what comes, until the other end closes.
fn drain(socket: &TcpStream) {
    let mut scratch = vec![0; 256 * 1024];
    loop {
        match socket::discard(socket, &mut scratch) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if wait(socket, PollFlags::IN).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// Waits until the socket can be read or written.
pub(crate) fn wait(socket: &impl AsFd, for_what: PollFlags) -> io::Result<()> {
    let mut waiting = [PollFd::new(socket, for_what)];
    let patience = Timespec { tv_sec: PATIENCE_S, tv_nsec: 0 };
    match poll(&mut waiting, Some(&patience)) {
        Ok(0) => Err(io::ErrorKind::TimedOut.into()),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A connection; when it is dropped, the other end has had all of it.
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    drain: Option<JoinHandle<()>>,
}

impl Connection {
    /// One to elsewhere.
    pub(crate) fn to(socket: TcpStream) -> Self {
        Self { socket, drain: None }
    }

    /// Sends all of it.
    pub(crate) fn send(&self, mut bytes: &[u8], follows: Follows) -> io::Result<()> {
        while !bytes.is_empty() {
            match socket::send(&self.socket, bytes, follows) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.socket, PollFlags::OUT)?
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends a range of a file by `sendfile`, at most `call_bytes` a call.
    pub(crate) fn send_file(
        &self,
        file: &File,
        mut offset: u64,
        end: u64,
        call_bytes: usize,
    ) -> io::Result<()> {
        while offset < end {
            let length = call_bytes.min(usize::try_from(end - offset).unwrap_or(usize::MAX));
            match socket::send_file(&self.socket, file, offset, length) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(sent) => offset += sent as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.socket, PollFlags::OUT)?
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The other end reads what is there, then the end.
        let _ = socket::finish_sending(&self.socket);
        if let Some(drain) = self.drain.take() {
            let _ = drain.join();
        }
    }
}

/// CPU time of this thread, in nanoseconds.
pub(crate) fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
