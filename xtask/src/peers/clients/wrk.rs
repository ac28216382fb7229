//! wrk, the client of the keep-alive works.
//!
//! It is OpenSSL's TLS client, told by a configuration file of ours which suite and group to offer. Its own Lua
//! hook gives exact totals. It runs for a time, not for a count: responses on the way at the end cost the server
//! but are not counted, which is at most one a connection.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::Outcome;
use crate::peers::network::Link;
use crate::peers::options::Cipher;
use crate::peers::servers::find_program;

const SCRIPT: &str = r#"done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('\n{"requests":%d,"bytes":%d,"failures":%d}\n', summary.requests, summary.bytes,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"#;

/// wrk with its files.
#[derive(Debug)]
pub(crate) struct Wrk {
    program: PathBuf,
    script: PathBuf,
    openssl: PathBuf,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct WrkRun {
    /// The server.
    pub(crate) server: SocketAddr,
    /// https or http.
    pub(crate) tls: bool,
    /// Request target.
    pub(crate) path: String,
    /// Connections at a time.
    pub(crate) connections: usize,
    /// How long; wrk takes whole seconds.
    pub(crate) seconds: u64,
    /// Length of the file.
    pub(crate) body_bytes: u64,
}

#[derive(Debug, Deserialize)]
struct Totals {
    requests: u64,
    bytes: u64,
    failures: u64,
}

impl Wrk {
    /// Finds wrk and writes its files into `run_folder`.
    pub(crate) fn find(run_folder: &Path, cipher: Cipher) -> Result<Self> {
        let program = find_program("wrk").context("wrk is not installed (on Debian: apt install wrk)")?;
        let wrk =
            Self { program, script: run_folder.join("wrk.lua"), openssl: run_folder.join("wrk-openssl.cnf") };
        let configuration = format!(
            "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = client\n[client]\n\
             MinProtocol = TLSv1.3\nCiphersuites = {}\nGroups = X25519\n",
            cipher.suite_name()
        );
        for (path, text) in [(&wrk.script, SCRIPT), (&wrk.openssl, configuration.as_str())] {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(wrk)
    }

    /// Runs it once.
    pub(crate) fn run(&self, link: &Link, run: &WrkRun) -> Result<Outcome> {
        let scheme = if run.tls { "https" } else { "http" };
        let mut command = link.client_command(&self.program);
        command.env("OPENSSL_CONF", &self.openssl);
        command.arg("-t1").arg(format!("-c{}", run.connections)).arg(format!("-d{}s", run.seconds));
        command.arg("-s").arg(&self.script).arg(format!("{scheme}://{}{}", run.server, run.path));
        let output = command.output().context("cannot run wrk")?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!("wrk failed: {}{said}", String::from_utf8_lossy(&output.stderr));
        }
        let totals = totals(&said)?;
        if totals.failures > 0 || totals.requests == 0 {
            bail!("wrk saw {} failures in {} requests:\n{said}", totals.failures, totals.requests);
        }
        Ok(Outcome {
            requests: totals.requests,
            body_bytes: totals.requests * run.body_bytes,
            wire_bytes: totals.bytes,
            ..Outcome::default()
        })
    }
}

fn totals(said: &str) -> Result<Totals> {
    let line = said.lines().find(|line| line.starts_with('{'));
    let line = line.with_context(|| format!("wrk did not give its totals:\n{said}"))?;
    serde_json::from_str(line).with_context(|| format!("wrk's totals are not understood: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found_among_what_wrk_says() {
        let said = "Running 1s test\n  1 threads\n\n{\"requests\":7,\"bytes\":70,\"failures\":1}\n";
        let found = totals(said).unwrap();
        assert_eq!((found.requests, found.bytes, found.failures), (7, 70, 1));
        assert!(totals("Running 1s test\n").is_err());
    }
}
