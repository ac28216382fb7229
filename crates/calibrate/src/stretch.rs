//! How long a thing is measured in a round: until there was enough of it, or the time is up, so that slow machines
//! take no longer than fast ones.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enough {
    /// Of these there is enough.
    pub(crate) units: u64,
    /// So long at most, but for a step that has begun.
    pub(crate) time: Duration,
}

/// What a unit costs this thread, in nanoseconds of CPU time. `step` does some units and says how many.
pub(crate) fn cost_of_each_ns<E>(enough: Enough, mut step: impl FnMut() -> Result<u64, E>) -> Result<f64, E> {
    let (began, began_ns) = (Instant::now(), cpu_ns());
    let mut units = 0;
    loop {
        units += step()?;
        if units >= enough.units || began.elapsed() >= enough.time {
            return Ok((cpu_ns() - began_ns) / units.max(1) as f64);
        }
    }
}

/// CPU time of this thread, in nanoseconds.
pub(crate) fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// More than this from one reading of CPU time to the next, and short things cannot be told by it.
const COARSE_NS: f64 = 1e6;
/// So long is a tick looked for: longer ones nobody has.
const LONGEST_TICK: Duration = Duration::from_millis(25);

/// What to know of CPU time as this kernel tells it, in words; nothing if it is exact. Without a steady counter (some
/// virtual machines) it goes by the scheduler's ticks.
pub(crate) fn coarseness() -> Option<String> {
    let next = |last_ns: f64| {
        let began = Instant::now();
        while cpu_ns() == last_ns && began.elapsed() < LONGEST_TICK {}
        cpu_ns()
    };
    let first_ns = next(cpu_ns());
    let tick_ns = next(first_ns) - first_ns;
    (tick_ns > COARSE_NS).then(|| {
        format!("this kernel tells CPU time in steps of {:.0} ms: what is short is not exact", tick_ns / 1e6)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// How many steps it takes.
    fn steps(enough: Enough, step_time: Duration) -> u32 {
        let mut steps = 0;
        let Ok(each_ns) = cost_of_each_ns::<Infallible>(enough, || {
            steps += 1;
            std::thread::sleep(step_time);
            Ok(10)
        });
        assert!((0.0..1e6).contains(&each_ns), "sleeping costs next to nothing: {each_ns}");
        steps
    }

    #[test]
    fn it_ends_when_there_is_enough_or_the_time_is_up() {
        let long = Duration::from_secs(60);
        assert_eq!(steps(Enough { units: 35, time: long }, Duration::ZERO), 4);
        // A step of 10 ms: one that has begun ends.
        let short = Enough { units: u64::MAX, time: Duration::from_millis(1) };
        assert_eq!(steps(short, Duration::from_millis(10)), 1);
    }
}
