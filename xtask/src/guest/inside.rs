//! The part that runs in the guest: starts a server, verifies a transfer, and makes others between two marks.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::{Subject, Transfer, served_file};
use crate::peers::certificate::{self, Certificate};
use crate::peers::clients::channel::Dialer;
use crate::peers::clients::counted::mark;
use crate::peers::clients::discard::discard_all;
use crate::peers::clients::response;
use crate::peers::clients::verify::Verify;
use crate::peers::clients::{Job, Order, TlsOrder, Version};
use crate::peers::network::{Link, Network};
use crate::peers::options::{CertificateKind, Cipher, ClientWait};
use crate::peers::servers::linerate::Linerate;
use crate::peers::servers::nginx::Nginx;
use crate::peers::servers::{RunningServer, Setting};

/// The plaintext of a full record.
const RECORD_BYTES: u64 = 1 << 14;

/// Flags of the part in the guest.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// The server's binary.
    #[arg(long)]
    linerate: PathBuf,
    /// Length of each transfer.
    #[arg(long)]
    body_bytes: u64,
    /// Transfers of each kind.
    #[arg(long)]
    transfers: u32,
}

/// Measures all subjects. One that cannot be started is left out, with its reason on standard error.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = std::env::temp_dir().join("cost");
    let root = folder.join("files");
    fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
    served_file::write(&root.join("file.bin"), options.body_bytes, options.body_bytes)
        .context("cannot write the file to serve")?;
    let bench = Bench {
        link: Link::up(Network::Loopback)?,
        certificate: certificate::prepare(&folder, CertificateKind::Ecdsa)?,
        root,
        folder,
        options,
    };
    for subject in Subject::ALL {
        if subject == Subject::CipherAlone {
            bench.measure_cipher(subject)?;
            continue;
        }
        match bench.start(subject) {
            Ok(server) => bench.measure(subject, &server).with_context(|| subject.title())?,
            Err(error) => eprintln!("SKIPPED: guest cost: {}: {error:#}", subject.title()),
        }
    }
    Ok(())
}

struct Bench<'a> {
    link: Link,
    certificate: Certificate,
    root: PathBuf,
    folder: PathBuf,
    options: &'a Options,
}

impl Bench<'_> {
    fn start(&self, subject: Subject) -> Result<RunningServer> {
        let setting = Setting {
            link: &self.link,
            root: &self.root,
            certificate: &self.certificate,
            cipher: Cipher::Aes256Gcm,
            cpu: 0,
            run_folder: &self.folder,
        };
        if subject.is_nginx() {
            let nginx = Nginx::of_host()?;
            return if subject.is_kernel() { nginx.with_kernel_tls() } else { nginx }.start(&setting);
        }
        let engine = if subject.is_kernel() { "kernel" } else { "user" };
        let flags = ["--engine", engine].map(str::to_owned);
        Linerate::find(Some(&self.options.linerate), &flags, Path::new("/"))?.start(&setting)
    }

    /// One verified transfer, which also warms whatever can be warmed, and then the counted ones.
    fn measure(&self, subject: Subject, server: &RunningServer) -> Result<()> {
        let file = self.root.join("file.bin");
        let verify = Verify { path: "/file.bin".into(), file, span: None };
        let endpoints = server.endpoints;
        let order = Order {
            server: if subject.is_plain() { endpoints.plain } else { endpoints.tls },
            tls: (!subject.is_plain()).then(|| TlsOrder {
                certificate: self.certificate.chain.clone(),
                cipher: Cipher::Aes256Gcm,
                version: Version::Tls13,
            }),
            job: Job::Verify(verify.clone()),
        };
        let dialer = Dialer::new(&order)?;
        let before = kernel_connections()?;
        let verified = verify.run(&dialer)?;
        for _ in 0..self.options.transfers {
            self.transfer(&dialer, verified.wire_bytes)?;
            self.report(subject)?;
        }
        let by_kernel = kernel_connections()? - before;
        let expected = if subject.is_kernel() { u64::from(self.options.transfers) + 1 } else { 0 };
        // linerate's self-test at its start is counted, too, and may still be going on.
        let is_right = if subject.is_kernel() { by_kernel >= expected } else { by_kernel == 0 };
        if !is_right {
            bail!("the kernel encrypted {by_kernel} connections, {expected} were to be (TlsTxSw)");
        }
        Ok(())
    }

    /// The cipher without anything around it: records of 2^14 bytes, in place and in the cache.
    fn measure_cipher(&self, subject: Subject) -> Result<()> {
        let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).map(LessSafeKey::new)?;
        let mut record = vec![7; RECORD_BYTES as usize];
        for _ in 0..self.options.transfers {
            mark();
            let mut left_bytes = self.options.body_bytes;
            while left_bytes > 0 {
                let bytes = left_bytes.min(RECORD_BYTES);
                let nonce = Nonce::assume_unique_for_key(std::array::from_fn(|_| left_bytes as u8));
                let tag =
                    key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut record[..bytes as usize])?;
                let _ = std::hint::black_box(tag);
                left_bytes -= bytes;
            }
            mark();
            self.report(subject)?;
        }
        Ok(())
    }

    fn report(&self, subject: Subject) -> Result<()> {
        let transfer = Transfer { subject, body_bytes: self.options.body_bytes };
        let mut output = std::io::stdout().lock();
        writeln!(output, "{}", serde_json::to_string(&transfer)?)?;
        Ok(output.flush()?)
    }

    /// A transfer on a connection of its own, its bytes thrown away unread; marks before the request and after the
    /// end.
    fn transfer(&self, dialer: &Dialer, verified_wire_bytes: u64) -> Result<()> {
        let mut channel = dialer.connect()?;
        let request = response::request(&dialer.host(), "/file.bin", None, true);
        let mut scratch = vec![0; 1 << 20];
        mark();
        channel.send(request.as_bytes())?;
        let discarded = discard_all(&channel.stream.socket, ClientWait::Sleep, &mut scratch);
        mark();
        let received = discarded?.bytes + channel.stream.received;
        if received.abs_diff(verified_wire_bytes) > 4096 + verified_wire_bytes / 1000 {
            bail!("a transfer took {received} bytes, the verified one {verified_wire_bytes}");
        }
        Ok(())
    }
}

/// Connections that the kernel has encrypted for so far in this network namespace.
fn kernel_connections() -> Result<u64> {
    let statistics =
        fs::read_to_string("/proc/net/tls_stat").context("this kernel has no TLS: no /proc/net/tls_stat")?;
    let line = statistics.lines().find_map(|line| line.strip_prefix("TlsTxSw"));
    line.and_then(|value| value.trim().parse().ok()).context("/proc/net/tls_stat has no TlsTxSw")
}
