//! Where one thing begins to outweigh another: the size at which bytes cost as much as the handshake, and the places
//! where one server overtakes another.

use crate::quantity::{APPLICATION, CPU_PER_GB, CPU_PER_RESPONSE, Quantity, handshakes, responses};
use crate::{
    report::{
        number,
        panel::{self, Panel, Sweep},
    },
    statistics::{Summary, Verdict},
};

/// More break-even points than these are a matter for the plots.
const BREAK_EVENS: usize = 4;

/// What a server costs for each response beside its bytes.
struct FixedCost {
    server: usize,
    us: f64,
    /// The size whose bytes cost as much.
    even_bytes: f64,
    /// The sizes that were measured.
    sizes: (f64, f64),
}

/// For the servers that encrypt, the size of file at which the bytes cost as much as connection and handshake.
pub(super) fn fixed_costs(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    let sizes = match panel.numbers() {
        Some(sizes) if sweep.run.axis == "file_bytes" && sizes.len() > 2 => sizes,
        _ => return Vec::new(),
    };
    let encrypting = (0..sweep.servers.len()).filter(|server| !sweep.is_plaintext(*server));
    let costs: Vec<FixedCost> = encrypting.filter_map(|server| fixed_cost(panel, &sizes, server)).collect();
    let name = |cost: &FixedCost| sweep.servers[cost.server];
    let within = |cost: &&FixedCost| cost.even_bytes >= cost.sizes.0 && cost.even_bytes <= cost.sizes.1;
    let crossing: Vec<String> = costs
        .iter()
        .filter(within)
        .map(|cost| {
            let size = number::bytes(two_digits(cost.even_bytes));
            format!("{size} with {} ({})", name(cost), number::microseconds(cost.us))
        })
        .collect();
    let mut said = Vec::new();
    if !crossing.is_empty() {
        let list = number::list(&crossing);
        said.push(format!(
            "Connection and handshake cost more server CPU than the bytes below about {list}."
        ));
    }
    said.extend(costs.iter().filter(|cost| !within(cost)).map(|cost| {
        let fixed = number::microseconds(cost.us);
        if cost.even_bytes < cost.sizes.0 {
            format!(
                "{}: bytes outweigh connection and handshake ({fixed}) at every size measured.",
                name(cost)
            )
        } else {
            format!(
                "{}: connection and handshake ({fixed}) outweigh the bytes at every size measured.",
                name(cost)
            )
        }
    }));
    said
}

/// The price of a byte is taken from the two largest sizes, where the rest matters least; what the smallest size costs
/// beyond its bytes is the fixed part. `None` where not every response had a handshake, or the noise is larger.
fn fixed_cost(panel: &Panel<'_>, sizes: &[f64], server: usize) -> Option<FixedCost> {
    let points = || (0..sizes.len()).filter_map(|place| panel.point(server, place));
    let a_handshake_each =
        points().flat_map(panel::measured).all(|round| handshakes(round) >= 0.9 * responses(round));
    let cost = |(place, size): (usize, &f64)| {
        Some((*size, panel::summary(panel.point(server, place)?, &CPU_PER_RESPONSE)?))
    };
    let costs: Vec<(f64, Summary)> = sizes.iter().enumerate().filter_map(cost).collect();
    let [first, .., before_last, last] = costs.as_slice() else { return None };
    let us_per_byte = (last.1.median - before_last.1.median) / (last.0 - before_last.0);
    let us = first.1.median - us_per_byte * first.0;
    let noise = first.1.upper_quartile - first.1.lower_quartile;
    let is_clear = a_handshake_each && us_per_byte > 0.0 && us > noise && first.1.count > 1;
    is_clear.then(|| FixedCost { server, us, even_bytes: us / us_per_byte, sizes: (first.0, last.0) })
}

/// Where one of two servers that encrypt becomes the better one: by CPU, or where CPU decides nothing by throughput.
pub(super) fn break_even(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    let Some(numbers) = panel.numbers() else { return Vec::new() };
    let encrypting: Vec<usize> =
        (0..sweep.servers.len()).filter(|server| !sweep.is_plaintext(*server)).collect();
    let mut found = Vec::new();
    for (count, ours) in encrypting.iter().enumerate() {
        for theirs in &encrypting[count + 1..] {
            let by = |quantity: &Quantity| crossings(sweep, panel, &numbers, quantity, (*ours, *theirs));
            let by_cpu = by(&CPU_PER_GB);
            found.extend(if by_cpu.is_empty() { by(&APPLICATION) } else { by_cpu });
        }
    }
    found.truncate(BREAK_EVENS);
    found
}

/// Between two places with opposite verdicts and none in between that decides, the ratio passes 1.
fn crossings(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    numbers: &[f64],
    quantity: &Quantity,
    (ours, theirs): (usize, usize),
) -> Vec<String> {
    let mut found = Vec::new();
    let mut before: Option<(f64, f64, Verdict)> = None;
    for (place, number) in numbers.iter().enumerate() {
        let Some(ratio) = panel.ratio(ours, theirs, place, quantity) else { continue };
        let verdict = ratio.verdict();
        if !matches!(verdict, Verdict::Less | Verdict::More) {
            continue;
        }
        if let Some((at, was, decided)) = before
            && decided != verdict
        {
            let even = interpolated((at, was), (*number, ratio.ratio));
            let ours_is_better = (verdict == Verdict::More) == quantity.more_is_better;
            let (better, worse) = if ours_is_better { (ours, theirs) } else { (theirs, ours) };
            let (better, worse) = (sweep.servers[better], sweep.servers[worse]);
            let even = two_digits(even);
            let even = if sweep.run.axis.ends_with("_bytes") {
                number::bytes(even)
            } else {
                format!("{} {}", number::chosen(even), sweep.run.axis.replace('_', " "))
            };
            let what = if quantity.more_is_better { "gives more" } else { "costs less CPU per byte" };
            found.push(format!(
                "Break-even at about {even}: above it {better} {what} than {worse}, below it the other way."
            ));
        }
        before = Some((*number, ratio.ratio, verdict));
    }
    found
}

/// Where the logarithm of the ratio is zero between two places; sweeps over decades are interpolated by logarithm too.
fn interpolated((low, low_ratio): (f64, f64), (high, high_ratio): (f64, f64)) -> f64 {
    let share = low_ratio.ln() / (low_ratio.ln() - high_ratio.ln());
    if low > 0.0 { (low.ln() + share * (high.ln() - low.ln())).exp() } else { low + share * (high - low) }
}

/// An estimate deserves no more digits.
fn two_digits(value: f64) -> f64 {
    let unit = 10f64.powf(value.abs().max(f64::MIN_POSITIVE).log10().floor() - 1.0);
    (value / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_lies_where_the_ratio_is_one() {
        let even = interpolated((1e4, 2.0), (1e6, 0.5));
        assert!((even / 1e5 - 1.0).abs() < 1e-9, "{even}");
        let even = interpolated((0.0, 1.1), (10.0, 1.0 / 1.1));
        assert!((even - 5.0).abs() < 1e-9, "{even}");
        assert_eq!(two_digits(63_417.0), 63_000.0);
    }
}
