//! `cargo xtask guest cost --wire --streams`: what a byte of `linerate stream` costs its sender, by engine and by I/O size.
//!
//! The sender is a process of its own, in the guest. What is counted is windows of its running, so that its beginning
//! and the handshakes are in no figure. The listener that receives is on the host, across the virtio
//! adapter. For the nic engine there is a second guest with the software adapter, whose far end is in the guest, too: there the
//! receiver's CPU time is subtracted. [`inside`] is the part in the guest, [`table`] makes the tables.

mod inside;
mod row;
mod table;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use linerate_bench::network::VETH_CLIENT;
use serde::{Deserialize, Serialize};

pub(super) use inside::{Options as InsideOptions, run as run_inside};
pub(super) use row::IO_SIZES_BYTES;
use row::Row;

use super::counted_guest::{CountedGuests, Limits};
use super::wire::adapter::{Facts, Sent};
use super::wire::tap;

/// Every point of a kernel takes about a quarter of an hour where nothing else runs.
const LIMITS: Limits = Limits { seconds: 3600, memory_mib: 2048 };

/// What is counted, as the command line has it.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// The linerate binary.
    pub(super) linerate: PathBuf,
    /// Bytes that a window has at least.
    pub(super) body_bytes: u64,
    /// Windows of each point.
    pub(super) transfers: u32,
    /// I/O sizes in bytes.
    pub(super) io_sizes_bytes: Vec<u32>,
    /// MTU of the virtio adapter.
    pub(super) mtu_bytes: u32,
}

/// What the guest says: lines of JSON, in the order of the plugin's marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Line {
    /// How it sends. No marks.
    Wire(Facts),
    /// The network between both ends in the guest. No marks.
    SoftwareAdapter(String),
    /// Two marks around a window.
    Window(Window),
    /// What became of a row's lent memory, at one I/O size. No marks.
    Lent { row: Row, lent: Lent },
}

/// A part of a run of `linerate stream`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Window {
    row: Row,
    io_bytes: u32,
    /// By the sender's adapter.
    sent: Sent,
    /// CPU time of the receiver, where it is in the guest, without what the adapter's model did in it.
    receiver_ns: u64,
    /// Where there is TLS: 1.2 in place of 1.3.
    is_tls_1_2: bool,
}

impl Window {
    /// Bytes of the application, from those of the adapter: a frame has headers of Ethernet (14), IPv4 (20) and TCP with
    /// timestamps (32), a record 22 bytes or with TLS 1.2 29 (RFC 8446 section 5.2, RFC 5288 section 3).
    fn payload_bytes(&self) -> f64 {
        const HEADER_BYTES: u64 = 66;
        const RECORD_BYTES: u32 = 1 << 14;
        let stream_bytes = self.sent.bytes.saturating_sub(HEADER_BYTES * self.sent.frames) as f64;
        if self.row.engine() == "plain" {
            return stream_bytes;
        }
        let plaintext_bytes = f64::from(self.io_bytes.min(RECORD_BYTES));
        let extra_bytes = if self.is_tls_1_2 { 29.0 } else { 22.0 };
        stream_bytes * plaintext_bytes / (plaintext_bytes + extra_bytes)
    }
}

/// What became of lent memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Lent {
    sends: u64,
    completed: u64,
    copied: u64,
    refused: u64,
}

impl std::iter::Sum for Lent {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, lent| Self {
            sends: sum.sends + lent.sends,
            completed: sum.completed + lent.completed,
            copied: sum.copied + lent.copied,
            refused: sum.refused + lent.refused,
        })
    }
}

/// Counts on one kernel; gives the tables. This process is alone in its network namespace, which has the tap device.
pub(super) fn count(
    wanted: &Wanted,
    kernel: &str,
    guests: &CountedGuests,
    workspace: &Path,
) -> Result<String> {
    let share = workspace.join("target/guest").join(format!("wire-{kernel}"));
    fs::create_dir_all(&share).with_context(|| format!("cannot create {}", share.display()))?;
    let secret = share.join("secret");
    write_secret(&secret)?;
    let listening = Listening::start(&wanted.linerate, VETH_CLIENT.into(), &secret, &share)?;
    let flags = |place: [&str; 2]| -> Vec<_> {
        let [bytes, transfers, mtu] = [wanted.body_bytes, wanted.transfers.into(), wanted.mtu_bytes.into()]
            .map(|number| number.to_string());
        let mut words = vec!["streams-inside".into(), "--linerate".into(), wanted.linerate.clone().into()];
        let numbers = ["--body-bytes", &bytes, "--transfers", &transfers, "--mtu-bytes", &mtu];
        words.extend(numbers.into_iter().chain(place).map(Into::into));
        words.extend(["--secret".into(), secret.clone().into()]);
        let sizes = wanted.io_sizes_bytes.iter();
        words.extend(sizes.flat_map(|size| ["--io-size".into(), size.to_string().into()]));
        words
    };
    let on_wire = guests.clone().with_flags(tap::guest_flags(&share)).run(
        kernel,
        &format!("wire-{kernel}"),
        LIMITS,
        &flags(["--listener", &listening.address.to_string()]),
    )?;
    let mut text = table::of(&on_wire)?;
    let module = workspace.join("target/guest/kernels").join(kernel).join("nic/linerate_nic.ko");
    if module.is_file() {
        let module = module.display().to_string();
        let through_adapter =
            guests.run(kernel, &format!("streams-{kernel}"), LIMITS, &flags(["--module", &module]))?;
        text = text + "\n" + &table::of(&through_adapter)?;
    } else {
        eprintln!("SKIPPED: guest cost: the nic engine: no software adapter for {kernel} (make nic)");
    }
    Ok(text)
}

/// A listener, ended with the value.
#[derive(Debug)]
struct Listening {
    child: Child,
    address: SocketAddr,
}

impl Listening {
    fn start(program: &Path, ip: IpAddr, secret: &Path, folder: &Path) -> Result<Self> {
        Self::run(vec![program.to_string_lossy().into_owned()], ip, secret, folder)
    }

    /// `words` are the program, with what it is started by.
    fn run(mut words: Vec<String>, ip: IpAddr, secret: &Path, folder: &Path) -> Result<Self> {
        let address = SocketAddr::new(ip, 0).to_string();
        words.extend(["stream", "--listen", &address, "--secret"].map(str::to_owned));
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .arg(secret)
            .env("STATE_DIRECTORY", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", words.join(" ")))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ").and_then(|address| address.parse().ok());
        match address {
            Some(address) => Ok(Self { child, address }),
            None => {
                // It may have ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                bail!("the listener said {line:?}")
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Random digits that both ends know.
fn write_secret(path: &Path) -> Result<()> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(file.write_all(digits.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_has_what_headers_and_records_leave() {
        let sent =
            Sent { frames: 2, bytes: 2 * 66 + 2 * 1046, received_frames: 0, retransmitted_segments: 0 };
        let window = |row, is_tls_1_2| Window { row, io_bytes: 1024, sent, receiver_ns: 0, is_tls_1_2 };
        assert_eq!(window(Row::Plain, false).payload_bytes(), 2092.0);
        assert_eq!(window(Row::User, false).payload_bytes(), 2048.0);
        assert!(window(Row::Nic, true).payload_bytes() < 2048.0);
    }
}
