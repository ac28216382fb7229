//! The steady state: how many bytes a second a machine sends, and what keeps it from sending more.

use serde::Serialize;

use crate::Sender;
use crate::cost::{Costing, MOST_MEMORY_LOAD};

/// What keeps a machine from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The CPU computes.
    Cpu,
    /// The CPU is busy, a quarter or more of it with waiting for memory.
    CpuWaitsForMemory,
    /// The memory's bandwidth.
    Memory,
    /// The adapter's ports.
    NicRate,
    /// What the adapter encrypts.
    NicCipher,
    /// Connections that the adapter takes over in a second.
    NicSetUps,
    /// Clients ask for no more.
    Clients,
}

impl Bottleneck {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::CpuWaitsForMemory => "CPU, waiting for memory",
            Self::Memory => "memory bandwidth",
            Self::NicRate => "the adapter's ports",
            Self::NicCipher => "the adapter's encryption",
            Self::NicSetUps => "the adapter's set-ups",
            Self::Clients => "clients ask for no more",
        }
    }
}

/// What a machine is predicted to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Bytes of bodies that clients receive, in gigabits a second.
    pub gbit_s: f64,
    /// The part of all cores that is busy.
    pub cpu_share: f64,
    /// What the memory moves.
    pub dram_gb_per_s: f64,
    /// Responses a second.
    pub responses_per_s: f64,
    /// CPU seconds for each gigabyte.
    pub cpu_s_per_gb: f64,
    /// What keeps it from more.
    pub bottleneck: Bottleneck,
    /// The part of the memory's bandwidth that is used.
    #[serde(skip)]
    pub memory_load: f64,
}

/// A part of the work and its sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) sender: Sender,
    /// Of all bytes.
    pub(crate) bytes: f64,
    /// Of all connections: those that were moved to this sender.
    pub(crate) moved: f64,
    /// Whether a worker waits while the adapter takes a connection over, as a server's event loop does. linerate has it
    /// done on another thread.
    pub(crate) worker_waits: bool,
}

impl Part {
    /// One sender for everything.
    pub(crate) fn whole(sender: Sender) -> Self {
        Self { sender, bytes: 1.0, moved: 1.0, worker_waits: true }
    }
}

impl Costing<'_> {
    /// CPU seconds for a byte, in the mean.
    fn cpu_s_per_byte(&self, parts: &[Part], memory_load: f64) -> f64 {
        let connection_bytes = self.workload.connection_bytes();
        let of_part = |part: &Part| {
            part.bytes * self.responses_s(part.sender, memory_load) + part.moved * self.set_up_s(part.sender)
        };
        let handshake_s = parts.first().map_or(0.0, |part| self.handshake_s(part.sender));
        (handshake_s + parts.iter().map(of_part).sum::<f64>()) / connection_bytes
    }

    /// Seconds for a byte, in the mean, in which a worker waits for the adapter and computes nothing.
    fn waited_s_per_byte(&self, parts: &[Part]) -> f64 {
        let waiting = parts.iter().filter(|part| part.worker_waits && part.sender == Sender::Nic);
        let moved: f64 = waiting.map(|part| part.moved).sum();
        if moved == 0.0 {
            return 0.0;
        }
        moved / self.machine.nic_set_ups_per_s / self.workload.connection_bytes()
    }

    fn mean_passes(&self, parts: &[Part]) -> f64 {
        parts.iter().map(|part| part.bytes * self.passes(part.sender)).sum()
    }

    /// The steady state of these parts.
    pub(crate) fn predict(&self, parts: &[Part]) -> Prediction {
        let machine = self.machine;
        let passes = self.mean_passes(parts);
        let load_at = |bytes_per_s: f64| bytes_per_s * 1e-9 * passes / machine.memory_gb_per_s;
        let (mut bytes_per_s, mut bottleneck) = self.least_limit(parts, passes);
        let waited_s = self.waited_s_per_byte(parts);
        let needs =
            |bytes_per_s: f64| bytes_per_s * (waited_s + self.cpu_s_per_byte(parts, load_at(bytes_per_s)));
        if needs(bytes_per_s) > machine.cpus() {
            bytes_per_s = largest(bytes_per_s, |rate| needs(rate) <= machine.cpus());
            let computing_s = bytes_per_s * self.without_waiting(parts);
            bottleneck = if bytes_per_s * waited_s > 0.25 * machine.cpus() {
                Bottleneck::NicSetUps
            } else if computing_s < 0.75 * machine.cpus() {
                Bottleneck::CpuWaitsForMemory
            } else {
                Bottleneck::Cpu
            };
        }
        let memory_load = load_at(bytes_per_s);
        let cpu_s_per_byte = self.cpu_s_per_byte(parts, memory_load);
        Prediction {
            gbit_s: bytes_per_s * 8e-9,
            cpu_share: bytes_per_s * cpu_s_per_byte / f64::from(machine.cores),
            dram_gb_per_s: memory_load * machine.memory_gb_per_s,
            responses_per_s: bytes_per_s / self.workload.response_bytes(),
            cpu_s_per_gb: cpu_s_per_byte * 1e9,
            bottleneck,
            memory_load,
        }
    }

    /// CPU seconds for a byte if no miss cost anything.
    fn without_waiting(&self, parts: &[Part]) -> f64 {
        let free = crate::Constants { miss_ns_per_byte: 0.0, bounce_ns_per_byte: 0.0, ..*self.constants };
        Costing { constants: &free, ..*self }.cpu_s_per_byte(parts, 0.0)
    }

    /// The least of all limits but the CPU's, in bytes of bodies a second.
    fn least_limit(&self, parts: &[Part], passes: f64) -> (f64, Bottleneck) {
        let (machine, workload) = (self.machine, self.workload);
        let payload = machine.payload_share() * self.body_share(parts) / 8.0 * 1e9;
        let on_nic = || parts.iter().filter(|part| part.sender == Sender::Nic);
        let nic_bytes: f64 = on_nic().map(|part| part.bytes).sum();
        // A connection that does not wait continues without the adapter if no set-up is available.
        let nic_moved: f64 = on_nic().filter(|part| part.worker_waits).map(|part| part.moved).sum();
        let mut limits = vec![
            (machine.nic_gbit * payload, Bottleneck::NicRate),
            (MOST_MEMORY_LOAD * machine.memory_gb_per_s * 1e9 / passes, Bottleneck::Memory),
        ];
        if let Some(gbit) = machine.nic_tls_gbit.filter(|_| nic_bytes > 0.0) {
            limits.push((gbit * payload / nic_bytes, Bottleneck::NicCipher));
        }
        if nic_moved > 0.0 {
            let connections_per_s = machine.nic_set_ups_per_s / nic_moved;
            limits.push((connections_per_s * workload.connection_bytes(), Bottleneck::NicSetUps));
        }
        if let Some(offered) = workload.offered_bytes_per_s() {
            limits.push((offered, Bottleneck::Clients));
        }
        let least = limits.into_iter().min_by(|one, other| one.0.total_cmp(&other.0));
        least.unwrap_or((0.0, Bottleneck::NicRate))
    }

    /// The part of TCP's payload that is body: records have a header and a tag (22 bytes with TLS 1.3, 29 with 1.2).
    fn body_share(&self, parts: &[Part]) -> f64 {
        const RECORD_BYTES: f64 = 16_384.0;
        let extra_bytes = match self.workload.tls.name() {
            _ if parts.iter().all(|part| part.sender == Sender::Plaintext) => 0.0,
            "1.2" => 29.0,
            _ => 22.0,
        };
        RECORD_BYTES / (RECORD_BYTES + extra_bytes)
    }
}

/// The largest value up to `most` for which `holds`, which holds for small ones.
fn largest(most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Constants, Machine, Workload, presets};

    fn with<T>(machine: &Machine, workload: &Workload, look: impl FnOnce(Costing<'_>) -> T) -> T {
        look(Costing { machine, workload, constants: &Constants::PRESENT })
    }

    fn predict(machine: &Machine, workload: &Workload, sender: Sender) -> Prediction {
        with(machine, workload, |costing| costing.predict(&[Part::whole(sender)]))
    }

    #[test]
    fn a_home_lab_fills_its_port_with_every_engine() {
        let (machine, workload) = (presets::machine("homelab").unwrap(), presets::workload("bulk").unwrap());
        for sender in [Sender::Plaintext, Sender::Classic, Sender::User, Sender::Kernel] {
            let prediction = predict(&machine, &workload, sender);
            assert_eq!(prediction.bottleneck, Bottleneck::NicRate, "{sender}");
            assert!((9.38..9.42).contains(&prediction.gbit_s), "{sender}: {}", prediction.gbit_s);
        }
    }

    #[test]
    fn more_of_anything_never_sends_less() {
        let workload = presets::workload("netflix").unwrap();
        let machine = presets::machine("netflix-rome-2021").unwrap();
        for sender in [Sender::Plaintext, Sender::Classic, Sender::User, Sender::Kernel, Sender::Nic] {
            let before = predict(&machine, &workload, sender).gbit_s;
            let better = [
                Machine { cores: machine.cores * 2, ..machine.clone() },
                Machine { memory_gb_per_s: machine.memory_gb_per_s * 2.0, ..machine.clone() },
                Machine { nic_gbit: machine.nic_gbit * 2.0, ..machine.clone() },
                Machine { nic_set_ups_per_s: machine.nic_set_ups_per_s * 2.0, ..machine.clone() },
            ];
            for machine in better {
                assert!(predict(&machine, &workload, sender).gbit_s >= before * (1.0 - 1e-9), "{sender}");
            }
        }
    }

    #[test]
    fn set_ups_limit_what_is_small() {
        let machine = presets::machine("connectx6-thread").unwrap();
        let small = predict(&machine, &presets::workload("thread-10kb").unwrap(), Sender::Nic);
        assert_eq!(small.bottleneck, Bottleneck::NicSetUps);
        assert!((small.responses_per_s - machine.nic_set_ups_per_s).abs() < 1.0);
    }

    /// Each of them costs a worker 1/850 s: one core can not do much else beside.
    #[test]
    fn a_worker_that_waits_for_the_adapter_computes_nothing() {
        let machine = Machine { nic_gbit: 1000.0, ..presets::machine("xeon-8380-one-core").unwrap() };
        let mut workload = presets::workload("bulk").unwrap();
        workload.sizes[0].bytes = 1_000_000;
        workload.requests_per_connection = 1;
        with(&machine, &workload, |costing| {
            let whole = Part::whole(Sender::Nic);
            let waits = costing.predict(&[whole]);
            let waits_elsewhere = costing.predict(&[Part { worker_waits: false, ..whole }]);
            assert_eq!(waits.bottleneck, Bottleneck::NicSetUps);
            assert!(waits.gbit_s < 0.9 * waits_elsewhere.gbit_s, "{waits:?} {waits_elsewhere:?}");
            assert!(waits.cpu_share < 0.9);
        });
    }

    #[test]
    fn no_prediction_uses_more_than_there_is() {
        for (machine_name, _) in presets::MACHINES {
            for (workload_name, _) in presets::WORKLOADS {
                let machine = presets::machine(machine_name).unwrap();
                let workload = presets::workload(workload_name).unwrap();
                for sender in [Sender::Plaintext, Sender::Classic, Sender::User, Sender::Kernel] {
                    let found = predict(&machine, &workload, sender);
                    let where_ = format!("{machine_name} {workload_name} {sender}");
                    assert!(found.gbit_s > 0.0 && found.gbit_s < machine.nic_gbit, "{where_}");
                    assert!(found.cpu_share <= 1.0 + 1e-6, "{where_}: {}", found.cpu_share);
                    assert!(found.dram_gb_per_s <= machine.memory_gb_per_s, "{where_}");
                }
            }
        }
    }

    #[test]
    fn the_largest_is_found_by_halves() {
        assert!((largest(10.0, |value| value * value <= 2.0) - 2f64.sqrt()).abs() < 1e-9);
        assert_eq!(largest(10.0, |_| true).round(), 10.0);
    }
}
