//! How fast an adapter is asked for set-ups: what a set-up took tells whether they queue there.
//!
//! The calibrated rate may be wrong, and others may use the adapter, too. Asking for more than is left makes a queue,
//! in which each set-up takes longer than the one before. So:
//!
//! - The *usual* time is the least that a set-up took, forgotten slowly ([`Pace::FORGETS`]).
//! - Over a span of at least [`Pace::SPAN_NS`] and [`Pace::SPAN_SET_UPS`] set-ups the quickest one is held against the usual
//!   time. A burst that drains leaves a quick one in each span. Where even the quickest took over twice the usual time
//!   the queue *stands*, and the rate shrinks by a twentieth with each such span in which it has not become shorter. (CoDel's
//!   question, RFC 8289 section 3.2: the least delay of an interval tells a queue that stands from one that comes and goes.)
//! - The queue is *gone* when the quickest took less than 1.5 times the usual time; what lies between changes nothing
//!   (hysteresis). While none stands the rate grows by a tenth of the most a second, up to the most.
//! - What was seen ten seconds ago counts no more: the rate grows again.
//!
//! Additive increase, multiplicative decrease: several workers, each with a pace of its own, come to like shares, as TCP's
//! connections do. The rate stays between a sixty-fourth of the most and the most, so that there is always something to see.

/// The rate at which set-ups may be asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pace {
    most_per_s: f64,
    rate_per_s: f64,
    /// What a set-up takes with nobody before it.
    usual_ns: f64,
    stands: bool,
    span: Span,
    /// The quickest of the span before, beside the usual time.
    queued_ns: f64,
    /// When a span ended last.
    judged_ns: u64,
    /// The latest time that was heard of.
    now_ns: u64,
}

/// Set-ups since the last judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    began_ns: u64,
    set_ups: u32,
    quickest_ns: f64,
}

impl Span {
    const fn new(began_ns: u64) -> Self {
        Self { began_ns, set_ups: 0, quickest_ns: f64::INFINITY }
    }
}

impl Pace {
    const SPAN_NS: u64 = 100_000_000;
    const SPAN_SET_UPS: u32 = 8;
    /// What a thread's waking up may take beside the adapter.
    const NOISE_NS: f64 = 100_000.0;
    const STANDS: f64 = 2.0;
    const GONE: f64 = 1.5;
    const SHRINKS: f64 = 0.95;
    /// A queue of which so much is left after a span is not becoming shorter.
    const SHORTER: f64 = 0.9;
    /// Of the most, in a second.
    const GROWS: f64 = 0.1;
    const LEAST: f64 = 1.0 / 64.0;
    /// A span makes the usual time longer by no more than this: in a queue that others keep up it doubles in a quarter of a
    /// minute. After that the queue is how the adapter is.
    const FORGETS: f64 = 1.005;
    const OLD_NS: u64 = 10_000_000_000;

    /// Begins with the most.
    pub(crate) const fn new(most_per_s: f64) -> Self {
        Self {
            most_per_s,
            rate_per_s: most_per_s,
            usual_ns: f64::INFINITY,
            stands: false,
            span: Span::new(0),
            queued_ns: 0.0,
            judged_ns: 0,
            now_ns: 0,
        }
    }

    /// The most that it grows to.
    pub(crate) fn most_per_s(&self) -> f64 {
        self.most_per_s
    }

    /// Set-ups a second at this moment.
    pub(crate) fn rate_per_s(&self) -> f64 {
        self.rate_per_s
    }

    /// Time passes. A clock that goes back stands.
    pub(crate) fn pass(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        if self.stands && self.now_ns.saturating_sub(self.judged_ns) >= Self::OLD_NS {
            self.stands = false;
        }
        if !self.stands {
            let grown_per_s = self.rate_per_s + elapsed_ns as f64 * 1e-9 * Self::GROWS * self.most_per_s;
            self.rate_per_s = grown_per_s.min(self.most_per_s);
        }
    }

    /// The adapter took a connection, in so much time. Refusals say nothing: they need not reach the adapter.
    pub(crate) fn took(&mut self, took_ns: u64, now_ns: u64) {
        self.pass(now_ns);
        self.span.set_ups += 1;
        self.span.quickest_ns = self.span.quickest_ns.min(took_ns as f64);
        if self.span.set_ups >= Self::SPAN_SET_UPS
            && self.now_ns.saturating_sub(self.span.began_ns) >= Self::SPAN_NS
        {
            self.judge();
        }
    }

    fn judge(&mut self) {
        let quickest_ns = self.span.quickest_ns;
        self.usual_ns = (self.usual_ns * Self::FORGETS).min(quickest_ns);
        let over_ns = quickest_ns - Self::NOISE_NS;
        let before_ns = std::mem::replace(&mut self.queued_ns, quickest_ns - self.usual_ns);
        if over_ns > Self::STANDS * self.usual_ns {
            self.stands = true;
            if self.queued_ns > Self::SHORTER * before_ns {
                self.rate_per_s = (self.rate_per_s * Self::SHRINKS).max(self.most_per_s * Self::LEAST);
            }
        } else if over_ns < Self::GONE * self.usual_ns {
            self.stands = false;
        }
        self.judged_ns = self.now_ns;
        self.span = Span::new(self.now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000_000_000;

    /// An adapter that takes one set-up after the other, and workers that ask for as many as they may. `others` tells how
    /// many set-ups a second others ask for.
    struct Adapter {
        takes_ns: u64,
        free_ns: u64,
        paces: Vec<Pace>,
        levels: Vec<f64>,
        /// (when it is over, who asked, what it took).
        under_way: VecDeque<(u64, Option<usize>, u64)>,
        now_ns: u64,
        others_level: f64,
    }

    /// What came of a span of time.
    struct Came {
        ours_per_s: f64,
        mean_wait_ns: f64,
    }

    impl Adapter {
        const STEP_NS: u64 = 50_000;
        /// Under way at once, of a worker.
        const PLACES: usize = 4;

        fn new(does_per_s: f64, most_per_s: f64, workers: usize) -> Self {
            Self {
                takes_ns: (1e9 / does_per_s) as u64,
                free_ns: 0,
                paces: vec![Pace::new(most_per_s / workers as f64); workers],
                levels: vec![0.0; workers],
                under_way: VecDeque::new(),
                now_ns: 0,
                others_level: 0.0,
            }
        }

        fn ask(&mut self, who: Option<usize>) {
            let over_ns = self.free_ns.max(self.now_ns) + self.takes_ns;
            self.free_ns = over_ns;
            self.under_way.push_back((over_ns, who, over_ns - self.now_ns));
        }

        fn run(&mut self, for_ns: u64, others_per_s: f64) -> Came {
            let (end_ns, mut made, mut waited_ns) = (self.now_ns + for_ns, 0u64, 0u64);
            while self.now_ns < end_ns {
                self.now_ns += Self::STEP_NS;
                let step_s = Self::STEP_NS as f64 * 1e-9;
                while self.under_way.front().is_some_and(|&(over_ns, ..)| over_ns <= self.now_ns) {
                    let Some((_, who, took_ns)) = self.under_way.pop_front() else { break };
                    if let Some(worker) = who {
                        self.paces[worker].took(took_ns, self.now_ns);
                        made += 1;
                        waited_ns += took_ns;
                    }
                }
                // Others drop what an adapter with a second of work does not take.
                self.others_level += others_per_s * step_s;
                while self.others_level >= 1.0 {
                    self.others_level -= 1.0;
                    if self.free_ns < self.now_ns + S {
                        self.ask(None);
                    }
                }
                for worker in 0..self.paces.len() {
                    self.paces[worker].pass(self.now_ns);
                    self.levels[worker] =
                        (self.levels[worker] + self.paces[worker].rate_per_s() * step_s).min(4.0);
                    let has_place = |adapter: &Self| {
                        adapter.under_way.iter().filter(|(_, who, _)| *who == Some(worker)).count()
                            < Self::PLACES
                    };
                    while self.levels[worker] >= 1.0 && has_place(self) {
                        self.levels[worker] -= 1.0;
                        self.ask(Some(worker));
                    }
                }
            }
            Came {
                ours_per_s: made as f64 / (for_ns as f64 * 1e-9),
                mean_wait_ns: waited_ns as f64 / made.max(1) as f64,
            }
        }
    }

    #[test]
    fn a_rate_that_is_right_is_kept() {
        for workers in [1, 8] {
            let mut adapter = Adapter::new(850.0, 850.0, workers);
            let came = adapter.run(20 * S, 0.0);
            assert!(came.ours_per_s > 0.95 * 850.0, "{workers} workers: {} a second", came.ours_per_s);
        }
    }

    /// Of an adapter that does a third of what it was said to do nearly all is used, and the queue stays short.
    #[test]
    fn a_rate_that_is_wrong_is_found() {
        for workers in [1, 8] {
            let mut adapter = Adapter::new(850.0, 2550.0, workers);
            adapter.run(10 * S, 0.0);
            let came = adapter.run(30 * S, 0.0);
            assert!(came.ours_per_s > 0.85 * 850.0, "{workers} workers: {} a second", came.ours_per_s);
            let places = came.mean_wait_ns / adapter.takes_ns as f64;
            assert!(
                places < if workers == 1 { 4.0 } else { 12.0 },
                "{workers} workers: {places} in the queue"
            );
        }
    }

    #[test]
    fn others_have_their_part_and_the_rate_comes_back() {
        let mut adapter = Adapter::new(850.0, 850.0, 4);
        adapter.run(5 * S, 0.0);
        let beside = adapter.run(30 * S, 400.0);
        assert!((300.0..470.0).contains(&beside.ours_per_s), "{} a second beside 400", beside.ours_per_s);
        let places = beside.mean_wait_ns / adapter.takes_ns as f64;
        assert!(places < 12.0, "{places} in the queue");
        adapter.run(15 * S, 0.0);
        let alone = adapter.run(10 * S, 0.0);
        assert!(alone.ours_per_s > 0.95 * 850.0, "{} a second alone", alone.ours_per_s);
    }

    #[test]
    fn it_stays_within_its_bounds_and_comes_back_when_nobody_asks() {
        let mut pace = Pace::new(1000.0);
        let mut now_ns = 0;
        for set_up in 0..10_000 {
            now_ns += 20 * MS;
            // Longer and longer: it always looks as if a queue stood.
            pace.took(MS + set_up * 10 * MS, now_ns);
            assert!((1000.0 / 64.0..=1000.0).contains(&pace.rate_per_s()));
        }
        assert_eq!(pace.rate_per_s(), 1000.0 / 64.0);
        pace.pass(now_ns + 9 * S);
        assert_eq!(pace.rate_per_s(), 1000.0 / 64.0, "what was seen still counts");
        pace.pass(now_ns + 10 * S);
        let before = pace.rate_per_s();
        pace.pass(now_ns + 11 * S);
        assert!((pace.rate_per_s() - before - 100.0).abs() < 1.0, "a tenth of the most in a second");
        pace.pass(now_ns + 60 * S);
        assert_eq!(pace.rate_per_s(), 1000.0);
    }

    #[test]
    fn a_burst_that_drains_changes_nothing() {
        let mut pace = Pace::new(1000.0);
        let mut now_ns = 0;
        for _ in 0..100 {
            // Twenty at once, each behind the one before, then a pause.
            for before in 0..20 {
                now_ns += MS;
                pace.took((before + 1) * MS, now_ns);
            }
            now_ns += 100 * MS;
            assert_eq!(pace.rate_per_s(), 1000.0);
        }
    }

    /// The rates after set-ups that came every 20 ms: how long they took, and how many of them.
    fn rates_after<const SPANS: usize>(spans: [(u64, u32); SPANS]) -> [f64; SPANS] {
        let mut pace = Pace::new(1000.0);
        let mut now_ns = 0;
        spans.map(|(took_ns, times)| {
            for _ in 0..times {
                now_ns += 20 * MS;
                pace.took(took_ns, now_ns);
            }
            pace.rate_per_s()
        })
    }

    #[test]
    fn a_queue_that_becomes_shorter_is_given_time() {
        let spans = [(10 * MS, 8), (30 * MS, 8), (272 * MS / 10, 8), (27 * MS, 8)];
        assert_eq!(rates_after(spans), [1000.0, 950.0, 950.0, 902.5]);
    }

    /// Others keep it up, or the adapter has become slower: what it takes now is the usual time.
    #[test]
    fn a_queue_that_never_ends_is_how_the_adapter_is() {
        let [_, shrunk, later] = rates_after([(10 * MS, 8), (30 * MS, 80), (30 * MS, 8000)]);
        assert!(shrunk < 700.0 && later == 1000.0, "{shrunk}, then {later}");
    }

    #[test]
    fn what_waking_a_thread_takes_is_no_queue() {
        assert_eq!(rates_after([(50_000, 8), (150_000, 80)]), [1000.0; 2]);
    }

    /// Between "stands" and "gone" nothing changes: neither shrinks nor grows.
    #[test]
    fn what_is_neither_long_nor_short_changes_nothing() {
        let [_, shrunk, same, grown] =
            rates_after([(10 * MS, 8), (30 * MS, 8), (18 * MS, 80), (13 * MS, 16)]);
        assert!(shrunk == 950.0 && same == shrunk && grown > shrunk);
    }
}
