//! The sending end of a stream: one I/O after the other into the engine that carries it.

use super::{
    Content, Job, LOOK, Moved, Outcome, SENT_FROM_BYTES,
    kernel::KernelSending,
    lend::{self, LentSealing, Loan},
    protection::Protection,
};
use crate::{
    group::{Group, Lane},
    keys::Keys,
    pacer::Pacer,
    plan::ZeroCopySend,
    report::LentReport,
    wait,
};
use linerate_engine::{
    Fault, FileRange, Piece, Queue, SharedBytes, Turn,
    batches::BatchEnd,
    pattern::Pattern,
    plain::{self, LastPage},
    sealing::{Passed, Sealing},
    source::{Change, OpenFile},
};
use linerate_os::{
    file::read_ahead,
    kernel_tls::System,
    pages::Pages,
    socket::{self, Follows},
};
use linerate_record::{AlertDescription, Channel};
use rustix::net::sockopt;
use std::{
    io,
    os::fd::AsFd,
    rc::Rc,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// `user_engine.batch` of the server, if nobody says otherwise.
const LARGEST_BATCH_BYTES: usize = 256 * 1024;
/// What the server's TLS listeners have (`TCP_NOTSENT_LOWAT`).
const NOT_SENT_LOW_WATER_BYTES: u32 = 16 * 1024;
/// What the kernel sends at once at most (`GSO_LEGACY_MAX_SIZE`, include/linux/netdevice.h).
const BURST_BYTES: usize = 64 * 1024;
/// A pattern is made in parts of this size: its bytes are made anew for each.
const PATTERN_PART_BYTES: usize = 256 * 1024;

/// Sends until the group stops, or `limit_bytes` have left; then ends the stream.
pub(super) fn run(
    lane: &Lane,
    protection: Protection,
    limit_bytes: Option<u64>,
    job: &Job,
    group: &Group,
    began: Instant,
) -> Outcome {
    let mut moved = Moved::default();
    let io_bytes =
        if job.verify_seed.is_some() { job.io_bytes.min(PATTERN_PART_BYTES) } else { job.io_bytes };
    let mut course = Course {
        group,
        limit_bytes,
        io_bytes,
        pacer: job.rate_bits.map(|rate_bits| Pacer::new(began, rate_bits)),
    };
    let sent = match (protection, job.zero_copy_send) {
        (Protection::Plain, Some(by)) => lend_all(lane, by, job, &mut course, &mut moved),
        (protection, _) => send_all(lane, protection, job, &mut course, &mut moved),
    };
    Outcome { moved, fault: sent.err().map(|fault| words(&fault)) }
}

/// One I/O after the other, as they are due.
pub(super) struct Course<'a> {
    group: &'a Group,
    limit_bytes: Option<u64>,
    io_bytes: usize,
    pacer: Option<Pacer>,
}

impl Course<'_> {
    /// How long the I/O is that follows the first `moved_bytes`. Waits until it is due; `None` once nothing follows.
    pub(super) fn next(&mut self, moved_bytes: u64) -> Option<usize> {
        let left_bytes = self.limit_bytes.map_or(u64::MAX, |limit_bytes| limit_bytes - moved_bytes);
        // At most what fits usize.
        let now_bytes = left_bytes.min(self.io_bytes as u64) as usize;
        (now_bytes > 0 && self.wait_for_turn(moved_bytes)).then_some(now_bytes)
    }

    /// Waits until what follows `bytes` is due. False if the run is over before.
    fn wait_for_turn(&self, bytes: u64) -> bool {
        while !self.group.is_stopped() {
            let delay = self.pacer.map_or(Duration::ZERO, |pacer| pacer.delay(bytes, Instant::now()));
            if delay.is_zero() {
                return true;
            }
            thread::sleep(delay.min(LOOK));
        }
        false
    }
}

/// In the clear, by memory that the kernel is lent.
fn lend_all(
    lane: &Lane,
    by: ZeroCopySend,
    job: &Job,
    course: &mut Course<'_>,
    moved: &mut Moved,
) -> Result<(), Fault> {
    let loan = match (&job.content, job.pattern(lane)) {
        (_, Some(pattern)) => {
            course.io_bytes = job.buffer_bytes(course.io_bytes);
            Loan::Pattern(pattern, course.io_bytes)
        }
        (Content::Memory(memory), None) => Loan::Shared(Arc::clone(memory)),
        (Content::File(..), None) => return Err(Fault::Socket(io::ErrorKind::Unsupported.into())),
    };
    lend::send_plain(lane, course.group, by, loan, job.buffer_bytes(lend::SLOTS_BYTES), course, moved)
}

fn send_all(
    lane: &Lane,
    protection: Protection,
    job: &Job,
    course: &mut Course<'_>,
    moved: &mut Moved,
) -> Result<(), Fault> {
    let mut source =
        Source::of(job, lane, matches!(protection, Protection::User(_))).map_err(Fault::Unreadable)?;
    let io_bytes = course.io_bytes;
    let mut carriage = Carriage::of(lane, protection, job, io_bytes)?;
    let mut queue = Queue::default();
    let mut send = || {
        while let Some(now_bytes) = course.next(moved.bytes) {
            source.push(&mut queue, moved.bytes, now_bytes);
            moved.calls += 1;
            let before_bytes = moved.bytes;
            while !queue.is_done() {
                let turned = carriage.turn(lane, course.group, &mut queue, io_bytes);
                moved.bytes = before_bytes + (now_bytes as u64 - queue.remaining_bytes());
                lane.tell(moved.bytes);
                turned?;
            }
        }
        carriage.end(lane, course.group)
    };
    let sent = send();
    moved.lent = carriage.lent();
    moved.key_updates = carriage.key_updates();
    sent
}

/// Where a stream's bytes come from.
enum Source {
    Memory(Arc<Pages>),
    Pattern(Pattern),
    /// A file, its length, and where the next I/O begins.
    File(Rc<OpenFile>, u64, u64),
}

impl Source {
    fn of(job: &Job, lane: &Lane, is_sealed: bool) -> io::Result<Self> {
        Ok(match (&job.content, job.pattern(lane)) {
            (_, Some(pattern)) => Self::Pattern(pattern),
            (Content::Memory(memory), None) => Self::Memory(Arc::clone(memory)),
            (Content::File(file, length_bytes), None) => {
                let file = file.try_clone()?;
                // As the server has it: sealed from a mapping, in the clear by sendfile.
                let file = if is_sealed { OpenFile::mapped(file)? } else { OpenFile::of(file)? };
                Self::File(file, *length_bytes, 0)
            }
        })
    }

    /// Queues an I/O of `bytes`, which begins at `offset` of the stream.
    fn push(&mut self, queue: &mut Queue, offset: u64, bytes: usize) {
        match self {
            Self::Memory(memory) => {
                let range = SENT_FROM_BYTES..SENT_FROM_BYTES + bytes;
                queue.push(Piece::Shared(SharedBytes::of(memory, range)));
            }
            Self::Pattern(pattern) => {
                let mut memory = queue.take_spare();
                memory.resize(bytes, 0);
                pattern.fill(offset, &mut memory);
                queue.push(Piece::Bytes(memory));
            }
            Self::File(file, length_bytes, position) => {
                let mut left_bytes = bytes as u64;
                while left_bytes > 0 {
                    let now_bytes = left_bytes.min(*length_bytes - *position);
                    queue.push(Piece::file(file, *position..*position + now_bytes));
                    *position = (*position + now_bytes) % *length_bytes;
                    left_bytes -= now_bytes;
                }
            }
        }
    }
}

/// The engine that carries a stream.
enum Carriage {
    Plain,
    User(Box<Sealing<Keys>>),
    /// The user engine's batches are lent.
    Lent(Box<LentSealing>),
    Kernel(Box<KernelSending>),
}

impl Carriage {
    fn of(lane: &Lane, protection: Protection, job: &Job, io_bytes: usize) -> Result<Self, Fault> {
        let batch_bytes = job.buffer_bytes(LARGEST_BATCH_BYTES.min(io_bytes));
        match protection {
            Protection::Plain => {
                let segment_bytes = lane.path().map_or(0, |path| path.segment_bytes);
                if leaves_whole(io_bytes, segment_bytes as usize) {
                    sockopt::set_tcp_nodelay(&lane.socket, true)
                        .map_err(|error| Fault::Socket(error.into()))?;
                }
                Ok(Self::Plain)
            }
            Protection::User(secured) => {
                // As a TLS listener of the server has it: bytes wait unsealed, not in the kernel.
                socket::set_not_sent_low_water(&lane.socket, NOT_SENT_LOW_WATER_BYTES)
                    .map_err(Fault::Socket)?;
                let channel = secured.channel;
                Ok(match job.zero_copy_send {
                    None => Self::User(Box::new(Sealing::new(channel, batch_bytes))),
                    Some(by) => {
                        let slots_bytes = job.buffer_bytes(lend::SLOTS_BYTES);
                        Self::Lent(Box::new(LentSealing::new(lane, channel, by, batch_bytes, slots_bytes)?))
                    }
                })
            }
            Protection::KernelSending(sending) => Ok(Self::Kernel(sending)),
            Protection::KernelReceiving(_) => Err(Fault::Socket(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Sends some of the queue, and waits where the socket is full.
    fn turn(&mut self, lane: &Lane, group: &Group, queue: &mut Queue, io_bytes: usize) -> Result<(), Fault> {
        let socket = &lane.socket;
        let cold = match self {
            Self::Plain => {
                match plain::turn(&System, socket.as_fd(), queue, io_bytes as u64, LastPage::InPlace)? {
                    Turn::Sent(_) | Turn::KeyUpdate => None,
                    Turn::Full(_) => {
                        wait::for_room(socket).map_err(Fault::Socket)?;
                        None
                    }
                    Turn::Cold(range) => Some(range),
                }
            }
            Self::User(sealing) => {
                let wait = || wait::for_room(socket);
                match sealing.turn(socket, queue, BatchEnd::WithTheQueue, wait)? {
                    Passed::On => None,
                    Passed::Cold(range) => Some(range),
                }
            }
            Self::Lent(sealing) => sealing.turn(lane, group, queue)?,
            Self::Kernel(sending) => sending.turn(socket, queue, io_bytes as u64)?,
        };
        cold.map_or(Ok(()), |range| fetch(&range))
    }

    /// Tells the other end that nothing follows.
    fn end(&mut self, lane: &Lane, group: &Group) -> Result<(), Fault> {
        match self {
            Self::Plain => {}
            Self::User(sealing) => {
                let closing = closing(&mut sealing.channel)?;
                send_whole(lane, &closing, || wait::for_room(&lane.socket).map_err(Fault::Socket))?;
            }
            Self::Lent(sealing) => {
                let closing = closing(&mut sealing.channel)?;
                send_whole(lane, &closing, || sealing.wait_for_room(lane))?;
            }
            Self::Kernel(sending) => sending.end(&lane.socket)?,
        }
        socket::finish_sending(&lane.socket).map_err(Fault::Socket)?;
        match self {
            Self::Lent(sealing) => sealing.wait_for_all(lane, group),
            Self::Plain | Self::User(_) | Self::Kernel(_) => Ok(()),
        }
    }

    fn key_updates(&self) -> u64 {
        match self {
            Self::Plain => 0,
            Self::User(sealing) => sealing.channel.key_updates_sent(),
            Self::Lent(sealing) => sealing.channel.key_updates_sent(),
            Self::Kernel(sending) => sending.key_updates(),
        }
    }

    /// What was lent, if anything was to be.
    fn lent(&self) -> Option<LentReport> {
        match self {
            Self::Lent(sealing) => Some(sealing.report()),
            Self::Plain | Self::User(_) | Self::Kernel(_) => None,
        }
    }
}

/// Whether I/Os in the clear leave as they are, their last short segment included.
///
/// In general it waits for more (Nagle's algorithm, as in iperf3 and netperf). Of an I/O that is longer than a segment and shorter than what
/// the kernel sends at once, it would be cut off each time, and the rest would wait for an acknowledgement: that costs more
/// than the segment. docs/MEASUREMENTS.md has both, by I/O size.
fn leaves_whole(io_bytes: usize, segment_bytes: usize) -> bool {
    segment_bytes > 0 && io_bytes > segment_bytes + segment_bytes / 4 && io_bytes < BURST_BYTES
}

/// `close_notify`, sealed.
fn closing(channel: &mut Channel<Keys>) -> Result<Vec<u8>, Fault> {
    let mut outgoing = Vec::new();
    channel.alert(AlertDescription::CloseNotify, &mut outgoing)?;
    Ok(outgoing)
}

/// Sends a copy of all of `bytes`.
fn send_whole(
    lane: &Lane,
    mut bytes: &[u8],
    mut wait: impl FnMut() -> Result<(), Fault>,
) -> Result<(), Fault> {
    while !bytes.is_empty() {
        match socket::send(&lane.socket, bytes, Follows::Nothing) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait()?,
            Err(error) => return Err(Fault::Socket(error)),
        }
    }
    Ok(())
}

/// Brings a file's bytes into memory.
fn fetch(range: &FileRange) -> Result<(), Fault> {
    let length_bytes = range.range.end - range.range.start;
    read_ahead(range.source.file(), range.range.start, length_bytes).map_err(Fault::Unreadable)
}

/// Why a stream ended, for the report.
fn words(fault: &Fault) -> String {
    match fault {
        Fault::Socket(error) => format!("the connection failed: {error}"),
        Fault::Unreadable(error) => format!("the file cannot be read: {error}"),
        Fault::Changed(Change::CutShort(length_bytes)) => {
            format!("the file was cut short to {length_bytes} bytes while it was sent")
        }
        Fault::Changed(Change::Overwritten) => "the file was written to while it was sent".to_owned(),
        Fault::Record(fault) => format!("the record layer refused: {fault}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_a_segment_and_a_burst_leaves_whole() {
        for (io_bytes, segment_bytes, is_whole) in [
            (1024, 1448, false),
            (1500, 1448, false),
            (2048, 1448, true),
            (32_768, 1448, true),
            (65_536, 1448, false),
            (8192, 8948, false),
            (16_384, 8948, true),
            // Over loopback a segment is nearly a burst.
            (65_535, 65_483, false),
            (16_384, 0, false),
        ] {
            assert_eq!(leaves_whole(io_bytes, segment_bytes), is_whole, "{io_bytes} of {segment_bytes}");
        }
    }
}
