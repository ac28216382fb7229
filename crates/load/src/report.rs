//! What a load run found out, and the form of `linerate load --json`.
//!
//! Field names are stable within one [`SCHEMA`]; a field may be added, never change its meaning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The name and version of this form.
pub const SCHEMA: &str = "linerate-load/1";

/// With `--json` the client writes this as a line of its own to standard error when the warm-up is over and the measured
/// time begins, whatever else it says there. Whoever started it can then read costs for the same span.
pub const LINE_MEASURING: &str = "measuring";

/// With `--json` the client writes this as a line of its own to standard error at the moment when the measured time ends,
/// before it closes its connections and writes its report to standard output.
pub const LINE_MEASURED: &str = "measured";

/// One run of the load client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command line as it was given.
    pub command: Vec<String>,
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
    /// The client's own CPU.
    pub client: ClientCost,
    /// What was agreed with the server, by how many connections: "TLS 1.3, TLS_AES_256_GCM_SHA384, X25519MLKEM768".
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

/// Sums of a run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Responses that came whole.
    pub responses: u64,
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
}
