//! A run for tests: two servers, one point each, with rounds of given costs.

use std::collections::BTreeMap;

use linerate_load::report::LoadReport;

use crate::result::{
    CoreTimes, ExperimentRun, MachineCost, Measurement, NetworkUsed, Point, ProcessCost, Reading, Round,
    SCHEMA, SealAndCopy, ServerUsed, Setup, Target, Variable,
};

/// A run in which TLS costs 1.5 × plaintext.
pub(crate) fn sample_run() -> ExperimentRun {
    run_of(&[
        ("nginx plaintext", &[0.20, 0.21, 0.20, 0.19, 0.20]),
        ("linerate user", &[0.30, 0.31, 0.30, 0.29, 0.30]),
    ])
}

/// "linerate user" is to cost at most so much of "nginx tls", everywhere.
pub(crate) fn target(most: f64) -> Target {
    Target {
        server: "linerate user".to_owned(),
        at: BTreeMap::new(),
        quantity: None,
        beside: Some("nginx tls".to_owned()),
        beside_at: BTreeMap::new(),
        beside_version: None,
        most,
    }
}

/// A run with these servers, each with the CPU seconds per GB of its rounds at one point.
pub(crate) fn run_of(servers: &[(&str, &[f64])]) -> ExperimentRun {
    let used = |name: &str| ServerUsed {
        name: name.to_owned(),
        version: "1.0".to_owned(),
        command: vec!["serve".to_owned()],
        configuration: String::new(),
        plaintext: name.ends_with("plaintext"),
    };
    let point = |(name, costs): &(&str, &[f64])| Point {
        server: (*name).to_owned(),
        variables: BTreeMap::from([("connections".to_owned(), Variable::Number(8.0))]),
        client_command: vec!["linerate".to_owned(), "load".to_owned()],
        network: NetworkUsed {
            path: "loopback".to_owned(),
            congestion_control: Reading::Value("cubic".to_owned()),
            queue_discipline: Reading::NotAvailable("a sample".to_owned()),
        },
        rounds: costs.iter().map(|cost| Round::Measured(Box::new(measurement(*cost)))).collect(),
    };
    ExperimentRun {
        schema: SCHEMA.to_owned(),
        name: "sample".to_owned(),
        definition: String::new(),
        title: "A sample".to_owned(),
        source: "nowhere".to_owned(),
        axis: "connections".to_owned(),
        axis_is_logarithmic: false,
        quantities: vec!["server_s_per_gb".to_owned(), "application_gbit_s".to_owned()],
        rounds_planned: 5,
        setup: Setup::default(),
        started_unix_s: 1_795_000_000,
        quick: true,
        command: vec!["linerate".to_owned(), "bench".to_owned()],
        environment: BTreeMap::new(),
        servers: servers.iter().map(|(name, _)| used(name)).collect(),
        points: servers.iter().map(point).collect(),
        skipped: Vec::new(),
        published: Vec::new(),
        targets: Vec::new(),
        changed: BTreeMap::new(),
        floor: Reading::default(),
        warnings: Vec::new(),
        incomplete: false,
    }
}

/// What sealing and copying a byte costs without a server.
pub(crate) fn seal_and_copy(seal_s_per_gb: f64, copy_s_per_gb: f64) -> SealAndCopy {
    SealAndCopy { cipher: "AES-256-GCM".to_owned(), record_bytes: 16_384, seal_s_per_gb, copy_s_per_gb }
}

/// A round of one second on one core that was busy all the time.
pub(crate) fn measurement(server_s_per_gb: f64) -> Measurement {
    let unknown = || Reading::<f64>::NotAvailable("a sample".to_owned());
    let process = ProcessCost {
        user_s: 0.5,
        system_s: 0.5,
        voluntary_switches: Reading::Value(1),
        involuntary_switches: Reading::Value(1),
        cycles_per_byte: unknown(),
        instructions_per_byte: unknown(),
    };
    Measurement {
        load: vec![load_report()],
        elapsed_s: 1.0,
        application_gbit_s: 8.0 / server_s_per_gb,
        wire_gbit_s: Reading::Value(8.5 / server_s_per_gb),
        wire_source: "a sample".to_owned(),
        server: process.clone(),
        client: process,
        machine: MachineCost { total: CoreTimes::default(), cores: BTreeMap::new() },
        responses_per_s: 1.0,
        handshakes_per_core_s: unknown(),
        server_s_per_gb: Reading::Value(server_s_per_gb),
        server_us_per_response: unknown(),
        service_demand_us_per_kb: Reading::Value(server_s_per_gb * 1.024),
        machine_service_demand_us_per_kb: unknown(),
        server_resident_bytes: Reading::Value(1 << 20),
        server_bytes_per_connection: unknown(),
        server_disk_read_bytes: Reading::Value(0),
        energy_j_per_gb: unknown(),
        memory_bytes_per_byte: unknown(),
        retransmitted_segments: Reading::Value(0),
        tls_stat: Reading::Value(BTreeMap::new()),
        seal_and_copy: Reading::default(),
    }
}

/// What a client says that did nothing.
pub(crate) fn load_report() -> LoadReport {
    LoadReport {
        schema: linerate_load::report::SCHEMA.to_owned(),
        command: Vec::new(),
        started_unix_s: 0,
        environment: BTreeMap::new(),
        measured_s: 1.0,
        totals: Default::default(),
        latency: Default::default(),
        first_byte: Default::default(),
        transfer: Default::default(),
        connect: Default::default(),
        handshake: Default::default(),
        errors: BTreeMap::new(),
        statuses: BTreeMap::new(),
        mismatches: Vec::new(),
        rate_per_s: None,
        client: Default::default(),
        negotiated: BTreeMap::new(),
        discarded: false,
        verified: false,
        client_limited: None,
        interrupted: false,
    }
}
