//! What was measured, in words: what a byte costs with each engine, and from which size on a move pays.

use std::fmt::Write as _;

use linerate_figures as figures;
use linerate_placement::{Cipher, Costs, Engine, NicFigures};

use crate::{Figures, Outcome, adapter, ciphers, engines};

/// A few lines for people.
#[must_use]
pub fn report(outcome: &Outcome) -> String {
    let Outcome { calibration, figures } = outcome;
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(text, "{}, {}\n", calibration.machine.cpu, calibration.machine.kernel);
    text.push_str("CPU time of the sender over loopback, medians (and the distance of the quartiles)\n");
    let _ = writeln!(text, "{:<20} {:>16} {:>18} {:>18}", "", "seal 16 KiB", "user", "kernel");
    for cipher in Cipher::ALL {
        let seal = ciphers::figure(cipher, ciphers::FULL_BYTES);
        let rate = figures.median(&seal).map(|ns| format!("{} GB/s", short(ciphers::FULL_BYTES as f64 / ns)));
        let cost = |engine: &str| s_per_gb(figures, &engines::per_byte(engine, cipher));
        let _ = writeln!(
            text,
            "{:<20} {:>16} {:>18} {:>18}",
            cipher.name(),
            rate.unwrap_or_else(|| "–".to_owned()),
            cost(engines::USER),
            cost(engines::KERNEL),
        );
    }
    text.push('\n');
    if let Some(nic) = &calibration.nic {
        text.push_str(&of_adapter(figures, nic));
    }
    let costs = Costs::from(calibration);
    for cipher in Cipher::ALL {
        for engine in [Engine::Kernel, Engine::Nic] {
            let was_measured = calibration
                .engines
                .iter()
                .any(|figures| figures.engine == engine.name() && figures.cipher == cipher.name());
            if was_measured {
                let _ = writeln!(text, "{cipher}: {}", break_even(&costs, engine, cipher));
            }
        }
    }
    if !calibration.engines.iter().any(|figures| figures.engine != Engine::User.name()) {
        text.push_str("Only the user engine was measured: there is nothing to break even with.\n");
    }
    for note in &calibration.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// What was measured on the path through the adapter.
fn of_adapter(figures: &Figures, nic: &NicFigures) -> String {
    let mut text = format!("The same to the peer, by {} ({})\n", nic.device, nic.driver);
    let _ = writeln!(text, "{:<20} {:>16} {:>18} {:>18}", "", "", "user", "adapter");
    for cipher in Cipher::ALL {
        let cost = |engine: &str| s_per_gb(figures, &engines::per_byte(engine, cipher));
        let (user, adapter) = (cost(engines::USER_TO_PEER), cost(engines::NIC));
        let _ = writeln!(text, "{:<20} {:>16} {user:>18} {adapter:>18}", cipher.name(), "");
    }
    let us = |name: &str| figures.median(name).map_or("–".to_owned(), |ns| short(ns / 1000.0));
    let _ = writeln!(
        text,
        "{} set-ups a second, each torn down again; one computes for {} µs, and waits for {} µs\n",
        nic.set_ups_per_s,
        us(&engines::set_up(engines::NIC, Cipher::Aes128Gcm)),
        us(adapter::WAIT),
    );
    text
}

/// Three digits, without an exponent.
fn short(figure: f64) -> String {
    figures::rounded(figure, 3).to_string()
}

/// `0.31 s/GB (4 %)`, or a dash.
fn s_per_gb(figures: &Figures, name: &str) -> String {
    // A nanosecond a byte is a second a gigabyte.
    match (figures.median(name), figures.spread(name)) {
        (Some(cost), Some(spread)) => format!("{} s/GB ({:.0} %)", short(cost), spread * 100.0),
        (Some(cost), None) => format!("{} s/GB", short(cost)),
        _ => "–".to_owned(),
    }
}

/// From which size on a move to an engine pays, for a response that is alone on its connection.
fn break_even(costs: &Costs, engine: Engine, cipher: Cipher) -> String {
    let to = match engine {
        Engine::Nic => "an adapter",
        _ => "kernel TLS",
    };
    match costs.break_even_bytes(Engine::User, engine, cipher) {
        Some(0) => format!("{to} is cheaper than the user engine for every response"),
        Some(bytes) => {
            format!("a move to {to} pays from responses of {} on", figures::bytes(bytes as f64, 2))
        }
        None => {
            format!("no response pays a move to {to}: a byte costs no less there than with the user engine")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_placement::EngineCosts;

    #[test]
    fn break_even_sizes_are_said_in_words() {
        let mut costs = Costs::defaults();
        let (user, cipher) = (EngineCosts { per_byte_ns: 0.4, ..EngineCosts::FREE }, Cipher::Aes128Gcm);
        costs.set(Engine::User, cipher, user);
        costs.set(Engine::Kernel, cipher, EngineCosts { per_byte_ns: 0.3, set_up_ns: 38_000.0, ..user });
        assert!(break_even(&costs, Engine::Kernel, cipher).ends_with("pays from responses of 380 kB on"));
        costs.set(Engine::Kernel, cipher, EngineCosts { per_byte_ns: 0.5, ..user });
        assert!(break_even(&costs, Engine::Kernel, cipher).starts_with("no response pays"));
        costs.set(Engine::Kernel, cipher, EngineCosts { per_byte_ns: 0.3, ..user });
        assert!(break_even(&costs, Engine::Kernel, cipher).contains("for every response"));
    }
}
