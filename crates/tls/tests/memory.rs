//! What an established connection holds on to: ten thousand idle ones must fit into 10 KiB each, all included.

mod support;

use linerate_tls::{Established, Handshake, KeySchedule, TlsPolicy};
use support::{Algorithm, Pki, acceptor, one_site, run};

const CONNECTIONS: usize = 3000;

fn resident_bytes() -> usize {
    usize::try_from(linerate_os::process::resident_bytes().unwrap()).unwrap()
}

/// The only test of its binary: another thread's memory would be measured with it.
#[test]
fn a_key_schedule_is_small() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let acceptor = acceptor(TlsPolicy::default(), one_site(vec![files]));
    let config = std::sync::Arc::new(pki.client().config());
    let established = || *run(&acceptor, &mut support::connect(&config, "site.example")).unwrap().0;

    println!("size_of: Handshake {} Established {}", size_of::<Handshake>(), size_of::<Established>());
    // A connection that only opened.
    assert!(size_of::<Handshake>() <= 128);
    assert_eq!(size_of::<KeySchedule>(), size_of::<usize>());

    // Warm: the allocator keeps what handshakes needed and gave back.
    let mut kept = Vec::with_capacity(2 * CONNECTIONS);
    kept.extend((0..CONNECTIONS / 10).map(|_| established().key_schedule));
    let before = resident_bytes();
    kept.extend((0..CONNECTIONS).map(|_| established().key_schedule));
    let each_bytes = resident_bytes().saturating_sub(before) / CONNECTIONS;
    println!("a key schedule takes {each_bytes} bytes");
    assert!(each_bytes <= 1536, "{each_bytes} bytes for each key schedule");
    assert_eq!(kept.len(), CONNECTIONS + CONNECTIONS / 10);
}
