//! Set-ups are short: responses of several sizes come at random, three times as many as there are set-ups, and what
//! placement makes of it is held against the best choice in hindsight.

use linerate_placement::{
    Again, Capabilities, Carried, Cipher, Combination, ConnectionSignals, Costs, Engine, EngineCosts, Lack,
    Placer, Policy, Verdict, Version,
};
use std::{cmp::Reverse, collections::BinaryHeap};

const AES: Cipher = Cipher::Aes256Gcm;
const USER_NS_PER_BYTE: f64 = 0.25;
const NIC_NS_PER_BYTE: f64 = 0.1;
const SET_UP_NS: f64 = 10_000.0;
const SECONDS: u64 = 60;
/// How often a response that is refused asks again, each time with a quarter less to come.
const TRIES: u64 = 4;

/// As Linux has it.
const CAN: Capabilities = Capabilities {
    kernel: Verdict::Lacking(Lack::AdapterGoesFirst),
    nic: Verdict::Carried(Carried { takes_new_keys: true }),
};

/// Responses of one size, beside the others.
struct Kind {
    bytes: u64,
    share: f64,
}

/// What a run came to.
#[derive(Debug)]
struct Came {
    cost_ns: f64,
    /// The least that these responses can cost with so many set-ups.
    best_ns: f64,
    /// With the user engine alone.
    user_ns: f64,
    /// By kind: the part of the responses that asked and were moved at once.
    moved: Vec<f64>,
    set_ups: u64,
}

fn saved_ns(bytes: u64) -> f64 {
    bytes as f64 * (USER_NS_PER_BYTE - NIC_NS_PER_BYTE) - SET_UP_NS
}

/// One response on each connection; `demand` times as many as there are set-ups. A response takes a second.
fn run(set_ups_per_s: f64, demand: f64, kinds: &[Kind], seed: u64) -> Came {
    let mut costs = Costs::defaults();
    costs.set(Engine::User, AES, EngineCosts { per_byte_ns: USER_NS_PER_BYTE, ..EngineCosts::FREE });
    let nic = EngineCosts { per_byte_ns: NIC_NS_PER_BYTE, set_up_ns: SET_UP_NS, ..EngineCosts::FREE };
    costs.set(Engine::Nic, AES, nic);
    costs.nic_limits.set_ups_per_s = set_ups_per_s;
    let mut placer = Placer::new(Policy { learning: false, ..Policy::default() }, costs);

    let mut dice = fastrand::Rng::with_seed(seed);
    let mut due = BinaryHeap::new();
    let mut at_s = 0.0;
    loop {
        at_s += -(1.0 - dice.f64()).ln() / (demand * set_ups_per_s);
        if at_s >= SECONDS as f64 {
            break;
        }
        let mut at = dice.f64();
        let kind = kinds.iter().position(|kind| {
            at -= kind.share;
            at < 0.0
        });
        due.push(Reverse(((at_s * 1e9) as u64, kind.unwrap_or(0), 0)));
    }

    let mut came =
        Came { cost_ns: 0.0, best_ns: 0.0, user_ns: 0.0, moved: vec![0.0; kinds.len()], set_ups: 0 };
    let mut asked = vec![0.0; kinds.len()];
    let mut savings_ns = Vec::new();
    while let Some(Reverse((now_ns, kind, tries))) = due.pop() {
        if now_ns >= SECONDS * 1_000_000_000 {
            break;
        }
        let bytes = kinds[kind].bytes;
        let left_bytes = bytes - bytes * tries / TRIES;
        if tries == 0 {
            asked[kind] += 1.0;
            came.user_ns += bytes as f64 * USER_NS_PER_BYTE;
            savings_ns.push(saved_ns(bytes).max(0.0));
        }
        let connection = ConnectionSignals {
            combination: Combination { version: Version::Tls12, cipher: AES },
            engine: Engine::User,
            response_bytes: bytes,
            left_bytes,
            sent_before_bytes: 0,
            responses_before: 0,
            records_left: None,
        };
        let decision = placer.decide(&CAN, &connection, now_ns, || None);
        if decision.engine == Engine::Nic {
            came.set_ups += 1;
            came.cost_ns -= saved_ns(left_bytes);
            came.moved[kind] += f64::from(u8::from(tries == 0));
        } else if decision.reason.again() == Again::NextRecord && tries + 1 < TRIES {
            due.push(Reverse((now_ns + 1_000_000_000 / TRIES, kind, tries + 1)));
        }
    }
    came.cost_ns += came.user_ns;
    for (moved, asked) in came.moved.iter_mut().zip(asked) {
        *moved /= asked;
    }
    // With full knowledge of the minute, and all its set-ups available at any moment of it, the best choice would be the
    // connections that save most.
    savings_ns.sort_by(|one, other| other.total_cmp(one));
    let set_ups = (set_ups_per_s * SECONDS as f64 + placer.budget().burst()) as usize;
    assert!(came.set_ups <= set_ups as u64);
    came.best_ns = came.user_ns - savings_ns.iter().take(set_ups).sum::<f64>();
    came
}

/// INV-PLACE-4.
#[test]
fn set_ups_go_to_those_who_save_most() {
    let two = |small_bytes, large_bytes| {
        [Kind { bytes: small_bytes, share: 0.9 }, Kind { bytes: large_bytes, share: 0.1 }]
    };
    for (name, kinds) in [
        ("500 kB and 100 MB", two(500_000, 100_000_000)),
        ("100 kB and 1 MB", two(100_000, 1_000_000)),
        ("10 MB and 10 GB", two(10_000_000, 10_000_000_000)),
    ] {
        for set_ups_per_s in [850.0, 200.0] {
            let came = run(set_ups_per_s, 3.0, &kinds, 1);
            let words = format!("{name}, {set_ups_per_s} a second: {came:?}");
            println!("{:.3} of the best: {words}", came.cost_ns / came.best_ns);
            assert!(came.moved[1] > 0.99, "the large ones move, and at once: {words}");
            assert!(came.cost_ns <= 1.05 * came.best_ns, "{words}");
            assert!(came.best_ns < 0.9 * came.user_ns, "there is something to lose: {words}");
            // The rest goes to the small ones: nothing is left lying.
            assert!(came.set_ups as f64 > 0.97 * set_ups_per_s * SECONDS as f64, "{words}");
        }
    }
}

/// Many kinds, each a little larger than the one before: there is no gap for the price to lie in.
#[test]
fn sizes_without_gaps_are_told_apart() {
    let kinds: Vec<Kind> = (0..60)
        .map(|step| Kind { bytes: (200_000.0 * 1.15f64.powi(step)) as u64, share: 1.0 / 60.0 })
        .collect();
    for demand in [1.2, 2.0, 3.0, 6.0] {
        let came = run(850.0, demand, &kinds, 2);
        let ratio = came.cost_ns / came.best_ns;
        println!("{ratio:.3} of the best at {demand} times the rate");
        assert!(ratio <= 1.05, "{demand}: {ratio}");
    }
}

#[test]
fn where_there_are_enough_all_that_pay_have_one_whatever_they_save() {
    let kinds = [Kind { bytes: 70_000, share: 0.5 }, Kind { bytes: 100_000_000, share: 0.5 }];
    let came = run(850.0, 0.8, &kinds, 3);
    assert!(came.moved.iter().all(|&part| part > 0.999), "{came:?}");
    assert!((came.cost_ns / came.best_ns - 1.0).abs() < 1e-3, "{came:?}");
}

/// A worker of many has few set-ups a second, and room for a price all the same.
#[test]
fn few_set_ups_go_to_the_large_ones_too() {
    let kinds = [Kind { bytes: 500_000, share: 0.9 }, Kind { bytes: 100_000_000, share: 0.1 }];
    let came = run(850.0 / 32.0, 3.0, &kinds, 4);
    println!("{:.3} of the best: {came:?}", came.cost_ns / came.best_ns);
    assert!(came.cost_ns <= 1.05 * came.best_ns, "{came:?}");
    assert!(came.moved[1] > 0.9, "{came:?}");
}
