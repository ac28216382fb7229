//! The load client: asks servers for files and says what they gave, how fast, how late and at what price.
//!
//! A [`LoadPlan`] says what to do, [`run`] does it, [`report`] is what it found out and the form of `linerate load --json`;
//! [`summary`] and [`csv`] are the same for people and for spreadsheets.
//!
//! Each thread has its own connections, its own `epoll`, its own counts; nothing is shared but the number of requests
//! left. Records are received many at a time and opened in place by `crates/record`; bodies can also be thrown away
//! unread, by the kernel, so that the sender alone is what is measured. [`nfs`] does the same with READs of NFS.

#![forbid(unsafe_code)]

mod alarm;
mod chunked;
mod connection;
mod cost;
pub mod csv;
mod environment;
mod error;
mod event_loop;
mod fault;
mod job;
pub mod nfs;
pub mod plan;
mod progress;
pub mod report;
mod request;
mod resolve;
pub mod response;
mod response_fault;
mod run;
mod schedule;
mod shared;
pub mod summary;
mod tally;
mod target;
mod verify;
mod wire;
mod workbench;
mod worker;

pub use error::LoadError;
pub use plan::LoadPlan;
pub use run::{Sayings, run};
pub use target::Target;
