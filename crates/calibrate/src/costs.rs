//! From what was measured to the terms of the cost model (docs/ARCHITECTURE.md, "Placement").
//!
//! The slope, what a byte of a long transfer costs, is measured as a whole. How it divides into bytes, records and calls
//! is known from sealing and sending in two sizes each, and matters for responses of a few records only.
//!
//! Over loopback the sender does the receiver's work, too, which is the same for all that are compared there. An adapter
//! cannot be measured there. So where one is, the path to its peer counts: the user engine is measured on it as well, and
//! kernel TLS is taken to differ from it by as much as over loopback.

use linerate_figures::rounded;
use linerate_placement::{Engine, EngineCosts, EngineFigures};
use linerate_record::Cipher;

use crate::{
    Figures, calls, ciphers,
    engines::{self, KERNEL, NIC, USER, USER_TO_PEER},
};

/// Every engine that was measured, with every cipher.
pub(crate) fn engines(figures: &Figures, batch_bytes: usize) -> Vec<EngineFigures> {
    let mut found = Vec::new();
    for cipher in Cipher::ALL {
        for (engine, name, call_bytes) in [
            (Engine::User, USER, batch_bytes),
            (Engine::Kernel, KERNEL, engines::KERNEL_CALL_BYTES),
            (Engine::Nic, NIC, engines::KERNEL_CALL_BYTES),
        ] {
            if let Some(costs) = of_engine(figures, name, cipher, call_bytes as u64) {
                found.push(EngineFigures::new(engine, cipher, &costs));
            }
        }
    }
    found
}

fn of_engine(figures: &Figures, name: &str, cipher: Cipher, call_bytes: u64) -> Option<EngineCosts> {
    let slope_ns = on_the_way(figures, name, cipher, engines::per_byte)?;
    let per_record_ns =
        fixed(figures, ciphers::FULL_BYTES, ciphers::SHORT_BYTES, |bytes| ciphers::figure(cipher, bytes))?;
    let per_call_ns = fixed(figures, calls::LONG_BYTES, calls::SHORT_BYTES, calls::figure)?;
    let mut costs = EngineCosts { per_record_ns, per_call_ns, call_bytes, ..EngineCosts::FREE };
    let shared_ns = costs.slope_ns_per_byte();
    // Two measurements of their own do not always fit into a third.
    let most_ns = slope_ns / 2.0;
    if shared_ns > most_ns {
        costs.per_record_ns *= most_ns / shared_ns;
        costs.per_call_ns *= most_ns / shared_ns;
    }
    costs.per_byte_ns = slope_ns - costs.slope_ns_per_byte();
    if let Some(small_ns) = on_the_way(figures, name, cipher, engines::small_response) {
        costs.per_response_ns = (small_ns - costs.cost_ns(engines::SMALL_BYTES as u64)).max(0.0);
    }
    costs.set_up_ns = figures.median(&engines::set_up(name, cipher)).unwrap_or(0.0);
    costs.set_up_wait_ns = figures.median(crate::adapter::WAIT).filter(|_| name == NIC).unwrap_or(0.0);
    Some(EngineCosts {
        set_up_ns: rounded(costs.set_up_ns, 3),
        set_up_wait_ns: rounded(costs.set_up_wait_ns, 3),
        per_byte_ns: rounded(costs.per_byte_ns, 3),
        per_record_ns: rounded(costs.per_record_ns, 3),
        per_call_ns: rounded(costs.per_call_ns, 3),
        per_response_ns: rounded(costs.per_response_ns, 3),
        ..costs
    })
}

/// What an engine costs on the path that counts.
fn on_the_way(
    figures: &Figures,
    name: &str,
    cipher: Cipher,
    what: fn(&str, Cipher) -> String,
) -> Option<f64> {
    let median = |name| figures.median(&what(name, cipher));
    match median(USER_TO_PEER) {
        Some(to_peer_ns) if name == USER => Some(to_peer_ns),
        Some(to_peer_ns) if name == KERNEL => Some((to_peer_ns + median(KERNEL)? - median(USER)?).max(0.0)),
        _ => median(name),
    }
}

/// What two sizes cost beside their bytes: where the line through both meets no bytes.
fn fixed(
    figures: &Figures,
    long_bytes: usize,
    short_bytes: usize,
    name: impl Fn(usize) -> String,
) -> Option<f64> {
    let (long_ns, short_ns) = (figures.median(&name(long_bytes))?, figures.median(&name(short_bytes))?);
    let per_byte_ns = (long_ns - short_ns) / (long_bytes - short_bytes) as f64;
    Some((short_ns - per_byte_ns * short_bytes as f64).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a machine would measure whose costs are known.
    fn figures(slope_ns: f64) -> Figures {
        let mut figures = Figures::default();
        let cipher = Cipher::Aes128Gcm;
        for bytes in [ciphers::SHORT_BYTES, ciphers::FULL_BYTES] {
            figures.add(ciphers::figure(cipher, bytes), 80.0 + 0.06 * bytes as f64);
        }
        for bytes in [calls::SHORT_BYTES, calls::LONG_BYTES] {
            figures.add(calls::figure(bytes), 500.0 + 0.08 * bytes as f64);
        }
        figures.add(engines::per_byte(USER, cipher), slope_ns);
        figures.add(engines::small_response(USER, cipher), 4000.0);
        figures
    }

    #[test]
    fn what_was_put_in_comes_out() {
        let found = engines(&figures(0.2), 262_144);
        let [user] = &found[..] else { panic!("{found:?}") };
        assert_eq!((user.engine.as_str(), user.cipher.as_str()), ("user", "AES-128-GCM"));
        assert_eq!((user.per_record_ns, user.per_call_ns, user.call_bytes), (80.0, 500.0, 262_144));
        let costs = user.costs();
        assert!((costs.slope_ns_per_byte() - 0.2).abs() < 0.002, "{costs:?}");
        assert!((costs.cost_ns(engines::SMALL_BYTES as u64) - 4000.0).abs() < 20.0, "{costs:?}");
    }

    #[test]
    fn where_an_adapter_is_the_way_to_its_peer_counts() {
        let cipher = Cipher::Aes128Gcm;
        let mut figures = figures(0.4);
        for (engine, slope_ns, small_ns) in
            [(KERNEL, 0.5, 4500.0), (USER_TO_PEER, 0.3, 3000.0), (NIC, 0.1, 3200.0)]
        {
            figures.add(engines::per_byte(engine, cipher), slope_ns);
            figures.add(engines::small_response(engine, cipher), small_ns);
        }
        let found = engines(&figures, 262_144);
        let [user, kernel, nic] = &found[..] else { panic!("{found:?}") };
        for (engine, slope_ns, small_ns) in [(user, 0.3, 3000.0), (kernel, 0.4, 3500.0), (nic, 0.1, 3200.0)] {
            let costs = engine.costs();
            assert!((costs.slope_ns_per_byte() - slope_ns).abs() < 0.003, "{engine:?}");
            assert!((costs.cost_ns(engines::SMALL_BYTES as u64) - small_ns).abs() < 20.0, "{engine:?}");
        }
    }

    #[test]
    fn a_slope_that_is_less_than_its_parts_stays_what_it_is() {
        let found = engines(&figures(0.005), 65_536);
        let costs = found[0].costs();
        assert!((costs.slope_ns_per_byte() - 0.005).abs() < 1e-4 && costs.per_byte_ns > 0.0, "{costs:?}");
    }

    #[test]
    fn what_was_not_measured_is_not_there() {
        assert_eq!(engines(&Figures::default(), 65_536), []);
    }
}
