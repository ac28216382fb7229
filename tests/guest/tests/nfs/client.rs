//! The programs of an NFS client, in a folder that is a root of theirs, and what they mount.

use linerate_end_to_end::{CertificatePair, skip};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// How a mount is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    None,
    Tls,
    Mutual,
}

/// How long a mount may take, in seconds.
const LIMIT_SECONDS: &str = "90";

/// The client's programs, and its half of handshakes.
pub(crate) struct Client {
    tree: PathBuf,
    handshakes: Child,
}

/// A mount, taken away when dropped.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let is_unmounted = Command::new("umount").arg(&self.0).status().is_ok_and(|status| status.success());
        if !is_unmounted {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.handshakes.kill();
        let _ = self.handshakes.wait();
    }
}

impl Client {
    /// Makes the programs' folder one that they run in. `None`, and said, where this machine lacks something.
    pub(crate) fn set_up(test: &str, server: &CertificatePair, client: &CertificatePair) -> Option<Self> {
        let Some(tree) = std::env::var_os("LINERATE_NFS_TREE").map(PathBuf::from) else {
            skip(test, "the programs of an NFS client are not there (guest/nfs-tree unpacks them)");
            return None;
        };
        if !run("modprobe", &["-a", "sunrpc", "nfs", "nfsv4"]) {
            skip(test, "this kernel has no NFS client");
            return None;
        }
        for folder in ["dev", "sys", "proc", "run", "tmp", "mnt", "etc", "var/lib/nfs/rpc_pipefs", "root"] {
            fs::create_dir_all(tree.join(folder)).unwrap();
        }
        let at = |name: &str| tree.join(name);
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        if !at("proc/self").exists() {
            assert!(run("mount", &["--rbind", "/dev", &text(&at("dev"))]));
            assert!(run("mount", &["-t", "proc", "proc", &text(&at("proc"))]));
            assert!(run("mount", &["-t", "tmpfs", "run", &text(&at("run"))]));
        }
        fs::write(
            at("etc/nsswitch.conf"),
            "passwd: files\nhosts: files\nservices: files\nprotocols: files\n",
        )
        .unwrap();
        fs::write(at("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
        fs::write(at("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        for (from, name) in [
            (&server.certificate, "etc/server.pem"),
            (&client.certificate, "etc/client.pem"),
            (&client.key, "etc/client-key.pem"),
        ] {
            fs::copy(from, at(name)).unwrap();
        }
        let configuration = "[authenticate]\n[authenticate.client]\nx509.truststore=/etc/server.pem\n\
            x509.certificate=/etc/client.pem\nx509.private_key=/etc/client-key.pem\n";
        fs::write(at("etc/tlshd.conf"), configuration).unwrap();
        let log = File::create(at("run/tlshd.log")).unwrap();
        let handshakes = Command::new("chroot")
            .arg(&tree)
            .args(["tlshd", "-s", "-c", "/etc/tlshd.conf"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Some(Self { tree, handshakes })
    }

    /// Has handshakes trust these certificates, too, from now on.
    pub(crate) fn trust(&self, certificates: &[&CertificatePair]) {
        let read = |pair: &&CertificatePair| fs::read(&pair.certificate).unwrap();
        let all: Vec<u8> = certificates.iter().flat_map(read).collect();
        fs::write(self.tree.join("etc/server.pem"), all).unwrap();
    }

    /// Whether the kernel has RPC-with-TLS: Linux 6.5 and later.
    pub(crate) fn has_tls(&self) -> bool {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
        (numbers.next(), numbers.next()) >= (Some(6), Some(5))
    }

    /// Mounts an export. What the program said, if it failed.
    pub(crate) fn mount(&self, export: &str, security: Security) -> Result<Mounted, String> {
        self.mount_with(export, security, "vers=4.2")
    }

    /// The same, with these further options.
    pub(crate) fn mount_with(
        &self,
        export: &str,
        security: Security,
        options: &str,
    ) -> Result<Mounted, String> {
        let security = match security {
            // Older kernels do not know the option.
            Security::None => "",
            Security::Tls => ",xprtsec=tls",
            Security::Mutual => ",xprtsec=mtls",
        };
        let mounted = Command::new("timeout")
            .args(["-k", "5", LIMIT_SECONDS, "chroot"])
            .arg(&self.tree)
            .args(["mount.nfs", &format!("localhost:/{export}"), "/mnt", "-o"])
            .arg(format!("ro,{options}{security}"))
            .output()
            .unwrap();
        if mounted.status.success() {
            return Ok(Mounted(self.tree.join("mnt")));
        }
        let said = String::from_utf8_lossy(&mounted.stderr).into_owned();
        let log = fs::read_to_string(self.tree.join("run/tlshd.log")).unwrap_or_default();
        assert_ne!(mounted.status.code(), Some(124), "the mount hangs: {said}{log}");
        Err(format!("{said}{log}"))
    }
}

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
}
