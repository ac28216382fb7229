//! The admin page about placement: what is decided by, what it comes to, and what was decided.

use super::{Basis, PlacementPlan};
use crate::{
    metrics::Metrics,
    view::{OTHERS, View},
};
use linerate_figures as figures;
use linerate_placement::{Cipher, Combination, Engine, Mode, Placer, Reason, Version};
use std::{fmt::Write, sync::Arc};

/// The page's text.
// Writing to a String cannot fail: the results of `writeln!` are dropped on purpose.
pub(crate) fn page(plan: &PlacementPlan, workers: &[Arc<Metrics>]) -> String {
    let views: Vec<View> = workers.iter().map(|worker| worker.placement_view()).collect();
    let mut page = format!("{}\n", plan.summary());
    let _ = writeln!(page, "costs: {}", plan.basis.in_words());
    if let Basis::Misfit { .. } = plan.basis {
        page.push_str("(`linerate calibrate` measures this machine)\n");
    }
    policy(plan, &mut page);
    by_cost(plan, &views, &mut page);
    observed(&views, &mut page);
    counts(workers, &mut page);
    latest(&views, &mut page);
    page
}

fn policy(plan: &PlacementPlan, page: &mut String) {
    let policy = &plan.policy;
    let placer = Placer::new(*policy, plan.costs.clone());
    let limits = plan.costs.nic_limits;
    let _ = writeln!(
        page,
        "adapter: at most {:.0} set-ups a second (it can do {:.0}), {} flows, none with more than {} retransmitted",
        placer.set_ups_per_s(),
        limits.set_ups_per_s,
        limits.flow_table_flows,
        figures::share(policy.retransmitted_limit, 2)
    );
    let learning = if policy.learning { "on" } else { "off" };
    let trials = match policy.trial_every {
        0 => "no trials".to_owned(),
        every => format!("one large response of {every} is a trial"),
    };
    let _ = writeln!(page, "learning: {learning}, {trials}");
}

fn by_cost(plan: &PlacementPlan, views: &[View], page: &mut String) {
    if plan.policy.mode != Mode::Auto {
        return;
    }
    page.push_str(
        "\nfrom the user engine to      cipher             carried  saved, ns/B   break-even (by worker)\n",
    );
    for (other, engine) in OTHERS.into_iter().enumerate() {
        for (index, cipher) in Cipher::ALL.into_iter().enumerate() {
            let combination = Combination { version: Version::Tls13, cipher };
            let lack = plan.capabilities(combination).of(engine).lack();
            let carried = lack.map_or("yes".to_owned(), |lack| lack.label().to_owned());
            let saved_ns: f64 = views.iter().map(|view| view.saved_ns_per_byte[other][index]).sum::<f64>()
                / views.len().max(1) as f64;
            let break_evens: Vec<String> = views
                .iter()
                .map(|view| {
                    view.break_even_bytes[other][index]
                        .map_or("never".to_owned(), |bytes| figures::bytes(bytes as f64, 2))
                })
                .collect();
            let _ = writeln!(
                page,
                "{:<28} {:<18} {carried:<8} {saved_ns:>11.3}   {}",
                engine.name(),
                cipher.name(),
                break_evens.join(", ")
            );
        }
    }
}

fn observed(views: &[View], page: &mut String) {
    page.push_str("\nobserved, TCP included       cipher             ns/B     pieces (of all workers)\n");
    let before = page.len();
    for (row, engine) in Engine::ALL.into_iter().enumerate() {
        for (column, cipher) in Cipher::ALL.into_iter().enumerate() {
            let cells = || views.iter().map(|view| view.observed[row][column]);
            let pieces: u64 = cells().map(|observed| observed.observations).sum();
            if pieces > 0 {
                let sum: f64 = cells().map(|one| one.mean_ns_per_byte * one.observations as f64).sum();
                let mean_ns = sum / pieces as f64;
                let _ = writeln!(page, "{:<28} {:<18} {mean_ns:<8.3} {pieces}", engine.name(), cipher.name());
            }
        }
    }
    if page.len() == before {
        page.push_str("nothing yet\n");
    }
}

fn counts(workers: &[Arc<Metrics>], page: &mut String) {
    page.push_str("\nresponses over TLS           reason\n");
    let mut total = 0;
    for engine in Engine::ALL {
        for (index, label) in Reason::LABELS.iter().enumerate() {
            let count: u64 = workers.iter().map(|worker| worker.placements(engine, index)).sum();
            if count > 0 {
                let _ = writeln!(page, "{count:<20} {:<7} {label}", engine.name());
            }
            total += count;
        }
    }
    let _ = writeln!(page, "{total:<20} all");
}

fn latest(views: &[View], page: &mut String) {
    page.push_str("\nthe latest decisions\n");
    for (worker, view) in views.iter().enumerate() {
        let _ = writeln!(
            page,
            "worker {worker}: {} of its time left, {:.1} set-ups a second, {}",
            figures::share(view.cpu_left, 2),
            view.set_ups_per_s,
            match view.price_ns {
                None => "none left".to_owned(),
                Some(0.0) => "plenty left".to_owned(),
                Some(price_ns) => format!("for what saves {} or more", figures::time(price_ns, 2)),
            }
        );
        for recent in view.ring.latest() {
            let ago_s = view.now_ms.saturating_sub(recent.at_ms) as f64 / 1000.0;
            let _ = writeln!(
                page,
                "  {ago_s:>8.1} s ago  {} of content, {}: {}",
                figures::bytes(recent.content_bytes as f64, 2),
                recent.combination,
                recent.decision
            );
        }
    }
}
