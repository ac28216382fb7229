//! linerate itself: built when no binary is given, and started as an operator would.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Endpoints, RunningServer, Setting};

/// A linerate that can be run.
#[derive(Debug, Clone)]
pub(crate) struct Linerate {
    program: PathBuf,
    flags: Vec<String>,
}

impl Linerate {
    /// Its name in the report.
    pub(crate) const NAME: &str = "linerate";

    /// The given binary, or the one that `cargo build --release` makes.
    pub(crate) fn find(program: Option<&Path>, flags: &[String], workspace: &Path) -> Result<Self> {
        let program = match program {
            Some(given) => {
                given.canonicalize().with_context(|| format!("there is no {}", given.display()))?
            }
            None => build(workspace)?,
        };
        Ok(Self { program, flags: flags.to_vec() })
    }

    /// The binary.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// What `--version` says.
    pub(crate) fn version(&self) -> Result<String> {
        let output = Command::new(&self.program)
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        if !output.status.success() {
            bail!("`{} --version` failed", self.program.display());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
    }

    /// Starts it with one worker.
    pub(crate) fn start(&self, setting: &Setting<'_>) -> Result<RunningServer> {
        let endpoints = Endpoints::pick(setting.link)?;
        let mut command = setting.link.server_command(&self.program);
        command.arg("serve").arg(setting.root);
        command.args(["--listen".to_string(), endpoints.tls.to_string()]);
        command.args(["--listen".to_string(), format!("http://{}", endpoints.plain)]);
        command.arg("--cert").arg(&setting.certificate.chain).arg("--key").arg(&setting.certificate.key);
        command.args(["--workers", "1", "--cpus", &setting.cpu.to_string()]);
        command.args(&self.flags);
        // Whoever compares, published figures decide; --linerate-flag names a calibration where one is to.
        command.env("XDG_STATE_HOME", setting.run_folder);
        RunningServer::start(Self::NAME, self.version()?, command, endpoints, setting)
    }
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
