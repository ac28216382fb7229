//! `linerate stream`: from its flags to a listener, or to a plan and from the report to standard output.

use std::error::Error;
use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use linerate_config::{CpuList, VERSION_NAMES, parse_duration_ms, parse_version};
use linerate_stream::plan::{
    Amount, Cipher, Direction, IO_BYTES_LIMIT, Reception, StreamEngine, TIME_LIMIT, Version, ZeroCopySend,
};
use linerate_stream::report::{Connected, Floor, Interval};
use linerate_stream::text::Text;
use linerate_stream::{
    Limits, Listener, ListenerSettings, Secret, StreamError, StreamPlan, StreamReport, Watch, json,
};

use crate::FAILED;
use crate::one_of::one_of;
use crate::usage_error::UsageError;

pub(crate) const EXAMPLES: &str = "\
Examples:
  linerate stream --listen 127.0.0.1:5201
      The other end, for clients on this machine.
  head -c 32 /dev/urandom | base64 > secret
  linerate stream --listen 0.0.0.0:5201 --secret secret
      For clients on other machines, which need the same file.
  linerate stream 192.0.2.2:5201 --secret secret
      Ten seconds in the clear, to there.
  linerate stream 192.0.2.2:5201 --secret secret --engine user -P 8 -t 30 -R
      TLS, sealed by the listener's process, on eight streams from there.
  linerate stream 192.0.2.2:5201 --secret secret --engine all
      In the clear, then TLS by each engine: one table, with ratios.
  linerate stream [::1]:5201 --engine user -n 10G --verify
      Exactly so many bytes, each of them verified.

The first interrupt (Ctrl-C) ends the run and prints what was measured so far; the second ends at once.

Exit status: 0 if all went well; 1 if there was no run, or something went wrong in it; 2 if the
command line is wrong.";

#[derive(Args, Debug)]
pub(crate) struct StreamArguments {
    /// Where the other end listens: HOST:PORT ([..] around IPv6)
    #[arg(value_name = "HOST:PORT", required_unless_present = "listen", value_parser = destination)]
    destination: Option<(String, u16)>,

    /// Be the other end, for any number of clients: ADDRESS:PORT ([..] around IPv6)
    #[arg(short = 's', long, value_name = "ADDRESS:PORT", conflicts_with = "destination", value_parser = address)]
    listen: Option<SocketAddr>,

    /// What both ends know; a listener outside loopback needs it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    secret: Option<PathBuf>,

    /// CPUs to pin the streams' threads to, in turn, as taskset -c writes them: 0-3,8,10-14:2
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,

    /// Streams each way
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    parallel: u32,

    /// Bytes that are handed to the system at once, like 128K or 16M
    #[arg(short = 'l', long = "length", value_name = "SIZE", default_value = "128K", value_parser = io_bytes, help_heading = "Run")]
    io_bytes: u32,

    /// How long, like 10, 30s or 5m; a bare number is seconds [default: 10]
    #[arg(short = 't', long, value_name = "DURATION", value_parser = time, help_heading = "Run")]
    time: Option<Duration>,

    /// How many bytes each way, all streams together, instead of a time: like 10G
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with = "time", value_parser = bytes, help_heading = "Run")]
    bytes: Option<u64>,

    /// From here to there (the default)
    #[arg(long, conflicts_with_all = ["receive", "both"], help_heading = "Run")]
    send: bool,

    /// From there to here
    #[arg(short = 'R', long, alias = "reverse", conflicts_with = "both", help_heading = "Run")]
    receive: bool,

    /// Both at once, on connections of their own
    #[arg(long, alias = "bidir", help_heading = "Run")]
    both: bool,

    /// Bits a second that each stream is held to, like 100M or 2.5G
    #[arg(short = 'b', long, alias = "bitrate", value_name = "BITS", value_parser = bits, help_heading = "Run")]
    rate: Option<u64>,

    /// Verify each byte: it is a function of a seed and of its place
    #[arg(long, help_heading = "Run")]
    verify: bool,

    /// Send this file from the page cache, again and again
    #[arg(long, alias = "file", value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Run")]
    sendfile: Option<PathBuf>,

    /// Lend memory to the kernel, which sends from it without a copy [default way: msg_zerocopy]
    ///
    /// msg_zerocopy: MSG_ZEROCOPY, with notices in the socket's error queue. io_uring: its SEND_ZC. For the engines plain and user.
    /// The share that the kernel copied after all is told.
    #[arg(long, value_name = "WAY", num_args = 0..=1, require_equals = true, default_missing_value = "msg_zerocopy", value_parser = one_of(ZERO_COPY_WAYS, zero_copy_way), help_heading = "Copies")]
    zero_copy_send: Option<ZeroCopySend>,

    /// Map the pages that bytes arrive in (TCP_ZEROCOPY_RECEIVE), where MTU and adapter allow; in the clear
    #[arg(long, conflicts_with = "discard", help_heading = "Copies")]
    zero_copy_receive: bool,

    /// Have the kernel throw received bytes away, uncopied: the lower bound of what receiving costs; in the clear
    #[arg(long, conflicts_with = "verify", help_heading = "Copies")]
    discard: bool,

    /// What carries the bytes [default: plain, or user where TLS is asked for]
    ///
    /// plain: in the clear. user: the sending process seals records, as `linerate serve` does. kernel: Linux does (kernel TLS).
    /// nic: an adapter does, which is proved. all: each of them in turn, and a table; one that cannot be had is told with its
    /// reason.
    #[arg(long, value_name = "ENGINE", value_parser = one_of(ENGINES, engine), help_heading = "TLS")]
    engine: Option<EngineWish>,

    /// What opens the records where they are received
    #[arg(long, value_name = "ENGINE", default_value = "user", value_parser = one_of(RECEIVE_ENGINES, receive_engine), help_heading = "TLS")]
    receive_engine: StreamEngine,

    /// The version of TLS
    #[arg(long, value_name = "VERSION", value_parser = one_of(VERSION_NAMES, parse_version), help_heading = "TLS")]
    tls: Option<Version>,

    /// Change each sender's key after so many records [default: as many as the cipher allows]; TLS 1.3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "TLS")]
    key_records: Option<u64>,

    /// The cipher [default: what is best on this machine]
    #[arg(long, value_name = "NAME", value_parser = one_of(CIPHERS, cipher), help_heading = "TLS")]
    cipher: Option<Cipher>,

    /// Both socket buffers of both ends, like 512K (the kernel doubles it) [default: the kernel's, which grow]
    #[arg(short = 'w', long, value_name = "SIZE", value_parser = socket_buffer, help_heading = "Sockets")]
    window: Option<u32>,

    /// Congestion control of both ends, like cubic or bbr
    #[arg(short = 'C', long, value_name = "NAME", help_heading = "Sockets")]
    congestion: Option<String>,

    /// Print the report as JSON, in iperf3's shape (docs/schema/linerate-stream-1.json)
    #[arg(short = 'J', long, help_heading = "Output")]
    json: bool,

    /// How often to say how far it is, like 1s; 0 for never
    #[arg(short = 'i', long, value_name = "DURATION", default_value = "1", value_parser = interval, help_heading = "Output")]
    interval: Duration,

    /// Streams at a time, all clients together [default: 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Listener")]
    max_streams: Option<u32>,

    /// The longest run [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = time, help_heading = "Listener")]
    max_time: Option<Duration>,

    /// Bits a second of a run, all of its streams together [default: no limit]
    #[arg(long, value_name = "BITS", value_parser = bits, help_heading = "Listener")]
    max_rate: Option<u64>,
}

/// One engine, or each in turn.
#[derive(Clone, Copy, Debug)]
enum EngineWish {
    One(StreamEngine),
    All,
}

const ENGINES: &[&str] = &["plain", "user", "kernel", "nic", "all"];
const ZERO_COPY_WAYS: &[&str] = &["msg_zerocopy", "io_uring"];
const RECEIVE_ENGINES: &[&str] = &["user", "kernel"];
const CIPHERS: &[&str] = &["AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305"];

/// Listens, or makes a run and prints what it found.
///
/// # Errors
/// There was no listener, no run, or its report cannot be written.
pub(crate) fn stream(arguments: StreamArguments) -> Result<ExitCode, Box<dyn Error>> {
    let secret = arguments.secret.as_deref().map(Secret::read).transpose()?;
    match arguments.listen {
        Some(address) => listen(&arguments, address, secret),
        None => run(arguments, secret),
    }
}

fn listen(
    arguments: &StreamArguments,
    address: SocketAddr,
    secret: Option<Secret>,
) -> Result<ExitCode, Box<dyn Error>> {
    let defaults = Limits::default();
    let settings = ListenerSettings {
        address,
        secret,
        limits: Limits {
            streams: arguments.max_streams.unwrap_or(defaults.streams),
            time: arguments.max_time.unwrap_or(defaults.time),
            rate_bits: arguments.max_rate,
        },
        cpus: arguments.cpus.as_ref().map_or(Vec::new(), |cpus| cpus.as_slice().to_vec()),
        certificate: linerate_stream::own_certificate()?,
    };
    let listener = Listener::bind(settings, tell)?;
    tell(&format!("listening on {}", listener.address()));
    match listener.serve()? {}
}

/// A line for the operator.
fn tell(line: &str) {
    // A reader that is gone is no reason to stop serving.
    let _ = writeln!(io::stdout(), "{line}").and_then(|()| io::stdout().flush());
}

fn run(arguments: StreamArguments, secret: Option<Secret>) -> Result<ExitCode, Box<dyn Error>> {
    let (is_json, is_all) = (arguments.json, matches!(arguments.engine, Some(EngineWish::All)));
    let plan = plan(arguments, secret)?;
    let interrupt = crate::load::interrupted_by_signals()?;
    if is_all {
        return run_each(&plan, &interrupt, is_json);
    }
    let mut shown = Shown { text: Text::new(plan.direction, plan.streams), is_quiet: is_json };
    let report = run_one(&plan, &interrupt, &mut shown)?;
    let text = if is_json { json::of_run(&report) } else { shown.text.end(&report) };
    crate::output::print(text.as_bytes())?;
    Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn run_one(
    plan: &StreamPlan,
    interrupt: &AtomicBool,
    watch: &mut dyn Watch,
) -> Result<StreamReport, Box<dyn Error>> {
    match linerate_stream::run(plan, interrupt, watch) {
        Err(StreamError::Plan(reason)) => Err(UsageError::new("stream", reason).into()),
        other => Ok(other?),
    }
}

/// Each engine in turn. One that cannot be had is told with its reason; a listener that cannot be had ends it.
fn run_each(plan: &StreamPlan, interrupt: &AtomicBool, is_json: bool) -> Result<ExitCode, Box<dyn Error>> {
    let mut runs = Vec::new();
    for engine in StreamEngine::ALL {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        let mut shown = Shown { text: Text::new(plan.direction, plan.streams), is_quiet: true };
        match linerate_stream::run(&StreamPlan { engine, ..plan.clone() }, interrupt, &mut shown) {
            Ok(report) => runs.push((engine, Ok(report))),
            Err(StreamError::Refused(lack) | StreamError::Plan(lack)) if !runs.is_empty() => {
                runs.push((engine, Err(lack)));
            }
            Err(StreamError::Plan(reason)) => return Err(UsageError::new("stream", reason).into()),
            Err(error) => return Err(error.into()),
        }
    }
    let reports = || runs.iter().filter_map(|(_, run)| run.as_ref().ok());
    let floor = floor(&runs, &plan.cpus);
    let mut text = if is_json {
        json::of_engines(&runs, floor.as_ref())
    } else {
        linerate_stream::text::engines(&runs, floor.as_ref())
    };
    if !is_json {
        for fault in reports().flat_map(|report| &report.faults) {
            text.push_str(&format!("fault         {fault}\n"));
        }
    }
    crate::output::print(text.as_bytes())?;
    let is_sound = reports().all(|report| report.faults.is_empty());
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// What TLS costs this end at least, where it was had in the clear and over TLS.
fn floor(runs: &[(StreamEngine, Result<StreamReport, String>)], cpus: &[usize]) -> Option<Floor> {
    let reports = || runs.iter().filter_map(|(engine, run)| Some((engine, run.as_ref().ok()?)));
    let (_, plain) = reports().find(|(engine, _)| !engine.is_tls())?;
    let (_, sealed) = reports().find(|(engine, _)| engine.is_tls())?;
    // "TLS 1.3, TLS_AES_128_GCM_SHA256"
    let agreed = sealed.local.streams.first()?.tls.as_deref()?;
    let cipher = linerate_suite::CipherSuite::named(agreed.split(", ").nth(1)?)?.cipher();
    let cpus = match cpus {
        [] => linerate_os::processor::allowed().ok()?.into_iter().take(1).collect(),
        cpus => cpus.to_vec(),
    };
    let record_bytes = (plain.io_bytes as usize).min(16_384);
    let alone = linerate_calibrate::seal_and_copy(cipher, record_bytes, &cpus).ok()?;
    // Nanoseconds a byte are 1.024 µs per 1024 bytes.
    Some(Floor {
        cipher: cipher.name().to_owned(),
        cipher_us_per_kb: alone.seal_ns_per_byte * 1.024,
        copy_us_per_kb: alone.copy_ns_per_byte * 1.024,
        plain_us_per_kb: plain.local.service_demand_us_per_kb()?,
    })
}

fn plan(arguments: StreamArguments, secret: Option<Secret>) -> Result<StreamPlan, UsageError> {
    let wrong = |message: &str| UsageError::new("stream", message);
    let (host, port) = arguments.destination.ok_or_else(|| wrong("give HOST:PORT, or --listen"))?;
    let is_listeners = |given: bool, flag: &str| {
        given.then(|| {
            UsageError::new("stream", format!("{flag} is a limit of the other end: it goes with --listen"))
        })
    };
    let of_a_listener = is_listeners(arguments.max_streams.is_some(), "--max-streams")
        .or_else(|| is_listeners(arguments.max_time.is_some(), "--max-time"))
        .or_else(|| is_listeners(arguments.max_rate.is_some(), "--max-rate"));
    if let Some(error) = of_a_listener {
        return Err(error);
    }
    let asks_for_tls = arguments.tls.is_some() || arguments.cipher.is_some();
    let engine = match arguments.engine {
        Some(EngineWish::One(StreamEngine::Plain)) if asks_for_tls => {
            return Err(wrong("--engine plain is in the clear: leave --tls and --cipher out"));
        }
        Some(EngineWish::One(engine)) => engine,
        // What the first of all is, the runs say.
        Some(EngineWish::All) => StreamEngine::Plain,
        None if asks_for_tls => StreamEngine::User,
        None => StreamEngine::Plain,
    };
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let plan = StreamPlan {
        secret,
        streams: arguments.parallel,
        io_bytes: arguments.io_bytes,
        socket_buffer_bytes: arguments.window,
        amount: match arguments.bytes {
            Some(bytes) => Amount::Bytes(bytes),
            None => Amount::Milliseconds(arguments.time.map_or(10_000, milliseconds)),
        },
        direction: match (arguments.receive, arguments.both) {
            (true, _) => Direction::Receive,
            (_, true) => Direction::Both,
            _ => Direction::Send,
        },
        engine,
        receive_engine: arguments.receive_engine,
        zero_copy_send: arguments.zero_copy_send,
        reception: match (arguments.zero_copy_receive, arguments.discard) {
            (true, _) => Reception::Mapped,
            (_, true) => Reception::Discarded,
            _ => Reception::Copied,
        },
        version: arguments.tls.unwrap_or(Version::Tls13),
        key_records: arguments.key_records,
        cipher: arguments.cipher,
        rate_bits: arguments.rate,
        congestion: arguments.congestion,
        cpus: arguments.cpus.map_or(Vec::new(), |cpus| cpus.as_slice().to_vec()),
        interval: Some(arguments.interval).filter(|interval| !interval.is_zero()),
        verify: arguments.verify,
        send_file: arguments.sendfile,
        command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        ..StreamPlan::new(host, port)
    };
    plan.check().map_err(|error| wrong(&error.to_string()))?;
    Ok(plan)
}

/// Prints what is told while a run goes on.
struct Shown {
    text: Text,
    is_quiet: bool,
}

impl Watch for Shown {
    fn connected(&mut self, streams: &[Connected]) {
        if self.is_quiet {
            return;
        }
        // What cannot be shown now is in the report.
        let _ = crate::output::print(self.text.connected(streams).as_bytes());
    }

    fn interval(&mut self, interval: &Interval) {
        if self.is_quiet {
            return;
        }
        let _ = crate::output::print(self.text.interval(interval).as_bytes());
    }
}

fn destination(text: &str) -> Result<(String, u16), String> {
    let wrong = || "write it as HOST:PORT, like 192.0.2.2:5201 or [2001:db8::2]:5201".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || host.contains(':') && !is_bracketed {
        return Err(wrong());
    }
    let port = port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    Ok((host.to_owned(), port))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = || "write it as ADDRESS:PORT, like 127.0.0.1:5201, 0.0.0.0:5201 or [::]:5201".to_owned();
    text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next()).ok_or_else(wrong)
}

/// A number with a suffix by `step`: K, M, G, T, in either case, as iperf3 writes amounts; also KiB, MiB, GiB.
fn suffixed(text: &str, step: f64, what: &str) -> Result<f64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let power = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" | "kib" => 1,
        "m" | "mib" => 2,
        "g" | "gib" => 3,
        "t" | "tib" => 4,
        _ => return Err(format!("is no {what}: write a number with K, M, G or T behind it, like 128K")),
    };
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match digits.parse::<f64>() {
        Ok(number) if is_plain => Ok(number * step.powi(power)),
        _ => Err(format!("is no {what}: write a number with K, M, G or T behind it, like 128K")),
    }
}

fn size(text: &str, most: u64) -> Result<u64, String> {
    let bytes = suffixed(text, 1024.0, "size")?;
    if bytes < 1.0 || bytes > most as f64 {
        return Err(format!("is not from 1 to {most} bytes"));
    }
    Ok(bytes as u64)
}

fn io_bytes(text: &str) -> Result<u32, String> {
    size(text, IO_BYTES_LIMIT.into()).map(|bytes| bytes as u32)
}

fn socket_buffer(text: &str) -> Result<u32, String> {
    size(text, 1 << 30).map(|bytes| bytes as u32)
}

fn bytes(text: &str) -> Result<u64, String> {
    size(text, 1 << 50)
}

/// Bits a second, by 1000.
fn bits(text: &str) -> Result<u64, String> {
    let bits = suffixed(text, 1000.0, "rate")?;
    if !(1.0..=1e15).contains(&bits) {
        return Err("is not from 1 to 1000T bits a second".to_owned());
    }
    Ok(bits as u64)
}

/// As the configuration writes durations; a bare number is seconds, as iperf3 has it.
fn duration(text: &str, least_ms: u64) -> Result<Duration, String> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = if bare { format!("{text}s") } else { text.to_owned() };
    let most_ms = u64::try_from(TIME_LIMIT.as_millis()).unwrap_or(u64::MAX);
    parse_duration_ms(&text, least_ms..=most_ms).map(Duration::from_millis).map_err(|error| error.to_string())
}

fn time(text: &str) -> Result<Duration, String> {
    duration(text, 1)
}

fn interval(text: &str) -> Result<Duration, String> {
    match duration(text, 0)? {
        interval if !interval.is_zero() && interval < Duration::from_millis(100) => {
            Err("is shorter than 100ms, which says little and costs much".to_owned())
        }
        interval => Ok(interval),
    }
}

fn engine(name: &str) -> Result<EngineWish, String> {
    if name.eq_ignore_ascii_case("all") {
        return Ok(EngineWish::All);
    }
    let engine = StreamEngine::ALL.into_iter().find(|engine| engine.name().eq_ignore_ascii_case(name));
    engine.map(EngineWish::One).ok_or_else(|| unknown("engine", name, ENGINES))
}

fn zero_copy_way(name: &str) -> Result<ZeroCopySend, String> {
    ZeroCopySend::ALL
        .into_iter()
        .find(|way| way.name() == name)
        .ok_or_else(|| format!("{name} is no way to lend memory"))
}

fn receive_engine(name: &str) -> Result<StreamEngine, String> {
    [StreamEngine::User, StreamEngine::Kernel]
        .into_iter()
        .find(|engine| engine.name().eq_ignore_ascii_case(name))
        .ok_or_else(|| unknown("engine to receive with", name, RECEIVE_ENGINES))
}

fn cipher(name: &str) -> Result<Cipher, String> {
    Cipher::named(name).ok_or_else(|| unknown("cipher", name, CIPHERS))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    format!("unknown {what} \"{}\" (allowed: {})", name.escape_debug(), known.join(", "))
}
