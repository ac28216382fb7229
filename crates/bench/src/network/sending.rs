//! How a machine sends: its congestion control, and the queue discipline of an interface.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use rustix::fs::FlockOperation;

use super::namespace::{Namespace, run};
use crate::error::{Error, Result};
use crate::result::Reading;

/// The congestion control of new sockets, in each network namespace.
pub(super) const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Those that the kernel has loaded.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Those that namespaces other than the first may choose.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// What the server's end is to send by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sending {
    /// TCP's congestion control: `cubic`, `bbr`.
    pub congestion_control: String,
    /// The queue discipline of the interface: `fq`. The kernel's default where there is none.
    pub queue_discipline: Option<String>,
}

impl Sending {
    /// From the words of an experiment: `cubic`, `bbr+fq`. Nothing where they are none of that form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_name = |name: &&str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        let (control, queue) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
        let queue_discipline = match queue {
            Some(queue) => Some(Some(queue).filter(is_name)?.to_owned()),
            None => None,
        };
        Some(Self { congestion_control: Some(control).filter(is_name)?.to_owned(), queue_discipline })
    }

    /// Whether this machine's own network sends so already.
    pub(crate) fn is_of_host(&self) -> bool {
        let current = fs::read_to_string(CONGESTION_CONTROL).unwrap_or_default();
        self.queue_discipline.is_none() && current.trim() == self.congestion_control
    }

    /// Has new sockets of `namespace` and its `interface` send so.
    pub(super) fn apply(&self, namespace: &Namespace, interface: &str) -> Result<()> {
        self.choose_congestion_control(namespace)?;
        if let Some(queue) = &self.queue_discipline {
            let before = ["-n", namespace.name(), "qdisc", "replace", "dev", interface, "root"];
            run("tc", &[before.as_slice(), &[queue.as_str()]].concat())?;
        }
        Ok(())
    }

    /// A namespace may choose what the machine allows everybody. What it does not is allowed for this moment: a choice
    /// that was made stays.
    fn choose_congestion_control(&self, namespace: &Namespace) -> Result<()> {
        let Self { congestion_control, .. } = self;
        let available = fs::read_to_string(AVAILABLE).unwrap_or_default();
        if !available.split_ascii_whitespace().any(|name| name == congestion_control) {
            return Err(Error::Machine(format!(
                "this kernel has no congestion control {congestion_control} (it has: {}; as root: modprobe \
                 tcp_{congestion_control})",
                available.trim()
            )));
        }
        let unwritten = |error| Error::file("cannot change", Path::new(ALLOWED))(error);
        let _alone = lock_allowed().map_err(unwritten)?;
        let allowed = fs::read_to_string(ALLOWED).map_err(unwritten)?;
        if allowed.split_ascii_whitespace().any(|name| name == congestion_control) {
            return choose(namespace, congestion_control);
        }
        fs::write(ALLOWED, format!("{} {congestion_control}", allowed.trim())).map_err(unwritten)?;
        let chosen = choose(namespace, congestion_control);
        fs::write(ALLOWED, allowed.trim()).map_err(unwritten)?;
        chosen
    }
}

/// The holder of the lock may change what is allowed, and has to put it back.
pub(super) fn lock_allowed() -> std::io::Result<File> {
    let file = File::open(ALLOWED)?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn choose(namespace: &Namespace, congestion_control: &str) -> Result<()> {
    let script = format!("echo {congestion_control} > {CONGESTION_CONTROL}");
    run("ip", &["netns", "exec", namespace.name(), "sh", "-c", &script])
}

/// What new sockets send by, read by a command that prints it.
pub(super) fn congestion_control_in(command: &[String]) -> Reading<String> {
    said(command).map_or_else(Reading::NotAvailable, |said| Reading::Value(said.trim().to_owned()))
}

/// The queue disciplines of an interface, read by `tc qdisc show`.
pub(super) fn queue_discipline_in(command: &[String]) -> Reading<String> {
    match said(command).map(|said| queue_disciplines(&said)) {
        Ok(names) if !names.is_empty() => Reading::Value(names),
        Ok(_) => Reading::NotAvailable("tc shows no queue discipline".to_owned()),
        Err(reason) => Reading::NotAvailable(reason),
    }
}

/// `qdisc fq_codel 0: parent :1 …`: each kind once.
fn queue_disciplines(shown: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for line in shown.lines() {
        if let Some(name) = line.strip_prefix("qdisc ").and_then(|rest| rest.split(' ').next())
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names.join(", ")
}

fn said(command: &[String]) -> std::result::Result<String, String> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` failed: {}", command.join(" "), errors.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_congestion_control_and_queue() {
        let sending = |control: &str, queue: Option<&str>| Sending {
            congestion_control: control.to_owned(),
            queue_discipline: queue.map(str::to_owned),
        };
        assert_eq!(Sending::parse("cubic"), Some(sending("cubic", None)));
        assert_eq!(Sending::parse("bbr+fq"), Some(sending("bbr", Some("fq"))));
        for wrong in ["", "+fq", "bbr+", "bbr fq", "bbr+fq+x", "bbr;reboot", "$(id)"] {
            assert_eq!(Sending::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_kind_of_queue_is_named_once() {
        let shown = "qdisc mq 0: root \nqdisc fq_codel 0: parent :2 limit 10240p\nqdisc fq_codel 0: parent :1 limit\n";
        assert_eq!(queue_disciplines(shown), "mq, fq_codel");
        assert_eq!(queue_disciplines(""), "");
    }
}
