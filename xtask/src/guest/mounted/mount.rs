//! A mount by Linux' own client, in the guest.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// What is mounted; taken away when dropped.
#[derive(Debug)]
pub(super) struct Mount(PathBuf);

impl Mount {
    /// Mounts all that the server at this address shows, by the programs of `tree`. Nothing is cached by this mount yet.
    pub(super) fn make(tree: &Path, server: std::net::IpAddr, tls: bool) -> Result<Self> {
        let options = if tls { "ro,vers=4.2,xprtsec=tls" } else { "ro,vers=4.2" };
        let output = Command::new("chroot")
            .arg(tree)
            .args(["mount.nfs", &format!("{server}:/"), "/mnt", "-o", options])
            .output()
            .context("cannot run mount.nfs")?;
        if !output.status.success() {
            bail!("mount.nfs -o {options} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(Self(tree.join("mnt")))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The next mount would be beneath it, and says so by its age: nothing would have to be asked of the server.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
