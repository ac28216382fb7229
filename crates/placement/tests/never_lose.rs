//! The ski-rental bound, tried on connections of every kind: costs and responses drawn at random, some by an adversary.

use linerate_placement::{
    Capabilities, Carried, Cipher, Combination, ConnectionSignals, Costs, Engine, EngineCosts, Lack, Placer,
    Policy, Verdict, Version,
};

const AES: Cipher = Cipher::Aes256Gcm;

/// The kernel carries it, and no adapter does.
const CAN: Capabilities = Capabilities {
    kernel: Verdict::Carried(Carried { takes_new_keys: true }),
    nic: Verdict::Lacking(Lack::NoAdapter),
};

struct Case {
    set_up_ns: f64,
    saved_ns_per_byte: f64,
    placer: Placer,
}

impl Case {
    fn new(set_up_ns: f64, user_ns_per_byte: f64, kernel_ns_per_byte: f64) -> Self {
        let mut costs = Costs::defaults();
        costs.set(Engine::User, AES, EngineCosts { per_byte_ns: user_ns_per_byte, ..EngineCosts::FREE });
        let kernel = EngineCosts { per_byte_ns: kernel_ns_per_byte, set_up_ns, ..EngineCosts::FREE };
        costs.set(Engine::Kernel, AES, kernel);
        let saved_ns_per_byte = user_ns_per_byte - kernel_ns_per_byte;
        Self { set_up_ns, saved_ns_per_byte, placer: Placer::new(Policy::default(), costs) }
    }

    /// What the placer pays over a free move for these responses, and what the best choice in hindsight pays.
    fn excess_ns(&mut self, responses: &[u64]) -> (f64, f64) {
        let (mut paid_ns, mut engine, mut sent_before_bytes) = (0.0, Engine::User, 0);
        for (responses_before, &bytes) in responses.iter().enumerate() {
            let connection = ConnectionSignals {
                combination: Combination { version: Version::Tls13, cipher: AES },
                engine,
                response_bytes: bytes,
                left_bytes: bytes,
                sent_before_bytes,
                responses_before: responses_before as u64,
                records_left: None,
            };
            let decision = self.placer.decide(&CAN, &connection, 0, || None);
            if decision.engine != engine {
                paid_ns += self.set_up_ns;
            }
            engine = decision.engine;
            if engine == Engine::User {
                paid_ns += bytes as f64 * self.saved_ns_per_byte;
            }
            sent_before_bytes += bytes;
        }
        let best_ns = self.set_up_ns.min(sent_before_bytes as f64 * self.saved_ns_per_byte);
        (paid_ns, best_ns)
    }
}

/// INV-PLACE-2.
#[test]
fn the_excess_is_never_more_than_twice_the_best_in_hindsight() {
    let mut dice = fastrand::Rng::with_seed(2026);
    let mut worst = 0.0f64;
    for _ in 0..20_000 {
        let user = 0.05 + dice.f64();
        let mut case = Case::new(dice.f64() * 1e6, user, user * dice.f64() * 0.9);
        let break_even = (case.set_up_ns / case.saved_ns_per_byte) as u64 + 1;
        let responses: Vec<u64> = (0..dice.usize(1..40))
            .map(|_| match dice.u8(0..4) {
                0 => dice.u64(1..=break_even.saturating_mul(3)),
                // The adversary stops right behind, or right before, the break-even.
                1 => break_even - dice.u64(0..=1).min(break_even - 1),
                2 => dice.u64(1..=10_000),
                _ => 1 << dice.u32(0..34),
            })
            .collect();
        let (paid_ns, best_ns) = case.excess_ns(&responses);
        assert!(paid_ns <= 2.0 * best_ns + 1e-3, "{paid_ns} beside {best_ns} for {responses:?}");
        worst = worst.max(paid_ns / best_ns.max(1e-9));
    }
    // The bound is reached: the test tries hard enough to notice a worse rule.
    assert!(worst > 1.9, "{worst}");
}

#[test]
fn one_response_alone_is_decided_as_in_hindsight() {
    let mut dice = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let user = 0.05 + dice.f64();
        let mut case = Case::new(dice.f64() * 1e6, user, user * dice.f64() * 0.9);
        let (paid_ns, best_ns) = case.excess_ns(&[1 << dice.u32(0..36)]);
        assert!(paid_ns <= best_ns + 1e-3, "{paid_ns} beside {best_ns}");
    }
}

#[test]
fn where_nothing_is_saved_nothing_is_paid() {
    let mut dice = fastrand::Rng::with_seed(8);
    for _ in 0..1000 {
        let user = 0.05 + dice.f64();
        let mut case = Case::new(dice.f64() * 1e6, user, user * (1.0 + dice.f64()));
        case.saved_ns_per_byte = 0.0;
        assert_eq!(case.excess_ns(&[1 << 40, 10, 1 << 30]), (0.0, 0.0));
    }
}
