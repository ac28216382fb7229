//! The page that sets two runs side by side: what [`compare`](crate::compare()) found, in words, tables and pictures.

use maud::{Markup, html};

use super::{
    number,
    page::{self, differences, scrolled},
};
use crate::{
    compare::{Change, Comparison, Outcome},
    result::ExperimentRun,
    statistics::{Ratio, Summary},
};

/// The page.
pub(super) fn page(before: &ExperimentRun, after: &ExperimentRun, comparison: &Comparison) -> String {
    let body = html! {
        header {
            p.over { "linerate bench compare" }
            h1 { "Two runs side by side" }
            p.meta {
                code { (after.name) } ": "
                (number::moment(before.started_unix_s)) " and " (number::moment(after.started_unix_s))
            }
        }
        div.short {
            h3 { "In short" }
            ul { @for finding in findings(comparison) { li { (finding) } } }
            @let cautions = cautions(comparison);
            @if !cautions.is_empty() {
                h4 { "Read with care" }
                ul.cautions { @for caution in cautions { li { (caution) } } }
            }
        }
        section.experiment {
            h2 { (after.title) }
            p.asks { code { (after.name) } }
            @for part in parts(comparison) {
                @let title = part[0].measure.title();
                h4 { (title) }
                (scrolled(&title, &table(part)))
            }
            p.note {
                "Medians; the change is the median of all ratios of a round after to a round before, with its 95 % \
                 interval (Hodges–Lehmann, Mann–Whitney). It is called a difference where the interval leaves out zero and \
                 the change is larger than the rounds of either run differ among themselves. Among twenty points that are \
                 the same, chance may still show one."
            }
            h3 { "What else differs" }
            (differences(before, after))
        }
    };
    page::document("linerate bench: comparison", &body)
}

/// The changes of one measure after the other; none of the parts is empty.
fn parts(comparison: &Comparison) -> impl Iterator<Item = &[Change]> {
    comparison.changes.chunk_by(|one, other| one.measure == other.measure)
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::TooFewRounds => "too few rounds",
        Outcome::NoDifference => "no difference",
    }
}

/// The class of its colour.
fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better | Outcome::Worse => word(outcome),
        Outcome::TooFewRounds | Outcome::NoDifference => "none",
    }
}

fn findings(comparison: &Comparison) -> Vec<String> {
    let mut found = Vec::new();
    for part in parts(comparison) {
        let differing = || part.iter().filter(|change| matches!(class(change.outcome), "better" | "worse"));
        let distance = |change: &&Change| change.ratio.ratio.ln().abs();
        let largest = differing().max_by(|one, other| distance(one).total_cmp(&distance(other)));
        let Some(largest) = largest else { continue };
        let worse = differing().filter(|change| change.outcome == Outcome::Worse).count();
        found.push(format!(
            "{}: {} of {} differ, {worse} of them for the worse. The largest: {} {}, {} to {}, {}.",
            part[0].measure.title(),
            differing().count(),
            number::plural(part.len(), "point"),
            largest.name(),
            word(largest.outcome),
            number::short(largest.before.median),
            number::short(largest.after.median),
            number::change(largest.ratio.ratio),
        ));
    }
    let same = count(comparison, Outcome::NoDifference);
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

fn cautions(comparison: &Comparison) -> Vec<String> {
    let mut said: Vec<String> = comparison.remarks.iter().map(|remark| format!("{remark}.")).collect();
    let undecided = count(comparison, Outcome::TooFewRounds);
    if undecided > 0 {
        let points = number::plural(undecided, "comparison");
        said.push(format!("{points} cannot be decided: too few rounds. Repeat the runs with more."));
    }
    said
}

fn count(comparison: &Comparison, outcome: Outcome) -> usize {
    comparison.changes.iter().filter(|change| change.outcome == outcome).count()
}

fn table(part: &[Change]) -> Markup {
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
                @for change in part {
                    tr {
                        th scope="row" { (change.name()) }
                        (value(&change.before)) (value(&change.after))
                        td.number {
                            (number::change(change.ratio.ratio))
                            small { (number::change(change.ratio.low)) " to " (number::change(change.ratio.high)) }
                        }
                        td { (interval(&change.ratio, reach(part), change.outcome)) }
                        td class=(class(change.outcome)) { (word(change.outcome)) }
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
fn reach(part: &[Change]) -> f64 {
    let ends = part.iter().flat_map(|change| [change.ratio.low, change.ratio.high]);
    ends.map(|end| end.ln().abs()).filter(|end| end.is_finite()).fold(1.1f64.ln(), f64::max).min(4f64.ln())
}

fn scale_heading(part: &[Change]) -> String {
    let reach = reach(part).exp();
    format!("{} … {}", number::change(1.0 / reach), number::change(reach))
}

fn interval(ratio: &Ratio, reach: f64, outcome: Outcome) -> Markup {
    let x = |ratio: f64| {
        let share = (ratio.max(f64::MIN_POSITIVE).ln() / reach).clamp(-1.0, 1.0);
        format!("{:.1}", INTERVAL_PX / 2.0 * (1.0 + 0.94 * share))
    };
    html! {
        svg class="plot" role="img" aria-label="interval of the change" width=(INTERVAL_PX) height="18"
            viewBox=(format!("0 0 {INTERVAL_PX} 18")) {
            line class="axis" x1=(INTERVAL_PX / 2.0) x2=(INTERVAL_PX / 2.0) y1="1" y2="17" stroke-dasharray="2 2" {}
            g class=(class(outcome)) {
                line x1=(x(ratio.low)) x2=(x(ratio.high)) y1="9" y2="9" stroke="currentColor" stroke-width="2" {}
                circle cx=(x(ratio.ratio)) cy="9" r="4" fill="currentColor" {}
            }
        }
    }
}
