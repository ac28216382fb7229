//! Linux' own NFS client against `linerate nfs`: what it mounts, reads and survives, in the clear and over TLS.
//!
//! `guest/test` unpacks the client's programs (`guest/nfs-tree`) and names their folder in `LINERATE_NFS_TREE`. The kernel has
//! the client, and RPC-with-TLS from Linux 6.5 on.

mod bench;
mod client;
mod connections;
mod long;
mod tree;

use client::{Client, Mounted, Security};
use linerate_end_to_end::{Algorithm, CertificatePair, Server, ServerSetup, skip};
use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
};

/// Where the server listens: NFS clients ask this port.
const LISTEN: &str = "nfs://127.0.0.1:2049";

struct Fixture {
    folder: tempfile::TempDir,
    server: CertificatePair,
    client: CertificatePair,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        let create = |stem, names: &[&str]| CertificatePair::create(&pki, stem, Algorithm::Ecdsa, names);
        let server = create("server", &["localhost", "127.0.0.1"]);
        let client = create("client", &["client.example"]);
        fs::create_dir(folder.path().join("shown")).unwrap();
        Self { folder, server, client }
    }

    fn shown(&self) -> std::path::PathBuf {
        self.folder.path().join("shown")
    }

    /// A server whose keys are used up every few MiB.
    fn start(&self) -> Server {
        self.start_with("engine = \"user\"")
    }

    /// The same, with what `toml` says first.
    fn start_with(&self, toml: &str) -> Server {
        let shown = self.shown();
        ServerSetup::toml(&format!(
            "listen = [{LISTEN:?}]\n{toml}\n[tls]\nrecords_per_key = 600\n\
             [nfs]\ncertificates = [{{ certificate = {:?}, key = {:?} }}]\nclient_authorities = {:?}\n\
             [[export]]\nname = \"open\"\ndirectory = {shown:?}\ntls = \"offer\"\n\
             [[export]]\nname = \"certified\"\ndirectory = {shown:?}\nclients = [\"client.example\"]\n\
             [[export]]\nname = \"others\"\ndirectory = {shown:?}\nclients = [\"other.example\"]\n",
            self.server.certificate, self.server.key, self.client.certificate
        ))
        .env("XDG_STATE_HOME", self.folder.path().join("state"))
        .admin()
        .start()
    }
}

/// Every file of the export, and random places of a large one.
fn read_and_compare(mounted: &Mounted, shown: &Path, large: &[u8]) {
    let here = mounted.path();
    assert_eq!(tree::contents(here), tree::contents(shown));
    let file = File::open(here.join("large")).unwrap();
    let mut place = 12_345_u64;
    for _ in 0..40 {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let offset = (place >> 33) as usize % large.len();
        let mut part = vec![0; (large.len() - offset).min(1 + (place >> 40) as usize % 70_000)];
        file.read_exact_at(&mut part, offset as u64).unwrap();
        assert!(part == large[offset..offset + part.len()], "at {offset}");
    }
}

#[test]
fn linux_mounts_it_in_the_clear_and_over_tls_and_reads_what_there_is() {
    const TEST: &str = "linux_mounts_it_in_the_clear_and_over_tls_and_reads_what_there_is";
    let fixture = Fixture::new();
    let Some(client) = Client::set_up(TEST, &fixture.server, &fixture.client) else { return };
    let large = linerate_end_to_end::pattern("large", 12 << 20);
    tree::make(&fixture.shown(), 700);
    fs::write(fixture.shown().join("large"), &large).unwrap();
    let server = fixture.start();
    for security in [Security::None, Security::Tls, Security::Mutual] {
        if security != Security::None && !client.has_tls() {
            skip(TEST, &format!("{security:?}: this kernel has no RPC-with-TLS (Linux 6.5 and later)"));
            continue;
        }
        let export = if security == Security::Mutual { "certified" } else { "open" };
        let mounted = client.mount(export, security).unwrap();
        read_and_compare(&mounted, &fixture.shown(), &large);
        assert!(fs::write(mounted.path().join("new"), "").is_err(), "it is read-only");
        drop(mounted);
    }
    if client.has_tls() {
        // Who may not have it is told at once, and does not hang.
        let refused = client.mount("others", Security::Mutual).map(|_| ()).unwrap_err();
        assert!(refused.contains("denied") || refused.contains("not permitted"), "{refused}");
        assert!(server.metric("linerate_nfs_refused_total", r#"reason="certificate_name""#) > 0.0);
        // The connections ended when their keys were used up, and nobody noticed.
        assert!(server.metric("linerate_connections_closed_total", r#"reason="record_limit""#) > 1.0);
        assert_eq!(server.metric("linerate_tls_key_updates_total", r#"direction="sent""#), 0.0);
    }
}

#[test]
fn an_open_file_outlives_a_restart_of_the_server() {
    const TEST: &str = "an_open_file_outlives_a_restart_of_the_server";
    let fixture = Fixture::new();
    let Some(client) = Client::set_up(TEST, &fixture.server, &fixture.client) else { return };
    let large = linerate_end_to_end::pattern("large", 3 << 20);
    fs::write(fixture.shown().join("large"), &large).unwrap();
    let mut server = Some(fixture.start());
    let security = if client.has_tls() { Security::Tls } else { Security::None };
    // Declared behind the server: a mount whose server is gone cannot be taken away.
    let mounted = client.mount("open", security).unwrap();
    let file = File::open(mounted.path().join("large")).unwrap();
    let mut begin = [0; 1000];
    file.read_exact_at(&mut begin, 0).unwrap();
    drop(server.take());
    // Its name may change, too.
    fs::rename(fixture.shown().join("large"), fixture.shown().join("renamed")).unwrap();
    server = Some(fixture.start());
    let mut all = vec![0; large.len()];
    file.read_exact_at(&mut all, 0).unwrap();
    assert!(all == large && all.starts_with(&begin));
    assert!(server.is_some());
}
