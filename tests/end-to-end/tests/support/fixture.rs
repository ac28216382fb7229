//! A site, a certificate, and one server that shows the site over TLS and in the clear.

use super::{
    Connection,
    connection::{client_config, with_small_window},
};
use linerate_end_to_end::{CertificatePair, Server, ServerSetup, Site};
use rustls::ClientConnection;
use std::{
    fs::{File, FileTimes},
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tempfile::TempDir;

/// The listeners that serve files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Over TLS, by the user engine.
    Tls,
    /// In the clear, by sendfile.
    Plain,
}

impl Transport {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Tls, Self::Plain];
}

/// A running server with both listeners.
pub(crate) struct Fixture {
    /// The server.
    pub(crate) server: Server,
    /// Its certificate.
    pub(crate) pair: CertificatePair,
    /// What it serves.
    pub(crate) site: Site,
    _keys: TempDir,
}

impl Fixture {
    /// One worker, both listeners, the admin listener, defaults otherwise.
    #[track_caller]
    pub(crate) fn start(site: Site) -> Self {
        Self::start_with(site, |setup| setup)
    }

    /// The same, changed by `change`.
    #[track_caller]
    pub(crate) fn start_with(site: Site, change: impl FnOnce(ServerSetup) -> ServerSetup) -> Self {
        let (keys, pair) = certificate_folder();
        let setup = ServerSetup::tls(&site, &pair).flags(["--listen", "http://127.0.0.1:0"]).admin();
        Self { server: change(setup).start(), pair, site, _keys: keys }
    }

    /// The same from a configuration file: `toml` stands behind the listeners, the certificate and a default site.
    #[track_caller]
    pub(crate) fn start_toml(site: Site, toml: &str) -> Self {
        Self::start_changed_toml(site, toml, |whole| whole)
    }

    /// The same, and the whole file is changed by `change`.
    #[track_caller]
    pub(crate) fn start_changed_toml(site: Site, toml: &str, change: impl FnOnce(String) -> String) -> Self {
        let (keys, pair) = certificate_folder();
        let server = ServerSetup::toml(&change(toml_for(&site, &pair, toml))).admin().start();
        Self { server, pair, site, _keys: keys }
    }

    /// Where a transport's listener is.
    #[track_caller]
    pub(crate) fn address(&self, transport: Transport) -> SocketAddr {
        self.server.listener(if transport == Transport::Tls { "https" } else { "http" }, 0)
    }

    /// A connection by that transport.
    #[track_caller]
    pub(crate) fn connect(&self, transport: Transport) -> Connection {
        match transport {
            Transport::Tls => Connection::tls(self.address(transport), &self.pair, "localhost"),
            Transport::Plain => Connection::plain(self.address(transport)),
        }
    }

    /// A connection whose kernel takes little more than `receive_buffer_bytes` that nobody reads.
    #[track_caller]
    pub(crate) fn connect_with_small_window(
        &self,
        transport: Transport,
        receive_buffer_bytes: usize,
    ) -> Connection {
        self.connect_slowly(transport, receive_buffer_bytes, None)
    }

    /// The same, in segments as an Ethernet's. With loopback's, which are larger than a small window, the server's kernel
    /// sends by its timer for windows that are shut, whose pauses double.
    pub(crate) fn connect_as_by_ethernet(
        &self,
        transport: Transport,
        receive_buffer_bytes: usize,
    ) -> Connection {
        self.connect_slowly(transport, receive_buffer_bytes, Some(1448))
    }

    fn connect_slowly(
        &self,
        transport: Transport,
        receive_buffer_bytes: usize,
        segment_bytes: Option<u32>,
    ) -> Connection {
        let stream = with_small_window(self.address(transport), receive_buffer_bytes, segment_bytes);
        let session = (transport == Transport::Tls).then(|| {
            let name = "localhost".try_into().expect("a name");
            ClientConnection::new(client_config(&self.pair), name).expect("a client")
        });
        Connection::over(stream, session)
    }

    /// What curl trusts.
    pub(crate) fn trust(&self) -> Arc<rustls::ClientConfig> {
        client_config(&self.pair)
    }

    /// The URL of `name` by that transport, as curl can reach it.
    #[track_caller]
    pub(crate) fn url(&self, transport: Transport, name: &str) -> String {
        let scheme = if transport == Transport::Tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}/{name}", self.address(transport).port())
    }
}

/// The configuration of a [`Fixture`], with `toml` in it. `toml` begins with keys of the default site.
pub(crate) fn toml_for(site: &Site, pair: &CertificatePair, toml: &str) -> String {
    format!(
        "listen = [\"127.0.0.1:0\", \"http://127.0.0.1:0\"]\nworkers = 1\n\n[[site]]\nroot = {:?}\n\
         certificates = [{{ certificate = {:?}, key = {:?} }}]\n{toml}\n",
        site.path(),
        pair.certificate,
        pair.key
    )
}

/// A folder with a certificate for localhost.
pub(crate) fn certificate_folder() -> (TempDir, CertificatePair) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pair = CertificatePair::for_localhost(folder.path());
    (folder, pair)
}

/// A GET with a Host header; `headers` are whole lines.
pub(crate) fn get(target: &str, headers: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
}

/// Sets a file's time of modification back, so that it counts as at rest.
pub(crate) fn age(path: &Path, by: Duration) {
    let file = File::options().write(true).open(path).expect("a file of the site");
    let then = SystemTime::now() - by;
    file.set_times(FileTimes::new().set_modified(then).set_accessed(then)).expect("its owner may");
}

/// Adds a file of bytes that follow from its name, a minute old: its tag is strong, and it is mapped if it is large
/// enough.
pub(crate) fn add_at_rest(site: &Site, name: &str, length_bytes: usize) -> Vec<u8> {
    let bytes = site.add_pattern(name, length_bytes);
    age(&site.path().join(name), Duration::from_secs(60));
    bytes
}
