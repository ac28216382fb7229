//! What the end-to-end tests stand on: they start the built `linerate`, talk to it as clients do, and compare every
//! byte.
//!
//! * [`Site`] is a folder of files whose bytes can be told from their name; [`CertificatePair`] a certificate on disk.
//! * [`ServerSetup`] starts a server with flags or a configuration file; [`Server`] is the running one. When a test
//!   fails, what the server wrote to standard error is printed with it.
//! * [`curl()`], [`openssl()`] and [`Program`] run clients with a time limit. What a machine cannot run is left out
//!   loudly, by [`skip`].
//! * [`ClientSetup`] makes TLS clients on rustls; [`RawClient`] is one that seals its own records, so that it can break
//!   every rule.

mod binary;
mod calibration;
mod certificate;
mod client;
mod program;
mod raw_client;
mod raw_record;
mod server;
mod site;

pub use binary::linerate_binary;
pub use calibration::{calibration, calibration_with_nic};
pub use certificate::{Algorithm, CertificatePair};
pub use client::{Client, ClientSetup, HttpResponse, SecretLog, connect, reset, unconnected_socket};
pub use program::{Finished, Program, curl, is_installed, openssl};
pub use raw_client::{RawClient, Received, content_type};
pub use server::{Server, ServerSetup, Signal};
pub use site::{ODD_LENGTHS, Site, pattern};

/// How long anything may take that a test waits for, in seconds. Generous, because machines that run tests are busy.
pub const PATIENCE_SECONDS: u64 = 20;

/// Says that a test was left out, and why. The line is meant to be found: `SKIPPED: name: reason`.
pub fn skip(name: &str, reason: &str) {
    eprintln!("SKIPPED: {name}: {reason}");
}

/// Whether the long tests are to run, too (`make test-all`): those that a short one stands for in `make test`.
#[must_use]
pub fn runs_all() -> bool {
    std::env::var_os("LINERATE_TEST_ALL").is_some()
}

/// Waits until `holds`, and fails with `what` when it takes too long.
///
/// # Panics
/// After [`PATIENCE_SECONDS`].
#[track_caller]
pub fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_true(holds), "waited {PATIENCE_SECONDS} s in vain: {what}");
}

/// Waits until `holds`, for [`PATIENCE_SECONDS`] at most. Whether it came to hold.
pub fn comes_true(mut holds: impl FnMut() -> bool) -> bool {
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(PATIENCE_SECONDS);
    while !holds() {
        if std::time::Instant::now() >= give_up {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    true
}
