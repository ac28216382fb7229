//! What an idle connection takes of a server's resident memory.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::accounting::{self, Memory};
use super::clients::idle::Idle;
use super::clients::{Client, Job};
use super::files::FILE_10KB;
use super::slices::{Bench, Target};

/// After the last request, for buffers that are given back a little later.
const REST: Duration = Duration::from_secs(2);

/// The memory of one server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct IdleMemory {
    /// The server.
    pub(crate) label: String,
    /// How many connections.
    pub(crate) connections: usize,
    /// Before them, when a few have come and gone.
    pub(crate) before: Memory,
    /// With them.
    pub(crate) with: Memory,
}

impl IdleMemory {
    /// Opens the connections and reads the server's memory. The server should have been started just before:
    /// memory freed after earlier work would be taken again without being seen.
    pub(crate) fn measure(bench: &Bench<'_>, target: Target<'_>, connections: usize) -> Result<Self> {
        let job = Job::Idle(Idle { path: FILE_10KB.url_path(), connections });
        let mut client = Client::prepare(bench.link, &bench.order(target, job))?;
        std::thread::sleep(REST);
        let before = accounting::memory(&target.server.pids)?;
        client.go()?;
        std::thread::sleep(REST);
        let with = accounting::memory(&target.server.pids)?;
        Ok(Self { label: target.server.name.clone(), connections, before, with })
    }

    /// Anonymous resident bytes of a connection.
    pub(crate) fn anonymous_bytes_each(&self) -> f64 {
        self.each(self.before.anonymous_bytes, self.with.anonymous_bytes)
    }

    /// All resident bytes of a connection.
    pub(crate) fn resident_bytes_each(&self) -> f64 {
        self.each(self.before.resident_bytes, self.with.resident_bytes)
    }

    fn each(&self, before: u64, with: u64) -> f64 {
        (with as f64 - before as f64) / self.connections as f64
    }
}
