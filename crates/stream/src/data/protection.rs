//! How a stream is protected: made ready before the run begins, by the threads that open streams.

use super::kernel::{KernelReceiving, KernelSending, capabilities};
use crate::{handshake::Secured, plan::StreamEngine};
use linerate_tls::KeptKeys;
use std::net::TcpStream;

/// Which engines carry a run's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Engines {
    /// Where it is sent.
    pub(crate) sending: StreamEngine,
    /// Where it is received.
    pub(crate) receiving: StreamEngine,
}

impl Engines {
    /// Finds out what the kernel carries, if it is to carry anything at the end that sends, or at the other: once, before
    /// anybody waits for it.
    pub(crate) fn find_out(self, sends: bool) {
        if self.kept_keys(sends).sending {
            let _ = capabilities();
        }
    }

    /// What has to be kept of a stream's keys for these engines, at the end that sends or at the other.
    pub(crate) fn kept_keys(self, sends: bool) -> KeptKeys {
        let is_kernels = |engine| matches!(engine, StreamEngine::Kernel | StreamEngine::Nic);
        KeptKeys {
            sending: sends && is_kernels(self.sending),
            receiving: !sends && is_kernels(self.receiving),
        }
    }
}

/// What carries one end of a stream.
pub(crate) enum Protection {
    Plain,
    /// Records are made, or opened, here.
    User(Box<Secured>),
    KernelSending(Box<KernelSending>),
    KernelReceiving(Box<KernelReceiving>),
}

/// A stream's protection, with what was agreed in its handshake.
pub(crate) struct Protected {
    pub(crate) by: Protection,
    /// Version and suite.
    pub(crate) agreed: Option<String>,
}

impl Protected {
    pub(crate) fn plain() -> Self {
        Self { by: Protection::Plain, agreed: None }
    }

    /// Hands a stream whose handshake is over to its engine. `stream_bytes` is what it will send, 0 if that is not known.
    ///
    /// # Errors
    /// The engine does not carry it: why, in words.
    pub(crate) fn by_engine(
        socket: &TcpStream,
        secured: Secured,
        engines: Engines,
        sends: bool,
        stream_bytes: u64,
    ) -> Result<Self, String> {
        let agreed = Some(format!("{}, {}", secured.channel.version(), secured.suite.iana_name()));
        let by = match if sends { engines.sending } else { engines.receiving } {
            StreamEngine::Plain | StreamEngine::User => Protection::User(Box::new(secured)),
            wanted @ (StreamEngine::Kernel | StreamEngine::Nic) if sends => {
                let sending = KernelSending::promote(socket, secured.channel, wanted, stream_bytes)?;
                Protection::KernelSending(Box::new(sending))
            }
            StreamEngine::Kernel | StreamEngine::Nic => {
                if !secured.rest.is_empty() {
                    return Err("the sender began before it was told to".to_owned());
                }
                Protection::KernelReceiving(Box::new(KernelReceiving::promote(socket, secured.channel)?))
            }
        };
        Ok(Self { by, agreed })
    }

    /// What makes, or opens, the records, and how that is known.
    pub(crate) fn carried_by(&self, sends: bool) -> &'static str {
        match &self.by {
            Protection::Plain => "plain: in the clear",
            Protection::User(_) if sends => "user: this process seals every record",
            Protection::User(_) => "user: this process opens every record",
            Protection::KernelSending(sending) => sending.carried_by(),
            Protection::KernelReceiving(receiving) => receiving.carried_by(),
        }
    }
}
