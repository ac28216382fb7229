//! The user engine on a kernel that has TLS: it leaves the kernel's alone.

use linerate_end_to_end::{CertificatePair, ClientSetup, ODD_LENGTHS, ServerSetup, Site};
use linerate_guest_tests::{TlsStatistics, has_kernel_tls};
use rustls::version::{TLS12, TLS13};

#[test]
fn the_user_engine_never_asks_the_kernel() {
    if !has_kernel_tls("the_user_engine_never_asks_the_kernel") {
        return;
    }
    let site = Site::of_odd_lengths();
    let keys = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(keys.path());
    let before = TlsStatistics::now();
    let server = ServerSetup::tls(&site, &pair).flags(["--engine", "user"]).start();
    for version in [&TLS12, &TLS13] {
        let mut client = ClientSetup::of_version(&pair, version).connect(server.address());
        for length_bytes in ODD_LENGTHS {
            let name = Site::name_for(length_bytes);
            assert!(client.get(&name).body == site.bytes(&name), "{version:?} {name}");
        }
    }
    assert_eq!(before.moved("TlsTxSw") + before.moved("TlsRxSw"), 0);
}
