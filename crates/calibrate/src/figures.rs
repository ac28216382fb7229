//! What was measured, round by round: medians count, and how far rounds differ is told.

use std::collections::BTreeMap;

use linerate_figures::{quantile, rounded};

/// Samples by name; names end with their unit.
#[derive(Clone, Debug, Default)]
pub struct Figures(BTreeMap<String, Vec<f64>>);

/// Rounds that differ by more than this share of their median, over the middle half of them, are told.
const UNSTEADY: f64 = 0.15;
/// So many of them are named.
const NAMED: usize = 3;

impl Figures {
    /// Adds a round's figure.
    pub(crate) fn add(&mut self, name: impl Into<String>, figure: f64) {
        self.0.entry(name.into()).or_default().push(figure);
    }

    /// The median of a figure's rounds; `None` if it was not measured.
    #[must_use]
    pub fn median(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(|samples| quantile(samples, 0.5))
    }

    /// How far the rounds of a figure differ: the distance between its quartiles as a share of the median.
    #[must_use]
    pub fn spread(&self, name: &str) -> Option<f64> {
        let samples = self.0.get(name)?;
        let (low, middle, high) =
            (quantile(samples, 0.25)?, quantile(samples, 0.5)?, quantile(samples, 0.75)?);
        (middle > 0.0).then(|| (high - low) / middle)
    }

    /// All medians by name, to three digits.
    pub(crate) fn medians(&self) -> BTreeMap<String, f64> {
        self.0.keys().filter_map(|name| Some((name.clone(), rounded(self.median(name)?, 3)))).collect()
    }

    /// What differed much from round to round, in words: how much of it, and what most.
    pub(crate) fn unsteady(&self) -> Option<String> {
        let spread =
            |name: &String| Some((self.spread(name).filter(|spread| *spread > UNSTEADY)?, name.clone()));
        let mut unsteady: Vec<(f64, String)> = self.0.keys().filter_map(spread).collect();
        unsteady.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let most =
            unsteady.iter().take(NAMED).map(|(spread, name)| format!("{name} by {:.0} %", spread * 100.0));
        let most = most.collect::<Vec<_>>().join(", ");
        (!unsteady.is_empty()).then(|| {
            format!(
                "{} of {} figures differed from round to round by more than {:.0} % (quartiles), most of all {most}",
                unsteady.len(),
                self.0.len(),
                UNSTEADY * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_and_the_spread_is_told() {
        let mut figures = Figures::default();
        for figure in [5.0, 1.0, 3.0, 100.0, 4.0] {
            figures.add("a_ns", figure);
            figures.add("b_ns", 7.0);
        }
        assert_eq!(figures.median("a_ns"), Some(4.0));
        assert_eq!(figures.spread("a_ns"), Some(0.5));
        assert_eq!(figures.median("c_ns"), None);
        let unsteady = "1 of 2 figures differed from round to round by more than 15 % (quartiles), most of all a_ns by 50 %";
        assert_eq!(figures.unsteady().as_deref(), Some(unsteady));
        assert_eq!(figures.medians().get("b_ns"), Some(&7.0));
    }
}
