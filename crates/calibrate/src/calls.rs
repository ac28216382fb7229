//! System calls: one that does nothing, and copies into a socket of two sizes.

use std::io;

use linerate_os::socket::Follows;

use crate::{
    Figures,
    loopback::{Bench, cpu_ns},
};

/// What a system call that does nothing costs.
const EMPTY: &str = "system_call_ns";
/// Bytes of the copies: from two sizes follow what a byte and what a call cost.
pub(crate) const SHORT_BYTES: usize = 4096;
/// As much as a burst of the kernel's.
pub(crate) const LONG_BYTES: usize = 65_536;

/// What a copy into a socket costs is under this name: TCP's work with it, as far as the sender does it.
pub(crate) fn figure(bytes: usize) -> String {
    format!("send_{bytes}_bytes_ns")
}

pub(crate) fn measure(bench: &Bench, figures: &mut Figures) -> io::Result<()> {
    const CALLS: u32 = 20_000;
    let began = cpu_ns();
    for _ in 0..CALLS {
        let _ = rustix::process::getppid();
    }
    figures.add(EMPTY, (cpu_ns() - began) / f64::from(CALLS));
    for (bytes, calls) in [(SHORT_BYTES, 4000_u32), (LONG_BYTES, 500)] {
        let connection = bench.connect()?;
        let source = vec![0x5A; bytes];
        let began = cpu_ns();
        for _ in 0..calls {
            connection.send(&source, Follows::Nothing)?;
        }
        figures.add(figure(bytes), (cpu_ns() - began) / f64::from(calls));
    }
    Ok(())
}
