//! Flags over file over defaults.

use linerate_suite::Version;
use std::path::{Path, PathBuf};

use linerate_config::{
    EngineChoice, Error, ExportTls, Flags, LogFormat, LogTarget, NfsFlags, Settings, Source, Symlinks,
};

const FILE: &str = r#"
listen = ["127.0.0.1:1", "http://127.0.0.1:2"]
admin = "3"
workers = 2
cpus = "0-7"
engine = "auto"
access_log = "access.log"
log_format = "json"

[tls]
minimum_version = "1.2"
cipher_suites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"]

[site_defaults]
listing = true
certificates = [{ certificate = "default.pem", key = "/keys/default.pem" }]

[[site]]
names = ["a.org"]
root = "a"

[[site]]
root = "rest"
dotfiles = true
certificates = [{ certificate = "rest.pem", key = "rest-key.pem" }]
"#;

fn settings(text: &str, flags: &Flags) -> Settings {
    Settings::from_toml(Path::new("/etc/linerate/linerate.toml"), text.as_bytes(), flags).unwrap()
}

fn sockets(settings: &Settings) -> Vec<String> {
    settings.listeners.iter().map(ToString::to_string).collect()
}

#[test]
fn without_flags_the_file_holds() {
    let settings = settings(FILE, &Flags::default());
    assert_eq!(sockets(&settings), ["https://127.0.0.1:1", "http://127.0.0.1:2"]);
    assert_eq!(settings.listeners[1].origin.to_string(), "/etc/linerate/linerate.toml:2:26");
    assert_eq!(settings.admin.unwrap().to_string(), "127.0.0.1:3");
    assert_eq!(settings.workers.unwrap().get(), 2);
    let log = settings.access_log.as_ref().unwrap();
    assert_eq!(log.target, LogTarget::File("/etc/linerate/access.log".into()));
    assert_eq!(log.format, LogFormat::Json);
    assert_eq!(settings.sites[0].root, PathBuf::from("/etc/linerate/a"));
    let pair = &settings.sites[0].certificates[0];
    assert_eq!(pair.certificate, PathBuf::from("/etc/linerate/default.pem"));
    assert_eq!(pair.key, PathBuf::from("/keys/default.pem"));
    assert_eq!(pair.origin.to_string(), "/etc/linerate/linerate.toml:16:33");
    assert_eq!(settings.sites[1].certificates[0].certificate, PathBuf::from("/etc/linerate/rest.pem"));
    assert!(!settings.needs_development_certificate());
    assert_eq!(settings.https_port(), Some(1));
}

#[test]
fn flags_replace_what_the_file_says() {
    let flags = Flags {
        listen: vec!["redirect://*:80".parse().unwrap(), "[::1]:443".parse().unwrap()],
        admin: Some("[::1]:9".parse().unwrap()),
        workers: Some(5.try_into().unwrap()),
        cpus: Some("1-5".parse().unwrap()),
        engine: Some(EngineChoice::User),
        access_log: Some(LogTarget::Stdout),
        log_format: Some(LogFormat::Combined),
        minimum_version: Some(Version::Tls13),
        cipher_suites: Some("TLS_CHACHA20_POLY1305_SHA256".parse().unwrap()),
        groups: Some("P-384".parse().unwrap()),
        ..Flags::default()
    };
    let settings = settings(FILE, &flags);
    assert_eq!(sockets(&settings), ["redirect://0.0.0.0:80", "redirect://[::]:80", "https://[::1]:443"]);
    assert_eq!(settings.listeners[0].origin.to_string(), "--listen");
    assert_eq!(settings.admin.unwrap().to_string(), "[::1]:9");
    assert_eq!(settings.workers.unwrap().get(), 5);
    assert_eq!(settings.cpus.unwrap().to_string(), "1-5");
    assert_eq!(settings.engine, EngineChoice::User);
    let log = settings.access_log.unwrap();
    assert_eq!((log.target, log.format), (LogTarget::Stdout, LogFormat::Combined));
    assert_eq!(settings.tls.minimum_version, Version::Tls13);
    assert_eq!(settings.tls.cipher_suites.unwrap().to_string(), "TLS_CHACHA20_POLY1305_SHA256");
    assert_eq!(settings.tls.groups.unwrap().to_string(), "P-384");
}

#[test]
fn directory_and_certificates_concern_the_default_site() {
    let flags = Flags {
        directory: Some("here".into()),
        certificates: vec![("c1".into(), "k1".into()), ("c2".into(), "k2".into())],
        ..Flags::default()
    };
    let both = settings(FILE, &flags);
    assert_eq!(both.sites[0].root, PathBuf::from("/etc/linerate/a"));
    assert_eq!(both.sites[1].root, PathBuf::from("here"));
    assert_eq!(both.sites[1].root_origin.to_string(), "DIR");
    let pairs: Vec<_> =
        both.sites[1].certificates.iter().map(|pair| (&pair.certificate, &pair.key)).collect();
    assert_eq!(pairs, [(&"c1".into(), &"k1".into()), (&"c2".into(), &"k2".into())]);
    assert!(both.sites[1].policy.dotfiles, "the rest of the site stays");

    let only = settings("[[site]]\nnames = [\"a.org\"]\nlisting = false", &flags);
    assert_eq!((only.sites.len(), only.sites[0].root.as_path()), (1, Path::new("here")));
    assert!(!only.sites[0].policy.listing);

    let none = settings("[site_defaults]\ndotfiles = true", &flags);
    assert_eq!((none.sites.len(), none.sites[0].root.as_path()), (1, Path::new("here")));
    assert!(none.sites[0].policy.dotfiles, "a site made by DIR has the defaults of the file");
}

#[test]
fn a_directory_beside_named_sites_becomes_the_default_site() {
    let named = "[[site]]\nnames = [\"a.org\"]\nroot = \"a\"\n[[site]]\nnames = [\"b.org\"]\nroot = \"b\"\n";
    let with_directory = settings(named, &Flags { directory: Some("here".into()), ..Flags::default() });
    assert_eq!(with_directory.sites.len(), 3);
    assert!(with_directory.sites[2].names.is_empty());

    let flags = Flags { certificates: vec![("c".into(), "k".into())], ..Flags::default() };
    let error = Settings::from_toml(Path::new("f"), named.as_bytes(), &flags).unwrap_err().to_string();
    assert!(error.starts_with("--cert: the flag is about the default site"), "{error}");
}

#[test]
fn switches_concern_every_site() {
    let flags = Flags {
        no_listing: true,
        dotfiles: true,
        symlinks: Some(Symlinks::Refused),
        hsts: Some("1d".parse().unwrap()),
        ..Flags::default()
    };
    let settings = settings(FILE, &flags);
    for site in &settings.sites {
        assert!(!site.policy.listing && site.policy.dotfiles);
        assert_eq!(site.policy.symlinks, Symlinks::Refused);
        assert_eq!(site.policy.hsts.unwrap().max_age_s, 86_400);
    }
}

#[test]
fn rules_hold_between_flags_and_file_and_name_the_flag() {
    let flags = Flags {
        workers: Some(9.try_into().unwrap()),
        cipher_suites: Some("ECDHE-RSA-AES128-GCM-SHA256".parse().unwrap()),
        minimum_version: Some(Version::Tls13),
        ..Flags::default()
    };
    let error = Settings::from_toml(Path::new("f"), FILE.as_bytes(), &flags).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines[0], "--workers: 9 workers cannot each have a CPU of their own: cpus (0-7) lists 8");
    assert!(lines[1].starts_with("--ciphers: none of the cipher suites belongs to TLS 1.3"), "{error}");
}

#[test]
fn without_anything_it_listens_on_this_machine_only() {
    let flags = Flags { directory: Some("d".into()), ..Flags::default() };
    let settings = Source { file: None, flags }.load().unwrap();
    assert_eq!(sockets(&settings), ["https://127.0.0.1:8443", "https://[::1]:8443"]);
    assert!(settings.listeners[0].required && !settings.listeners[1].required);
    assert!(settings.needs_development_certificate());
}

#[test]
fn with_certificates_it_listens_everywhere() {
    let flags = Flags {
        directory: Some("d".into()),
        certificates: vec![("c".into(), "k".into())],
        ..Flags::default()
    };
    let settings = Source { file: None, flags }.load().unwrap();
    assert_eq!(sockets(&settings), ["https://0.0.0.0:8443", "https://[::]:8443"]);
    assert!(!settings.needs_development_certificate());
}

#[test]
fn plaintext_alone_needs_no_certificate() {
    let flags = Flags {
        directory: Some("d".into()),
        listen: vec!["http://127.0.0.1:0".parse().unwrap()],
        ..Flags::default()
    };
    assert!(!Source { file: None, flags }.load().unwrap().needs_development_certificate());
}

#[test]
fn nothing_said_is_an_error() {
    let error = Source::default().load().unwrap_err().to_string();
    assert_eq!(
        error,
        "DIR: nothing to serve: give DIR, or a [[site]] with a root, or an [[export]] with a directory"
    );
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Source { file: Some(folder.path().join("none.toml")), flags: Flags::default() };
    assert!(matches!(missing.load(), Err(Error::Unreadable { .. })));
    let large = folder.path().join("large.toml");
    std::fs::write(&large, "#".repeat((1 << 20) + 1)).unwrap();
    let error = Source { file: Some(large.clone()), flags: Flags::default() }.load().unwrap_err();
    assert_eq!(error.to_string(), format!("{}: a configuration file may be 1MiB at most", large.display()));
}

/// Exports alone, sites alone, and both.
#[test]
fn what_is_listened_on_follows_what_is_served() {
    let site = "[[site]]\nroot = \"r\"\n";
    let export = "[[export]]\ndirectory = \"d\"\n";
    let certificate = "[nfs]\ncertificates = [{ certificate = \"c\", key = \"k\" }]\n";
    let off = "tls = \"off\"\n";
    for (text, addresses) in [
        (site.to_owned(), "https://127.0.0.1:8443 https://[::1]:8443"),
        (export.to_owned(), "nfs://127.0.0.1:2049 nfs://[::1]:2049"),
        (format!("{export}{off}"), "nfs://0.0.0.0:2049 nfs://[::]:2049"),
        (format!("{certificate}{export}"), "nfs://0.0.0.0:2049 nfs://[::]:2049"),
        (
            format!("{certificate}{site}{export}"),
            "https://127.0.0.1:8443 https://[::1]:8443 nfs://0.0.0.0:2049 nfs://[::]:2049",
        ),
    ] {
        let settings = Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).unwrap();
        let listeners: Vec<_> = settings.listeners.iter().map(ToString::to_string).collect();
        assert_eq!(listeners.join(" "), addresses, "{text}");
    }
}

#[test]
fn flags_of_nfs_make_exports() {
    let flags = |directory: Option<&str>, exports: &[&str]| Flags {
        listen: vec!["127.0.0.1:2049".parse().unwrap()],
        certificates: vec![("c".into(), "k".into())],
        nfs: Some(NfsFlags {
            directory: directory.map(Into::into),
            exports: exports.iter().map(|text| text.parse().unwrap()).collect(),
            client_authorities: Some("ca".into()),
            tls: Some(ExportTls::Offer),
        }),
        ..Flags::default()
    };
    let load = |flags| Source { file: None, flags }.load();
    let alone = load(flags(Some("/srv"), &[])).unwrap();
    assert_eq!(alone.listeners[0].to_string(), "nfs://127.0.0.1:2049");
    assert_eq!((alone.exports[0].name.as_str(), alone.exports[0].policy.tls), ("", ExportTls::Offer));
    assert!(!alone.exports[0].policy.needs_certificate(&alone.nfs), "TLS is no must");
    assert!(!alone.needs_development_certificate() && alone.sites.is_empty());
    let named = load(flags(None, &["a=/a,tls=require", "b=/b"])).unwrap();
    let rules: Vec<_> = named.exports.iter().map(|export| export.policy.tls).collect();
    assert_eq!(rules, [ExportTls::Require, ExportTls::Offer]);
    assert!(named.exports[0].policy.needs_certificate(&named.nfs));
    let message = load(flags(Some("/srv"), &["a=/a"])).unwrap_err().to_string();
    assert!(message.starts_with("DIR: this export has no name"), "{message}");
}
