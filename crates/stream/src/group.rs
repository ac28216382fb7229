//! The streams of one end of a run: they begin together, and end.

use crate::data::Protected;
use linerate_os::{socket, tcp_info};
use std::{
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

/// A stream's connection, as the thread that moves its bytes and the thread that looks on share it.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) number: u32,
    pub(crate) sends: bool,
    pub(crate) socket: TcpStream,
    moved_bytes: AtomicU64,
}

impl Lane {
    pub(crate) fn new(number: u32, sends: bool, socket: TcpStream) -> Self {
        Self { number, sends, socket, moved_bytes: AtomicU64::new(0) }
    }

    /// So many bytes have moved by now. Told by the one thread that moves them.
    pub(crate) fn tell(&self, moved_bytes: u64) {
        self.moved_bytes.store(moved_bytes, Relaxed);
    }

    pub(crate) fn moved_bytes(&self) -> u64 {
        self.moved_bytes.load(Relaxed)
    }

    /// A number that changes when the other end takes or sends something.
    pub(crate) fn progress(&self) -> u64 {
        if self.sends {
            self.moved_bytes().wrapping_sub(socket::unacknowledged_bytes(&self.socket).unwrap_or(0))
        } else {
            self.moved_bytes()
        }
    }

    pub(crate) fn path(&self) -> Option<crate::report::PathReport> {
        tcp_info::of(&self.socket).map(Into::into)
    }
}

/// A stream that is connected, before its thread begins.
pub(crate) struct Opened {
    pub(crate) lane: Arc<Lane>,
    pub(crate) protected: Protected,
}

/// What all streams of an end share.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) lanes: Vec<Arc<Lane>>,
    /// Streams end behind the I/O that they are in.
    stop: AtomicBool,
    /// Connections were cut.
    cut: AtomicBool,
    /// A stream ended by a fault.
    failed: AtomicBool,
    ended: AtomicUsize,
    began: Mutex<Beginning>,
    changed: Condvar,
}

/// Whether the run has begun.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    Awaited,
    At(Instant),
    Never,
}

impl Group {
    pub(crate) fn new(lanes: Vec<Arc<Lane>>) -> Self {
        Self {
            lanes,
            stop: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            ended: AtomicUsize::new(0),
            began: Mutex::new(Beginning::Awaited),
            changed: Condvar::new(),
        }
    }

    /// The run begins now.
    pub(crate) fn begin(&self) -> Instant {
        let now = Instant::now();
        self.set(Beginning::At(now));
        now
    }

    /// It does not take place.
    pub(crate) fn give_up(&self) {
        self.set(Beginning::Never);
    }

    fn set(&self, beginning: Beginning) {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = beginning;
        self.changed.notify_all();
    }

    /// Waits for the run to begin; `None` if it does not take place.
    pub(crate) fn wait_for_begin(&self) -> Option<Instant> {
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *began {
                Beginning::At(at) => return Some(at),
                Beginning::Never => return None,
                Beginning::Awaited => {
                    began = self.changed.wait(began).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// What is sent ends behind the I/O that it is in.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Cuts all connections: threads that wait for them end.
    pub(crate) fn cut(&self) {
        self.stop();
        self.cut.store(true, Relaxed);
        for lane in &self.lanes {
            // One that is gone already needs no cutting.
            let _ = lane.socket.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    /// A stream has ended, by a fault or as it was to.
    pub(crate) fn ended(&self, by_fault: bool) {
        if by_fault {
            self.failed.store(true, Relaxed);
        }
        self.ended.fetch_add(1, Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    pub(crate) fn all_ended(&self) -> bool {
        self.ended.load(Relaxed) >= self.lanes.len()
    }

    /// A number that changes when the other end takes or sends something on any stream.
    pub(crate) fn progress(&self) -> u64 {
        self.lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(lane.progress()))
    }
}
