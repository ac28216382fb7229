//! knfsd, the kernel's NFS server, in a network namespace of its own: its threads, what it exports and where it listens are seen
//! there alone, and the exports of this machine stay as they are.
//!
//! A script starts it and stays until it is to end: it begins the kernel's threads, answers the kernel's questions
//! (`rpc.mountd`), and makes the handshakes that the kernel leaves to a program (`tlshd`). `ip netns exec` gives it a mount
//! namespace, too, in which it may put other files over `/var/lib/nfs` and `/etc/hosts`.

use super::{Launch, Place, find_program, not_installed};
use crate::client::shell_quoted;
use crate::definition::Workload;
use crate::network::{NetworkKind, VETH_CLIENT};
use crate::tlshd::{self, End};

/// What its threads are called.
const THREADS: &str = "nfsd";

/// Threads for each core: the kernel's own default is eight in all.
const THREADS_A_CORE: usize = 8;

/// What knfsd takes of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Security {
    Plaintext,
    /// RPC-with-TLS.
    Tls,
    /// RPC-with-TLS, and clients show a certificate.
    MutualTls,
}

impl Security {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "plaintext" => Some(Self::Plaintext),
            "tls" => Some(Self::Tls),
            "mtls" => Some(Self::MutualTls),
            _ => None,
        }
    }

    /// As `exports` has it. Older programs do not know the word, which says nothing more where there is no TLS.
    fn of_export(self) -> &'static str {
        match self {
            Self::Plaintext => "",
            Self::Tls => ",xprtsec=tls",
            Self::MutualTls => ",xprtsec=mtls",
        }
    }
}

pub(super) fn probe(security: Security) -> Result<String, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root may start the kernel's threads".to_owned());
    }
    for (program, package) in [
        ("rpc.nfsd", "nfs-kernel-server"),
        ("exportfs", "nfs-kernel-server"),
        ("rpc.mountd", "nfs-kernel-server"),
    ] {
        if find_program(program).is_none() {
            return Err(not_installed(package));
        }
    }
    if security != Security::Plaintext && find_program("tlshd").is_none() {
        return Err(not_installed("ktls-utils"));
    }
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !known.lines().any(|line| line.trim_start_matches("nodev").trim() == "nfsd") {
        return Err("this kernel has no NFS server loaded (as root: modprobe nfsd)".to_owned());
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(format!("Linux {}", release.trim()))
}

pub(super) fn refusal(workload: &Workload) -> Option<String> {
    if workload.is_fresh() {
        return Some(
            "knfsd answers no READ for ten seconds after it was started, and each round wants it fresh"
                .to_owned(),
        );
    }
    (workload.network == NetworkKind::Host).then(|| {
        "knfsd is started in a network namespace alone, so that this machine's exports stay as they are: --set \
         network=loopback, or veth"
            .to_owned()
    })
}

pub(super) fn launch(security: Security, place: &Place<'_>) -> Launch {
    Launch {
        kernel_threads: Some(THREADS),
        ..Launch::configured(vec!["sh".to_owned()], place, ("knfsd.sh", script(security, place)), |path| {
            vec![path.to_owned()]
        })
    }
}

fn script(security: Security, place: &Place<'_>) -> String {
    let identity = &place.certificate;
    let tls = match security {
        Security::Plaintext => String::new(),
        // Clients show the server's own certificate.
        Security::Tls | Security::MutualTls => {
            tlshd::script(End::Server, place.folder, VETH_CLIENT.into(), &identity.chain, Some(identity))
        }
    };
    format!(
        "set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
mount -t tmpfs -o mode=755 none /var/lib/nfs
mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/sm /var/lib/nfs/sm.bak /var/lib/nfs/rpc_pipefs
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
mount -t nfsd nfsd /proc/fs/nfsd
{tls}# Of its own accord it halves the READs that it answers as often as memory is below 4 GiB.
echo 1048576 >/proc/fs/nfsd/max_block_size
exportfs -i -o ro,no_root_squash,insecure,no_subtree_check,fsid=0{xprtsec} {export}
rpc.mountd -F -N 3 &
trap 'rpc.nfsd 0; exit 0' TERM INT
# READs wait for those who were here before a restart, for 90 s unless told, and 10 at least.
rpc.nfsd -N 3 -G 10 -L 10 -H {address} -p {port} {threads}
wait
",
        xprtsec = security.of_export(),
        export = shell_quoted(&format!("*:{}", place.root.display())),
        address = place.ip(),
        port = place.port(),
        threads = THREADS_A_CORE * place.cores.len().max(1),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_place;
    use super::*;

    #[test]
    fn the_script_has_tls_where_it_is_asked_for() {
        let of = |security| with_place(&Workload::default(), |place| script(security, place));
        let (clear, mutual) = (of(Security::Plaintext), of(Security::MutualTls));
        assert!(!clear.contains("tlshd") && !clear.contains("xprtsec"), "{clear}");
        assert!(
            mutual.contains("xprtsec=mtls '*:/files'") && mutual.contains("x509.private_key=/run/ecdsa.key"),
            "{mutual}"
        );
        let cold = Workload { fresh_server: true, network: NetworkKind::VETH, ..Workload::default() };
        assert!(refusal(&cold).unwrap().contains("ten seconds"));
        assert!(mutual.contains("-H 127.0.0.1 -p 4433 16\n"), "{mutual}");
    }
}
