//! Clients and their certificates. They are refused above TLS: a client that TLS refuses hangs.

use crate::{
    calls::{certificates, serve},
    peer::{Answer, Peer, TOO_WEAK},
};
use linerate_end_to_end::{Algorithm, CertificatePair, Site};

#[test]
fn a_client_without_the_right_certificate_is_refused_by_rpc() {
    let site = Site::empty();
    let expected = site.add_pattern("file", 1000);
    let folder = tempfile::tempdir().unwrap();
    let create = |stem, names: &[&str]| CertificatePair::create(folder.path(), stem, Algorithm::Ecdsa, names);
    let pair = create("server", &["localhost"]);
    let (right, wrong, stranger) = (
        create("right", &["nas.example"]),
        create("wrong", &["other.example"]),
        create("stranger", &["nas.example"]),
    );
    let authorities = folder.path().join("authorities.pem");
    let read = |pair: &CertificatePair| std::fs::read(&pair.certificate).unwrap();
    std::fs::write(&authorities, [read(&right), read(&wrong)].concat()).unwrap();
    let toml = format!(
        "{}client_authorities = {authorities:?}\n[[export]]\ndirectory = {:?}\nclients = [\"nas.example\"]\n",
        certificates(&pair),
        site.path()
    );
    let server = serve(&toml);
    let address = server.listener("nfs", 0);
    for (client, said) in [
        (None, "the export is for clients with a certificate"),
        (Some(&wrong), "its certificate has none of the names"),
        (Some(&stranger), "the client's certificate counts for nothing"),
    ] {
        let mut peer = Peer::connect(address).secured(&pair, client);
        assert_eq!(peer.null().unwrap(), Answer::Accepted);
        assert_eq!(peer.begin_session("refused"), Err(TOO_WEAK));
        server.wait_for_stderr(said);
    }
    let mut peer = Peer::connect(address).secured(&pair, Some(&right));
    peer.begin_session("right").unwrap();
    let handle = peer.look_up(&["file"]).unwrap();
    assert_eq!(peer.read_all(&handle, 4096), expected);
    let refused = |reason| server.metric("linerate_nfs_refused_total", &format!("reason=\"{reason}\""));
    assert_eq!((refused("no_certificate"), refused("certificate_name")), (2.0, 1.0));
    assert_eq!(server.metric("linerate_nfs_calls_total", r#"outcome="denied""#), 3.0);
}

#[test]
fn a_client_from_elsewhere_gets_nothing() {
    let site = Site::empty();
    let export = |name, networks| {
        format!("[[export]]\nname = {name:?}\ndirectory = {:?}\ntls = \"off\"\n{networks}", site.path())
    };
    let server = serve(&export("away", "networks = [\"192.0.2.0/24\"]\n"));
    let mut peer = Peer::connect(server.listener("nfs", 0));
    assert_eq!(peer.begin_session("elsewhere"), Err(TOO_WEAK));
    server.wait_for_stderr("/away: its address is in none of the export's networks");
    let both = export("away", "networks = [\"192.0.2.0/24\"]\n") + &export("here", "");
    let server = serve(&both);
    let mut peer = Peer::connect(server.listener("nfs", 0));
    peer.begin_session("here").unwrap();
    assert!(peer.look_up(&["here"]).is_ok());
    assert_eq!(peer.look_up(&["away"]), Err(13), "NFS4ERR_ACCESS");
    assert_eq!(server.metric("linerate_nfs_refused_total", r#"reason="network""#), 1.0);
}
