//! Plots as SVG, drawn from measured series and published ones.
//!
//! The papers draw throughput and CPU into one figure with two vertical axes. Here each has a figure of its own over the
//! same horizontal axis: two scales in one figure invite comparing what cannot be compared.
//!
//! A figure is drawn for a given width and not scaled afterwards, so that its words keep their size: the page holds one
//! for desks and one for telephones, and shows the one that fits.

mod bars;
mod lines;
mod marker;
mod words;

use maud::{Markup, PreEscaped, html};

use super::{number, palette};
use crate::statistics::Summary;

/// What is drawn.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// The quantity.
    pub title: String,
    /// What else has to be known to read it.
    pub note: String,
    /// The swept variable.
    pub horizontal: Horizontal,
    /// Its name, with its unit.
    pub horizontal_name: String,
    /// The quantity's unit.
    pub unit: &'static str,
    /// What was measured.
    pub series: Vec<Series>,
    /// What others have published.
    pub published: Vec<Published>,
    /// Where nothing could be measured.
    pub failures: Vec<Failure>,
}

/// The horizontal axis.
#[derive(Clone, Debug)]
pub(super) enum Horizontal {
    /// Three or more numbers: lines.
    Numbers {
        /// The values of the sweep, ascending.
        values: Vec<f64>,
        /// They are sizes.
        bytes: bool,
        /// The experiment asks for a logarithmic axis.
        logarithmic: bool,
    },
    /// Words, or so few numbers that a line would claim too much: bars. A place is the position of its name.
    Categories(Vec<String>),
}

/// What was measured of one server.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Its name.
    pub name: String,
    /// Its position among the servers: colour and shape.
    pub position: usize,
    /// In the order of the axis.
    pub marks: Vec<Mark>,
    /// A thin line beside it, of a second quantity in the same unit: throughput on the wire.
    pub second: Vec<(f64, f64)>,
}

/// One measured point.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    /// Where on the horizontal axis.
    pub at: f64,
    /// Median and spread.
    pub summary: Summary,
    /// Drawn hollow: the client was the limit.
    pub hollow: bool,
    /// What it says when pointed at.
    pub says: String,
}

/// A published series.
#[derive(Clone, Debug)]
pub(super) struct Published {
    /// Its name.
    pub name: String,
    /// Where it was published.
    pub source: String,
    /// What it says.
    pub values: Vec<PublishedValue>,
}

/// A published value, or the range that was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PublishedValue {
    /// Where on the horizontal axis; none where it was published for something that is not on it.
    pub at: Option<f64>,
    /// The least that was given.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl PublishedValue {
    fn middle(self) -> f64 {
        (self.low + self.high) / 2.0
    }

    /// "326", "19.0–20.0".
    pub(super) fn says(self) -> String {
        if self.low == self.high {
            number::short(self.high)
        } else {
            format!("{}–{}", number::short(self.low), number::short(self.high))
        }
    }
}

/// A point that failed in every round.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Name of the server.
    pub name: String,
    /// Its position.
    pub position: usize,
    /// Where on the horizontal axis.
    pub at: f64,
    /// What it says when pointed at.
    pub says: String,
}

/// How wide a figure is to be, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// Two in a row on a desk, or one on paper.
    Wide,
    /// A telephone.
    Narrow,
}

impl Width {
    pub(super) fn pixels(self) -> f64 {
        match self {
            Self::Wide => 540.0,
            Self::Narrow => 350.0,
        }
    }
}

/// A drawing and the height that it took.
struct Drawing {
    markup: Markup,
    height: f64,
}

/// White around a figure in a file of its own, in pixels.
const PADDING: f64 = 16.0;

impl Plot {
    /// Nothing to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.marks.is_empty()) && self.failures.is_empty()
    }

    /// The figure for a page that brings [`palette::style`], without its title.
    pub(super) fn figure(&self, width: Width) -> Markup {
        let Drawing { markup, height } = self.draw(width);
        let class = match width {
            Width::Wide => "plot wide",
            Width::Narrow => "plot narrow",
        };
        let (width, height) = (width.pixels(), height.ceil());
        html! {
            svg class=(class) role="img" aria-label=(self.description()) viewBox=(format!("0 0 {width} {height}"))
                width=(width) height=(height) { (markup) }
        }
    }

    /// The figure as a file of its own, with title, style and background. `context` names experiment and panel,
    /// `conditions` what it was measured under.
    pub(super) fn file(&self, context: &str, conditions: &str) -> String {
        let Drawing { markup, height } = self.draw(Width::Wide);
        let room = Width::Wide.pixels();
        let mut note = words::wrap(conditions, 11.0, room);
        note.extend(words::wrap(&self.note, 11.0, room));
        let title_height = 40.0 + 14.0 * note.len() as f64;
        let (width, height) = (room + 2.0 * PADDING, (height + title_height + 2.0 * PADDING).ceil());
        let document = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" aria-label=(self.description())
                viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) {
                style { (PreEscaped(palette::style())) }
                rect class="surface" width=(width) height=(height) {}
                g transform=(format!("translate({PADDING} {PADDING})")) {
                    text class="title" x="0" y="13" { (words::fit(&self.title, 15.0, room)) }
                    g class="muted" {
                        text x="0" y="30" { (words::fit(context, 12.0, room)) }
                        @for (row, line) in note.iter().enumerate() {
                            text x="0" y=(at(45.0 + 14.0 * row as f64)) font-size="11" { (line) }
                        }
                    }
                    g transform=(format!("translate(0 {title_height})")) { (markup) }
                }
            }
        };
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", document.into_string())
    }

    fn draw(&self, width: Width) -> Drawing {
        match &self.horizontal {
            Horizontal::Numbers { values, bytes, logarithmic } => {
                lines::draw(self, values, *bytes, *logarithmic, width)
            }
            Horizontal::Categories(categories) => bars::draw(self, categories, width),
        }
    }

    /// The figure in words, for those who do not see it.
    fn description(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        format!(
            "{} in {} over {}: {}. The values are in the table below.",
            self.title,
            self.unit,
            self.horizontal_name.to_lowercase(),
            names.join(", ")
        )
    }
}

/// A coordinate, to a tenth of a pixel.
fn at(coordinate: f64) -> String {
    let text = format!("{coordinate:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A path through these points.
fn path<'point>(points: impl IntoIterator<Item = &'point (f64, f64)>) -> String {
    let mut path = String::new();
    for (number, (x, y)) in points.into_iter().enumerate() {
        path.push(if number == 0 { 'M' } else { 'L' });
        path.push_str(&format!("{} {}", at(*x), at(*y)));
    }
    path
}
