//! Experiments that say what they are measured over and by what client: namespaces, congestion control, wrk, idle connections.

use linerate_end_to_end::{is_installed, skip};

use crate::{Bench, rounds};

#[test]
fn a_namespace_has_the_congestion_control_that_was_asked_for() {
    let _alone = Bench::alone();
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let controls: Vec<String> =
        available.split_ascii_whitespace().map(|name| format!("\"{name}\"")).collect();
    let small = Bench::new(&format!(
        r#"
servers = ["linerate plaintext", "linerate user"]
load = {{ connections = 2, file_bytes = 100_003 }}
sweep = {{ file_bytes = [100_003], network = ["loopback", "veth"], congestion_control = [{}] }}
time = {{ warmup_s = 0.1, measured_s = 0.5, rounds = 1 }}
"#,
        controls.join(", ")
    ));
    let finished = small.run("out", &[]).run();
    if let Some(reason) = finished.stderr.lines().find(|line| line.contains("namespace")) {
        // Without root, and in containers that have none.
        return skip("a_namespace_has_the_congestion_control_that_was_asked_for", reason);
    }
    let text = String::from_utf8(finished.success()).unwrap();
    let result = small.result("out");
    for point in result["points"].as_array().unwrap() {
        let (variables, network) = (&point["variables"], &point["network"]);
        assert_eq!(network["congestion_control"]["value"], variables["congestion_control"], "{point}");
        let path = network["path"].as_str().unwrap();
        assert!(path.starts_with(variables["network"].as_str().unwrap()), "{path}");
        assert!(network["queue_discipline"]["value"].is_string(), "{point}");
        // On a machine that does other things a round may be too short for anything to come.
        let mut rounds = point["rounds"].as_array().unwrap().iter();
        assert!(rounds.any(|round| round["measured"].is_object()), "{point}");
    }
    let wanted = controls[0].trim_matches('"');
    assert!(text.contains(&format!("{wanted}, queue ")), "{text}");
    let page = std::fs::read_to_string(small.path("out/report.html")).unwrap();
    assert!(page.contains(&format!("{wanted}, queue ")) && page.contains("Linux "), "conditions are missing");
    // Nothing is left behind.
    let left = std::process::Command::new("ip").args(["netns", "list"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&left.stdout).contains("linerate-bench-"), "{left:?}");
}

#[test]
fn what_this_machine_cannot_send_by_is_left_out_by_name() {
    let _alone = Bench::alone();
    let small = Bench::new(
        r#"
servers = ["linerate plaintext"]
sweep = { file_bytes = [10_001], congestion_control = ["nonesuch"] }
time = { warmup_s = 0, measured_s = 0.2, rounds = 1 }
"#,
    );
    let finished = small.run("out", &[]).run();
    let (status, stderr) = (finished.status.code(), finished.stderr);
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("nothing can be measured here") && stderr.contains("nonesuch: "), "{stderr}");
}

#[test]
fn idle_connections_ask_once_each_and_their_memory_is_told() {
    let _alone = Bench::alone();
    let small = Bench::new(
        r#"
servers = ["linerate user"]
load = { connections = 150, discard = false, idle = true, fresh_server = true }
sweep = { file_bytes = [10_001] }
time = { warmup_s = 1, measured_s = 2, rounds = 1 }
[[target]]
server = "linerate user"
quantity = "server_bytes_per_connection"
most = 1_000_000_000
"#,
    );
    let text = String::from_utf8(small.run("out", &[]).run().success()).unwrap();
    let result = small.result("out");
    let round = &rounds(&result, "linerate user")[0]["measured"];
    assert_eq!(round["load"][0]["totals"]["responses"], 150, "{round}");
    let bytes = round["server_bytes_per_connection"]["value"].as_f64().unwrap();
    assert!((0.0..1_000_000.0).contains(&bytes), "{bytes}");
    assert!(text.contains("\ntargets\n") && text.contains("met"), "{text}");
}

#[test]
fn wrk_can_make_the_load_and_variables_can_be_set() {
    let _alone = Bench::alone();
    if !is_installed("wrk") {
        return skip("wrk_can_make_the_load_and_variables_can_be_set", "wrk is not installed (package wrk)");
    }
    let small = Bench::new(
        r#"
servers = ["linerate plaintext", "linerate user", "linerate auto"]
load = { connections = 4 }
sweep = { file_bytes = [10_001, 100_003] }
time = { warmup_s = 0, measured_s = 9, rounds = 1 }
"#,
    );
    let set = ["client=wrk", "file_bytes=10001", "measured_s=1", "cipher=TLS_AES_128_GCM_SHA256"];
    let mut arguments = vec!["--without", "linerate auto"];
    arguments.extend(set.iter().flat_map(|set| ["--set", set]));
    let _ = small.run("out", &arguments).run().success();
    let result = small.result("out");
    assert_eq!(result["changed"]["client"][0], "wrk");
    assert_eq!(result["points"].as_array().unwrap().len(), 2);
    for server in ["linerate plaintext", "linerate user"] {
        let load = &rounds(&result, server)[0]["measured"]["load"][0];
        let totals = &load["totals"];
        assert!(totals["responses"].as_u64() > Some(0), "{load}");
        assert_eq!(totals["body_bytes"].as_u64(), totals["responses"].as_u64().map(|count| count * 10_001));
        assert!(
            load["measured_s"].as_f64() < Some(5.0) && load["latency"]["p50_us"].as_u64() > Some(0),
            "{load}"
        );
    }
    let wrong = small.run("other", &["--set", "colour=red"]).run();
    assert!(wrong.stderr.contains("unknown variable \"colour\""), "{}", wrong.stderr);
}
