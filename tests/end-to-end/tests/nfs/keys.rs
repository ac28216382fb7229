//! No key update is ever sent: Linux' client fails of it, or hangs.

use crate::{
    calls::{certificates, serve},
    peer::{Peer, TlsPeer},
};
use linerate_end_to_end::{CertificatePair, Site};
use std::io;

const SENT: (&str, &str) = ("linerate_tls_key_updates_total", r#"direction="sent""#);

/// INV-NFS-1.
#[test]
fn a_connection_whose_key_is_used_up_ends_between_two_replies() {
    let site = Site::empty();
    let expected = site.add_pattern("file", 100_000);
    let folder = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(folder.path());
    let toml = format!(
        "[tls]\nrecords_per_key = 200\n{}[[export]]\ndirectory = {:?}\n",
        certificates(&pair),
        site.path()
    );
    let server = serve(&toml);
    let mut reads = 0;
    // The client goes on with another connection, in the same way.
    for _ in 0..2 {
        let mut peer = Peer::connect(server.listener("nfs", 0)).secured(&pair, None);
        peer.begin_session("reader").unwrap();
        let handle = peer.look_up(&["file"]).unwrap();
        let end = loop {
            match peer.read(&handle, 0, 100_000) {
                Ok(read) => {
                    assert!(read.unwrap() == expected);
                    reads += 1;
                }
                Err(end) => break end,
            }
            assert!(reads < 1000, "it never ends");
        };
        // Nothing of another reply, and close_notify: without that rustls would say `UnexpectedEof` with other words.
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
        assert!(is_closed_well(&mut peer), "{end}");
    }
    assert!(reads > 10, "{reads}");
    assert_eq!(server.metric(SENT.0, SENT.1), 0.0);
    assert_eq!(server.metric("linerate_connections_closed_total", r#"reason="record_limit""#), 2.0);
}

/// RFC 8446 4.6.3 wants an update in return before anything else is sent: there is none, so nothing else is sent.
#[test]
fn a_client_that_asks_for_a_key_update_is_told_goodbye() {
    let site = Site::empty();
    let folder = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(folder.path());
    let server = serve(&format!("{}[[export]]\ndirectory = {:?}\n", certificates(&pair), site.path()));
    let mut peer = Peer::connect(server.listener("nfs", 0)).secured(&pair, None);
    peer.begin_session("reader").unwrap();
    peer.stream.conn.refresh_traffic_keys().unwrap();
    assert!(peer.null().is_err());
    assert!(is_closed_well(&mut peer));
    assert_eq!(server.metric(SENT.0, SENT.1), 0.0);
}

/// Whether `close_notify` came before the end.
fn is_closed_well(peer: &mut TlsPeer) -> bool {
    peer.stream.conn.process_new_packets().is_ok_and(|state| state.peer_has_closed())
}
