//! What is compared.

use serde::{Deserialize, Serialize};

/// A server and what it encrypts by, or a part of the work by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Subject {
    /// nginx in the clear: sendfile.
    NginxPlain,
    /// linerate in the clear: sendfile.
    LineratePlain,
    /// nginx, TLS by OpenSSL.
    NginxUser,
    /// linerate, TLS by the user engine.
    LinerateUser,
    /// nginx, TLS by the kernel.
    NginxKernel,
    /// linerate, TLS by the kernel.
    LinerateKernel,
    /// No server: as many bytes sealed in memory, by the library that linerate uses.
    CipherAlone,
}

impl Subject {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Self; 7] = [
        Self::NginxPlain,
        Self::LineratePlain,
        Self::NginxUser,
        Self::LinerateUser,
        Self::NginxKernel,
        Self::LinerateKernel,
        Self::CipherAlone,
    ];

    /// Its name in the table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::NginxPlain => "nginx, plaintext (sendfile)",
            Self::LineratePlain => "linerate, plaintext (sendfile)",
            Self::NginxUser => "nginx, TLS in user space",
            Self::LinerateUser => "linerate, user engine",
            Self::NginxKernel => "nginx, kernel TLS",
            Self::LinerateKernel => "linerate, kernel engine",
            Self::CipherAlone => "AES-256-GCM alone, in memory (aws-lc)",
        }
    }

    /// The server of `linerate bench` that it is.
    pub(crate) fn server(self) -> Option<&'static str> {
        match self {
            Self::NginxPlain => Some("nginx plaintext"),
            Self::LineratePlain => Some("linerate plaintext"),
            Self::NginxUser => Some("nginx tls"),
            Self::LinerateUser => Some("linerate user"),
            Self::NginxKernel => Some("nginx ktls"),
            Self::LinerateKernel => Some("linerate kernel"),
            Self::CipherAlone => None,
        }
    }

    /// Whether it is served in the clear.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::NginxPlain | Self::LineratePlain)
    }

    /// Whether the kernel is to encrypt.
    pub(crate) fn is_kernel(self) -> bool {
        matches!(self, Self::NginxKernel | Self::LinerateKernel)
    }

    /// The one of nginx that does the same: what ours is to be held against.
    pub(crate) fn yardstick(self) -> Option<Self> {
        match self {
            Self::LineratePlain => Some(Self::NginxPlain),
            Self::LinerateUser => Some(Self::NginxUser),
            Self::LinerateKernel => Some(Self::NginxKernel),
            Self::NginxPlain | Self::NginxUser | Self::NginxKernel | Self::CipherAlone => None,
        }
    }
}
