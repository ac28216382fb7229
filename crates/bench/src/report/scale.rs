//! Where a value stands on an axis, and the ticks that a person would have chosen.

/// An axis of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Equal steps are equal differences. Begins at zero.
    Linear {
        /// The end of the axis.
        high: f64,
    },
    /// Equal steps are equal ratios.
    Logarithmic {
        /// The beginning, above zero.
        low: f64,
        /// The end.
        high: f64,
    },
}

/// Steps between ticks are these, and these times powers of ten.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

impl Scale {
    /// From zero to a little above the greatest of `values`, so that the end is a tick.
    pub(super) fn linear(values: impl IntoIterator<Item = f64>, ticks: usize) -> Self {
        let greatest = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        if greatest <= 0.0 {
            return Self::Linear { high: 1.0 };
        }
        let step = step(greatest, ticks);
        Self::Linear { high: (greatest / step - 1e-9).ceil() * step }
    }

    /// Around all of `values`, each end on a tick. Values that are not above zero have no place and are left out.
    pub(super) fn logarithmic(values: impl IntoIterator<Item = f64>) -> Self {
        let mut ends: Option<(f64, f64)> = None;
        for value in values.into_iter().filter(|value| value.is_finite() && *value > 0.0) {
            ends = Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
        }
        let Some((low, high)) = ends else { return Self::Logarithmic { low: 1.0, high: 10.0 } };
        let (low, high) = (round_down(low), round_up(high));
        Self::Logarithmic { low, high: if high > low { high } else { low * 10.0 } }
    }

    /// An axis from the first to the last of values that were chosen by a person, no wider.
    pub(super) fn logarithmic_exactly(low: f64, high: f64) -> Self {
        Self::Logarithmic { low, high }
    }

    /// 0 at the beginning of the axis, 1 at its end; beyond that where the value is beyond.
    pub(super) fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear { high } => value / high,
            Self::Logarithmic { low, high } => (value.max(f64::MIN_POSITIVE) / low).ln() / (high / low).ln(),
        }
    }

    /// About so many ticks, from the beginning of the axis to its end.
    pub(super) fn ticks(self, wanted: usize) -> Vec<f64> {
        match self {
            Self::Linear { high } => {
                let step = step(high, wanted);
                (0..=(high / step + 1e-9) as usize).map(|number| number as f64 * step).collect()
            }
            Self::Logarithmic { low, high } => {
                let decades = (high / low).log10();
                let (steps, every): (&[f64], i32) = match decades {
                    decades if decades <= wanted as f64 / 3.0 => (&STEPS, 1),
                    decades if decades <= 1.0 + wanted as f64 => (&STEPS[..1], 1),
                    decades => (&STEPS[..1], (decades / wanted as f64).ceil() as i32),
                };
                let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
                (first..=last)
                    .step_by(every.max(1) as usize)
                    .flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)))
                    .filter(|tick| *tick >= low * (1.0 - 1e-9) && *tick <= high * (1.0 + 1e-9))
                    .collect()
            }
        }
    }
}

/// The least round step with which `span` has no more than `wanted` steps.
fn step(span: f64, wanted: usize) -> f64 {
    let rough = span / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let within = STEPS.into_iter().find(|step| step * power >= rough * (1.0 - 1e-9)).unwrap_or(10.0);
    within * power
}

/// The greatest round number (1, 2 or 5 times a power of ten) that is not above `value`.
fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let within = STEPS.into_iter().rev().find(|step| step * power <= value * (1.0 + 1e-9)).unwrap_or(1.0);
    within * power
}

/// The least round number that is not below `value`.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let within = STEPS.into_iter().find(|step| step * power >= value * (1.0 - 1e-9)).unwrap_or(10.0);
    within * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: &[f64], expected: &[f64]) {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs();
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(near),
            "{found:?}, not {expected:?}"
        );
    }

    #[test]
    fn linear_ticks_are_round_and_end_with_the_axis() {
        let scale = Scale::linear([12.0, 41.3, 37.0], 5);
        assert_eq!(scale, Scale::Linear { high: 50.0 });
        assert_near(&scale.ticks(5), &[0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_near(&Scale::linear([0.29], 5).ticks(5), &[0.0, 0.1, 0.2, 0.3]);
        // An exact end is not pushed out by a rounding error.
        assert_eq!(Scale::linear([0.3], 3), Scale::linear([0.299], 3));
        assert_eq!(Scale::linear([], 5), Scale::Linear { high: 1.0 });
    }

    #[test]
    fn logarithmic_axes_end_on_round_numbers() {
        let scale = Scale::logarithmic([0.07, 41.0, 0.0]);
        assert_near(&[scale.place(0.05), scale.place(50.0)], &[0.0, 1.0]);
        assert_near(&scale.ticks(5), &[0.1, 1.0, 10.0]);
        assert_near(&Scale::logarithmic([3.0, 40.0]).ticks(6), &[2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_near(&Scale::logarithmic_exactly(1e4, 1e8).ticks(6), &[1e4, 1e5, 1e6, 1e7, 1e8]);
        assert_eq!(Scale::logarithmic([5.0]).ticks(4).first(), Some(&5.0));
    }

    #[test]
    fn places_are_shares_of_the_axis() {
        assert_near(&[Scale::Linear { high: 50.0 }.place(10.0)], &[0.2]);
        assert_near(&[Scale::logarithmic_exactly(10.0, 1000.0).place(100.0)], &[0.5]);
        assert!(Scale::Linear { high: 50.0 }.place(326.0) > 1.0);
    }
}
