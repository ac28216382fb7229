//! What the measurements were made on.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::tables::scrolled;
use crate::{
    report::{conditions, number},
    result::{ExperimentRun, Reading, Setup},
};

/// Date and machine in a line.
pub(super) fn in_short(run: &ExperimentRun) -> String {
    let mut words = vec![number::moment(run.started_unix_s), conditions::of_run(run)];
    let commit = conditions::fact(run, "linerate", &["commit", "version"]);
    words.extend(commit.map(|commit| format!("linerate {commit}")));
    words.join(" · ")
}

/// All that is known, group by group.
pub(super) fn section(run: &ExperimentRun) -> Markup {
    html! {
        section.environment {
            h3 { "Environment" }
            p.note { (setup(&run.setup)) }
            @if run.environment.is_empty() { p.note { "Nothing was recorded." } }
            div.groups {
                @for (group, facts) in &run.environment {
                    div.group {
                        h4 { (title(group)) }
                        dl {
                            @for (name, value) in facts {
                                dt { (name.replace('_', " ")) }
                                dd { @match value {
                                    Reading::Value(value) => (value),
                                    Reading::NotAvailable(reason) => span.none { "not available: " (reason) },
                                } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The name of a group as a heading.
fn title(group: &str) -> String {
    let mut letters = group.chars();
    match group {
        "cpu" | "nic" | "tls" => group.to_uppercase(),
        _ => letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default(),
    }
}

fn setup(setup: &Setup) -> String {
    let cores = |cores: &[u32]| {
        let names: Vec<String> = cores.iter().map(u32::to_string).collect();
        format!("{} {}", if cores.len() == 1 { "core" } else { "cores" }, number::list(&names))
    };
    let mut sentence = String::from("Servers");
    if !setup.address.is_empty() {
        sentence.push_str(&format!(" listened on {}", setup.address));
    }
    if setup.server_cores.is_empty() {
        sentence.push_str(" and were not pinned to cores");
    } else {
        sentence.push_str(&format!(", pinned to {}", cores(&setup.server_cores)));
    }
    sentence.push_str("; the load came from ");
    if setup.client_hosts.is_empty() {
        sentence.push_str("this machine");
    } else {
        sentence.push_str(&number::list(&setup.client_hosts));
    }
    if !setup.client_cores.is_empty() {
        sentence.push_str(&format!(", pinned to {}", cores(&setup.client_cores)));
    }
    sentence + "."
}

/// Facts that differ between two runs: where to look first if their figures do.
pub(in crate::report) fn differences(before: &ExperimentRun, after: &ExperimentRun) -> Markup {
    let flat = |run: &ExperimentRun| -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        for (group, of_group) in &run.environment {
            for (name, value) in of_group {
                let value = match value {
                    Reading::Value(value) => value.clone(),
                    Reading::NotAvailable(reason) => format!("not available: {reason}"),
                };
                facts.insert(format!("{group}: {}", name.replace('_', " ")), value);
            }
        }
        for server in &run.servers {
            facts.insert(format!("{}: version", server.name), server.version.clone());
            facts.insert(format!("{}: configuration", server.name), server.configuration.clone());
            facts.insert(format!("{}: command", server.name), super::commands::line(&server.command));
        }
        facts.insert("networks".to_owned(), conditions::networks(run, run.points.iter()));
        facts.insert("definition".to_owned(), run.definition.clone());
        facts
    };
    let (before, after) = (flat(before), flat(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| before.get(*name) != after.get(*name));
    let value = |facts: &BTreeMap<String, String>, name: &str| {
        facts.get(name).map_or_else(|| "–".to_owned(), Clone::clone)
    };
    if names.is_empty() {
        return html! { p.note { "Environment, servers and definition are the same in both runs." } };
    }
    let table = html! {
        table.differences {
            thead { tr { th scope="col" { "Fact" } th scope="col" { "Before" } th scope="col" { "After" } } }
            tbody {
                @for name in names {
                    tr {
                        th scope="row" { (name) }
                        td { pre { (value(&before, name)) } }
                        td { pre { (value(&after, name)) } }
                    }
                }
            }
        }
    };
    scrolled("What else differs", &table)
}
