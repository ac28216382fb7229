//! What a load run found out, and the form of `linerate load --json`.
//!
//! Field names are stable within one [`SCHEMA`]; a field may be added, never change its meaning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The name and version of this form.
pub const SCHEMA: &str = "linerate-load/1";

/// With `--json` the client writes this as a line of its own to standard error when the warm-up is over and the measured
/// time begins, whatever else it says there. The process that started it can then read costs for the same span.
pub const LINE_MEASURING: &str = "measuring";

/// With `--json` the client writes this as a line of its own to standard error at the moment when the measured time ends,
/// before it closes its connections and writes its report to standard output.
pub const LINE_MEASURED: &str = "measured";

/// One run of the load client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command line as it was given.
    pub command: Vec<String>,
    /// When measuring began, in seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// What it ran on: "kernel", "cpu", "cpus", "open_files", "local_ports", "version".
    pub environment: BTreeMap<String, String>,
    /// How long was measured, without the warm-up, in seconds.
    pub measured_s: f64,
    /// What was asked for and came, in the measured time.
    pub totals: Totals,
    /// From when a request was sent (with a rate: should have been sent) to the last byte of its response.
    pub latency: Distribution,
    /// From when a request was sent (with a rate: should have been sent) to the first byte of its response.
    pub first_byte: Distribution,
    /// From the first byte of a response to its last.
    pub transfer: Distribution,
    /// From `connect` to the connection being established.
    pub connect: Distribution,
    /// From the connection being established to the end of the TLS handshake.
    pub handshake: Distribution,
    /// Failures by kind, the kind in words.
    pub errors: BTreeMap<String, u64>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// The first bytes that differed from their source; the first few responses' in which one did.
    pub mismatches: Vec<Mismatch>,
    /// Requests a second that were asked for; nothing where each connection asked as soon as it was answered.
    pub rate_per_s: Option<f64>,
    /// The client's own CPU.
    pub client: ClientCost,
    /// What was agreed with the server, by how many connections, those of the warm-up included: "TLS 1.3, TLS_AES_256_GCM_SHA384, X25519MLKEM768".
    pub negotiated: BTreeMap<String, u64>,
    /// Bytes were thrown away unread after the response head: the sender is what was measured.
    pub discarded: bool,
    /// Every byte was compared with its source.
    pub verified: bool,
    /// Why the client, and not the server, is thought to have been the limit; nothing where it was not.
    pub client_limited: Option<String>,
    /// The run was ended early by a signal.
    pub interrupted: bool,
}

impl LoadReport {
    /// The report as JSON: of the form in `docs/schema/linerate-load-1.json`, indented, with a line break at its end.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Plain data with text for keys: it always has a JSON form.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// Sums of a run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Requests sent.
    pub requests: u64,
    /// Responses that came whole, whatever their status.
    pub responses: u64,
    /// Requests that were under way when the time was over, or, at a rate, due: in none of the distributions.
    pub unanswered: u64,
    /// How long the oldest of them had waited, in µs.
    pub oldest_unanswered_us: u64,
    /// Bytes of response bodies, also of responses that were not over when the time was.
    pub body_bytes: u64,
    /// Bytes received on TCP connections: records and heads included.
    pub received_bytes: u64,
    /// Bytes sent on TCP connections.
    pub sent_bytes: u64,
    /// Connections opened.
    pub connections: u64,
    /// Full TLS handshakes.
    pub full_handshakes: u64,
    /// Resumed TLS handshakes.
    pub resumed_handshakes: u64,
}

impl Totals {
    /// Adds another thread's.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.responses += other.responses;
        self.unanswered += other.unanswered;
        self.oldest_unanswered_us = self.oldest_unanswered_us.max(other.oldest_unanswered_us);
        self.body_bytes += other.body_bytes;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.connections += other.connections;
        self.full_handshakes += other.full_handshakes;
        self.resumed_handshakes += other.resumed_handshakes;
    }
}

/// A response that is not what its source is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// What was asked for.
    pub url: String,
    /// The source.
    pub file: String,
    /// Where in the file the first difference is.
    pub offset: u64,
    /// The source's byte there; nothing where the source had ended.
    pub wanted: Option<u8>,
    /// The byte that came; nothing where the response had ended.
    pub received: Option<u8>,
}

/// A distribution of times, in microseconds; all zero where `count` is.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// How many were seen.
    pub count: u64,
    /// The mean, in µs.
    pub mean_us: f64,
    /// The standard deviation, in µs.
    pub deviation_us: f64,
    /// The least, in µs.
    pub min_us: u64,
    /// The 50th percentile, in µs.
    pub p50_us: u64,
    /// The 75th percentile, in µs.
    pub p75_us: u64,
    /// The 90th percentile, in µs.
    pub p90_us: u64,
    /// The 99th percentile, in µs.
    pub p99_us: u64,
    /// The 99.9th percentile, in µs.
    pub p999_us: u64,
    /// The 99.99th percentile, in µs.
    pub p9999_us: u64,
    /// The greatest, in µs.
    pub max_us: u64,
}

/// CPU time of the load client's process during the measured time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ClientCost {
    /// Seconds in user mode.
    pub user_s: f64,
    /// Seconds in the kernel.
    pub system_s: f64,
    /// Threads that carried load.
    pub threads: u32,
    /// The greatest share of the measured time that one of them was running on a CPU, 0 to 1.
    pub busiest_running: f64,
    /// The share of the measured time that this thread could have run but had to wait for a CPU; nothing where the
    /// system does not tell.
    pub busiest_waiting: Option<f64>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A report of nothing.
    pub(crate) fn example() -> LoadReport {
        LoadReport { schema: SCHEMA.to_owned(), measured_s: 1.0, ..LoadReport::default() }
    }

    #[test]
    fn a_report_can_be_read_again() {
        let text = serde_json::to_string(&example()).unwrap();
        let again: LoadReport = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}
