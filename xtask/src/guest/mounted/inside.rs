//! The part that runs in the guest: both servers in turn, mounts, and what is done in them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use linerate_bench::network::Network;

use super::mount::Mount;
use super::silence::{Silence, read};
use super::work::{self, Work};
use super::{Amounts, Line, Part};
use crate::guest::client::counted::mark;
use crate::guest::server::Setting;
use crate::guest::subject::NfsKind;
use crate::guest::{nfs, served_file};

/// The file that is read beside silent connections.
const FILE: &str = "file.bin";
const FILE_BYTES: u64 = 4 << 20;

/// Silent connections beside which reads are timed.
const SILENT: [u32; 3] = [0, 4, 1000];
/// So many hold knfsd's four threads; it is not asked with more, because each holds one for five seconds.
const SILENT_FOR_KNFSD: u32 = 4;

/// Flags of the part in the guest.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct InsideOptions {
    /// The server's binary.
    #[arg(long)]
    linerate: PathBuf,
    /// The programs of NFS.
    #[arg(long)]
    nfs_tree: PathBuf,
    #[command(flatten)]
    amounts: Amounts,
}

/// Measures both servers.
pub(crate) fn run(options: &InsideOptions) -> Result<()> {
    let network = Network::host([127, 0, 0, 1].into(), None);
    let setting = Setting::make(network, std::env::temp_dir().join("mounted"), options.linerate.clone())?;
    let amounts = &options.amounts;
    if amounts.includes(Part::Listings) {
        work::make(&setting.root, amounts.entries, amounts.files)?;
    }
    served_file::write(&setting.root.join(FILE), FILE_BYTES, FILE_BYTES)?;
    let _handshakes = nfs::Handshakes::start(&setting, &options.nfs_tree)?;
    for kind in [NfsKind::Knfsd, NfsKind::Linerate] {
        let server = nfs::Server::start(kind, &setting, &options.nfs_tree)?;
        let bench = Bench { kind, server: &server, tree: &options.nfs_tree, amounts };
        if amounts.includes(Part::Listings) {
            bench.listings().with_context(|| format!("{kind:?}"))?;
        }
        if amounts.includes(Part::Reads) {
            bench.reads().with_context(|| format!("{kind:?}"))?;
        }
    }
    Ok(())
}

struct Bench<'a> {
    kind: NfsKind,
    server: &'a nfs::Server,
    tree: &'a Path,
    amounts: &'a Amounts,
}

impl Bench<'_> {
    fn mount(&self, tls: bool) -> Result<Mount> {
        Mount::make(self.tree, self.server.address.ip(), tls)
    }

    /// Each piece of work once uncounted, which warms the server and the programs, and then in rounds, each on a mount of its own.
    fn listings(&self) -> Result<()> {
        for round in 0..=self.amounts.rounds {
            for tls in [false, true] {
                for work in Work::ALL {
                    let mount = self.mount(tls)?;
                    // The first answer to a new client is not its work's.
                    fs::metadata(mount.path())?;
                    if round == 0 {
                        work.run(mount.path(), self.amounts.entries, self.amounts.files)?;
                        continue;
                    }
                    let before = self.busy_ns()?;
                    mark();
                    let done = work.run(mount.path(), self.amounts.entries, self.amounts.files);
                    mark();
                    done?;
                    let after = self.busy_ns()?;
                    let spent = |(thread, ns): (&u32, &u64)| ns - before.get(thread).unwrap_or(&0);
                    let server_ns = after.iter().map(spent).sum();
                    say(&Line::Worked { server: self.kind, tls, work, server_ns })?;
                }
            }
        }
        Ok(())
    }

    /// Reads over TLS, with each number of silent connections in turn.
    fn reads(&self) -> Result<()> {
        let mount = self.mount(true)?;
        let file = mount.path().join(FILE);
        read(&file, self.amounts.reads)?;
        for _ in 0..self.amounts.rounds {
            for silent in SILENT {
                if self.kind == NfsKind::Knfsd && silent > SILENT_FOR_KNFSD {
                    continue;
                }
                let silence = Silence::begin(self.server.address, silent)?;
                let took_ns = read(&file, self.amounts.reads)?;
                let connected = silence.connected();
                if connected < silent as usize * 9 / 10 {
                    bail!("{connected} of {silent} silent connections were left");
                }
                say(&Line::Read { server: self.kind, silent, took_ns })?;
            }
        }
        Ok(())
    }

    /// CPU time of each thread of the server so far, in nanoseconds.
    fn busy_ns(&self) -> Result<BTreeMap<u32, u64>> {
        match self.server.pid() {
            Some(pid) => threads(&PathBuf::from(format!("/proc/{pid}/task")), |_| true),
            None => threads(Path::new("/proc"), |name| name.trim_end() == "nfsd"),
        }
    }
}

/// CPU time of the tasks in `folder` whose names are `named` (`/proc/PID/schedstat`, Documentation/scheduler/sched-stats.rst).
fn threads(folder: &Path, named: impl Fn(&str) -> bool) -> Result<BTreeMap<u32, u64>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(thread) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        // One that ended meanwhile is left out.
        let Ok(name) = fs::read_to_string(path.join("comm")) else { continue };
        let Ok(times) = fs::read_to_string(path.join("schedstat")) else { continue };
        if named(&name) {
            let busy_ns = times.split_whitespace().next().context("the kernel counts no CPU time")?;
            found.insert(thread, busy_ns.parse()?);
        }
    }
    Ok(found)
}

fn say(line: &Line) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(line)?)?;
    Ok(output.flush()?)
}
