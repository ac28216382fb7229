//! Series over an axis of numbers: lines with markers, whiskers, and names at their ends.

use maud::{Markup, html};

use super::{
    Drawing, Mark, Plot, Published, PublishedValue, Series, Width, at,
    marker::{self, Entry, Sign},
    path, words,
};
use crate::report::{number, palette, scale::Scale};

/// Height of the plotting area in pixels.
const AREA_PX: f64 = 230.0;
/// From one name at the end of a line to the next.
const NAME_PITCH_PX: f64 = 16.0;
/// An axis is logarithmic where its greatest value is so many times the least.
const LOGARITHMIC_FROM: f64 = 30.0;
/// A linear axis reaches for what was published up to so many times what was measured; beyond, our own lines would
/// lie flat on the ground.
const REACH: f64 = 2.5;

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    horizontal: Scale,
    /// Where a linear horizontal axis begins.
    first: f64,
    vertical: Scale,
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        let share = match self.horizontal {
            Scale::Linear { high } => (value - self.first) / (high - self.first),
            Scale::Logarithmic { .. } => self.horizontal.place(value),
        };
        self.left + share * (self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.vertical.place(value) * (self.bottom - self.top)
    }

    fn points(&self, values: &[(f64, f64)]) -> Vec<(f64, f64)> {
        values.iter().map(|(x, y)| (self.x(*x), self.y(*y))).collect()
    }

    /// Where a published value stands on the horizontal axis, if it does.
    fn column(&self, value: &PublishedValue) -> Option<f64> {
        let x = self.x(value.at?);
        (x >= self.left - 0.5 && x <= self.right + 0.5).then_some(x)
    }

    /// Its height reaches beyond the vertical axis.
    fn is_beyond(&self, value: &PublishedValue) -> bool {
        self.vertical.place(value.middle()) > 1.0 + 1e-6
    }

    /// Its height is on the vertical axis.
    fn is_level(&self, value: &PublishedValue) -> bool {
        (-1e-6..=1.0 + 1e-6).contains(&self.vertical.place(value.middle()))
    }
}

pub(super) fn draw(plot: &Plot, values: &[f64], bytes: bool, logarithmic: bool, width: Width) -> Drawing {
    let vertical = vertical(plot, values);
    let ticks = vertical.ticks(5);
    let tick_width = ticks.iter().map(|tick| words::width(&number::tick(*tick), 12.0)).fold(0.0, f64::max);
    let names_beside = width == Width::Wide && names_width(plot).is_some_and(|names| names < 160.0);
    // The last tick's words are centred on the end of the axis.
    let last_tick =
        values.last().map_or(0.0, |last| words::width(&tick_name(*last, bytes), 12.0) / 2.0 + 3.0);
    let room_right = if names_beside { 26.0 + names_width(plot).unwrap_or(0.0) } else { 14.0 }.max(last_tick);
    let horizontal = horizontal(values, logarithmic);
    let mut frame = Frame {
        left: tick_width + 10.0,
        right: width.pixels() - room_right,
        top: 0.0,
        bottom: 0.0,
        horizontal,
        first: values.first().copied().unwrap_or(0.0),
        vertical,
    };
    frame.bottom = AREA_PX;
    let mut entries = marker::entries(plot, !names_beside);
    entries.extend(plot.published.iter().map(|published| explained(&frame, plot, published)));
    let (key, key_height) = marker::key(&entries, width.pixels());
    frame.top = key_height + if key_height > 0.0 { 32.0 } else { 16.0 };
    frame.bottom = frame.top + AREA_PX;
    let markup = html! {
        (key)
        (grid(plot, &frame, &ticks))
        (horizontal_axis(plot, &frame, values, bytes))
        @for published in &plot.published { (reference(&frame, plot, published)) }
        @for series in &plot.series { (line(&frame, plot, series)) }
        @for series in &plot.series { @for mark in &series.marks { (point(&frame, series.position, mark)) } }
        @for failure in &plot.failures {
            g class=(palette::class(failure.position)) {
                title { (failure.says) }
                (marker::fault(frame.x(failure.at), frame.bottom - 7.0))
            }
        }
        @if names_beside { (names(&frame, plot)) }
    };
    Drawing { markup, height: frame.bottom + 42.0 }
}

/// A sweep over decades is drawn over a logarithmic axis that begins and ends with it.
fn horizontal(values: &[f64], logarithmic: bool) -> Scale {
    match (values.first(), values.last()) {
        (Some(first), Some(last)) if *first > 0.0 && (logarithmic || last / first >= LOGARITHMIC_FROM) => {
            Scale::logarithmic_exactly(*first, *last)
        }
        (_, last) => Scale::Linear { high: last.copied().unwrap_or(1.0) },
    }
}

fn vertical(plot: &Plot, places: &[f64]) -> Scale {
    let measured: Vec<f64> = plot
        .series
        .iter()
        .flat_map(|series| {
            let marks = series
                .marks
                .iter()
                .flat_map(|mark| [mark.summary.lower_quartile, mark.summary.upper_quartile]);
            marks.chain(series.second.iter().map(|(_, value)| *value))
        })
        .collect();
    let least = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = measured.iter().copied().fold(0.0, f64::max);
    let (first, last) = (places.first().copied(), places.last().copied());
    let within = |x: f64| first.is_none_or(|low| x >= low) && last.is_none_or(|high| x <= high);
    let published = plot.published.iter().flat_map(|published| {
        let alone = published.values.len() == 1;
        let seen = published.values.iter().filter(move |value| alone || value.at.is_some_and(within));
        seen.map(|value| value.high)
    });
    if least > 0.0 && greatest / least >= LOGARITHMIC_FROM {
        let near = published.filter(|value| *value >= least / 100.0 && *value <= greatest * 100.0);
        return Scale::logarithmic(measured.iter().copied().chain(near).collect::<Vec<_>>());
    }
    let near = published.filter(|value| greatest == 0.0 || *value <= REACH * greatest).collect::<Vec<_>>();
    Scale::linear(measured.into_iter().chain(near), 5)
}

fn grid(plot: &Plot, frame: &Frame, ticks: &[f64]) -> Markup {
    html! {
        text class="muted" x="0" y=(at(frame.top - 10.0)) { (plot.unit) @if frame.is_logarithmic() { ", logarithmic" } }
        @for tick in ticks {
            @let y = at(frame.y(*tick));
            line class="grid" x1=(at(frame.left)) x2=(at(frame.right)) y1=(y) y2=(y) {}
            text class="muted" text-anchor="end" x=(at(frame.left - 7.0)) y=(at(frame.y(*tick) + 4.0)) {
                (number::tick(*tick))
            }
        }
    }
}

impl Frame {
    fn is_logarithmic(&self) -> bool {
        matches!(self.vertical, Scale::Logarithmic { .. })
    }
}

fn tick_name(value: f64, bytes: bool) -> String {
    if bytes { number::bytes(value) } else { number::tick(value) }
}

/// The values of the sweep are the ticks, as many as have room.
fn horizontal_axis(plot: &Plot, frame: &Frame, values: &[f64], bytes: bool) -> Markup {
    let name = |value: f64| tick_name(value, bytes);
    let mut free_from = f64::NEG_INFINITY;
    // The end of the sweep matters most: it is placed first.
    let last = values.last().copied();
    let last_begins =
        last.map_or(f64::INFINITY, |last| frame.x(last) - words::width(&name(last), 12.0) / 2.0 - 8.0);
    let mut ticks: Vec<(f64, Option<String>)> = Vec::new();
    for value in values {
        let (text, x) = (name(*value), frame.x(*value));
        let half = words::width(&text, 12.0) / 2.0;
        let has_room = Some(*value) == last || (x - half >= free_from && x + half <= last_begins);
        if has_room {
            free_from = x + half + 8.0;
        }
        ticks.push((x, has_room.then_some(text)));
    }
    let (left, right, bottom) = (at(frame.left), at(frame.right), at(frame.bottom));
    html! {
        line class="axis" x1=(left) x2=(right) y1=(bottom) y2=(bottom) {}
        @for (x, text) in &ticks {
            line class="axis" x1=(at(*x)) x2=(at(*x)) y1=(bottom) y2=(at(frame.bottom + 4.0)) {}
            @if let Some(text) = text {
                text class="muted" text-anchor="middle" x=(at(*x)) y=(at(frame.bottom + 18.0)) { (text) }
            }
        }
        text class="muted" text-anchor="middle" x=(at((frame.left + frame.right) / 2.0)) y=(at(frame.bottom + 36.0)) {
            (plot.horizontal_name)
        }
    }
}

/// The line of a series and the thin one beside it, both broken where a point failed.
fn line(frame: &Frame, plot: &Plot, series: &Series) -> Markup {
    let own = plot.failures.iter().filter(|failure| failure.position == series.position);
    let failed: Vec<f64> = own.map(|failure| failure.at).collect();
    let median = series.marks.iter().map(|mark| (mark.at, mark.summary.median));
    html! {
        g class=(palette::class(series.position)) {
            @for piece in pieces(series.second.iter().copied(), &failed) {
                path class="line second" d=(path(&frame.points(&piece))) {}
            }
            @for piece in pieces(median, &failed) { path class="line" d=(path(&frame.points(&piece))) {} }
        }
    }
}

/// Points of a line, apart where a failure lies between two of them; a point alone makes no line.
fn pieces(points: impl Iterator<Item = (f64, f64)>, failed: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let points: Vec<(f64, f64)> = points.collect();
    let joined = |one: &(f64, f64), other: &(f64, f64)| !failed.iter().any(|at| one.0 < *at && *at < other.0);
    points.chunk_by(joined).filter(|piece| piece.len() > 1).map(<[_]>::to_vec).collect()
}

/// A marker with its whisker, from quartile to quartile.
fn point(frame: &Frame, position: usize, mark: &Mark) -> Markup {
    let (x, y) = (frame.x(mark.at), frame.y(mark.summary.median));
    let (low, high) = (frame.y(mark.summary.lower_quartile), frame.y(mark.summary.upper_quartile));
    let (left, width) = (at(x - 3.0), 6);
    html! {
        g class=(palette::class(position)) {
            title { (mark.says) }
            @if (low - high).abs() > 2.0 {
                path class="whisker"
                    d=(format!("M{left} {}h{width}M{left} {}h{width}M{} {}V{}", at(low), at(high), at(x), at(low), at(high))) {}
            }
            // Easier to point at than the marker alone.
            circle cx=(at(x)) cy=(at(y)) r="11" fill="transparent" {}
            (marker::marker(position, x, y, mark.hollow))
        }
    }
}

/// How the key says what of a published series has a place on these axes.
fn explained(frame: &Frame, plot: &Plot, published: &Published) -> Entry {
    let name = format!("published: {}", published.name);
    let beyond: Vec<&PublishedValue> =
        published.values.iter().filter(|value| frame.is_beyond(value)).collect();
    let shown =
        published.values.len() == 1 || published.values.iter().any(|value| frame.column(value).is_some());
    match beyond.as_slice() {
        [] if shown => Entry { sign: Sign::Published, name },
        [] => Entry { sign: Sign::Published, name: format!("{name}, beside this axis") },
        [only] => Entry { sign: Sign::Beyond, name: format!("{name}, {} {}", only.says(), plot.unit) },
        several => {
            let most = several.iter().map(|value| value.high).fold(0.0, f64::max);
            Entry { sign: Sign::Beyond, name: format!("{name}, up to {} {}", number::short(most), plot.unit) }
        }
    }
}

/// A published series: dashed, in grey. One value alone is a level across the figure.
fn reference(frame: &Frame, plot: &Plot, published: &Published) -> Markup {
    let says = |value: &PublishedValue| {
        format!("Published: {}, {} {}. {}", published.name, value.says(), plot.unit, published.source)
    };
    let level = match published.values.as_slice() {
        [only] if frame.is_level(only) => Some(only),
        _ => None,
    };
    let held: Vec<(f64, f64, &PublishedValue)> = published
        .values
        .iter()
        .filter(|value| frame.is_level(value))
        .filter_map(|value| Some((frame.column(value)?, frame.y(value.middle()), value)))
        .collect();
    let line: Vec<(f64, f64)> = held.iter().map(|(x, y, _)| (*x, *y)).collect();
    let beyond = published.values.iter().filter(|value| frame.is_beyond(value));
    let beyond: Vec<(f64, &PublishedValue)> =
        beyond.filter_map(|value| Some((frame.column(value)?, value))).collect();
    html! {
        g class="muted" {
            @if let Some(level) = level {
                @let across = format!("M{} {}H{}", at(frame.left), at(frame.y(level.middle())), at(frame.right));
                path class="published" d=(across) { title { (says(level)) } }
            }
            @if line.len() > 1 { path class="published" d=(path(&line)) {} }
            @for (x, y, value) in &held {
                g {
                    title { (says(value)) }
                    @if value.low < value.high {
                        @let (low, high) = (at(frame.y(value.low)), at(frame.y(value.high)));
                        path class="whisker" d=(format!("M{} {low}V{high}", at(*x))) {}
                    }
                    circle cx=(at(*x)) cy=(at(*y)) r="11" fill="transparent" {}
                    circle class="hollow" cx=(at(*x)) cy=(at(*y)) r="3" stroke-width="1.5" {}
                }
            }
            @for (x, value) in &beyond {
                g { title { (says(value)) } (marker::beyond(*x, frame.top - 4.0)) }
            }
        }
    }
}

/// The widest name, if any series has a line.
fn names_width(plot: &Plot) -> Option<f64> {
    let named = plot.series.iter().filter(|series| !series.marks.is_empty());
    named.map(|series| words::width(&series.name, 12.0)).reduce(f64::max)
}

/// Names at the ends of lines, moved apart where they would cover each other.
fn names(frame: &Frame, plot: &Plot) -> Markup {
    let mut placed: Vec<(f64, &Series)> = plot
        .series
        .iter()
        .filter_map(|series| Some((frame.y(series.marks.last()?.summary.median), series)))
        .collect();
    placed.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut heights: Vec<f64> = placed.iter().map(|(y, _)| *y).collect();
    spread(&mut heights, NAME_PITCH_PX, frame.top - 4.0, frame.bottom);
    html! {
        @for ((_, series), y) in placed.iter().zip(&heights) {
            g class=(palette::class(series.position)) { (marker::marker(series.position, frame.right + 14.0, *y, false)) }
            text class="name" x=(at(frame.right + 23.0)) y=(at(y + 4.0)) { (series.name) }
        }
    }
}

/// Moves ascending `heights` apart until neighbours are `pitch` from each other, each as little as possible from where
/// it was: overlapping ones become a block around their mean. Blocks stay within `low..high` where they fit.
fn spread(heights: &mut [f64], pitch: f64, low: f64, high: f64) {
    struct Block {
        first: f64,
        count: usize,
    }
    let clamp = |block: &mut Block| {
        let room = high - (block.count - 1) as f64 * pitch;
        block.first = block.first.min(room).max(low);
    };
    let mut blocks: Vec<Block> = Vec::new();
    for height in heights.iter() {
        let mut block = Block { first: *height, count: 1 };
        clamp(&mut block);
        while let Some(above) = blocks.pop_if(|above| above.first + above.count as f64 * pitch > block.first)
        {
            let count = above.count + block.count;
            // The first of the joined block is where the mean of the wished firsts is.
            let wished = block.first - above.count as f64 * pitch;
            let first = (above.first * above.count as f64 + wished * block.count as f64) / count as f64;
            block = Block { first, count };
            clamp(&mut block);
        }
        blocks.push(block);
    }
    let places =
        blocks.iter().flat_map(|block| (0..block.count).map(|number| block.first + number as f64 * pitch));
    for (height, place) in heights.iter_mut().zip(places) {
        *height = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_moved_apart_and_no_further_than_needed() {
        let mut heights = [20.0, 22.0, 100.0];
        spread(&mut heights, 16.0, 0.0, 200.0);
        assert_eq!(heights, [13.0, 29.0, 100.0]);
        let mut crowded = [198.0, 199.0, 200.0, 200.0];
        spread(&mut crowded, 16.0, 0.0, 200.0);
        assert_eq!(crowded, [152.0, 168.0, 184.0, 200.0]);
        let mut apart = [10.0, 50.0];
        spread(&mut apart, 16.0, 0.0, 200.0);
        assert_eq!(apart, [10.0, 50.0]);
    }

    #[test]
    fn a_line_is_broken_where_a_point_failed() {
        let points = [(1.0, 5.0), (2.0, 6.0), (4.0, 7.0), (5.0, 8.0)];
        assert_eq!(pieces(points.into_iter(), &[3.0]), [points[..2].to_vec(), points[2..].to_vec()]);
        assert_eq!(pieces(points.into_iter(), &[]), [points.to_vec()]);
        assert!(pieces(points[..1].iter().copied(), &[]).is_empty());
    }

    #[test]
    fn a_sweep_over_decades_is_logarithmic() {
        assert!(matches!(horizontal(&[10.0, 50.0, 100.0], false), Scale::Linear { .. }));
        assert!(matches!(horizontal(&[1e4, 1e5, 1e8], false), Scale::Logarithmic { .. }));
        assert!(matches!(horizontal(&[0.0, 1e5, 1e8], true), Scale::Linear { .. }));
        assert!(matches!(horizontal(&[10.0, 50.0, 100.0], true), Scale::Logarithmic { .. }));
    }
}
