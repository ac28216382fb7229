//! Certificates that are replaced while the server runs.

use crate::fixture::Fixture;
use linerate_end_to_end::{
    Algorithm, CertificatePair, ClientSetup, Server, ServerSetup, Signal, Site, wait_until,
};
use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

/// Whether a new connection is shown this certificate.
fn is_served(server: &Server, pair: &CertificatePair) -> bool {
    ClientSetup::new([pair]).try_connect(server.address()).is_ok()
}

#[test]
fn a_renamed_file_is_served_without_a_signal() {
    let fixture = Fixture::new();
    let server = fixture.setup().start();
    let old = fixture.pair.clone();
    let mut open = fixture.client().connect(server.address());
    assert_eq!(open.get("1.bin").status, 200);
    // A new pair under the same names: the certificate is renamed over the old, then the key.
    for algorithm in [Algorithm::Ed25519, Algorithm::Ecdsa] {
        let new = CertificatePair::create(fixture.keys.path(), "localhost", algorithm, &["localhost"]);
        wait_until("the new certificate", || is_served(&server, &new));
        assert!(!is_served(&server, &old));
        // Connections that exist go on.
        assert!(open.get("65543.bin").body == fixture.site.bytes("65543.bin"));
    }
    assert!(server.stderr().contains("certificates reloaded"), "{}", server.stderr());
}

/// Publishes a pair the way Kubernetes mounts a secret: files are symlinks to `..data/NAME`, and `..data` is a symlink
/// to a folder with a new name each time, swapped by a rename.
fn publish(mount: &Path, version: &str) -> CertificatePair {
    let folder = mount.join(format!("..{version}"));
    let pair = CertificatePair::create(&folder, "tls", Algorithm::Ecdsa, &["localhost"]);
    symlink(format!("..{version}"), mount.join("..data_tmp")).unwrap();
    fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
    for name in ["tls.pem", "tls.key"] {
        if !mount.join(name).is_symlink() {
            symlink(Path::new("..data").join(name), mount.join(name)).unwrap();
        }
    }
    pair
}

#[test]
fn a_swapped_symlink_in_the_parent_is_served_without_a_signal() {
    let site = Site::of_odd_lengths();
    let mount = tempfile::tempdir().unwrap();
    let first = publish(mount.path(), "2026_01_01");
    let mounted = CertificatePair {
        certificate: mount.path().join("tls.pem"),
        key: mount.path().join("tls.key"),
        der: first.der.clone(),
    };
    let server = ServerSetup::tls(&site, &mounted).start();
    let mut open = ClientSetup::new([&first]).connect(server.address());
    assert_eq!(open.get("1.bin").status, 200);
    let mut old = first;
    for version in ["2026_02_01", "2026_03_01"] {
        let new = publish(mount.path(), version);
        // The old folder goes, as Kubernetes has it.
        fs::remove_dir_all(old.certificate.parent().unwrap()).unwrap();
        wait_until("the new certificate", || is_served(&server, &new));
        assert!(!is_served(&server, &old));
        assert!(open.get("65543.bin").body == site.bytes("65543.bin"));
        old = new;
    }
}

/// Breaks a pair's files in a way.
type Damage = fn(&CertificatePair);

#[test]
fn what_does_not_load_leaves_the_old_one_serving() {
    let damages: [(&str, Damage); 4] = [
        ("a certificate that is none", |pair| fs::write(&pair.certificate, "nonsense").unwrap()),
        ("another key", |pair| {
            let folder = pair.key.parent().unwrap();
            let other = CertificatePair::create(folder, "another", Algorithm::Ecdsa, &["localhost"]);
            fs::rename(other.key, &pair.key).unwrap();
        }),
        ("an empty key", |pair| fs::write(&pair.key, "").unwrap()),
        ("no key", |pair| fs::remove_file(&pair.key).unwrap()),
    ];
    for (what, damage) in damages {
        let fixture = Fixture::new();
        let server = fixture.setup().start();
        let (certificate, key) =
            (fs::read(&fixture.pair.certificate).unwrap(), fs::read(&fixture.pair.key).unwrap());
        damage(&fixture.pair);
        // The warning names the file.
        server.wait_for_stderr(&format!("{}/localhost.", fixture.keys.path().display()));
        server.wait_for_stderr("the old certificate keeps serving");
        assert!(is_served(&server, &fixture.pair), "{what}");
        // HUP does not make it worse.
        server.reload();
        assert!(is_served(&server, &fixture.pair), "{what}, after HUP");
        // And when it is mended, it is served again.
        fs::write(&fixture.pair.certificate, certificate).unwrap();
        fs::write(&fixture.pair.key, key).unwrap();
        let new = CertificatePair::for_localhost(fixture.keys.path());
        wait_until("the mended certificate", || is_served(&server, &new));
    }
}

#[test]
fn hup_reloads_at_once() {
    let fixture = Fixture::new();
    let server = fixture.setup().start();
    let mut open = fixture.client().connect(server.address());
    assert_eq!(open.get("1.bin").status, 200);
    let new = CertificatePair::for_localhost(fixture.keys.path());
    server.reload();
    assert!(is_served(&server, &new));
    assert!(!is_served(&server, &fixture.pair));
    assert!(open.get("3000001.bin").body == fixture.site.bytes("3000001.bin"));
}

#[test]
fn a_change_in_the_middle_of_a_reload_is_not_missed() {
    let fixture = Fixture::new();
    let server = fixture.setup().start();
    for delay_us in (0..3_000).step_by(250) {
        server.signal(Signal::HUP);
        std::thread::sleep(Duration::from_micros(delay_us));
        let new = CertificatePair::for_localhost(fixture.keys.path());
        wait_until(&format!("the certificate made {delay_us} us after HUP"), || is_served(&server, &new));
    }
}
