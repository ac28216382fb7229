//! The host's end of the adapter: a tap device, in a network namespace without a name.
//!
//! The namespace is the process's own (`unshare --net`). The kernel removes it, and the tap device in it, when the last
//! process in it has ended, however that comes about: nothing has to be cleaned up.

use std::convert::Infallible;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use linerate_bench::network::VETH_CLIENT;

use super::{control, output_of};
use crate::guest::client::steps::Fetcher;

/// The device's name.
pub(super) const TAP: &str = "linerate0";

/// How long the client may still be busy when the guest has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Goes on as this program with these arguments in a namespace of its own. It returns only if it fails.
pub(in crate::guest) fn continue_in_namespace(arguments: &[OsString]) -> Result<Infallible> {
    if !rustix::process::geteuid().is_root() {
        bail!("--wire makes a network namespace and a tap device, which only root may");
    }
    let this = std::env::current_exe().context("cannot find this program")?;
    let error = Command::new("unshare").args(["--net", "--"]).arg(this).args(arguments).exec();
    Err(error).context("cannot run unshare (of util-linux)")
}

/// Makes the device, in this process's namespace, with this MTU.
pub(in crate::guest) fn make(mtu_bytes: u32) -> Result<()> {
    let address = format!("{VETH_CLIENT}/30");
    // With headers that say where a segment is to be cut, so that the guest can leave it whole.
    output_of("ip", &["tuntap", "add", "dev", TAP, "mode", "tap", "vnet_hdr"])?;
    // IPv6 would speak unasked.
    output_of("ip", &["link", "set", TAP, "addrgenmode", "none"])?;
    output_of("ip", &["address", "add", &address, "dev", TAP])?;
    output_of("ip", &["link", "set", TAP, "mtu", &mtu_bytes.to_string(), "up"])?;
    Ok(())
}

/// Flags of guest/run for a guest that is on the device and shares `folder`.
pub(in crate::guest) fn guest_flags(folder: &Path) -> Vec<OsString> {
    vec!["--tap".into(), TAP.into(), "--share".into(), folder.into()]
}

/// Runs `guest`, given the address of the control connection, with a client beside it. An error of the client's comes first:
/// the guest's follows from it.
pub(in crate::guest) fn with_client<T>(guest: impl FnOnce(SocketAddr) -> Result<T>) -> Result<T> {
    let listener = TcpListener::bind((VETH_CLIENT, 0)).context("cannot listen on the tap device")?;
    let address = listener.local_addr()?;
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let mut fetcher = Fetcher::new();
        let _ = ended.send(control::serve(&listener, |step| fetcher.carry_out(step)));
    });
    let said = guest(address);
    match end.recv_timeout(PATIENCE) {
        Ok(served) => served.context("the client on the host failed").and(said),
        Err(_) => said.and_then(|_| bail!("the guest has ended, and the client on the host has not")),
    }
}
