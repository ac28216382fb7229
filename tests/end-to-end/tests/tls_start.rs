//! A server starts, serves every length byte for byte, and ends.

use linerate_end_to_end::{CertificatePair, ODD_LENGTHS, ServerSetup, Site, curl};

#[test]
fn every_length_arrives_as_it_is_on_disk() {
    let site = Site::of_odd_lengths();
    let keys = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(keys.path());
    let mut server = ServerSetup::tls(&site, &pair).start();
    for length_bytes in ODD_LENGTHS {
        let name = Site::name_for(length_bytes);
        let body =
            curl(["--cacert".as_ref(), pair.certificate.as_os_str(), server.url(&name).as_ref()]).run();
        assert!(body.success() == site.bytes(&name), "{name}");
    }
    assert!(server.stop().success());
}
