//! Operation: what an operator does to a running server, what clients that mean harm do to it, and what becomes of files
//! that change while they are sent.

#[path = "../support/mod.rs"]
mod support;

mod access_log;
mod calibrate;
mod cold_files;
mod descriptors;
mod early_signals;
mod file_faults;
mod freeze;
mod limits;
mod memory;
mod metrics;
mod placement;
mod pressure;
mod process;
mod reload;
mod roots;
mod service_manager;
mod shutdown;
mod slow_clients;
mod start_faults;
mod stuck_log;
mod unread;
