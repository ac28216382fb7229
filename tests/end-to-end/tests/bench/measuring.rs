//! A run that goes well: everything is measured, and the result says so consistently.

use crate::{Bench, bench, rounds};

const EXPERIMENT: &str = r#"
servers = ["linerate plaintext", "linerate user", "absent"]
load.connections = 3
sweep = { file_bytes = [10_001, 1_000_003], tls = ["1.2", "1.3"] }
time = { warmup_s = 0.1, measured_s = 1.0, rounds = 2 }

[[server]]
name = "absent"
command = ["no-such-server-anywhere"]
"#;

#[test]
fn a_result_is_complete_and_consistent() {
    let _alone = Bench::alone();
    let small = Bench::new(EXPERIMENT);
    let finished = small.run("out", &[]).run();
    assert!(
        finished.stderr.contains("left out: absent: no-such-server-anywhere is not installed"),
        "{}",
        finished.stderr
    );
    let text = finished.success();
    let result = small.result("out");
    assert_eq!(result["schema"], "linerate-bench/1");
    assert_eq!(result["incomplete"], false);
    assert_eq!(result["rounds_planned"], 2);
    assert_eq!(result["definition"], std::fs::read_to_string(small.path("small.toml")).unwrap());
    assert!(result["environment"]["kernel"].is_object(), "{}", result["environment"]);
    assert_eq!(result["skipped"].as_array().unwrap().len(), 1);
    // Plaintext once for each size, TLS for each version as well.
    assert_eq!(result["points"].as_array().unwrap().len(), 2 + 4);
    for (server, count) in [("linerate plaintext", 4), ("linerate user", 8)] {
        let rounds = rounds(&result, server);
        assert_eq!(rounds.len(), count, "{server}");
        for round in rounds {
            assert!(round["measured"].is_object(), "{round}");
            is_consistent(&round["measured"]);
        }
    }
    for point in result["points"].as_array().unwrap() {
        let bytes = point["variables"]["file_bytes"].as_f64().unwrap();
        let command: Vec<&str> =
            point["client_command"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
        assert!(command.join(" ").contains(&format!("/{bytes}-0.bin")), "{command:?}");
        let version = point["variables"]["tls"].as_str();
        let negotiated = point["rounds"][0]["measured"]["load"][0]["negotiated"].as_object().unwrap();
        if let Some(version) = version {
            assert!(negotiated.keys().all(|agreed| agreed.contains(version)), "{negotiated:?}");
        }
    }
    for server in result["servers"].as_array().unwrap() {
        assert!(server["configuration"].as_str().unwrap().contains("[limits]"), "{server}");
        assert!(server["version"].as_str().unwrap().starts_with("linerate "), "{server}");
    }
    let floors = result["floor"]["value"].as_array().unwrap_or_else(|| panic!("{}", result["floor"]));
    assert_eq!(floors.len(), 4, "for each size and version");
    for round in floors.iter().flat_map(|floor| floor["rounds"].as_array().unwrap()) {
        let part = |name: &str| round[name].as_f64().unwrap_or_else(|| panic!("{name}: {round}"));
        let sum = part("seal_s_per_gb") + part("copy_s_per_gb") + part("plaintext_s_per_gb");
        assert!((part("s_per_gb") / sum - 1.0).abs() < 1e-9, "{round}");
    }
    assert!(small.path("out/report.html").is_file());
    assert_shared(&small);
    assert!(String::from_utf8(text).unwrap().trim_end().ends_with("report.html"));
}

/// A run can be sent to others: its report can be made there, and its folder, which has a name of its own, is in nothing.
fn assert_shared(small: &Bench) {
    let [run, file, page] =
        ["out", "shared.json", "there"].map(|name| small.path(name).display().to_string());
    let told = String::from_utf8(bench(&["share", &run, "--output", &file]).success()).unwrap();
    let folder = small.path("").display().to_string();
    let folder = folder.trim_end_matches('/').rsplit('/').next().unwrap();
    assert!(told.contains("removed: path: ") && told.contains(folder), "{told}");
    let shared = std::fs::read_to_string(&file).unwrap();
    assert!(shared.contains("linerate-bench-share/1") && !shared.contains(folder), "{folder}");
    let _path = bench(&["report", &file, "--output", &page]).success();
    let page = std::fs::read_to_string(small.path("there/report.html")).unwrap();
    assert!(page.contains("linerate user") && !page.contains(folder), "{folder}");
}

/// Figures that follow from each other do.
fn is_consistent(round: &serde_json::Value) {
    let number = |name: &str| round[name].as_f64().unwrap_or_else(|| panic!("{name}: {round}"));
    let load = &round["load"][0];
    let body_bytes = load["totals"]["body_bytes"].as_f64().unwrap();
    let measured_s = load["measured_s"].as_f64().unwrap();
    assert!((0.98..2.0).contains(&measured_s), "{measured_s}");
    // Costs are read by another process, which may have to wait for its turn.
    assert!((0.6..4.0).contains(&number("elapsed_s")), "{}", number("elapsed_s"));
    let gbit_s = body_bytes * 8.0 / 1e9 / measured_s;
    assert!((number("application_gbit_s") / gbit_s - 1.0).abs() < 0.01);
    let cpu_s = round["server"]["user_s"].as_f64().unwrap() + round["server"]["system_s"].as_f64().unwrap();
    assert!(cpu_s > 0.0);
    let s_per_gb = cpu_s / number("elapsed_s") / (gbit_s / 8.0);
    let reading = |name: &str| round[name]["value"].as_f64().unwrap_or_else(|| panic!("{name}: {round}"));
    assert!((reading("server_s_per_gb") / s_per_gb - 1.0).abs() < 0.01);
    assert!((reading("service_demand_us_per_kb") / (s_per_gb * 1.024) - 1.0).abs() < 0.01);
    assert!(number("responses_per_s") > 0.0);
    assert!(load["errors"].as_object().unwrap().is_empty());
}

#[test]
fn experiments_are_listed_and_printed_to_be_copied() {
    let list = String::from_utf8(bench(&["list"]).success()).unwrap();
    let ours = ["in-step", "keep-alive", "full-handshakes", "idle", "memory", "disk", "slow"];
    let of_papers = ["t7-connections", "file-size", "engines", "long-lived", "handshakes", "ciphers"];
    for name in of_papers.iter().chain(&ours) {
        assert!(list.lines().any(|line| line.starts_with(*name)), "{list}");
        let file = String::from_utf8(bench(&["list", *name]).success()).unwrap();
        assert!(file.contains(&format!("name = \"{name}\"")) && file.contains("[sweep]"), "{file}");
    }
}
