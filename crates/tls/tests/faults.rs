//! What an operator is told about certificates and keys that cannot be served: which file, what it is, what to do.

mod support;

use linerate_tls::{AcceptorBuilder, CertificateFiles, TlsPolicy, development_certificate};
use std::{fs, path::Path, process::Command};
use support::{Algorithm, Pki, one_site};

/// What is said about a pair that is refused.
fn refusal(files: CertificateFiles) -> String {
    let faults = AcceptorBuilder::new(TlsPolicy::default(), one_site(vec![files])).build().unwrap_err();
    assert_eq!(faults.len(), 1);
    faults[0].to_string()
}

fn openssl(arguments: &[&str], output: &Path) {
    let done = Command::new("openssl").args(arguments).arg("-out").arg(output).output();
    assert!(done.expect("openssl must be installed").status.success(), "{arguments:?}");
}

#[test]
fn an_rsa_key_that_is_too_short_is_called_that() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    for (form, bits) in
        [(&["genrsa", "-traditional"][..], "1024"), (&["genrsa"], "1024"), (&["genrsa"], "1536")]
    {
        let key = pki.path("short.pem");
        let output = Command::new("openssl").args(form).arg("-out").arg(&key).arg(bits).output();
        assert!(output.expect("openssl must be installed").status.success());
        let message = refusal(CertificateFiles { key, ..files.clone() });
        assert!(
            message.contains("short.pem: the key is too short")
                && message.contains(&format!("RSA with {bits} bits, and 2048 is the least")),
            "{message}"
        );
    }
}

#[test]
fn a_key_of_another_kind_is_refused_with_the_kinds_that_are_taken() {
    let mut pki = Pki::new();
    let files = pki.issue("own", Algorithm::EcdsaP256, &["site.example"]);
    for kind in
        [&["genpkey", "-algorithm", "ED448"][..], &["ecparam", "-genkey", "-name", "secp256k1", "-noout"]]
    {
        let key = pki.path("other.pem");
        openssl(kind, &key);
        let message = refusal(CertificateFiles { key, ..files.clone() });
        assert!(message.contains("other.pem: the key cannot be used"), "{message}");
        assert!(message.contains("RSA keys of 2048 to 8192 bits, ECDSA keys on P-256"), "{message}");
    }
}

#[test]
fn a_state_directory_that_cannot_be_written_is_called_that() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let message = development_certificate(&file.join("linerate")).unwrap_err().to_string();
    for words in ["file/linerate", "the state directory", "XDG_STATE_HOME", "name a certificate"] {
        assert!(message.contains(words), "{words} is missing: {message}");
    }
}
