//! The command line of `cargo xtask peers`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::files::FILE_2GB;

/// Flags of `cargo xtask peers`.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub(crate) struct Options {
    /// Make the files, the certificates and the Debian 13 tree with its nginx (debootstrap, as root), then stop.
    #[arg(long)]
    pub(crate) setup: bool,
    /// Where client and server meet: loopback, or a veth pair (MTU 1500) between two namespaces (as root).
    #[arg(long, value_enum, default_value = "loopback")]
    pub(crate) network: NetworkChoice,
    /// The TLS 1.3 cipher suite.
    #[arg(long, value_enum, default_value = "aes-256-gcm")]
    pub(crate) cipher: CipherChoice,
    /// The kind of the server certificate.
    #[arg(long, value_enum, default_value = "ecdsa")]
    pub(crate) certificate: CertificateKind,
    /// Measure only the works whose name starts with this (idle, bulk-8, bulk-2, bulk-1, keepalive-10mb,
    /// keepalive-1mb, keepalive-100kb, keepalive-10kb, handshake, slow); may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Leave a server out; may be repeated.
    #[arg(long, value_name = "SERVER")]
    pub(crate) without: Vec<String>,
    /// Short slices, three rounds, a tenth of the connections: tries the harness, the figures mean little.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The fewest rounds of each work.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..))]
    pub(crate) rounds: u32,
    /// The most rounds of each work, when the ratios do not settle earlier.
    #[arg(long, default_value_t = 30)]
    pub(crate) max_rounds: u32,
    /// How long each slice (one server, one round) should last.
    #[arg(long, default_value_t = 4.0)]
    pub(crate) seconds: f64,
    /// How the discarding client waits: asleep, so that the server pays for waking it (a large part of what plain
    /// sendfile costs on loopback, above all in a virtual machine), or spinning, so that nobody has to be woken.
    #[arg(long, value_enum, default_value = "sleep")]
    pub(crate) client_wait: ClientWait,
    /// The core of the servers.
    #[arg(long, default_value_t = 0)]
    pub(crate) server_cpu: usize,
    /// The core of the client.
    #[arg(long, default_value_t = 1)]
    pub(crate) client_cpu: usize,
    /// The linerate binary; without it, `cargo build --release --package linerate` makes one.
    #[arg(long, value_name = "FILE")]
    pub(crate) linerate: Option<PathBuf>,
    /// One more argument for `linerate serve`; may be repeated.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) linerate_flag: Vec<String>,
    /// Where files, certificates, configurations and logs are kept [default: target/peers].
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// The Debian 13 tree [default: debian-13 in the cache folder].
    #[arg(long, value_name = "DIR")]
    pub(crate) debian13: Option<PathBuf>,
    /// The Debian mirror that `--setup` takes the tree from [default: debootstrap's own].
    #[arg(long, value_name = "URL")]
    pub(crate) mirror: Option<String>,
    /// Write everything measured, slice by slice, to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// Seconds a slice should last, `--quick` considered.
    pub(crate) fn slice_s(&self) -> f64 {
        if self.quick { self.seconds.min(0.5) } else { self.seconds }
    }

    /// How much of the 2 GB file each connection fetches, `--quick` considered.
    pub(crate) fn bulk_bytes(&self) -> u64 {
        if self.quick { 256_000_000 } else { FILE_2GB.bytes }
    }

    /// Fewest and most rounds of a work, `--quick` considered.
    pub(crate) fn round_limits(&self) -> (usize, usize) {
        if self.quick {
            return (3, 3);
        }
        (self.rounds as usize, self.max_rounds.max(self.rounds) as usize)
    }

    /// Connections of the idle and the slow work, `--quick` considered.
    pub(crate) fn many_connections(&self) -> usize {
        if self.quick { 1_000 } else { 10_000 }
    }
}

/// `--network`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
pub(crate) enum NetworkChoice {
    /// 127.0.0.1, segments of up to 64 KiB.
    Loopback,
    /// A veth pair between two network namespaces, MTU 1500.
    Veth,
    /// First loopback, then veth.
    Both,
}

/// `--cipher`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
pub(crate) enum CipherChoice {
    /// TLS_AES_256_GCM_SHA384.
    #[value(name = "aes-256-gcm")]
    Aes256Gcm,
    /// TLS_AES_128_GCM_SHA256.
    #[value(name = "aes-128-gcm")]
    Aes128Gcm,
    /// First AES-256-GCM, then AES-128-GCM.
    Both,
}

/// One TLS 1.3 cipher suite under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cipher {
    /// AES-256-GCM.
    Aes256Gcm,
    /// AES-128-GCM.
    Aes128Gcm,
}

impl Cipher {
    /// The name that RFC 8446 B.4 and OpenSSL's `Ciphersuites` use.
    pub(crate) fn suite_name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
            Self::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
        }
    }
}

impl CipherChoice {
    /// The suites to measure, in order.
    pub(crate) fn ciphers(self) -> &'static [Cipher] {
        match self {
            Self::Aes256Gcm => &[Cipher::Aes256Gcm],
            Self::Aes128Gcm => &[Cipher::Aes128Gcm],
            Self::Both => &[Cipher::Aes256Gcm, Cipher::Aes128Gcm],
        }
    }
}

/// `--client-wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub(crate) enum ClientWait {
    /// In `recv`.
    Sleep,
    /// By asking again and again.
    Spin,
}

/// `--certificate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
pub(crate) enum CertificateKind {
    /// ECDSA with P-256.
    Ecdsa,
    /// RSA with 2048 bits.
    Rsa,
}
