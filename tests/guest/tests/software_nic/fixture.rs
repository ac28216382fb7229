//! What these tests need: the adapter, a site of odd lengths, and nginx before it.

use linerate_end_to_end::{CertificatePair, Server, ServerSetup, Site, linerate_binary, skip};
use linerate_guest_tests::{Adapter, Held, Nginx, TlsStatistics, has_kernel_tls};
use std::net::IpAddr;
use tempfile::TempDir;

/// Long enough for many records and many frames; odd.
pub(crate) const LARGE: &str = "3000001.bin";

/// The adapter, and nginx on this side of it, with kernel TLS.
pub(crate) struct Fixture {
    // Dropped in this order: the server first.
    pub(crate) nginx: Nginx,
    pub(crate) adapter: Adapter,
    pub(crate) site: Site,
    pub(crate) pair: CertificatePair,
    _keys: TempDir,
}

impl Fixture {
    /// With the module loaded with these parameters. `None`, said loudly, where something is missing.
    #[track_caller]
    pub(crate) fn load(test: &str, parameters: &[&str]) -> Option<Self> {
        Self::load_at(test, Adapter::NEAR.into(), parameters)
    }

    /// With nginx on this address of the adapter.
    #[track_caller]
    pub(crate) fn load_at(test: &str, address: IpAddr, parameters: &[&str]) -> Option<Self> {
        if !has_kernel_tls(test) {
            return None;
        }
        let adapter = Adapter::load(test, parameters)?;
        let keys = tempfile::tempdir().unwrap();
        let pair = CertificatePair::for_localhost(keys.path());
        let site = Site::of_odd_lengths();
        let Some(nginx) = Nginx::start_at(address, &site, &pair) else {
            skip(test, "nginx is not installed");
            return None;
        };
        Some(Self { nginx, adapter, site, pair, _keys: keys })
    }

    /// A linerate on this side of the adapter, with the kernel engine.
    #[track_caller]
    pub(crate) fn linerate(&self) -> Server {
        self.linerate_with(|setup| setup.flags(["--engine", "kernel"]))
    }

    /// A linerate on this side of the adapter that writes its access log to standard output, changed by `change`.
    #[track_caller]
    pub(crate) fn linerate_with(&self, change: impl FnOnce(ServerSetup) -> ServerSetup) -> Server {
        let listen = format!("{}:0", self.nginx.kernel_tls.ip());
        let setup = ServerSetup::new()
            .flag(self.site.path())
            .flags(["--listen", &listen, "--workers", "1", "--access-log", "-", "--log-format", "json"])
            .certificate(&self.pair)
            .admin();
        change(setup).start()
    }

    /// Has the far side fetch a file from nginx by kernel TLS, and compares every byte.
    #[track_caller]
    pub(crate) fn fetch(&self, name: &str, arguments: &[&str]) {
        let from = self.nginx.kernel_tls;
        let body = self.adapter.fetch(from.ip(), from.port(), name, arguments).success();
        assert!(body == self.site.bytes(name), "{name} {arguments:?}: {} bytes", body.len());
    }

    /// As [`Fixture::fetch`]; all went through the device, and nothing through the kernel's software.
    #[track_caller]
    pub(crate) fn fetch_by_device(&self, name: &str, arguments: &[&str]) {
        let before = TlsStatistics::now();
        self.fetch(name, arguments);
        assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (1, 0), "{name} {arguments:?}");
    }

    /// A connection to nginx that asks for nothing; see [`Adapter::hold_connection`].
    #[track_caller]
    pub(crate) fn hold_connection(&self) -> Held {
        self.adapter.hold_connection(self.nginx.kernel_tls.ip(), self.nginx.kernel_tls.port())
    }

    /// So many requests from the far side, each on a connection of its own, four at a time; every byte is compared.
    #[track_caller]
    pub(crate) fn load_with_new_connections(&self, name: &str, requests: u32) {
        let url = format!("https://{}/{name}", self.nginx.kernel_tls);
        let (file, requests) = (self.site.path().join(name), requests.to_string());
        let program = linerate_binary();
        let run = self
            .adapter
            .far(
                program.to_str().unwrap(),
                &["load", &url, "--insecure", "--tls", "1.2", "--close", "-c", "4"],
            )
            .arguments(["-n", &requests, "--verify", file.to_str().unwrap()])
            .run();
        assert!(
            run.text().contains("verified    every byte is its source's"),
            "{}{}",
            run.text(),
            run.stderr
        );
        drop(run.success());
    }
}
