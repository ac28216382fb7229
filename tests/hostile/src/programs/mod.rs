//! The fault programs.

mod changed_files;
mod descriptors;
mod disks;
mod every_byte;
mod frozen;
mod killed;
mod logs;
mod memory;
mod reloads;
mod slow_clients;
mod soak;
mod starting;

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::{Arena, Findings, Outcome};

/// A fault program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    run: fn(&Arena) -> Result<Findings>,
}

/// All of them, in the order in which they run.
pub const ALL: [Program; 12] = [
    Program {
        name: "every-byte",
        about: "splits handshake and request at every byte; ends the connection by FIN and by RST after every byte of \
                handshake, request and response",
        run: every_byte::run,
    },
    Program {
        name: "slow-clients",
        about: "silent, dripping, slowly reading and idle clients, each kind beside a well-behaved client",
        run: slow_clients::run,
    },
    Program {
        name: "descriptors",
        about: "more clients than the process may have descriptors, from its start and by prlimit while it runs",
        run: descriptors::run,
    },
    Program {
        name: "memory",
        about: "load in 64 MiB of memory (control group), or of address space",
        run: memory::run,
    },
    Program {
        name: "logs",
        about: "access log into a pipe nobody reads, a FIFO without a reader, /dev/full; then TERM, QUIT, HUP, USR1",
        run: logs::run,
    },
    Program {
        name: "frozen",
        about: "STOP in the middle of transfers, CONT after longer than every time limit",
        run: frozen::run,
    },
    Program {
        name: "disks",
        about: "a disk that is slower than the time limits, fails with EIO, and hangs (FUSE)",
        run: disks::run,
    },
    Program {
        name: "changed-files",
        about: "files truncated, overwritten, regrown, replaced and deleted under a transfer, over TLS and in the clear",
        run: changed_files::run,
    },
    Program {
        name: "reloads",
        about: "a storm of HUP under load; a listener taken away and put back; certificates swapped",
        run: reloads::run,
    },
    Program { name: "starting", about: "HUP and USR1 while the server starts", run: starting::run },
    Program {
        name: "killed",
        about: "kill -9 under load, and a start at the same ports at once",
        run: killed::run,
    },
    Program {
        name: "soak",
        about: "load for a time, every byte compared; memory and descriptors",
        run: soak::run,
    },
];

impl Program {
    /// The program of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|program| program.name == name)
    }

    /// Runs it and judges what it found.
    #[must_use]
    pub fn run(&self, arena: &Arena) -> Outcome {
        let began = Instant::now();
        let result = (self.run)(arena);
        let server = arena.launcher.describe();
        Outcome::judge(
            self.name,
            &server,
            arena.family.label(),
            arena.launcher.is_judged(),
            began.elapsed(),
            result,
        )
    }
}

/// Waits until `holds`, or says that it did not within `limit`.
pub(crate) fn holds_within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let give_up = Instant::now() + limit;
    while !holds() {
        if Instant::now() >= give_up {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// "after 0.3 s", or "not within 10 s".
pub(crate) fn say_end(ended: Option<Duration>, limit: Duration) -> String {
    match ended {
        Some(after) => format!("ended after {:.1} s", after.as_secs_f64()),
        None => format!("did not end within {} s", limit.as_secs()),
    }
}
