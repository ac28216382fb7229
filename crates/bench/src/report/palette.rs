//! The colours and markers of series, told apart by everybody, on white and on black.
//!
//! A series is told by three things, so that none of them has to carry it alone: its name beside its line, the shape
//! of its marker, and its colour. The tests hold every pair of the first six colours apart under normal sight, protanopia
//! and deuteranopia, and every colour against its background.

use std::fmt::Write as _;

/// Behind a plot, in light and dark.
pub(super) const SURFACE: [&str; 2] = ["#ffffff", "#16181c"];
/// Words.
const INK: [&str; 2] = ["#24272b", "#e4e6e9"];
/// Words that matter less, and what was published by others.
const MUTED: [&str; 2] = ["#656b73", "#9aa1aa"];
/// Lines behind everything.
const GRID: [&str; 2] = ["#e6e8eb", "#2b2f35"];
/// What went wrong.
const FAULT: [&str; 2] = ["#b3261e", "#ff8a80"];

/// Series in the order of their definition, light and dark.
const SERIES: [[&str; 2]; 8] = [
    ["#2563d9", "#6ea0ff"],
    ["#d9541e", "#f08a4b"],
    ["#088d6a", "#60d5bc"],
    ["#9574e5", "#924ddc"],
    ["#7b5500", "#946900"],
    ["#962053", "#b0608b"],
    ["#4a4d52", "#c3c7cc"],
    ["#007a93", "#5fb4cf"],
];

/// Shapes of markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Pentagon,
    Wedge,
    Cross,
    Star,
}

const SHAPES: [Shape; 8] = [
    Shape::Circle,
    Shape::Square,
    Shape::Triangle,
    Shape::Diamond,
    Shape::Pentagon,
    Shape::Wedge,
    Shape::Cross,
    Shape::Star,
];

/// The class of the series at `position`; its colour is `currentColor` within.
pub(super) fn class(position: usize) -> String {
    format!("s{}", position % SERIES.len())
}

/// The shape of its marker. Beyond the last colour, colours come again with other shapes.
pub(super) fn shape(position: usize) -> Shape {
    SHAPES[(position + position / SERIES.len()) % SHAPES.len()]
}

/// The style of plots: of those in the page, and, as it is, inside an SVG file of its own.
pub(super) fn style() -> String {
    let mut css = String::from(
        ".plot{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',sans-serif;font-size:12px}\
         .plot text{fill:currentColor}.plot .name{font-size:12px}.plot .title{font-size:15px;font-weight:600}\
         .plot .ring{stroke-width:1.6}.plot .bar{stroke:none}\
         .plot .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
         .plot .second{stroke-width:1;opacity:.55}\
         .plot .whisker{fill:none;stroke:currentColor;stroke-width:1.2;opacity:.75}\
         .plot .published{fill:none;stroke:currentColor;stroke-width:1.5;stroke-dasharray:5 4}",
    );
    css.push_str(&theme(0));
    let _ = write!(css, "@media screen and (prefers-color-scheme:dark){{{}}}", theme(1));
    css
}

/// Colours of light (0) or dark (1), as plain colours: programs other than browsers know no variables.
fn theme(which: usize) -> String {
    let (surface, ink, muted) = (SURFACE[which], INK[which], MUTED[which]);
    let (grid, fault) = (GRID[which], FAULT[which]);
    let mut css = format!(
        ".plot,.plot .ink{{color:{ink}}}.plot .surface{{fill:{surface}}}.plot .muted{{color:{muted}}}\
         .plot .grid{{stroke:{grid}}}.plot .axis{{stroke:{muted}}}.plot .fault{{color:{fault}}}\
         .plot .ring{{stroke:{surface};fill:currentColor}}.plot .hollow{{stroke:currentColor;fill:{surface}}}"
    );
    for (position, colours) in SERIES.iter().enumerate() {
        let _ = write!(css, ".plot .s{position}{{color:{}}}", colours[which]);
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    type Linear = [f64; 3];

    fn linear(colour: &str) -> Linear {
        [1, 3, 5].map(|at| {
            let byte = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
            let value = f64::from(byte) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// WCAG 2.2, contrast ratio.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |colour| {
            let [red, green, blue] = linear(colour);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// Normal sight, protanopia and deuteranopia: Machado, Oliveira and Fernandes (2009), severity 1.
    const SIGHTS: [[[f64; 3]; 3]; 3] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ];

    fn times(matrix: &[[f64; 3]; 3], vector: Linear) -> Linear {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum::<f64>())
    }

    /// Ottosson's OKLab.
    fn oklab(colour: Linear) -> Linear {
        let cones = [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ];
        let laboratory = [
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ];
        times(&laboratory, times(&cones, colour).map(|cone| cone.max(0.0).cbrt()))
    }

    fn distance(one: &str, other: &str, sight: &[[f64; 3]; 3]) -> f64 {
        let seen = |colour| oklab(times(sight, linear(colour)).map(|value| value.clamp(0.0, 1.0)));
        let (one, other) = (seen(one), seen(other));
        100.0 * one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn everything_stands_out_from_what_is_behind_it() {
        for (which, surface) in SURFACE.into_iter().enumerate() {
            for colours in SERIES {
                assert!(contrast(colours[which], surface) >= 3.0, "{} on {surface}", colours[which]);
            }
            for words in [INK, MUTED, FAULT] {
                assert!(contrast(words[which], surface) >= 4.5, "{} on {surface}", words[which]);
            }
        }
    }

    #[test]
    fn every_sight_tells_the_first_six_apart() {
        for which in [0, 1] {
            for sight in &SIGHTS {
                for (position, one) in SERIES[..6].iter().enumerate() {
                    for other in &SERIES[..position] {
                        let distance = distance(one[which], other[which], sight);
                        assert!(distance >= 7.0, "{} and {}: {distance:.1}", one[which], other[which]);
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_64_series_differ_in_colour_or_shape() {
        let looks: Vec<_> = (0..64).map(|position| (class(position), shape(position))).collect();
        for (position, look) in looks.iter().enumerate() {
            assert!(
                !looks[..position].contains(look),
                "series {position} looks like one before it: {look:?}"
            );
        }
    }
}
