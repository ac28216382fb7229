//! From facts to findings: pure, a file for each group.

mod adapters;
mod certificate;
mod ciphers;
mod content;
pub(crate) mod engines;
mod limits;
mod network;
mod processor;
mod server;
mod system;

use crate::{Facts, Finding};

/// Judges all of it, in the order of the groups.
#[must_use]
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    system::judge(facts, &mut findings);
    engines::judge(facts, &mut findings);
    processor::judge(facts, &mut findings);
    adapters::judge(facts, &mut findings);
    network::judge(facts, &mut findings);
    limits::judge(facts, &mut findings);
    content::judge(facts, &mut findings);
    ciphers::judge(facts, &mut findings);
    certificate::judge(facts, &mut findings);
    server::judge(facts, &mut findings);
    findings
}

/// Where a command has to be typed that changes the machine, for a process that is kept from it.
pub(crate) fn on_the_host(facts: &Facts) -> &'static str {
    let confinement = &facts.confinement;
    let is_confined =
        confinement.container.is_some() || confinement.first_user.value().is_some_and(|is_first| !is_first);
    if is_confined { "    # on the host, not in the container" } else { "" }
}

/// `1 queue`, `2 queues`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests;
