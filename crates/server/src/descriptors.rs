//! Descriptors: how many connections and cached files the limit of open files leaves room for, and some in reserve for when
//! there are none left all the same.

use crate::nfs;
use linerate_config::Settings;
use linerate_os::limits::{is_without_descriptor, spare_descriptor, spare_in_place_of};
use std::{
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What a worker has open beside connections and cached files: its runtime, its reserve, and a second descriptor of a file
/// or socket for each of its waiting threads.
const OF_A_WORKER: u64 = 8 + Reserve::DESCRIPTORS as u64 + 16;
/// What the process has open beside workers, listeners and roots: standard streams, log, certificates that are read, watches,
/// signals, the control thread's runtime; and the admin listener with its connections and its reserve.
const OF_THE_PROCESS: u64 = 48 + 32 + Reserve::DESCRIPTORS as u64;
/// Fewer connections than this are no service.
const LEAST_CONNECTIONS: u64 = 16;

/// What the process may open, and what that is divided among.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) open_files: u64,
    pub(crate) workers: u64,
}

/// How it is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) connections: usize,
    /// For each worker.
    pub(crate) files_cached: usize,
    /// Open files for which nothing would be less than configured.
    pub(crate) wanted: u64,
}

impl Budget {
    /// Files get half of what there is at most: a cached file is only quicker to open, and a connection without a file that
    /// can be opened is of no use either.
    pub(crate) fn divide(self, settings: &Settings) -> Shares {
        let limits = &settings.limits;
        let workers = self.workers.max(1);
        let listeners = settings.listeners.len() as u64 * workers;
        let roots = 2 * settings.sites.len() as u64;
        let exported = match settings.exports.len() as u64 {
            0 => 0,
            exports => exports + nfs::DESCRIPTORS,
        };
        let fixed = OF_THE_PROCESS + OF_A_WORKER * workers + listeners + roots + exported;
        let left = self.open_files.saturating_sub(fixed);
        let files_cached = (limits.open_files_cached as u64).min(left / 2 / workers);
        let left = (left - files_cached * workers).max(LEAST_CONNECTIONS);
        let whole = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Shares {
            connections: limits.connections.min(whole(left)),
            files_cached: whole(files_cached),
            wanted: fixed + limits.connections as u64 + limits.open_files_cached as u64 * workers,
        }
    }

    /// What is less than configured, and what to do about it.
    pub(crate) fn shortage(self, settings: &Settings) -> Option<String> {
        let limits = &settings.limits;
        let Shares { connections, files_cached, wanted } = self.divide(settings);
        let mut less = Vec::new();
        if connections < limits.connections {
            less.push(format!("{connections} connections are taken instead of {}", limits.connections));
        }
        if files_cached < limits.open_files_cached {
            less.push(format!(
                "{files_cached} files are kept open by each worker instead of {}",
                limits.open_files_cached
            ));
        }
        (!less.is_empty()).then(|| {
            format!(
                "this process may open {} files: {} (raise LimitNOFILE= of the unit, or `ulimit -Hn`, to {wanted}; or lower \
                 limits.connections and limits.open_files_cached)",
                self.open_files,
                less.join(", ")
            )
        })
    }
}

/// Descriptors that are open for nothing, so that they can be given up when there are no others: to take a connection and
/// close it, so that its client need not wait; to open a file for a client that has a connection; to answer on the admin page.
///
/// Where the limit is lowered below what is open already (`prlimit`), only numbers below it are of any use.
#[derive(Debug)]
pub(crate) struct Reserve(Mutex<Vec<OwnedFd>>);

impl Reserve {
    /// How many.
    pub(crate) const DESCRIPTORS: usize = 4;

    pub(crate) fn new() -> Self {
        let reserve = Self(Mutex::default());
        reserve.refill();
        reserve
    }

    fn kept(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back the number of a descriptor that is to be closed, if it lacks one: nobody else can have it in between, as long
    /// as there is one left to copy.
    pub(crate) fn keep(&self, closing: OwnedFd) {
        let mut kept = self.kept();
        match kept.first() {
            Some(spare) if kept.len() < Self::DESCRIPTORS => {
                // A limit that is below its number now refuses it.
                let taken = spare_in_place_of(closing, spare);
                kept.extend(taken.ok());
            }
            _ => {
                drop((closing, kept));
                self.refill();
            }
        }
    }

    /// Takes back what was given up, if that can be had. False if there are no descriptors for it.
    pub(crate) fn refill(&self) -> bool {
        let mut kept = self.kept();
        while kept.len() < Self::DESCRIPTORS {
            match spare_descriptor() {
                Ok(descriptor) => kept.push(descriptor),
                // A system that forbids it for another reason has to do without.
                Err(error) => return !is_without_descriptor(&error),
            }
        }
        true
    }

    /// Gives one up. False if there is none.
    pub(crate) fn release(&self) -> bool {
        self.kept().pop().is_some()
    }

    /// Does what needs a descriptor, with one out of the reserve where there is no other.
    pub(crate) fn with<T, E>(
        &self,
        mut open: impl FnMut() -> Result<T, E>,
        is_short: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        loop {
            match open() {
                // Another thread may take what this one gave up: once for each that there is.
                Err(error) if is_short(&error) && self.release() => {}
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_config::Flags;
    use rustix::io::Errno;
    use std::{
        io::{self, Write},
        os::fd::AsRawFd,
        path::Path,
    };

    fn settings(limits: &str) -> Settings {
        let text = format!("listen = [\"127.0.0.1:0\"]\n[limits]\n{limits}\n[[site]]\nroot = \"r\"\n");
        Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).unwrap()
    }

    #[test]
    fn connections_and_files_fit_what_the_process_may_open() {
        for (open_files, workers) in [(64, 1), (256, 2), (1024, 2), (1024, 64), (4096, 8), (524_288, 64)] {
            let settings = settings("");
            let shares = Budget { open_files, workers }.divide(&settings);
            assert!(shares.connections >= LEAST_CONNECTIONS as usize, "{open_files} {shares:?}");
            let used = shares.connections as u64 + shares.files_cached as u64 * workers;
            let is_little = used <= LEAST_CONNECTIONS;
            assert!(used < open_files || is_little, "{open_files}: {shares:?}");
            assert!(shares.connections <= 65_536 && shares.files_cached <= 1024);
        }
    }

    #[test]
    fn what_is_less_than_configured_is_said_with_what_it_would_take() {
        let budget = Budget { open_files: 1024, workers: 2 };
        let shares = budget.divide(&settings(""));
        let said = budget.shortage(&settings("")).unwrap();
        assert!(said.starts_with("this process may open 1024 files: "), "{said}");
        assert!(
            said.contains(&format!("{} connections are taken instead of 65536", shares.connections)),
            "{said}"
        );
        assert!(
            said.contains(&format!("{} files are kept open by each worker", shares.files_cached)),
            "{said}"
        );
        assert!(said.contains(&format!("to {}", shares.wanted)), "{said}");
        let enough = Budget { open_files: shares.wanted, workers: 2 };
        assert_eq!(enough.shortage(&settings("")), None);
        assert!(Budget { open_files: shares.wanted - 1, workers: 2 }.shortage(&settings("")).is_some());
        assert_eq!(budget.shortage(&settings("connections = 300\nopen_files_cached = 100")), None);
    }

    #[test]
    fn a_number_that_was_given_up_is_taken_back_in_one_step() {
        let reserve = Reserve::new();
        assert!(reserve.release());
        let (kept, mut gone) = io::pipe().unwrap();
        let number = kept.as_raw_fd();
        reserve.keep(kept.into());
        let has_it = |reserve: &Reserve| reserve.kept().iter().any(|spare| spare.as_raw_fd() == number);
        assert!(has_it(&reserve) && reserve.kept().len() == Reserve::DESCRIPTORS);
        let closed = gone.write_all(b"x").unwrap_err();
        assert_eq!(closed.kind(), io::ErrorKind::BrokenPipe, "what was open there");
        // It has all: another is closed, and all of them are what they were.
        reserve.keep(spare_descriptor().unwrap());
        assert!(has_it(&reserve) && reserve.kept().len() == Reserve::DESCRIPTORS);
    }

    #[test]
    fn what_is_held_in_reserve_is_given_up_where_there_is_no_other() {
        let reserve = Reserve::new();
        let mut tries = 0;
        let opened = reserve.with(
            || {
                tries += 1;
                if tries < 3 { Err(io::Error::from(Errno::MFILE)) } else { Ok(()) }
            },
            is_without_descriptor,
        );
        assert!(opened.is_ok() && reserve.kept().len() == Reserve::DESCRIPTORS - 2);
        assert!(reserve.refill() && reserve.kept().len() == Reserve::DESCRIPTORS);
        let failed = reserve.with(|| Err::<(), _>(io::Error::from(Errno::NOENT)), is_without_descriptor);
        assert!(failed.is_err() && reserve.kept().len() == Reserve::DESCRIPTORS, "for nothing else");
        let failed = reserve.with(|| Err::<(), _>(io::Error::from(Errno::NFILE)), is_without_descriptor);
        assert!(failed.is_err() && !reserve.release(), "all of it was tried");
    }
}
