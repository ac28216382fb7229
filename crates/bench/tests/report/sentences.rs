//! What the summary claims, and what it must not claim, on data whose truth is known.

use crate::fixtures::{self, Load, Model, NGINX, Noise, USER, measured, point};
use linerate_bench::{Change, Outcome, compare, report, result::ExperimentRun};
use serde_json::{Value, json};

/// The summary as sentences.
fn sentences(run: &ExperimentRun) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in report::text(run).lines() {
        if let Some(sentence) = line.strip_prefix("• ").or_else(|| line.strip_prefix("! ")) {
            found.push(sentence.to_owned());
        } else if let (Some(rest), Some(sentence)) = (line.strip_prefix("  "), found.last_mut()) {
            sentence.push_str(&format!(" {rest}"));
        }
    }
    found
}

#[track_caller]
fn assert_said(run: &ExperimentRun, expected: &str) {
    let said = sentences(run);
    assert!(said.iter().any(|sentence| sentence.contains(expected)), "{expected:?} is not said in {said:#?}");
}

#[track_caller]
fn assert_not_said(run: &ExperimentRun, unwanted: &str) {
    let said = sentences(run);
    assert!(!said.iter().any(|sentence| sentence.contains(unwanted)), "{unwanted:?} is said in {said:#?}");
}

/// One place, two servers: plaintext, and one that costs `times` as much, with so much noise.
fn beside_plaintext(times: f64, noise: f64, rounds: usize) -> ExperimentRun {
    let ours = Model { s_per_gb: NGINX.s_per_gb * times, fixed_us: 0.0, ..USER };
    let theirs = Model { fixed_us: 0.0, ..NGINX };
    let mut result = fixtures::run("price", "The price of TLS", "connections", &[theirs, ours]);
    let mut random = Noise::of(17);
    let load = Load { noise, ..fixtures::LARGE };
    let points: Vec<Value> = [theirs, ours]
        .iter()
        .map(|model| {
            let rounds: Vec<Value> = (0..rounds).map(|_| measured(model, &load, &mut random)).collect();
            point(model.name, &json!({ "connections": 8 }), &rounds)
        })
        .collect();
    result["points"] = json!(points);
    fixtures::finished(result)
}

#[test]
fn the_price_of_tls_is_the_ratio_to_plaintext() {
    let run = beside_plaintext(1.2, 0.01, 7);
    assert_said(&run, "linerate user costs 1.2");
    assert_said(&run, "× nginx plaintext in server CPU per byte");
    assert_not_said(&run, "no difference");
}

#[test]
fn the_price_of_several_servers_is_one_sentence() {
    let run = fixtures::connections(31, 1.0, 3);
    assert_said(&run, "nginx TLS costs 2.2");
    assert_said(&run, "×, linerate user 1.2");
    assert_said(&run, "× nginx plaintext in server CPU per byte at every point.");
    // After fewer rounds an interval is all that is known: another run could find any figure of it.
    let run = fixtures::connections(6, 1.0, 3);
    assert_said(&run, "nginx TLS costs 2.19 to 2.36 ×, linerate user 1.17 to 1.24 ×");
    assert_said(
        &run,
        " × nginx plaintext in server CPU per byte at every point (6 rounds: more are needed for one figure).",
    );
    // Where it depends on the place, both ends are said; the adapter's bytes cost what plaintext costs.
    let run = fixtures::file_sizes();
    assert_said(&run, "× (at 100 MB) to ");
    assert_said(&run, "12 × (at 10 kB)");
    assert_said(&run, "nginx kTLS, inline in the adapter no difference (at 100 MB) to ");
}

#[test]
fn the_distance_from_the_floor_is_said_of_servers_that_encrypt() {
    let run = fixtures::with_floor();
    // 0.264 and 0.50 s/GB, less or more by the noise of seven rounds, beside 0.25.
    assert_said(
        &run,
        "linerate user costs 1.05 × and nginx TLS 2.02 × the floor in server CPU per byte at every point",
    );
    assert_not_said(&run, "linerate plaintext costs");
}

#[test]
fn a_difference_smaller_than_the_spread_is_not_claimed() {
    let run = beside_plaintext(1.05, 0.2, 7);
    assert_said(&run, "linerate user and nginx plaintext: no difference in server CPU per byte was found");
    assert_not_said(&run, "costs");
}

#[test]
fn too_few_rounds_are_said_to_be_too_few() {
    let run = beside_plaintext(1.2, 0.01, 3);
    assert_said(&run, "costs about 1.2");
    assert_said(&run, "(3 rounds: too few to be sure)");
    let run = beside_plaintext(1.2, 0.01, 1);
    assert_said(
        &run,
        "One round for each point: nothing is known about the spread, and no difference is claimed.",
    );
    assert_not_said(&run, "costs 1.2");
}

#[test]
fn ratios_are_paired_by_round() {
    // The machine is three times as slow in every second round: the servers' own spreads are huge, their ratio is not.
    let mut run = beside_plaintext(1.2, 0.0, 8);
    for point in &mut run.points {
        for round in point.rounds.iter_mut().step_by(2) {
            let linerate_bench::result::Round::Measured(round) = round else { panic!("nothing failed") };
            round.server_s_per_gb = round.server_s_per_gb.clone().map(|cost| 3.0 * cost);
        }
    }
    assert_said(&run, "linerate user costs 1.20 × nginx plaintext in server CPU per byte");
}

#[test]
fn the_handshake_dominates_below_the_size_where_bytes_cost_as_much() {
    let run = fixtures::file_sizes();
    // 131 µs beside 0.264 s/GB: 496 kB; 262 µs beside 0.50: 524 kB; 900 µs beside 0.21: 4.3 MB.
    let size = |server: &str| -> f64 {
        let said = sentences(&run);
        let sentence = said
            .iter()
            .find(|said| {
                said.starts_with(
                    "TLS 1.3: Connection and handshake cost more server CPU than the bytes below",
                )
            })
            .unwrap_or_else(|| panic!("{said:#?}"));
        let before = sentence.split(&format!(" with {server} (")).next().unwrap();
        let mut words = before.split(' ').rev();
        let (unit, number) = (words.next().unwrap(), words.next().unwrap());
        number.parse::<f64>().unwrap() * if unit == "kB" { 1e3 } else { 1e6 }
    };
    for (server, expected) in
        [("linerate user", 496e3), ("nginx TLS", 524e3), ("nginx kTLS, inline in the adapter", 4.3e6)]
    {
        assert!(
            (0.9..1.1).contains(&(size(server) / expected)),
            "{server}: {} is not {expected}",
            size(server)
        );
    }
    assert_not_said(&run, "with nginx plaintext (");
}

#[test]
fn the_break_even_lies_where_the_costs_cross() {
    let run = fixtures::file_sizes();
    // 131 µs + 0.264 s/GB against 900 µs + 0.21 s/GB: equal at 14.2 MB; 262 + 0.50 against 900 + 0.21: at 2.2 MB.
    let said = sentences(&run);
    let ends = "above it nginx kTLS, inline in the adapter costs less CPU per byte than";
    let size = |worse: &str| -> f64 {
        let sentence = said.iter().find(|said| said.contains(&format!("{ends} {worse},")));
        let size = sentence.unwrap_or_else(|| panic!("{worse}: {said:#?}")).split("about ").nth(1).unwrap();
        assert!(size.contains("MB:"), "{size}");
        size.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    // Between two sizes of a sweep by tens the line is no straight one.
    assert!((10.0..30.0).contains(&size("linerate user")), "{}", size("linerate user"));
    assert!((1.0..4.0).contains(&size("nginx TLS")), "{}", size("nginx TLS"));
    assert_not_said(&fixtures::connections(6, 1.0, 3), "Break-even");
}

#[test]
fn no_break_even_where_the_crossing_is_within_the_noise() {
    let mut result =
        fixtures::run("noise", "Two that are the same", "connections", &[NGINX, USER, fixtures::KERNEL]);
    let (mut random, mut points) = (Noise::of(23), Vec::new());
    for connections in [10, 20, 30, 40, 50, 60] {
        for model in [USER, Model { s_per_gb: USER.s_per_gb, fixed_us: USER.fixed_us, ..fixtures::KERNEL }] {
            let load = Load { noise: 0.1, ..fixtures::LARGE };
            let rounds: Vec<Value> = (0..6).map(|_| measured(&model, &load, &mut random)).collect();
            points.push(point(model.name, &json!({ "connections": connections }), &rounds));
        }
    }
    result["points"] = json!(points);
    assert_not_said(&fixtures::finished(result), "Break-even");
}

#[test]
fn auto_is_held_against_the_best_and_the_worst_fixed_engine() {
    let run = fixtures::never_lose(7);
    assert_said(&run, "linerate auto, server CPU per byte: at most 1.1");
    assert_said(&run, "that of the best fixed engine; the worst needs up to 6.8");
    assert_said(&run, "at 1 kB no difference to linerate user, kernel for everything 6.8");
    assert_said(&run, "× that of linerate user, kernel for everything 2.5");
    assert_said(&run, "at 1 GB no difference to kernel for everything, linerate user 1.3");
    assert_said(&run, "linerate auto, time per byte: ");
    assert_not_said(&fixtures::file_sizes(), "fixed engine");
    let few = fixtures::never_lose(3);
    assert_said(&few, "linerate auto, time per byte: too few rounds to be sure of any difference");
    assert_said(&few, "(3 rounds, too few to be sure)");
}

#[test]
fn limits_of_the_run_are_said() {
    let run = fixtures::connections(6, 1.0, 3);
    assert_said(&run, "At 4 of 40 points the load client was the limit");
    assert_said(&run, "Published: T7 inline kTLS, application: 326 Gb/s, 10 × the most measured here (3");
    assert_said(&fixtures::engines(), "Shortened by --quick");
    assert_said(&fixtures::engines(), "The client threw bodies away unread");
    assert_said(&fixtures::handshakes(), "No server spoke plaintext");
    assert_said(&fixtures::empty(), "Nothing was measured.");
    assert_said(&fixtures::empty(), "Left out: linerate user: port 8443 is taken by another process");
    assert_said(&fixtures::troubled(), "Failed: nginx TLS at 100 connections: the server died");
}

#[test]
fn stolen_time_is_said() {
    let mut run = beside_plaintext(1.2, 0.01, 5);
    assert_not_said(&run, "hypervisor");
    let linerate_bench::result::Round::Measured(round) = &mut run.points[0].rounds[2] else {
        panic!("measured")
    };
    round.machine.total.steal_s = 0.5;
    assert_said(&run, "The hypervisor took up to");
}

#[test]
fn handshakes_are_counted_by_the_second_of_cpu() {
    let run = fixtures::handshakes();
    assert_said(&run, "The most was 7,6");
    assert_said(&run, "handshakes in a second of server CPU, from linerate user with key ECDSA P-256");
}

#[test]
fn a_planted_slowdown_is_found_and_an_unchanged_run_is_not() {
    let before = fixtures::connections(6, 1.0, 3);
    let compared = |after| compare(&before, &after, None).unwrap().changes;
    let (same, slower) =
        (compared(fixtures::connections(6, 1.0, 4)), compared(fixtures::connections(6, 1.1, 4)));
    let differing = |changes: &[Change], server: &str| {
        let is_one = |change: &&Change| matches!(change.outcome, Outcome::Better | Outcome::Worse);
        changes.iter().filter(|change| change.server == server).filter(is_one).count()
    };
    // Three measures of ten points each.
    assert!(differing(&slower, "linerate user") >= 28, "{slower:#?}");
    // One in twenty may differ by chance.
    let servers = ["nginx plaintext", "nginx TLS", "linerate user", "linerate kernel"];
    let by_chance: usize = servers.iter().map(|server| differing(&same, server)).sum();
    assert!(by_chance <= 6, "{same:#?}");
    assert_eq!(differing(&slower, "linerate kernel"), differing(&same, "linerate kernel"));
}

#[test]
fn a_comparison_says_what_else_differs() {
    let before = fixtures::connections(6, 1.0, 3);
    let mut later = fixtures::connections(6, 1.1, 4);
    later.points.retain(|point| point.server != "linerate kernel");
    later.servers[1].version = "nginx/1.29.0, OpenSSL 3.6.0".to_owned();
    let page = comparison_page(&before, &later);
    for expected in [
        "Server CPU per gigabyte, as a multiple of nginx plaintext: 10 of ",
        "nginx/1.29.0, OpenSSL 3.6.0",
        "nginx/1.26.3, OpenSSL 3.5.1",
        "linerate kernel, connections 10, file_bytes 2000000000: only in the earlier run.",
        "+10.",
        "worse",
    ] {
        assert!(page.contains(expected), "{expected} is missing");
    }
    assert!(!page.contains("<script"));
}

#[test]
fn a_comparison_of_too_few_rounds_decides_nothing() {
    let page = comparison_page(&fixtures::connections(1, 1.0, 3), &fixtures::connections(1, 1.5, 4));
    assert!(page.contains("Nothing could be decided."), "{page}");
    assert!(page.contains("too few rounds. Repeat the runs with more."), "{page}");
    assert!(!page.contains(">worse<"), "{page}");
}

fn comparison_page(before: &ExperimentRun, after: &ExperimentRun) -> String {
    let folder = tempfile::tempdir().unwrap();
    let comparison = compare(before, after, None).unwrap();
    let page = report::write_comparison(before, after, &comparison, folder.path()).unwrap();
    std::fs::read_to_string(page).unwrap()
}
