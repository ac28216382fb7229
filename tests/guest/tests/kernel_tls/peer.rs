//! nginx with kernel TLS: that the kernel has what these tests are about, and that it can be told when it works.

use linerate_end_to_end::{CertificatePair, ClientSetup, ODD_LENGTHS, Site, curl, is_installed, skip};
use linerate_guest_tests::{Nginx, TlsStatistics, has_kernel_tls};
use rustls::version::{TLS12, TLS13};

#[test]
fn nginx_serves_equal_bytes_by_kernel_tls() {
    const NAME: &str = "nginx_serves_equal_bytes_by_kernel_tls";
    if !has_kernel_tls(NAME) {
        return;
    }
    let site = Site::of_odd_lengths();
    let keys = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(keys.path());
    let Some(nginx) = Nginx::start(&site, &pair) else {
        return skip(NAME, "nginx is not installed");
    };
    for version in [&TLS12, &TLS13] {
        for (address, expected) in [(nginx.kernel_tls, 1), (nginx.user_tls, 0)] {
            let before = TlsStatistics::now();
            let mut client = ClientSetup::of_version(&pair, version).connect(address);
            for length_bytes in ODD_LENGTHS {
                let name = Site::name_for(length_bytes);
                assert!(client.get(&name).body == site.bytes(&name), "{version:?} {name}");
            }
            assert_eq!(
                before.moved("TlsTxSw"),
                expected,
                "{version:?}: connections that the kernel sent for"
            );
            assert_eq!(before.new_faults(), []);
        }
    }
}

#[test]
fn curl_fetches_from_nginx_by_kernel_tls() {
    const NAME: &str = "curl_fetches_from_nginx_by_kernel_tls";
    if !has_kernel_tls(NAME) {
        return;
    }
    if !is_installed("curl") {
        return skip(NAME, "curl is not installed");
    }
    let site = Site::of_odd_lengths();
    let keys = tempfile::tempdir().unwrap();
    let pair = CertificatePair::for_localhost(keys.path());
    let Some(nginx) = Nginx::start(&site, &pair) else {
        return skip(NAME, "nginx is not installed");
    };
    let before = TlsStatistics::now();
    let trust = ["--cacert", pair.certificate.to_str().unwrap(), "--range", "16383-1000000"];
    let url = format!("https://127.0.0.1:{}/3000001.bin", nginx.kernel_tls.port());
    assert!(curl(trust).arguments([&url]).run().success() == site.bytes("3000001.bin")[16_383..=1_000_000]);
    assert_eq!(before.moved("TlsTxSw"), 1);
}
