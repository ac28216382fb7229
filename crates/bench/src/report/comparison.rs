//! Two runs side by side: what differs by more than the rounds of either, and what else is different.
//!
//! Machines drift between runs. So each server is compared twice: by itself, and by its ratio to the server that
//! speaks plaintext, taken round by round within each run, which a slower day of the machine leaves alone.

use maud::{Markup, html};

use super::{
    figures, number,
    page::{self, differences, scrolled},
    panel::{self, Panel, Sweep},
    quantity::{self, APPLICATION, CPU_PER_GB, CPU_PER_RESPONSE, Quantity},
    text::bullets,
};
use crate::{
    result::ExperimentRun,
    statistics::{Ratio, Summary, Verdict},
};

/// What is compared: a quantity, or its ratio to the plaintext server.
#[derive(Clone, Copy)]
struct Measure {
    quantity: Quantity,
    beside_plaintext: bool,
}

impl Measure {
    fn title(&self) -> String {
        let Quantity { title, unit, .. } = self.quantity;
        if self.beside_plaintext {
            format!("{title}, as a multiple of plaintext")
        } else {
            format!("{title} in {unit}")
        }
    }
}

/// One point in both runs.
struct Row {
    /// Server and place.
    name: String,
    before: Summary,
    after: Summary,
    ratio: Ratio,
}

struct Part {
    measure: Measure,
    rows: Vec<Row>,
}

/// An experiment that is in both runs.
struct Compared<'run> {
    before: &'run ExperimentRun,
    after: &'run ExperimentRun,
    parts: Vec<Part>,
    /// Points that only one run measured.
    unmatched: Vec<String>,
}

/// The page.
pub(super) fn page(before: &[ExperimentRun], after: &[ExperimentRun]) -> String {
    let compared = compare(before, after);
    let body = html! {
        header {
            p.over { "linerate bench compare" }
            h1 { "Two runs side by side" }
            @for pair in &compared {
                p.meta {
                    code { (pair.before.name) } ": "
                    (number::moment(pair.before.started_unix_s)) " and " (number::moment(pair.after.started_unix_s))
                }
            }
        }
        div.short {
            h3 { "In short" }
            ul { @for finding in findings(&compared) { li { (finding) } } }
            @let cautions = cautions(before, after, &compared);
            @if !cautions.is_empty() {
                h4 { "Read with care" }
                ul.cautions { @for caution in cautions { li { (caution) } } }
            }
        }
        @for pair in &compared { (experiment(pair)) }
    };
    page::document("linerate bench: comparison", &body)
}

/// The same for the terminal.
pub(super) fn text(before: &[ExperimentRun], after: &[ExperimentRun]) -> String {
    let compared = compare(before, after);
    let mut text = String::new();
    for pair in &compared {
        for part in &pair.parts {
            text.push_str(&format!("{}: {}\n", pair.after.name, part.measure.title()));
            let row = |row: &Row| {
                vec![
                    row.name.clone(),
                    verdict(&row.ratio, &part.measure.quantity).to_owned(),
                    number::short(row.before.median),
                    number::short(row.after.median),
                    number::change(row.ratio.ratio),
                    format!("{} to {}", number::change(row.ratio.low), number::change(row.ratio.high)),
                ]
            };
            let heading = ["", "", "before", "after", "change", "interval"].map(str::to_owned).to_vec();
            let rows: Vec<Vec<String>> = std::iter::once(heading).chain(part.rows.iter().map(row)).collect();
            text.push_str(&super::text::aligned(&rows));
            text.push('\n');
        }
    }
    text.push_str(&bullets(&findings(&compared), '•'));
    text.push_str(&bullets(&cautions(before, after, &compared), '!'));
    text
}

fn compare<'run>(before: &'run [ExperimentRun], after: &'run [ExperimentRun]) -> Vec<Compared<'run>> {
    let pairs = after.iter().filter_map(|after| {
        let before = before.iter().find(|before| before.name == after.name && before.axis == after.axis)?;
        Some((before, after))
    });
    pairs.map(|(before, after)| experiment_of(before, after)).collect()
}

fn experiment_of<'run>(before: &'run ExperimentRun, after: &'run ExperimentRun) -> Compared<'run> {
    let sweeps = (Sweep::of(before), Sweep::of(after));
    let mut unmatched = Vec::new();
    let mut parts: Vec<Part> =
        measures(&sweeps.1).into_iter().map(|measure| Part { measure, rows: Vec::new() }).collect();
    for panel in &sweeps.1.panels {
        let Some(other) = sweeps.0.panels.iter().find(|other| other.label == panel.label) else {
            unmatched.push(format!("{}: only after", panel.label));
            continue;
        };
        for part in &mut parts {
            part.rows.extend(rows(&sweeps.0, other, &sweeps.1, panel, &part.measure));
        }
        unmatched.extend(points_of_one(&sweeps.1, panel, &sweeps.0, other, "after"));
        unmatched.extend(points_of_one(&sweeps.0, other, &sweeps.1, panel, "before"));
    }
    parts.retain(|part| !part.rows.is_empty());
    Compared { before, after, parts, unmatched }
}

/// What the experiment is about, and the price of TLS first.
fn measures(sweep: &Sweep<'_>) -> Vec<Measure> {
    let named: Vec<Quantity> = sweep.run.quantities.iter().filter_map(|key| quantity::named(key)).collect();
    let named = if named.is_empty() { vec![CPU_PER_GB, APPLICATION] } else { named };
    let mut measures: Vec<Measure> =
        named.into_iter().map(|quantity| Measure { quantity, beside_plaintext: false }).collect();
    if sweep.baseline().is_some() {
        let quantity = if figures::measures_handshakes(sweep) { CPU_PER_RESPONSE } else { CPU_PER_GB };
        measures.insert(0, Measure { quantity, beside_plaintext: true });
    }
    measures
}

/// The place of the same server and value in the other run.
fn counterpart(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    cell: panel::Cell<'_>,
    other: &Sweep<'_>,
    other_panel: &Panel<'_>,
) -> Option<(usize, usize)> {
    let server = other.servers.iter().position(|name| *name == sweep.servers[cell.server])?;
    let place = other_panel.places.iter().position(|place| *place == panel.places[cell.place])?;
    other_panel.point(server, place)?;
    Some((server, place))
}

fn rows(
    before: &Sweep<'_>,
    before_panel: &Panel<'_>,
    after: &Sweep<'_>,
    after_panel: &Panel<'_>,
    measure: &Measure,
) -> Vec<Row> {
    let row = |cell: panel::Cell<'_>| {
        if measure.beside_plaintext && Some(cell.server) == after.baseline() {
            return None;
        }
        let (server, place) = counterpart(after, after_panel, cell, before, before_panel)?;
        let earlier = values(before, before_panel, (server, place), measure)?;
        let later = values(after, after_panel, (cell.server, cell.place), measure)?;
        Some(Row {
            name: after_panel.name_of(after, cell),
            before: Summary::of(&earlier)?,
            after: Summary::of(&later)?,
            ratio: Ratio::unpaired(&later, &earlier)?,
        })
    };
    after_panel.cells().filter_map(row).collect()
}

/// The values of a point's rounds, or their ratios to plaintext.
fn values(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    (server, place): (usize, usize),
    measure: &Measure,
) -> Option<Vec<f64>> {
    let ours = panel::values(panel.point(server, place)?, &measure.quantity);
    if !measure.beside_plaintext {
        return Some(ours.into_iter().flatten().collect());
    }
    let theirs = panel::values(panel.point(sweep.baseline()?, place)?, &measure.quantity);
    let pairs = ours.into_iter().zip(theirs).filter_map(|(ours, theirs)| Some((ours?, theirs?)));
    Some(pairs.filter(|(_, theirs)| *theirs > 0.0).map(|(ours, theirs)| ours / theirs).collect())
}

fn points_of_one(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    other: &Sweep<'_>,
    other_panel: &Panel<'_>,
    when: &str,
) -> Vec<String> {
    let measured = |point: &crate::result::Point| panel::measured(point).next().is_some();
    let alone = |cell: &panel::Cell<'_>| {
        let there = counterpart(sweep, panel, *cell, other, other_panel)
            .and_then(|(server, place)| other_panel.point(server, place));
        measured(cell.point) && !there.is_some_and(measured)
    };
    panel.cells().filter(alone).map(|cell| format!("{}: only {when}", panel.name_of(sweep, cell))).collect()
}

fn is_better(ratio: &Ratio, quantity: &Quantity) -> Option<bool> {
    match ratio.verdict() {
        Verdict::More => Some(quantity.more_is_better),
        Verdict::Less => Some(!quantity.more_is_better),
        Verdict::NoDifference | Verdict::TooFewRounds => None,
    }
}

fn verdict(ratio: &Ratio, quantity: &Quantity) -> &'static str {
    match (is_better(ratio, quantity), ratio.verdict()) {
        (Some(true), _) => "better",
        (Some(false), _) => "worse",
        (None, Verdict::TooFewRounds) => "too few rounds",
        (None, _) => "no difference",
    }
}

fn findings(compared: &[Compared<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    let mut same = 0;
    for (pair, part) in compared.iter().flat_map(|pair| pair.parts.iter().map(move |part| (pair, part))) {
        let mut differing: Vec<&Row> = Vec::new();
        for row in &part.rows {
            match row.ratio.verdict() {
                Verdict::More | Verdict::Less => differing.push(row),
                Verdict::NoDifference => same += 1,
                Verdict::TooFewRounds => {}
            }
        }
        differing.sort_by(|one, other| other.ratio.ratio.ln().abs().total_cmp(&one.ratio.ratio.ln().abs()));
        let Some(largest) = differing.first() else { continue };
        let worse = differing
            .iter()
            .filter(|row| is_better(&row.ratio, &part.measure.quantity) == Some(false))
            .count();
        found.push(format!(
            "{}, {}: {} of {} differ, {worse} of them for the worse. The largest: {} {}, {} to {}, {}.",
            pair.after.name,
            part.measure.title(),
            differing.len(),
            number::plural(part.rows.len(), "point"),
            largest.name,
            verdict(&largest.ratio, &part.measure.quantity),
            number::short(largest.before.median),
            number::short(largest.after.median),
            number::change(largest.ratio.ratio),
        ));
    }
    match (found.is_empty(), same) {
        (true, 0) => found.push("Nothing could be decided.".to_owned()),
        (true, _) => found.push("No difference was found.".to_owned()),
        (false, 0) => {}
        (false, same) => {
            found.push(format!("No difference in {}.", number::plural(same, "other comparison")))
        }
    }
    found
}

fn cautions(before: &[ExperimentRun], after: &[ExperimentRun], compared: &[Compared<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    let only = |ours: &[ExperimentRun], when: &str| {
        let alone = ours.iter().filter(|run| !compared.iter().any(|pair| pair.after.name == run.name));
        alone.map(|run| format!("{}: only {when}.", run.name)).collect::<Vec<_>>()
    };
    said.extend(only(before, "before"));
    said.extend(only(after, "after"));
    let rows = || compared.iter().flat_map(|pair| pair.parts.iter().flat_map(|part| &part.rows));
    let undecided = rows().filter(|row| row.ratio.verdict() == Verdict::TooFewRounds).count();
    if undecided > 0 {
        let points = number::plural(undecided, "comparison");
        said.push(format!("{points} cannot be decided: too few rounds. Repeat the runs with more."));
    }
    for pair in compared {
        said.extend(pair.unmatched.iter().map(|unmatched| format!("{}: {unmatched}.", pair.after.name)));
        if pair.before.definition != pair.after.definition {
            said.push(format!("{}: the experiment's definition has changed; see below.", pair.after.name));
        }
    }
    said
}

fn experiment(pair: &Compared<'_>) -> Markup {
    html! {
        section.experiment {
            h2 { (pair.after.title) }
            p.asks { code { (pair.after.name) } }
            @for part in &pair.parts {
                h4 { (part.measure.title()) }
                (scrolled(&part.measure.title(), &table(part)))
            }
            p.note {
                "Medians; the change is the median of all ratios of a round after to a round before, with its 95 % \
                 interval (Hodges–Lehmann, Mann–Whitney). It is called a difference where the interval leaves out zero and \
                 the change is larger than the rounds of either run differ among themselves. Among twenty points that are \
                 the same, chance may still show one."
            }
            h3 { "What else differs" }
            (differences(pair.before, pair.after))
        }
    }
}

fn table(part: &Part) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "Point" }
                    th.number scope="col" { "Before" } th.number scope="col" { "After" }
                    th.number scope="col" { "Change" } th scope="col" { (scale_heading(part)) } th scope="col" { "" }
                }
            }
            tbody {
                @for row in &part.rows {
                    @let better = is_better(&row.ratio, &part.measure.quantity);
                    tr {
                        th scope="row" { (row.name) }
                        (value(&row.before)) (value(&row.after))
                        td.number {
                            (number::change(row.ratio.ratio))
                            small { (number::change(row.ratio.low)) " to " (number::change(row.ratio.high)) }
                        }
                        td { (interval(&row.ratio, reach(part), better)) }
                        td class=(match better { Some(true) => "better", Some(false) => "worse", None => "none" }) {
                            (verdict(&row.ratio, &part.measure.quantity))
                        }
                    }
                }
            }
        }
    }
}

fn value(summary: &Summary) -> Markup {
    html! {
        td.number {
            (number::short(summary.median))
            @if summary.count > 1 {
                small { (number::short(summary.lower_quartile)) "–" (number::short(summary.upper_quartile)) }
            }
        }
    }
}

/// The interval's picture is so wide, in pixels, around no change in its middle.
const INTERVAL_PX: f64 = 160.0;

/// How far the pictures of a table reach to either side, in natural logarithm: the furthest interval, and a tenth at
/// least, so that noise does not look large.
fn reach(part: &Part) -> f64 {
    let ends = part.rows.iter().flat_map(|row| [row.ratio.low, row.ratio.high]);
    ends.map(|end| end.ln().abs()).filter(|end| end.is_finite()).fold(1.1f64.ln(), f64::max).min(4f64.ln())
}

fn scale_heading(part: &Part) -> String {
    let reach = reach(part).exp();
    format!("{} … {}", number::change(1.0 / reach), number::change(reach))
}

fn interval(ratio: &Ratio, reach: f64, better: Option<bool>) -> Markup {
    let x = |ratio: f64| {
        let share = (ratio.max(f64::MIN_POSITIVE).ln() / reach).clamp(-1.0, 1.0);
        format!("{:.1}", INTERVAL_PX / 2.0 * (1.0 + 0.94 * share))
    };
    let class = match better {
        Some(true) => "better",
        Some(false) => "worse",
        None => "none",
    };
    html! {
        svg class="plot" role="img" aria-label="interval of the change" width=(INTERVAL_PX) height="18"
            viewBox=(format!("0 0 {INTERVAL_PX} 18")) {
            line class="axis" x1=(INTERVAL_PX / 2.0) x2=(INTERVAL_PX / 2.0) y1="1" y2="17" stroke-dasharray="2 2" {}
            g class=(class) {
                line x1=(x(ratio.low)) x2=(x(ratio.high)) y1="9" y2="9" stroke="currentColor" stroke-width="2" {}
                circle cx=(x(ratio.ratio)) cy="9" r="4" fill="currentColor" {}
            }
        }
    }
}
