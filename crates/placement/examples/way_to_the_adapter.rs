//! Whether a connection should move to the kernel while the adapter refuses it for the moment (on Linux it never comes to the
//! adapter then): `cargo run -p linerate-placement --example way_to_the_adapter`. Both rules on the same connections, for
//! adapters that refuse more or less of the time.

use linerate_placement::{
    Capabilities, Carried, Cipher, Combination, ConnectionSignals, Costs, Engine, EngineCosts, Lack, Name,
    Placer, Policy, Verdict, Version,
};

const AES: Cipher = Cipher::Aes128Gcm;
const CARRIED: Verdict = Verdict::Carried(Carried { takes_new_keys: true });
const CONNECTIONS: usize = 4000;

/// A machine on which the kernel does save something.
fn costs() -> Costs {
    let mut costs = Costs::defaults();
    costs.set(Engine::User, AES, EngineCosts { per_byte_ns: 0.25, ..EngineCosts::FREE });
    costs.set(Engine::Kernel, AES, EngineCosts { per_byte_ns: 0.2, set_up_ns: 5000.0, ..EngineCosts::FREE });
    costs.set(Engine::Nic, AES, EngineCosts { per_byte_ns: 0.1, set_up_ns: 20_000.0, ..EngineCosts::FREE });
    costs.nic_limits.set_ups_per_s = 1e6;
    costs
}

/// CPU time for connections of so many responses, 2 kB to 20 MB, on an adapter that refuses so much of the time.
fn cost_ns(responses: u64, refuses: f64, waits: bool) -> f64 {
    let mut placer = Placer::new(Policy { learning: false, ..Policy::default() }, costs());
    let mut dice = fastrand::Rng::with_seed(3);
    let mut total_ns = 0.0;
    let mut now_ns = 0;
    let mut has_room = true;
    for _ in 0..CONNECTIONS {
        let (mut engine, mut sent_before_bytes) = (Engine::User, 0);
        for responses_before in 0..responses {
            now_ns += 1_000_000;
            // It refuses for ten responses at a time, in the mean: a table that is full stays full for a while.
            if dice.f64() < 0.1 {
                has_room = dice.f64() >= refuses;
            }
            let bytes = [2_000, 20_000, 200_000, 2_000_000, 20_000_000][dice.usize(0..5)];
            let refused = Lack::AdapterRefuses { adapter: Name::new("eth0"), flows: 1 };
            let kernel = if !has_room && !waits { CARRIED } else { Verdict::Lacking(Lack::AdapterGoesFirst) };
            let can =
                Capabilities { kernel, nic: if has_room { CARRIED } else { Verdict::Lacking(refused) } };
            let connection = ConnectionSignals {
                combination: Combination { version: Version::Tls12, cipher: AES },
                engine,
                response_bytes: bytes,
                left_bytes: bytes,
                sent_before_bytes,
                responses_before,
                records_left: None,
            };
            let decision = placer.decide(&can, &connection, now_ns, || None);
            let costs = placer.costs().of(decision.engine, AES);
            if decision.engine != engine {
                total_ns += costs.move_ns(0.0);
            }
            engine = decision.engine;
            total_ns += costs.cost_ns(bytes);
            sent_before_bytes += bytes;
        }
    }
    total_ns
}

fn main() {
    println!(
        "CPU time of waiting for the adapter beside that of moving to the kernel, as the adapter refuses:"
    );
    println!("responses   5 %    20 %   50 %   90 %   99 %");
    for responses in [1, 5, 20, 100] {
        let ratio = |refuses| cost_ns(responses, refuses, true) / cost_ns(responses, refuses, false);
        let ratios = [0.05, 0.2, 0.5, 0.9, 0.99].map(|refuses| format!("{:.3}", ratio(refuses)));
        println!("{responses:<11} {}", ratios.join("  "));
    }
}
