//! What a program found: a row for each fault, and what that comes to.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One fault, and what the server did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The fault, in words.
    pub fault: String,
    /// What the server did, in words.
    pub did: String,
    /// What is expected of linerate; nothing where this is only reported.
    pub expected: Option<String>,
    /// Whether that was so.
    pub holds: bool,
    /// The figures, by name.
    pub figures: Map<String, Value>,
}

impl Row {
    /// A fault, and what the server did.
    pub fn new(fault: impl Into<String>, did: impl Into<String>) -> Self {
        Self { fault: fault.into(), did: did.into(), expected: None, holds: true, figures: Map::new() }
    }

    /// What is expected of linerate, and whether it was so.
    #[must_use]
    pub fn expects(mut self, what: &str, holds: bool) -> Self {
        self.expected = Some(what.to_owned());
        self.holds = holds;
        self
    }

    /// A figure.
    #[must_use]
    pub fn figure(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.figures.insert(name.to_owned(), value.into());
        self
    }
}

/// What a program found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    /// A row for each fault.
    pub rows: Vec<Row>,
    /// Parts that this machine, or this way of running, cannot do: what, and why.
    pub skipped: Vec<(String, String)>,
}

impl Findings {
    /// Adds a row.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Says that a part was left out.
    pub fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.skipped.push((what.into(), why.into()));
    }
}

/// What that comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All that is expected was so.
    Pass,
    /// Something was not.
    Fail,
    /// Nothing is expected of this server: what it did is reported.
    Reported,
    /// All of it was left out.
    Skipped,
    /// The program itself could not go on.
    Broken,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Reported => "REPORTED",
            Self::Skipped => "SKIPPED",
            Self::Broken => "BROKEN",
        })
    }
}

/// A program's run against a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The program's name.
    pub program: String,
    /// The server: "linerate 0.1.0", "nginx/1.22.1, OpenSSL 3.0.17".
    pub server: String,
    /// "IPv4" or "IPv6".
    pub family: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What it comes to.
    pub verdict: Verdict,
    /// Why the program could not go on.
    pub broken: Option<String>,
    /// What it found.
    #[serde(flatten)]
    pub findings: Findings,
}

impl Outcome {
    /// Judges what was found.
    #[must_use]
    pub fn judge(
        program: &str,
        server: &str,
        family: &str,
        is_judged: bool,
        took: Duration,
        result: anyhow::Result<Findings>,
    ) -> Self {
        let (findings, broken) = match result {
            Ok(findings) => (findings, None),
            Err(error) => (Findings::default(), Some(format!("{error:#}"))),
        };
        let verdict = if broken.is_some() {
            Verdict::Broken
        } else if findings.rows.is_empty() {
            Verdict::Skipped
        } else if !is_judged {
            Verdict::Reported
        } else if findings.rows.iter().all(|row| row.holds) {
            Verdict::Pass
        } else {
            Verdict::Fail
        };
        let (program, server, family) = (program.to_owned(), server.to_owned(), family.to_owned());
        Self { program, server, family, seconds: took.as_secs_f64(), verdict, broken, findings }
    }

    /// Whether an expectation was not met, or nothing could be found out.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        matches!(self.verdict, Verdict::Fail | Verdict::Broken)
    }
}

/// The verdict and the rows for people, then all of it as one line of JSON.
impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, server, family, seconds, verdict, .. } = self;
        writeln!(formatter, "{verdict} {program}: {server}, {family}, {seconds:.1} s")?;
        for row in &self.findings.rows {
            let mark = if row.holds || *verdict == Verdict::Reported { " " } else { "!" };
            writeln!(formatter, "  {mark} {}: {}", row.fault, row.did)?;
            if mark == "!" {
                writeln!(formatter, "      expected: {}", row.expected.as_deref().unwrap_or_default())?;
            }
        }
        if let Some(why) = &self.broken {
            writeln!(formatter, "  ! {why}")?;
        }
        for (what, why) in &self.findings.skipped {
            writeln!(formatter, "SKIPPED: {program}, {what}: {why}")?;
        }
        writeln!(formatter, "{}", serde_json::to_string(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(is_judged: bool, holds: bool) -> Outcome {
        let mut findings = Findings::default();
        findings.row(Row::new("a fault", "nothing").expects("something", holds).figure("count", 3));
        Outcome::judge("program", "server", "IPv4", is_judged, Duration::from_secs(1), Ok(findings))
    }

    #[test]
    fn what_is_expected_counts_for_linerate_and_is_reported_for_others() {
        assert_eq!(outcome(true, true).verdict, Verdict::Pass);
        assert_eq!(outcome(true, false).verdict, Verdict::Fail);
        assert_eq!(outcome(false, false).verdict, Verdict::Reported);
        assert!(outcome(true, false).to_string().contains("expected: something"));
    }

    #[test]
    fn the_last_line_is_json_that_can_be_read_again() {
        let text = outcome(true, true).to_string();
        let again: Outcome = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!((again.verdict, again.findings.rows.len()), (Verdict::Pass, 1));
    }

    #[test]
    fn a_program_that_could_not_go_on_is_bad_and_one_without_rows_is_skipped() {
        let broken = Err(anyhow::anyhow!("no port"));
        assert!(Outcome::judge("p", "s", "IPv4", false, Duration::ZERO, broken).is_bad());
        let nothing = Outcome::judge("p", "s", "IPv4", true, Duration::ZERO, Ok(Findings::default()));
        assert_eq!(nothing.verdict, Verdict::Skipped);
    }
}
