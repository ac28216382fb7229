//! What a round costs: read before and after, at one end or both, without disturbing it.
//!
//! [`Meter::begin`] notes the counters, [`Meter::end`] reads them again, and [`Costs`] is the difference. Every figure
//! says of what it is: the processes that were named (and theirs), the machine, or the network of the server's process.
//! What each means, and when it misleads, is told in `docs/MEASURING.md`.

mod energy;
mod error;
mod hardware;
mod machine;
mod measurement;
mod memory_bandwidth;
mod network;
mod process;
mod procfs;
mod wire;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

pub use error::Error;
pub use hardware::HardwareCounts;
pub use machine::busy_s;
pub use network::{InterfaceUse, NetworkUse};
pub use process::ProcessUse;

use crate::result::{MachineCost, Reading};

/// Counters that were noted at the beginning of a span.
#[derive(Debug)]
pub struct Meter {
    began: Instant,
    /// The server's first process: the network is read as it sees it.
    first_server: u32,
    server: Party,
    client: Result<Party, Error>,
    machine: machine::Moment,
    network: network::Moment,
    interface: Option<String>,
    energy: energy::Moment,
    memory: memory_bandwidth::Running,
}

/// One end of the connections.
#[derive(Debug)]
struct Party {
    roots: process::Roots,
    before: process::Moment,
    hardware: hardware::Running,
}

/// What was used in a span.
#[derive(Clone, Debug)]
pub struct Costs {
    /// How long the span was, in seconds.
    pub elapsed_s: f64,
    /// The server's processes.
    pub server: PartyCosts,
    /// The load client's processes, where they were named and lived to the end.
    pub client: Reading<PartyCosts>,
    /// All cores of this machine.
    pub machine: MachineCost,
    /// The network that the server's process sees.
    pub network: NetworkUse,
    /// Energy of the processor packages, in joules.
    pub energy_j: Reading<f64>,
    /// Bytes that went over the memory bus.
    pub memory_bytes: Reading<u64>,
    /// Memory of the server's processes at the end, without what is page cache: `RssAnon` and `RssShmem`.
    pub server_resident_bytes: Reading<u64>,
}

/// What one end used.
#[derive(Clone, Debug)]
pub struct PartyCosts {
    /// By the kernel's clocks.
    pub process: ProcessUse,
    /// By the processor's counters.
    pub hardware: HardwareCounts,
}

impl Meter {
    /// Begins a span. The processes of both ends are followed with all that they start (but the server is no
    /// part of a client that started it). `interface` is the one that
    /// the server sends by, as its process sees it; with none, or "lo", wire bandwidth is computed.
    ///
    /// # Errors
    /// [`Error::NoServer`], [`Error::Ended`] for a server process that is not there; what Linux always has and that cannot be read.
    pub fn begin(server_pids: &[u32], client_pids: &[u32], interface: Option<&str>) -> Result<Self, Error> {
        let &first = server_pids.first().ok_or(Error::NoServer)?;
        // What takes its time comes first, the clock and what is compared with it last and close together.
        let memory = memory_bandwidth::Running::start(Path::new(memory_bandwidth::EVENT_SOURCES));
        let network = network::Moment::take(first)?;
        let server = Party::begin(server_pids, &[])?;
        let client = Party::begin(client_pids, server_pids);
        let energy = energy::Moment::take(Path::new(energy::POWERCAP));
        let machine = machine::Moment::take()?;
        let began = Instant::now();
        let server = server.noted()?;
        let client = client.and_then(Party::noted);
        let interface = interface.map(str::to_owned);
        Ok(Self { began, first_server: first, server, client, machine, network, interface, energy, memory })
    }

    /// Ends the span.
    ///
    /// # Errors
    /// [`Error::Ended`] or [`Error::Lost`] where a process of the server took its figures with it; what Linux always
    /// has and that cannot be read.
    pub fn end(self) -> Result<Costs, Error> {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let machine = machine::Moment::take()?;
        let server = self.server.end()?;
        let client = self.client_costs();
        let energy = energy::Moment::take(Path::new(energy::POWERCAP));
        let memory_bytes = self.memory.bytes();
        let network = network::Moment::take(self.first_server)?;
        Ok(Costs {
            elapsed_s,
            server,
            client,
            machine: machine.since(&self.machine),
            network: network.since(&self.network, self.interface.as_deref()),
            energy_j: energy.since(&self.energy, elapsed_s),
            memory_bytes,
            server_resident_bytes: process::resident_bytes(&process::members(&self.server.roots)?),
        })
    }

    /// A client that has ended is nothing unusual: its own report says what it used.
    fn client_costs(&self) -> Reading<PartyCosts> {
        match &self.client {
            Ok(party) if party.roots.named.is_empty() => {
                Reading::NotAvailable("no process of the client was named".to_owned())
            }
            Ok(party) => match party.end() {
                Ok(costs) => Reading::Value(costs),
                Err(error) => Reading::NotAvailable(error.to_string()),
            },
            Err(error) => Reading::NotAvailable(error.to_string()),
        }
    }
}

impl Party {
    fn begin(named: &[u32], not: &[u32]) -> Result<Self, Error> {
        let roots = process::Roots { named: named.to_vec(), not: not.to_vec() };
        let hardware = hardware::Running::start(&process::members(&roots)?);
        Ok(Self { roots, before: process::Moment::default(), hardware })
    }

    /// With what was used so far.
    fn noted(mut self) -> Result<Self, Error> {
        self.before = process::Moment::take(&self.roots)?;
        Ok(self)
    }

    fn end(&self) -> Result<PartyCosts, Error> {
        let hardware = self.hardware.read();
        let process = process::Moment::take(&self.roots)?.since(&self.before)?;
        Ok(PartyCosts { process, hardware })
    }
}

/// The machine's cores alone, for a span without servers.
#[derive(Debug)]
pub(crate) struct MachineWatch {
    began: Instant,
    before: machine::Moment,
}

impl MachineWatch {
    /// Begins a span.
    pub(crate) fn begin() -> Result<Self, Error> {
        Ok(Self { before: machine::Moment::take()?, began: Instant::now() })
    }

    /// What the cores did in it, and how long it was, in seconds.
    pub(crate) fn end(&self) -> Result<(MachineCost, f64), Error> {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        Ok((machine::Moment::take()?.since(&self.before), elapsed_s))
    }
}

/// A file of the kernel's, as text.
fn read(path: impl Into<PathBuf>) -> Result<String, Error> {
    let path = path.into();
    fs::read_to_string(&path).map_err(|source| Error::Unreadable { path, source })
}

fn unreadable_form(path: &str) -> Error {
    Error::NotUnderstood { path: path.into() }
}
