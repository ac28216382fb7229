//! The Debian 13 tree with its nginx and OpenSSL 3.5, made by debootstrap.
//!
//! It is not entered by chroot. Its nginx runs under the tree's own dynamic loader and with the tree's own libraries,
//! which is the same machine code without bind mounts to clean up and without root at run time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{find_program, not_installed};
use crate::error::{Error, Result};

/// The tree's folder in the cache, where no other is named.
pub(crate) const FOLDER: &str = "debian-13";

/// nginx of the tree in `folder`: the program, and the arguments that come before nginx's own.
///
/// # Errors
/// Where there is no such tree, with how one is made.
pub(super) fn nginx(folder: &Path) -> std::result::Result<Vec<String>, String> {
    if !folder.join("usr/sbin/nginx").is_file() {
        return Err(format!(
            "there is no Debian 13 in {} (as root: linerate bench setup makes one)",
            folder.display()
        ));
    }
    // The loader takes library folders separated by colons.
    if folder.to_str().is_none_or(|folder| folder.contains(':')) {
        return Err(format!(
            "the folder {} must have no colon in its name (see --debian13)",
            folder.display()
        ));
    }
    let (loader, triplet) = if cfg!(target_arch = "aarch64") {
        ("lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu")
    } else {
        ("lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu")
    };
    let tree = folder.display();
    Ok(vec![
        // The host's OpenSSL configuration stays out: a minimal Debian has none.
        "env".to_owned(),
        "OPENSSL_CONF=/dev/null".to_owned(),
        format!("{tree}/{loader}"),
        "--library-path".to_owned(),
        format!("{tree}/usr/lib/{triplet}:{tree}/lib/{triplet}"),
        format!("{tree}/usr/sbin/nginx"),
    ])
}

/// Makes the tree where it is missing. `mirror` is the archive that its packages come from, debootstrap's own if none.
///
/// # Errors
/// What it takes, or what debootstrap said.
pub(crate) fn make(folder: &Path, mirror: Option<&str>) -> Result<()> {
    if nginx(folder).is_ok() {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Error::Machine(
            "making a Debian 13 tree needs root: debootstrap unpacks and configures packages".to_owned(),
        ));
    }
    let debootstrap =
        find_program("debootstrap").ok_or_else(|| Error::Machine(not_installed("debootstrap")))?;
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(Error::file("cannot remove", &unfinished))?;
    }
    run(&debootstrap, &unfinished, mirror)?;
    std::fs::rename(&unfinished, folder).map_err(Error::file("cannot rename to", folder))?;
    nginx(folder).map(drop).map_err(Error::Machine)
}

/// What it says goes to standard error: it takes minutes.
fn run(debootstrap: &PathBuf, folder: &Path, mirror: Option<&str>) -> Result<()> {
    let mut command = Command::new(debootstrap);
    command.args(["--variant=minbase", "--include=nginx", "trixie"]).arg(folder);
    command.args(mirror).stdin(Stdio::null()).stdout(std::io::stderr());
    let status = command
        .status()
        .map_err(|error| Error::Machine(format!("cannot run {}: {error}", debootstrap.display())))?;
    if status.success() {
        return Ok(());
    }
    let log = folder.display();
    Err(Error::Machine(format!("debootstrap failed ({status}); its log is in {log}/debootstrap")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_runs_under_the_loader_of_its_tree() {
        let folder = tempfile::tempdir().unwrap();
        let missing = nginx(folder.path()).unwrap_err();
        assert!(missing.contains("linerate bench setup makes one"), "{missing}");
        let tree = folder.path().join("tree");
        std::fs::create_dir_all(tree.join("usr/sbin")).unwrap();
        std::fs::write(tree.join("usr/sbin/nginx"), "").unwrap();
        let command = nginx(&tree).unwrap();
        assert!(command[2].starts_with(&format!("{}/lib", tree.display())), "{command:?}");
        assert_eq!(command.last().unwrap(), &format!("{}/usr/sbin/nginx", tree.display()));
        // What is there is not made again.
        make(&tree, Some("file:///nowhere")).unwrap();
        let colon = folder.path().join("a:b");
        std::fs::rename(&tree, &colon).unwrap();
        assert!(nginx(&colon).unwrap_err().contains("must have no colon"));
    }
}
