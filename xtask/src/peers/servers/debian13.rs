//! The Debian 13 tree with its nginx and OpenSSL 3.5, made by debootstrap.
//!
//! It is not entered by chroot. Its nginx runs under the tree's own dynamic loader and with the tree's own
//! libraries, which is the same machine code without bind mounts to clean up and without root at run time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::find_program;

/// A tree that holds nginx.
#[derive(Debug, Clone)]
pub(crate) struct Debian13 {
    folder: PathBuf,
}

impl Debian13 {
    /// The tree in `folder`, if it is there.
    pub(crate) fn find(folder: &Path) -> Result<Self> {
        if !folder.join("usr/sbin/nginx").is_file() {
            bail!("there is no Debian 13 in {} (run `cargo xtask peers --setup` as root)", folder.display());
        }
        // The loader takes library folders separated by colons.
        if folder.to_str().is_none_or(|folder| folder.contains(':')) {
            bail!("the folder {} must have no colon in its name (see --debian13)", folder.display());
        }
        Ok(Self { folder: folder.to_path_buf() })
    }

    /// Makes the tree with debootstrap where it is missing.
    pub(crate) fn make(folder: &Path, mirror: Option<&str>) -> Result<Self> {
        if let Ok(found) = Self::find(folder) {
            return Ok(found);
        }
        if !rustix::process::geteuid().is_root() {
            bail!("making a Debian 13 tree needs root: debootstrap unpacks and configures packages");
        }
        let Some(debootstrap) = find_program("debootstrap") else {
            bail!("debootstrap is not installed (on Debian: apt install debootstrap)");
        };
        let unfinished = folder.with_extension("unfinished");
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished)
                .with_context(|| format!("cannot remove {}", unfinished.display()))?;
        }
        println!("making a Debian 13 tree with nginx in {}", folder.display());
        let mut command = Command::new(debootstrap);
        command.args(["--variant=minbase", "--include=nginx", "trixie"]).arg(&unfinished);
        command.args(mirror).stdin(Stdio::null());
        let status = command.status().context("cannot run debootstrap")?;
        if !status.success() {
            bail!("debootstrap failed ({status}); its log is {}/debootstrap", unfinished.display());
        }
        std::fs::rename(&unfinished, folder)
            .with_context(|| format!("cannot rename {} to {}", unfinished.display(), folder.display()))?;
        Self::find(folder)
    }

    /// The program and the arguments that come before nginx's own.
    pub(crate) fn nginx(&self) -> (PathBuf, Vec<String>) {
        let (loader, triplet) = if cfg!(target_arch = "aarch64") {
            ("lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu")
        } else {
            ("lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu")
        };
        let tree = self.folder.display();
        let libraries = format!("{tree}/usr/lib/{triplet}:{tree}/lib/{triplet}");
        let nginx = format!("{tree}/usr/sbin/nginx");
        (self.folder.join(loader), vec!["--library-path".to_string(), libraries, nginx])
    }

    /// Keeps the host's OpenSSL configuration out: a minimal Debian has none.
    pub(crate) fn isolate(&self, command: &mut Command) {
        command.env("OPENSSL_CONF", "/dev/null");
    }
}
