//! What the kernel says about itself: its version, and what its TLS has counted.

use std::{collections::BTreeMap, fs};

/// The version of the running kernel: (6, 12) for 6.12.95.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel(pub u32, pub u32);

impl Kernel {
    /// The first that takes a new key for a connection that has one (net/tls, "implement rekey for TLS1.3").
    pub const FIRST_WITH_REKEY: Self = Self(6, 14);

    /// The one that runs this.
    ///
    /// # Panics
    /// Where /proc does not say.
    #[must_use]
    pub fn running() -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is mounted");
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
        let mut next = || numbers.next().and_then(Result::ok).expect("a release begins with two numbers");
        Self(next(), next())
    }

    /// Whether TLS 1.3 connections can get a new key in place.
    #[must_use]
    pub fn takes_new_keys(self) -> bool {
        self >= Self::FIRST_WITH_REKEY
    }
}

/// `/proc/net/tls_stat` at a moment.
#[derive(Clone, Debug)]
pub struct TlsStatistics(BTreeMap<String, u64>);

impl TlsStatistics {
    /// As it stands now.
    ///
    /// # Panics
    /// Where there is none; see [`crate::has_kernel_tls`].
    #[must_use]
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/net/tls_stat").expect("the tls module is loaded");
        Self(
            text.lines()
                .filter_map(|line| {
                    let mut words = line.split_whitespace();
                    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
                })
                .collect(),
        )
    }

    /// A counter's value. 0 for one that this kernel has not.
    #[must_use]
    pub fn of(&self, counter: &str) -> u64 {
        self.0.get(counter).copied().unwrap_or(0)
    }

    /// How far a counter has moved since `self`.
    #[must_use]
    pub fn moved(&self, counter: &str) -> u64 {
        Self::now().of(counter) - self.of(counter)
    }

    /// The counters of faults that have moved since `self`: there must be none.
    #[must_use]
    pub fn new_faults(&self) -> Vec<(String, u64)> {
        let now = Self::now();
        let faults = now.0.iter().filter(|(name, _)| name.contains("Error") || name.contains("Violation"));
        faults
            .filter(|(name, value)| **value != self.of(name))
            .map(|(name, value)| (name.clone(), *value))
            .collect()
    }
}
