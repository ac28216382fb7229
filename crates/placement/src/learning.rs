//! What transfers really cost: a moving mean for each engine and cipher, in which no single observation counts for much.

use crate::{Cipher, Engine};

/// What was seen of an engine with a cipher.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// The moving mean, in nanoseconds a byte.
    pub mean_ns_per_byte: f64,
    /// Observations in it.
    pub observations: u64,
}

/// Observations of what sending costs, TCP included. Only differences between engines are used, and only where both were
/// observed: what they have in common falls out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learner {
    observed: [[Observed; Cipher::ALL.len()]; Engine::ALL.len()],
}

impl Learner {
    /// Shorter pieces say more about the call than about the bytes.
    pub const LEAST_BYTES: u64 = 32 << 10;
    /// The weight of one observation in the mean, once there are many.
    const WEIGHT: f64 = 1.0 / 32.0;
    /// An observation counts as no more than so many times the mean, nor less than the mean divided by it: a thread that
    /// was interrupted says nothing about its engine.
    const CLIP: f64 = 2.0;
    /// With so many observations of both engines they count as much as what was calibrated.
    const HALF_TRUSTED: f64 = 256.0;

    /// Some bytes went into a socket without waiting, in so much time. Returns whether they count.
    pub fn observe(&mut self, engine: Engine, cipher: Cipher, bytes: u64, elapsed_ns: u64) -> bool {
        if bytes < Self::LEAST_BYTES || elapsed_ns == 0 {
            return false;
        }
        let seen_ns_per_byte = (elapsed_ns as f64 / bytes as f64).clamp(1e-3, 100.0);
        let observed = &mut self.observed[engine as usize][cipher as usize];
        let mean = observed.mean_ns_per_byte;
        observed.observations = observed.observations.saturating_add(1);
        if observed.observations == 1 {
            observed.mean_ns_per_byte = seen_ns_per_byte;
        } else {
            // In the beginning each counts alike.
            let weight = (1.0 / observed.observations as f64).max(Self::WEIGHT);
            let clipped = seen_ns_per_byte.clamp(mean / Self::CLIP, mean * Self::CLIP);
            observed.mean_ns_per_byte += weight * (clipped - mean);
        }
        true
    }

    /// What was seen so far.
    #[must_use]
    pub fn observed(&self, engine: Engine, cipher: Cipher) -> Observed {
        self.observed[engine as usize][cipher as usize]
    }

    /// What each byte saves on `to` beside `from`: `expected_ns`, as calibrated, drawn towards what was seen as there is
    /// more of it. Negative where it costs more.
    #[must_use]
    pub fn saved_ns_per_byte(&self, from: Engine, to: Engine, cipher: Cipher, expected_ns: f64) -> f64 {
        let (from, to) = (self.observed(from, cipher), self.observed(to, cipher));
        let both = from.observations.min(to.observations) as f64;
        let trust = both / (both + Self::HALF_TRUSTED);
        expected_ns + trust * (from.mean_ns_per_byte - to.mean_ns_per_byte - expected_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AES: Cipher = Cipher::Aes128Gcm;

    fn observe(learner: &mut Learner, engine: Engine, ns_per_byte: f64, times: usize) {
        for _ in 0..times {
            assert!(learner.observe(engine, AES, 1_000_000, (ns_per_byte * 1e6) as u64));
        }
    }

    #[test]
    fn one_engine_alone_changes_nothing() {
        let mut learner = Learner::default();
        observe(&mut learner, Engine::User, 5.0, 10_000);
        assert_eq!(learner.saved_ns_per_byte(Engine::User, Engine::Kernel, AES, -0.07), -0.07);
        // Nor does another cipher.
        learner.observe(Engine::Kernel, Cipher::Aes256Gcm, 1 << 20, 1);
        assert_eq!(learner.saved_ns_per_byte(Engine::User, Engine::Kernel, AES, -0.07), -0.07);
    }

    #[test]
    fn both_together_draw_the_difference_to_what_is_seen() {
        let mut learner = Learner::default();
        let saved = |learner: &Learner| learner.saved_ns_per_byte(Engine::User, Engine::Kernel, AES, 0.1);
        observe(&mut learner, Engine::User, 0.30, 256);
        observe(&mut learner, Engine::Kernel, 0.40, 256);
        assert!(saved(&learner).abs() < 1e-9, "half of +0.1 and half of -0.1");
        observe(&mut learner, Engine::User, 0.30, 10_000);
        observe(&mut learner, Engine::Kernel, 0.40, 10_000);
        assert!((saved(&learner) + 0.095).abs() < 0.003, "{}", saved(&learner));
    }

    #[test]
    fn one_observation_moves_the_mean_by_little() {
        let mut learner = Learner::default();
        observe(&mut learner, Engine::User, 0.2, 1000);
        for elapsed_ns in [1, u64::MAX] {
            let before = learner.observed(Engine::User, AES).mean_ns_per_byte;
            learner.observe(Engine::User, AES, 1 << 20, elapsed_ns);
            let after = learner.observed(Engine::User, AES).mean_ns_per_byte;
            assert!((after - before).abs() <= before / 32.0 + 1e-12, "{before} to {after}");
        }
    }

    #[test]
    fn a_first_observation_that_was_wrong_is_forgotten() {
        let mut learner = Learner::default();
        learner.observe(Engine::User, AES, 1 << 20, u64::MAX);
        observe(&mut learner, Engine::User, 0.2, 1000);
        let mean = learner.observed(Engine::User, AES).mean_ns_per_byte;
        assert!((0.199..0.22).contains(&mean), "{mean}");
    }

    #[test]
    fn small_pieces_are_not_counted() {
        let mut learner = Learner::default();
        assert!(!learner.observe(Engine::User, AES, Learner::LEAST_BYTES - 1, 1000));
        assert!(!learner.observe(Engine::User, AES, 1 << 20, 0));
        assert_eq!(learner, Learner::default());
        assert!(learner.observe(Engine::User, AES, Learner::LEAST_BYTES, 1000));
    }
}
