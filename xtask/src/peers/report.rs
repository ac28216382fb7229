//! What the reader sees: a block for each work as it is done, and the table with targets at the end.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::environment::Environment;
use super::idle_memory::IdleMemory;
use super::network::Network;
use super::options::{Cipher, Options};
use super::rounds::{Measured, Ratio, SETTLED_SPREAD};
use super::slices::Slice;
use super::statistics::Summary;
use super::works::Unit;

/// Everything, as `--json` writes it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The command line.
    pub(crate) options: Options,
    /// The machine.
    pub(crate) environment: Environment,
    /// What did not take part, and why.
    pub(crate) skipped: Vec<String>,
    /// One for each network and suite.
    pub(crate) passes: Vec<Pass>,
}

/// All works over one network with one suite.
#[derive(Debug, Serialize)]
pub(crate) struct Pass {
    /// The network.
    pub(crate) network: Network,
    /// The suite.
    pub(crate) cipher: Cipher,
    /// CPU.
    pub(crate) works: Vec<Measured>,
    /// Memory.
    pub(crate) idle: Vec<IdleMemory>,
    /// The most that an idle connection of ours should take, in bytes.
    pub(crate) idle_target_bytes: Option<u64>,
}

impl Report {
    /// Writes the JSON file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("the results cannot be written as JSON")?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Prints the table of all passes.
    pub(crate) fn print_table(&self) {
        for pass in &self.passes {
            println!("\nTLS 1.3, {}, over {}", pass.cipher.suite_name(), pass.network.title());
            println!("{}", table(pass));
        }
        for skipped in &self.skipped {
            println!("skipped: {skipped}");
        }
    }
}

/// Prints what was measured for one work.
pub(crate) fn print_work(measured: &Measured) {
    println!("\n{} ({})", measured.work.title, measured.work.name);
    for (label, slices) in measured.labels.iter().zip(&measured.slices) {
        println!("  {label:<26} {}", entry_line(measured.work.unit, slices));
    }
    for ratio in &measured.ratios {
        println!("  {}", ratio_line(measured, ratio));
    }
}

/// Prints the memory of one server.
pub(crate) fn print_idle(idle: &IdleMemory) {
    println!(
        "  {:<26} {:.2} KiB anonymous, {:.2} KiB resident for each of {} connections",
        idle.label,
        idle.anonymous_bytes_each() / 1024.0,
        idle.resident_bytes_each() / 1024.0,
        idle.connections
    );
}

fn entry_line(unit: Unit, slices: &[Slice]) -> String {
    let over = |value: &dyn Fn(&Slice) -> f64| Summary::of(&slices.iter().map(value).collect::<Vec<_>>());
    let (Some(cost), Some(rate)) = (over(&|slice| slice.cost_s(unit)), over(&Slice::gigabytes_per_s)) else {
        return "not measured".to_string();
    };
    let percent = |value: &dyn Fn(&Slice) -> f64| over(value).map_or(0.0, |summary| summary.median * 100.0);
    let server = percent(&|slice| slice.usage.server_core_busy);
    let client = percent(&|slice| slice.usage.client_core_busy);
    let (scale, name) = match unit {
        Unit::Gigabyte => (1.0, "s/GB"),
        Unit::Request | Unit::Connection => (1e6, "µs/request"),
    };
    let [median, low, high] =
        [cost.median, cost.lower_quartile, cost.upper_quartile].map(|cost| short(cost * scale));
    format!(
        "{median} {name} [{low}–{high}], {:.2} GB/s, cores {server:.0} % and {client:.0} %{}",
        rate.median,
        remarks(slices)
    )
}

/// What makes slices less trustworthy, each with the number of slices it was seen in.
fn remarks(slices: &[Slice]) -> String {
    let steal = slices.iter().map(|slice| slice.usage.steal).fold(0.0, f64::max);
    let mut remarks = String::new();
    let mut remark = |text: &str, count: usize| {
        if count > 0 {
            remarks.push_str(&format!(", {text} in {count} of {}", slices.len()));
        }
    };
    remark("client-limited", slices.iter().filter(|slice| slice.client_limited).count());
    remark("disturbed", slices.iter().filter(|slice| slice.usage.disturbed()).count());
    if steal > 0.01 {
        remarks.push_str(&format!(", up to {:.0} % stolen", steal * 100.0));
    }
    remarks
}

fn ratio_line(measured: &Measured, ratio: &Ratio) -> String {
    let process = &ratio.by_process;
    let unsettled = if process.spread() < SETTLED_SPREAD { "" } else { ", NOT SETTLED" };
    format!(
        "{} / {}: {:.3} [{:.3}–{:.3}], by core {:.3}; {} rounds, median within {:.3}–{:.3}{unsettled}{}",
        measured.labels[ratio.comparison.ours],
        measured.labels[ratio.comparison.against],
        process.median,
        process.lower_quartile,
        process.upper_quartile,
        ratio.by_core.median,
        process.count,
        process.interval_low,
        process.interval_high,
        target_text(ratio.comparison.target, process.median)
    )
}

fn target_text(target: Option<f64>, median: f64) -> String {
    target.map_or_else(String::new, |target| format!("; target ≤ {target:.2} {}", verdict(median <= target)))
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// The table as Markdown, so that it can be pasted.
fn table(pass: &Pass) -> String {
    let mut rows = vec![
        "| work | ours | ratio (median, quartiles) | target | |".to_string(),
        "|---|---|---|---|---|".to_string(),
    ];
    for idle in &pass.idle {
        let each = idle.anonymous_bytes_each();
        let target =
            pass.idle_target_bytes.filter(|_| idle.label == super::servers::linerate::Linerate::NAME);
        rows.push(format!(
            "| {} idle connections | {}: {:.2} KiB each | | {} | {} |",
            idle.connections,
            idle.label,
            each / 1024.0,
            target.map_or_else(String::new, |bytes| format!("≤ {} KiB", bytes / 1024)),
            target.map_or("", |bytes| verdict(each <= bytes as f64)),
        ));
    }
    rows.extend(
        pass.works.iter().flat_map(|measured| measured.ratios.iter().map(|ratio| row(measured, ratio))),
    );
    rows.join("\n")
}

fn row(measured: &Measured, ratio: &Ratio) -> String {
    let unit = measured.work.unit;
    let ours = &measured.slices[ratio.comparison.ours];
    let against = &measured.slices[ratio.comparison.against];
    let cost = Summary::of(&ours.iter().map(|slice| slice.cost_s(unit)).collect::<Vec<_>>());
    let cost = cost.map_or(f64::NAN, |cost| cost.median);
    let cost = match unit {
        Unit::Gigabyte => format!("{} s/GB", short(cost)),
        Unit::Request | Unit::Connection => format!("{} µs", short(cost * 1e6)),
    };
    let limited =
        |slices: &[Slice]| 2 * slices.iter().filter(|slice| slice.client_limited).count() > slices.len();
    let mut notes = Vec::new();
    if let Some(target) = ratio.comparison.target {
        notes.push(verdict(ratio.by_process.median <= target));
    }
    if limited(ours) || limited(against) {
        notes.push("client-limited");
    }
    if ratio.by_process.spread() >= SETTLED_SPREAD {
        notes.push("not settled");
    }
    format!(
        "| {} | {}: {cost} | {:.2} × {} ({:.2}–{:.2}) | {} | {} |",
        measured.work.title,
        measured.labels[ratio.comparison.ours],
        ratio.by_process.median,
        measured.labels[ratio.comparison.against],
        ratio.by_process.lower_quartile,
        ratio.by_process.upper_quartile,
        ratio.comparison.target.map_or_else(String::new, |target| format!("≤ {target:.2}")),
        notes.join(", ")
    )
}

/// Three significant digits.
fn short(value: f64) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else if value >= 1.0 {
        2
    } else {
        3
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        assert_eq!([293.4, 16.04, 2.881, 0.2866].map(short), ["293", "16.0", "2.88", "0.287"]);
    }

    #[test]
    fn a_target_is_met_at_its_value() {
        assert_eq!(target_text(Some(0.55), 0.55), "; target ≤ 0.55 met");
        assert_eq!(target_text(Some(0.55), 0.551), "; target ≤ 0.55 MISSED");
        assert_eq!(target_text(None, 1.0), "");
    }
}
