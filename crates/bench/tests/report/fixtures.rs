//! Runs as they come from machines: made from a small model of what servers cost, with noise that is always the same.
//!
//! They are made as JSON, as `result.json` is read: a field that is added later has its default here too.

use linerate_bench::result::ExperimentRun;
use linerate_load::report::LoadReport;
use serde_json::{Value, json};

/// A server as the model knows it.
#[derive(Clone, Copy)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    pub(crate) plaintext: bool,
    /// CPU of connection, handshake and request, in µs.
    pub(crate) fixed_us: f64,
    /// CPU per GB of body, in seconds.
    pub(crate) s_per_gb: f64,
    /// The most that it gives whatever the CPU, in Gb/s.
    pub(crate) ceiling_gbit_s: f64,
}

pub(crate) const NGINX: Model =
    Model { name: "nginx plaintext", plaintext: true, fixed_us: 9.0, s_per_gb: 0.22, ceiling_gbit_s: 90.0 };
pub(crate) const NGINX_TLS: Model =
    Model { name: "nginx TLS", plaintext: false, fixed_us: 262.0, s_per_gb: 0.50, ceiling_gbit_s: 90.0 };
pub(crate) const USER: Model =
    Model { name: "linerate user", plaintext: false, fixed_us: 131.0, s_per_gb: 0.264, ceiling_gbit_s: 90.0 };
pub(crate) const KERNEL: Model = Model {
    name: "linerate kernel",
    plaintext: false,
    fixed_us: 146.0,
    s_per_gb: 0.31,
    ceiling_gbit_s: 90.0,
};
pub(crate) const NIC: Model = Model {
    name: "nginx kTLS, inline in the adapter",
    plaintext: false,
    fixed_us: 900.0,
    s_per_gb: 0.21,
    ceiling_gbit_s: 90.0,
};

/// Numbers from 0 to 1 that look random and are the same in every run (Park and Miller's generator).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed * 7_919 + 1)
    }

    fn next(&mut self) -> f64 {
        self.0 = self.0 * 48_271 % 2_147_483_647;
        self.0 as f64 / 2_147_483_647.0
    }

    /// About 1, by up to `width` in either direction.
    pub(crate) fn around_one(&mut self, width: f64) -> f64 {
        1.0 + width * (2.0 * self.next() - 1.0)
    }
}

/// What a round is made of.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) file_bytes: f64,
    /// A connection and a handshake for each response.
    pub(crate) close: bool,
    /// The server's CPU in use, in cores.
    pub(crate) cores: f64,
    pub(crate) discarded: bool,
    pub(crate) client_limited: bool,
    pub(crate) noise: f64,
}

pub(crate) const LARGE: Load =
    Load { file_bytes: 2e9, close: false, cores: 0.97, discarded: false, client_limited: false, noise: 0.02 };

fn distribution(p50_us: f64, count: u64) -> Value {
    let at = |factor: f64| (p50_us * factor).round() as u64;
    json!({
        "count": count, "mean_us": p50_us * 1.1, "deviation_us": p50_us * 0.3, "min_us": at(0.6), "p50_us": at(1.0),
        "p75_us": at(1.2), "p90_us": at(1.5), "p99_us": at(2.4), "p999_us": at(4.1), "p9999_us": at(6.0), "max_us": at(7.7),
    })
}

fn none() -> Value {
    distribution(0.0, 0)
}

fn missing(reason: &str) -> Value {
    json!({ "not_available": reason })
}

const NO_PERF: &str = "no perf events in this virtual machine (perf_event_open: ENOENT)";

/// A load report with these fields, and every other as the load client's own default has it.
fn with_defaults(ours: Value) -> Value {
    fn over(under: &mut Value, ours: Value) {
        match (under, ours) {
            (Value::Object(under), Value::Object(ours)) => {
                for (name, value) in ours {
                    over(under.entry(name).or_insert(Value::Null), value);
                }
            }
            (under, ours) => *under = ours,
        }
    }
    let mut report = serde_json::to_value(LoadReport::default()).expect("a report has a JSON form");
    over(&mut report, ours);
    report
}

/// One round of a server under a load.
pub(crate) fn measured(model: &Model, load: &Load, noise: &mut Noise) -> Value {
    let elapsed_s = 5.0;
    let us = (model.fixed_us * f64::from(u8::from(load.close)).max(0.08)
        + model.s_per_gb * load.file_bytes * 1e-3)
        * noise.around_one(load.noise);
    let per_s = (load.cores * 1e6 / us).min(model.ceiling_gbit_s * 1e9 / 8.0 / load.file_bytes);
    let responses = (per_s * elapsed_s).max(1.0);
    let body_bytes = responses * load.file_bytes;
    let server_s = us * responses * 1e-6;
    let gbit_s = body_bytes * 8.0 / elapsed_s / 1e9;
    let tls = !model.plaintext;
    let handshakes = if tls && load.close { responses as u64 } else { 0 };
    let client_s = body_bytes / 1e9 * 0.09;
    let core = |busy: f64| {
        json!({ "user_s": busy * 0.55, "system_s": busy * 0.4, "interrupt_s": 0.0, "softirq_s": busy * 0.05,
                "steal_s": 0.01, "idle_s": elapsed_s - busy })
    };
    let s_per_gb = server_s / (body_bytes / 1e9);
    json!({ "measured": {
        "load": [with_defaults(json!({
            "schema": "linerate-load/1", "command": ["linerate", "load"], "measured_s": elapsed_s,
            "totals": {
                "responses": responses as u64, "body_bytes": body_bytes as u64, "received_bytes": (body_bytes * 1.002) as u64,
                "sent_bytes": 4_000, "connections": if load.close { responses as u64 } else { 10 },
                "full_handshakes": handshakes, "resumed_handshakes": 0,
            },
            "latency": distribution(2.0 * us + 90.0, responses as u64),
            "first_byte": distribution(us.min(400.0) + 40.0, responses as u64),
            "transfer": distribution(us + 20.0, responses as u64),
            "connect": distribution(45.0, responses as u64),
            "handshake": if handshakes > 0 { distribution(model.fixed_us * 3.0, handshakes) } else { none() },
            "errors": {},
            "client": { "user_s": client_s * 0.2, "system_s": client_s * 0.8, "threads": 1 },
            "negotiated": if tls { json!({ "TLS 1.3, TLS_AES_256_GCM_SHA384, X25519": 10 }) } else { json!({}) },
            "discarded": load.discarded, "verified": false,
            "client_limited": if load.client_limited { json!("the client used 99 % of its core") } else { Value::Null },
            "interrupted": false,
        }))],
        "elapsed_s": elapsed_s,
        "application_gbit_s": gbit_s,
        "wire_gbit_s": { "value": gbit_s * 1.049 },
        "wire_source": "computed for MSS 1448",
        "server": {
            "user_s": server_s * if tls { 0.6 } else { 0.1 }, "system_s": server_s * if tls { 0.4 } else { 0.9 },
            "voluntary_switches": { "value": 12_000 }, "involuntary_switches": { "value": 210 },
            "cycles_per_byte": missing(NO_PERF), "instructions_per_byte": missing(NO_PERF),
        },
        "client": {
            "user_s": client_s * 0.2, "system_s": client_s * 0.8,
            "voluntary_switches": { "value": 9_000 }, "involuntary_switches": { "value": 90 },
            "cycles_per_byte": missing(NO_PERF), "instructions_per_byte": missing(NO_PERF),
        },
        "machine": { "total": core(server_s + client_s), "cores": { "0": core(server_s), "1": core(client_s) } },
        "responses_per_s": per_s,
        "handshakes_per_core_s": if handshakes > 0 { json!({ "value": handshakes as f64 / server_s }) } else { missing("no TLS") },
        "server_s_per_gb": { "value": s_per_gb },
        "server_us_per_response": { "value": us },
        "service_demand_us_per_kb": { "value": s_per_gb * 1.024 },
        "machine_service_demand_us_per_kb": { "value": (s_per_gb + 0.09) * 1.024 },
        "server_resident_bytes": { "value": 31_000_000 },
        "server_bytes_per_connection": { "value": 5_100.0 },
        "server_disk_read_bytes": { "value": 0 },
        "energy_j_per_gb": missing("no RAPL in this virtual machine (/sys/class/powercap is empty)"),
        "memory_bytes_per_byte": missing("no counters of the memory controller in this virtual machine"),
        "retransmitted_segments": { "value": 0 },
        "tls_stat": if model.name == KERNEL.name { json!({ "value": { "TlsTxSw": 10, "TlsRxSw": 10, "TlsCurrTxSw": 0 } }) }
                    else { json!({ "value": { "TlsTxSw": 0 } }) },
    } })
}

/// A round that failed.
pub(crate) fn failed(reason: &str, log: &[&str]) -> Value {
    json!({ "failed": { "reason": reason, "log": log } })
}

/// A point.
pub(crate) fn point(server: &str, variables: &Value, rounds: &[Value]) -> Value {
    let client_command =
        ["linerate", "load", "https://127.0.0.1:8443/2g.bin", "-c", "10", "-t", "1", "-d", "5s", "--json"];
    json!({ "server": server, "variables": variables, "client_command": client_command, "rounds": rounds })
}

/// A run without points.
pub(crate) fn run(name: &str, title: &str, axis: &str, servers: &[Model]) -> Value {
    let server = |model: &Model| {
        let ours = model.name.starts_with("linerate");
        json!({
            "name": model.name,
            "version": if ours { "linerate 0.1.0 (41aa357)" } else { "nginx/1.26.3, OpenSSL 3.5.1" },
            "command": if ours { json!(["linerate", "serve", "--config", "linerate.toml"]) }
                       else { json!(["nginx", "-c", "nginx.conf", "-g", "daemon off;"]) },
            "configuration": if ours { "[[site]]\nroot = \"files\"\n" } else {
                "worker_processes 1;\nevents { worker_connections 4096; }\nhttp {\n    sendfile on;\n}\n" },
            "plaintext": model.plaintext,
        })
    };
    json!({
        "schema": "linerate-bench/1", "name": name, "title": title, "axis": axis,
        "definition": format!("name = \"{name}\"\naxis = \"{axis}\"\nrounds = 5\n"),
        "source": "Chelsio, 400G kTLS/SSL Offload & Encryption with FreeBSD (T7), figure 2",
        "started_unix_s": 1_795_268_700_u64, "quick": false,
        "command": ["linerate", "bench", "run", name, "--out", "results"],
        "environment": {
            "cpu": {
                "model": { "value": "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz" }, "cores": { "value": "2" },
                "flags": { "value": "aes avx2 avx512f vaes vpclmulqdq" },
                "governor": { "not_available": "/sys/devices/system/cpu/cpu0/cpufreq is missing: the hypervisor governs" },
            },
            "kernel": {
                "release": { "value": "6.18.44" }, "command_line": { "value": "console=ttyS0 reboot=k panic=1" },
                "mitigations": { "value": "spectre_v2: Enhanced IBRS" }, "tls module": { "not_available": "not loaded" },
            },
            "network": { "device": { "value": "lo" }, "mtu": { "value": "65536" }, "tcp_congestion_control": { "value": "bbr" } },
            "linerate": { "commit": { "value": "41aa357" }, "version": { "value": "0.1.0" } },
        },
        "quantities": ["application_gbit_s", "server_s_per_gb"],
        "rounds_planned": 5,
        "setup": { "address": "127.0.0.1", "server_cores": [0], "client_cores": [1], "client_hosts": [] },
        "servers": servers.iter().map(server).collect::<Vec<_>>(),
        "points": [], "skipped": [], "published": [], "incomplete": false,
    })
}

pub(crate) fn finished(run: Value) -> ExperimentRun {
    serde_json::from_value(run).expect("the fixture has the form of a result")
}

/// A published series.
pub(crate) fn published(name: &str, quantity: &str, values: &[(Value, f64, f64)]) -> Value {
    let value = |(at, low, high): &(Value, f64, f64)| json!({ "at": at, "low": low, "high": high });
    json!({
        "name": name, "quantity": quantity, "source": "Figure 2 and conclusion of the paper",
        "values": values.iter().map(value).collect::<Vec<_>>(),
    })
}

/// Two servers that encrypt, and what their floor was in each round: 0.25 s/GB on a machine that does not waver.
pub(crate) fn with_floor() -> ExperimentRun {
    let own = Model { name: "linerate plaintext", ..NGINX };
    let servers = [own, USER, NGINX_TLS];
    let mut result = run("in-step", "Large files in step", "connections", &servers);
    let mut random = Noise::of(23);
    let (mut points, mut floor) = (Vec::new(), Vec::new());
    for connections in [1, 8] {
        let variables = json!({ "connections": connections });
        for server in &servers {
            let rounds: Vec<Value> = (0..7).map(|_| measured(server, &LARGE, &mut random)).collect();
            points.push(point(server.name, &variables, &rounds));
        }
        let round = json!({ "seal_s_per_gb": 0.02, "copy_s_per_gb": 0.01, "plaintext_s_per_gb": 0.22, "s_per_gb": 0.25,
                            "us_per_response": { "value": 500_000.0 } });
        floor.push(json!({ "variables": variables, "plaintext": own.name, "rounds": vec![round; 7] }));
    }
    result["points"] = json!(points);
    result["floor"] = json!({ "value": floor });
    finished(result)
}

/// Four servers, 10 to 100 connections, as in the T7 paper. The client was the limit of plaintext at the end.
pub(crate) fn connections(rounds: usize, slowdown: f64, seed: u64) -> ExperimentRun {
    let servers = [NGINX, NGINX_TLS, USER, KERNEL];
    let title = "2 GB files over HTTPS to a growing number of connections";
    let mut result = run("t7-connections", title, "connections", &servers);
    let mut noise = Noise::of(seed);
    let mut points = Vec::new();
    for connections in (10..=100).step_by(10) {
        for model in &servers {
            let mut model = *model;
            if model.name == USER.name {
                model.s_per_gb *= slowdown;
            }
            model.s_per_gb *= 1.0 + 0.0012 * f64::from(connections);
            let cores = 0.97 - 3.2 / f64::from(connections + 5);
            let load = Load { cores, client_limited: model.plaintext && connections >= 70, ..LARGE };
            let rounds: Vec<Value> = (0..rounds).map(|_| measured(&model, &load, &mut noise)).collect();
            points.push(point(
                model.name,
                &json!({ "connections": connections, "file_bytes": 2e9 }),
                &rounds,
            ));
        }
    }
    result["points"] = json!(points);
    result["published"] = json!([
        published("T7 inline kTLS, application", "application_gbit_s", &[(json!(100), 326.0, 326.0)]),
        published("T7 inline kTLS, wire", "wire_gbit_s", &[(json!(100), 367.0, 367.0)]),
        published(
            "software kTLS, another machine",
            "server_s_per_gb",
            &[(json!(10), 0.41, 0.44), (json!(50), 0.42, 0.42), (json!(100), 0.45, 0.47)]
        ),
    ]);
    finished(result)
}

/// Sizes from 10 kB to 100 MB, a connection for each, TLS 1.2 and 1.3. The adapter is dear to set up and cheap per byte.
pub(crate) fn file_sizes() -> ExperimentRun {
    let servers = [NGINX, NGINX_TLS, USER, NIC];
    let title = "One file of a growing size for each connection";
    let mut result = run("file-size", title, "file_bytes", &servers);
    let mut noise = Noise::of(5);
    let mut points = Vec::new();
    for version in ["1.2", "1.3"] {
        for file_bytes in [1e4, 1e5, 1e6, 1e7, 1e8] {
            for model in &servers {
                let load = Load { file_bytes, close: true, ..LARGE };
                let rounds: Vec<Value> = (0..6).map(|_| measured(model, &load, &mut noise)).collect();
                let mut variables = json!({ "file_bytes": file_bytes, "connections": 500 });
                if !model.plaintext {
                    variables["tls"] = json!(version);
                }
                if !model.plaintext || version == "1.2" {
                    points.push(point(model.name, &variables, &rounds));
                }
            }
        }
    }
    result["points"] = json!(points);
    result["source"] = json!("electronic_eel, ConnectX-6 Dx thread: 500 clients, one request a connection");
    result["axis_is_logarithmic"] = json!(true);
    result["published"] = json!([
        published("ConnectX-6 Dx, nginx in user space", "application_gbit_s", &[(json!(1e4), 2.584, 2.584)]),
        published(
            "ConnectX-6 Dx, offloaded",
            "application_gbit_s",
            &[(json!(1e4), 0.0696, 0.0696), (json!(1e5), 0.664, 0.664)]
        ),
    ]);
    finished(result)
}

/// `auto` beside two fixed engines, kept connections: as good as the better one but at 1 MB, where it costs a tenth more.
pub(crate) fn never_lose(rounds: usize) -> ExperimentRun {
    let kernel = Model { name: "kernel for everything", fixed_us: 900.0, s_per_gb: 0.2, ..KERNEL };
    let auto = Model { name: "linerate auto", ..USER };
    let mut result = run("never-lose", "auto beside every fixed engine", "file_bytes", &[USER, kernel, auto]);
    let mut noise = Noise::of(29);
    let mut points = Vec::new();
    for file_bytes in [1e3, 1e6, 1e9] {
        let load = Load { file_bytes, close: true, noise: 0.005, ..LARGE };
        let better = if file_bytes < 1e8 { USER } else { kernel };
        let times = if file_bytes == 1e6 { 1.1 } else { 1.0 };
        let auto = Model {
            name: auto.name,
            fixed_us: better.fixed_us * times,
            s_per_gb: better.s_per_gb * times,
            ..better
        };
        for model in [USER, kernel, auto] {
            let rounds: Vec<Value> = (0..rounds).map(|_| measured(&model, &load, &mut noise)).collect();
            points.push(point(model.name, &json!({ "file_bytes": file_bytes, "connections": 32 }), &rounds));
        }
    }
    result["points"] = json!(points);
    finished(result)
}

/// Servers over a variable of words, few rounds, bodies thrown away: `engines --quick`.
pub(crate) fn engines() -> ExperimentRun {
    let servers = [NGINX, NGINX_TLS, USER, KERNEL];
    let title = "No TLS, classic user-space TLS and linerate's engines, files in memory and on disk";
    let mut result = run("engines", title, "cache", &servers);
    let mut noise = Noise::of(7);
    let mut points = Vec::new();
    for (cache, ceiling_gbit_s) in [("hot", 90.0), ("cold", 9.0)] {
        for model in &servers {
            let model = Model { ceiling_gbit_s, ..*model };
            let load = Load { discarded: true, ..LARGE };
            let rounds: Vec<Value> = (0..3).map(|_| measured(&model, &load, &mut noise)).collect();
            points.push(point(model.name, &json!({ "cache": cache, "connections": 8 }), &rounds));
        }
    }
    result["points"] = json!(points);
    result["quick"] = json!(true);
    result["source"] = json!("Netflix, Optimizing TLS for High-Bandwidth Applications in FreeBSD (2015)");
    result["published"] = json!([
        published("Netflix 2015, no TLS", "application_gbit_s", &[(json!("hot"), 19.0, 20.0)]),
        published("Netflix 2015, OpenSSL", "application_gbit_s", &[(json!("hot"), 8.5, 8.5)]),
        published(
            "Netflix 2015, kernel BoringSSL, flash",
            "application_gbit_s",
            &[(json!("flash"), 26.0, 26.0)]
        ),
    ]);
    finished(result)
}

/// Handshakes alone, by kind of key.
pub(crate) fn handshakes() -> ExperimentRun {
    let servers = [NGINX_TLS, USER];
    let mut result = run("handshakes", "Full handshakes by kind of key", "key", &servers);
    let mut noise = Noise::of(11);
    let mut points = Vec::new();
    for (key, factor) in [("ECDSA P-256", 1.0), ("RSA 2048", 4.5)] {
        for model in &servers {
            let model = Model { fixed_us: model.fixed_us * factor, ..*model };
            let load = Load { file_bytes: 1.0, close: true, ..LARGE };
            let rounds: Vec<Value> = (0..6).map(|_| measured(&model, &load, &mut noise)).collect();
            points.push(point(model.name, &json!({ "key": key }), &rounds));
        }
    }
    result["points"] = json!(points);
    result["quantities"] = json!(["handshakes_per_core_s", "server_us_per_response"]);
    finished(result)
}

/// Names and texts that mean harm to a page.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=\"alert('2')\">&amp;\"'";

/// Everything went wrong that can: a server that died, one that never started, points left out, an interruption.
pub(crate) fn troubled() -> ExperimentRun {
    let servers = [NGINX, NGINX_TLS, USER];
    let mut result = run("t7-connections", HOSTILE, "connections", &servers);
    let mut noise = Noise::of(13);
    let mut points = Vec::new();
    for connections in [1, 10, 100, 1_000, 10_000] {
        for model in &servers {
            let died = model.name == NGINX_TLS.name && connections == 100;
            let load = Load { noise: 0.3, ..LARGE };
            let mut rounds: Vec<Value> = (0..3).map(|_| measured(model, &load, &mut noise)).collect();
            if died {
                let log =
                    ["2026/11/21 13:45:01 [alert] 4711#0: worker process 4712 exited on signal 11", HOSTILE];
                rounds = vec![failed("the server died: killed by signal 11 (SIGSEGV)", &log); 3];
            } else if model.name == USER.name && connections == 1_000 {
                rounds[1] = failed("the load client gave up: 1000 connections timed out", &[]);
            }
            if !(model.name == USER.name && connections == 10_000) {
                points.push(point(
                    model.name,
                    &json!({ "connections": connections, "file_bytes": 2e9 }),
                    &rounds,
                ));
            }
        }
    }
    points[0]["rounds"][0]["measured"]["load"][0]["errors"] = json!({ "connection reset": 3, HOSTILE: 1 });
    points.push(point(HOSTILE, &json!({ "connections": 10 }), &[measured(&USER, &LARGE, &mut noise)]));
    result["points"] = json!(points);
    result["skipped"] = json!([
        format!("h2o: not installed (apt-get install h2o) {HOSTILE}"),
        "linerate kernel: this kernel has no TLS module (modprobe tls)",
    ]);
    result["servers"][1]["configuration"] = json!(format!("# {HOSTILE}\n</pre>"));
    result["environment"]["cpu"]["model"] = json!({ "value": HOSTILE });
    result["published"] = json!([published(HOSTILE, "application_gbit_s", &[(json!(10), 20.0, 20.0)])]);
    result["incomplete"] = json!(true);
    finished(result)
}

/// Nothing was measured at all.
pub(crate) fn empty() -> ExperimentRun {
    let mut result = run("engines", "Nothing came of it", "cache", &[]);
    result["skipped"] = json!(["linerate user: port 8443 is taken by another process"]);
    finished(result)
}
