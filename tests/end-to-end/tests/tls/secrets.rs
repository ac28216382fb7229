//! No secret of any connection is written anywhere (INV-SECRET-1).

use crate::fixture::Fixture;
use linerate_end_to_end::{ClientSetup, RawClient, SecretLog, Signal, wait_until};
use rustls::version::{TLS12, TLS13};
use std::{fs, sync::Arc};

#[test]
fn logs_hold_no_key_material() {
    let fixture = Fixture::new();
    let log = fixture.keys.path().join("access.log");
    let setup = fixture.setup().flag("--access-log").flag(&log).flags(["--log-format", "json"]);
    // What a curious operator would set: none of it may make the server talk.
    let setup = setup.env("RUST_LOG", "trace").env("SSLKEYLOGFILE", fixture.keys.path().join("keylog"));
    let mut server = setup.start();
    let secrets = Arc::new(SecretLog::default());
    for version in [&TLS12, &TLS13] {
        let setup = ClientSetup::of_version(&fixture.pair, version).resuming().logging_secrets(&secrets);
        for _ in 0..2 {
            let mut client = setup.connect(server.address());
            assert_eq!(client.get("16385.bin").status, 200);
            if client.is_tls13() {
                client.refresh_keys();
                assert_eq!(client.get("1.bin").status, 200);
            }
        }
        // A connection that fails is where a careless log would show what it was about.
        let mut broken = RawClient::connect(&setup, server.address());
        let mut record = broken.seal_request("1.bin");
        *record.last_mut().unwrap() ^= 1;
        broken.send(&record);
        assert_eq!(broken.receive_alert(), [2, 20]);
    }
    server.signal(Signal::USR1);
    server.reload();
    wait_until("the access log", || fs::read_to_string(&log).is_ok_and(|text| text.lines().count() >= 6));
    assert!(server.stop().success());

    let secrets = secrets.secrets();
    // TLS 1.3 logs four of each full handshake and more; TLS 1.2 one.
    assert!(secrets.len() >= 6, "{}", secrets.len());
    let written =
        [server.stderr(), server.stdout(), fs::read_to_string(&log).unwrap()].concat().to_lowercase();
    assert!(written.contains("16385.bin"), "{written}");
    for (label, secret) in &secrets {
        assert!(!written.contains(secret), "{label}");
        // Nor the way Rust prints a slice of bytes.
        let bytes: Vec<u8> = (0..secret.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&secret[at..at + 2], 16).unwrap())
            .collect();
        let printed = format!("{:?}", &bytes[..8]);
        assert!(!written.contains(printed.trim_matches(['[', ']'])), "{label}");
    }
    assert!(!written.contains("private key"), "{written}");
    assert!(!fixture.keys.path().join("keylog").exists(), "SSLKEYLOGFILE was obeyed");
}
