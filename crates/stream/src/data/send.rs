//! The sending end of a stream: one I/O after the other into the engine that carries it.

use super::{Content, Job, LOOK, Moved, Outcome, kernel::KernelSending, protection::Protection};
use crate::{
    group::{Group, Lane},
    keys::Keys,
    pacer::Pacer,
    wait,
};
use linerate_engine::{
    Fault, FileRange, Piece, Queue, SharedBytes, Turn,
    pattern::Pattern,
    plain::{self, LastPage},
    sealing::{BatchEnd, Passed, Sealing},
    source::{Change, OpenFile},
};
use linerate_os::{
    file::read_ahead,
    kernel_tls::System,
    socket::{self, Follows},
};
use linerate_record::AlertDescription;
use std::{io, os::fd::AsFd, rc::Rc, sync::Arc, thread, time::Instant};

/// `user_engine.batch` of the server, if nobody says otherwise.
const LARGEST_BATCH_BYTES: usize = 256 * 1024;
/// What the server's TLS listeners have (`TCP_NOTSENT_LOWAT`).
const NOT_SENT_LOW_WATER_BYTES: u32 = 16 * 1024;
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
    let fault = send_all(lane, protection, limit_bytes, job, group, began, &mut moved).err();
    Outcome { moved, fault: fault.map(|fault| words(&fault)) }
}

fn send_all(
    lane: &Lane,
    protection: Protection,
    limit_bytes: Option<u64>,
    job: &Job,
    group: &Group,
    began: Instant,
    moved: &mut Moved,
) -> Result<(), Fault> {
    let mut source =
        Source::of(job, lane, matches!(protection, Protection::User(_))).map_err(Fault::Unreadable)?;
    let io_bytes =
        if job.verify_seed.is_some() { job.io_bytes.min(PATTERN_PART_BYTES) } else { job.io_bytes };
    let pacer = job.rate_bits.map(|rate_bits| Pacer::new(began, rate_bits));
    let mut carriage = Carriage::of(lane, protection, job.buffer_bytes(LARGEST_BATCH_BYTES.min(io_bytes)))?;
    let mut queue = Queue::default();
    while !group.is_stopped() {
        let left_bytes = limit_bytes.map_or(u64::MAX, |limit_bytes| limit_bytes - moved.bytes);
        // At most what fits usize.
        let now_bytes = left_bytes.min(io_bytes as u64) as usize;
        if now_bytes == 0 {
            break;
        }
        if let Some(pacer) = pacer
            && !wait_for_turn(pacer, moved.bytes, group)
        {
            break;
        }
        source.push(&mut queue, moved.bytes, now_bytes);
        moved.calls += 1;
        let before_bytes = moved.bytes;
        while !queue.is_done() {
            let turned = carriage.turn(lane, &mut queue, io_bytes);
            moved.bytes = before_bytes + (now_bytes as u64 - queue.remaining_bytes());
            lane.tell(moved.bytes);
            turned?;
        }
    }
    carriage.end(lane)
}

/// Waits until what follows `bytes` is due. False if the run is over before.
fn wait_for_turn(pacer: Pacer, bytes: u64, group: &Group) -> bool {
    loop {
        let delay = pacer.delay(bytes, Instant::now());
        if delay.is_zero() {
            return true;
        }
        thread::sleep(delay.min(LOOK));
        if group.is_stopped() {
            return false;
        }
    }
}

/// Where a stream's bytes come from.
enum Source {
    Memory(Arc<[u8]>),
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
            Self::Memory(memory) => queue.push(Piece::Shared(SharedBytes::of(memory, bytes))),
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
    Kernel(Box<KernelSending>),
}

impl Carriage {
    fn of(lane: &Lane, protection: Protection, batch_bytes: usize) -> Result<Self, Fault> {
        match protection {
            Protection::Plain => Ok(Self::Plain),
            Protection::User(secured) => {
                // As a TLS listener of the server has it: bytes wait unsealed, not in the kernel.
                socket::set_not_sent_low_water(&lane.socket, NOT_SENT_LOW_WATER_BYTES)
                    .map_err(Fault::Socket)?;
                Ok(Self::User(Box::new(Sealing::new(secured.channel, batch_bytes))))
            }
            Protection::KernelSending(sending) => Ok(Self::Kernel(sending)),
            Protection::KernelReceiving(_) => Err(Fault::Socket(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Sends some of the queue, and waits where the socket is full.
    fn turn(&mut self, lane: &Lane, queue: &mut Queue, io_bytes: usize) -> Result<(), Fault> {
        let socket = &lane.socket;
        match self {
            Self::Plain => {
                match plain::turn(&System, socket.as_fd(), queue, io_bytes as u64, LastPage::InPlace)? {
                    Turn::Sent(_) | Turn::KeyUpdate => Ok(()),
                    Turn::Full(_) => wait::for_room(socket).map_err(Fault::Socket),
                    Turn::Cold(range) => fetch(&range),
                }
            }
            Self::User(sealing) => {
                let wait = || wait::for_room(socket);
                match sealing.turn(socket, queue, BatchEnd::WithTheQueue, wait)? {
                    Passed::On => Ok(()),
                    Passed::Cold(range) => fetch(&range),
                }
            }
            Self::Kernel(sending) => match sending.turn(socket, queue, io_bytes as u64)? {
                Some(range) => fetch(&range),
                None => Ok(()),
            },
        }
    }

    /// Tells the other end that nothing follows.
    fn end(&mut self, lane: &Lane) -> Result<(), Fault> {
        if let Self::Kernel(sending) = self {
            sending.end(&lane.socket)?;
        }
        if let Self::User(sealing) = self {
            let mut outgoing = Vec::new();
            sealing.channel.alert(AlertDescription::CloseNotify, &mut outgoing)?;
            let mut left = &outgoing[..];
            while !left.is_empty() {
                match socket::send(&lane.socket, left, Follows::Nothing) {
                    Ok(sent) => left = &left[sent..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        wait::for_room(&lane.socket).map_err(Fault::Socket)?;
                    }
                    Err(error) => return Err(Fault::Socket(error)),
                }
            }
        }
        socket::finish_sending(&lane.socket).map_err(Fault::Socket)
    }
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
