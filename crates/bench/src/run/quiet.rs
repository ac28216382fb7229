//! Whether the machine is quiet before anything is measured.

use std::time::Duration;

use crate::accounting::MachineWatch;
use crate::cores::Cores;
use crate::result::MachineCost;

/// How long is looked.
const LOOK: Duration = Duration::from_secs(1);

/// The share of that time in which a core may be busy.
const QUIET: f64 = 0.05;

/// What keeps the figures from being trusted: cores that have other work. Takes a second.
pub(super) fn warnings(cores: &Cores) -> Vec<String> {
    let Ok(watch) = MachineWatch::begin() else { return Vec::new() };
    std::thread::sleep(LOOK);
    let Ok((machine, elapsed_s)) = watch.end() else { return Vec::new() };
    busy(cores, &machine, elapsed_s)
}

fn busy(cores: &Cores, machine: &MachineCost, elapsed_s: f64) -> Vec<String> {
    let share = |core: &usize| {
        let times = machine.cores.get(&u32::try_from(*core).ok()?)?;
        Some((elapsed_s - times.idle_s - times.steal_s) / elapsed_s)
    };
    let of = |whose: &'static str, cores: &[usize]| -> Vec<String> {
        let shares = cores.iter().filter_map(|core| Some((core, share(core)?)));
        let busy = shares.filter(|(_, share)| *share > QUIET);
        busy.map(|(core, share)| {
            format!(
                "Core {core}, the {whose}, was {:.0} % busy with something else before the run: do not trust its figures.",
                100.0 * share
            )
        })
        .collect()
    };
    [of("server's", &cores.server), of("client's", &cores.client), shared(cores)].concat()
}

/// A core that both ends have.
fn shared(cores: &Cores) -> Vec<String> {
    let shared = cores.server.iter().filter(|core| cores.client.contains(core));
    shared
        .map(|core| {
            format!(
                "Server and client share core {core}: CPU times stand, throughput and latency say nothing."
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CoreTimes;

    #[test]
    fn a_core_with_other_work_is_named() {
        let idle = |idle_s: f64, steal_s: f64| CoreTimes { idle_s, steal_s, ..CoreTimes::default() };
        let machine = MachineCost {
            total: CoreTimes::default(),
            cores: [(0, idle(0.97, 0.0)), (1, idle(0.7, 0.1)), (2, idle(0.0, 0.0))].into(),
        };
        let cores = Cores { server: vec![0], client: vec![1] };
        assert_eq!(
            busy(&cores, &machine, 1.0),
            [
                "Core 1, the client's, was 20 % busy with something else before the run: do not trust its figures."
            ]
        );
        assert!(busy(&Cores { server: vec![0], client: vec![] }, &machine, 1.0).is_empty());
        let both = busy(&Cores { server: vec![0], client: vec![0] }, &machine, 1.0);
        assert!(both[0].starts_with("Server and client share core 0"), "{both:?}");
    }
}
