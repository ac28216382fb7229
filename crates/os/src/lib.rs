//! The edge to the operating system: the one crate of linerate that may write `unsafe`, and the one that knows which
//! system it is on. Each system has a room, `linux` or `freebsd`, with the same names in it; the modules below take from it
//! what differs, and have themselves what does not.
//!
//! | module | its one job |
//! |---|---|
//! | [`memory`] | memory that is wiped before it is given back |
//! | [`mapping`] | files mapped into memory, safe against being truncated |
//! | [`file`](mod@file) | reads that never wait for a disk, unless they may |
//! | [`beneath`] | opening what lies beneath a directory, and nowhere else |
//! | [`object`], [`entries`] | what the kernel says about an object, and of what a directory has |
//! | [`socket`] | listeners, send and receive as the engines need them |
//! | [`kernel_tls`] | what the `tls` module of Linux is asked to do, behind a trait that tests replace |
//! | [`pages`] | memory that the kernel may be lent to send from |
//! | [`zero_copy`] | sends without a copy, and when they are complete |
//! | [`receive_mapping`] | receiving into a mapping, without a copy |
//! | [`inherited`] | sockets handed over by systemd |
//! | [`processor`] | which CPUs there are, which node they belong to, pinning a thread |
//! | [`process`] | this process and others: whose they are, what they hold, where they live |
//! | [`limits`] | the limit of open files |
//! | [`clock`] | the CPU time of another process, exactly |
//! | [`perf`] | counters of perf events |
//! | [`adapter`] | what a network adapter's driver says of itself, and which adapter carries a connection |
//! | [`facility`] | the hypervisor, and whether io_uring is permitted |
//! | [`facts`] | what the system says about itself where no file does |
//! | [`tcp_info`] | a connection's round trip, window and retransmissions |
//! | [`usage`] | what a thread has cost |

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

mod freebsd;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "freebsd")]
use freebsd as system;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
compile_error!(
    "linerate knows Linux and FreeBSD: another system needs a room beside `linux` and `freebsd` in crates/os"
);

pub mod adapter;
pub mod beneath;
pub mod clock;
pub mod entries;
pub mod facility;
pub mod facts;
pub mod file;
pub mod inherited;
pub mod kernel_tls;
pub mod limits;
pub mod mapping;
pub mod memory;
pub mod object;
pub mod pages;
pub mod perf;
pub mod process;
pub mod processor;
pub mod receive_mapping;
pub mod socket;
mod sync;
pub mod tcp_info;
pub mod usage;
pub mod zero_copy;
