//! `linerate load`: from its flags to a plan, and from the report to standard output.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{ArgGroup, Args};
use linerate_config::{
    CipherSuites, CpuList, Groups, VERSION_NAMES, parse_duration_ms, parse_size_bytes, parse_version,
};
use linerate_load::nfs::{MinorVersion, NfsPlan, NfsTarget, Order};
use linerate_load::plan::{
    BodyUse, CertificateFiles, LoadPlan, RangeChoice, SocketShape, Trust, Until, Version,
};
use linerate_load::report::LoadReport;
use linerate_load::summary::Summary;
use linerate_load::{LoadError, Sayings, Target, csv, nfs};

use crate::FAILED;
use crate::one_of::one_of;
use crate::usage_error::UsageError;

pub(crate) const EXAMPLES: &str = "\
Examples:
  linerate load https://localhost:8443/film.mp4 -c 100 -d 30s --insecure
      100 connections ask for the file again and again, for half a minute.
  linerate load https://media.example.org/a https://media.example.org/b -R 500 -c 64 --warmup 5s
      500 requests a second. Latency counts from when a request should have been sent.
  linerate load https://localhost:8443/film.mp4 -n 1000 --range random:1MiB --verify . --insecure
      1000 ranges of 1 MiB, every byte compared with ./film.mp4.
  linerate load https://localhost:8443/film.mp4 --discard --cpus 1 --json --insecure > run.json
      Bodies thrown away unread, so that the server is what is measured.
  linerate load https://localhost:8443/1k -c 100 --close --resume --insecure
      A resumed handshake for each request.
  linerate load nfs://localhost/film.mp4 -c 4 --depth 8 --insecure
      READs of 1 MiB of NFS 4.2 over TLS, without a mount: eight under way on each of four connections.
  linerate load nfs://localhost/film.mp4 -n 1000 --block 4KiB --order random --xprtsec none --verify film.mp4
      1000 READs of 4 KiB in the clear, every byte compared.

The first interrupt (Ctrl-C) ends the run and prints what was measured so far; the second ends at once.

Exit status: 0 if all went well; 1 if a request failed, a byte differed, or there was no run; 2 if the
command line is wrong.";

/// Longest run, pause or patience: a week.
const LONGEST_MS: u64 = 7 * 86_400_000;

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("length").args(["duration", "requests"]))]
pub(crate) struct LoadArguments {
    /// What to ask for, in turn: http://HOST[:PORT]/PATH or https://…; or nfs://HOST[:PORT]/EXPORT/PATH
    #[arg(value_name = "URL", required = true, value_hint = clap::ValueHint::Url)]
    urls: Vec<Address>,

    /// Connections at a time
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    connections: u32,

    /// Threads that share them
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    threads: u32,

    /// How long to measure, like 30s or 5m; a bare number is seconds [default: 10s]
    #[arg(short, long, value_name = "DURATION", value_parser = duration)]
    duration: Option<Duration>,

    /// How many requests to make, instead of a duration
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// Requests a second, all connections together [default: as many as are answered]
    ///
    /// Each request has its time, whether or not those before it were answered, and its latency counts from that time:
    /// a server that stalls cannot hide it by holding requests back.
    #[arg(short = 'R', long, value_name = "RATE")]
    rate: Option<f64>,

    /// Run so long before measuring
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s", hide_default_value = true)]
    warmup: Duration,

    /// Give a connection up when nothing has come for so long
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    timeout: Duration,

    /// CPUs to pin threads to, in turn, as taskset -c writes them: 0-3,8,10-14:2
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,

    /// A connection for each request
    #[arg(long, help_heading = "Requests")]
    close: bool,

    /// Ask once on each connection, then keep it open and idle: what do idle connections take of a server?
    #[arg(long, help_heading = "Requests")]
    once: bool,

    /// A further header; can be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header, help_heading = "Requests")]
    headers: Vec<(String, String)>,

    /// Ask for a part: random:SIZE (from anywhere, like random:64KiB) or FIRST-LAST (offsets)
    #[arg(long, value_name = "RANGE", value_parser = range, help_heading = "Requests")]
    range: Option<RangeChoice>,

    /// Compare every byte with this file, or with the files below this folder that the URLs name
    #[arg(long, value_name = "FILE_OR_DIR", help_heading = "Bodies", value_hint = clap::ValueHint::AnyPath)]
    verify: Option<PathBuf>,

    /// Throw bodies away unread, so that the server is what is measured
    ///
    /// The kernel discards what comes behind a response's head (MSG_TRUNC). Over TLS that is neither decrypted nor
    /// authenticated: of kept connections the records' headers are read, to find where a response ends; with --close
    /// everything up to the end of the connection is discarded, and a response counts as whole if at least as many
    /// bytes came as its head announced.
    #[arg(long, conflicts_with = "verify", help_heading = "Bodies")]
    discard: bool,

    /// Ask the kernel again and again instead of sleeping: nobody has to wake this process
    #[arg(long, help_heading = "Sockets")]
    spin: bool,

    /// Receive buffer of each connection, like 32KiB (the kernel doubles it) [default: the kernel's, which grows]
    #[arg(long, value_name = "SIZE", value_parser = receive_buffer, help_heading = "Sockets")]
    receive_buffer: Option<u32>,

    /// The largest segment that the server may send, in bytes: 1448 as on an Ethernet [default: the path's]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(88..=65_483), help_heading = "Sockets")]
    mss: Option<u32>,

    /// The one TLS version to offer [default: both]
    #[arg(long, value_name = "VERSION", help_heading = "TLS", value_parser = one_of(VERSION_NAMES, parse_version))]
    tls: Option<Version>,

    /// Cipher suites to offer, most preferred first, by OpenSSL's or IANA's names, separated by , or :
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    cipher: Option<CipherSuites>,

    /// Key exchange groups to offer: X25519MLKEM768, X25519, P-256, P-384, separated by , or :
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    group: Option<Groups>,

    /// Resume sessions, of connections that were closed
    #[arg(long, help_heading = "TLS")]
    resume: bool,

    /// Make a full handshake for each connection (the default)
    #[arg(long, conflicts_with = "resume", help_heading = "TLS")]
    no_resume: bool,

    /// Take any certificate
    #[arg(long, help_heading = "TLS")]
    insecure: bool,

    /// Trust the certificates in FILE (PEM) [default: the system's authorities]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = "TLS", value_hint = clap::ValueHint::FilePath)]
    ca: Option<PathBuf>,

    /// Certificate chain (PEM) that is shown to servers that ask for one
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "TLS", value_hint = clap::ValueHint::FilePath)]
    cert: Option<PathBuf>,

    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "TLS", value_hint = clap::ValueHint::FilePath)]
    key: Option<PathBuf>,

    /// How much a READ of NFS asks for, like 4KiB [default: 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = block, help_heading = "NFS")]
    block: Option<u32>,

    /// Which bytes READs ask for: the file from end to end, blocks of it at random, or as many bytes from anywhere
    #[arg(long, value_name = "ORDER", value_enum, help_heading = "NFS")]
    order: Option<OrderChoice>,

    /// READs under way on each connection [default: 1]
    #[arg(long, value_name = "N", help_heading = "NFS")]
    depth: Option<u32>,

    /// RPC-with-TLS, or none, as mount calls it [default: tls]
    #[arg(long, value_name = "SECURITY", value_enum, help_heading = "NFS")]
    xprtsec: Option<Security>,

    /// The version of NFS [default: 4.2]
    #[arg(long, value_name = "VERSION", value_enum, help_heading = "NFS")]
    vers: Option<NfsVersion>,

    /// Print the report as JSON (docs/schema/linerate-load-1.json)
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Print the report as a line of names and one of values
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    csv: bool,

    /// No progress line, which is shown on a terminal
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// A URL of either kind.
#[derive(Clone, Debug)]
enum Address {
    Http(Target),
    Nfs(NfsTarget),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let is_nfs = url.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("nfs"));
        if is_nfs { url.parse().map(Self::Nfs) } else { url.parse().map(Self::Http) }
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OrderChoice {
    Sequential,
    Random,
    Anywhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Security {
    None,
    Tls,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum NfsVersion {
    #[value(name = "4.1")]
    One,
    #[value(name = "4.2")]
    Two,
}

/// What a run asks for.
#[derive(Debug)]
enum Plan {
    Http(LoadPlan),
    Nfs(NfsPlan),
}

impl LoadArguments {
    fn plan(mut self) -> Result<Plan, LoadError> {
        let (mut http, mut nfs) = (Vec::new(), Vec::new());
        for url in std::mem::take(&mut self.urls) {
            match url {
                Address::Http(target) => http.push(target),
                Address::Nfs(target) => nfs.push(target),
            }
        }
        if nfs.is_empty() {
            self.refuse(&self.of_nfs(), "every URL is http or https")?;
            return Ok(Plan::Http(self.http(http)));
        }
        if !http.is_empty() {
            return Err(LoadError::Plan("one run is of HTTP or of NFS: give URLs of one kind".to_owned()));
        }
        self.refuse(&self.of_http(), "the URLs are nfs://")?;
        Ok(Plan::Nfs(self.nfs(nfs)))
    }

    /// Flags that were given and mean nothing here.
    fn refuse(&self, flags: &[(&'static str, bool)], because: &str) -> Result<(), LoadError> {
        match flags.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => {
                Err(LoadError::Plan(format!("{because}, so {flag} means nothing: leave it out")))
            }
        }
    }

    fn of_nfs(&self) -> [(&'static str, bool); 5] {
        [
            ("--block", self.block.is_some()),
            ("--order", self.order.is_some()),
            ("--depth", self.depth.is_some()),
            ("--xprtsec", self.xprtsec.is_some()),
            ("--vers", self.vers.is_some()),
        ]
    }

    fn of_http(&self) -> [(&'static str, bool); 9] {
        [
            ("--rate", self.rate.is_some()),
            ("--close", self.close),
            ("--once", self.once),
            ("--header", !self.headers.is_empty()),
            ("--range (--order and --block say which bytes)", self.range.is_some()),
            ("--discard", self.discard),
            ("--resume", self.resume),
            ("--no-resume", self.no_resume),
            ("--tls (RPC-with-TLS is TLS 1.3)", self.tls.is_some()),
        ]
    }

    fn nfs(self, targets: Vec<NfsTarget>) -> NfsPlan {
        let until = self.until();
        NfsPlan {
            connections: self.connections,
            threads: self.threads,
            depth: self.depth.unwrap_or(1),
            block_bytes: self.block.unwrap_or(1 << 20),
            order: match self.order {
                None | Some(OrderChoice::Sequential) => Order::Sequential,
                Some(OrderChoice::Random) => Order::Random,
                Some(OrderChoice::Anywhere) => Order::Anywhere,
            },
            tls: self.xprtsec != Some(Security::None),
            cipher_suites: self.cipher.map_or_else(Vec::new, |suites| suites.as_slice().to_vec()),
            groups: self.group.map_or_else(Vec::new, |groups| groups.as_slice().to_vec()),
            trust: trust(self.ca, self.insecure),
            identity: identity(self.cert, self.key),
            minor_version: match self.vers {
                Some(NfsVersion::One) => MinorVersion::One,
                None | Some(NfsVersion::Two) => MinorVersion::Two,
            },
            verify: self.verify,
            warm_up: self.warmup,
            spin: self.spin,
            shape: SocketShape { receive_buffer_bytes: self.receive_buffer, segment_bytes: self.mss },
            cpus: self.cpus.map_or(Vec::new(), |cpus| cpus.as_slice().to_vec()),
            timeout: self.timeout,
            command: command(),
            ..NfsPlan::new(targets, until)
        }
    }

    fn until(&self) -> Until {
        match self.requests {
            Some(requests) => Until::Requests(requests),
            None => Until::Time(self.duration.unwrap_or(Duration::from_secs(10))),
        }
    }

    fn http(self, targets: Vec<Target>) -> LoadPlan {
        LoadPlan {
            until: self.until(),
            targets,
            connections: self.connections,
            threads: self.threads,
            rate: self.rate,
            close: self.close,
            once: self.once,
            spin: self.spin,
            shape: SocketShape { receive_buffer_bytes: self.receive_buffer, segment_bytes: self.mss },
            resume: self.resume,
            version: self.tls,
            cipher_suites: self.cipher.map_or_else(Vec::new, |suites| suites.as_slice().to_vec()),
            groups: self.group.map_or_else(Vec::new, |groups| groups.as_slice().to_vec()),
            trust: trust(self.ca, self.insecure),
            identity: identity(self.cert, self.key),
            headers: self.headers,
            range: self.range,
            warm_up: self.warmup,
            cpus: self.cpus.map_or(Vec::new(), |cpus| cpus.as_slice().to_vec()),
            body: match self.verify {
                Some(place) => BodyUse::Verify(place),
                None if self.discard => BodyUse::Discard,
                None => BodyUse::Read,
            },
            timeout: self.timeout,
            command: command(),
        }
    }
}

fn trust(authorities: Option<PathBuf>, takes_any: bool) -> Trust {
    match authorities {
        Some(file) => Trust::File(file),
        None if takes_any => Trust::Anyone,
        None => Trust::System,
    }
}

/// What is shown to servers that ask for a certificate.
fn identity(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Option<CertificateFiles> {
    Some(CertificateFiles { certificate: certificate?, key: key? })
}

/// The command line, for the report.
fn command() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Makes the run and prints its report. The status tells whether all went well.
///
/// # Errors
/// There was no run, or the report cannot be written.
pub(crate) fn load(arguments: LoadArguments) -> Result<ExitCode, Box<dyn Error>> {
    let (json, csv) = (arguments.json, arguments.csv);
    let sayings = Sayings { progress: !arguments.quiet && io::stderr().is_terminal(), marks: json };
    let interrupt = interrupted_by_signals()?;
    let run = arguments.plan().and_then(|plan| match plan {
        Plan::Http(plan) => linerate_load::run(&plan, &interrupt, sayings),
        Plan::Nfs(plan) => nfs::run(&plan, &interrupt, sayings),
    });
    let report = match run {
        Err(LoadError::Plan(reason)) => return Err(UsageError::new("load", reason).into()),
        other => other?,
    };
    crate::output::print(printed(&report, json, csv).as_bytes())?;
    if !report.errors.is_empty() {
        if json || csv {
            let failures: u64 = report.errors.values().sum();
            let _ = writeln!(io::stderr(), "{failures} failures: {}", kinds(&report));
        }
        return Ok(ExitCode::from(FAILED));
    }
    Ok(ExitCode::SUCCESS)
}

fn printed(report: &LoadReport, json: bool, csv: bool) -> String {
    match (json, csv) {
        (true, _) => report.to_json(),
        (_, true) => csv::lines(report),
        _ => Summary(report).to_string(),
    }
}

fn kinds(report: &LoadReport) -> String {
    report.errors.iter().map(|(kind, count)| format!("{count} × {kind}")).collect::<Vec<_>>().join(", ")
}

/// Set by the first INT or TERM; the second ends the process.
pub(crate) fn interrupted_by_signals() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Looked at first, so it needs the flag of an earlier signal.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// As the configuration writes durations; a bare number is seconds, as wrk has it.
fn duration(text: &str) -> Result<Duration, linerate_config::Error> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = if bare { format!("{text}s") } else { text.to_owned() };
    parse_duration_ms(&text, 0..=LONGEST_MS).map(Duration::from_millis)
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as 'Name: value'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn receive_buffer(text: &str) -> Result<u32, linerate_config::Error> {
    parse_size_bytes(text, 1024..=1 << 30).map(|bytes| bytes as u32)
}

fn block(text: &str) -> Result<u32, String> {
    let bytes = match text.parse::<u64>() {
        Ok(bytes) => bytes,
        Err(_) => parse_size_bytes(text, 1..=u64::from(u32::MAX)).map_err(|error| error.to_string())?,
    };
    u32::try_from(bytes).ok().filter(|&bytes| bytes > 0).ok_or_else(|| format!("{text} is no size of a READ"))
}

fn range(text: &str) -> Result<RangeChoice, String> {
    let offset = |digits: &str| {
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten()
    };
    if let Some(size) = text.strip_prefix("random:") {
        let size_bytes = match offset(size) {
            Some(size_bytes) => size_bytes,
            None => parse_size_bytes(size, 1..=1 << 50).map_err(|error| error.to_string())?,
        };
        return Ok(RangeChoice::Random { size_bytes });
    }
    let fixed = text
        .split_once('-')
        .and_then(|(first, last)| Some(RangeChoice::Fixed { first: offset(first)?, last: offset(last)? }));
    fixed.ok_or_else(|| "write random:SIZE, like random:64KiB, or FIRST-LAST, like 0-1023".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_wrk_and_the_configuration_write_them() {
        for (text, ms) in [("10", 10_000), ("1500ms", 1500), ("2m", 120_000), ("0s", 0)] {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["", "-1", "1.5s", "8d", "s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(range("random:64KiB").unwrap(), RangeChoice::Random { size_bytes: 65_536 });
        assert_eq!(range("random:7").unwrap(), RangeChoice::Random { size_bytes: 7 });
        assert_eq!(range("0-9").unwrap(), RangeChoice::Fixed { first: 0, last: 9 });
        for text in ["", "5", "5-", "-5", "a-b", "random:", "random:x", "+1-2"] {
            assert!(range(text).is_err(), "{text}");
        }
        assert_eq!((block("4KiB").unwrap(), block("1001").unwrap()), (4096, 1001));
        for text in ["", "0", "-1", "5GiB", "x"] {
            assert!(block(text).is_err(), "{text}");
        }
        assert_eq!(header("A:  b c ").unwrap(), ("A".to_owned(), "b c".to_owned()));
        assert!(header("A").is_err());
    }
}
