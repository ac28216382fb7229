//! Finds the `linerate` binary that the tests run.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The binary under test: what `LINERATE_BINARY` names, else the one beside the running test, brought up to date by
/// cargo first (cargo builds no other package's binary for an integration test).
///
/// # Panics
/// Where it cannot be built.
pub fn linerate_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match env::var_os("LINERATE_BINARY") {
        Some(named) => {
            let named = PathBuf::from(named);
            assert!(named.is_file(), "LINERATE_BINARY: there is no file {}", named.display());
            named
        }
        None => build(),
    })
}

/// Builds it into the folder the test itself was built into, with the same profile.
fn build() -> PathBuf {
    let test = env::current_exe().expect("a process knows its own file");
    // TARGET/PROFILE/deps/tls_interop-0123456789abcdef
    let profile = test.ancestors().nth(2).expect("cargo puts tests two folders below the target folder");
    let target = profile.parent().expect("a profile's folder is in the target folder");
    let profile_name = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "-p",
            "linerate",
            "--bin",
            "linerate",
            "--profile",
            profile_name,
            "--target-dir",
        ])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs: a test was built by it");
    assert!(output.status.success(), "cargo build -p linerate: {}", String::from_utf8_lossy(&output.stderr));
    profile.join("linerate")
}
