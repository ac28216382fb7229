//! What encryption costs, by library.

use linerate_environment::Reading;

use crate::{Facts, Finding, Group};

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    for rate in &facts.rates {
        let finding = match rate.bytes_per_s {
            Reading::Value(bytes_per_s) => Finding::ok(
                Group::Ciphers,
                "cipher.rate",
                format!("{:.1} GB/s a core, in records of 16 KiB", bytes_per_s / 1e9),
            ),
            Reading::NotAvailable(ref reason) => {
                Finding::note(Group::Ciphers, "cipher.rate", format!("not available: {reason}"))
            }
        };
        findings.push(finding.of(format!("{} {}", rate.library, rate.cipher)));
    }
}
