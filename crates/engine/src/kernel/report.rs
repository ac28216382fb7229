//! What the kernel carries: as values for `linerate doctor`, in words once at start.

use super::capabilities::{Capabilities, Carried, Objection};
use linerate_os::kernel_tls::System;
use linerate_placement::Combination;
use std::fmt::Write;

/// What kernel TLS of this machine does with each version and cipher: found out now, self-test included. It connects
/// sockets of this machine to each other.
#[must_use]
pub fn tried() -> Vec<(Combination, Result<Carried, Objection>)> {
    Capabilities::find(&System, true)
        .all()
        .map(|(combination, verdict)| (combination, verdict.map_err(Clone::clone)))
        .collect()
}

/// What the kernel carries in a line, for the log: what is carried, and why the others are not.
pub fn note(capabilities: &Capabilities) -> String {
    let mut carried = Vec::new();
    let mut lacking = Vec::<(String, Vec<String>)>::new();
    for (combination, verdict) in capabilities.all() {
        match verdict {
            Ok(_) => carried.push(combination.label()),
            Err(lack) => {
                let why = lack.to_string();
                match lacking.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, names)) => names.push(combination.label()),
                    None => lacking.push((why, vec![combination.label()])),
                }
            }
        }
    }
    if carried.is_empty() && lacking.len() == 1 {
        return format!("kernel TLS: {}; everything stays on the user engine", lacking[0].0);
    }
    let mut text = format!("kernel TLS: {}", carried.join(", "));
    for (why, names) in lacking {
        let _ = write!(text, "; {}: {why}", names.join(", "));
    }
    text
}
