//! What a server costs beside the one that speaks plaintext.

use super::claim;
use crate::{
    report::{
        number,
        panel::{Panel, Sweep},
        quantity::{CPU_PER_GB, CPU_PER_RESPONSE, Quantity},
    },
    statistics::{Ratio, Verdict},
};

/// A sentence for each server that encrypts: CPU per byte beside plaintext.
pub(super) fn of_tls(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    sentences(sweep, panel, &CPU_PER_GB, "server CPU per byte")
}

/// The same for each response.
pub(super) fn per_response(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    sentences(sweep, panel, &CPU_PER_RESPONSE, "server CPU per response")
}

fn sentences(sweep: &Sweep<'_>, panel: &Panel<'_>, quantity: &Quantity, what: &str) -> Vec<String> {
    let Some(baseline) = sweep.baseline() else { return Vec::new() };
    let encrypting = (0..sweep.servers.len()).filter(|server| !sweep.is_plaintext(*server));
    encrypting.filter_map(|server| sentence(sweep, panel, quantity, what, (server, baseline))).collect()
}

fn sentence(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    quantity: &Quantity,
    what: &str,
    (server, baseline): (usize, usize),
) -> Option<String> {
    let ratios: Vec<(usize, Ratio)> = (0..panel.places.len())
        .filter_map(|place| Some((place, panel.ratio(server, baseline, place, quantity)?)))
        .collect();
    let (name, beside) = (sweep.servers[server], sweep.servers[baseline]);
    let at = |place: usize| sweep.at(panel.places[place]);
    let (least, most) = (extreme(&ratios, f64::lt)?, extreme(&ratios, f64::gt)?);
    let few = ratios.iter().any(|(_, ratio)| ratio.verdict() == Verdict::TooFewRounds);
    let rounds = ratios.iter().map(|(_, ratio)| ratio.rounds).min().unwrap_or(0);
    let doubt = if few {
        format!(" ({}: too few to be sure)", number::plural(rounds, "round"))
    } else {
        String::new()
    };
    let same = ratios.iter().filter(|(_, ratio)| ratio.verdict() == Verdict::NoDifference).count();
    Some(if same == ratios.len() {
        let everywhere = if ratios.len() > 1 { " at any point" } else { "" };
        let (low, high) = interval(&ratios);
        format!(
            "{name} and {beside}: no difference in {what} was found{everywhere} ({} to {}).",
            number::times(low),
            number::times(high)
        )
    } else if ratios.len() == 1 {
        let place = if panel.places.len() > 1 { format!(" {}", at(least.0)) } else { String::new() };
        format!("{name} costs {} {beside} in {what}{place}{doubt}.", claim(&least.1))
    } else if close(&least.1, &most.1) {
        let middle = number::times((least.1.ratio * most.1.ratio).sqrt());
        let about = if few { "about " } else { "" };
        format!("{name} costs {about}{middle} {beside} in {what} at every point{doubt}.")
    } else {
        let (lowest, highest) = (claim(&least.1), claim(&most.1));
        format!(
            "{name} beside {beside}, {what}: {lowest} {} at the least, {highest} {} at the most{doubt}.",
            at(least.0),
            at(most.0)
        )
    })
}

fn extreme(ratios: &[(usize, Ratio)], beats: fn(&f64, &f64) -> bool) -> Option<(usize, Ratio)> {
    ratios.iter().copied().reduce(|best, next| if beats(&next.1.ratio, &best.1.ratio) { next } else { best })
}

/// The hull of all intervals.
fn interval(ratios: &[(usize, Ratio)]) -> (f64, f64) {
    let low = ratios.iter().map(|(_, ratio)| ratio.low).fold(f64::INFINITY, f64::min);
    let high = ratios.iter().map(|(_, ratio)| ratio.high).fold(0.0, f64::max);
    (low, high)
}

/// Both say the same to within a twentieth.
fn close(least: &Ratio, most: &Ratio) -> bool {
    let one_sided = |ratio: &Ratio| ratio.verdict() != Verdict::NoDifference;
    most.ratio / least.ratio < 1.05 && one_sided(least) && one_sided(most)
}
