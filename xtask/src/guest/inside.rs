//! The part that runs in the guest: starts a server, verifies a transfer, and makes others between two marks.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use linerate_bench::network::Network;
use linerate_bench::servers::process::RunningServer;
use linerate_os::kernel_tls::{Calls as _, System};

use super::client::channel::Dialer;
use super::client::counted::mark;
use super::client::discard::discard_all;
use super::client::verify::verify;
use super::client::{TlsOrder, Version, response};
use super::server::Setting;
use super::{Subject, Transfer, served_file};

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
    let network = Network::host([127, 0, 0, 1].into(), None);
    let setting = Setting::make(network, folder, options.linerate.clone())?;
    served_file::write(&setting.root.join("file.bin"), options.body_bytes, options.body_bytes)
        .context("cannot write the file to serve")?;
    let bench = Bench { setting, options };
    for subject in Subject::ALL {
        if subject == Subject::CipherAlone {
            bench.measure_cipher(subject)?;
            continue;
        }
        let server = subject.server().context("nobody serves that")?;
        match bench.setting.start(server, None) {
            Ok(server) => bench.measure(subject, &server).with_context(|| subject.title())?,
            Err(error) => eprintln!("SKIPPED: guest cost: {}: {error:#}", subject.title()),
        }
    }
    Ok(())
}

struct Bench<'a> {
    setting: Setting,
    options: &'a Options,
}

impl Bench<'_> {
    /// One verified transfer, which also warms whatever can be warmed, and then the counted ones.
    fn measure(&self, subject: Subject, server: &RunningServer) -> Result<()> {
        let tls = (!subject.is_plain()).then(|| TlsOrder {
            certificate: self.setting.certificate.chain.clone(),
            version: Version::Tls13,
        });
        let dialer = Dialer::new(server.address, tls.as_ref())?;
        let before = kernel_connections()?;
        let verified_wire_bytes = verify(&dialer, "/file.bin", &self.setting.root.join("file.bin"))?;
        for _ in 0..self.options.transfers {
            self.transfer(&dialer, verified_wire_bytes)?;
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
        let request = response::request(&dialer.host(), "/file.bin", true);
        let mut scratch = vec![0; 1 << 20];
        mark();
        channel.send(request.as_bytes())?;
        let discarded = discard_all(&channel.stream.socket, &mut scratch);
        mark();
        let received = discarded? + channel.stream.received;
        if received.abs_diff(verified_wire_bytes) > 4096 + verified_wire_bytes / 1000 {
            bail!("a transfer took {received} bytes, the verified one {verified_wire_bytes}");
        }
        Ok(())
    }
}

/// Connections that were handed over to the kernel's own code so far in this network namespace.
fn kernel_connections() -> Result<u64> {
    let handed_over = System.handed_over().context("this kernel has no TLS")?;
    Ok(handed_over.to_software)
}
