//! The module's own life: steps that fail when it is loaded and when a connection is set up, and its end while it carries
//! connections. Nothing may leak, and the kernel must have nothing to say (which every test looks at in its end).

use crate::fixture::{Fixture, LARGE};
use linerate_end_to_end::wait_until;
use linerate_guest_tests::{
    Adapter, TlsStatistics, assert_well, has_kernel_tls, insert, kernel_messages, remove,
};
use std::{fs, path::Path, thread};

#[test]
fn every_step_of_loading_can_fail() {
    const NAME: &str = "every_step_of_loading_can_fail";
    if !has_kernel_tls(NAME) {
        return;
    }
    let Some(module) = Adapter::module(NAME) else { return };
    let messages = kernel_messages().len();
    insert(&module, &["pairs=2"]).unwrap();
    let steps = fs::read_to_string("/sys/module/linerate_nic/parameters/init_steps").unwrap();
    let steps: u32 = steps.trim().parse().unwrap();
    remove();
    // The cipher, and for each of four ports: the device, its queues, its registration.
    assert_eq!(steps, 13);
    for step in 1..=steps {
        let error = insert(&module, &["pairs=2", &format!("fail_init={step}")]).unwrap_err();
        assert!(error.contains("Cannot allocate memory"), "step {step}: {error}");
        for index in 0..4 {
            assert!(!Path::new(&format!("/sys/class/net/lrnic{index}")).exists(), "step {step}");
        }
    }
    for wrong in ["pairs=0", "pairs=5", "queues=0", "queues=65", "preset=connectx5"] {
        assert!(insert(&module, &[wrong]).is_err(), "{wrong}");
    }
    insert(&module, &["pairs=4", "queues=64"]).unwrap();
    assert!(Path::new("/sys/class/net/lrnic7").exists());
    remove();
    assert_well(&kernel_messages()[messages..]);
}

#[test]
fn every_step_of_a_set_up_can_fail() {
    let Some(fixture) = Fixture::load("every_step_of_a_set_up_can_fail", &[]) else { return };
    let adapter = &fixture.adapter;
    fixture.fetch_by_device("16385.bin", &[]);
    let steps: u64 = adapter.parameter("setup_steps").parse().unwrap();
    assert_eq!(steps, 5);
    for step in 1..=steps {
        adapter.set("fail_setup", &step.to_string());
        let before = TlsStatistics::now();
        fixture.fetch("16385.bin", &[]);
        assert_eq!((before.moved("TlsTxDevice"), before.moved("TlsTxSw")), (0, 1), "step {step}");
        assert_eq!(adapter.counter("tx_tls_setup_failed"), step);
    }
    adapter.set("fail_setup", "0");
    fixture.fetch_by_device(LARGE, &[]);
    assert_eq!(adapter.counter("tx_tls_ctx"), 2);
}

#[test]
fn it_can_be_taken_away_with_connections_in_it() {
    const NAME: &str = "it_can_be_taken_away_with_connections_in_it";
    const IDLE: usize = 3;
    // So slow that the file takes 24 s: a busy machine needs seconds to unload the module.
    let Some(Fixture { adapter, nginx, site, .. }) = Fixture::load(NAME, &["rate_mbps=1"]) else { return };
    let (address, port) = (nginx.kernel_tls.ip(), nginx.kernel_tls.port());
    let idle: Vec<_> = (0..IDLE).map(|_| adapter.hold_connection(address, port)).collect();
    wait_until("they are in the adapter", || adapter.counter("tx_tls_ctx") == IDLE as u64);
    thread::scope(|scope| {
        // Given up where nothing comes for 4 s.
        let patience = ["--speed-limit", "1", "--speed-time", "4"];
        let far = adapter.fetching(address, port, LARGE, &patience);
        let transfer = scope.spawn(|| far.run());
        wait_until("the transfer is under way", || adapter.counter("tx_tls_encrypted_bytes") > 200_000);
        adapter.unload();
        // There is no way to the server any more.
        assert!(!transfer.join().unwrap().status.success());
    });
    drop(idle);

    let adapter = Adapter::load(NAME, &[]).unwrap();
    let before = TlsStatistics::now();
    let body = adapter.fetch(address, port, LARGE, &[]).success();
    assert!(body == site.bytes(LARGE));
    assert_eq!(before.moved("TlsTxDevice"), 1);
}
