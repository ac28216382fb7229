//! Messages for the operator: standard error, one line each, as service managers collect them.

use std::io::Write;

/// Something to know.
pub(crate) fn note(message: &str) {
    line("", message);
}

/// Something to look into; the server goes on.
pub(crate) fn warn(message: &str) {
    line("warning: ", message);
}

fn line(prefix: &str, message: &str) {
    // Nobody left to tell if standard error is gone; the server goes on all the same. Control characters are replaced
    // so that a file's name cannot forge a line.
    let clean: String = message.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    let _ = writeln!(std::io::stderr().lock(), "linerate: {prefix}{clean}");
}
