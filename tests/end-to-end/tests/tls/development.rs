//! Without a certificate the server makes one for development, and says how to use it.

use linerate_end_to_end::{Program, ServerSetup, Site, openssl};
use std::path::Path;

fn start(site: &Site, state: &Path) -> linerate_end_to_end::Server {
    ServerSetup::new()
        .flag(site.path())
        .flags(["--listen", "localhost:0", "--workers", "1"])
        .env("XDG_STATE_HOME", state)
        .start()
}

/// The rest of the line that begins with this.
fn line_after<'a>(text: &'a str, prefix: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(prefix));
    found.unwrap_or_else(|| panic!("no line {prefix:?} in:\n{text}"))
}

#[test]
fn the_printed_curl_line_works_and_the_fingerprint_is_right() {
    let site = Site::empty();
    let expected = site.add_pattern("index.html", 16_385);
    let state = tempfile::tempdir().unwrap();
    let mut server = start(&site, state.path());
    let said = server.stderr();
    let line = line_after(&said, "linerate: try: ");
    // As a person would: pasted into a shell.
    let pasted = Program::new("sh", ["-c", &format!("{line} --silent --show-error --noproxy '*'")]).run();
    assert!(pasted.success() == expected, "{line}");

    let certificate = line.split_whitespace().nth(2).expect("curl --cacert FILE URL");
    assert!(Path::new(certificate).starts_with(state.path()), "{certificate}");
    let printed = line_after(&said, "linerate: development certificate for localhost, SHA-256 ");
    let computed = openssl(["x509", "-noout", "-fingerprint", "-sha256", "-in", certificate]).run();
    let computed = String::from_utf8(computed.success()).unwrap();
    assert_eq!(computed.trim().split_once('=').unwrap().1, printed);
    assert!(server.stop().success());

    // It is kept: clients that trust it go on doing so.
    let again = start(&site, state.path());
    assert!(again.stderr().contains(printed), "{}", again.stderr());
}

#[test]
fn the_key_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (site, state) = (Site::empty(), tempfile::tempdir().unwrap());
    let server = start(&site, state.path());
    let said = server.stderr();
    let certificate = Path::new(line_after(&said, "linerate: try: ").split_whitespace().nth(2).unwrap());
    let mut keys = 0;
    for entry in certificate.parent().unwrap().read_dir().unwrap() {
        let path = entry.unwrap().path();
        if std::fs::read(&path).unwrap().windows(11).any(|window| window == b"PRIVATE KEY") {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
            keys += 1;
        }
    }
    assert_eq!(keys, 1);
}
