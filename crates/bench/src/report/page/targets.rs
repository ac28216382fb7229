//! What servers were to come to, and what they came to.

use maud::{Markup, html};

use super::tables::scrolled;
use crate::{
    report::{
        conditions,
        panel::Sweep,
        targets::{self, Row},
    },
    targets::judged,
};

/// The table of a run; nothing where nothing was asked for.
pub(super) fn section(sweep: &Sweep<'_>) -> Markup {
    let rows = targets::rows(sweep, &judged(sweep.run));
    if rows.is_empty() {
        return html! {};
    }
    let table = html! {
        p.note { (conditions::of_run(sweep.run)) }
        table {
            thead {
                tr {
                    th scope="col" { "Server" } th scope="col" { "Of what" }
                    th.number scope="col" { "Found" } th.number scope="col" { "At most" } th scope="col" { "Remarks" }
                }
            }
            tbody {
                @for Row { server, of, found, most, verdict, is_missed } in &rows {
                    tr {
                        th scope="row" { (server) }
                        td { (of) }
                        td.number { (found) }
                        td.number { (most) }
                        td.remarks { @if *is_missed { span.worse { (verdict) } } @else { (verdict) } }
                    }
                }
            }
        }
    };
    html! { h3 { "Targets" } (scrolled("Targets", &table)) }
}
