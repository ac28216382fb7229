//! The part in the guest: runs `linerate stream`, and counts windows of it between marks.
//!
//! A process takes hundreds of millions of instructions to begin, most of them for entropy, and never the same number. So
//! nothing of its beginning is in a window: marks are made while it sends, and the adapter's counters are read at once behind each.
//! It is not stopped for that, because the other end ends a run of which it hears nothing.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use linerate_bench::network::{ADAPTER, Network, VETH_CLIENT};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use super::row::Row;
use super::{Lent, Line, Listening, Window};
use crate::guest::client::counted::mark;
use crate::guest::in_memory::in_memory;
use crate::guest::never_lose::Counters;
use crate::guest::say;
use crate::guest::served_file;
use crate::guest::wire::adapter::{Adapter, Sent};

/// What has been sent before the first window. The congestion window has grown by then.
const WARM_UP_BYTES: u64 = 2 << 20;
/// What a sent file has; it is sent again and again.
const FILE_BYTES: u64 = 4 << 20;
/// How often it is looked how much a window has.
const LOOK: Duration = Duration::from_millis(20);
/// How long a sender may take for its beginning, or for a window.
const PATIENCE: Duration = Duration::from_secs(300);
/// A window in which TCP sent anything again is repeated; so many in a row are a fault.
const ATTEMPTS: u32 = 6;
/// The cipher of all tables about guests.
const CIPHER: &str = "AES-256-GCM";

/// Flags of the part in the guest.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// The linerate binary.
    #[arg(long)]
    linerate: PathBuf,
    /// What both ends know.
    #[arg(long)]
    secret: PathBuf,
    /// Bytes that a window has at least.
    #[arg(long)]
    body_bytes: u64,
    /// Windows of each point.
    #[arg(long)]
    transfers: u32,
    /// I/O sizes in bytes.
    #[arg(long)]
    io_size: Vec<u32>,
    /// MTU of the virtio adapter.
    #[arg(long)]
    mtu_bytes: u32,
    /// The listener on the host, across the virtio adapter.
    #[arg(long, required_unless_present = "module")]
    listener: Option<SocketAddr>,
    /// The software adapter's module: both ends are in the guest.
    #[arg(long, conflicts_with = "listener")]
    module: Option<PathBuf>,
}

/// Measures every row. One that cannot be had is left out, with its reason on standard error.
pub(crate) fn run(options: &Options) -> Result<()> {
    let here = in_memory(&std::env::current_exe().context("cannot find this program")?)?;
    if let Some(here) = here {
        // Before all that has no such priority: the plugin takes nothing for a mark that the sender runs in the middle of.
        let mut first = Command::new("chrt");
        first.args(["--reset-on-fork", "--fifo", "1"]).arg(here).args(std::env::args_os().skip(1));
        return Err(anyhow::Error::from(first.exec()).context("cannot run chrt (of util-linux)"));
    }
    let linerate = in_memory(&options.linerate)?.unwrap_or_else(|| options.linerate.clone());
    let file = std::env::temp_dir().join("sent.bin");
    served_file::write(&file, FILE_BYTES, FILE_BYTES).context("cannot write the file to send")?;
    match (&options.module, options.listener) {
        (Some(module), _) => {
            let network = Network::through_adapter(module, &[])?;
            say(&Line::SoftwareAdapter(network.used().path))?;
            let program = network.at_client(vec![linerate.to_string_lossy().into_owned()]);
            let folder = std::env::temp_dir();
            let receiver = Listening::run(program, VETH_CLIENT.into(), &options.secret, &folder)?;
            // Linux' drivers take TLS 1.2.
            let (listener, receiver, tls) = (receiver.address, Some(&receiver), "1.2");
            let interface = ADAPTER.to_owned();
            Bench { options, linerate, file, listener, receiver, tls, interface }
                .measure(&Row::SOFTWARE_ADAPTER)
        }
        (None, Some(listener)) => {
            let adapter = Adapter::bring_up(options.mtu_bytes)?;
            say(&Line::Wire(adapter.facts()?))?;
            let interface = adapter.interface().to_owned();
            Bench { options, linerate, file, listener, receiver: None, tls: "1.3", interface }
                .measure(&Row::WIRE)
        }
        (None, None) => bail!("nobody listens"),
    }
}

struct Bench<'a> {
    options: &'a Options,
    linerate: PathBuf,
    file: PathBuf,
    listener: SocketAddr,
    /// Where it is in the guest.
    receiver: Option<&'a Listening>,
    tls: &'static str,
    /// What the sender sends by.
    interface: String,
}

/// The counters of a moment.
#[derive(Debug, Clone, Copy)]
struct Moment {
    sent: Sent,
    /// CPU time of the receiver, where it is in the guest.
    receiver_ns: u64,
}

impl Bench<'_> {
    fn measure(&self, rows: &[Row]) -> Result<()> {
        for &row in rows {
            if let Err(reason) = self.verify(row) {
                eprintln!("SKIPPED: guest cost: {}: {reason:#}", row.title());
                continue;
            }
            for &io_bytes in &self.options.io_size {
                let counted = self.count(row, io_bytes);
                counted.with_context(|| format!("{}, I/Os of {io_bytes} bytes", row.title()))?;
            }
        }
        Ok(())
    }

    /// A run that is not counted, in which every byte is verified, where no file is sent.
    fn verify(&self, row: Row) -> Result<()> {
        let mut command = self.command(row, 10_000);
        command.args(["-n", "1000001"]).args((!row.sends_file()).then_some("--verify"));
        let output = command.output().context("cannot run linerate stream")?;
        if !output.status.success() {
            bail!("linerate stream: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    fn command(&self, row: Row, io_bytes: u32) -> Command {
        let mut command = Command::new(&self.linerate);
        command.args(["stream", &self.listener.to_string(), "--json", "-i", "0", "--engine", row.engine()]);
        command.args(["-l", &io_bytes.to_string(), "--secret"]).arg(&self.options.secret);
        if row.engine() != "plain" {
            command.args(["--tls", self.tls, "--cipher", CIPHER]);
        }
        if row.lends() {
            command.arg("--zero-copy-send");
        }
        if row.sends_file() {
            command.arg("--sendfile").arg(&self.file);
        }
        command.env("STATE_DIRECTORY", std::env::temp_dir()).stdin(Stdio::null());
        command
    }

    fn count(&self, row: Row, io_bytes: u32) -> Result<()> {
        let mut command = self.command(row, io_bytes);
        let before_bytes = self.moment()?.sent.bytes;
        // What it complains of goes where this part's own complaints go.
        let sender = command.args(["-t", "1h"]).stdout(Stdio::piped()).spawn();
        let mut sender = Sending(sender.context("cannot run linerate stream")?);
        self.wait_for(before_bytes + WARM_UP_BYTES, &mut sender)?;
        for _ in 0..self.options.transfers {
            self.window(row, io_bytes, &mut sender)?;
        }
        sender.interrupt()?;
        let lent = sender.said()?.lent();
        if row.lends() && (lent.sends == 0 || lent.completed != lent.sends) {
            bail!("{} sends lent memory, {} are complete", lent.sends, lent.completed);
        }
        say(&Line::Lent { row, lent })
    }

    /// One that is counted.
    fn window(&self, row: Row, io_bytes: u32, sender: &mut Sending) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let model_before_ns = self.model_in_receiver_ns()?;
            mark();
            let before = self.moment();
            let waited = before
                .as_ref()
                .ok()
                .map(|before| self.wait_for(before.sent.bytes + self.options.body_bytes, sender));
            mark();
            let (before, after) = (before?, self.moment()?);
            waited.transpose()?;
            let model_ns = self.model_in_receiver_ns()? - model_before_ns;
            let sent = after.sent.after(&before.sent);
            let receiver_ns = (after.receiver_ns - before.receiver_ns).saturating_sub(model_ns);
            let is_tls_1_2 = self.tls == "1.2";
            say(&Line::Window(Window { row, io_bytes, sent, receiver_ns, is_tls_1_2 }))?;
            if sent.retransmitted_segments == 0 {
                return Ok(());
            }
        }
        bail!("TCP sent segments again in each of {ATTEMPTS} windows");
    }

    /// What the software adapter's model did so far in the time of the receiver.
    fn model_in_receiver_ns(&self) -> Result<u64> {
        if self.receiver.is_some() { Ok(Counters::read()?.model_elsewhere_ns) } else { Ok(0) }
    }

    /// Until the interface has sent so many bytes.
    fn wait_for(&self, bytes: u64, sender: &mut Sending) -> Result<()> {
        let began = Instant::now();
        while self.counter("tx_bytes")? < bytes {
            if let Some(status) = sender.0.try_wait()? {
                let reason = sender.said()?.error.unwrap_or_default();
                bail!("the sender has ended ({status}): {reason}");
            }
            if began.elapsed() > PATIENCE {
                bail!("the sender does not send");
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn moment(&self) -> Result<Moment> {
        let sent = Sent {
            frames: self.counter("tx_packets")?,
            bytes: self.counter("tx_bytes")?,
            received_frames: self.counter("rx_packets")?,
            retransmitted_segments: retransmitted_segments(&fs::read_to_string("/proc/net/snmp")?)?,
        };
        let receiver_ns = match self.receiver {
            Some(receiver) => cpu_ns(receiver.child.id())?,
            None => 0,
        };
        Ok(Moment { sent, receiver_ns })
    }

    fn counter(&self, name: &str) -> Result<u64> {
        let file = format!("/sys/class/net/{}/statistics/{name}", self.interface);
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
        text.trim().parse().with_context(|| format!("{file} has {text:?}"))
    }
}

/// `RetransSegs` of /proc/net/snmp: a line of names, and one of values.
fn retransmitted_segments(snmp: &str) -> Result<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp: "));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut pairs = names.split(' ').zip(values.split(' '));
    let value = pairs.find_map(|(name, value)| (name == "RetransSegs").then_some(value));
    value.and_then(|value| value.parse().ok()).context("/proc/net/snmp has no RetransSegs")
}

/// CPU time of a process, to the nanosecond: the guest's clock is the count of instructions.
fn cpu_ns(process: u32) -> Result<u64> {
    let mut sum_ns = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        sum_ns += first.with_context(|| format!("schedstat has {text:?}"))?;
    }
    Ok(sum_ns)
}

/// A sender, ended with the value.
struct Sending(Child);

impl Sending {
    /// As by Ctrl-C: it ends, and says what it did.
    fn interrupt(&self) -> Result<()> {
        let process = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).context("no process")?;
        Ok(kill_process(process, Signal::INT)?)
    }

    /// What it says at its end.
    fn said(&mut self) -> Result<Said> {
        let mut printed = String::new();
        self.0.stdout.take().context("no output")?.read_to_string(&mut printed)?;
        serde_json::from_str(&printed).with_context(|| format!("linerate stream said {printed:?}"))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Of docs/schema/linerate-stream-1.json, what is needed here.
#[derive(Debug, Deserialize)]
struct Said {
    end: End,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct End {
    streams: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    sender: Option<Sender>,
}

#[derive(Debug, Deserialize)]
struct Sender {
    lent: Option<Lent>,
}

impl Said {
    fn lent(&self) -> Lent {
        self.end.streams.iter().filter_map(|pair| pair.sender.as_ref()?.lent).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_stand_below_their_name() {
        let text =
            "Ip: Forwarding\nIp: 1\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 7 0\nUdp: InDatagrams\nUdp: 3\n";
        assert_eq!(retransmitted_segments(text).unwrap(), 7);
        assert!(retransmitted_segments("Tcp: RtoMin\nTcp: 200\n").is_err());
    }

    #[test]
    fn lent_memory_is_that_of_all_streams() {
        let stream = r#"{"sender": {"lent": {"sends": 3, "completed": 2, "copied": 1, "refused": 4}}}"#;
        let text = format!(r#"{{"end": {{"streams": [{stream}, {{"sender": null}}, {stream}]}}}}"#);
        let said: Said = serde_json::from_str(&text).unwrap();
        assert_eq!(said.lent(), Lent { sends: 6, completed: 4, copied: 2, refused: 8 });
    }
}
