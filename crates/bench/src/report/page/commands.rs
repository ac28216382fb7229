//! How it was done: command lines, configurations, the experiment's file.

use maud::{Markup, html};

use crate::report::panel::Sweep;

/// Everything that somebody needs to do it again.
pub(super) fn section(sweep: &Sweep<'_>) -> Markup {
    let run = sweep.run;
    html! {
        h3 { "How it was done" }
        @if !run.command.is_empty() { pre { (line(&run.command)) } }
        @for server in &run.servers {
            details {
                summary {
                    (server.name)
                    @if !server.version.is_empty() { " · " (server.version) }
                }
                pre { (line(&server.command)) }
                @if !server.configuration.is_empty() { pre { (server.configuration) } }
            }
        }
        @if run.points.iter().any(|point| !point.client_command.is_empty()) {
            details {
                summary { "Load client" }
                pre { (client_commands(sweep)) }
            }
        }
        @if !run.definition.is_empty() {
            details {
                summary { "Definition of the experiment" }
                pre { (run.definition) }
            }
        }
    }
}

/// Each command of the client once, after the points that it was used for.
fn client_commands(sweep: &Sweep<'_>) -> String {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for panel in &sweep.panels {
        for cell in panel.cells() {
            let (used, command) = (panel.name_of(sweep, cell), line(&cell.point.client_command));
            match commands.iter_mut().find(|(other, _)| *other == command) {
                Some((_, points)) => points.push(used),
                None => commands.push((command, vec![used])),
            }
        }
    }
    let text = |(command, points): &(String, Vec<String>)| {
        let comments: Vec<String> = points.iter().map(|point| format!("# {point}\n")).collect();
        format!("{}{command}", comments.concat())
    };
    commands.iter().map(text).collect::<Vec<_>>().join("\n\n")
}

/// A command line that a shell would take.
pub(super) fn line(command: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_the_line_apart_again() {
        let command = ["linerate", "load", "it's $HOME", ""].map(str::to_owned);
        assert_eq!(line(&command), r"linerate load 'it'\''s $HOME' ''");
    }
}
