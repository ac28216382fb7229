//! The shapes of markers, and the key that explains them.

use maud::{Markup, html};

use super::{Plot, at, path, words};
use crate::report::palette::{self, Shape};

/// A marker at a point, in the current colour; hollow where only the outline is to be seen.
pub(super) fn marker(position: usize, x: f64, y: f64, hollow: bool) -> Markup {
    let class = if hollow { "ring hollow" } else { "ring" };
    if palette::shape(position) == Shape::Circle {
        return html! { circle class=(class) cx=(at(x)) cy=(at(y)) r="4.2" {} };
    }
    let corners: Vec<(f64, f64)> = corners(palette::shape(position))
        .into_iter()
        .map(|(angle, radius)| {
            let radians = f64::to_radians(angle);
            (x + radius * radians.sin(), y - radius * radians.cos())
        })
        .collect();
    html! { path class=(class) d=(path(&corners) + "Z") {} }
}

/// Corners of a shape: degrees clockwise from above, and pixels from the middle.
fn corners(shape: Shape) -> Vec<(f64, f64)> {
    let regular = |count: u32, first: f64, radius: f64| {
        (0..count).map(|corner| (first + f64::from(corner) * 360.0 / f64::from(count), radius)).collect()
    };
    match shape {
        Shape::Circle => Vec::new(),
        Shape::Square => regular(4, 45.0, 5.4),
        Shape::Triangle => regular(3, 0.0, 5.6),
        Shape::Diamond => regular(4, 0.0, 5.6),
        Shape::Pentagon => regular(5, 0.0, 5.0),
        Shape::Wedge => regular(3, 60.0, 5.6),
        Shape::Cross => [(20.0, 5.8), (45.0, 2.6), (70.0, 5.8)]
            .into_iter()
            .cycle()
            .take(12)
            .enumerate()
            .map(|(corner, (angle, radius))| (angle + 90.0 * (corner / 3) as f64, radius))
            .collect(),
        Shape::Star => (0..10)
            .map(|corner| (f64::from(corner) * 36.0, if corner % 2 == 0 { 6.2 } else { 2.9 }))
            .collect(),
    }
}

/// A cross in the current colour: nothing could be measured here.
pub(super) fn fault(x: f64, y: f64) -> Markup {
    let (left, right, above, below) = (at(x - 4.0), at(x + 4.0), at(y - 4.0), at(y + 4.0));
    html! {
        path fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"
            d=(format!("M{left} {above}L{right} {below}M{left} {below}L{right} {above}")) {}
    }
}

/// A sign in the key, and what it stands for.
pub(super) struct Entry {
    pub sign: Sign,
    pub name: String,
}

/// Signs of the key.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    /// A measured series.
    Series(usize),
    /// A published series.
    Published,
    /// A published series beyond the end of the axis.
    Beyond,
    /// A hollow marker.
    Hollow,
    /// A point that failed.
    Fault,
    /// The thin line beside a series.
    Second,
}

/// Entries for what a plot holds beside its series.
pub(super) fn entries(plot: &Plot, with_series: bool) -> Vec<Entry> {
    let mut entries = Vec::new();
    if with_series {
        let series = plot.series.iter().filter(|series| !series.marks.is_empty());
        entries.extend(
            series.map(|series| Entry { sign: Sign::Series(series.position), name: series.name.clone() }),
        );
    }
    let mut add = |present: bool, sign, name: &str| {
        if present {
            entries.push(Entry { sign, name: name.to_owned() });
        }
    };
    add(plot.series.iter().any(|series| !series.second.is_empty()), Sign::Second, "on the wire");
    let hollow = plot.series.iter().any(|series| series.marks.iter().any(|mark| mark.hollow));
    add(hollow, Sign::Hollow, "the client was the limit");
    add(!plot.failures.is_empty(), Sign::Fault, "failed");
    entries
}

const ROW_PX: f64 = 18.0;
const SIGN_PX: f64 = 24.0;
const GAP_PX: f64 = 14.0;

/// The key in rows of `room`, its first row at the top. Returns its height as well.
pub(super) fn key(entries: &[Entry], room: f64) -> (Markup, f64) {
    let (mut x, mut y) = (0.0, 9.0);
    let placed: Vec<(f64, f64, Sign, String)> = entries
        .iter()
        .map(|entry| {
            let name = words::fit(&entry.name, 12.0, room - SIGN_PX);
            let width = SIGN_PX + words::width(&name, 12.0);
            if x > 0.0 && x + width > room {
                (x, y) = (0.0, y + ROW_PX);
            }
            let placed = (x, y, entry.sign, name);
            x += width + GAP_PX;
            placed
        })
        .collect();
    let height = if placed.is_empty() { 0.0 } else { y + 9.0 };
    let markup = html! {
        @for (x, y, of, name) in &placed {
            (sign(*of, *x, *y))
            text class="name" x=(at(x + SIGN_PX)) y=(at(y + 4.0)) { (name) }
        }
    };
    (markup, height)
}

fn sign(sign: Sign, x: f64, y: f64) -> Markup {
    let middle = x + 9.0;
    let across = format!("M{} {}h18", at(x), at(y));
    html! {
        @match sign {
            Sign::Series(position) => g class=(palette::class(position)) {
                path class="line" d=(across) {}
                (marker(position, middle, y, false))
            },
            Sign::Published => g class="muted" { path class="published" d=(across) {} },
            Sign::Beyond => g class="muted" { (beyond(middle, y)) },
            Sign::Hollow => g class="muted" { (marker(0, middle, y, true)) },
            Sign::Fault => g class="muted" { (fault(middle, y)) },
            Sign::Second => g class="muted" { path class="line second" d=(across) {} },
        }
    }
}

/// An arrow upwards: the value is beyond the end of the axis.
pub(super) fn beyond(x: f64, y: f64) -> Markup {
    let d = format!("M{} {}l5 8h-10Z", at(x), at(y - 4.0));
    html! { path fill="currentColor" d=(d) {} }
}
