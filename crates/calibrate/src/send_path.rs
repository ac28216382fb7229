//! Paths to another end that throws away what comes: over loopback, on a CPU of its own, or to another host.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    os::fd::AsFd,
    thread::{self, JoinHandle},
    time::Duration,
};

use linerate_engine::batches::Batches;
use linerate_os::{
    processor,
    socket::{self, Follows},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// `user_engine.batch` if nobody says otherwise.
pub(crate) const LARGEST_BATCH_BYTES: usize = 256 * 1024;
/// What listeners of TLS have (crates/server).
const NOT_SENT_LOW_WATER_BYTES: u32 = 16 * 1024;
/// A peer that takes nothing for so long is gone.
const PATIENCE_S: i64 = 10;
/// So long may a peer take to answer.
const CONNECT_TIME: Duration = Duration::from_secs(3);

/// Where the other end is.
#[derive(Clone, Copy, Debug)]
enum Far {
    /// A thread of ours, on this CPU.
    Loopback { receiving_cpu: usize },
    /// [`crate::sink`] there.
    Peer(SocketAddr),
}

/// A path to send on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendPath {
    far: Far,
    batch_bytes: usize,
}

impl SendPath {
    /// To a thread of ours on this CPU.
    pub(crate) fn over_loopback(receiving_cpu: usize) -> io::Result<Self> {
        Self::with_batch(Far::Loopback { receiving_cpu })
    }

    /// To a host where [`crate::sink`] runs.
    pub(crate) fn to(peer: SocketAddr) -> io::Result<Self> {
        Self::with_batch(Far::Peer(peer))
    }

    fn with_batch(far: Far) -> io::Result<Self> {
        let mut path = Self { far, batch_bytes: LARGEST_BATCH_BYTES };
        let connection = path.connect()?;
        // What batches grow to where each is taken whole.
        let mut batches = Batches::default();
        for _ in 0..usize::BITS {
            path.batch_bytes = batches.next_bytes(&connection.socket, LARGEST_BATCH_BYTES)?;
            batches.taken_whole();
        }
        Ok(path)
    }

    /// Bytes that the user engine hands to the kernel at once.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.batch_bytes
    }

    /// A connection as a TLS listener takes it.
    pub(crate) fn connect(&self) -> io::Result<Connection> {
        let (socket, drain) = match self.far {
            Far::Loopback { receiving_cpu } => {
                let (ours, theirs) = socket::connected_pair(None)?;
                let drain = thread::Builder::new().name("calibrate-sink".to_owned()).spawn(move || {
                    // Where it cannot be pinned it runs where the kernel has it.
                    let _ = processor::pin_current_thread(receiving_cpu);
                    drain(&theirs)
                })?;
                (ours, Some(drain))
            }
            Far::Peer(peer) => {
                let socket = TcpStream::connect_timeout(&peer, CONNECT_TIME)?;
                socket.set_nonblocking(true)?;
                (socket, None)
            }
        };
        socket::prepare_listener(&socket, Some(NOT_SENT_LOW_WATER_BYTES))?;
        Ok(Connection { socket, drain })
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
