//! What makes the records, as the plan compares them: the three engines, `auto`, and what they are measured against.

use std::fmt;

use linerate_faults::nearest;
use linerate_placement::Engine;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A way of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sender {
    /// No TLS: sendfile.
    Plaintext,
    /// TLS in user space as web servers have it: read, seal, write, 16 KiB at a time.
    Classic,
    /// linerate's user engine for everything.
    User,
    /// Kernel TLS in software for everything.
    Kernel,
    /// The adapter for every connection that it takes, the kernel for the others.
    Nic,
    /// What linerate's placement decides, connection by connection.
    Auto,
}

impl Sender {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 6] =
        [Self::Plaintext, Self::Classic, Self::User, Self::Kernel, Self::Nic, Self::Auto];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Classic => "classic",
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Nic => "nic",
            Self::Auto => "auto",
        }
    }

    /// The sender of that name.
    ///
    /// # Errors
    /// Where there is none, with the nearest name.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|sender| sender.name() == name).ok_or_else(|| {
            let names = || Self::ALL.iter().map(|sender| sender.name());
            let hint = nearest(name, names()).map(|near| format!("; did you mean {near}?"));
            let all = names().collect::<Vec<_>>().join(", ");
            Error::new(format!(
                "there is no engine \"{name}\"{} (there are: {all})",
                hint.unwrap_or_default()
            ))
        })
    }
}

impl From<Engine> for Sender {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::User => Self::User,
            Engine::Kernel => Self::Kernel,
            Engine::Nic => Self::Nic,
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_senders() {
        for sender in Sender::ALL {
            assert_eq!(Sender::named(sender.name()).unwrap(), sender);
        }
        assert!(Sender::named("kernl").unwrap_err().to_string().contains("did you mean kernel?"));
        assert_eq!(Sender::from(Engine::Nic), Sender::Nic);
    }
}
