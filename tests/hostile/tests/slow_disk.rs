//! A server whose disk is slow: its clients wait, and are charged for none of it (INV-PEER-2).

use linerate_end_to_end::{CertificatePair, ClientSetup, ServerSetup, Site, skip};
use linerate_hostile::{Fault, SlowDisk};
use rustls::version::TLS13;
use std::time::Duration;

/// Longer than every time limit of the server.
const DELAY: Duration = Duration::from_secs(4);
const TIMEOUTS: &str =
    "[timeouts]\nhandshake = \"1s\"\nheader = \"1s\"\nidle = \"1s\"\nwrite_progress = \"1s\"";

#[test]
fn a_read_that_takes_longer_than_a_client_may_take_cuts_nobody() {
    const NAME: &str = "a_read_that_takes_longer_than_a_client_may_take_cuts_nobody";
    let site = Site::empty();
    let bytes = site.add_pattern("film.bin", 9_000_001);
    let disk = match SlowDisk::mount(site.path()) {
        Ok(disk) => disk,
        Err(why) => return skip(NAME, &why),
    };
    // Once at the beginning, and once where the response is under way.
    disk.break_reads("film.bin", 0..1, Fault::Delay(DELAY));
    disk.break_reads("film.bin", 5_000_000..5_000_001, Fault::Delay(DELAY));
    let keys = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(keys.path());
    let toml = format!(
        "listen = [\"127.0.0.1:0\"]\nworkers = 1\n{TIMEOUTS}\n[[site]]\nroot = {:?}\n\
         certificates = [{{ certificate = {:?}, key = {:?} }}]\n",
        disk.path(),
        pair.certificate,
        pair.key
    );
    let server = ServerSetup::toml(&toml).admin().start();
    let mut client = ClientSetup::of_version(&pair, &TLS13).connect(server.address());
    let response = client.get("film.bin");
    assert!(
        response.status == 200 && response.body == bytes,
        "{} bytes of {}",
        response.body.len(),
        bytes.len()
    );
    assert!(disk.broken_reads() >= 2, "the disk was slow {} times", disk.broken_reads());
    assert!(client.get("film.bin").body == bytes, "and the connection goes on");
    for reason in ["write_timeout", "too_slow", "header_timeout"] {
        assert_eq!(server.metric("linerate_connections_closed_total", reason), 0.0, "{reason}");
    }
}
