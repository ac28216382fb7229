//! Certificates: what loads, what does not and what is said about it, and what is served after a reload.

mod support;

use linerate_tls::{
    AcceptorBuilder, CertificateFiles, CertificateWarning, FileWatch, KeyAlgorithm, SiteCertificates,
    TlsError, TlsPolicy,
};
use std::{
    fs,
    os::unix::fs::symlink,
    sync::{Arc, mpsc},
    time::{Duration, SystemTime},
};
use support::{Algorithm, Pki, acceptor, der, one_site, run};

fn build(certificates: Vec<CertificateFiles>) -> Result<linerate_tls::Acceptor, Vec<TlsError>> {
    AcceptorBuilder::new(TlsPolicy::default(), one_site(certificates)).build()
}

fn only_error(certificates: Vec<CertificateFiles>) -> String {
    let errors = build(certificates).expect_err("it must be refused");
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].to_string()
}

#[test]
fn every_form_of_key_loads() {
    let mut pki = Pki::new();
    for (algorithm, kind) in [
        (Algorithm::EcdsaP256, KeyAlgorithm::EcdsaP256),
        (Algorithm::EcdsaP384, KeyAlgorithm::EcdsaP384),
        (Algorithm::Ed25519, KeyAlgorithm::Ed25519),
        (Algorithm::Rsa, KeyAlgorithm::Rsa),
    ] {
        let files = pki.issue("own", algorithm, &["site.example"]);
        let loaded = build(vec![files.clone()]).unwrap();
        assert_eq!(loaded.certificates().next().unwrap().algorithm(), kind);
        // The forms of old: SEC 1 and PKCS#1, with the parameters that openssl likes to put in front.
        if matches!(algorithm, Algorithm::Ed25519) {
            continue;
        }
        let traditional = pki.path("traditional.pem");
        let converted = std::process::Command::new("openssl")
            .args(["pkey", "-traditional", "-in"])
            .arg(&files.key)
            .arg("-out")
            .arg(&traditional)
            .status()
            .expect("openssl must be installed");
        assert!(converted.success());
        let text = fs::read_to_string(&traditional).unwrap();
        assert!(text.contains("EC PRIVATE KEY") || text.contains("RSA PRIVATE KEY"));
        let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        fs::write(&traditional, format!("{parameters}{text}")).unwrap();
        build(vec![CertificateFiles { key: traditional, ..files.clone() }]).unwrap();
        // Both in one file, as HAProxy wants them.
        let both = pki.path("both.pem");
        let text = [fs::read(&files.certificate).unwrap(), fs::read(&files.key).unwrap()].concat();
        fs::write(&both, text).unwrap();
        build(vec![CertificateFiles { certificate: both.clone(), key: both }]).unwrap();
    }
}

#[test]
fn what_does_not_load_is_explained() {
    let mut pki = Pki::new();
    let own = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let other = pki.issue("other", Algorithm::EcdsaP256, &["site.example"]);
    let rsa = pki.issue("rsa", Algorithm::Rsa, &["site.example"]);
    let swapped = CertificateFiles { certificate: own.key.clone(), key: own.certificate.clone() };
    let message = only_error(vec![swapped]);
    assert!(
        message.contains("own-key.pem: no certificate found; it holds a PRIVATE KEY block: did you swap"),
        "{message}"
    );
    for key in [&other.key, &rsa.key] {
        let message = only_error(vec![CertificateFiles { key: key.clone(), ..own.clone() }]);
        assert!(message.contains("does not belong to the certificate in"), "{message}");
    }
    let message = only_error(vec![CertificateFiles { key: pki.path("none.pem"), ..own.clone() }]);
    assert!(message.contains("none.pem: cannot be read: No such file"), "{message}");

    let damaged = pki.path("damaged.pem");
    let text = fs::read_to_string(&own.certificate).unwrap();
    let line = text.lines().nth(3).unwrap();
    fs::write(&damaged, text.replace(line, &"A".repeat(line.len()))).unwrap();
    let message = only_error(vec![CertificateFiles { certificate: damaged, ..own.clone() }]);
    assert!(message.contains("damaged.pem: the certificate cannot be used"), "{message}");

    // All that is wrong is said, not just the first.
    let missing = |name: &str| CertificateFiles { certificate: pki.path(name), key: pki.path(name) };
    assert_eq!(build(vec![missing("a"), own, missing("b")]).unwrap_err().len(), 2);
}

#[test]
fn sites_that_contradict_each_other_are_refused() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let site = |names: &[&str], certificates: &[CertificateFiles]| SiteCertificates {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        certificates: certificates.to_vec(),
    };
    let errors = |sites| AcceptorBuilder::new(TlsPolicy::default(), sites).build().unwrap_err();
    assert!(matches!(errors(vec![])[..], [TlsError::NoSites]));
    let own = [files];
    assert!(matches!(errors(vec![site(&["a.example"], &[])])[..], [TlsError::NoCertificateForSite { .. }]));
    let twice = errors(vec![site(&["a.example", "*.b"], &own), site(&["A.example"], &own)]);
    assert!(twice[0].to_string().contains("a.example"));
    let twice = errors(vec![site(&["*.b"], &own), site(&["*.b"], &own)]);
    assert!(twice[0].to_string().contains("*.b"));
}

#[test]
fn an_expired_certificate_is_served_with_a_warning() {
    let mut pki = Pki::new();
    let mut expired = rcgen::CertificateParams::new(["site.example".to_owned()]).unwrap();
    (expired.not_before, expired.not_after) =
        (rcgen::date_time_ymd(2019, 1, 1), rcgen::date_time_ymd(2020, 1, 1));
    let mut early = expired.clone();
    (early.not_before, early.not_after) =
        (rcgen::date_time_ymd(2090, 1, 1), rcgen::date_time_ymd(2091, 1, 1));
    let nameless = rcgen::CertificateParams::default();
    let mut warnings = |label: &str, params| {
        let files = pki.issue_with(label, Algorithm::EcdsaP256, params);
        let acceptor = build(vec![files]).unwrap();
        acceptor.warnings(SystemTime::now()).into_iter().map(|(_, warning)| warning).collect::<Vec<_>>()
    };
    let new_year_2020 = SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800);
    assert_eq!(warnings("expired", expired), [CertificateWarning::Expired { not_after: new_year_2020 }]);
    assert!(matches!(warnings("early", early)[..], [CertificateWarning::NotYetValid { .. }]));
    assert_eq!(warnings("nameless", nameless), [CertificateWarning::NoNames]);
    let good = rcgen::CertificateParams::new(["site.example".to_owned()]).unwrap();
    assert_eq!(warnings("good", good), []);
}

#[test]
fn a_certificate_knows_its_hosts() {
    let mut pki = Pki::new();
    let files = pki.issue(
        "own",
        Algorithm::EcdsaP256,
        &["site.example", "*.wild.example", "192.0.2.1", "2001:db8::1"],
    );
    let loaded = build(vec![files]).unwrap();
    let certificate = loaded.certificates().next().unwrap();
    for host in [
        "site.example",
        "SITE.example",
        "site.example.",
        "a.wild.example",
        "192.0.2.1",
        "[2001:db8::1]",
        "2001:db8:0::1",
    ] {
        assert!(certificate.covers(host), "{host}");
    }
    for host in [
        "wild.example",
        "a.a.wild.example",
        "192.0.2.2",
        "other.example",
        "",
        ".",
        "[]",
        "[192.0.2.1",
        "ä.example",
    ] {
        assert!(!certificate.covers(host), "{host}");
    }
    // Without names it was not looked at when the client verified it: everything goes.
    let nameless = pki.issue_with("nameless", Algorithm::EcdsaP256, rcgen::CertificateParams::default());
    assert!(build(vec![nameless]).unwrap().certificates().next().unwrap().covers("any.example"));
}

#[test]
fn a_certificate_that_does_not_load_leaves_the_old_one_serving() {
    let mut pki = Pki::new();
    let good = pki.issue("good", Algorithm::EcdsaP256, &["good.example"]);
    let fragile = pki.issue("fragile", Algorithm::EcdsaP256, &["fragile.example"]);
    let site = |name: &str, files: &CertificateFiles| SiteCertificates {
        names: vec![name.to_owned()],
        certificates: vec![files.clone()],
    };
    let sites = vec![site("good.example", &good), site("fragile.example", &fragile)];
    let builder = AcceptorBuilder::new(TlsPolicy::default(), sites);
    assert_eq!(builder.files().count(), 4);
    let first = Arc::new(builder.build().unwrap());
    let old_fragile = der(&fragile.certificate);

    pki.issue("good", Algorithm::EcdsaP256, &["good.example"]);
    fs::write(&fragile.certificate, "half a certifi").unwrap();
    let (second, errors) = builder.reload(&first);
    assert!(
        matches!(&errors[..], [TlsError::NoCertificate { file, .. }] if *file == fragile.certificate),
        "{errors:?}"
    );
    for (name, shown) in [("good.example", der(&good.certificate)), ("fragile.example", old_fragile)] {
        let mut client = pki.client().connect(name);
        run(&second, &mut client).unwrap();
        assert_eq!(client.peer_certificates().unwrap(), [shown]);
    }
    // Mended.
    pki.issue("fragile", Algorithm::EcdsaP256, &["fragile.example"]);
    let (third, errors) = builder.reload(&second);
    assert!(errors.is_empty());
    let mut client = pki.client().connect("fragile.example");
    run(&third, &mut client).unwrap();
    assert_eq!(client.peer_certificates().unwrap(), [der(&fragile.certificate)]);
}

#[test]
fn a_reload_that_cannot_be_served_changes_nothing() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    let first = acceptor(TlsPolicy::default(), one_site(vec![files.clone()]));
    let missing = CertificateFiles { certificate: pki.path("none"), key: pki.path("none") };
    let (after, errors) = AcceptorBuilder::new(TlsPolicy::default(), one_site(vec![missing])).reload(&first);
    assert!(Arc::ptr_eq(&after, &first));
    assert_eq!(errors.len(), 2, "the file, and the site without a certificate: {errors:?}");
    let policy = TlsPolicy { groups: Vec::new(), ..TlsPolicy::default() };
    let (after, errors) = AcceptorBuilder::new(policy, one_site(vec![files])).reload(&first);
    assert!(Arc::ptr_eq(&after, &first) && errors.len() == 1);
}

/// As in a Kubernetes secret: everything behind `..data`, which is renamed over.
#[test]
fn a_swapped_symlink_brings_the_new_certificate() {
    let mut pki = Pki::new();
    for version in ["..1", "..2"] {
        fs::create_dir(pki.path(version)).unwrap();
        pki.issue(&format!("{version}/tls"), Algorithm::EcdsaP256, &["site.example"]);
    }
    symlink("..1", pki.path("..data")).unwrap();
    let files = CertificateFiles { certificate: pki.path("tls.crt"), key: pki.path("tls.key") };
    symlink("..data/tls-cert.pem", &files.certificate).unwrap();
    symlink("..data/tls-key.pem", &files.key).unwrap();

    let builder = AcceptorBuilder::new(TlsPolicy::default(), one_site(vec![files.clone()]));
    let mut current = Arc::new(builder.build().unwrap());
    let (sender, changes) = mpsc::channel();
    let paths: Vec<_> = builder.files().map(ToOwned::to_owned).collect();
    let _watch = FileWatch::start(paths, move || sender.send(()).unwrap()).unwrap();

    symlink("..2", pki.path("..data_tmp")).unwrap();
    fs::rename(pki.path("..data_tmp"), pki.path("..data")).unwrap();
    changes.recv_timeout(Duration::from_secs(10)).expect("the swap must be noticed");
    let (new, errors) = builder.reload(&current);
    assert!(errors.is_empty(), "{errors:?}");
    current = new;
    let mut client = pki.client().connect("site.example");
    run(&current, &mut client).unwrap();
    assert_eq!(client.peer_certificates().unwrap(), [der(&pki.path("..2/tls-cert.pem"))]);
}
