//! What the user sees while a run goes on: how far it is, what it found, how long it will still take.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Before so many slices the estimate is the plan's.
const SLICES_TO_LEARN: usize = 4;

/// A run's progress, on standard error: one line that changes on a terminal, a line for each round elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    is_terminal: bool,
    is_line_open: bool,
    slices: usize,
    done: usize,
    left_s: f64,
    done_expected_s: f64,
    began: Instant,
    round: Option<u32>,
}

impl Progress {
    /// For so many slices that are expected to take so long.
    pub(crate) fn new(slices: usize, expected_s: f64) -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            is_line_open: false,
            slices,
            done: 0,
            left_s: expected_s,
            done_expected_s: 0.0,
            began: Instant::now(),
            round: None,
        }
    }

    /// A slice begins: `what` is measured in round `round` (from 0) of `rounds`.
    pub(crate) fn slice(&mut self, what: &str, round: u32, rounds: u32) {
        let left = duration_text(self.left_s());
        let text =
            format!("[{}/{}] round {} of {rounds}, {left} left", self.done + 1, self.slices, round + 1);
        if self.is_terminal {
            self.show(&format!("{text}: {what}"));
        } else if self.round.replace(round) != Some(round) {
            self.say(&text);
        }
    }

    /// There are so many slices more, which are expected to take so long.
    pub(crate) fn add(&mut self, slices: usize, expected_s: f64) {
        self.slices += slices;
        self.left_s += expected_s;
    }

    /// The slice is over, which was expected to take so long.
    pub(crate) fn slice_done(&mut self, expected_s: f64) {
        self.done += 1;
        self.left_s = (self.left_s - expected_s).max(0.0);
        self.done_expected_s += expected_s;
    }

    /// Something that is to stay on the screen.
    pub(crate) fn say(&mut self, text: &str) {
        let mut errors = std::io::stderr().lock();
        let end = if self.is_line_open { "\r\x1b[K" } else { "" };
        self.is_line_open = false;
        // Nobody may be reading: the run goes on.
        let _ = writeln!(errors, "{end}{text}");
    }

    /// Something that is true for the moment.
    pub(crate) fn show(&mut self, text: &str) {
        if self.is_terminal {
            let mut errors = std::io::stderr().lock();
            let _ = write!(errors, "\r\x1b[K{}", shortened(text)).and_then(|()| errors.flush());
            self.is_line_open = true;
        }
    }

    /// Removes the line that changes.
    pub(crate) fn close(&mut self) {
        if std::mem::take(&mut self.is_line_open) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    fn left_s(&self) -> f64 {
        estimate_s(self.left_s, self.done, self.began.elapsed().as_secs_f64(), self.done_expected_s)
    }
}

/// What is left, by the plan and by how far the plan was off until now.
fn estimate_s(planned_left_s: f64, done: usize, took_s: f64, was_planned_s: f64) -> f64 {
    if done < SLICES_TO_LEARN || was_planned_s <= 0.0 {
        return planned_left_s;
    }
    planned_left_s * took_s / was_planned_s
}

/// A terminal line that wraps could not be taken back.
fn shortened(text: &str) -> String {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(80_usize);
    text.chars().take(columns.max(20) - 1).collect()
}

/// To the second: "45 s", "1 min 50 s", "2 h 5 min".
pub(crate) fn duration_text(seconds: f64) -> String {
    linerate_figures::duration(Duration::from_secs(seconds.max(0.0).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_by_people() {
        let texts = [0.4, 45.0, 59.6, 110.0, 3600.0, 7500.0].map(duration_text);
        assert_eq!(texts, ["0 s", "45 s", "1 min", "1 min 50 s", "1 h", "2 h 5 min"]);
    }

    #[test]
    fn the_estimate_learns_from_what_was_done() {
        // A slice planned for 2 s takes 3 s.
        assert!((estimate_s(20.0, 3, 9.0, 6.0) - 20.0).abs() < 1e-9, "too early to learn");
        assert!((estimate_s(20.0, 10, 30.0, 20.0) - 30.0).abs() < 1e-9);
        let mut progress = Progress::new(4, 8.0);
        progress.slice_done(2.0);
        assert!((progress.left_s() - 6.0).abs() < 1e-9);
    }
}
