//! What a run found out, in plain sentences that the data bear out, the limits of the run among them.
//!
//! A sentence claims a difference only where [`Ratio::verdict`] does.

mod cautions;
mod crossing;
mod price;

pub(super) use cautions::cautions;

use super::{
    figures, number,
    panel::{self, Panel, Sweep},
    quantity::{self, APPLICATION, HANDSHAKES, Quantity},
};
use crate::statistics::{Ratio, Verdict};

/// A run has a panel for each cipher, or more: so many are summed up, and the rest is in the tables.
const PANELS: usize = 4;

/// The findings of a run, the most wanted first.
pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for panel in sweep.panels.iter().take(PANELS) {
        let mut sentences = Vec::new();
        if figures::measures_handshakes(sweep) {
            sentences.extend(most(sweep, panel, &HANDSHAKES, "handshakes in a second of server CPU"));
            sentences.extend(price::per_response(sweep, panel));
        } else {
            sentences.extend(price::of_tls(sweep, panel));
            sentences.extend(crossing::fixed_costs(sweep, panel));
            sentences.extend(crossing::break_even(sweep, panel));
            sentences.extend(most(sweep, panel, &APPLICATION, "Gb/s of bodies"));
        }
        if !panel.label.is_empty() {
            sentences.iter_mut().for_each(|sentence| *sentence = format!("{}: {sentence}", panel.label));
        }
        found.extend(sentences);
    }
    if sweep.panels.len() > PANELS {
        let others = number::plural(sweep.panels.len() - PANELS, "other combination");
        found.push(format!("{others} of variables: see the tables."));
    }
    found.extend(published(sweep));
    if found.is_empty() {
        found.push("Nothing was measured.".to_owned());
    }
    found
}

/// Which server gave the most, and which of those that encrypt.
fn most(sweep: &Sweep<'_>, panel: &Panel<'_>, quantity: &Quantity, what: &str) -> Option<String> {
    let best = |only_tls: bool| {
        panel
            .cells()
            .filter(|cell| !(only_tls && sweep.is_plaintext(cell.server)))
            .filter_map(|cell| Some((panel::summary(cell.point, quantity)?.median, cell)))
            .max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let (value, cell) = best(false)?;
    let named = |cell: panel::Cell<'_>| {
        format!("{} {}", sweep.servers[cell.server], sweep.at(panel.places[cell.place]))
    };
    let mut sentence = format!("The most was {} {what}, from {}", number::short(value), named(cell));
    if sweep.is_plaintext(cell.server)
        && let Some((value, cell)) = best(true)
    {
        sentence.push_str(&format!("; over TLS {}, from {}", number::short(value), named(cell)));
    }
    Some(sentence + ".")
}

/// How far what was published lies from what was measured here.
fn published(sweep: &Sweep<'_>) -> Vec<String> {
    let sentence = |series: &crate::result::PublishedSeries| {
        let quantity = quantity::named(&series.quantity)?;
        let best = |values: &mut dyn Iterator<Item = f64>| {
            let better = if quantity.more_is_better { f64::max } else { f64::min };
            values.filter(|value| value.is_finite() && *value > 0.0).reduce(better)
        };
        let theirs = best(
            &mut series
                .values
                .iter()
                .map(|value| quantity.scale * if quantity.more_is_better { value.high } else { value.low }),
        )?;
        let cells = sweep.panels.iter().flat_map(Panel::cells);
        let ours = best(&mut cells.filter_map(|cell| Some(panel::summary(cell.point, &quantity)?.median)))?;
        let (least_or_most, relation) = match (quantity.more_is_better, theirs / ours) {
            (true, ratio) => ("most", ratio),
            (false, ratio) => ("least", ratio),
        };
        Some(format!(
            "Published: {} with {} {}. The {least_or_most} here was {} {}; the published figure is {} that, on its \
             own hardware.",
            series.name,
            number::short(theirs),
            quantity.unit,
            number::short(ours),
            quantity.unit,
            number::times(relation)
        ))
    };
    sweep.run.published.iter().filter_map(sentence).collect()
}

/// A ratio as a part of a sentence: "1.21 ×", "no different from", or what else may be said.
fn claim(ratio: &Ratio) -> String {
    match ratio.verdict() {
        Verdict::More | Verdict::Less => number::times(ratio.ratio),
        Verdict::NoDifference => {
            format!("no difference ({} to {})", number::times(ratio.low), number::times(ratio.high))
        }
        Verdict::TooFewRounds => format!("about {}", number::times(ratio.ratio)),
    }
}
