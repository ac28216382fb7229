//! Findings for people: groups, a line for each finding, and at the end what to change.

use std::fmt::Write as _;

use crate::{Finding, Group, Verdict, changes};

/// How it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The width of the terminal in characters; without one lines are as long as they are, as `grep` wants them.
    pub width: Option<usize>,
    /// Whether verdicts have colours (ECMA-48, as terminals have them).
    pub colour: bool,
}

/// Where the words of a finding begin.
const INDENT: usize = 10;
/// Narrower than this nothing is wrapped any more.
const LEAST_WIDTH: usize = 40;

/// Writes findings for people.
#[must_use]
pub fn text(findings: &[Finding], style: Style) -> String {
    let mut text = String::new();
    for group in Group::ALL {
        let of_group: Vec<&Finding> = findings.iter().filter(|finding| finding.group == group).collect();
        if of_group.is_empty() {
            continue;
        }
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "{}", title(group));
        for finding in of_group {
            line(&mut text, finding, style);
        }
        text.push('\n');
    }
    summary(&mut text, findings, style);
    text
}

fn title(group: Group) -> &'static str {
    match group {
        Group::System => "System",
        Group::Engines => "Engines: which version and cipher each carries",
        Group::Processor => "Processor",
        Group::Adapters => "Network adapters",
        Group::Network => "Network stack",
        Group::Limits => "Limits",
        Group::Content => "Content",
        Group::Ciphers => "Ciphers: what a core seals",
        Group::Certificate => "Certificate",
        Group::Server => "Server",
    }
}

fn line(text: &mut String, finding: &Finding, style: Style) {
    let (word, colour) = match finding.verdict {
        Verdict::Ok => ("ok", "32"),
        Verdict::Note => ("note", "36"),
        Verdict::Change(_) => ("change", "33;1"),
    };
    let verdict = match style.colour {
        true => format!("\x1b[{colour}m{word}\x1b[0m{:1$}", "", 8 - word.len()),
        false => format!("{word:<8}"),
    };
    let _ = writeln!(text, "  {verdict}{}", wrapped(&said(finding), INDENT, style));
    if finding.verdict == Verdict::Note {
        for command in &finding.commands {
            let _ = writeln!(text, "{:INDENT$}    {command}", "");
        }
    }
}

/// The finding with what it is about in front.
fn said(finding: &Finding) -> String {
    match &finding.subject {
        Some(subject) => format!("{subject}: {}", finding.text),
        None => finding.text.clone(),
    }
}

fn summary(text: &mut String, findings: &[Finding], style: Style) {
    let changes = changes(findings);
    if changes.is_empty() {
        text.push_str("Nothing to change.\n");
        return;
    }
    text.push_str("What to change, the most useful first\n");
    for (index, finding) in changes.iter().enumerate() {
        let number = format!("{:>4}. ", index + 1);
        let _ = writeln!(text, "{number}{}", wrapped(&said(finding), number.len(), style));
        for command in &finding.commands {
            // Never wrapped: it is there to be copied.
            let _ = writeln!(text, "{:1$}  {command}", "", number.len());
        }
    }
}

/// The words in lines of at most the terminal's width, all but the first indented.
fn wrapped(words: &str, indent: usize, style: Style) -> String {
    let Some(width) = style.width.map(|width| width.max(LEAST_WIDTH)) else { return words.to_owned() };
    let room = width.saturating_sub(indent);
    let mut text = String::new();
    let mut column = 0;
    for word in words.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > room {
            let _ = write!(text, "\n{:indent$}", "");
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Use;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::ok(Group::System, "a", "all is well with this machine, which has a long name"),
            Finding::note(Group::Network, "b", "good to know").command("look closer"),
            Finding::change(Group::Adapters, "c", Use::Segments, "TSO is off")
                .of("eth0")
                .command("ethtool -K eth0 tso on    # a command is never wrapped, however long it is"),
        ]
    }

    #[test]
    fn groups_come_in_order_and_changes_last() {
        let said = text(&findings(), Style::default());
        let expected = "System\n  ok      all is well with this machine, which has a long name\n\n\
                        Network adapters\n  change  eth0: TSO is off\n\n\
                        Network stack\n  note    good to know\n              look closer\n\n\
                        What to change, the most useful first\n   1. eth0: TSO is off\n        \
                        ethtool -K eth0 tso on    # a command is never wrapped, however long it is\n";
        assert_eq!(said, expected);
        assert!(text(&findings()[..2], Style::default()).ends_with("Nothing to change.\n"));
    }

    #[test]
    fn a_terminal_s_width_holds_and_its_colours_are_closed() {
        let said = text(&findings(), Style { width: Some(50), colour: true });
        for line in said.lines().filter(|line| !line.contains("ethtool")) {
            let shown: String =
                line.replace("\x1b[32m", "").replace("\x1b[36m", "").replace("\x1b[33;1m", "");
            assert!(shown.replace("\x1b[0m", "").chars().count() <= 50, "{line}");
        }
        assert_eq!(said.matches("\x1b[0m").count(), 3);
        assert!(said.contains("which has\n          a long"), "{said}");
    }
}
