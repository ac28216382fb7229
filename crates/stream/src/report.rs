//! What a run found out.

use crate::plan::{Amount, Direction, Reception, StreamEngine, ZeroCopySend};
use linerate_engine::zero_copy::Counts;
use linerate_os::tcp_info::TcpPath;
use serde::{Deserialize, Serialize};

/// One stream, as one of its ends saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamEnd {
    /// Its number: the first is 0; streams from the listener follow those to it.
    pub number: u32,
    /// This end sent.
    pub sends: bool,
    /// Bytes of payload that it sent, or that came.
    pub bytes: u64,
    /// From the beginning of the run to its own end, in seconds.
    pub seconds: f64,
    /// Calls that moved them: what was asked of the engine, or buffers that were received.
    pub calls: u64,
    /// What TCP said of the connection at its end.
    pub path: Option<PathReport>,
    /// The congestion control that it had.
    pub congestion: Option<String>,
    /// Version and suite that were agreed; nothing in the clear.
    pub tls: Option<String>,
    /// What made, or opened, the records, and how that is known.
    pub carried_by: String,
    /// How often the key changed: as this end sent, or as it received.
    pub key_updates: u64,
    /// What was sent without a copy; nothing where that was not asked for.
    pub lent: Option<LentReport>,
    /// What was received without a copy; nothing where that was not asked for.
    pub mapped: Option<MappedReport>,
    /// The offset of the first byte that was not what it had to be; nothing where all were, or none was verified.
    pub wrong_at: Option<u64>,
    /// Why it ended before it was to.
    pub fault: Option<String>,
}

/// What came of memory that was lent to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LentReport {
    /// How it was lent.
    pub by: ZeroCopySend,
    /// Sends that lent memory.
    pub sends: u64,
    /// Those that the kernel has completed.
    pub completed: u64,
    /// Those of the completed ones for which the kernel copied the memory after all.
    pub copied: u64,
    /// Sends that the kernel was given a copy for, as it took no loan (`ENOBUFS`). Not among `sends`.
    pub refused: u64,
}

impl LentReport {
    pub(crate) fn new(by: ZeroCopySend, counts: Counts) -> Self {
        let Counts { sends, completed, copied, refused } = counts;
        Self { by, sends, completed, copied, refused }
    }

    fn and(self, other: Self) -> Self {
        Self {
            by: self.by,
            sends: self.sends + other.sends,
            completed: self.completed + other.completed,
            copied: self.copied + other.copied,
            refused: self.refused + other.refused,
        }
    }
}

/// How much was received without a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappedReport {
    /// Bytes whose pages were mapped.
    pub mapped_bytes: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Why, where half of all bytes or more were copied.
    pub obstacle: Option<String>,
}

/// A path, from [`TcpPath`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathReport {
    /// The most payload of a segment, in bytes.
    pub segment_bytes: u32,
    /// The smoothed round trip time, in µs.
    pub rtt_us: u32,
    /// Its mean deviation, in µs.
    pub rtt_deviation_us: u32,
    /// The congestion window, in bytes.
    pub congestion_window_bytes: u64,
    /// Segments that were sent again.
    pub retransmits: u32,
}

impl From<TcpPath> for PathReport {
    fn from(path: TcpPath) -> Self {
        Self {
            segment_bytes: path.segment_bytes,
            rtt_us: path.round_trip_us,
            rtt_deviation_us: path.round_trip_deviation_us,
            congestion_window_bytes: u64::from(path.congestion_window_segments)
                * u64::from(path.segment_bytes),
            retransmits: path.retransmitted_segments,
        }
    }
}

/// CPU time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuTime {
    /// In user mode.
    pub user_s: f64,
    /// In the kernel.
    pub system_s: f64,
}

impl CpuTime {
    /// Both.
    #[must_use]
    pub fn total_s(self) -> f64 {
        self.user_s + self.system_s
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
    }
}

/// What all cores of a machine did, everything that ran there included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineTime {
    /// Cores.
    pub cores: u32,
    /// Seconds in which they were busy, all together.
    pub busy_s: f64,
    /// Seconds that a hypervisor took away from them.
    pub stolen_s: f64,
}

/// One end of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndReport {
    /// Its streams, by number.
    pub streams: Vec<StreamEnd>,
    /// CPU time of the run's threads at this end, all of them, accounted once from the beginning to the end.
    pub cpu: CpuTime,
    /// The machine over the same time.
    pub machine: Option<MachineTime>,
    /// How long that was, in seconds.
    pub seconds: f64,
    /// What ended the run at this end before its time; nothing where nothing did.
    pub fault: Option<String>,
}

impl EndReport {
    /// Bytes of the streams that this end sends, or of those that it receives.
    #[must_use]
    pub fn bytes(&self, sends: bool) -> u64 {
        self.of(sends).map(|stream| stream.bytes).sum()
    }

    /// The longest of these streams, in seconds.
    #[must_use]
    pub fn stream_seconds(&self, sends: bool) -> f64 {
        self.of(sends).map(|stream| stream.seconds).fold(0.0, f64::max)
    }

    /// Segments of these streams that were sent again.
    #[must_use]
    pub fn retransmits(&self, sends: bool) -> u64 {
        self.of(sends).filter_map(|stream| stream.path).map(|path| u64::from(path.retransmits)).sum()
    }

    /// What all of its streams lent, if they did.
    #[must_use]
    pub fn lent(&self) -> Option<LentReport> {
        self.streams.iter().filter_map(|stream| stream.lent).reduce(LentReport::and)
    }

    /// What all of its streams mapped, if they were to, with the first obstacle.
    #[must_use]
    pub fn mapped(&self) -> Option<MappedReport> {
        self.streams.iter().filter_map(|stream| stream.mapped.clone()).reduce(|sum, stream| MappedReport {
            mapped_bytes: sum.mapped_bytes + stream.mapped_bytes,
            copied_bytes: sum.copied_bytes + stream.copied_bytes,
            obstacle: sum.obstacle.or(stream.obstacle),
        })
    }

    fn of(&self, sends: bool) -> impl Iterator<Item = &StreamEnd> {
        self.streams.iter().filter(move |stream| stream.sends == sends)
    }

    /// CPU time for each kilobyte (1024 bytes) that the run moved at this end, both ways together, in µs: netperf's service
    /// demand, of the run's threads. Nothing where nothing moved.
    #[must_use]
    pub fn service_demand_us_per_kb(&self) -> Option<f64> {
        let bytes = self.bytes(true) + self.bytes(false);
        (bytes > 0).then(|| self.cpu.total_s() * 1e6 / (bytes as f64 / 1024.0))
    }
}

/// What TLS costs this end at least: the cipher and one copy, measured alone, and the run in the clear.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// The cipher, by its name.
    pub cipher: String,
    /// Sealing, in µs per KB (1024 bytes).
    pub cipher_us_per_kb: f64,
    /// A copy between buffers that the cache holds.
    pub copy_us_per_kb: f64,
    /// The service demand of the run in the clear, at this end.
    pub plain_us_per_kb: f64,
}

impl Floor {
    /// All of it.
    #[must_use]
    pub fn us_per_kb(&self) -> f64 {
        self.cipher_us_per_kb + self.copy_us_per_kb + self.plain_us_per_kb
    }
}

/// How far a stream was at the end of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalStream {
    /// Its number.
    pub number: u32,
    /// The client sends.
    pub sends: bool,
    /// Bytes in the interval.
    pub bytes: u64,
    /// What TCP said at its end; retransmissions are those of the interval. Of streams that the client sends.
    pub path: Option<PathReport>,
}

/// An interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Its beginning, in seconds from that of the run.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Streams by number.
    pub streams: Vec<IntervalStream>,
}

/// A stream's addresses at the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The stream's number.
    pub number: u32,
    /// The client sends.
    pub sends: bool,
    /// The client's address.
    pub local: std::net::SocketAddr,
    /// The listener's.
    pub remote: std::net::SocketAddr,
}

/// One run.
#[derive(Clone, Debug)]
pub struct StreamReport {
    /// The command line as it was given.
    pub command: Vec<String>,
    /// When it began, in seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// Where the listener is, as it was given.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What carried the bytes, where they were sent.
    pub engine: StreamEngine,
    /// What opened their records.
    pub receive_engine: StreamEngine,
    /// How memory was lent where they were sent.
    pub zero_copy_send: Option<ZeroCopySend>,
    /// What became of them where they were received in the clear.
    pub reception: Reception,
    /// Which way they went.
    pub direction: Direction,
    /// Streams each way.
    pub streams: u32,
    /// Bytes of an I/O.
    pub io_bytes: u32,
    /// What was asked for.
    pub amount: Amount,
    /// The rate that each stream was held to.
    pub rate_bits: Option<u64>,
    /// Each byte was verified.
    pub verified: bool,
    /// The streams' addresses.
    pub connected: Vec<Connected>,
    /// The intervals.
    pub intervals: Vec<Interval>,
    /// The client's end.
    pub local: EndReport,
    /// The listener's, if it told.
    pub remote: Option<EndReport>,
    /// The run was ended early by a signal.
    pub interrupted: bool,
    /// What went wrong, in words; nothing where nothing did.
    pub faults: Vec<String>,
}
