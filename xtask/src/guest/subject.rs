//! What is compared.

use serde::{Deserialize, Serialize};

use super::sender::{Content, Way};
use super::wire::esp::Mode;

/// A server of NFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NfsKind {
    /// That of the kernel.
    Knfsd,
    /// `linerate nfs`.
    Linerate,
}

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
    /// No server: bytes in the clear, copied into the socket.
    ClearCopied,
    /// The same, lent to the kernel.
    ClearLent,
    /// The same by `io_uring`.
    ClearSubmitted,
    /// No server: records of the user engine, copied into the socket.
    RecordsCopied,
    /// The same, lent to the kernel.
    RecordsLent,
    /// The same by `io_uring`.
    RecordsSubmitted,
    /// Linux' own NFS server, in the clear.
    KnfsdPlain,
    /// `linerate nfs`, in the clear.
    NfsPlain,
    /// Linux' own NFS server, with TLS: AES-256-GCM, which Linux' client and tlshd agree on.
    KnfsdTls,
    /// `linerate nfs`, with TLS by the user engine, and the same cipher.
    NfsUser,
    /// Linux' own NFS server, with AES-128-GCM.
    KnfsdShortKey,
    /// `linerate nfs`, with AES-128-GCM, which Linux' client gets of it.
    NfsShortKey,
    /// Linux' own NFS server, in the clear, inside ESP.
    KnfsdEsp(Mode),
    /// `linerate nfs`, in the clear, inside ESP.
    NfsEsp(Mode),
    /// linerate's HTTP in the clear, inside ESP.
    LinerateEsp(Mode),
    /// No server: as many bytes sealed in memory, by the library that linerate uses.
    CipherAlone,
}

impl Subject {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Self; 25] = [
        Self::NginxPlain,
        Self::LineratePlain,
        Self::NginxUser,
        Self::LinerateUser,
        Self::NginxKernel,
        Self::LinerateKernel,
        Self::ClearCopied,
        Self::ClearLent,
        Self::ClearSubmitted,
        Self::RecordsCopied,
        Self::RecordsLent,
        Self::RecordsSubmitted,
        Self::KnfsdPlain,
        Self::NfsPlain,
        Self::KnfsdTls,
        Self::NfsUser,
        Self::KnfsdShortKey,
        Self::NfsShortKey,
        Self::CipherAlone,
        Self::LinerateEsp(Mode::Transport),
        Self::LinerateEsp(Mode::Tunnel),
        Self::KnfsdEsp(Mode::Transport),
        Self::NfsEsp(Mode::Transport),
        Self::KnfsdEsp(Mode::Tunnel),
        Self::NfsEsp(Mode::Tunnel),
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
            Self::ClearCopied => "sender in the clear, copied",
            Self::ClearLent => "sender in the clear, MSG_ZEROCOPY",
            Self::ClearSubmitted => "sender in the clear, io_uring SEND_ZC",
            Self::RecordsCopied => "sender of records, copied",
            Self::RecordsLent => "sender of records, MSG_ZEROCOPY",
            Self::RecordsSubmitted => "sender of records, io_uring SEND_ZC",
            Self::KnfsdPlain => "knfsd, plaintext",
            Self::NfsPlain => "linerate nfs, plaintext",
            Self::KnfsdTls => "knfsd, TLS, AES-256-GCM",
            Self::NfsUser => "linerate nfs, user engine, AES-256-GCM",
            Self::KnfsdShortKey => "knfsd, TLS, AES-128-GCM",
            Self::NfsShortKey => "linerate nfs, user engine, AES-128-GCM",
            Self::CipherAlone => "AES-256-GCM alone, in memory (aws-lc)",
            Self::KnfsdEsp(Mode::Transport) => "knfsd, plaintext in ESP transport, AES-256-GCM",
            Self::KnfsdEsp(Mode::Tunnel) => "knfsd, plaintext in an ESP tunnel, AES-256-GCM",
            Self::NfsEsp(Mode::Transport) => "linerate nfs, plaintext in ESP transport, AES-256-GCM",
            Self::NfsEsp(Mode::Tunnel) => "linerate nfs, plaintext in an ESP tunnel, AES-256-GCM",
            Self::LinerateEsp(Mode::Transport) => "linerate, plaintext (sendfile) in ESP transport",
            Self::LinerateEsp(Mode::Tunnel) => "linerate, plaintext (sendfile) in an ESP tunnel",
        }
    }

    /// The server of `linerate bench` that it is.
    pub(crate) fn server(self) -> Option<&'static str> {
        match self {
            Self::NginxPlain => Some("nginx plaintext"),
            Self::LineratePlain | Self::LinerateEsp(_) => Some("linerate plaintext"),
            Self::NginxUser => Some("nginx tls"),
            Self::LinerateUser => Some("linerate user"),
            Self::NginxKernel => Some("nginx ktls"),
            Self::LinerateKernel => Some("linerate kernel"),
            _ => None,
        }
    }

    /// The sender without a server that it is.
    pub(crate) fn sender(self) -> Option<(Content, Way)> {
        match self {
            Self::ClearCopied => Some((Content::Clear, Way::Copied)),
            Self::ClearLent => Some((Content::Clear, Way::Lent)),
            Self::ClearSubmitted => Some((Content::Clear, Way::Submitted)),
            Self::RecordsCopied => Some((Content::Records, Way::Copied)),
            Self::RecordsLent => Some((Content::Records, Way::Lent)),
            Self::RecordsSubmitted => Some((Content::Records, Way::Submitted)),
            _ => None,
        }
    }

    /// The server of NFS that it is.
    pub(crate) fn nfs(self) -> Option<NfsKind> {
        match self {
            Self::KnfsdPlain | Self::KnfsdTls | Self::KnfsdShortKey | Self::KnfsdEsp(_) => {
                Some(NfsKind::Knfsd)
            }
            Self::NfsPlain | Self::NfsUser | Self::NfsShortKey | Self::NfsEsp(_) => Some(NfsKind::Linerate),
            _ => None,
        }
    }

    /// How ESP protects it, if it does.
    pub(crate) fn esp(self) -> Option<Mode> {
        match self {
            Self::KnfsdEsp(mode) | Self::NfsEsp(mode) | Self::LinerateEsp(mode) => Some(mode),
            _ => None,
        }
    }

    /// The cipher suite that a client of NFS offers.
    pub(crate) fn nfs_suite(self) -> &'static str {
        match self {
            Self::KnfsdShortKey | Self::NfsShortKey => "TLS_AES_128_GCM_SHA256",
            _ => "TLS_AES_256_GCM_SHA384",
        }
    }

    /// Whether it is served in the clear, whatever is beneath.
    pub(crate) fn is_plain(self) -> bool {
        // A sender's records are sent as they are.
        matches!(self, Self::NginxPlain | Self::LineratePlain | Self::KnfsdPlain | Self::NfsPlain)
            || self.sender().is_some()
            || self.esp().is_some()
    }

    /// Whether the kernel is to encrypt.
    pub(crate) fn is_kernel(self) -> bool {
        matches!(self, Self::NginxKernel | Self::LinerateKernel)
    }

    /// The one of nginx or of the kernel that does the same, or the sender that copies: what this one is to be held against.
    pub(crate) fn yardstick(self) -> Option<Self> {
        match self {
            Self::LineratePlain => Some(Self::NginxPlain),
            Self::LinerateUser => Some(Self::NginxUser),
            Self::LinerateKernel => Some(Self::NginxKernel),
            Self::ClearLent | Self::ClearSubmitted => Some(Self::ClearCopied),
            Self::RecordsLent | Self::RecordsSubmitted => Some(Self::RecordsCopied),
            Self::NfsPlain => Some(Self::KnfsdPlain),
            Self::NfsUser => Some(Self::KnfsdTls),
            Self::NfsShortKey => Some(Self::KnfsdShortKey),
            Self::NfsEsp(mode) => Some(Self::KnfsdEsp(mode)),
            Self::KnfsdPlain
            | Self::KnfsdEsp(_)
            | Self::LinerateEsp(_)
            | Self::KnfsdTls
            | Self::KnfsdShortKey
            | Self::NginxPlain
            | Self::NginxUser
            | Self::NginxKernel
            | Self::ClearCopied
            | Self::RecordsCopied
            | Self::CipherAlone => None,
        }
    }
}
