//! What most of these tests need: a site of odd lengths, a certificate, and a server with one worker.

use linerate_end_to_end::{Algorithm, CertificatePair, ClientSetup, Server, ServerSetup, Site, curl};
use std::path::PathBuf;
use tempfile::TempDir;

/// A site of odd lengths and a certificate for `localhost`.
pub(crate) struct Fixture {
    pub(crate) site: Site,
    pub(crate) keys: TempDir,
    pub(crate) pair: CertificatePair,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(Algorithm::Ecdsa)
    }

    pub(crate) fn with(algorithm: Algorithm) -> Self {
        let keys = tempfile::tempdir().unwrap();
        let pair = CertificatePair::create(keys.path(), "localhost", algorithm, &["localhost", "127.0.0.1"]);
        Self { site: Site::of_odd_lengths(), keys, pair }
    }

    /// Flags for a server with one worker and an admin listener.
    pub(crate) fn setup(&self) -> ServerSetup {
        ServerSetup::tls(&self.site, &self.pair).admin()
    }

    /// A server with one worker and an admin listener, and these lines of TOML beside.
    pub(crate) fn start_with(&self, toml: &str) -> Server {
        let toml = format!(
            "listen = [\"127.0.0.1:0\"]\nworkers = 1\n{toml}\n[[site]]\nroot = {:?}\n\
             certificates = [{{ certificate = {:?}, key = {:?} }}]\n",
            self.site.path(),
            self.pair.certificate,
            self.pair.key
        );
        ServerSetup::toml(&toml).admin().start()
    }

    /// A client that trusts the certificate.
    pub(crate) fn client(&self) -> ClientSetup {
        ClientSetup::new([&self.pair])
    }

    /// curl's arguments to trust the certificate.
    pub(crate) fn trust(&self) -> [PathBuf; 2] {
        ["--cacert".into(), self.pair.certificate.clone()]
    }

    /// Has curl fetch a file, with these arguments more, and compares every byte. Returns what curl said about it
    /// (`--verbose`).
    #[track_caller]
    pub(crate) fn fetch_with_curl(&self, server: &Server, name: &str, arguments: &[&str]) -> String {
        let program =
            curl(self.trust()).arguments(["--verbose"]).arguments(arguments).arguments([server.url(name)]);
        let finished = program.run();
        let said = finished.stderr.clone();
        assert!(finished.success() == self.site.bytes(name), "{name} {arguments:?}\n{said}");
        said
    }
}
