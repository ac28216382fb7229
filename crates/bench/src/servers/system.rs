//! What the machine has: programs, and kernel TLS.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Finds a program on PATH or where administrators' programs are kept, which is not on everybody's PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let kept = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(kept).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// What to say where it is not there.
pub(crate) fn not_installed(name: &str) -> String {
    format!("{name} is not installed (on Debian and Ubuntu: apt install {name})")
}

/// What `command` prints, standard output first, both as text.
pub(super) fn output_of(command: &[String], arguments: &[&str]) -> Result<String, String> {
    let (program, before) = command.split_first().ok_or("there is no program to run")?;
    let output = Command::new(program)
        .args(before)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    if !output.status.success() {
        return Err(format!("`{program} {}` failed: {}", arguments.join(" "), said.trim()));
    }
    Ok(said)
}

/// Why connections cannot be given to an adapter here, if they cannot.
pub(super) fn no_adapter_that_encrypts() -> Option<String> {
    let interfaces = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let encrypts = |name: &str| {
        linerate_os::adapter::features(name)
            .is_ok_and(|features| features.get("tls-hw-tx-offload").copied().unwrap_or_default())
    };
    let there = interfaces.into_iter().any(|interface| interface.file_name().to_str().is_some_and(encrypts));
    (!there).then(|| {
        "no adapter encrypts here (as root, where one can: ethtool -K DEVICE tls-hw-tx-offload on)".to_owned()
    })
}

/// Why connections cannot be given to kernel TLS here, if they cannot.
pub(super) fn no_kernel_tls() -> Option<String> {
    // tls is listed once its module is loaded (or built in); loading it takes CAP_NET_ADMIN, and is not ours to do.
    let listed = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp").unwrap_or_default();
    let there = listed.split_ascii_whitespace().any(|name| name == "tls");
    (!there).then(|| "this kernel has no TLS loaded (as root: modprobe tls)".to_owned())
}
