//! System calls: one that does nothing, and copies into a socket of two sizes.

use std::{io, time::Duration};

use linerate_os::socket::Follows;

use crate::{
    Figures,
    send_path::SendPath,
    stretch::{Enough, cost_of_each_ns},
};

/// What a system call that does nothing costs.
const EMPTY: &str = "system_call_ns";
/// Bytes of the copies: from two sizes follow what a byte and what a call cost.
pub(crate) const SHORT_BYTES: usize = 4096;
/// As much as a burst of the kernel's.
pub(crate) const LONG_BYTES: usize = 65_536;
const TIME: Duration = Duration::from_millis(10);
/// Between two looks at the clock.
const EMPTY_AT_ONCE: u64 = 500;

/// What a copy into a socket costs is under this name: TCP's work with it, as far as the sender does it.
pub(crate) fn figure(bytes: usize) -> String {
    format!("send_{bytes}_bytes_ns")
}

pub(crate) fn measure(path: &SendPath, figures: &mut Figures) -> io::Result<()> {
    let empty_ns = cost_of_each_ns(Enough { units: 20_000, time: TIME }, || {
        for _ in 0..EMPTY_AT_ONCE {
            let _ = rustix::process::getppid();
        }
        Ok::<_, io::Error>(EMPTY_AT_ONCE)
    })?;
    figures.add(EMPTY, empty_ns);
    for (bytes, units, at_once) in [(SHORT_BYTES, 4000, 8), (LONG_BYTES, 500, 1)] {
        let connection = path.connect()?;
        let source = vec![0x5A; bytes];
        let each_ns = cost_of_each_ns(Enough { units, time: TIME }, || {
            for _ in 0..at_once {
                connection.send(&source, Follows::Nothing)?;
            }
            Ok::<_, io::Error>(at_once)
        })?;
        figures.add(figure(bytes), each_ns);
    }
    Ok(())
}
