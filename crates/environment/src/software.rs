//! What was measured and with what: this build, and the TLS library of the system, which peers use.

use std::process::Command;

use crate::{Group, Reading, facts::missing};

/// What this program was made of, as its build noted it.
pub(crate) fn own() -> Group {
    [
        ("version", env!("CARGO_PKG_VERSION")),
        ("commit", env!("LINERATE_COMMIT")),
        ("rustls", env!("LINERATE_VERSION_RUSTLS")),
        ("aws-lc-rs", env!("LINERATE_VERSION_AWS_LC_RS")),
        ("aws-lc-sys", env!("LINERATE_VERSION_AWS_LC_SYS")),
        ("tokio", env!("LINERATE_VERSION_TOKIO")),
        ("compiler", env!("LINERATE_BUILD_COMPILER")),
        ("target", env!("LINERATE_BUILD_TARGET")),
        ("profile", env!("LINERATE_BUILD_PROFILE")),
        ("optimisation", env!("LINERATE_BUILD_OPT_LEVEL")),
    ]
    .map(|(fact, answer)| {
        let answer = match answer {
            "unknown" => missing("the build could not tell"),
            known => Reading::Value(known.to_owned()),
        };
        (fact.to_owned(), answer)
    })
    .into()
}

/// The system's programs that bear on a comparison.
pub(crate) fn installed() -> Group {
    let openssl = match Command::new("openssl").arg("version").output() {
        Ok(output) if output.status.success() => {
            Reading::Value(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => missing(format!("openssl version: {}", output.status)),
        Err(error) => missing(format!("openssl cannot be run: {error}")),
    };
    Group::from([("openssl".to_owned(), openssl)])
}
