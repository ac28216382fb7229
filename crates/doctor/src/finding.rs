//! A finding: what was looked at, whether it is well, and what to do about it.

/// The part of the machine that a finding is about; the order is that of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Kernel, `tls` module, namespaces, capabilities, seccomp.
    System,
    /// Which engine carries which version and cipher.
    Engines,
    /// Processor, clocks, memory.
    Processor,
    /// Network adapters.
    Adapters,
    /// The network stack's settings.
    Network,
    /// What a process may use.
    Limits,
    /// Page cache and disk.
    Content,
    /// What encryption costs, by library.
    Ciphers,
    /// A certificate that was asked about.
    Certificate,
    /// A server that was asked about.
    Server,
}

impl Group {
    /// All of them, in order.
    pub const ALL: [Self; 10] = [
        Self::System,
        Self::Engines,
        Self::Processor,
        Self::Adapters,
        Self::Network,
        Self::Limits,
        Self::Content,
        Self::Ciphers,
        Self::Certificate,
        Self::Server,
    ];

    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Engines => "engines",
            Self::Processor => "processor",
            Self::Adapters => "adapters",
            Self::Network => "network",
            Self::Limits => "limits",
            Self::Content => "content",
            Self::Ciphers => "ciphers",
            Self::Certificate => "certificate",
            Self::Server => "server",
        }
    }
}

/// What a change is good for; the first is the most useful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// Something that was asked about does not work, or will soon not.
    Works,
    /// Every cycle of the machine becomes shorter.
    Clock,
    /// Every byte is sent with less work.
    Segments,
    /// An adapter encrypts.
    Adapter,
    /// Work is done where its memory and its interrupts are.
    Places,
    /// More connections, or connections at all.
    Limits,
    /// The kernel engine can be used.
    KernelTls,
    /// Something smaller.
    Tuning,
}

/// Whether it is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Ok,
    /// Good to know; nothing is to be done, or nobody here can tell.
    Note,
    /// To be changed, and what for.
    Change(Use),
}

impl Verdict {
    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Change(_) => "change",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, as scripts know it: it stays the same as long as the schema does.
    pub name: &'static str,
    /// What it is about.
    pub group: Group,
    /// Which one, where there are several: an adapter, a cipher.
    pub subject: Option<String>,
    /// Whether it is well.
    pub verdict: Verdict,
    /// What was found, in words.
    pub text: String,
    /// What to type, line by line.
    pub commands: Vec<String>,
}

impl Finding {
    fn new(group: Group, name: &'static str, verdict: Verdict, text: impl Into<String>) -> Self {
        Self { name, group, subject: None, verdict, text: text.into(), commands: Vec::new() }
    }

    /// All is well.
    pub(crate) fn ok(group: Group, name: &'static str, text: impl Into<String>) -> Self {
        Self::new(group, name, Verdict::Ok, text)
    }

    /// Good to know.
    pub(crate) fn note(group: Group, name: &'static str, text: impl Into<String>) -> Self {
        Self::new(group, name, Verdict::Note, text)
    }

    /// To be changed.
    pub(crate) fn change(group: Group, name: &'static str, what_for: Use, text: impl Into<String>) -> Self {
        Self::new(group, name, Verdict::Change(what_for), text)
    }

    /// Which one of several.
    pub(crate) fn of(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Adds a line to type.
    pub(crate) fn command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }
}

/// What is to be changed, the most useful first; in the order of the findings where it is as useful.
#[must_use]
pub fn changes(findings: &[Finding]) -> Vec<&Finding> {
    let mut changes: Vec<(Use, &Finding)> = findings
        .iter()
        .filter_map(|finding| match finding.verdict {
            Verdict::Change(what_for) => Some((what_for, finding)),
            Verdict::Ok | Verdict::Note => None,
        })
        .collect();
    changes.sort_by_key(|(what_for, _)| *what_for);
    changes.into_iter().map(|(_, finding)| finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_useful_change_comes_first() {
        let findings = [
            Finding::change(Group::System, "module", Use::KernelTls, ""),
            Finding::note(Group::System, "note", ""),
            Finding::change(Group::Adapters, "tso", Use::Segments, "first").of("eth0"),
            Finding::change(Group::Adapters, "tso", Use::Segments, "second").of("eth1"),
            Finding::change(Group::Certificate, "days", Use::Works, ""),
        ];
        let names: Vec<_> = changes(&findings).iter().map(|finding| (finding.name, &*finding.text)).collect();
        assert_eq!(names, [("days", ""), ("tso", "first"), ("tso", "second"), ("module", "")]);
    }
}
