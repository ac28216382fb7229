//! Tables of a panel: what was measured, what it is beside plaintext, and what the machine could not tell.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::remarks;
use crate::floor::FLOOR;
use crate::quantity::{
    self, APPLICATION, CPU_PER_GB, CPU_PER_RESPONSE, CPU_SHARE, DEMAND, FURTHER, HANDSHAKES, MACHINE_DEMAND,
    Quantity, RESPONSES, WIRE,
};
use crate::{
    report::{
        conditions, figures, number, palette,
        panel::{self, Cell, Panel, Sweep},
    },
    result::{Reading, Variable},
    statistics::{Ratio, Summary, Verdict},
};

/// A table that scrolls in its own frame where it is wider than the page.
pub(in crate::report) fn scrolled(label: &str, table: &Markup) -> Markup {
    html! { div.scroll role="region" aria-label=(label) tabindex="0" { (table) } }
}

/// A table of a panel, with what it was measured under.
pub(super) fn of_panel(sweep: &Sweep<'_>, panel: &Panel<'_>, label: &str, table: &Markup) -> Markup {
    scrolled(label, &html! { p.note { (conditions::of_panel(sweep.run, panel)) } (table) })
}

/// Throughput and cost of every point.
pub(super) fn results(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Markup {
    let mut wanted = vec![APPLICATION, WIRE, CPU_PER_GB, DEMAND, MACHINE_DEMAND, CPU_SHARE];
    if figures::measures_handshakes(sweep) {
        wanted = vec![HANDSHAKES, RESPONSES, CPU_PER_RESPONSE, CPU_SHARE];
    } else if sweep.run.axis == "file_bytes" {
        wanted.push(CPU_PER_RESPONSE);
    }
    let (shown, missing) = available(panel, &wanted);
    if panel.cells().next().is_none() {
        return html! {};
    }
    html! {
        h4 { "Throughput and service demand" }
        (of_panel(sweep, panel, "Throughput and service demand", &quantities(sweep, panel, &shown, true)))
        (not_available(&missing))
    }
}

/// Everything else that was read, closed at first.
pub(super) fn further(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Markup {
    if panel.cells().all(|cell| panel::measured(cell.point).next().is_none()) {
        return html! {};
    }
    let (shown, missing) = available(panel, &FURTHER);
    html! {
        details {
            summary { "Further readings, and which engine ran" }
            @if !shown.is_empty() {
                (of_panel(sweep, panel, "Further readings", &quantities(sweep, panel, &shown, false)))
            }
            (not_available(&missing))
            (engines(sweep, panel))
        }
    }
}

/// Quantities that some point has, and those that none has with the reasons.
fn available(panel: &Panel<'_>, wanted: &[Quantity]) -> (Vec<Quantity>, Vec<(Quantity, String)>) {
    let mut shown = Vec::new();
    let mut missing = Vec::new();
    for quantity in wanted {
        if panel.cells().any(|cell| panel::summary(cell.point, quantity).is_some()) {
            shown.push(*quantity);
        } else if let Some(reason) = panel.cells().find_map(|cell| panel::unavailable(cell.point, quantity)) {
            missing.push((*quantity, reason));
        }
    }
    (shown, missing)
}

fn not_available(missing: &[(Quantity, String)]) -> Markup {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (quantity, reason) in missing {
        by_reason.entry(reason).or_default().push(quantity.title.to_lowercase().replace("cpu", "CPU"));
    }
    html! {
        @if !by_reason.is_empty() {
            ul.missing {
                @for (reason, titles) in by_reason { li { b { "Not available: " } (number::list(&titles)) ": " (reason) } }
            }
        }
    }
}

fn quantities(sweep: &Sweep<'_>, panel: &Panel<'_>, shown: &[Quantity], with_remarks: bool) -> Markup {
    let by_place = panel.places.len() > 1;
    html! {
        table {
            thead {
                tr {
                    @if by_place { th scope="col" { (panel::axis_name(&sweep.run.axis)) } }
                    th scope="col" { "Server" }
                    @for quantity in shown { th.number scope="col" { (quantity.short) br; small { (quantity.unit) } } }
                    @if with_remarks { th scope="col" { "Remarks" } }
                }
            }
            @for (number, place) in panel.places.iter().enumerate() {
                tbody {
                    @let cells: Vec<Cell<'_>> = panel.cells().filter(|cell| cell.place == number).collect();
                    @let floor = sweep.floor(panel, number).filter(|_| with_remarks);
                    @for (row, cell) in cells.iter().enumerate() {
                        tr {
                            @if by_place && row == 0 {
                                th.place scope="rowgroup" rowspan=(cells.len() + usize::from(floor.is_some())) { (sweep.place_name(place)) }
                            }
                            th scope="row" { (server(sweep, cell.server)) }
                            @for quantity in shown { (value(cell, quantity)) }
                            @if with_remarks { td.remarks { (remarks(cell.point).join(", ")) } }
                        }
                    }
                    @if let Some(floor) = floor {
                        tr.computed {
                            th scope="row" { (FLOOR) }
                            @for quantity in shown { (figure(floor.summary(quantity), None)) }
                            td.remarks { "computed: " (floor.parts().unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    }
}

/// A server's name with its colour.
fn server(sweep: &Sweep<'_>, position: usize) -> Markup {
    html! { span.swatch.plot { span class=(palette::class(position)) { "■" } } " " (sweep.servers[position]) }
}

/// Median and spread.
fn value(cell: &Cell<'_>, quantity: &Quantity) -> Markup {
    let summary = panel::summary(cell.point, quantity);
    let reason = summary.is_none().then(|| panel::unavailable(cell.point, quantity)).flatten();
    figure(summary, reason)
}

fn figure(summary: Option<Summary>, reason: Option<String>) -> Markup {
    let Some(summary) = summary else {
        return html! { td.number { span.none title=[reason] { "–" } } };
    };
    html! {
        td.number {
            (number::short(summary.median))
            @if summary.count > 1 {
                small { (number::short(summary.lower_quartile)) "–" (number::short(summary.upper_quartile)) }
            }
        }
    }
}

/// Every server beside the one that speaks plaintext, paired by round.
pub(super) fn beside_plaintext(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Markup {
    let Some(baseline) = sweep.baseline() else { return html! {} };
    let quantity = quantity::price(&sweep.run.quantities);
    let ratio = |server: usize, place: usize| {
        (server != baseline).then(|| panel.ratio(server, baseline, place, &quantity)).flatten()
    };
    let note = "Medians of ratios paired by round, and the interval that holds the true ratio with about 95 %. A difference \
                that is smaller than the spread is none. Where the interval is wider than 5 %, it stands alone: more \
                rounds would narrow it, and one figure of it would not be found again.";
    ratios(sweep, panel, "Beside plaintext", sweep.servers[baseline], note, ratio)
}

/// Every server that encrypts beside the floor, paired by round.
pub(super) fn beside_floor(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Markup {
    let quantity = quantity::price(&sweep.run.quantities);
    let note = "The floor is computed in each round: the cipher alone, one copy of a byte, and this program's own plaintext. \
                A server that leaves the cipher to an adapter, or the copy to nobody, may be below it.";
    ratios(sweep, panel, "Beside the floor", "the floor", note, |server, place| {
        sweep.beside_floor(panel, server, place, &quantity)
    })
}

/// Servers as multiples of `reference`, by place.
fn ratios(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    title: &str,
    reference: &str,
    note: &str,
    ratio_at: impl Fn(usize, usize) -> Option<Ratio>,
) -> Markup {
    let has_any = |server: &usize| (0..panel.places.len()).any(|place| ratio_at(*server, place).is_some());
    let others: Vec<usize> = (0..sweep.servers.len()).filter(has_any).collect();
    if others.is_empty() {
        return html! {};
    }
    let quantity = quantity::price(&sweep.run.quantities);
    let what = quantity.title.to_lowercase().replace("cpu", "CPU");
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { (panel::axis_name(&sweep.run.axis)) }
                    @for other in &others { th.number scope="col" { (server(sweep, *other)) } }
                }
            }
            tbody {
                @for (number, place) in panel.places.iter().enumerate() {
                    tr {
                        th.place scope="row" { (sweep.place_name(place)) }
                        @for other in &others { (ratio(ratio_at(*other, number))) }
                    }
                }
            }
        }
    };
    html! {
        h4 { (title) ": " (what) ", as a multiple of " (reference) }
        (of_panel(sweep, panel, title, &table))
        p.note { (note) }
    }
}

fn ratio(ratio: Option<Ratio>) -> Markup {
    let Some(ratio) = ratio else { return html! { td.number { span.none { "–" } } } };
    let interval = html! { small { (number::times(ratio.low)) "–" (number::times(ratio.high)) } };
    match ratio.verdict() {
        Verdict::More | Verdict::Less if ratio.is_settled() => {
            html! { td.number { (number::times(ratio.ratio)) (interval) } }
        }
        Verdict::More | Verdict::Less => html! {
            td.number { (number::quoted(&ratio)) small { "after " (number::plural(ratio.rounds, "round")) } }
        },
        Verdict::NoDifference => html! { td.number.same { "no difference" (interval) } },
        Verdict::TooFewRounds => html! {
            td.number.same { "about " (number::times(ratio.ratio)) small { (number::plural(ratio.rounds, "round")) } }
        },
    }
}

/// What was agreed with each server, and what the kernel counted.
fn engines(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Markup {
    let table = html! {
        table {
            thead { tr { th scope="col" { "Server" } th scope="col" { "Agreed with the client" } th scope="col" { "/proc/net/tls_stat" } } }
            tbody {
                @for (position, _) in sweep.servers.iter().enumerate() {
                    @let points: Vec<_> = panel.cells().filter(|cell| cell.server == position).map(|cell| cell.point).collect();
                    @if points.iter().any(|point| panel::measured(point).next().is_some()) {
                        tr {
                            th scope="row" { (server(sweep, position)) }
                            td { (agreed(&points)) }
                            td { (counted(&points)) }
                        }
                    }
                }
            }
        }
    };
    of_panel(sweep, panel, "Which engine ran", &table)
}

fn agreed(points: &[&crate::result::Point]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for load in points.iter().flat_map(|point| panel::measured(point)).flat_map(|round| &round.load) {
        for kind in load.negotiated.keys() {
            if !kinds.contains(&kind.as_str()) {
                kinds.push(kind);
            }
        }
    }
    if kinds.is_empty() { "no TLS".to_owned() } else { kinds.join("; ") }
}

fn counted(points: &[&crate::result::Point]) -> String {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for round in points.iter().flat_map(|point| panel::measured(point)) {
        match &round.tls_stat {
            Reading::NotAvailable(reason) => return format!("not available: {reason}"),
            Reading::Value(counters) => {
                for (name, count) in counters.iter().filter(|(_, count)| **count > 0) {
                    *sums.entry(name).or_default() += count;
                }
            }
        }
    }
    let words: Vec<String> =
        sums.iter().map(|(name, count)| format!("{name} {}", linerate_figures::count(*count))).collect();
    if words.is_empty() { "unchanged: no kernel TLS".to_owned() } else { words.join(", ") }
}

/// What the paper says, with its source.
pub(super) fn published(sweep: &Sweep<'_>) -> Markup {
    if sweep.run.published.is_empty() {
        return html! {};
    }
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "Series" } th scope="col" { (panel::axis_name(&sweep.run.axis)) }
                    th.number scope="col" { "Value" } th scope="col" { "Quantity" } th scope="col" { "Source" }
                }
            }
            @for series in &sweep.run.published {
                @let known = quantity::named(&series.quantity);
                tbody {
                    @for (row, value) in series.values.iter().enumerate() {
                        tr {
                            @if row == 0 { th.series scope="rowgroup" rowspan=(series.values.len()) { (series.name) } }
                            td { (place(sweep, &value.at)) }
                            td.number {
                                (number::short(value.low))
                                @if value.low < value.high { "–" (number::short(value.high)) }
                            }
                            @if row == 0 {
                                td rowspan=(series.values.len()) {
                                    @if let Some(quantity) = &known { (quantity.title) ", " (unit(quantity)) }
                                    @else { (series.quantity) }
                                }
                                td.source rowspan=(series.values.len()) { (series.source) }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        h3 { "Published, for comparison" }
        (scrolled("Published figures", &table))
        p.note { "Measured by others on their hardware: a mark to see one's own figures against, not a target." }
    }
}

/// The unit in which a field is published.
fn unit(quantity: &Quantity) -> &'static str {
    if quantity.scale == 1.0 { quantity.unit } else { "bytes" }
}

fn place(sweep: &Sweep<'_>, at: &Variable) -> String {
    sweep.place_name(at)
}

/// Every failed round with its reason and the end of the server's log.
pub(super) fn failures(sweep: &Sweep<'_>) -> Markup {
    let failed: Vec<_> = sweep
        .panels
        .iter()
        .flat_map(|panel| panel.cells().map(move |cell| (panel, cell)))
        .flat_map(|(panel, cell)| panel::failures(cell.point).map(move |failure| (panel, cell, failure)))
        .collect();
    if failed.is_empty() {
        return html! {};
    }
    html! {
        h3 { "What failed" }
        @for (panel, cell, (reason, log)) in failed {
            details.failed {
                summary {
                    (panel.name_of(sweep, cell)) ": " (reason)
                }
                @if log.is_empty() { p.note { "The server wrote nothing." } } @else { pre { (log.join("\n")) } }
            }
        }
    }
}
