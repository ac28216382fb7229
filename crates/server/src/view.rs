//! What a worker tells about its placement: published by its heartbeat, read by the admin page.

use linerate_placement::{Cipher, Combination, Decision, Engine, Observed, Placer};

/// The latest decisions that are kept.
const RECENT: usize = 16;
/// Engines that a connection can move to.
pub(crate) const OTHERS: [Engine; 2] = [Engine::Kernel, Engine::Nic];

/// A decision, and what it was about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recent {
    pub(crate) decision: Decision,
    pub(crate) combination: Combination,
    /// Of content.
    pub(crate) content_bytes: u64,
    /// When the response ended, in milliseconds since the worker began.
    pub(crate) at_ms: u64,
}

/// The latest decisions, the oldest overwritten first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    entries: [Option<Recent>; RECENT],
    next: usize,
}

impl Ring {
    pub(crate) fn push(&mut self, recent: Recent) {
        self.entries[self.next] = Some(recent);
        self.next = (self.next + 1) % RECENT;
    }

    /// The latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Recent> {
        (1..=RECENT).filter_map(|back| self.entries[(self.next + RECENT - back) % RECENT].as_ref())
    }
}

/// A worker's placement, as of its last heartbeat.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) ring: Ring,
    /// By engine (kernel, adapter) and cipher.
    pub(crate) saved_ns_per_byte: [[f64; Cipher::ALL.len()]; OTHERS.len()],
    pub(crate) break_even_bytes: [[Option<u64>; Cipher::ALL.len()]; OTHERS.len()],
    pub(crate) observed: [[Observed; Cipher::ALL.len()]; Engine::ALL.len()],
    pub(crate) set_ups_per_s: f64,
    /// What a set-up has to save; `None`: there is none left.
    pub(crate) price_ns: Option<f64>,
    pub(crate) cpu_left: f64,
    pub(crate) now_ms: u64,
}

impl View {
    pub(crate) fn of(placer: &Placer, ring: &Ring, cpu_left: f64, now_ms: u64) -> Self {
        let each = |engine: Engine| Cipher::ALL.map(|cipher| placer.learner().observed(engine, cipher));
        Self {
            ring: ring.clone(),
            saved_ns_per_byte: OTHERS
                .map(|engine| Cipher::ALL.map(|cipher| placer.saved_ns_per_byte(engine, cipher))),
            break_even_bytes: OTHERS
                .map(|engine| Cipher::ALL.map(|cipher| placer.break_even_bytes(engine, cipher))),
            observed: Engine::ALL.map(each),
            set_ups_per_s: placer.budget().rate_per_s(),
            price_ns: placer.budget().price_ns(),
            cpu_left,
            now_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_placement::{Reason, Version};

    #[test]
    fn the_latest_come_first_and_the_oldest_are_forgotten() {
        let mut ring = Ring::default();
        assert_eq!(ring.latest().count(), 0);
        for at_ms in 0..40 {
            ring.push(Recent {
                decision: Decision { engine: Engine::User, reason: Reason::MovedBefore },
                combination: Combination { version: Version::Tls13, cipher: Cipher::Aes128Gcm },
                content_bytes: 1,
                at_ms,
            });
        }
        let times: Vec<u64> = ring.latest().map(|recent| recent.at_ms).collect();
        assert_eq!(times, (24..40).rev().collect::<Vec<u64>>());
    }
}
