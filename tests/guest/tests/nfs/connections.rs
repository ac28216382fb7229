//! What becomes of connections under a mount: several at once, a certificate that is replaced, the kernel's engine.

use super::{Fixture, Security};
use crate::client::Client;
use linerate_end_to_end::{Algorithm, CertificatePair, pattern, skip};
use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
};

/// A client that has TLS, and a server's folder with one large file. `None`, and said, where there is no such client.
fn set_up(test: &str) -> Option<(Fixture, Client, Vec<u8>)> {
    let fixture = Fixture::new();
    let client = Client::set_up(test, &fixture.server, &fixture.client)?;
    if !client.has_tls() {
        skip(test, "this kernel has no RPC-with-TLS (Linux 6.5 and later)");
        return None;
    }
    let large = pattern("large", 8 << 20);
    fs::write(fixture.shown().join("large"), &large).unwrap();
    Some((fixture, client, large))
}

#[test]
fn one_mount_may_have_four_connections() {
    let Some((fixture, client, large)) = set_up("one_mount_may_have_four_connections") else { return };
    let server = fixture.start();
    let mounted = client.mount_with("open", Security::Tls, "vers=4.2,nconnect=4").unwrap();
    assert!(fs::read(mounted.path().join("large")).unwrap() == large);
    assert!(server.metric("linerate_nfs_tls_total", r#"answer="begun""#) >= 4.0);
}

#[test]
fn a_certificate_is_replaced_under_a_mount() {
    let Some((fixture, client, large)) = set_up("a_certificate_is_replaced_under_a_mount") else { return };
    let server = fixture.start();
    let mounted = client.mount("open", Security::Tls).unwrap();
    let file = File::open(mounted.path().join("large")).unwrap();
    let mut half = vec![0; large.len() / 2];
    file.read_exact_at(&mut half, 0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let names = ["localhost", "127.0.0.1"];
    let new = CertificatePair::create(folder.path(), "new", Algorithm::Ecdsa, &names);
    fs::copy(&new.key, &fixture.server.key).unwrap();
    fs::copy(&new.certificate, &fixture.server.certificate).unwrap();
    server.reload();
    let begun = || server.metric("linerate_nfs_tls_total", r#"answer="begun""#);
    let before = begun();
    // The connection's key is used up several times meanwhile. Each further one comes about with the new certificate alone.
    client.trust(&[&new]);
    let mut all = vec![0; large.len()];
    file.read_exact_at(&mut all, 0).unwrap();
    assert!(all == large && all.starts_with(&half));
    assert!(begun() > before, "no connection was made since");
}

#[test]
fn the_kernel_engine_carries_a_mount() {
    let Some((fixture, client, large)) = set_up("the_kernel_engine_carries_a_mount") else { return };
    let server = fixture.start_with("engine = \"kernel\"");
    let mounted = client.mount("open", Security::Tls).unwrap();
    assert!(fs::read(mounted.path().join("large")).unwrap() == large);
    let promoted = server.metric("linerate_kernel_tls_promotions_total", "");
    assert!(promoted > 0.0, "{}", server.metrics());
    assert_eq!(server.metric("linerate_tls_key_updates_total", r#"direction="sent""#), 0.0);
}
