//! A run as JSON, in iperf3's shape: what has the same name means the same. Published as
//! `docs/schema/linerate-stream-1.json`.
//!
//! iperf3 leaves fields out where they have nothing to say. Here each is there, and is null then.

use crate::{
    plan::{Amount, Direction, StreamEngine, ZeroCopySend},
    report::{
        CpuTime, EndReport, Floor, Interval, IntervalStream, LentReport, MachineTime, MappedReport,
        PathReport, StreamEnd, StreamReport,
    },
};
use serde::Serialize;

/// The name and version of the form.
pub const SCHEMA: &str = "linerate-stream/1";
/// The same of a run by several engines in turn.
pub const ENGINES_SCHEMA: &str = "linerate-stream-engines/1";

/// A run as JSON, indented, with a line break at its end.
#[must_use]
pub fn of_run(report: &StreamReport) -> String {
    printed(&Document::of(report))
}

/// Runs by several engines in turn, or why one was not had.
#[must_use]
pub fn of_engines(runs: &[(StreamEngine, Result<StreamReport, String>)], floor: Option<&Floor>) -> String {
    let engines = runs.iter().map(|(engine, run)| EngineRun {
        engine: engine.name(),
        run: run.as_ref().ok().map(Document::of),
        lack: run.as_ref().err().cloned(),
    });
    printed(&Engines { schema: ENGINES_SCHEMA, engines: engines.collect(), floor })
}

fn printed(document: &impl Serialize) -> String {
    // Plain data with text for keys: it always has a JSON form.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Engines<'a> {
    schema: &'static str,
    engines: Vec<EngineRun<'a>>,
    floor: Option<&'a Floor>,
}

#[derive(Serialize)]
struct EngineRun<'a> {
    engine: &'static str,
    run: Option<Document<'a>>,
    lack: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    start: Start<'a>,
    intervals: Vec<JsonInterval>,
    end: End<'a>,
    error: Option<String>,
    faults: &'a [String],
    interrupted: bool,
}

#[derive(Serialize)]
struct Start<'a> {
    connected: Vec<Connection>,
    version: String,
    command: &'a [String],
    timestamp: Timestamp,
    connecting_to: ConnectingTo<'a>,
    test_start: TestStart,
}

#[derive(Serialize)]
struct Connection {
    socket: u32,
    sender: bool,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

#[derive(Serialize)]
struct Timestamp {
    timesecs: u64,
}

#[derive(Serialize)]
struct ConnectingTo<'a> {
    host: &'a str,
    port: u16,
}

#[derive(Serialize)]
struct TestStart {
    protocol: &'static str,
    num_streams: u32,
    blksize: u32,
    duration: Option<f64>,
    bytes: Option<u64>,
    reverse: u8,
    bidir: u8,
    target_bitrate: Option<u64>,
    engine: &'static str,
    receive_engine: Option<&'static str>,
    zero_copy_send: Option<&'static str>,
    reception: Option<&'static str>,
    verify: bool,
}

#[derive(Serialize)]
struct JsonInterval {
    streams: Vec<Moved>,
    sum: Moved,
    sum_bidir_reverse: Option<Moved>,
}

/// Bytes in a time: a stream's, or the sum of several.
#[derive(Serialize)]
struct Moved {
    socket: Option<u32>,
    start: f64,
    end: f64,
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
    retransmits: Option<u64>,
    snd_cwnd: Option<u64>,
    rtt: Option<u32>,
    rttvar: Option<u32>,
    /// Of the client's side: it sends.
    sender: bool,
}

#[derive(Serialize)]
struct End<'a> {
    streams: Vec<Pair<'a>>,
    sum_sent: Option<Moved>,
    sum_received: Option<Moved>,
    sum_sent_bidir_reverse: Option<Moved>,
    sum_received_bidir_reverse: Option<Moved>,
    cpu_utilization_percent: CpuPercent,
    cost: Cost,
    sender_tcp_congestion: Option<&'a str>,
    receiver_tcp_congestion: Option<&'a str>,
}

#[derive(Serialize)]
struct Pair<'a> {
    sender: Option<JsonStream<'a>>,
    receiver: Option<JsonStream<'a>>,
}

#[derive(Serialize)]
struct JsonStream<'a> {
    #[serde(flatten)]
    moved: Moved,
    calls: u64,
    mss: Option<u32>,
    tls: Option<&'a str>,
    carried_by: &'a str,
    key_updates: u64,
    lent: Option<LentReport>,
    mapped: Option<&'a MappedReport>,
    wrong_at: Option<u64>,
    fault: Option<&'a str>,
}

/// As iperf3 has it: in percent of one core.
#[derive(Serialize)]
struct CpuPercent {
    host_total: f64,
    host_user: f64,
    host_system: f64,
    remote_total: Option<f64>,
    remote_user: Option<f64>,
    remote_system: Option<f64>,
}

#[derive(Serialize)]
struct Cost {
    host: EndCost,
    remote: Option<EndCost>,
}

#[derive(Serialize)]
struct EndCost {
    seconds: f64,
    cpu: CpuTime,
    service_demand_us_per_kb: Option<f64>,
    machine: Option<MachineTime>,
}

impl<'a> Document<'a> {
    fn of(report: &'a StreamReport) -> Self {
        Self {
            schema: SCHEMA,
            start: Start::of(report),
            intervals: report.intervals.iter().map(|one| JsonInterval::of(one, report.direction)).collect(),
            end: End::of(report),
            error: (!report.faults.is_empty()).then(|| report.faults.join("; ")),
            faults: &report.faults,
            interrupted: report.interrupted,
        }
    }
}

impl<'a> Start<'a> {
    fn of(report: &'a StreamReport) -> Self {
        let connected = report.connected.iter().map(|one| Connection {
            socket: one.number + 1,
            sender: one.sends,
            local_host: one.local.ip().to_string(),
            local_port: one.local.port(),
            remote_host: one.remote.ip().to_string(),
            remote_port: one.remote.port(),
        });
        let (duration, bytes) = match report.amount {
            Amount::Milliseconds(milliseconds) => (Some(milliseconds as f64 / 1e3), None),
            Amount::Bytes(bytes) => (None, Some(bytes)),
        };
        Self {
            connected: connected.collect(),
            version: format!("linerate {}", env!("CARGO_PKG_VERSION")),
            command: &report.command,
            timestamp: Timestamp { timesecs: report.started_unix_s },
            connecting_to: ConnectingTo { host: &report.host, port: report.port },
            test_start: TestStart {
                protocol: "TCP",
                num_streams: report.streams,
                blksize: report.io_bytes,
                duration,
                bytes,
                reverse: u8::from(report.direction == Direction::Receive),
                bidir: u8::from(report.direction == Direction::Both),
                target_bitrate: report.rate_bits,
                engine: report.engine.name(),
                receive_engine: report.engine.is_tls().then(|| report.receive_engine.name()),
                zero_copy_send: report.zero_copy_send.map(ZeroCopySend::name),
                reception: (!report.engine.is_tls()).then(|| report.reception.name()),
                verify: report.verified,
            },
        }
    }
}

impl Moved {
    fn new(start: f64, end: f64, bytes: u64, sender: bool) -> Self {
        let seconds = end - start;
        let bits_per_second = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        Self {
            socket: None,
            start,
            end,
            seconds,
            bytes,
            bits_per_second,
            retransmits: None,
            snd_cwnd: None,
            rtt: None,
            rttvar: None,
            sender,
        }
    }

    fn with_path(self, path: Option<PathReport>) -> Self {
        Self {
            retransmits: path.map(|path| path.retransmits.into()),
            snd_cwnd: path.map(|path| path.congestion_window_bytes),
            rtt: path.map(|path| path.rtt_us),
            rttvar: path.map(|path| path.rtt_deviation_us),
            ..self
        }
    }
}

impl JsonInterval {
    fn of(interval: &Interval, direction: Direction) -> Self {
        let Interval { start_s, end_s, streams } = interval;
        let one = |stream: &IntervalStream| {
            let moved = Moved::new(*start_s, *end_s, stream.bytes, stream.sends).with_path(stream.path);
            Moved { socket: Some(stream.number + 1), ..moved }
        };
        let sum = |sends: bool| {
            let of_way = || streams.iter().filter(|stream| stream.sends == sends);
            let bytes = of_way().map(|stream| stream.bytes).sum();
            let retransmits =
                of_way().filter_map(|stream| stream.path).map(|path| u64::from(path.retransmits));
            Moved {
                retransmits: sends.then(|| retransmits.sum()),
                ..Moved::new(*start_s, *end_s, bytes, sends)
            }
        };
        Self {
            streams: streams.iter().map(one).collect(),
            sum: sum(direction != Direction::Receive),
            sum_bidir_reverse: (direction == Direction::Both).then(|| sum(false)),
        }
    }
}

impl<'a> End<'a> {
    fn of(report: &'a StreamReport) -> Self {
        let (local, remote) = (&report.local, report.remote.as_ref());
        let pair = |(place, here): (usize, &'a StreamEnd)| {
            let there = remote.and_then(|remote| remote.streams.get(place));
            let (sender, receiver) = if here.sends { (Some(here), there) } else { (there, Some(here)) };
            let end = |end: Option<&'a StreamEnd>| end.map(|end| JsonStream::of(end, here.sends));
            Pair { sender: end(sender), receiver: end(receiver) }
        };
        let sums = |client_sends: bool| {
            let (sender, receiver) = if client_sends { (Some(local), remote) } else { (remote, Some(local)) };
            let sum = |end: Option<&EndReport>, sends: bool| {
                let moved = |end: &EndReport| Moved {
                    retransmits: sends.then(|| end.retransmits(true)),
                    ..Moved::new(0.0, end.stream_seconds(sends), end.bytes(sends), client_sends)
                };
                end.map(moved)
            };
            (sum(sender, true), sum(receiver, false))
        };
        let (sum_sent, sum_received) = sums(report.direction != Direction::Receive);
        let (sum_sent_bidir_reverse, sum_received_bidir_reverse) =
            if report.direction == Direction::Both { sums(false) } else { (None, None) };
        let percent = |end: &EndReport, cpu_s: f64| cpu_s * 100.0 / end.seconds.max(1e-9);
        let of_remote = |cpu_s: fn(CpuTime) -> f64| remote.map(|remote| percent(remote, cpu_s(remote.cpu)));
        let congestion = |sends: bool| {
            let ends = [Some(local), remote].into_iter().flatten();
            let mut streams = ends.flat_map(|end| &end.streams);
            streams.find(|stream| stream.sends == sends).and_then(|stream| stream.congestion.as_deref())
        };
        Self {
            streams: local.streams.iter().enumerate().map(pair).collect(),
            sum_sent,
            sum_received,
            sum_sent_bidir_reverse,
            sum_received_bidir_reverse,
            cpu_utilization_percent: CpuPercent {
                host_total: percent(local, local.cpu.total_s()),
                host_user: percent(local, local.cpu.user_s),
                host_system: percent(local, local.cpu.system_s),
                remote_total: of_remote(CpuTime::total_s),
                remote_user: of_remote(|cpu| cpu.user_s),
                remote_system: of_remote(|cpu| cpu.system_s),
            },
            cost: Cost { host: EndCost::of(local), remote: remote.map(EndCost::of) },
            sender_tcp_congestion: congestion(true),
            receiver_tcp_congestion: congestion(false),
        }
    }
}

impl<'a> JsonStream<'a> {
    fn of(end: &'a StreamEnd, client_sends: bool) -> Self {
        let path = end.path.filter(|_| end.sends);
        let moved = Moved::new(0.0, end.seconds, end.bytes, client_sends).with_path(path);
        Self {
            moved: Moved { socket: Some(end.number + 1), ..moved },
            calls: end.calls,
            mss: end.path.map(|path| path.segment_bytes),
            tls: end.tls.as_deref(),
            carried_by: &end.carried_by,
            key_updates: end.key_updates,
            lent: end.lent,
            mapped: end.mapped.as_ref(),
            wrong_at: end.wrong_at,
            fault: end.fault.as_deref(),
        }
    }
}

impl EndCost {
    fn of(end: &EndReport) -> Self {
        Self {
            seconds: end.seconds,
            cpu: end.cpu,
            service_demand_us_per_kb: end.service_demand_us_per_kb(),
            machine: end.machine,
        }
    }
}
