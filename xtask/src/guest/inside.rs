//! The part that runs in the guest: starts a server, has the client verify a transfer, and marks where others begin and end.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use linerate_bench::network::Network;
use linerate_bench::servers::process::RunningServer;
use linerate_os::kernel_tls::{Calls as _, System};

use super::client::counted::mark;
use super::client::steps::{Fetcher, Served, ServedByNfs, Step};
use super::sender::{Content, Sender, Way};
use super::server::Setting;
use super::subject::NfsKind;
use super::wire::adapter::{Adapter, Sent};
use super::wire::control::ControlConnection;
use super::wire::esp::{Association, ESP_SERVER, Mode};
use super::{Line, Subject, Transfer, nfs, say, served_file};

/// The plaintext of a full record.
const RECORD_BYTES: u64 = 1 << 14;

/// A transfer in which TCP sent anything again is repeated; so many in a row are a fault.
const ATTEMPTS: u32 = 4;

/// The client's handshake ends before the server's does, which has tickets to make. The count begins when that is over.
const HANDSHAKE_END: Duration = Duration::from_millis(100);

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
    /// The client is at this address of the host's, across the adapter; without it, here.
    #[arg(long)]
    client: Option<SocketAddr>,
    /// Only the senders that no server is around.
    #[arg(long)]
    senders: bool,
    /// Only NFS; knfsd's programs are here.
    #[arg(long)]
    nfs_tree: Option<PathBuf>,
    /// MTU of the adapter, in bytes.
    #[arg(long)]
    mtu_bytes: u32,
}

/// Measures all subjects. One that cannot be started is left out, with its reason on standard error.
pub(crate) fn run(options: &Options) -> Result<()> {
    let adapter = options.client.map(|_| Adapter::bring_up(options.mtu_bytes)).transpose()?;
    let network = match &adapter {
        Some(adapter) => {
            say(&Line::Adapter(adapter.facts()?))?;
            adapter.network()
        }
        None => Network::host([127, 0, 0, 1].into(), None),
    };
    let setting = Setting::make(network, std::env::temp_dir().join("cost"), options.linerate.clone())?;
    let mut file = setting.root.join("file.bin");
    served_file::write(&file, options.body_bytes, options.body_bytes)
        .context("cannot write the file to serve")?;
    let mut certificate = setting.certificate.chain.clone();
    let carry_out: CarryOut = match options.client {
        Some(client) => {
            file = for_the_host(&file)?;
            certificate = for_the_host(&certificate)?;
            let mut control = ControlConnection::open(client)?;
            Box::new(move |step| control.carry_out(step))
        }
        None => {
            let mut fetcher = Fetcher::new();
            Box::new(move |step| fetcher.carry_out(step))
        }
    };
    let mut bench = Bench { setting, options, adapter, carry_out, file, certificate };
    for subject in Subject::ALL {
        if subject == Subject::CipherAlone {
            bench.measure_cipher(subject)?;
            continue;
        }
        if let Some(mode) = subject.esp() {
            // Where the client is in the guest, too, there is no wire. ESP's senders are the last: the address stays.
            if bench.adapter.is_none()
                || options.senders
                || subject.nfs().is_some() != options.nfs_tree.is_some()
            {
                continue;
            }
            bench.protect(mode).with_context(|| subject.title())?;
        }
        if let Some(kind) = subject.nfs() {
            if let Some(tree) = &options.nfs_tree {
                bench.measure_nfs(subject, kind, tree).with_context(|| subject.title())?;
            }
            continue;
        }
        if options.nfs_tree.is_some() {
            continue;
        }
        if let Some(kind) = subject.sender() {
            // Over loopback the kernel copies what it was lent.
            if bench.adapter.is_some() {
                bench.measure_sender(subject, kind).with_context(|| subject.title())?;
            }
            continue;
        }
        if options.senders {
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

/// Puts a copy where the host has it by the same name.
fn for_the_host(file: &Path) -> Result<PathBuf> {
    let share = std::env::var_os("GUEST_SHARE").context("GUEST_SHARE is not set: this is no guest")?;
    let copy = PathBuf::from(share).join(file.file_name().context("the file has no name")?);
    fs::copy(file, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
    Ok(copy)
}

/// Has the client carry out a step, wherever it is.
type CarryOut = Box<dyn FnMut(&Step) -> Result<()>>;

struct Bench<'a> {
    setting: Setting,
    options: &'a Options,
    /// Where the client is not in the guest.
    adapter: Option<Adapter>,
    carry_out: CarryOut,
    /// As the client can read them.
    file: PathBuf,
    certificate: PathBuf,
}

impl Bench<'_> {
    /// One verified transfer, and then the counted ones.
    fn measure(&mut self, subject: Subject, server: &RunningServer) -> Result<()> {
        let served = Served {
            address: server.address,
            certificate: (!subject.is_plain()).then(|| self.certificate.clone()),
            file: self.file.clone(),
        };
        let before = kernel_connections()?;
        (self.carry_out)(&Step::Verify(served))?;
        for _ in 0..self.options.transfers {
            self.transfer(subject)?;
        }
        let by_kernel = kernel_connections()? - before;
        let expected = if subject.is_kernel() { u64::from(self.options.transfers) + 1 } else { 0 };
        // linerate's self-test at its start is counted, too, and may still be going on.
        let is_right = if subject.is_kernel() { by_kernel >= expected } else { by_kernel == 0 };
        if !is_right {
            bail!("the kernel encrypted {by_kernel} connections, {expected} were to be (TlsTxSw)");
        }
        self.expect_esp(subject)
    }

    /// Fails if ESP was to carry the transfers, and has not.
    fn expect_esp(&self, subject: Subject) -> Result<()> {
        let expected_bytes = u64::from(self.options.transfers) * self.options.body_bytes;
        if subject.esp().is_some() && Association::carried_bytes()? < expected_bytes {
            bail!("ESP has not carried the transfers");
        }
        Ok(())
    }

    /// As [`Bench::measure`], for a sender; one that cannot be started is left out with its reason.
    fn measure_sender(&mut self, subject: Subject, kind: (Content, Way)) -> Result<()> {
        let address = self.setting.network.server_address();
        let file = self.setting.root.join("file.bin");
        let sender = match Sender::start(subject.title(), address, &file, kind) {
            Ok(sender) => sender,
            Err(error) => {
                eprintln!("SKIPPED: guest cost: {}: {error:#}", subject.title());
                return Ok(());
            }
        };
        let body = for_the_host(&sender.body)?;
        let served = Served { address: sender.address, certificate: None, file: body };
        (self.carry_out)(&Step::Verify(served))?;
        for _ in 0..self.options.transfers {
            self.transfer(subject)?;
        }
        Ok(())
    }

    /// As [`Bench::measure`], for a server of NFS.
    fn measure_nfs(&mut self, subject: Subject, kind: NfsKind, tree: &Path) -> Result<()> {
        let handshakes = (kind == NfsKind::Knfsd).then(|| nfs::Handshakes::start(&self.setting, tree));
        let _handshakes = handshakes.transpose()?;
        let server = nfs::Server::start(kind, &self.setting, tree)?;
        let file = self.file.file_name().and_then(|name| name.to_str()).context("the file has no name")?;
        let address = server.address;
        let served = ServedByNfs {
            url: format!("nfs://{address}/{file}"),
            certificate: (!subject.is_plain()).then(|| self.certificate.clone()),
            suite: subject.nfs_suite().to_owned(),
            file: self.file.clone(),
            body_bytes: self.options.body_bytes,
        };
        (self.carry_out)(&Step::VerifyNfs(served))?;
        for _ in 0..self.options.transfers {
            self.transfer(subject)?;
        }
        self.expect_esp(subject)
    }

    /// Has ESP carry what follows, under new keys, and servers listen on the address that it protects.
    fn protect(&mut self, mode: Mode) -> Result<()> {
        let adapter = self.adapter.as_ref().context("there is no adapter")?;
        let association = Association::make(mode, self.options.mtu_bytes)?;
        association.set_up_in_guest(adapter.interface())?;
        (self.carry_out)(&Step::Protect(association))?;
        let interface = adapter.interface().to_owned();
        self.setting.network = Network::host(ESP_SERVER.into(), Some(interface));
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
            self.report(subject, None)?;
        }
        Ok(())
    }

    /// A transfer on a connection of its own, between marks from before the request to after the end.
    fn transfer(&mut self, subject: Subject) -> Result<()> {
        for _ in 0..ATTEMPTS {
            (self.carry_out)(&Step::Connect)?;
            if self.adapter.is_some() {
                thread::sleep(HANDSHAKE_END);
                self.between_marks(&Step::Nothing)?;
                say(&Line::ControlLines(subject))?;
            }
            let meter = self.adapter.as_ref().map(Adapter::begin).transpose()?;
            self.between_marks(&Step::Fetch)?;
            let sent = meter.map(Sent::since).transpose()?;
            self.report(subject, sent)?;
            if sent.is_none_or(|sent| sent.retransmitted_segments == 0) {
                return Ok(());
            }
        }
        bail!("TCP sent segments again in each of {ATTEMPTS} transfers");
    }

    fn between_marks(&mut self, step: &Step) -> Result<()> {
        mark();
        let done = (self.carry_out)(step);
        mark();
        done
    }

    fn report(&self, subject: Subject, sent: Option<Sent>) -> Result<()> {
        say(&Line::Transfer(Transfer { subject, body_bytes: self.options.body_bytes, sent }))
    }
}

/// Connections that were handed over to the kernel's own code so far in this network namespace.
fn kernel_connections() -> Result<u64> {
    let handed_over = System.handed_over().context("this kernel has no TLS")?;
    Ok(handed_over.to_software)
}
