//! From costs and the load clients' reports to a [`Measurement`]: per byte, per second, per response.
//!
//! Costs and loads are read over spans that begin and end a little apart. So what is divided are rates: CPU seconds
//! per second by bytes per second.

use linerate_load::report::LoadReport;

use super::{Costs, PartyCosts, machine, wire};
use crate::result::{Measurement, ProcessCost, Reading};

/// Bytes of a KB in service demand, as netperf has it.
const KB: f64 = 1024.0;

/// Why there is no cost of a byte.
const NO_BYTES: &str = "no body bytes came";

impl Costs {
    /// What the round found out. `load` has the report of each client machine. Memory per connection is left to
    /// the caller, which knows what the server held before, and so is what a byte costs without a server.
    #[must_use]
    pub fn measurement(&self, load: Vec<LoadReport>) -> Measurement {
        let rates = Rates::of(&load);
        let (wire_gbit_s, wire_source) = wire::bandwidth(self, &load);
        let server_s = self.server.process.user_s + self.server.process.system_s;
        let server_s_per_s = per(server_s, self.elapsed_s);
        let machine_s_per_s = per(machine::busy_s(&self.machine, self.elapsed_s), self.elapsed_s);
        let moved_bytes = rates.body_bytes_per_s * self.elapsed_s;
        Measurement {
            elapsed_s: self.elapsed_s,
            application_gbit_s: rates.body_bytes_per_s * 8.0 / 1e9,
            wire_gbit_s,
            wire_source,
            server: self.server.per_byte(moved_bytes),
            client: self.client_cost(&load, moved_bytes),
            machine: self.machine.clone(),
            responses_per_s: rates.responses_per_s,
            handshakes_per_core_s: ratio(
                rates.handshakes_per_s,
                server_s_per_s,
                "the server used no CPU time",
            ),
            server_s_per_gb: ratio(server_s_per_s, rates.body_bytes_per_s / 1e9, NO_BYTES),
            server_us_per_response: ratio(
                1e6 * server_s_per_s,
                rates.responses_per_s,
                "no response came whole",
            ),
            service_demand_us_per_kb: ratio(1e6 * server_s_per_s, rates.body_bytes_per_s / KB, NO_BYTES),
            machine_service_demand_us_per_kb: ratio(
                1e6 * machine_s_per_s,
                rates.body_bytes_per_s / KB,
                NO_BYTES,
            ),
            server_resident_bytes: self.server_resident_bytes.clone(),
            server_bytes_per_connection: Reading::default(),
            server_disk_read_bytes: self.server.process.disk_read_bytes.clone(),
            energy_j_per_gb: divided(self.energy_j.clone(), moved_bytes / 1e9),
            memory_bytes_per_byte: divided(quantity(&self.memory_bytes), moved_bytes),
            retransmitted_segments: self.network.retransmitted_segments.clone(),
            tls_stat: self.network.tls_stat.clone(),
            seal_and_copy: Reading::default(),
            load,
        }
    }

    /// By the kernel where the client's processes were there at the end, by their own reports otherwise.
    fn client_cost(&self, load: &[LoadReport], moved_bytes: f64) -> ProcessCost {
        match &self.client {
            Reading::Value(client) => client.per_byte(moved_bytes),
            Reading::NotAvailable(reason) => {
                let none = || Reading::NotAvailable(reason.clone());
                ProcessCost {
                    user_s: load.iter().map(|load| load.client.user_s).sum(),
                    system_s: load.iter().map(|load| load.client.system_s).sum(),
                    voluntary_switches: none(),
                    involuntary_switches: none(),
                    cycles_per_byte: Reading::NotAvailable(reason.clone()),
                    instructions_per_byte: Reading::NotAvailable(reason.clone()),
                }
            }
        }
    }
}

impl PartyCosts {
    fn per_byte(&self, moved_bytes: f64) -> ProcessCost {
        ProcessCost {
            user_s: self.process.user_s,
            system_s: self.process.system_s,
            voluntary_switches: self.process.voluntary_switches.clone(),
            involuntary_switches: self.process.involuntary_switches.clone(),
            cycles_per_byte: divided(quantity(&self.hardware.cycles), moved_bytes),
            instructions_per_byte: divided(quantity(&self.hardware.instructions), moved_bytes),
        }
    }
}

/// What all clients together did in a second.
struct Rates {
    body_bytes_per_s: f64,
    responses_per_s: f64,
    handshakes_per_s: f64,
}

impl Rates {
    fn of(load: &[LoadReport]) -> Self {
        let sum = |count: fn(&LoadReport) -> u64| -> f64 {
            load.iter().map(|load| per(count(load) as f64, load.measured_s)).sum()
        };
        Self {
            body_bytes_per_s: sum(|load| load.totals.body_bytes),
            responses_per_s: sum(|load| load.totals.responses),
            handshakes_per_s: sum(|load| {
                load.totals.full_handshakes.saturating_add(load.totals.resumed_handshakes)
            }),
        }
    }
}

/// What was done in a second: nothing, where no time has passed.
fn per(amount: f64, by: f64) -> f64 {
    if by > 0.0 { amount / by } else { 0.0 }
}

fn ratio(amount: f64, by: f64, otherwise: &str) -> Reading<f64> {
    if by > 0.0 { Reading::Value(amount / by) } else { Reading::NotAvailable(otherwise.to_owned()) }
}

/// A reading divided by what it was used for.
fn divided(reading: Reading<f64>, by: f64) -> Reading<f64> {
    match reading {
        Reading::Value(amount) => ratio(amount, by, NO_BYTES),
        not_available => not_available,
    }
}

/// A count as a quantity.
fn quantity(count: &Reading<u64>) -> Reading<f64> {
    count.clone().map(|count| count as f64)
}

#[cfg(test)]
mod tests;
