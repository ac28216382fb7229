//! Whether the machine was quiet while it was measured: what others computed, and what a hypervisor took.

use rustix::time::{ClockId, clock_gettime};

/// More than this share of the machine's time for others, and it is told.
const LOUD: f64 = 0.05;

/// What /proc/stat says, in ticks, and this process' own time.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    busy: f64,
    stolen: f64,
    total: f64,
}

/// Looks at the machine at the beginning and at the end.
pub(crate) struct Watch {
    before: Option<Reading>,
    own_before_s: f64,
}

impl Watch {
    pub(crate) fn begin() -> Self {
        Self { before: read(), own_before_s: own_s() }
    }

    /// What to know of the time in between, in words; nothing if it was quiet.
    pub(crate) fn end(self) -> Option<String> {
        let (Some(before), Some(after)) = (self.before, read()) else {
            return Some("whether the machine was quiet is not known: /proc/stat cannot be read".to_owned());
        };
        let between = Reading {
            busy: after.busy - before.busy,
            stolen: after.stolen - before.stolen,
            total: after.total - before.total,
        };
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        in_words(between, (own_s() - self.own_before_s) * ticks_per_s)
    }
}

fn in_words(between: Reading, own: f64) -> Option<String> {
    if between.total <= 0.0 {
        return Some("whether the machine was quiet is not known: it took no time".to_owned());
    }
    let others = ((between.busy - own) / between.total).max(0.0);
    let stolen = between.stolen / between.total;
    (others > LOUD || stolen > LOUD).then(|| {
        format!(
            "the machine was not quiet: {:.0} % of its CPU time went to others, {:.0} % to other virtual machines",
            others * 100.0,
            stolen * 100.0
        )
    })
}

/// CPU time of this process so far, in seconds.
fn own_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn read() -> Option<Reading> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The first line: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)); what guests took is in user.
fn parse(stat: &str) -> Option<Reading> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<f64> = fields.split_ascii_whitespace().filter_map(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen, ..] = fields[..] else {
        return None;
    };
    let busy = user + nice + system + interrupts + soft_interrupts;
    Some(Reading { busy, stolen, total: busy + idle + waiting + stolen })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_read() {
        let reading = parse("cpu  100 5 50 800 10 3 7 25 0 0\ncpu0 1 2\n").expect("eight fields");
        assert_eq!((reading.busy, reading.stolen, reading.total), (165.0, 25.0, 1000.0));
        assert!(parse("cpu 1 2\n").is_none() && parse("").is_none());
    }

    #[test]
    fn others_are_told_apart_from_oneself() {
        let between = Reading { busy: 500.0, stolen: 0.0, total: 1000.0 };
        assert_eq!(in_words(between, 490.0), None);
        assert!(in_words(between, 300.0).expect("loud").contains("20 % of its CPU time went to others"));
        let stolen = Reading { stolen: 100.0, ..between };
        assert!(in_words(stolen, 500.0).expect("loud").contains("10 % to other virtual machines"));
        assert!(in_words(Reading::default(), 0.0).expect("no time").contains("not known"));
    }
}
