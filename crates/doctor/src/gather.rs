//! Asks the machine. Nothing is judged here.

mod adapters;
mod certificate;
mod confinement;
mod content;
mod exchange;
mod module;
mod rates;
mod server;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use linerate_environment::{Files, Interfaces, Reading};
use linerate_os::{kernel_tls, processor};

use crate::facts::{Cores, Facts, KernelEngine};

/// What is to be looked at beside the machine.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// A certificate chain (PEM).
    pub certificate: Option<PathBuf>,
    /// A server: `HOST:PORT`, or the `https://` address of a file.
    pub server: Option<String>,
    /// The server's admin listener, where it is not on port 9443 of this machine.
    pub admin: Option<SocketAddr>,
    /// A folder that would be served.
    pub root: Option<PathBuf>,
}

/// Asks the machine, and the server if one is asked about. It takes a few seconds: encryption is measured.
#[must_use]
pub fn gather(questions: &Questions) -> Facts {
    let root = Path::new("/");
    let files = Files::below(root);
    // First: attaching the module to a socket loads it, where this process may.
    let kernel_engine = linerate_engine::kernel::tried()
        .into_iter()
        .map(|(combination, verdict)| KernelEngine { combination, verdict })
        .collect();
    Facts {
        environment: linerate_environment::capture(),
        module: module::state(&files),
        statistics: match kernel_tls::statistics() {
            Ok(lines) => Reading::Value(lines.into_iter().map(|line| (line.name, line.value)).collect()),
            Err(error) => Reading::NotAvailable(format!("/proc/net/tls_stat: {error}")),
        },
        confinement: confinement::gather(&files),
        kernel_engine,
        adapters: adapters::gather(&files, &Interfaces::own(&files)),
        cores: Cores {
            usable: match processor::allowed() {
                Ok(cpus) => {
                    Reading::Value(cpus.into_iter().map(|cpu| (cpu, processor::node_of(cpu))).collect())
                }
                Err(error) => Reading::NotAvailable(error.to_string()),
            },
        },
        content: content::gather(&files, questions.root.as_deref()),
        rates: rates::measure(),
        certificate: questions.certificate.as_deref().map(certificate::inspect),
        server: questions.server.as_deref().map(|address| server::ask(address, questions.admin)),
    }
}
