//! What the file system says about the settings.

use std::fs;
use std::path::Path;

use linerate_config::{Flags, Settings};

fn settings(folder: &Path, text: &str) -> Settings {
    Settings::from_toml(&folder.join("f"), text.as_bytes(), &Flags::default()).unwrap()
}

#[test]
fn what_is_there_is_fine() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    for file in ["cert.pem", "key.pem"] {
        fs::write(folder.path().join(file), "x").unwrap();
    }
    let text = "access_log = \"access.log\"\n[[site]]\nroot = \"root\"\n\
                certificates = [{ certificate = \"cert.pem\", key = \"key.pem\" }]";
    settings(folder.path(), text).verify_files().unwrap();
    assert!(!folder.path().join("access.log").exists(), "a check leaves nothing behind");
}

#[test]
fn every_missing_file_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cert.pem"), "x").unwrap();
    let text = "access_log = \"logs/access.log\"\n[site_defaults]\n\
                certificates = [{ certificate = \"cert.pem\", key = \"key.pem\" }]\n\
                [[site]]\nroot = \"none\"\n[[site]]\nnames = [\"a.org\"]\nroot = \"cert.pem\"\n";
    let said = settings(folder.path(), text).verify_files().unwrap_err().to_string();
    let said = said.replace(&format!("{}/", folder.path().display()), "");
    let expected = [
        "f:5:8: the folder none cannot be served: No such file or directory (os error 2)",
        "f:3:51: the key key.pem cannot be read: No such file or directory (os error 2)",
        "f:8:8: the folder cert.pem cannot be served: it is no folder",
        "f:1:14: the access log logs/access.log cannot be written: logs: No such file or directory (os error 2)",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

#[cfg(unix)]
#[test]
fn a_key_that_is_no_file_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cert.pem"), "x").unwrap();
    let pipe = folder.path().join("key.pem");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = "[[site]]\nroot = \".\"\ncertificates = [{ certificate = \"cert.pem\", key = \"key.pem\" }]\n";
    let said = settings(folder.path(), text).verify_files().unwrap_err().to_string();
    assert!(said.ends_with("it is no regular file"), "{said}");
}
