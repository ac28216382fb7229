//! What a run found out, in plain sentences that the data bear out, the limits of the run among them.
//!
//! A sentence claims a difference only where [`crate::statistics::Ratio::verdict`] does.

mod cautions;
mod crossing;
mod never_lose;
mod price;

pub(super) use cautions::cautions;

use super::{
    figures, number,
    panel::{self, Panel, Sweep},
};
use crate::quantity::{self, APPLICATION, HANDSHAKES, Quantity};

/// A run has a panel for each cipher, or more: so many are summed up, and the rest is in the tables.
const PANELS: usize = 6;

/// A sentence about a run.
pub(super) struct Finding {
    /// The panel that it is about; empty where it is about the run.
    pub panel: String,
    /// The sentence.
    pub sentence: String,
}

/// The findings of a run, the most wanted first.
pub(super) fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for panel in sweep.panels.iter().take(PANELS) {
        let mut sentences = Vec::new();
        if figures::measures_handshakes(sweep) {
            sentences.extend(most(sweep, panel, &HANDSHAKES, "handshakes in a second of server CPU"));
            sentences.extend(price::per_response(sweep, panel));
        } else {
            sentences.extend(never_lose::sentences(sweep, panel));
            sentences.extend(price::of_tls(sweep, panel));
            sentences.extend(price::of_floor(sweep, panel));
            sentences.extend(crossing::fixed_costs(sweep, panel));
            sentences.extend(crossing::break_even(sweep, panel));
            sentences.extend(most(sweep, panel, &APPLICATION, "Gb/s of bodies"));
        }
        found.extend(sentences.into_iter().map(|sentence| Finding { panel: panel.label.clone(), sentence }));
    }
    let mut of_run = Vec::new();
    if sweep.panels.len() > PANELS {
        let others = number::plural(sweep.panels.len() - PANELS, "other combination");
        of_run.push(format!("{others} of variables: see the tables."));
    }
    of_run.extend(published(sweep));
    if found.is_empty() && of_run.is_empty() {
        of_run.push("Nothing was measured.".to_owned());
    }
    found.extend(of_run.into_iter().map(|sentence| Finding { panel: String::new(), sentence }));
    found
}

/// The findings as sentences that stand alone.
pub(super) fn sentences(sweep: &Sweep<'_>) -> Vec<String> {
    let alone = |finding: Finding| match finding.panel.as_str() {
        "" => finding.sentence,
        panel => format!("{panel}: {}", finding.sentence),
    };
    findings(sweep).into_iter().map(alone).collect()
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
        let extreme = if quantity.more_is_better { "most" } else { "least" };
        Some(format!(
            "Published: {}: {} {}, {} the {extreme} measured here ({}).",
            series.name,
            number::short(theirs),
            quantity.unit,
            number::times(theirs / ours),
            number::short(ours)
        ))
    };
    sweep.run.published.iter().filter_map(sentence).collect()
}
