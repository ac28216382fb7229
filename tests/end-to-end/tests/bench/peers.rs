//! The peers that an experiment can name, as they are installed: each is started with what is written out for it, serves
//! the files as they are, and is measured.

use linerate_end_to_end::{is_installed, skip};

use serde_json::Value;

use crate::Bench;

/// Runs the peer `product` in the clear and over both versions of TLS. A small file and one of several records.
fn is_measured(product: &str) {
    let small = Bench::new(&format!(
        r#"
servers = ["{product} plaintext", "{product} tls"]
load = {{ connections = 3, files = 2 }}
sweep = {{ file_bytes = [10_001, 1_000_003], tls = ["1.2", "1.3"] }}
time = {{ warmup_s = 0.2, measured_s = 1, rounds = 2 }}
"#
    ));
    let _ = small.run("out", &[]).run().success();
    let result = small.result("out");
    for server in result["servers"].as_array().unwrap() {
        let version = server["version"].as_str().unwrap();
        assert!(version.starts_with(product) && version.contains('.'), "{version}");
        assert!(server["configuration"].as_str().unwrap().contains("127.0.0.1"), "{server}");
    }
    let points = result["points"].as_array().unwrap();
    for (mode, count) in [("plaintext", 2), ("tls", 4)] {
        let server = format!("{product} {mode}");
        assert_eq!(points.iter().filter(|point| point["server"] == server).count(), count, "{server}");
    }
    for point in points {
        // On a machine that does other things a round may be too short for anything to come.
        let mut measured = point["rounds"].as_array().unwrap().iter().map(|round| &round["measured"]);
        let came = |measured: &Value| {
            measured["load"][0]["totals"]["responses"].as_u64() > Some(0)
                && measured["server_s_per_gb"]["value"].as_f64() > Some(0.0)
        };
        assert!(measured.any(came), "{point}");
    }
}

#[test]
fn caddy_is_measured() {
    let _alone = Bench::alone();
    if !is_installed("caddy") {
        return skip("caddy_is_measured", "caddy is not installed (package caddy)");
    }
    is_measured("caddy");
}

#[test]
fn h2o_is_measured() {
    let _alone = Bench::alone();
    if !is_installed("h2o") {
        return skip("h2o_is_measured", "h2o is not installed (package h2o)");
    }
    is_measured("h2o");
}

#[test]
fn nginx_is_measured() {
    let _alone = Bench::alone();
    if !is_installed("nginx") {
        return skip("nginx_is_measured", "nginx is not installed (package nginx)");
    }
    is_measured("nginx");
}
