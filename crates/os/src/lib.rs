//! The edge to the operating system: the one crate of linerate that may write `unsafe`, and the place where a port to
//! another system begins. It is written for Linux.
//!
//! | module | its one job |
//! |---|---|
//! | [`memory`] | memory that is wiped before it is given back |
//! | [`mapping`] | files mapped into memory, safe against being truncated |
//! | [`file`](mod@file) | reads that never wait for a disk, unless they may |
//! | [`socket`] | listeners, send and receive as the engines need them |
//! | [`kernel_tls`] | what the `tls` module of Linux is asked to do, behind a trait that tests replace |
//! | [`pages`] | memory that the kernel may be lent to send from |
//! | [`zero_copy`] | sends without a copy, and when they are complete |
//! | [`receive_mapping`] | receiving into a mapping, without a copy |
//! | [`inherited`] | sockets handed over by systemd |
//! | [`processor`] | which CPUs there are, which node they belong to, pinning a thread |
//! | [`limits`] | the limit of open files |
//! | [`clock`] | the CPU time of another process, exactly |
//! | [`perf`] | counters of perf events |
//! | [`adapter`] | what a network adapter's driver says of itself, and which adapter carries a connection |
//! | [`facility`] | the hypervisor, and whether io_uring is permitted |
//! | [`tcp_info`] | a connection's round trip, window and retransmissions |
//! | [`usage`] | what a thread has cost |

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

#[cfg(not(target_os = "linux"))]
compile_error!("linerate runs on Linux only: preadv2, sendfile, netlink and kernel TLS as Linux has them");

pub mod adapter;
pub mod clock;
pub mod facility;
pub mod file;
pub mod inherited;
pub mod kernel_tls;
pub mod limits;
pub mod mapping;
pub mod memory;
mod netlink;
pub mod pages;
pub mod perf;
pub mod processor;
pub mod receive_mapping;
mod residency;
pub mod socket;
mod sync;
pub mod tcp_info;
pub mod usage;
pub mod zero_copy;
