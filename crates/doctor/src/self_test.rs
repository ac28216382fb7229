//! `linerate doctor --self-test`: every engine proved byte for byte, and what is to be known of the machine to make sense of it, in
//! a text that can be sent to others. Nothing in it names the machine or its owner.

use linerate_engine::{nic::Adapters, proof};
use linerate_environment::{Group, Reading};
use linerate_os::kernel_tls::System;
use std::{collections::BTreeMap, fmt::Write};

/// The groups of facts that it tells.
const GROUPS: [&str; 3] = ["kernel", "cpu", "network"];

/// Tries all engines. Returns the report, and whether nothing failed. It takes some seconds.
#[must_use]
pub fn self_test(version: &str) -> (String, bool) {
    let (kernel, processor) = linerate_environment::kernel_and_processor();
    let adapters = Adapters::find(&Adapters::default()).note();
    let heading = format!("linerate {version} on {kernel}, {processor}\n{adapters}\n");
    report(&heading, &linerate_environment::capture(), &proof::engines(&System))
}

fn report(heading: &str, facts: &BTreeMap<String, Group>, proofs: &[proof::Proof]) -> (String, bool) {
    let mut text = format!("{heading}\n");
    let (mut proved, mut lacking, mut failed) = (0, 0, 0);
    for proof in proofs {
        match proof.outcome {
            proof::Outcome::Proved(_) => proved += 1,
            proof::Outcome::Lacking(_) => lacking += 1,
            proof::Outcome::Failed(_) => failed += 1,
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{proof}");
    }
    let _ = writeln!(text, "\n{proved} proved, {lacking} lacking, {failed} failed\n");
    for group in GROUPS {
        for (name, reading) in facts.get(group).into_iter().flatten() {
            if let Reading::Value(value) = reading {
                let _ = writeln!(text, "{group}: {name}: {value}");
            }
        }
    }
    (text, failed == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proof::{Outcome, Proof};

    #[test]
    fn a_failure_is_told_and_so_is_what_was_proved() {
        let proof = |what: &str, outcome| Proof { what: what.to_owned(), outcome };
        let kernel = Group::from([
            ("release".to_owned(), Reading::Value("14.1".to_owned())),
            ("odd".to_owned(), Reading::NotAvailable("why".to_owned())),
        ]);
        let facts = BTreeMap::from([("kernel".to_owned(), kernel)]);
        let mut proofs = vec![
            proof("one", Outcome::Proved("by hand".to_owned())),
            proof("two", Outcome::Lacking("no such thing".to_owned())),
        ];
        let (text, all_went_well) = report("linerate\n", &facts, &proofs);
        assert!(all_went_well);
        assert_eq!(
            text,
            "linerate\n\nok      one: by hand\nlacking two: no such thing\n\n1 proved, 1 lacking, 0 failed\n\nkernel: release: 14.1\n"
        );
        proofs.push(proof("three", Outcome::Failed("byte 7".to_owned())));
        let (text, all_went_well) = report("linerate\n", &facts, &proofs);
        assert!(!all_went_well && text.contains("FAILED  three: byte 7\n"), "{text}");
    }
}
