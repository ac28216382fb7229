//! The experiments of the papers, on the reader's own machine: what they cost, side by side with what was published.
//!
//! * [`definition`] is an experiment's file: what is swept, on which servers, for how long, and what a paper reported.
//! * [`run()`] measures one. [`accounting`] reads what a round costs, `linerate_environment` what it was made on.
//! * [`nginx`] is for other programs that measure, too.
//! * [`result`] is what a run found out and the form of its file; [`load`] reads one.
//! * [`statistics`] says what a difference is, [`compare()`] holds two runs against each other, [`report`] shows all of it
//!   to people.

#![forbid(unsafe_code)]

pub mod accounting;
mod certificate;
mod client;
mod compare;
mod cores;
pub mod definition;
mod error;
mod files;
mod floor;
pub mod network;
pub mod nginx;
mod plan;
mod progress;
mod quantity;
pub(crate) mod random_file;
pub mod report;
pub mod result;
mod run;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod schema;
mod secret;
pub mod servers;
mod share;
pub mod statistics;
mod store;
pub mod streams;
mod targets;
mod tlshd;

pub use certificate::Certificate;
pub use compare::{Change, Comparison, Measure, Outcome, compare};
pub use error::{Error, Result};
pub use run::{Finished, Options, resume, run, set_up};
pub use share::{Names, Removed, Secret, Shared, share};
pub use store::{RESULT_FILE, load, load_all};
