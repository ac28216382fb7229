//! Bars that lie down: a group for each place, a row for each server, the value at the end. No key is needed, and long
//! names have room.

use maud::{Markup, html};

use super::{
    Drawing, Mark, Plot, PublishedValue, Width, at,
    marker::{self, Entry, Sign},
    words,
};
use crate::report::{number, palette, scale::Scale};

const ROW_PX: f64 = 24.0;
const BAR_PX: f64 = 14.0;
const GROUP_GAP_PX: f64 = 10.0;
/// Names take no more than this share of the width.
const NAMES_SHARE: f64 = 0.38;
/// What was published is drawn to scale up to so many times what was measured.
const REACH: f64 = 2.5;

struct Row<'plot> {
    name: String,
    what: What<'plot>,
}

enum What<'plot> {
    Measured(usize, &'plot Mark),
    Failed(&'plot str),
    Published(PublishedValue, &'plot str),
}

struct Group<'plot> {
    name: Option<&'plot str>,
    rows: Vec<Row<'plot>>,
}

struct Frame {
    left: f64,
    right: f64,
    scale: Scale,
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        self.left + self.scale.place(value).clamp(0.0, 1.0) * (self.right - self.left)
    }
}

pub(super) fn draw(plot: &Plot, categories: &[String], width: Width) -> Drawing {
    let groups = groups(plot, categories);
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let widest = rows().map(|row| words::width(&row.name, 12.0)).fold(0.0, f64::max);
    let names = widest.min(NAMES_SHARE * width.pixels());
    let values = rows().map(|row| words::width(&value(plot, row), 12.0)).fold(0.0, f64::max);
    let frame = Frame { left: names + 10.0, right: width.pixels() - values - 14.0, scale: scale(plot) };
    // A bar that failed says so itself.
    let is_needed = |entry: &Entry| !matches!(entry.sign, Sign::Fault);
    let entries: Vec<Entry> = marker::entries(plot, false).into_iter().filter(is_needed).collect();
    let (key, key_height) = marker::key(&entries, width.pixels());
    let mut y = if key_height > 0.0 { key_height + 12.0 } else { 0.0 };
    let first = y;
    let mut drawn = Vec::new();
    for group in &groups {
        if let Some(name) = group.name {
            drawn.push(html! { text class="muted" x="0" y=(at(y + 14.0)) { (words::fit(name, 12.0, width.pixels())) } });
            y += 20.0;
        }
        for row in &group.rows {
            drawn.push(draw_row(plot, &frame, row, y));
            y += ROW_PX;
        }
        y += GROUP_GAP_PX;
    }
    let markup = html! {
        (key)
        (grid(plot, &frame, first, y))
        @for row in &drawn { (row) }
    };
    Drawing { markup, height: y + 34.0 }
}

fn groups<'plot>(plot: &'plot Plot, categories: &'plot [String]) -> Vec<Group<'plot>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (place, category) in categories.iter().enumerate() {
        let here = |at: f64| at == place as f64;
        let mut rows: Vec<(usize, Row<'_>)> = Vec::new();
        for series in &plot.series {
            let marks = series.marks.iter().filter(|mark| here(mark.at));
            rows.extend(marks.map(|mark| {
                (
                    series.position,
                    Row { name: series.name.clone(), what: What::Measured(series.position, mark) },
                )
            }));
        }
        let failures = plot.failures.iter().filter(|failure| here(failure.at));
        rows.extend(failures.map(|failure| {
            let what = What::Failed(&failure.says);
            (failure.position, Row { name: failure.name.clone(), what })
        }));
        rows.sort_by_key(|(position, _)| *position);
        let mut rows: Vec<Row<'_>> = rows.into_iter().map(|(_, row)| row).collect();
        rows.extend(published(plot, |at| at.is_some_and(here)));
        groups.push(Group { name: (categories.len() > 1).then_some(category.as_str()), rows });
    }
    // What was published for other things than were measured is still worth seeing.
    let others =
        published(plot, |at| !at.is_some_and(|at| (0..categories.len()).any(|place| at == place as f64)));
    if !others.is_empty() {
        groups.push(Group { name: Some("published"), rows: others });
    }
    groups
}

/// Rows of published values whose place is `wanted`.
fn published(plot: &Plot, wanted: impl Fn(Option<f64>) -> bool) -> Vec<Row<'_>> {
    let rows = plot.published.iter().flat_map(|published| {
        let what = |value: &PublishedValue| What::Published(*value, &published.source);
        published
            .values
            .iter()
            .map(move |value| (value.at, Row { name: published.name.clone(), what: what(value) }))
    });
    rows.filter(|(at, _)| wanted(*at)).map(|(_, row)| row).collect()
}

fn scale(plot: &Plot) -> Scale {
    let marks = plot.series.iter().flat_map(|series| &series.marks);
    let measured: Vec<f64> = marks.map(|mark| mark.summary.upper_quartile).collect();
    let greatest = measured.iter().copied().fold(0.0, f64::max);
    let published =
        plot.published.iter().flat_map(|published| published.values.iter().map(|value| value.high));
    let near = published.filter(|value| greatest == 0.0 || *value <= REACH * greatest);
    Scale::linear(measured.iter().copied().chain(near).collect::<Vec<_>>(), 4)
}

fn grid(plot: &Plot, frame: &Frame, top: f64, bottom: f64) -> Markup {
    let ticks = frame.scale.ticks(4);
    html! {
        text class="muted" text-anchor="middle" x=(at((frame.left + frame.right) / 2.0)) y=(at(bottom + 28.0)) {
            (plot.unit)
        }
        @for (place, tick) in ticks.iter().enumerate() {
            @let x = at(frame.x(*tick));
            line class=(if place == 0 { "axis" } else { "grid" }) x1=(x) x2=(x) y1=(at(top)) y2=(at(bottom - 4.0)) {}
            text class="muted" text-anchor="middle" x=(x) y=(at(bottom + 11.0)) {
                (number::tick(*tick))
            }
        }
    }
}

/// The value at the end of a bar.
fn value(plot: &Plot, row: &Row<'_>) -> String {
    match &row.what {
        What::Measured(_, mark) => number::short(mark.summary.median),
        What::Failed(..) => "failed".to_owned(),
        What::Published(value, _) if scale(plot).place(value.high) > 1.0 => format!("» {}", value.says()),
        What::Published(value, _) => value.says(),
    }
}

fn draw_row(plot: &Plot, frame: &Frame, row: &Row<'_>, y: f64) -> Markup {
    let middle = y + ROW_PX / 2.0;
    let name = words::fit(&row.name, 12.0, frame.left - 8.0);
    let (end, says) = match &row.what {
        What::Measured(_, mark) => {
            (frame.x(mark.summary.median.max(mark.summary.upper_quartile)), mark.says.clone())
        }
        What::Failed(says) => (frame.left + 14.0, (*says).to_owned()),
        What::Published(value, source) => {
            let text = format!("Published: {}, {} {}. {source}", row.name, value.says(), plot.unit);
            (frame.x(value.high), text)
        }
    };
    html! {
        g {
            title { (says) }
            text class=(if matches!(row.what, What::Published(..)) { "name muted" } else { "name" })
                text-anchor="end" x=(at(frame.left - 8.0)) y=(at(middle + 4.0)) { (name) }
            @match &row.what {
                What::Measured(position, mark) => (bar(frame, *position, mark, middle)),
                What::Failed(_) => g class="fault" { (marker::fault(frame.left + 8.0, middle)) },
                What::Published(value, _) => g class="muted" {
                    path class="published" d=(outline(frame.left, frame.x(value.high), middle)) {}
                },
            }
            text class=(if matches!(row.what, What::Measured(..)) { "name" } else { "name muted" })
                x=(at(end + 7.0)) y=(at(middle + 4.0)) { (value(plot, row)) }
        }
    }
}

fn bar(frame: &Frame, position: usize, mark: &Mark, middle: f64) -> Markup {
    let end = frame.x(mark.summary.median);
    let (low, high) = (frame.x(mark.summary.lower_quartile), frame.x(mark.summary.upper_quartile));
    let (above, below) = (at(middle - 3.0), at(middle + 3.0));
    html! {
        g class=(palette::class(position)) {
            path class=(if mark.hollow { "hollow" } else { "bar" }) stroke-width="1.6" fill="currentColor"
                d=(outline(frame.left, end, middle)) {}
            @if high - low > 2.0 {
                // In the colour of words: on the bar its own would not be seen.
                g class="ink" {
                    path class="whisker" d=(format!(
                        "M{l} {above}V{below}M{h} {above}V{below}M{l} {m}H{h}", l = at(low), h = at(high), m = at(middle)
                    )) {}
                }
            }
        }
    }
}

/// A bar with its far corners rounded.
fn outline(from: f64, to: f64, middle: f64) -> String {
    let (above, half) = (middle - BAR_PX / 2.0, BAR_PX / 2.0);
    let width = (to - from).max(1.0);
    let round = width.min(3.0);
    format!(
        "M{} {}h{}q{r} 0 {r} {r}v{}q0 {r} -{r} {r}h-{}Z",
        at(from),
        at(above),
        at(width - round),
        at(2.0 * half - 2.0 * round),
        at(width - round),
        r = at(round)
    )
}
