//! Percentiles of the times that the load client saw.

use maud::{Markup, html};

use super::tables::of_panel;
use crate::{
    report::{
        number,
        panel::{self, Cell, Panel, Sweep},
    },
    result::{Measurement, Point},
};
use linerate_load::report::{Distribution, LoadReport};

/// A column: its name, which distribution, which percentile.
struct Column {
    name: &'static str,
    of: fn(&LoadReport) -> &Distribution,
    value: fn(&Distribution) -> u64,
}

const COLUMNS: [Column; 10] = [
    Column { name: "p50", of: |load| &load.latency, value: |times| times.p50_us },
    Column { name: "p90", of: |load| &load.latency, value: |times| times.p90_us },
    Column { name: "p99", of: |load| &load.latency, value: |times| times.p99_us },
    Column { name: "p99.9", of: |load| &load.latency, value: |times| times.p999_us },
    Column { name: "max", of: |load| &load.latency, value: |times| times.max_us },
    Column { name: "p50", of: |load| &load.first_byte, value: |times| times.p50_us },
    Column { name: "p99", of: |load| &load.first_byte, value: |times| times.p99_us },
    Column { name: "p50", of: |load| &load.connect, value: |times| times.p50_us },
    Column { name: "p50", of: |load| &load.handshake, value: |times| times.p50_us },
    Column { name: "p99", of: |load| &load.handshake, value: |times| times.p99_us },
];

const GROUPS: [(&str, usize); 4] =
    [("Whole response", 5), ("First byte", 2), ("Connect", 1), ("Handshake", 2)];

/// The table of a panel, closed at first.
pub(super) fn table(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Markup {
    let timed: Vec<Cell<'_>> = panel
        .cells()
        .filter(|cell| COLUMNS.iter().any(|column| value(cell.point, column).is_some()))
        .collect();
    if timed.is_empty() {
        return html! {};
    }
    let machines =
        timed.iter().flat_map(|cell| panel::measured(cell.point)).map(|round| round.load.len()).max();
    let table = html! {
        table {
            thead {
                tr {
                    th rowspan="2" scope="col" { (panel::axis_name(&sweep.run.axis)) }
                    th rowspan="2" scope="col" { "Server" }
                    @for (name, columns) in GROUPS { th.group colspan=(columns) scope="colgroup" { (name) } }
                }
                tr { @for column in &COLUMNS { th.number scope="col" { (column.name) } } }
            }
            tbody {
                @for cell in &timed {
                    tr {
                        th.place scope="row" { (sweep.place_name(panel.places[cell.place])) }
                        th scope="row" { (sweep.servers[cell.server]) }
                        @for column in &COLUMNS {
                            td.number {
                                @match value(cell.point, column) {
                                    Some(value) => (number::microseconds(value)),
                                    None => span.none { "–" },
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        details {
            summary { "Latency" }
            (of_panel(sweep, panel, "Latency", &table))
            p.note {
                "Each percentile is the median of the rounds' own."
                @if machines > Some(1) { " Of several client machines the slowest is shown." }
            }
        }
    }
}

/// The median over rounds; within a round the slowest client machine, because percentiles do not add up.
fn value(point: &Point, column: &Column) -> Option<f64> {
    let of_round = |round: &Measurement| {
        let times = round.load.iter().map(column.of).filter(|times| times.count > 0);
        times.map(column.value).max().map(|value| value as f64)
    };
    let values: Vec<f64> = panel::measured(point).filter_map(of_round).collect();
    crate::statistics::Summary::of(&values).map(|summary| summary.median)
}
