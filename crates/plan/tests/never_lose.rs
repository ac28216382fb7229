//! The never-lose curve, predicted: `auto` beside every fixed engine from 1 kB to 1 GB, on kept connections and with a
//! connection for each request, with adapters of 850, 16,500 and 100,000 set-ups a second and with none. It is the
//! server's own placement that decides here; what the engines cost is the model's.

use linerate_plan::{Row, Sender, Size, Workload, plan, presets};

/// Throughput that `auto` may lack, as a part of the best's.
const LEAST_RATE: f64 = 0.95;
/// CPU that it may need for a byte, as a multiple of the cheapest's among the fastest.
const MOST_CPU: f64 = 1.05;
/// The same where the budget of set-ups runs short. It is half of what the adapter can do; with as many connections to set
/// up as the adapter can do, a fixed choice has it do all of them, and `auto` about half at the right moment.
const MOST_CPU_WITHOUT_BUDGET: f64 = 2.0;
/// Responses for which the budget is short, from which on it counts as such.
const SHORT: f64 = 0.05;

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
}

fn point(set_ups_per_s: f64, requests: u64, bytes: u64) -> Point {
    let mut machine = presets::machine("media-server").unwrap();
    machine.nic_set_ups_per_s = set_ups_per_s;
    let workload = Workload {
        sizes: vec![Size { bytes, share: 1.0 }],
        connections: 500,
        requests_per_connection: requests,
        ..presets::workload("bulk").unwrap()
    };
    let rows = plan(&machine, &workload, &[400.0], 1);
    let found = |sender: Sender| rows.iter().find(|row| row.engine == sender).map(|row| row.prediction);
    let fixed: Vec<_> = [Sender::User, Sender::Kernel, Sender::Nic].into_iter().filter_map(found).collect();
    let auto = found(Sender::Auto).unwrap();
    let best = fixed.iter().map(|one| one.gbit_s).fold(0.0, f64::max);
    let worst = fixed.iter().map(|one| one.gbit_s).fold(f64::INFINITY, f64::min);
    let fastest = fixed.iter().filter(|one| one.gbit_s >= 0.99 * best);
    let cheapest = fastest.map(|one| one.cpu_s_per_gb).fold(f64::INFINITY, f64::min);
    // Who is faster than the best may pay for it.
    let cpu = if auto.gbit_s > 1.01 * best { 1.0 } else { auto.cpu_s_per_gb / cheapest };
    let name = format!("{set_ups_per_s} set-ups/s, {requests} requests of {bytes} B");
    let short_of_budget = share_of(&rows, "budget_spent");
    Point { name, rate: auto.gbit_s / best, cpu, worst: worst / auto.gbit_s, short_of_budget }
}

fn share_of(rows: &[Row], reason: &str) -> f64 {
    let placement = rows.iter().find_map(|row| row.placement.as_ref()).unwrap();
    placement.reasons.iter().filter(|one| one.reason == reason).map(|one| one.share).sum()
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
                    "{:.3} of the best's rate, {:.3} × its CPU: {}, short of budget {:.2}",
                    point.rate, point.cpu, point.name, point.short_of_budget
                );
                println!("{said}");
                worst = point.worst.min(worst);
                let most_cpu =
                    if point.short_of_budget >= SHORT { MOST_CPU_WITHOUT_BUDGET } else { MOST_CPU };
                if point.rate < LEAST_RATE || point.cpu > most_cpu {
                    lost.push(said);
                }
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
    // Far in front of the worst: the thread's 8.7 MB/s beside 323.
    assert!(worst < 0.05, "{worst}");
}
