//! A server with a single worker, so that whatever a hostile client does is done to its bystanders' worker.

use linerate_end_to_end::{
    CertificatePair, Client, ClientSetup, RawClient, Server, ServerSetup, Site, wait_until,
};
use rustls::{
    SupportedProtocolVersion,
    version::{TLS12, TLS13},
};
use tempfile::TempDir;

/// A file that no socket's buffers can hold.
pub(crate) const LARGE: &str = "large.bin";
/// Its length.
pub(crate) const LARGE_BYTES: usize = 40_000_003;

pub(crate) const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

pub(crate) struct Fixture {
    pub(crate) site: Site,
    pub(crate) pair: CertificatePair,
    pub(crate) server: Server,
    _keys: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With these lines of TOML beside.
    pub(crate) fn with(toml: &str) -> Self {
        let keys = tempfile::tempdir().unwrap();
        let pair = CertificatePair::for_localhost(keys.path());
        let site = Site::of_odd_lengths();
        let toml = format!(
            "listen = [\"127.0.0.1:0\"]\nworkers = 1\n{toml}\n[[site]]\nroot = {:?}\n\
             certificates = [{{ certificate = {:?}, key = {:?} }}]\n",
            site.path(),
            pair.certificate,
            pair.key
        );
        let server = ServerSetup::toml(&toml).admin().start();
        Self { site, pair, server, _keys: keys }
    }

    pub(crate) fn setup(&self, version: &'static SupportedProtocolVersion) -> ClientSetup {
        ClientSetup::of_version(&self.pair, version)
    }

    pub(crate) fn client(&self, version: &'static SupportedProtocolVersion) -> Client {
        self.setup(version).connect(self.server.address())
    }

    pub(crate) fn raw(&self, version: &'static SupportedProtocolVersion) -> RawClient {
        RawClient::connect(&self.setup(version), self.server.address())
    }

    /// Waits until so many connections are open.
    #[track_caller]
    pub(crate) fn wait_for_connections(&self, count: usize) {
        wait_until(&format!("{count} open connections"), || {
            self.server.metric("linerate_connections_active", "") == count as f64
        });
    }

    /// Connections that ended for this reason so far.
    #[track_caller]
    pub(crate) fn closed_for(&self, reason: &str) -> f64 {
        self.server.metric("linerate_connections_closed_total", &format!("reason=\"{reason}\""))
    }
}
