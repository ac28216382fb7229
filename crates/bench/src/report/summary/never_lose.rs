//! Whether `auto` loses: at each place beside the best of the fixed engines, and in front of the worst.

use crate::quantity::{APPLICATION, CPU_PER_GB, Quantity};
use crate::{
    report::{
        number,
        panel::{self, Panel, Sweep},
    },
    statistics::Verdict,
};

/// The server whose engine is decided by placement.
const AUTO: &str = "linerate auto";
/// Servers whose engine is fixed: ours, and what experiments call those of ours that use one engine for every size.
const FIXED: [&str; 3] = ["linerate user", "linerate kernel", "linerate nic"];
const FOR_EVERYTHING: &str = " for everything";

/// `auto` at one place.
struct Place {
    at: String,
    /// What `auto` costs as a multiple of the best, and what may be said of that.
    beside_best: (f64, Verdict),
    /// Rounds of both, side by side.
    rounds: usize,
    best: usize,
    /// What the worst costs as a multiple of `auto`; where there is another than the best.
    worst: Option<(f64, usize)>,
}

/// By CPU and by throughput, where a run has `auto` and something beside it.
pub(super) fn sentences(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    let Some(auto) = sweep.servers.iter().position(|name| *name == AUTO) else { return Vec::new() };
    let is_fixed = |server: &usize| {
        FIXED.contains(&sweep.servers[*server]) || sweep.servers[*server].ends_with(FOR_EVERYTHING)
    };
    let fixed: Vec<usize> = (0..sweep.servers.len()).filter(is_fixed).collect();
    let mut said = Vec::new();
    for (quantity, what) in [(&CPU_PER_GB, "server CPU per byte"), (&APPLICATION, "time per byte")] {
        let places = 0..panel.places.len();
        let places: Vec<Place> =
            places.filter_map(|place| beside(sweep, panel, quantity, (auto, &fixed), place)).collect();
        if !places.is_empty() {
            said.push(sentence(sweep, &places, what));
        }
    }
    said
}

impl Place {
    /// What `auto` costs as a multiple of the best, unless rounds show that there is no difference.
    fn told(&self) -> Option<f64> {
        let (times, verdict) = self.beside_best;
        (verdict != Verdict::NoDifference).then_some(times)
    }
}

fn sentence(sweep: &Sweep<'_>, places: &[Place], what: &str) -> String {
    let each = places.iter().map(|place| {
        let best = sweep.servers[place.best];
        let mut words = match place.beside_best {
            (times, Verdict::Less | Verdict::More) => {
                format!("{} {} that of {best}", place.at, number::times(times))
            }
            (_, Verdict::NoDifference) => format!("{} no difference to {best}", place.at),
            (times, Verdict::TooFewRounds) => format!(
                "{} {} that of {best} ({}, too few to be sure)",
                place.at,
                number::times(times),
                number::plural(place.rounds, "round")
            ),
        };
        if let Some((times, worst)) = place.worst {
            words.push_str(&format!(", {} {}", sweep.servers[worst], number::times(times)));
        }
        words
    });
    let each: Vec<String> = each.collect();
    let furthest = places.iter().filter_map(Place::told).fold(1.0, f64::max);
    let worst = places.iter().filter_map(|place| place.worst).map(|(times, _)| times).fold(1.0, f64::max);
    let at_most = if places.iter().all(|place| place.beside_best.1 == Verdict::TooFewRounds) {
        "too few rounds to be sure of any difference to the best fixed engine".to_owned()
    } else if furthest > 1.0 {
        format!("at most {} that of the best fixed engine", number::times(furthest))
    } else {
        "nowhere more than the best fixed engine".to_owned()
    };
    let ahead = if worst > 1.0 {
        format!("; the worst needs up to {} as much as auto", number::times(worst))
    } else {
        String::new()
    };
    format!("{AUTO}, {what}: {at_most}{ahead}. In turn: {}.", each.join("; "))
}

fn beside(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    quantity: &Quantity,
    (auto, fixed): (usize, &[usize]),
    place: usize,
) -> Option<Place> {
    // What a byte costs, so that more is worse whatever the quantity.
    let as_cost = |value: f64| if quantity.more_is_better { 1.0 / value } else { value };
    let cost = |server: usize| {
        let cost = as_cost(panel::summary(panel.point(server, place)?, quantity)?.median);
        (cost.is_finite() && cost > 0.0).then_some((cost, server))
    };
    let (ours, _) = cost(auto)?;
    let mut costs: Vec<(f64, usize)> = fixed.iter().filter_map(|&server| cost(server)).collect();
    costs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (_, best) = *costs.first()?;
    let worst = costs.last().filter(|_| costs.len() > 1).map(|&(cost, server)| (cost / ours, server));
    let ratio = panel.ratio(auto, best, place, quantity)?;
    let beside_best = (as_cost(ratio.ratio), ratio.verdict());
    let rounds = ratio.rounds;
    Some(Place { at: sweep.at(panel.places[place]), beside_best, rounds, best, worst })
}
