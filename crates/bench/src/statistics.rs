//! Medians, quartiles, ratios with their intervals, and when a difference may be called one.
//!
//! Nothing here assumes a shape of the noise, and nothing is random: the same rounds give the same answer.
//!
//! * Within a run a ratio is taken round by round, where both servers met the same state of the machine
//!   (`Ratio::paired`). Its interval is the distribution-free one of a median: the narrowest pair of order
//!   statistics, symmetric by rank, that covers it with at least 95 % (binomial distribution with p = 1/2).
//! * Between two runs no round belongs to another. There the ratio is the median of all ratios of a round of one to a
//!   round of the other (Hodges and Lehmann, 1963, on logarithms), and its interval is the one that goes with the
//!   Mann–Whitney test (`Ratio::unpaired`).
//!
//! With few rounds no interval reaches 95 %; the widest there is is taken, and its coverage is said.

use linerate_figures::quantile;

/// The coverage that intervals are to have.
const COVERAGE: f64 = 0.95;

/// Below this coverage an interval decides nothing: four rounds side by side (87.5 %), two against many.
const LEAST_COVERAGE: f64 = 0.89;

/// The widest interval, as a share of the ratio, at which a ratio is quoted as one figure.
const SETTLED: f64 = 0.05;

/// A series summed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many values there are.
    pub count: usize,
    /// The middle value.
    pub median: f64,
    /// A quarter of the values lie below.
    pub lower_quartile: f64,
    /// A quarter of the values lie above.
    pub upper_quartile: f64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub greatest: f64,
    /// Lower end of the median's interval.
    pub interval_low: f64,
    /// Upper end of the median's interval.
    pub interval_high: f64,
    /// The chance that the interval holds the true median.
    pub coverage: f64,
}

impl Summary {
    /// Sums up `values`; `None` where there are none, or one is not a finite number.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        let left_out = most_left_out(sorted.len(), &sign_distribution(sorted.len()));
        Some(Self {
            count: sorted.len(),
            median: quantile(&sorted, 0.5)?,
            lower_quartile: quantile(&sorted, 0.25)?,
            upper_quartile: quantile(&sorted, 0.75)?,
            least: sorted[0],
            greatest: sorted[last],
            interval_low: sorted[left_out.count],
            interval_high: sorted[last - left_out.count],
            coverage: left_out.coverage,
        })
    }

    /// The range between the quartiles as a share of the median: the spread that a difference has to exceed.
    #[must_use]
    pub fn spread(&self) -> f64 {
        share(self.upper_quartile - self.lower_quartile, self.median)
    }

    /// Whether the median may be quoted as one figure, as [`Ratio::is_settled`] has it.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.coverage >= LEAST_COVERAGE && self.uncertainty() <= SETTLED
    }

    /// Width of the median's interval as a share of the median.
    #[must_use]
    pub(crate) fn uncertainty(&self) -> f64 {
        share(self.interval_high - self.interval_low, self.median)
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if part == 0.0 {
        0.0
    } else if whole == 0.0 {
        f64::INFINITY
    } else {
        part / whole.abs()
    }
}

/// How much one thing is of another: 1.1 is a tenth more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// The chance that the interval holds the true ratio.
    pub coverage: f64,
    /// The spread of what it was computed from, as a share: see [`Ratio::verdict`].
    pub spread: f64,
    /// Rounds that it was computed from: pairs, or those of the side that has fewer.
    pub rounds: usize,
}

/// What may be said about a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Too few rounds to say anything.
    TooFewRounds,
    /// The difference is within what the rounds differ among themselves.
    NoDifference,
    /// It is less.
    Less,
    /// It is more.
    More,
}

impl Ratio {
    /// `ours[n]` to `theirs[n]`, summed up over all rounds n. Rounds that one side lacks, or in which it has no
    /// positive value, are left out; `None` where none is left.
    #[must_use]
    pub fn paired(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Self> {
        let usable = |value: &Option<f64>| value.filter(|value| value.is_finite() && *value > 0.0);
        let by_round: Vec<f64> = ours
            .iter()
            .zip(theirs)
            .filter_map(|(ours, theirs)| Some(usable(ours)? / usable(theirs)?))
            .collect();
        let summary = Summary::of(&by_round)?;
        Some(Self {
            ratio: summary.median,
            low: summary.interval_low,
            high: summary.interval_high,
            coverage: summary.coverage,
            spread: summary.spread(),
            rounds: summary.count,
        })
    }

    /// `ours` to `theirs`, where no value of one belongs to one of the other. `None` where either is empty or has a
    /// value that is not positive.
    #[must_use]
    pub(crate) fn unpaired(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        if ours.iter().chain(theirs).any(|value| *value <= 0.0) {
            return None;
        }
        let spread = Summary::of(ours)?.spread().max(Summary::of(theirs)?.spread());
        let mut ratios: Vec<f64> =
            ours.iter().flat_map(|ours| theirs.iter().map(move |theirs| ours / theirs)).collect();
        ratios.sort_by(f64::total_cmp);
        let left_out = most_left_out(ratios.len(), &mann_whitney_distribution(ours.len(), theirs.len()));
        Some(Self {
            ratio: quantile(&ratios, 0.5)?,
            low: ratios[left_out.count],
            high: ratios[ratios.len() - 1 - left_out.count],
            coverage: left_out.coverage,
            spread,
            rounds: ours.len().min(theirs.len()),
        })
    }

    /// Whether it may be quoted as one figure: its interval is so narrow that another run of the same thing is expected
    /// to find the same within 5 %. Of others only the interval is told.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.coverage >= LEAST_COVERAGE && self.high - self.low <= SETTLED * self.ratio
    }

    /// What may be said: a difference is one if its interval leaves 1 out *and* it is larger than the spread. For
    /// rounds side by side the spread is the range between the quartiles of their ratios; between two runs it is the
    /// larger of both runs' own.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.coverage < LEAST_COVERAGE {
            return Verdict::TooFewRounds;
        }
        let beyond_spread = (self.ratio - 1.0).abs() > self.spread;
        match (self.low > 1.0, self.high < 1.0) {
            (true, _) if beyond_spread => Verdict::More,
            (_, true) if beyond_spread => Verdict::Less,
            _ => Verdict::NoDifference,
        }
    }
}

struct LeftOut {
    /// How many values are left out at each end.
    count: usize,
    /// What the rest covers.
    coverage: f64,
}

/// The most of `count` sorted values that may be left out at each end so that the rest covers the centre with
/// [`COVERAGE`]. `probabilities[n]` is the chance that exactly n of the values lie below the centre.
fn most_left_out(count: usize, probabilities: &[f64]) -> LeftOut {
    let mut below = probabilities[0];
    let mut found = LeftOut { count: 0, coverage: 1.0 - 2.0 * below };
    for (left_out, probability) in probabilities.iter().enumerate().skip(1) {
        below += probability;
        let coverage = 1.0 - 2.0 * below;
        if 2 * left_out >= count || coverage < COVERAGE {
            break;
        }
        found = LeftOut { count: left_out, coverage };
    }
    found
}

/// The chance that n of `count` values lie below their median: the lower half of the binomial distribution.
fn sign_distribution(count: usize) -> Vec<f64> {
    let mut term = 0.5_f64.powi(count as i32);
    let mut terms = Vec::with_capacity(count / 2 + 1);
    for below in 0..=count / 2 {
        terms.push(term);
        term *= (count - below) as f64 / (below + 1) as f64;
    }
    terms
}

/// The chance that n of all pairs of `ours` and `theirs` have the first below the second: the lower half of the
/// Mann–Whitney distribution, by its generating function, the Gaussian binomial coefficient.
fn mann_whitney_distribution(ours: usize, theirs: usize) -> Vec<f64> {
    let half = ours * theirs / 2;
    let mut ways = vec![0.0; half + 1];
    ways[0] = 1.0;
    for factor in 1..=ours {
        // Times (1 - q^(theirs + factor)), divided by (1 - q^factor).
        let up = theirs + factor;
        for at in (up..=half).rev() {
            ways[at] -= ways[at - up];
        }
        for at in factor..=half {
            ways[at] += ways[at - factor];
        }
    }
    let all: f64 = (1..=ours).map(|n| (theirs + n) as f64 / n as f64).product();
    ways.iter().map(|ways| ways / all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn quartiles_interpolate() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        close(summary.median, 2.5);
        close(summary.lower_quartile, 1.75);
        close(summary.upper_quartile, 3.25);
        close(summary.spread(), 0.6);
        assert_eq!((summary.count, summary.least, summary.greatest), (4, 1.0, 4.0));
    }

    #[test]
    fn nothing_and_no_numbers_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn intervals_are_those_of_the_sign_test() {
        let summary = |count: usize| Summary::of(&(1..=count).map(|n| n as f64).collect::<Vec<_>>()).unwrap();
        close(summary(1).coverage, 0.0);
        close(summary(5).coverage, 0.9375);
        close(summary(6).coverage, 0.96875);
        // Tables of the sign test: n = 9, second from either end, 96.09 %.
        close(summary(9).coverage, 1.0 - 2.0 * 10.0 / 512.0);
        assert_eq!((summary(9).interval_low, summary(9).interval_high), (2.0, 8.0));
        assert_eq!((summary(30).interval_low, summary(30).interval_high), (10.0, 21.0));
    }

    #[test]
    fn an_outlier_moves_neither_median_nor_interval_once_there_are_enough() {
        let mut values = vec![1.0; 8];
        values.push(5.0);
        let summary = Summary::of(&values).unwrap();
        close(summary.uncertainty(), 0.0);
        close(summary.median, 1.0);
    }

    #[test]
    fn paired_ratios_do_not_see_what_both_sides_met() {
        // The machine is twice as slow in every second round.
        let ours: Vec<_> = (0..6).map(|round| Some(1.1 * f64::from(1 + round % 2))).collect();
        let theirs: Vec<_> = (0..6).map(|round| Some(f64::from(1 + round % 2))).collect();
        let ratio = Ratio::paired(&ours, &theirs).unwrap();
        close(ratio.ratio, 1.1);
        assert_eq!(ratio.verdict(), Verdict::More);
        assert_eq!(Ratio::paired(&theirs, &ours).unwrap().verdict(), Verdict::Less);
        assert_eq!(Ratio::paired(&ours, &ours).unwrap().verdict(), Verdict::NoDifference);
    }

    #[test]
    fn failed_rounds_take_their_partners_along() {
        let ours = [Some(2.0), None, Some(2.0), Some(0.0)];
        let theirs = [Some(1.0), Some(1.0), Some(1.0), Some(1.0)];
        let ratio = Ratio::paired(&ours, &theirs).unwrap();
        assert_eq!(ratio.rounds, 2);
        close(ratio.ratio, 2.0);
        assert_eq!(ratio.verdict(), Verdict::TooFewRounds);
        assert_eq!(Ratio::paired(&[None], &[Some(1.0)]), None);
    }

    #[test]
    fn the_mann_whitney_distribution_is_the_published_one() {
        // 3 and 3: 1, 1, 2, 3, 3, 3, 3, 2, 1, 1 ways out of 20.
        let found = mann_whitney_distribution(3, 3);
        for (found, expected) in found.iter().zip([1.0, 1.0, 2.0, 3.0, 3.0]) {
            close(*found, expected / 20.0);
        }
        // 5 and 5: tables give P(U <= 2) = 4/252, P(U <= 3) = 7/252: at 95 % the outer 2 of 25 are left out.
        let five: Vec<f64> = mann_whitney_distribution(5, 5);
        close(five[..3].iter().sum(), 4.0 / 252.0);
        close(five[..4].iter().sum(), 7.0 / 252.0);
        assert_eq!(most_left_out(25, &five).count, 2);
    }

    #[test]
    fn unpaired_ratios_find_a_tenth_above_noise_of_a_twentieth() {
        let before = [1.00, 1.02, 0.99, 1.01, 1.03, 0.98, 1.00];
        let after = before.map(|value| value * 1.1);
        let ratio = Ratio::unpaired(&after, &before).unwrap();
        close(ratio.ratio, 1.1);
        assert!(ratio.low > 1.05 && ratio.high < 1.15, "{ratio:?}");
        assert_eq!(ratio.verdict(), Verdict::More);
        assert_eq!(Ratio::unpaired(&before, &after).unwrap().verdict(), Verdict::Less);
    }

    #[test]
    fn a_difference_smaller_than_the_spread_is_none() {
        // Disjoint, so that the interval leaves 1 out, but each side spreads over more than they differ.
        let before = [1.00, 1.10, 1.20, 1.30];
        let after = [1.31, 1.32, 1.50, 1.60];
        let ratio = Ratio::unpaired(&after, &before).unwrap();
        assert!(ratio.low > 1.0 && ratio.ratio < 1.3, "{ratio:?}");
        assert_eq!(Ratio { spread: 0.4, ..ratio }.verdict(), Verdict::NoDifference);
        assert_eq!(Ratio { spread: 0.1, ..ratio }.verdict(), Verdict::More);
    }

    #[test]
    fn what_two_runs_quote_agrees_within_five_percent() {
        // A fixed sequence, 2000 pairs of runs on machines of all degrees of restlessness: what both sides of a round meet
        // varies by a fifth, what one of them alone meets by up to a tenth.
        let mut state = 7_u64;
        let mut uniform = || {
            state = state * 48_271 % 2_147_483_647;
            state as f64 / 2_147_483_647.0 - 0.5
        };
        let (mut quoted, mut apart) = (0, 0);
        for pair in 0..2000 {
            let restlessness = 0.1 * f64::from(pair % 10) / 10.0;
            let mut run = |rounds: usize| {
                let mut ours = Vec::new();
                let mut theirs = Vec::new();
                for _ in 0..rounds {
                    let machine = 1.0 + 0.4 * uniform();
                    ours.push(Some(0.62 * machine * (1.0 + restlessness * uniform())));
                    theirs.push(Some(machine * (1.0 + restlessness * uniform())));
                }
                Ratio::paired(&ours, &theirs).unwrap()
            };
            let (before, after) = (run(5 + pair as usize % 11), run(5 + pair as usize % 7));
            if before.is_settled() && after.is_settled() {
                quoted += 1;
                apart += usize::from((after.ratio / before.ratio - 1.0).abs() >= 0.05);
            }
        }
        assert!(quoted > 700, "only {quoted} of 2000 are quoted by both");
        assert!(apart == 0, "{apart} of {quoted} quoted pairs differ by 5 % or more");
        // One of few rounds is never quoted, however close they are.
        let four = Ratio::paired(&[Some(1.0); 4], &[Some(2.0); 4]).unwrap();
        assert!(!four.is_settled());
        assert!(Ratio::paired(&[Some(1.0); 5], &[Some(2.0); 5]).unwrap().is_settled());
    }

    #[test]
    fn noise_alone_is_seldom_called_a_difference() {
        // A fixed sequence (Park and Miller's generator), 2000 comparisons of 5 rounds with 5 of the same thing.
        let mut state = 42_u64;
        let mut uniform = || {
            state = state * 48_271 % 2_147_483_647;
            state as f64 / 2_147_483_647.0
        };
        let mut found = 0;
        for _ in 0..2000 {
            let mut rounds = || (0..5).map(|_| 1.0 + 0.1 * uniform()).collect::<Vec<_>>();
            let (ours, theirs) = (rounds(), rounds());
            let verdict = Ratio::unpaired(&ours, &theirs).unwrap().verdict();
            found += usize::from(verdict != Verdict::NoDifference);
        }
        assert!(found <= 100, "{found} of 2000 are more than 5 %");
    }
}
