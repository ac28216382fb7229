//! What each system did, as a Markdown table: a row for each fault, a column for each server.

use std::fmt::Write as _;

use crate::{Outcome, Verdict};

/// One table for each family of addresses, in the order in which the outcomes came.
#[must_use]
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for family in in_order(outcomes.iter().map(|outcome| outcome.family.as_str())) {
        let of_family: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.family == family).collect();
        let servers = in_order(of_family.iter().map(|outcome| outcome.server.as_str()));
        let _ = writeln!(text, "| fault ({family}) | {} |", servers.join(" | "));
        let _ = writeln!(text, "|---|{}", "---|".repeat(servers.len()));
        for program in in_order(of_family.iter().map(|outcome| outcome.program.as_str())) {
            let of_program: Vec<&Outcome> =
                of_family.iter().copied().filter(|outcome| outcome.program == program).collect();
            rows(&mut text, &of_program, &servers);
        }
        text.push('\n');
    }
    text
}

fn rows(text: &mut String, outcomes: &[&Outcome], servers: &[&str]) {
    let all = outcomes.iter().flat_map(|outcome| outcome.findings.rows.iter());
    for fault in in_order(all.map(|row| row.fault.as_str())) {
        let cells = servers.iter().map(|server| {
            let outcome = outcomes.iter().find(|outcome| outcome.server == *server);
            let row = outcome.and_then(|outcome| {
                Some((outcome, outcome.findings.rows.iter().find(|row| row.fault == fault)?))
            });
            match row {
                // What is expected of linerate and did not hold has to be seen.
                Some((outcome, row)) if outcome.verdict == Verdict::Fail && !row.holds => {
                    format!("**not as expected:** {}", row.did)
                }
                Some((_, row)) => row.did.clone(),
                None => "–".to_owned(),
            }
        });
        let cells: Vec<String> = cells.map(|cell| escaped(&cell)).collect();
        let _ = writeln!(text, "| {} | {} |", escaped(fault), cells.join(" | "));
    }
    for outcome in outcomes {
        if let Some(why) = &outcome.broken {
            let _ =
                writeln!(text, "| {} | {}: {} |", outcome.program, escaped(&outcome.server), escaped(why));
        }
    }
}

/// Each once, in the order of its first place.
fn in_order<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Findings, Row};
    use std::time::Duration;

    fn outcome(server: &str, is_judged: bool, did: &str, holds: bool) -> Outcome {
        let mut findings = Findings::default();
        findings.row(Row::new("a | fault", did).expects("something", holds));
        Outcome::judge("program", server, "IPv4", is_judged, Duration::ZERO, Ok(findings))
    }

    #[test]
    fn a_fault_has_a_row_and_a_server_a_column() {
        let outcomes = [outcome("one", true, "held", true), outcome("other", false, "fell", false)];
        assert_eq!(
            markdown(&outcomes),
            "| fault (IPv4) | one | other |\n|---|---|---|\n| a \\| fault | held | fell |\n\n"
        );
    }

    #[test]
    fn what_is_not_as_expected_is_marked() {
        assert!(markdown(&[outcome("one", true, "fell", false)]).contains("**not as expected:** fell"));
    }
}
