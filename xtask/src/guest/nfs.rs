//! The servers of NFS in a guest: `linerate nfs`, and knfsd with what it needs of Debian 13's programs (`guest/nfs-tree`).

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use linerate_bench::network::VETH_CLIENT;

use super::server::Setting;
use super::subject::NfsKind;

/// NFS's port.
const PORT: u16 = 2049;
/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest READ, as that of `linerate nfs`: 1 MiB.
const READ_BYTES: &str = "1048576";
/// Threads of knfsd, on the guest's one processor.
const THREADS: &str = "4";

/// A server that listens; it ends when dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    processes: Vec<Child>,
    /// knfsd's programs, where it is what runs.
    tree: Option<std::path::PathBuf>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(tree) = &self.tree {
            // Nobody can be told here; the next server would find the port taken.
            let _ = Command::new("chroot").arg(tree).args(["rpc.nfsd", "0"]).status();
        }
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The half of handshakes that the kernel leaves to a program, of its server and of its client; it ends when dropped.
#[derive(Debug)]
pub(super) struct Handshakes(Child);

impl Drop for Handshakes {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Handshakes {
    /// Makes the programs' folder one that they run in, and starts the one that makes handshakes.
    pub(super) fn start(setting: &Setting, tree: &Path) -> Result<Self> {
        prepare(setting, tree)?;
        let log = File::create(tree.join("run/tlshd.log"))?;
        let mut command = Command::new("chroot");
        command.arg(tree).args(["tlshd", "-s", "-c", "/etc/tlshd.conf"]).stdin(Stdio::null());
        let process = command.stdout(log.try_clone()?).stderr(log).spawn().context("cannot start tlshd")?;
        Ok(Self(process))
    }
}

impl Server {
    /// Starts one on the setting's root, for clients with TLS and without. That of the kernel needs [`Handshakes`] before.
    pub(super) fn start(kind: NfsKind, setting: &Setting, tree: &Path) -> Result<Self> {
        let address = SocketAddr::from((setting.network.server_address(), PORT));
        let mut server = Self { address, processes: Vec::new(), tree: None };
        match kind {
            NfsKind::Linerate => server.processes.push(linerate(setting, address)?),
            NfsKind::Knfsd => {
                server.tree = Some(tree.to_owned());
                server.processes.push(knfsd(tree)?);
            }
        }
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if began.elapsed() > PATIENCE {
                bail!("nothing listens on {address}");
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    /// The process that serves, where it is not the kernel.
    pub(super) fn pid(&self) -> Option<u32> {
        let first = self.processes.first().map(Child::id);
        first.filter(|_| self.tree.is_none())
    }
}

fn linerate(setting: &Setting, address: SocketAddr) -> Result<Child> {
    let log = File::create(setting.folder.join("linerate-nfs.log"))?;
    Command::new(&setting.linerate)
        .arg("nfs")
        .arg(&setting.root)
        .args(["--listen", &address.to_string(), "--tls", "offer", "--workers", "1"])
        .arg("--cert")
        .arg(&setting.certificate.chain)
        .arg("--key")
        .arg(&setting.certificate.key)
        .env("XDG_STATE_HOME", &setting.folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot start linerate nfs")
}

/// Makes the programs' folder one that they run in, once.
fn prepare(setting: &Setting, tree: &Path) -> Result<()> {
    run(Command::new("modprobe").args(["-a", "sunrpc", "nfsd", "nfs", "nfsv4", "tls"]))?;
    for folder in [
        "dev",
        "sys",
        "proc",
        "run",
        "tmp",
        "srv",
        "mnt",
        "root",
        "etc/exports.d",
        "var/lib/nfs/rpc_pipefs",
        "var/lib/nfs/v4recovery",
        "var/lib/nfs/sm",
        "var/lib/nfs/sm.bak",
    ] {
        fs::create_dir_all(tree.join(folder))?;
    }
    if !tree.join("proc/fs").exists() {
        run(Command::new("mount").arg("--rbind").arg("/dev").arg(tree.join("dev")))?;
        run(Command::new("mount").args(["-t", "proc", "proc"]).arg(tree.join("proc")))?;
        run(Command::new("mount").args(["-t", "tmpfs", "run"]).arg(tree.join("run")))?;
        run(Command::new("mount").args(["-t", "nfsd", "nfsd"]).arg(tree.join("proc/fs/nfsd")))?;
        run(Command::new("mount").arg("--bind").arg(&setting.root).arg(tree.join("srv")))?;
    }
    // tlshd wants a name for the client's address.
    let hosts = format!("127.0.0.1 localhost\n{VETH_CLIENT} client.example\n");
    for (file, text) in [
        (
            "etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
        ),
        (
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nstatd:x:999:65534::/:/bin/sh\n",
        ),
        ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        ("etc/hosts", &hosts),
        ("var/lib/nfs/etab", ""),
        ("var/lib/nfs/rmtab", ""),
        ("etc/nfs.conf", "[nfsd]\nvers3=n\n"),
        ("etc/exports", "/srv *(ro,no_root_squash,insecure,no_subtree_check,fsid=0,xprtsec=none:tls)\n"),
        (
            "etc/tlshd.conf",
            "[authenticate.server]\nx509.truststore=/etc/server.pem\nx509.certificate=/etc/server.pem\n\
             x509.private_key=/etc/server-key.pem\n[authenticate.client]\nx509.truststore=/etc/server.pem\n",
        ),
    ] {
        fs::write(tree.join(file), text).with_context(|| format!("cannot write {file}"))?;
    }
    fs::copy(&setting.certificate.chain, tree.join("etc/server.pem"))?;
    fs::copy(&setting.certificate.key, tree.join("etc/server-key.pem"))?;
    Ok(())
}

/// Starts the kernel's server, whose threads outlive this; gives the program that answers its questions.
fn knfsd(tree: &Path) -> Result<Child> {
    run(Command::new("chroot").arg(tree).args(["exportfs", "-ra"]))?;
    let mut mountd = Command::new("chroot");
    mountd.arg(tree).args(["rpc.mountd", "-F", "-N", "3"]).stdin(Stdio::null());
    let mountd =
        mountd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start rpc.mountd")?;
    // By itself it halves the READs that it answers as often as memory is below 4 GiB (`nfsd_get_default_max_blksize`).
    let most = tree.join("proc/fs/nfsd/max_block_size");
    fs::write(&most, READ_BYTES).with_context(|| format!("cannot write {}", most.display()))?;
    // Reads wait for the end of the grace period, which is 90 s, and 10 at least.
    run(Command::new("chroot").arg(tree).args(["rpc.nfsd", "-N", "3", "-G", "10", "-L", "10", THREADS]))?;
    Ok(mountd)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
