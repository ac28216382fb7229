//! `linerate doctor` on this machine: what it says is true where it can be tried here, in namespaces and without
//! capabilities, and its JSON is what the schema says. (Each rule with made facts: crates/doctor.)

mod confined;
mod report;

use linerate_end_to_end::{Program, linerate_binary};
use serde_json::Value;

/// The doctor with these arguments. Without programs of the system it does not measure OpenSSL, which takes seconds.
fn doctor(arguments: &[&str]) -> Program {
    let binary = linerate_binary().display().to_string();
    Program::new(&binary, ["doctor"]).arguments(arguments).env("PATH", "/linerate/none")
}

/// The findings of this name: subject, verdict, text, commands.
fn findings<'a>(report: &'a Value, name: &str) -> Vec<(&'a str, &'a str, &'a str, Vec<&'a str>)> {
    let found =
        report["findings"].as_array().expect("a list").iter().filter(|finding| finding["name"] == name);
    found
        .map(|finding| {
            let text = |field: &str| finding[field].as_str().unwrap_or_default();
            let commands = finding["commands"].as_array().expect("a list");
            let commands = commands.iter().map(|command| command.as_str().expect("text")).collect();
            (text("subject"), text("verdict"), text("text"), commands)
        })
        .collect()
}
