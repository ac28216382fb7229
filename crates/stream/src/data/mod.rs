//! A stream: the thread that sends or receives it, and what it found.

mod kernel;
mod lend;
mod protection;
mod receive;
mod send;

pub(crate) use lend::check as check_lending;
pub(crate) use protection::{Engines, Protected};

use crate::{
    control::message::Request,
    group::{Group, Lane, Opened},
    plan::{Reception, ZeroCopySend},
    report::{CpuTime, LentReport, MappedReport, StreamEnd},
};
use linerate_engine::pattern::{Mismatch, Pattern};
use linerate_os::{pages::Pages, processor, usage};
use rustix::net::sockopt;
use std::{
    fs::File,
    io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Memory for a thread's stack: an engine needs a tenth of it.
const STACK_BYTES: usize = 512 * 1024;
/// Memory for the buffers of all streams of an end, as far as the least of each allows.
const BUFFERS_BYTES: usize = 128 << 20;
/// What a stream buffers at least.
const LEAST_BUFFER_BYTES: usize = 32 * 1024;

/// Where in a page what is sent begins, and what is received, where the kernel copies it.
///
/// The kernel copies by `rep movsb`. AMD's processors with the fast form of that instruction (`fsrm`; Zen 3 and 4) are six to
/// eight times slower at it where the destination lies 1 to 31 bytes behind the source in their pages
/// (<https://lunnova.dev/articles/ryzen-slow-short-rep-mov>). A connection's bytes lie in the kernel's pages from near a page's
/// beginning on, and I/Os of whole pages keep their distance to them: a stream that comes to such a distance stays slow. These
/// are far from there; what an allocator gives for large memory, 16 bytes behind a page's beginning, is not.
/// docs/MEASUREMENTS.md has the rates.
const SENT_FROM_BYTES: usize = 2048;
const RECEIVED_FROM_BYTES: usize = 1024;

/// A stream that waits for its time looks this often whether the run is over.
const LOOK: Duration = Duration::from_millis(50);

/// What the streams of an end do, all alike.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) io_bytes: usize,
    /// Of each stream.
    pub(crate) rate_bits: Option<u64>,
    pub(crate) verify_seed: Option<u64>,
    /// What is sent, unless it is a pattern.
    pub(crate) content: Content,
    /// How memory is lent where bytes are sent.
    pub(crate) zero_copy_send: Option<ZeroCopySend>,
    /// What becomes of bytes in the clear where they are received.
    pub(crate) reception: Reception,
    /// Threads run there, in turn.
    pub(crate) cpus: Vec<usize>,
    /// Streams of this end.
    pub(crate) streams: usize,
}

/// What is sent.
#[derive(Debug)]
pub(crate) enum Content {
    /// The same bytes again and again: from [`SENT_FROM_BYTES`] on where they are copied, from the beginning where they are lent.
    Memory(Arc<Pages>),
    /// A file of so many bytes, again and again.
    File(File, u64),
}

impl Content {
    /// Bytes for I/Os of a request's size: of no meaning, but not all alike.
    pub(crate) fn memory(request: &Request) -> Self {
        let mut pages = Pages::allocated(SENT_FROM_BYTES + request.io_bytes as usize);
        Pattern::new(0).fill(0, &mut pages);
        Self::Memory(Arc::new(pages))
    }
}

impl Job {
    /// Bytes of a buffer that would best be `wanted_bytes`, so that all streams' fit into memory.
    fn buffer_bytes(&self, wanted_bytes: usize) -> usize {
        let share_bytes = (BUFFERS_BYTES / self.streams.max(1)).max(LEAST_BUFFER_BYTES);
        wanted_bytes.clamp(1, share_bytes)
    }

    fn pattern(&self, lane: &Lane) -> Option<Pattern> {
        /// Odd, and no multiple of what the pattern's own words are apart by: a stream's bytes are nowhere near another's.
        const APART: u64 = 0xD1B5_4A32_D192_ED03;
        self.verify_seed
            .map(|seed| Pattern::new(seed.wrapping_add(u64::from(lane.number).wrapping_mul(APART))))
    }
}

/// What came of a stream's bytes.
#[derive(Debug, Default)]
struct Moved {
    bytes: u64,
    calls: u64,
    wrong: Option<Mismatch>,
    key_updates: u64,
    /// What was sent without a copy.
    lent: Option<LentReport>,
    /// What was received without a copy.
    mapped: Option<MappedReport>,
}

/// A stream's thread.
pub(crate) struct Running {
    lane: Arc<Lane>,
    thread: JoinHandle<(StreamEnd, CpuTime)>,
}

/// Starts a stream's thread, which waits for the group to begin.
///
/// # Errors
/// The kernel's.
pub(crate) fn start(
    opened: Opened,
    limit_bytes: Option<u64>,
    job: &Arc<Job>,
    group: &Arc<Group>,
) -> io::Result<Running> {
    let (job, group) = (Arc::clone(job), Arc::clone(group));
    let number = opened.lane.number;
    let lane = Arc::clone(&opened.lane);
    let own = Arc::clone(&lane);
    let thread =
        thread::Builder::new().name(format!("stream-{number}")).stack_size(STACK_BYTES).spawn(move || {
            if let Some(cpu) = job.cpus.get(own.number as usize % job.cpus.len().max(1)) {
                // Where it cannot be pinned it runs where the kernel has it: the command has tried each CPU before.
                let _ = processor::pin_current_thread(*cpu);
            }
            let outcome = run(&own, opened, limit_bytes, &job, &group);
            group.ended(outcome.0.fault.is_some());
            outcome
        })?;
    Ok(Running { lane, thread })
}

impl Running {
    /// Waits for its end.
    pub(crate) fn join(self) -> (StreamEnd, CpuTime) {
        let lane = self.lane;
        self.thread.join().unwrap_or_else(|_| {
            let fault = Some("a fault of linerate's own ended its thread".to_owned());
            let bytes = lane.moved_bytes();
            let end =
                StreamEnd { number: lane.number, sends: lane.sends, bytes, fault, ..StreamEnd::default() };
            (end, CpuTime::default())
        })
    }
}

/// CPU time of this thread so far.
pub(crate) fn cpu_time() -> CpuTime {
    let cpu = usage::current_thread().unwrap_or_default();
    CpuTime { user_s: cpu.user_s, system_s: cpu.system_s }
}

fn run(
    lane: &Lane,
    opened: Opened,
    limit_bytes: Option<u64>,
    job: &Job,
    group: &Group,
) -> (StreamEnd, CpuTime) {
    let mut end = StreamEnd {
        number: lane.number,
        sends: lane.sends,
        carried_by: opened.protected.carried_by(lane.sends).to_owned(),
        tls: opened.protected.agreed,
        ..StreamEnd::default()
    };
    let Some(began) = group.wait_for_begin() else { return (end, CpuTime::default()) };
    let before = cpu_time();
    let outcome = if lane.sends {
        send::run(lane, opened.protected.by, limit_bytes, job, group, began)
    } else {
        receive::run(lane, opened.protected.by, job, group, began)
    };
    end.seconds = Instant::now().saturating_duration_since(began).as_secs_f64();
    let after = cpu_time();
    end.path = lane.path();
    end.congestion = sockopt::tcp_congestion(&lane.socket).ok();
    end.bytes = outcome.moved.bytes;
    end.calls = outcome.moved.calls;
    end.key_updates = outcome.moved.key_updates;
    end.lent = outcome.moved.lent;
    end.mapped = outcome.moved.mapped;
    end.wrong_at = outcome.moved.wrong.map(|wrong| wrong.offset);
    // A connection that this end has cut fails because of that.
    end.fault = outcome.fault.filter(|_| !group.is_cut());
    let cpu = CpuTime { user_s: after.user_s - before.user_s, system_s: after.system_s - before.system_s };
    (end, cpu)
}

/// How far a stream got, and why no further.
#[derive(Debug, Default)]
struct Outcome {
    moved: Moved,
    fault: Option<String>,
}
