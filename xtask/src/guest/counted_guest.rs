//! Guests whose instructions are counted: the plugin, and a run of this program in such a guest.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// What can run them.
#[derive(Debug, Clone)]
pub(crate) struct CountedGuests {
    workspace: PathBuf,
    plugin: PathBuf,
    counts_written: bool,
    flags: Vec<OsString>,
}

/// What a guest said, and what was executed from each mark to the next.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    /// Its standard output.
    pub(crate) output: String,
    /// One for each mark, since the mark before.
    pub(crate) marks: Vec<Mark>,
}

#[cfg(test)]
impl Said {
    /// For a test: these lines, and pairs of marks with these counts of user space and kernel at the second. The adapter's model
    /// is counted, too, and is to be in no result.
    pub(crate) fn of_test(lines: &[impl serde::Serialize], pairs: &[(u64, u64)]) -> Self {
        let output: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
        let mark = |(user, kernel)| Mark { user, kernel, adapter: 7, written: None };
        let marks = pairs.iter().flat_map(|&pair| [mark((9, 9)), mark(pair)]).collect();
        Self { output: output.join("\n"), marks }
    }
}

/// Instructions of the whole machine since the mark before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// In user space.
    pub(crate) user: u64,
    /// In the kernel, without the adapter's.
    pub(crate) kernel: u64,
    /// What the software adapter did in the place of one of silicon.
    pub(crate) adapter: u64,
    /// Bytes that were written to memory, where that was counted.
    pub(crate) written: Option<Written>,
}

/// Bytes that were written to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// By user space.
    pub(crate) user: u64,
    /// By the kernel, without the software adapter.
    pub(crate) kernel: u64,
}

impl CountedGuests {
    /// Compiles the plugin.
    pub(crate) fn prepare(workspace: &Path) -> Result<Self> {
        let folder = workspace.join("target/guest");
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let plugin = folder.join("count.so");
        let status = Command::new("cc")
            .args(["-O2", "-Wall", "-shared", "-fPIC", "-o"])
            .arg(&plugin)
            .arg(workspace.join("guest/instructions/count.c"))
            .status()
            .context("cannot run cc, the compiler")?;
        if !status.success() {
            bail!("guest/instructions/count.c does not compile ({status})");
        }
        Ok(Self { workspace: workspace.to_owned(), plugin, counts_written: false, flags: Vec::new() })
    }

    /// The same, where the bytes that are written to memory are counted if so wanted: the guest is several times slower.
    pub(crate) fn counting_written(self, counts_written: bool) -> Self {
        Self { counts_written, ..self }
    }

    /// The same, started with these flags of guest/run.
    pub(crate) fn with_flags(self, flags: Vec<OsString>) -> Self {
        Self { flags, ..self }
    }

    /// The kernels that there are.
    pub(crate) fn kernels(&self) -> Result<Vec<String>> {
        let output = Command::new(self.workspace.join("guest/run"))
            .arg("--kernels")
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run guest/run")?;
        if !output.status.success() {
            bail!("this machine cannot run guests (the reason is printed above)");
        }
        Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
    }

    /// Runs `cargo xtask guest` with these arguments in a guest. `name` tells its files from those of others.
    pub(crate) fn run(
        &self,
        kernel: &str,
        name: &str,
        limits: Limits,
        arguments: &[OsString],
    ) -> Result<Said> {
        let marks = self.plugin.with_file_name(format!("marks-{name}"));
        let written = if self.counts_written { ",written=on" } else { "" };
        let this = std::env::current_exe().context("cannot find this program")?;
        // A guest without the program that asked for it would go on until its time is over.
        let output = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .arg(self.workspace.join("guest/run"))
            .args(["--kernel", kernel, "--timeout", &limits.seconds.to_string()])
            .args(["--memory", &limits.memory_mib.to_string(), "--plugin"])
            .arg(format!("{},out={}{written}", self.plugin.display(), marks.display()))
            .args(&self.flags)
            .arg("--")
            .arg(this)
            .arg("guest")
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run guest/run by setpriv (of util-linux)")?;
        if !output.status.success() {
            bail!("the measurement in the guest failed ({})", output.status);
        }
        let text = fs::read_to_string(&marks).with_context(|| format!("cannot read {}", marks.display()))?;
        let marks = text.lines().map(parse_mark).collect::<Result<_>>()?;
        Ok(Said { output: String::from_utf8_lossy(&output.stdout).into_owned(), marks })
    }
}

/// What a guest may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Time in seconds.
    pub(crate) seconds: u32,
    /// Memory in MiB.
    pub(crate) memory_mib: u32,
}

/// `mark 3 user 1200 kernel 3400 adapter 0`, and behind it `written-user 500 written-kernel 700` where that was counted.
pub(super) fn parse_mark(line: &str) -> Result<Mark> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["mark", _, "user", user, "kernel", kernel, "adapter", adapter, ref written @ ..] = words[..] else {
        bail!("the plugin wrote {line:?}");
    };
    let written = match written {
        [] => None,
        ["written-user", user, "written-kernel", kernel] => {
            Some(Written { user: user.parse()?, kernel: kernel.parse()? })
        }
        _ => bail!("the plugin wrote {line:?}"),
    };
    Ok(Mark { user: user.parse()?, kernel: kernel.parse()?, adapter: adapter.parse()?, written })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_three_counts_or_five() {
        let counts = "mark 3 user 1200 kernel 3400 adapter 56";
        let mark = Mark { user: 1200, kernel: 3400, adapter: 56, written: None };
        assert_eq!(parse_mark(counts).unwrap(), mark);
        let written = Some(Written { user: 500, kernel: 700 });
        let with_written = format!("{counts} written-user 500 written-kernel 700");
        assert_eq!(parse_mark(&with_written).unwrap(), Mark { written, ..mark });
        assert!(parse_mark(&format!("{counts} written-user 500")).is_err());
        assert!(parse_mark("mark 1 user x kernel 1 adapter 0").is_err());
        assert!(parse_mark("mark 1 user 1 kernel 1").is_err());
    }
}
