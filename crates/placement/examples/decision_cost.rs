//! What a decision costs: `cargo run --release -p linerate-placement --example decision_cost`.
//!
//! The cases that come with every response: a choice that is fixed, a response that is too small, one on a kernel that never
//! pays, one behind a move; and one that an adapter could take, while set-ups there are short. None of them makes a system
//! call or allocates.

use linerate_placement::{
    Capabilities, Carried, Cipher, Combination, ConnectionSignals, Costs, Engine, EngineCosts, Lack, Mode,
    Placer, Policy, Verdict, Version,
};
use std::{hint::black_box, time::Instant};

/// So few that a round fits between two interrupts; the best of many rounds is told.
const DECISIONS: u32 = 100_000;
const ROUNDS: usize = 200;

fn main() {
    let carried = Verdict::Carried(Carried { takes_new_keys: true });
    let kernel_only = Capabilities { kernel: carried, nic: Verdict::Lacking(Lack::NoAdapter) };
    let adapter = Capabilities { kernel: Verdict::Lacking(Lack::AdapterGoesFirst), nic: carried };
    let connection = |engine, bytes| ConnectionSignals {
        combination: Combination { version: Version::Tls13, cipher: Cipher::Aes256Gcm },
        engine,
        response_bytes: bytes,
        left_bytes: bytes,
        sent_before_bytes: 50_000,
        responses_before: 5,
        records_left: Some(1 << 24),
    };
    let fixed = Policy {
        mode: Mode::Fixed { engine: Engine::User, from_bytes: 0, after_bytes: 0 },
        ..Policy::default()
    };
    let mut cheap_kernel = Costs::defaults();
    let kernel = EngineCosts { per_byte_ns: 0.05, set_up_ns: 1e6, ..EngineCosts::FREE };
    cheap_kernel.set(Engine::Kernel, Cipher::Aes256Gcm, kernel);
    let (auto, defaults) = (Policy::default(), Costs::defaults());
    for (what, can, policy, costs, connection) in [
        ("fixed by --engine user", kernel_only, fixed, defaults.clone(), connection(Engine::User, 10_000)),
        (
            "auto, the kernel never pays",
            kernel_only,
            auto,
            defaults.clone(),
            connection(Engine::User, 10_000),
        ),
        ("auto, below the break-even", kernel_only, auto, cheap_kernel, connection(Engine::User, 10_000)),
        ("auto, moved before", kernel_only, auto, defaults.clone(), connection(Engine::Kernel, 10_000)),
        ("auto, set-ups are short", adapter, auto, defaults, connection(Engine::User, 100_000_000)),
    ] {
        let mut placer = Placer::new(policy, costs);
        // Until those that are to be had have been given away.
        while placer.decide(&can, &connection, 0, || None).engine == Engine::Nic {}
        let decision = placer.decide(&can, &connection, 0, || None);
        let rounds_ns = (0..ROUNDS).map(|_| {
            let started = Instant::now();
            for _ in 0..DECISIONS {
                black_box(placer.decide(black_box(&can), black_box(&connection), 0, || None));
            }
            started.elapsed().as_nanos() as f64 / f64::from(DECISIONS)
        });
        let best_ns = rounds_ns.fold(f64::INFINITY, f64::min);
        println!("{best_ns:>6.1} ns  {what}  ({decision})");
    }
}
