//! The linerate binary that a task measures: built when none is given.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The workspace of this program.
pub(crate) fn workspace() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// The given binary, or the one that `cargo build --release` makes.
pub(crate) fn find(given: Option<&Path>, workspace: &Path) -> Result<PathBuf> {
    match given {
        Some(given) => given.canonicalize().with_context(|| format!("there is no {}", given.display())),
        None => build(workspace),
    }
}

/// What `--version` says.
pub(crate) fn version(program: &Path) -> Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!("`{} --version` failed", program.display());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn build(workspace: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--package", "linerate"])
        .current_dir(workspace)
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("linerate does not build ({status})");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    Ok(workspace.join(target).join("release/linerate"))
}
