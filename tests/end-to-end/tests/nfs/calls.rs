//! Calls in the clear and over TLS.

use crate::peer::{Answer, BAD_CREDENTIAL, NFS, Peer, TOO_WEAK};
use linerate_end_to_end::{CertificatePair, Server, ServerSetup, Site, connect, wait_until};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

/// A server of one export with all that `toml` says beside.
pub(crate) fn serve(toml: &str) -> Server {
    ServerSetup::toml(&format!("listen = [\"nfs://127.0.0.1:0\"]\nworkers = 1\n{toml}",)).admin().start()
}

pub(crate) fn certificates(pair: &CertificatePair) -> String {
    format!("[nfs]\ncertificates = [{{ certificate = {:?}, key = {:?} }}]\n", pair.certificate, pair.key)
}

#[test]
fn where_tls_is_required_it_begins_on_the_same_connection() {
    let site = Site::empty();
    let certificates_folder = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(certificates_folder.path());
    let expected = site.add_pattern("folder/large", 3_000_001);
    let toml = format!("{}[[export]]\ndirectory = {:?}\n", certificates(&pair), site.path());
    let server = serve(&toml);
    let address = server.listener("nfs", 0);

    let mut clear = Peer::connect(address);
    assert_eq!(clear.null().unwrap(), Answer::Accepted);
    assert_eq!(clear.begin_session("clear"), Err(TOO_WEAK), "and the connection goes on");
    let mut peer = clear.secured(&pair, None);
    assert_eq!(peer.null().unwrap(), Answer::Accepted);
    peer.begin_session("tls").unwrap();
    let handle = peer.look_up(&["folder", "large"]).unwrap();
    assert_eq!(peer.look_up(&["folder", "nowhere"]), Err(2));
    for step_bytes in [1 << 20, 99_991] {
        assert!(peer.read_all(&handle, step_bytes) == expected, "by {step_bytes}");
    }
    // Within TLS there is nothing more to begin.
    peer.send(NFS, 4, 0, 7, &[], &[]).unwrap();
    let mut reply = peer.receive().unwrap();
    reply.word();
    assert_eq!([(); 4].map(|()| reply.word()), [1, 1, 1, 1], "AUTH_ERROR, AUTH_BADCRED");
    assert_eq!(peer.null().unwrap(), Answer::Accepted);
    assert_eq!(server.metric("linerate_nfs_tls_total", r#"answer="begun""#), 1.0);
    assert!(server.metric("linerate_nfs_calls_total", r#"outcome="answered""#) > 30.0);
}

#[test]
fn without_tls_it_is_declined_and_files_are_read_in_the_clear() {
    let site = Site::empty();
    let expected = site.add_pattern("large", 2_500_003);
    let server = serve(&format!("[[export]]\ndirectory = {:?}\ntls = \"off\"\n", site.path()));
    let mut peer = Peer::connect(server.listener("nfs", 0));
    assert_eq!(peer.probe(), Err(BAD_CREDENTIAL));
    peer.begin_session("clear").unwrap();
    let handle = peer.look_up(&["large"]).unwrap();
    assert!(peer.read_all(&handle, 1 << 20) == expected);
    assert_eq!(server.metric("linerate_nfs_tls_total", r#"answer="declined""#), 1.0);
}

/// A server that waited for one handshake at a time would be stopped by four of these for everybody.
#[test]
fn clients_that_ask_for_tls_and_fall_silent_delay_nobody() {
    let site = Site::empty();
    let expected = site.add_pattern("file", 70_000);
    let certificates_folder = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(certificates_folder.path());
    let toml = format!(
        "[timeouts]\nhandshake = \"1h\"\n{}[[export]]\ndirectory = {:?}\n",
        certificates(&pair),
        site.path()
    );
    let server = serve(&toml);
    let address = server.listener("nfs", 0);
    let mut silent: Vec<_> = (0..100).map(|_| Peer::connect(address)).collect();
    for peer in &mut silent {
        assert!(peer.probe().is_ok());
    }
    wait_until("their handshakes", || server.metric("linerate_tls_handshakes_in_flight", "") == 100.0);
    let mut peer = Peer::connect(address).secured(&pair, None);
    peer.begin_session("lively").unwrap();
    let handle = peer.look_up(&["file"]).unwrap();
    assert!(peer.read_all(&handle, 65_536) == expected);
    assert_eq!(server.metric("linerate_tls_handshakes_in_flight", ""), 100.0, "they are silent still");
}

#[test]
fn what_is_no_call_ends_its_own_connection() {
    let site = Site::empty();
    let certificates_folder = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(certificates_folder.path());
    let toml = format!("{}[[export]]\ndirectory = {:?}\n", certificates(&pair), site.path());
    let server = serve(&toml);
    let address = server.listener("nfs", 0);
    let too_long = [0xff; 8];
    let a_reply = [&0x8000_000c_u32.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]].concat();
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &too_long, &a_reply, &[0x16, 3, 1, 2, 0, 1]] {
        let mut stream: TcpStream = connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "{bytes:?}");
    }
    assert_eq!(server.metric("linerate_connections_closed_total", r#"reason="bad_request""#), 4.0);
    let mut well = Peer::connect(address);
    assert_eq!(well.null().unwrap(), Answer::Accepted);
}
