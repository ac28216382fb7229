//! `linerate calibrate`: from its flags to a file and a few lines.

use std::error::Error;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use linerate_calibrate::{Options, QUICK_ROUNDS, ROUNDS, calibrate as measure, report, sink};

pub(crate) const EXAMPLES: &str = "\
It takes a few seconds, one core for sending and one for receiving. Leave the machine alone
meanwhile: what was not quiet is told, and in the file.

Examples:
  linerate calibrate
      Into the state directory, where `linerate serve` finds it.
  linerate calibrate --output calibration.toml && linerate serve . --calibration calibration.toml
  sudo linerate calibrate --output /var/lib/linerate/calibration.toml
      For the service of deploy/, which has its own state directory.
  linerate calibrate --quick --output -
      In two seconds, to standard output.
  linerate calibrate --sink 192.0.2.2:9000
  linerate calibrate --peer 192.0.2.2:9000
      With an adapter that encrypts: the first on another host (or in another namespace), which
      throws away what comes, the second here. The user engine is measured on that way, too.";

#[derive(Args, Debug)]
pub(crate) struct CalibrateArguments {
    /// Where to write it, - for standard output [default: calibration.toml in the state directory]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Fewer rounds: a look, not a measurement
    #[arg(long)]
    quick: bool,

    /// Another host where --sink runs, reached through an adapter that encrypts: measures that, too
    #[arg(long, value_name = "ADDRESS:PORT")]
    peer: Option<SocketAddr>,

    /// Be that host: take connections and throw away what comes, until interrupted
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["output", "quick", "peer"])]
    sink: Option<SocketAddr>,
}

/// Measures, writes and tells.
///
/// # Errors
/// What kept it from measuring or writing.
pub(crate) fn calibrate(arguments: &CalibrateArguments) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(address) = arguments.sink {
        let cannot = |error: io::Error| format!("{address}: cannot be listened on: {error}");
        let listener = TcpListener::bind(address).map_err(cannot)?;
        crate::output::print(format!("throws away what comes to {}\n", listener.local_addr()?).as_bytes())?;
        return Err(cannot(sink(&listener)).into());
    }
    let output = match &arguments.output {
        Some(path) => path.clone(),
        None => linerate_server::default_calibration().ok_or(
            "there is no state directory (STATE_DIRECTORY, XDG_STATE_HOME or HOME is to name one): say by --output \
             where to write",
        )?,
    };
    let is_printed = output == Path::new("-");
    let cannot_be_written = |error: io::Error| {
        format!("{}: cannot be written: {error}; --output names another place", output.display())
    };
    if !is_printed {
        // Before measuring: a user who has no place to write to need not wait.
        try_to_write(&output).map_err(cannot_be_written)?;
    }
    let options =
        Options { rounds: if arguments.quick { QUICK_ROUNDS } else { ROUNDS }, peer: arguments.peer };
    let is_watched = io::stderr().is_terminal();
    let outcome = measure(&options, |round, of| {
        if is_watched {
            // Progress for a person: whether it can be written does not matter.
            let _ = write!(io::stderr(), "\rround {round} of {of} ");
        }
    })?;
    if is_watched {
        let _ = write!(io::stderr(), "\r{:24}\r", "");
    }
    let text = outcome.calibration.to_text()?;
    if is_printed {
        crate::output::print(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    write_file(&output, &text).map_err(cannot_be_written)?;
    let use_it = match arguments.output {
        None => "`linerate serve` finds it there".to_owned(),
        Some(_) => format!("`linerate serve --calibration {}` places connections by it", output.display()),
    };
    crate::output::print(
        format!("{}\nwritten to {}: {use_it}\n", report(&outcome), output.display()).as_bytes(),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a file beside it, as [`write_file`] will, and takes it away again.
fn try_to_write(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        fs::create_dir_all(folder)?;
    }
    fs::File::create(beside(path))?;
    fs::remove_file(beside(path))
}

/// Writes beside and renames: a server that reads meanwhile sees the old file or the new one.
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let beside = beside(path);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // It may not even be there.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension(format!("{}.new", std::process::id()))
}
