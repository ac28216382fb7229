//! What each way of sending costs on a machine: CPU time, in placement's own terms, and passes over memory.
//!
//! A byte's way in steps: the path that all pay (TCP, file system, driver), the cipher, copies, and for each time that a
//! core has to wait for memory a miss. Misses get dearer as the memory fills up: an idle miss divided by the part of the
//! memory's bandwidth that is left, as in a queue with one server.

use linerate_placement::{Cipher, Costs, Engine, EngineCosts, NicLimits};

use crate::constants::CIPHERS;
use crate::machine::{CipherImplementation, Machine, Stack};
use crate::{Constants, Handshake, Sender, Workload};

/// Above this part of the memory's bandwidth nothing is calculated: the queue's formula has no sense there.
pub(crate) const MOST_MEMORY_LOAD: f64 = 0.97;

/// The plaintext of a full record.
const RECORD_BYTES: u64 = 1 << 14;

/// One machine and one workload, with the constants to calculate what they cost each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costing<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) workload: &'a Workload,
    pub(crate) constants: &'a Constants,
}

/// Where a byte meets memory. `misses` are lines that a core waits for; `passes` all that crosses the memory bus.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MemoryWay {
    misses: f64,
    passes: f64,
}

impl Costing<'_> {
    /// What a sender costs when the memory is used to a part of `memory_load`, path included.
    pub(crate) fn engine_costs(&self, sender: Sender, cipher: Cipher, memory_load: f64) -> EngineCosts {
        let (machine, constants) = (self.machine, self.constants);
        let ns_per_cycle = 1.0 / machine.clock_ghz;
        let dearer = 1.0 / (1.0 - memory_load.clamp(0.0, MOST_MEMORY_LOAD));
        let way = self.memory_way(sender);
        let mut per_byte_ns = self.cycles_per_byte(sender, cipher) * ns_per_cycle;
        per_byte_ns += way.misses * constants.miss_ns_per_byte * dearer;
        if sender == Sender::Nic && !machine.nic_zero_copy {
            per_byte_ns += constants.bounce_ns_per_byte * dearer;
        }
        let request_cycles = match sender {
            Sender::Classic => constants.classic_request_cycles,
            _ => constants.request_cycles,
        };
        let (set_up_cycles, set_up_wait_ns) = match sender {
            Sender::Kernel => (constants.kernel_set_up_cycles, 0.0),
            Sender::Nic if machine.nic_encrypts() => {
                (constants.nic_set_up_cycles, 1e9 / machine.nic_set_ups_per_s)
            }
            _ => (0.0, 0.0),
        };
        let call_bytes = match (self.workload.io_bytes, sender) {
            (Some(io_bytes), _) => io_bytes,
            (None, Sender::Classic) => 16 << 10,
            (None, Sender::User) => 64 << 10,
            (None, _) => 1 << 20,
        };
        // An I/O begins a record of its own.
        let record_bytes = self.workload.io_bytes.map_or(RECORD_BYTES, |io_bytes| io_bytes.min(RECORD_BYTES));
        EngineCosts {
            set_up_ns: set_up_cycles * ns_per_cycle,
            set_up_wait_ns,
            per_byte_ns,
            per_record_ns: self.record_cycles(sender) * ns_per_cycle,
            per_call_ns: constants.call_cycles * ns_per_cycle,
            per_response_ns: request_cycles * ns_per_cycle,
            record_bytes,
            call_bytes,
        }
    }

    /// Computing alone: path, cipher, copies in cache.
    fn cycles_per_byte(&self, sender: Sender, cipher: Cipher) -> f64 {
        let (machine, constants) = (self.machine, self.constants);
        let path = constants.path_cycles_per_byte(machine.stack);
        let segments = if machine.segmentation_offload {
            0.0
        } else {
            constants.segment_cycles / machine.segment_bytes()
        };
        let user_aead = constants.aead_cycles_per_byte(machine.user_aead, cipher);
        let kernel_aead = constants.aead_cycles_per_byte(machine.kernel_aead, cipher);
        let copy = constants.copy_cycles_per_byte;
        let into_socket = if self.copies_io(sender) { copy } else { 0.0 };
        segments
            + into_socket
            + match sender {
                Sender::Plaintext | Sender::Nic | Sender::Auto => path,
                // What reading and writing cost in place of sendfile is in the factor, copies included.
                Sender::Classic if machine.stack != Stack::Linux => {
                    path * constants.freebsd_read_write_factor + user_aead
                }
                Sender::Classic => path + 2.0 * copy + user_aead,
                Sender::User => path + copy + user_aead,
                Sender::Kernel => path + kernel_aead,
            }
    }

    /// Whether a program's own buffer is copied into the socket by a sender that sends files without a copy. The other senders
    /// have a copy already.
    fn copies_io(&self, sender: Sender) -> bool {
        let from_memory = self.workload.io_bytes.is_some() && !self.workload.zero_copy_send;
        from_memory && matches!(sender, Sender::Plaintext | Sender::Nic | Sender::Auto)
    }

    fn record_cycles(&self, sender: Sender) -> f64 {
        match sender {
            Sender::Plaintext => 0.0,
            Sender::Kernel if self.machine.is_linux() => self.constants.linux_kernel_record_cycles,
            _ => self.constants.record_cycles,
        }
    }

    fn memory_way(&self, sender: Sender) -> MemoryWay {
        // Disk to memory and memory to adapter, without a core: 2; Netflix measured 2.2 to 2.7 with all that goes on beside.
        const DEVICES: f64 = 2.4;
        let way = |misses, passes| MemoryWay { misses, passes };
        let mut way = match sender {
            Sender::Plaintext | Sender::Auto => way(0.0, DEVICES),
            // Source, buffer of plaintext, socket: fetched, and the last two written back (the buffer of records too).
            Sender::Classic => way(3.0, 8.0),
            // Source and socket fetched, socket written back; what is in between stays in the second cache.
            Sender::User => way(2.0, 5.0),
            // Source read, destination written past the caches.
            Sender::Kernel if self.machine.kernel_aead == CipherImplementation::IsaL => way(1.0, 4.0),
            // Source and destination fetched, destination written back: 5, measured 4.9.
            Sender::Kernel => way(2.0, 4.9),
            Sender::Nic if self.machine.nic_zero_copy => way(0.0, DEVICES),
            // The copy's misses are in its own constant.
            Sender::Nic => way(0.0, DEVICES + 2.0),
        };
        if self.workload.io_bytes.is_some() && way.misses >= 1.0 {
            // The program's buffer stays in the cache.
            way = MemoryWay { misses: way.misses - 1.0, passes: way.passes - 1.0 };
        }
        if self.copies_io(sender) {
            // The socket's pages are fetched and written back.
            way = MemoryWay { misses: way.misses + 1.0, passes: way.passes + 2.0 };
        }
        // What is in memory already does not come from disk.
        way.passes -= 1.0 - self.workload.cold_share;
        way
    }

    /// Passes over memory for each byte sent.
    pub(crate) fn passes(&self, sender: Sender) -> f64 {
        self.memory_way(sender).passes
    }

    /// CPU seconds of a connection's bytes and requests, set-up and handshake left out.
    pub(crate) fn responses_s(&self, sender: Sender, memory_load: f64) -> f64 {
        let costs = self.engine_costs(sender, self.workload.cipher.0, memory_load);
        self.workload.requests_per_connection as f64 * self.workload.mean(|bytes| costs.cost_ns(bytes)) * 1e-9
    }

    /// CPU seconds of a connection from accept to close, without its responses.
    pub(crate) fn handshake_s(&self, sender: Sender) -> f64 {
        let constants = self.constants;
        let full = match sender {
            // Plaintext has no handshake; accept and close are within the request's figure.
            Sender::Plaintext => return 0.0,
            Sender::Classic => constants.classic_handshake_cycles,
            _ => constants.handshake_cycles,
        };
        let cycles = match self.workload.handshake {
            Handshake::Ecdsa => full,
            Handshake::Rsa => full + constants.rsa_cycles,
            Handshake::Resumed => full - constants.resumed_cycles,
        };
        cycles / self.machine.clock_ghz * 1e-9
    }

    /// CPU seconds of moving a connection to a sender.
    pub(crate) fn set_up_s(&self, sender: Sender) -> f64 {
        self.engine_costs(sender, self.workload.cipher.0, 0.0).set_up_ns * 1e-9
    }

    /// What placement decides by.
    pub(crate) fn placement_costs(&self, memory_load: f64) -> Costs {
        let mut costs = Costs::defaults();
        for engine in Engine::ALL {
            for cipher in CIPHERS {
                costs.set(engine, cipher, self.engine_costs(engine.into(), cipher, memory_load));
            }
        }
        costs.nic_limits = NicLimits {
            set_ups_per_s: self.machine.nic_set_ups_per_s,
            flow_table_flows: self.machine.nic_flows,
        };
        costs
    }
}
