//! What the client itself costs, and whether it was the limit.

use linerate_os::usage::ThreadCpu;

use crate::{job::Outcome, report::ClientCost};

/// A thread that was running, or waiting for a CPU, for more of the time than this had nothing left to give.
const LIMITED_SHARE: f64 = 0.95;

/// How long the calling thread has waited for a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited(Option<f64>);

impl Waited {
    /// So far, in seconds.
    pub(crate) fn now() -> Self {
        Self(std::fs::read_to_string("/proc/thread-self/schedstat").ok().and_then(|line| waited_s(&line)))
    }

    /// Since then.
    pub(crate) fn elapsed_s(self) -> Option<f64> {
        Some(Self::now().0? - self.0?)
    }
}

/// The second number of a schedstat: nanoseconds on a run queue (Documentation/scheduler/sched-stats.rst).
fn waited_s(line: &str) -> Option<f64> {
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|nanoseconds| nanoseconds as f64 / 1e9)
}

/// The costs of all threads, `control` being that of the one that only looks on.
pub(crate) fn of_threads(outcomes: &[Outcome], control: ThreadCpu, measured_s: f64) -> ClientCost {
    let share = |seconds: f64| if measured_s > 0.0 { (seconds / measured_s).min(1.0) } else { 0.0 };
    let busiest = outcomes.iter().max_by(|one, other| used_s(one).total_cmp(&used_s(other)));
    ClientCost {
        user_s: control.user_s + outcomes.iter().map(|outcome| outcome.cpu.user_s).sum::<f64>(),
        system_s: control.system_s + outcomes.iter().map(|outcome| outcome.cpu.system_s).sum::<f64>(),
        threads: outcomes.len() as u32,
        busiest_running: busiest.map_or(0.0, |outcome| share(outcome.cpu.user_s + outcome.cpu.system_s)),
        busiest_waiting: busiest.and_then(|outcome| outcome.waited_s).map(share),
    }
}

fn used_s(outcome: &Outcome) -> f64 {
    outcome.cpu.user_s + outcome.cpu.system_s + outcome.waited_s.unwrap_or(0.0)
}

/// Why the client was the limit, if it was. A thread that spins is always running: what counts is whether it ever looked in
/// vain.
pub(crate) fn limit(cost: &ClientCost, outcomes: &[Outcome]) -> Option<String> {
    let fruitful = outcomes.iter().filter_map(|outcome| outcome.fruitful_looks).reduce(f64::max);
    match fruitful {
        Some(share) => limit_of_spinning(share),
        None => limit_of_sleeping(cost),
    }
}

fn limit_of_spinning(fruitful_share: f64) -> Option<String> {
    (fruitful_share > LIMITED_SHARE).then(|| {
        let percent = fruitful_share * 100.0;
        format!("the busiest thread found something to do {percent:.0} % of the times that it looked: use more threads (-t)")
    })
}

fn limit_of_sleeping(cost: &ClientCost) -> Option<String> {
    let waiting = cost.busiest_waiting.unwrap_or(0.0);
    if cost.busiest_running + waiting < LIMITED_SHARE {
        return None;
    }
    let advice = if waiting > 0.25 {
        "other work had its CPU: give it one of its own (--cpus)"
    } else {
        "use more threads (-t), on CPUs that the server does not use (--cpus), or --discard"
    };
    Some(format!(
        "the busiest of {} threads was running {:.0} % of the time and waiting for a CPU {:.0} %: {advice}",
        cost.threads,
        cost.busiest_running * 100.0,
        waiting * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_rest_is_the_limit() {
        let mut cost = ClientCost { threads: 2, busiest_running: 0.9, ..ClientCost::default() };
        let limit = |cost: &ClientCost| limit(cost, &[]);
        assert_eq!(limit(&cost), None);
        cost.busiest_waiting = Some(0.04);
        assert_eq!(limit(&cost), None);
        cost.busiest_waiting = Some(0.06);
        assert!(
            limit(&cost).unwrap().contains("running 90 % of the time and waiting for a CPU 6 %: use more")
        );
        cost.busiest_running = 0.5;
        cost.busiest_waiting = Some(0.49);
        assert!(limit(&cost).unwrap().contains("other work had its CPU"));
    }

    #[test]
    fn a_thread_that_spins_is_the_limit_where_it_never_looks_in_vain() {
        assert_eq!(limit_of_spinning(0.95), None);
        assert!(limit_of_spinning(0.96).unwrap().contains("found something to do 96 % of the times"));
    }

    #[test]
    fn the_kernel_tells_how_long_a_thread_waited() {
        assert_eq!(waited_s("123 4500000000 7\n"), Some(4.5));
        assert_eq!(waited_s(""), None);
        assert!(Waited::now().0.is_none_or(|waited| waited >= 0.0));
    }
}
