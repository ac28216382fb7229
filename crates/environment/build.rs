//! Tells the program what it was made of: the commit, and the versions of the TLS libraries.

use std::{fs, path::Path, process::Command};

const WORKSPACE: &str = "../..";

/// Packages whose versions matter to a measurement.
const PACKAGES: [&str; 4] = ["rustls", "aws-lc-rs", "aws-lc-sys", "tokio"];

fn main() {
    println!("cargo::rustc-env=LINERATE_COMMIT={}", commit());
    let lock = Path::new(WORKSPACE).join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(lock).unwrap_or_default();
    for package in PACKAGES {
        let variable = format!("LINERATE_VERSION_{}", package.replace('-', "_").to_uppercase());
        println!("cargo::rustc-env={variable}={}", version(&lock, package).unwrap_or("unknown"));
    }
    for variable in ["TARGET", "PROFILE", "OPT_LEVEL"] {
        let value = std::env::var(variable).unwrap_or_else(|_| "unknown".to_owned());
        println!("cargo::rustc-env=LINERATE_BUILD_{variable}={value}");
    }
    let compiler = std::env::var("RUSTC").ok().and_then(|rustc| output(&rustc, &["--version"]));
    println!("cargo::rustc-env=LINERATE_BUILD_COMPILER={}", compiler.as_deref().unwrap_or("unknown"));
}

/// The commit, and whether the sources differ from it; "unknown" outside of a repository.
fn commit() -> String {
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    // What the answer depends on: a commit or checkout is noted in the log of HEAD, an edit in the sources.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).unwrap_or_default();
    let sources = ["crates", "Cargo.toml", "Cargo.lock"].map(|name| Path::new(WORKSPACE).join(name));
    for path in sources.iter().map(|path| path.as_path()).chain([Path::new(WORKSPACE).join(log).as_path()]) {
        // Of a path that is not there cargo would say at every build that it has changed.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    match git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.toml", "Cargo.lock"])
    {
        Some(changes) if changes.is_empty() => commit,
        Some(_) => format!("{commit} with changes"),
        None => format!("{commit}, perhaps with changes"),
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let arguments: Vec<&str> = ["-C", WORKSPACE].iter().chain(arguments).copied().collect();
    output("git", &arguments)
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The version of a package in Cargo.lock.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}
