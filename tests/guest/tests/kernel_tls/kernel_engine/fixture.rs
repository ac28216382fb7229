//! What these tests need: a site of odd lengths, a certificate, and a server with one worker on the kernel engine.

use linerate_end_to_end::{CertificatePair, ClientSetup, Server, ServerSetup, Site};
use linerate_guest_tests::{TlsStatistics, has_kernel_tls};
use rustls::{CipherSuite, NamedGroup, SupportedProtocolVersion};
use std::path::Path;
use tempfile::TempDir;

/// Long enough for many records and for several turns of a sender; odd.
pub(crate) const LARGE: &str = "3000001.bin";

/// A site of odd lengths and a certificate for `localhost`.
pub(crate) struct Fixture {
    pub(crate) site: Site,
    pub(crate) pair: CertificatePair,
    _keys: TempDir,
}

impl Fixture {
    /// `None`, said loudly, where the kernel has no TLS.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !has_kernel_tls(test) {
            return None;
        }
        let keys = tempfile::tempdir().unwrap();
        let pair = CertificatePair::for_localhost(keys.path());
        Some(Self { site: Site::of_odd_lengths(), pair, _keys: keys })
    }

    /// Flags for a server with one worker, an admin listener and the kernel engine.
    pub(crate) fn setup(&self) -> ServerSetup {
        ServerSetup::tls(&self.site, &self.pair).admin().flags(["--engine", "kernel"])
    }

    /// The same, with these lines of TOML.
    pub(crate) fn start_with(&self, toml: &str) -> Server {
        self.start_on("\"127.0.0.1:0\"", toml)
    }

    /// The same, on these addresses.
    pub(crate) fn start_on(&self, listeners: &str, toml: &str) -> Server {
        let toml = format!(
            "listen = [{listeners}]\nworkers = 1\nengine = \"kernel\"\n{toml}\n[[site]]\nroot = {:?}\n\
             certificates = [{{ certificate = {:?}, key = {:?} }}]\n",
            self.site.path(),
            self.pair.certificate,
            self.pair.key
        );
        ServerSetup::toml(&toml).admin().start()
    }

    /// A server that decides by this calibration, without learning: an emulated processor has other costs.
    pub(crate) fn start_auto(&self, calibration: &Path, placement: &str) -> Server {
        let toml = format!(
            "listen = [\"127.0.0.1:0\"]\nworkers = 1\naccess_log = \"-\"\nlog_format = \"json\"\n[placement]\n\
             calibration = {calibration:?}\n{placement}\n[[site]]\nroot = {:?}\n\
             certificates = [{{ certificate = {:?}, key = {:?} }}]\n",
            self.site.path(),
            self.pair.certificate,
            self.pair.key
        );
        ServerSetup::toml(&toml).admin().start()
    }

    /// A client of one version, with the key exchange that costs an emulated processor least.
    pub(crate) fn client(&self, version: &'static SupportedProtocolVersion) -> ClientSetup {
        let suite = match version.version {
            rustls::ProtocolVersion::TLSv1_2 => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            _ => CipherSuite::TLS13_AES_128_GCM_SHA256,
        };
        ClientSetup::offering(&self.pair, version, suite, NamedGroup::X25519)
    }

    /// What the kernel has counted, after the server's own self-test at its start.
    pub(crate) fn statistics(&self) -> TlsStatistics {
        TlsStatistics::now()
    }
}

/// Bytes of response that the server says the kernel engine carried.
pub(crate) fn kernel_bytes(server: &Server) -> f64 {
    server.metric("linerate_http_response_bytes_total", r#"engine="kernel""#)
}

/// Where `needle` ends in `haystack`, from `start` on.
#[track_caller]
pub(crate) fn end_of(needle: &[u8], haystack: &[u8], start: usize) -> usize {
    let found = haystack[start..].windows(needle.len()).position(|window| window == needle);
    start + found.expect("what is looked for is there") + needle.len()
}

/// Numbers without a pattern, the same at every run: xorshift64.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
