//! `linerate doctor`: from its flags to what was found, and how it ends.

use std::error::Error;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use linerate_config::AdminAddress;
use linerate_doctor::{Facts, Questions, Style, changes, gather, json, judge, self_test, text};

use crate::FAILED;

/// The exit status when something is to be changed.
const TO_CHANGE: u8 = 3;

pub(crate) const EXAMPLES: &str = "\
It connects sockets of this machine to each other, puts kernel TLS through its self-test, and
measures ciphers, which takes about four seconds. It changes nothing, but that asking for the tls
module as root loads it.

Examples:
  linerate doctor
  linerate doctor --cert fullchain.pem
      What the certificate is good for, too.
  linerate doctor localhost:8443
      What the server there agrees on and shows.
  linerate doctor https://localhost:8443/film.mp4 --admin 9443
      And which engine carried the file's beginning.
  linerate doctor --self-test
      Does every engine send what it is given?
  linerate doctor --json | jq -r '.findings[] | select(.verdict == \"change\") | .name'

Exit status: 0 if there is nothing to change, 3 if there is, 1 if what was asked about (certificate,
folder, server) could not be looked at or the self-test failed, 2 if the command line is wrong.";

#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// A server to ask, too: HOST:PORT, or the https:// address of a file there
    #[arg(value_name = "ADDR", value_hint = clap::ValueHint::Hostname)]
    server: Option<String>,

    /// Print JSON (docs/schema/linerate-doctor-1.json)
    #[arg(long)]
    json: bool,

    /// Prove every engine of this machine byte for byte instead, and print a report that can be sent
    ///
    /// Files are sent to sockets of this machine by each engine, version and cipher, and what arrives is compared. The report
    /// names the kernel, the processor and settings, and neither the machine nor its owner.
    #[arg(long, conflicts_with_all = ["json", "cert", "root", "server"])]
    self_test: bool,

    /// A certificate chain (PEM) to look at, too
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    cert: Option<PathBuf>,

    /// A folder that is to be served, to look at, too
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    root: Option<PathBuf>,

    /// The server's admin listener, if it is a linerate: PORT (on 127.0.0.1) or ADDRESS:PORT
    ///
    /// Of a server on this machine port 9443 is tried without it.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "server")]
    admin: Option<AdminAddress>,
}

/// Looks, says what was found, and gives the exit status.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn doctor(arguments: DoctorArguments) -> Result<ExitCode, Box<dyn Error>> {
    if arguments.self_test {
        let (report, all_went_well) = self_test(env!("CARGO_PKG_VERSION"));
        crate::output::print(report.as_bytes())?;
        return Ok(if all_went_well { ExitCode::SUCCESS } else { ExitCode::from(FAILED) });
    }
    let facts = gather(&Questions {
        certificate: arguments.cert,
        server: arguments.server,
        admin: arguments.admin.map(|admin| admin.0),
        root: arguments.root,
    });
    let findings = judge(&facts);
    let said = if arguments.json { json(&facts, &findings) } else { text(&findings, style()) };
    crate::output::print(said.as_bytes())?;
    Ok(if !all_was_looked_at(&facts) {
        ExitCode::from(FAILED)
    } else if changes(&findings).is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(TO_CHANGE)
    })
}

/// Whether nothing that was asked about stayed out of reach.
fn all_was_looked_at(facts: &Facts) -> bool {
    facts.certificate.as_ref().is_none_or(|certificate| certificate.inspection.is_ok())
        && facts.server.as_ref().is_none_or(|server| server.answer.is_ok())
        && facts.content.root.as_ref().is_none_or(|root| root.found.is_ok())
}

/// Colours and a width where a person looks on.
fn style() -> Style {
    if !io::stdout().is_terminal() {
        return Style::default();
    }
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Style { width: Some(width.unwrap_or(100)), colour: std::env::var_os("NO_COLOR").is_none() }
}
