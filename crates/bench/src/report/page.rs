//! The page: one file that needs nothing from outside, on a desk, on a telephone and on paper.

mod commands;
mod environment;
mod latency;
mod tables;
mod targets;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    figures::{self, Figure},
    number, palette,
    panel::{self, Panel, Sweep},
    plot::Width,
    summary,
};
use crate::result::ExperimentRun;

pub(super) use environment::differences;
pub(super) use tables::scrolled;

const STYLE: &str = include_str!("page/style.css");

/// The whole page about these runs, each with the figures of its panels.
pub(super) fn page(sweeps: &[Sweep<'_>], figures: &[Vec<Vec<Figure>>]) -> String {
    let names: Vec<String> = sweeps.iter().map(|sweep| sweep.run.name.clone()).collect();
    let title = if names.is_empty() { "no experiment".to_owned() } else { names.join(", ") };
    let runs: Vec<&ExperimentRun> = sweeps.iter().map(|sweep| sweep.run).collect();
    let one_environment = runs.windows(2).all(|pair| pair[0].environment == pair[1].environment);
    let body = html! {
        header {
            p.over { "linerate bench" }
            @match sweeps {
                [] => h1 { "No experiment" },
                [only] => h1 { (only.run.title) },
                several => h1 { (number::plural(several.len(), "experiment")) " on one machine" },
            }
            @if let Some(run) = runs.first() { p.meta { (environment::in_short(run)) } }
            @if sweeps.len() > 1 {
                nav aria-label="Experiments" {
                    @for (place, sweep) in sweeps.iter().enumerate() {
                        a href=(format!("#experiment-{place}")) { (sweep.run.name) }
                    }
                }
            }
        }
        @if sweeps.is_empty() { p { "There was nothing to report." } }
        @for (place, (sweep, figures)) in sweeps.iter().zip(figures).enumerate() {
            (experiment(place, sweep, figures, sweeps.len() > 1))
            @if !one_environment || place + 1 == sweeps.len() { (environment::section(sweep.run)) }
        }
    };
    document(&format!("linerate bench: {title}"), &body)
}

/// A page of ours with this body.
pub(super) fn document(title: &str, body: &Markup) -> String {
    // Nothing is loaded and no script runs, whatever a name or a log holds.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="generator" content=(concat!("linerate ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                style { (PreEscaped(palette::style())) (PreEscaped(STYLE)) }
            }
            body {
                main { (body) }
                footer {
                    p {
                        "Made by linerate " (env!("CARGO_PKG_VERSION"))
                        ". GB is 10" sup { "9" } " bytes; KB, in service demand alone, is 1024 bytes, as in netperf. "
                        "The figures as SVG and all values as JSON lie beside this page."
                    }
                }
            }
        }
    };
    page.into_string() + "\n"
}

fn experiment(place: usize, sweep: &Sweep<'_>, figures: &[Vec<Figure>], one_of_several: bool) -> Markup {
    let run = sweep.run;
    html! {
        section.experiment id=(format!("experiment-{place}")) {
            @if one_of_several { h2 { (run.title) } }
            p.asks {
                code { (run.name) }
                @if !run.source.is_empty() { " · " (run.source) }
                @for held in &sweep.held { " · " (held) }
            }
            (in_short(sweep))
            @for (panel, figures) in sweep.panels.iter().zip(figures) { (panel_part(sweep, panel, figures)) }
            (targets::section(sweep))
            (tables::published(sweep))
            (tables::failures(sweep))
            (commands::section(sweep))
        }
    }
}

fn in_short(sweep: &Sweep<'_>) -> Markup {
    let cautions = summary::cautions(sweep);
    html! {
        div.short {
            h3 { "In short" }
            @for of_panel in summary::findings(sweep).chunk_by(|one, other| one.panel == other.panel) {
                @if !of_panel[0].panel.is_empty() { h4.of { (of_panel[0].panel) } }
                ul { @for finding in of_panel { li { (finding.sentence) } } }
            }
            @if !cautions.is_empty() {
                h4 { "Read with care" }
                ul.cautions { @for caution in cautions { li { (caution) } } }
            }
        }
    }
}

fn panel_part(sweep: &Sweep<'_>, panel: &Panel<'_>, figures: &[Figure]) -> Markup {
    html! {
        section.panel {
            @if !panel.label.is_empty() { h3 { (panel.label) } }
            @if !figures.is_empty() {
                div.figures {
                    @for figure in figures {
                        figure {
                            figcaption { (figure.plot.title) small { (figure.conditions) } }
                            (figure.plot.figure(Width::Wide))
                            (figure.plot.figure(Width::Narrow))
                        }
                    }
                }
                p.note { (figures::note(panel)) }
            }
            (tables::results(sweep, panel))
            (tables::beside_plaintext(sweep, panel))
            (tables::beside_floor(sweep, panel))
            (latency::table(sweep, panel))
            (tables::further(sweep, panel))
        }
    }
}

/// What has to be known about a point beside its figures.
fn remarks(point: &crate::result::Point) -> Vec<String> {
    let mut remarks = Vec::new();
    let measured = panel::measured(point).count();
    match (measured, panel::failures(point).count()) {
        (0, 0) => remarks.push("not run".to_owned()),
        (0, _) => remarks.push("failed".to_owned()),
        (_, 0) => {}
        (_, failed) => remarks.push(format!("{} failed", number::plural(failed, "round"))),
    }
    if panel::client_limited(point).is_some() {
        remarks.push("client-limited".to_owned());
    }
    if panel::discarded(point) {
        remarks.push("discarded unread".to_owned());
    }
    if panel::verified(point) {
        remarks.push("every byte verified".to_owned());
    }
    remarks
}
