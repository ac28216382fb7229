//! The never-lose curve, predicted: `auto` beside every fixed engine from 1 kB to 1 GB, on kept connections and with a
//! connection for each request, with adapters of 850, 16,500 and 100,000 set-ups a second and with none. It is the
//! server's own placement that decides here; what the engines cost is the model's.

use linerate_plan::{Row, Sender, Size, Workload, plan, presets};

/// Throughput that `auto` may lack, as a part of the best's.
const LEAST_RATE: f64 = 0.95;
/// CPU that it may need for a byte, as a multiple of the cheapest's among the fastest; with set-ups to spare or without.
const MOST_CPU: f64 = 1.05;
/// Set-ups that it may ask for, as a part of what the adapter can do: a simulated run lasts seconds, and what is in the
/// bucket at its beginning is a part of them.
const MOST_SET_UPS: f64 = 1.05;
/// Of the bytes that the adapter could carry if each set-up went to the largest response.
const LEAST_BYTES: f64 = 0.93;

/// `auto` beside the fixed engines at one point.
struct Point {
    name: String,
    /// Throughput as a part of the best's.
    rate: f64,
    /// CPU for each byte as a multiple of the cheapest's among the fastest.
    cpu: f64,
    /// The worst's throughput as a part of `auto`'s.
    worst: f64,
    /// Responses that the budget kept from the adapter.
    short_of_budget: f64,
    /// Set-ups as a part of what the adapter can do.
    set_ups: f64,
}

fn rows(set_ups_per_s: f64, requests: u64, sizes: Vec<Size>) -> Vec<Row> {
    let mut machine = presets::machine("media-server").unwrap();
    machine.nic_set_ups_per_s = set_ups_per_s;
    let workload = Workload {
        sizes,
        connections: 500,
        requests_per_connection: requests,
        ..presets::workload("bulk").unwrap()
    };
    plan(&machine, &workload, &[400.0], 1)
}

fn point(set_ups_per_s: f64, requests: u64, bytes: u64) -> Point {
    let rows = rows(set_ups_per_s, requests, vec![Size { bytes, share: 1.0 }]);
    let found = |sender: Sender| rows.iter().find(|row| row.engine == sender).map(|row| row.prediction);
    let fixed: Vec<_> = [Sender::User, Sender::Kernel, Sender::Nic].into_iter().filter_map(found).collect();
    let auto = found(Sender::Auto).unwrap();
    let best = fixed.iter().map(|one| one.gbit_s).fold(0.0, f64::max);
    let worst = fixed.iter().map(|one| one.gbit_s).fold(f64::INFINITY, f64::min);
    let fastest = fixed.iter().filter(|one| one.gbit_s >= 0.99 * best);
    let cheapest = fastest.map(|one| one.cpu_s_per_gb).fold(f64::INFINITY, f64::min);
    // A result that is faster than the best may cost more.
    let cpu = if auto.gbit_s > 1.01 * best { 1.0 } else { auto.cpu_s_per_gb / cheapest };
    let name = format!("{set_ups_per_s} set-ups/s, {requests} requests of {bytes} B");
    let placement = rows.iter().find_map(|row| row.placement.as_ref()).unwrap();
    let of = |label| placement.reasons.iter().find(|one| one.reason == label).map_or(0.0, |one| one.share);
    Point {
        name,
        rate: auto.gbit_s / best,
        cpu,
        worst: worst / auto.gbit_s,
        short_of_budget: of("budget_spent") + of("others_save_more"),
        set_ups: placement.nic_set_ups_per_s / set_ups_per_s.max(1.0),
    }
}

#[test]
fn auto_never_loses() {
    let mut lost = Vec::new();
    let mut worst = f64::INFINITY;
    for set_ups_per_s in [0.0, 850.0, 16_500.0, 100_000.0] {
        for requests in [1, 100] {
            for bytes in [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000] {
                let point = point(set_ups_per_s, requests, bytes);
                let said = format!(
                    "{:.3} of the best's rate, {:.3} × its CPU: {}, short of budget {:.2}, set-ups {:.2} of what can be",
                    point.rate, point.cpu, point.name, point.short_of_budget, point.set_ups
                );
                println!("{said}");
                worst = point.worst.min(worst);
                if point.rate < LEAST_RATE || point.cpu > MOST_CPU || point.set_ups > MOST_SET_UPS {
                    lost.push(said);
                }
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
    // Far in front of the worst: the thread's 8.7 MB/s beside 323.
    assert!(worst < 0.05, "{worst}");
}

/// Responses of two sizes, one on each connection, on an adapter with so few set-ups that a fixed choice of it would wait.
/// `auto` is as fast as the user engine, and costs as much as if each set-up went to the largest response.
#[test]
fn of_mixed_sizes_the_large_ones_have_the_set_ups() {
    for set_ups_per_s in [250.0, 850.0, 1700.0] {
        for (small_bytes, large_bytes) in
            [(500_000, 100_000_000), (5_000_000, 100_000_000), (3_000_000, 30_000_000)]
        {
            let sizes = [(small_bytes, 0.9), (large_bytes, 0.1)];
            let rows = rows(set_ups_per_s, 1, sizes.map(|(bytes, share)| Size { bytes, share }).into());
            let row = |sender| rows.iter().find(|row| row.engine == sender).unwrap();
            let (user, nic, auto) = (row(Sender::User), row(Sender::Nic), row(Sender::Auto));
            // Of all responses those that can have a set-up, the large ones first; of their bytes the part that it carries.
            let set_ups = set_ups_per_s / auto.prediction.responses_per_s;
            let mean_bytes = 0.9 * small_bytes as f64 + 0.1 * large_bytes as f64;
            let large = set_ups.min(0.1);
            let small = (set_ups - large).clamp(0.0, 0.9);
            let on_nic = (large * large_bytes as f64 + small * small_bytes as f64) / mean_bytes;
            let cpu = |row: &Row| row.prediction.cpu_s_per_gb;
            let best_cpu = on_nic * cpu(nic) + (1.0 - on_nic) * cpu(user);
            let found = auto.placement.as_ref().unwrap();
            let said = format!(
                "{set_ups_per_s} set-ups/s, {small_bytes} and {large_bytes} B: {:.3} of the user engine's rate, {:.3} × \
                 the least CPU ({:.3} × the user engine's); {:.3} of the bytes with {:.2} of the set-ups, at best {on_nic:.3}",
                auto.prediction.gbit_s / user.prediction.gbit_s,
                cpu(auto) / best_cpu,
                cpu(auto) / cpu(user),
                found.nic_bytes,
                found.nic_set_ups_per_s / set_ups_per_s
            );
            println!("{said}");
            assert!(auto.prediction.gbit_s >= LEAST_RATE * user.prediction.gbit_s, "{said}");
            assert!(cpu(auto) <= MOST_CPU * best_cpu, "{said}");
            assert!(found.nic_bytes >= LEAST_BYTES * on_nic, "{said}");
            assert!(found.nic_set_ups_per_s <= MOST_SET_UPS * set_ups_per_s, "{said}");
        }
    }
}
