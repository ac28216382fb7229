//! What the kernel carries, in words: for `linerate doctor`, and once at start.

use super::capabilities::{Capabilities, Carried, name};
use linerate_os::kernel_tls::{self, System};
use linerate_record::Version;
use std::{fmt::Write, io};

fn carried_in_words(version: Version, carried: Carried, tested: bool) -> String {
    let mut words = if tested { "yes, self-test passed".to_owned() } else { "yes".to_owned() };
    words.push_str(match (version, carried.takes_new_keys) {
        (Version::Tls12, _) => "; connections end at the record limit",
        (Version::Tls13, true) => "; new keys in place",
        (Version::Tls13, false) => {
            "; no new keys (Linux 6.14 has them): connections end at the record limit, or when a client asks for one"
        }
    });
    words.push_str(if carried.zero_copy { "; zero-copy known" } else { "; no zero-copy" });
    words
}

/// What kernel TLS of this machine can do for each version and cipher, as a table for people: found out now, self-test
/// included.
#[must_use]
pub fn doctor() -> String {
    let capabilities = Capabilities::find(&System, true);
    let mut text = String::from("kernel TLS\n");
    for (combination, verdict) in capabilities.all() {
        let words = match verdict {
            Ok(carried) => carried_in_words(combination.0, carried, capabilities.tested()),
            Err(lack) => lack.to_string(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {:<27} {words}", name(combination));
    }
    text.push_str(&statistics());
    text
}

/// What `/proc/net/tls_stat` says that the kernel did so far.
fn statistics() -> String {
    match kernel_tls::statistics() {
        Ok(statistics) => {
            let moved: Vec<String> = statistics
                .iter()
                .filter(|statistic| statistic.value > 0)
                .map(|statistic| format!("{} {}", statistic.name, statistic.value))
                .collect();
            let moved = if moved.is_empty() { "all zero".to_owned() } else { moved.join(", ") };
            format!("  /proc/net/tls_stat, of this network namespace: {moved}\n")
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "  /proc/net/tls_stat is not there: the tls module is not loaded\n".to_owned()
        }
        Err(error) => format!("  /proc/net/tls_stat cannot be read: {error}\n"),
    }
}

/// The same in a line, for the log: what is carried, and why the others are not.
pub(crate) fn note(capabilities: &Capabilities) -> String {
    let mut carried = Vec::new();
    let mut lacking = Vec::<(String, Vec<String>)>::new();
    for (combination, verdict) in capabilities.all() {
        match verdict {
            Ok(_) => carried.push(name(combination)),
            Err(lack) => {
                let why = lack.to_string();
                match lacking.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, names)) => names.push(name(combination)),
                    None => lacking.push((why, vec![name(combination)])),
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
