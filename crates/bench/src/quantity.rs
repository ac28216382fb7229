//! The quantities of a round that are drawn and tabulated: name, unit, and how each is read.

use crate::result::{Measurement, Point, ProcessCost, Reading, Round};

/// Something that every round has a value of, or a reason for having none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    /// As published series name it: the field of [`Measurement`], where it is one.
    pub key: &'static str,
    /// Heading of its plot.
    pub title: &'static str,
    /// Heading of its column.
    pub short: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// More of it is better.
    pub more_is_better: bool,
    /// What a value in the field's unit is times, to be in `unit`.
    pub scale: f64,
    /// Reads it.
    pub read: fn(&Measurement) -> Reading<f64>,
}

pub(crate) const APPLICATION: Quantity = Quantity {
    key: "application_gbit_s",
    title: "Throughput",
    short: "application",
    unit: "Gb/s",
    more_is_better: true,
    scale: 1.0,
    read: |round| Reading::Value(round.application_gbit_s),
};

pub(crate) const WIRE: Quantity = Quantity {
    key: "wire_gbit_s",
    title: "Throughput on the wire",
    short: "wire",
    unit: "Gb/s",
    more_is_better: true,
    scale: 1.0,
    read: |round| round.wire_gbit_s.clone(),
};

pub(crate) const CPU_PER_GB: Quantity = Quantity {
    key: "server_s_per_gb",
    title: "Server CPU per gigabyte",
    short: "server CPU",
    unit: "s/GB",
    more_is_better: false,
    scale: 1.0,
    read: |round| round.server_s_per_gb.clone(),
};

pub(crate) const CPU_SHARE: Quantity = Quantity {
    key: "server_cpu_percent",
    title: "Server CPU in use",
    short: "server CPU",
    unit: "% of a core",
    more_is_better: false,
    scale: 1.0,
    read: |round| {
        per(100.0 * (round.server.user_s + round.server.system_s), round.elapsed_s, "no time has passed")
    },
};

pub(crate) const DEMAND: Quantity = Quantity {
    key: "service_demand_us_per_kb",
    title: "Service demand of the server",
    short: "server",
    unit: "µs/KB",
    more_is_better: false,
    scale: 1.0,
    read: |round| round.service_demand_us_per_kb.clone(),
};

pub(crate) const MACHINE_DEMAND: Quantity = Quantity {
    key: "machine_service_demand_us_per_kb",
    title: "Service demand of the machine",
    short: "machine",
    unit: "µs/KB",
    more_is_better: false,
    scale: 1.0,
    read: |round| round.machine_service_demand_us_per_kb.clone(),
};

pub(crate) const CPU_PER_RESPONSE: Quantity = Quantity {
    key: "server_us_per_response",
    title: "Server CPU per response",
    short: "per response",
    unit: "µs",
    more_is_better: false,
    scale: 1.0,
    read: |round| round.server_us_per_response.clone(),
};

pub(crate) const CLIENT_CPU: Quantity = Quantity {
    key: "client_s_per_gb",
    title: "Client CPU per gigabyte",
    short: "client CPU",
    unit: "s/GB",
    more_is_better: false,
    scale: 1.0,
    read: |round| {
        let gigabytes = round.load.iter().map(|load| load.totals.body_bytes as f64).sum::<f64>() / 1e9;
        per(round.client.user_s + round.client.system_s, gigabytes, "nothing was received")
    },
};

pub(crate) const HANDSHAKES: Quantity = Quantity {
    key: "handshakes_per_core_s",
    title: "Handshakes per second of server CPU",
    short: "handshakes",
    unit: "1/s",
    more_is_better: true,
    scale: 1.0,
    read: |round| round.handshakes_per_core_s.clone(),
};

pub(crate) const RESPONSES: Quantity = Quantity {
    key: "responses_per_s",
    title: "Responses per second",
    short: "responses",
    unit: "1/s",
    more_is_better: true,
    scale: 1.0,
    read: |round| Reading::Value(round.responses_per_s),
};

pub(crate) const PER_CONNECTION: Quantity = Quantity {
    key: "server_bytes_per_connection",
    title: "Memory of the server per connection",
    short: "per connection",
    unit: "kB",
    more_is_better: false,
    scale: 1e-3,
    read: |round| map(&round.server_bytes_per_connection, |bytes| bytes / 1e3),
};

pub(crate) const DISK_READ: Quantity = Quantity {
    key: "server_disk_read_bytes",
    title: "Read from disk by the server",
    short: "from disk",
    unit: "MB",
    more_is_better: false,
    scale: 1e-6,
    read: |round| map(&round.server_disk_read_bytes, |bytes| *bytes as f64 / 1e6),
};

pub(crate) const RESIDENT: Quantity = Quantity {
    key: "server_resident_bytes",
    title: "Memory of the server",
    short: "memory",
    unit: "MB",
    more_is_better: false,
    scale: 1e-6,
    read: |round| map(&round.server_resident_bytes, |bytes| *bytes as f64 / 1e6),
};

pub(crate) const CYCLES: Quantity = Quantity {
    key: "cycles_per_byte",
    title: "Cycles of the server per body byte",
    short: "cycles",
    unit: "1/B",
    more_is_better: false,
    scale: 1.0,
    read: |round| round.server.cycles_per_byte.clone(),
};

pub(crate) const INSTRUCTIONS: Quantity = Quantity {
    key: "instructions_per_byte",
    title: "Instructions of the server per body byte",
    short: "instructions",
    unit: "1/B",
    more_is_better: false,
    scale: 1.0,
    read: |round| round.server.instructions_per_byte.clone(),
};

pub(crate) const ENERGY: Quantity = Quantity {
    key: "energy_j_per_gb",
    title: "Energy of the processor per gigabyte",
    short: "energy",
    unit: "J/GB",
    more_is_better: false,
    scale: 1.0,
    read: |round| round.energy_j_per_gb.clone(),
};

pub(crate) const MEMORY_TRAFFIC: Quantity = Quantity {
    key: "memory_bytes_per_byte",
    title: "Bytes moved in memory per body byte",
    short: "memory traffic",
    unit: "B/B",
    more_is_better: false,
    scale: 1.0,
    read: |round| round.memory_bytes_per_byte.clone(),
};

/// Of streams the server is the end that sends, and the client the one that receives.
pub(crate) const SENDER_DEMAND: Quantity = Quantity {
    key: "sender_us_per_kb",
    title: "Service demand of the sender",
    short: "sender",
    unit: "µs/KB",
    more_is_better: false,
    scale: 1.0,
    read: |round| per(1e6 * cpu_s(&round.server), kilobytes(round), NOTHING_MOVED),
};

pub(crate) const RECEIVER_DEMAND: Quantity = Quantity {
    key: "receiver_us_per_kb",
    title: "Service demand of the receiver",
    short: "receiver",
    unit: "µs/KB",
    more_is_better: false,
    scale: 1.0,
    read: |round| per(1e6 * cpu_s(&round.client), kilobytes(round), NOTHING_MOVED),
};

pub(crate) const SENDER_CPU: Quantity = Quantity {
    key: "sender_cpu_percent",
    title: "CPU in use by the sender",
    short: "sender CPU",
    unit: "% of a core",
    more_is_better: false,
    scale: 1.0,
    read: |round| per(100.0 * cpu_s(&round.server), round.elapsed_s, NO_TIME),
};

pub(crate) const RECEIVER_CPU: Quantity = Quantity {
    key: "receiver_cpu_percent",
    title: "CPU in use by the receiver",
    short: "receiver CPU",
    unit: "% of a core",
    more_is_better: false,
    scale: 1.0,
    read: |round| per(100.0 * cpu_s(&round.client), round.elapsed_s, NO_TIME),
};

pub(crate) const BOTH_ENDS: Quantity = Quantity {
    key: "both_ends_s_per_gb",
    title: "CPU of both ends per gigabyte",
    short: "both ends",
    unit: "s/GB",
    more_is_better: false,
    scale: 1.0,
    read: |round| {
        let gigabytes = kilobytes(round) * 1024.0 / 1e9;
        per(cpu_s(&round.server) + cpu_s(&round.client), gigabytes, NOTHING_MOVED)
    },
};

const NOTHING_MOVED: &str = "nothing was moved";
const NO_TIME: &str = "no time has passed";

fn cpu_s(process: &ProcessCost) -> f64 {
    process.user_s + process.system_s
}

/// Of 1024 bytes.
fn kilobytes(round: &Measurement) -> f64 {
    round.application_gbit_s * 1e9 / 8.0 * round.elapsed_s / 1024.0
}

pub(crate) const RETRANSMITTED: Quantity = Quantity {
    key: "retransmitted_segments",
    title: "TCP segments sent again",
    short: "sent again",
    unit: "segments",
    more_is_better: false,
    scale: 1.0,
    read: |round| map(&round.retransmitted_segments, |segments| *segments as f64),
};

pub(crate) const SWITCHES: Quantity = Quantity {
    key: "server_switches_per_s",
    title: "Context switches of the server per second",
    short: "switches",
    unit: "1/s",
    more_is_better: false,
    scale: 1.0,
    read: |round| match (&round.server.voluntary_switches, &round.server.involuntary_switches) {
        (Reading::Value(own), Reading::Value(forced)) => {
            per((own + forced) as f64, round.elapsed_s, "no time has passed")
        }
        (Reading::NotAvailable(reason), _) | (_, Reading::NotAvailable(reason)) => {
            Reading::NotAvailable(reason.clone())
        }
    },
};

/// What stands in the second table, and is seldom all available.
pub(crate) const FURTHER: [Quantity; 10] = [
    CLIENT_CPU,
    CYCLES,
    INSTRUCTIONS,
    ENERGY,
    MEMORY_TRAFFIC,
    RESIDENT,
    PER_CONNECTION,
    SWITCHES,
    DISK_READ,
    RETRANSMITTED,
];

const FIRST: [Quantity; 14] = [
    APPLICATION,
    WIRE,
    CPU_PER_GB,
    CPU_SHARE,
    DEMAND,
    MACHINE_DEMAND,
    CPU_PER_RESPONSE,
    HANDSHAKES,
    RESPONSES,
    SENDER_DEMAND,
    RECEIVER_DEMAND,
    SENDER_CPU,
    RECEIVER_CPU,
    BOTH_ENDS,
];

/// The quantity that a definition or a paper names by its field.
pub(crate) fn named(key: &str) -> Option<Quantity> {
    FIRST.into_iter().chain(FURTHER).find(|quantity| quantity.key == key)
}

/// What the price of TLS is measured by, in an experiment about these quantities.
pub(crate) fn price(quantities: &[String]) -> Quantity {
    if is_about_handshakes(quantities) { CPU_PER_RESPONSE } else { CPU_PER_GB }
}

/// Whether handshakes are what an experiment is about first of all.
pub(crate) fn is_about_handshakes(quantities: &[String]) -> bool {
    quantities.first().is_some_and(|key| key == HANDSHAKES.key)
}

/// The names that [`named`] knows.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    FIRST.into_iter().chain(FURTHER).map(|quantity| quantity.key)
}

/// TLS handshakes of a round, full and resumed.
pub(crate) fn handshakes(round: &Measurement) -> f64 {
    round.load.iter().map(|load| (load.totals.full_handshakes + load.totals.resumed_handshakes) as f64).sum()
}

/// Whole responses of a round.
pub(crate) fn responses(round: &Measurement) -> f64 {
    round.load.iter().map(|load| load.totals.responses as f64).sum()
}

fn per(part: f64, whole: f64, otherwise: &str) -> Reading<f64> {
    if whole > 0.0 { Reading::Value(part / whole) } else { Reading::NotAvailable(otherwise.to_owned()) }
}

fn map<T>(reading: &Reading<T>, change: impl Fn(&T) -> f64) -> Reading<f64> {
    match reading {
        Reading::Value(value) => Reading::Value(change(value)),
        Reading::NotAvailable(reason) => Reading::NotAvailable(reason.clone()),
    }
}

/// A quantity in each round, `None` where the round failed or has no value.
pub(crate) fn values_by_round(point: &Point, quantity: &Quantity) -> Vec<Option<f64>> {
    let value = |round: &Round| match round {
        Round::Measured(measurement) => match (quantity.read)(measurement) {
            Reading::Value(value) if value.is_finite() => Some(value),
            _ => None,
        },
        Round::Failed { .. } => None,
    };
    point.rounds.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_quantity() {
        let keys: Vec<_> = keys().collect();
        for key in &keys {
            assert_eq!(keys.iter().filter(|other| *other == key).count(), 1, "{key}");
            assert_eq!(named(key).map(|quantity| quantity.key), Some(*key));
        }
        assert!(named("application_mbit_s").is_none());
    }
}
