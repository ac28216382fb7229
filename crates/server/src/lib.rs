//! The server: workers, connections, limits, reload, shutdown, metrics.
//!
//! The way of a byte, and which module walks it with it: [`run()`] starts workers (`worker`), which accept
//! (`worker::accept`) connections (`connection`); the handshake (`handshake`) leaves a link (`link`); requests are
//! answered one after the other (`exchange`) from sites and files (`sites`, `hot_file`) through an engine (`linerate-engine`).
//! `docs/ARCHITECTURE.md` draws it.

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

mod access_log;
mod admin;
mod client;
mod clock;
mod connection;
mod descriptors;
mod ending;
mod exchange;
mod handshake;
mod hot_file;
mod link;
mod listeners;
mod mapped_bytes;
mod metrics;
mod nfs;
mod outbox;
mod placement;
mod places;
mod report;
mod run;
mod secured;
mod site_headers;
mod sites;
mod snapshot;
mod sync;
mod tls_setup;
mod view;
mod watch;
mod worker;
mod workplace;

/// What every response names as its Server.
const SERVER: Option<&str> = Some("linerate");

pub use placement::default_calibration;
pub use run::{ServeError, break_evens, check, run};
pub use sites::SiteFault;
