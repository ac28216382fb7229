//! A run for the terminal: findings, then a table of every point.

use super::{
    conditions, figures, number,
    panel::{self, Cell, Panel, Sweep},
    summary, targets,
};
use crate::floor::FLOOR;
use crate::quantity::{
    self, APPLICATION, CPU_PER_GB, CPU_PER_RESPONSE, CPU_SHARE, DEMAND, HANDSHAKES, Quantity, RESPONSES,
};
use crate::statistics::{Ratio, Summary, Verdict};
use crate::targets::judged;

/// Sentences are broken at this many letters.
const WIDTH: usize = 100;

pub(super) fn text(sweep: &Sweep<'_>) -> String {
    let mut text = format!("{}: {}\n", sweep.run.name, sweep.run.title);
    if !sweep.held.is_empty() {
        text.push_str(&format!("{}\n", sweep.held.join(" · ")));
    }
    for panel in &sweep.panels {
        text.push('\n');
        if !panel.label.is_empty() {
            text.push_str(&format!("{}\n", panel.label));
        }
        text.push_str(&format!("{}\n", conditions::of_panel(sweep.run, panel)));
        text.push_str(&aligned(&rows(sweep, panel)));
    }
    let targets: Vec<Vec<String>> = targets::rows(sweep, &judged(sweep.run))
        .into_iter()
        .map(|row| vec![row.server, row.of, row.found, format!("≤ {}", row.most), row.verdict])
        .collect();
    if !targets.is_empty() {
        text.push_str(&format!("\ntargets\n{}", aligned(&targets)));
    }
    text.push('\n');
    text.push_str(&bullets(&summary::sentences(sweep), '•'));
    text.push_str(&bullets(&summary::cautions(sweep), '!'));
    text
}

/// Sentences, each with a mark and broken where the terminal ends.
pub(super) fn bullets(sentences: &[String], mark: char) -> String {
    let mut text = String::new();
    for sentence in sentences {
        for (number, line) in wrapped(sentence, WIDTH).iter().enumerate() {
            text.push_str(&if number == 0 { format!("{mark} {line}\n") } else { format!("  {line}\n") });
        }
    }
    text
}

fn rows(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<Vec<String>> {
    let shown: &[Quantity] = if figures::measures_handshakes(sweep) {
        &[HANDSHAKES, RESPONSES, CPU_PER_RESPONSE, CPU_SHARE]
    } else {
        &[APPLICATION, CPU_PER_GB, DEMAND, CPU_SHARE]
    };
    let mut heading = vec![sweep.run.axis.trim_end_matches("_bytes").replace('_', " "), "server".to_owned()];
    heading.extend(shown.iter().map(|quantity| quantity.unit.to_owned()));
    heading.extend(["± %".to_owned(), "× plaintext".to_owned()]);
    heading.extend(sweep.has_floor().then(|| "× floor".to_owned()));
    heading.push(String::new());
    let mut rows = vec![heading];
    let priced = quantity::price(&sweep.run.quantities);
    let cells: Vec<Cell<'_>> = panel.cells().collect();
    for of_place in cells.chunk_by(|one, other| one.place == other.place) {
        rows.extend(of_place.iter().map(|cell| of_server(sweep, panel, *cell, shown, &priced)));
        rows.extend(of_floor(sweep, panel, of_place[0].place, shown, &priced));
    }
    rows
}

fn of_server(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    cell: Cell<'_>,
    shown: &[Quantity],
    priced: &Quantity,
) -> Vec<String> {
    let summary = |quantity: &Quantity| panel::summary(cell.point, quantity);
    let ratio = sweep
        .baseline()
        .filter(|baseline| *baseline != cell.server)
        .and_then(|baseline| panel.ratio(cell.server, baseline, cell.place, priced));
    let mut row = figures_of(sweep, panel, cell.place, sweep.servers[cell.server], shown, priced, summary);
    row.push(quoted(ratio));
    if sweep.has_floor() {
        row.push(quoted(sweep.beside_floor(panel, cell.server, cell.place, priced)));
    }
    row.push(marks(cell));
    row
}

/// The row of what no server has measured.
fn of_floor(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    place: usize,
    shown: &[Quantity],
    priced: &Quantity,
) -> Option<Vec<String>> {
    let floor = sweep.floor(panel, place)?;
    let baseline = sweep.baseline().and_then(|server| panel.point(server, place));
    let ratio = baseline.and_then(|baseline| {
        Ratio::paired(&floor.values_by_round(priced), &quantity::values_by_round(baseline, priced))
    });
    let mut row = figures_of(sweep, panel, place, FLOOR, shown, priced, |quantity| floor.summary(quantity));
    row.extend([quoted(ratio), "–".to_owned()]);
    row.push(format!("computed: {}", floor.parts()?));
    Some(row)
}

/// Place, name, medians and spread.
fn figures_of(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    place: usize,
    name: &str,
    shown: &[Quantity],
    priced: &Quantity,
    summary: impl Fn(&Quantity) -> Option<Summary>,
) -> Vec<String> {
    let median =
        |quantity| summary(quantity).map_or_else(|| "–".to_owned(), |found| number::short(found.median));
    let mut row = vec![sweep.place_name(panel.places[place]), name.to_owned()];
    row.extend(shown.iter().map(median));
    let spread = summary(priced).filter(|found| found.count > 1);
    row.push(spread.map_or_else(|| "–".to_owned(), |found| format!("{:.0}", 50.0 * found.spread())));
    row
}

fn quoted(ratio: Option<Ratio>) -> String {
    match ratio {
        None => "–".to_owned(),
        Some(ratio) if ratio.verdict() == Verdict::NoDifference => "same".to_owned(),
        Some(ratio) => number::quoted(&ratio).trim_end_matches(" ×").to_owned(),
    }
}

fn marks(cell: Cell<'_>) -> String {
    let mut marks = Vec::new();
    if panel::measured(cell.point).next().is_none() {
        marks.push(match panel::failures(cell.point).next() {
            Some((reason, _)) => format!("failed: {reason}"),
            None => "not run".to_owned(),
        });
    }
    if panel::client_limited(cell.point).is_some() {
        marks.push("client-limited".to_owned());
    }
    if panel::discarded(cell.point) {
        marks.push("discarded".to_owned());
    }
    marks.join(", ")
}

/// Columns under each other: words to the left, numbers to the right.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| letters(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let gap = " ".repeat(widths[column].saturating_sub(letters(cell)));
            let is_word = column < 2 || column + 1 == columns;
            line.push_str(&if is_word { format!("{cell}{gap}  ") } else { format!("{gap}{cell}  ") });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `text` in lines of at most so many letters, but for words that are longer.
fn wrapped(text: &str, letters_wanted: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if letters(line) + 1 + letters(word) <= letters_wanted => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn letters(text: &str) -> usize {
    text.chars().count()
}
