//! nginx: the configuration it runs with (the bench's), and its start.
//!
//! One worker; TLS session tickets and the rest as nginx has them by default. The configuration is kept in the run
//! folder for the reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use linerate_bench::nginx::{self, Configuration, Listener, Tls};

use super::debian13::Debian13;
use super::{Endpoints, RunningServer, Setting, find_program};

/// More connections than any work has.
const CONNECTIONS: u32 = 32_768;

/// An nginx that can be run.
#[derive(Debug, Clone)]
pub(crate) struct Nginx {
    /// Its name in the report.
    pub(crate) name: String,
    source: Source,
    /// Whether OpenSSL is to leave TLS to the kernel.
    kernel_tls: bool,
}

#[derive(Debug, Clone)]
enum Source {
    Host(PathBuf),
    Debian13(Debian13),
}

impl Nginx {
    /// The nginx of the machine's own distribution, `nginx-12` on Debian 12.
    pub(crate) fn of_host() -> Result<Self> {
        let program =
            find_program("nginx").context("nginx is not installed (on Debian: apt install nginx)")?;
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        Ok(Self { name: host_name(&release), source: Source::Host(program), kernel_tls: false })
    }

    /// The nginx in a Debian 13 tree.
    pub(crate) fn of_debian13(tree: Debian13) -> Self {
        Self { name: "nginx-13".to_string(), source: Source::Debian13(tree), kernel_tls: false }
    }

    /// The same, with TLS left to the kernel where it has it.
    pub(crate) fn with_kernel_tls(self) -> Self {
        Self { name: format!("{}-ktls", self.name), kernel_tls: true, ..self }
    }

    fn program(&self) -> (PathBuf, Vec<String>) {
        match &self.source {
            Source::Host(program) => (program.clone(), Vec::new()),
            Source::Debian13(tree) => tree.nginx(),
        }
    }

    /// The first lines of `nginx -V`: version and OpenSSL.
    pub(crate) fn version(&self) -> Result<String> {
        let (program, arguments) = self.program();
        let output = Command::new(&program)
            .args(arguments)
            .arg("-V")
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            bail!("`{} -V` failed: {}", program.display(), said.trim());
        }
        Ok(nginx::version(&said))
    }

    /// Writes the configuration and starts it.
    pub(crate) fn start(&self, setting: &Setting<'_>) -> Result<RunningServer> {
        let endpoints = Endpoints::pick(setting.link)?;
        let prefix = setting.run_folder.join(&self.name);
        fs::create_dir_all(&prefix).with_context(|| format!("cannot create {}", prefix.display()))?;
        let path = prefix.join("nginx.conf");
        fs::write(&path, configuration(&prefix, endpoints, setting, self.kernel_tls))
            .with_context(|| format!("cannot write {}", path.display()))?;
        let (program, arguments) = self.program();
        let mut command = setting.link.server_command(program);
        command.args(arguments).arg("-p").arg(&prefix).arg("-c").arg(&path).args(["-e", "stderr"]);
        if let Source::Debian13(tree) = &self.source {
            tree.isolate(&mut command);
        }
        RunningServer::start(&self.name, self.version()?, command, endpoints, setting)
    }
}

/// `nginx-12` for Debian 12, `nginx-ubuntu-24.04` and the like elsewhere.
fn host_name(os_release: &str) -> String {
    let value = |key: &str| {
        os_release
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .map_or("unknown", |value| value.trim_matches('"'))
    };
    match value("ID") {
        "debian" => format!("nginx-{}", value("VERSION_ID")),
        other => format!("nginx-{other}-{}", value("VERSION_ID")),
    }
}

fn configuration(prefix: &Path, endpoints: Endpoints, setting: &Setting<'_>, kernel_tls: bool) -> String {
    let mut directives = vec![
        "ssl_protocols TLSv1.3".to_string(),
        format!("ssl_conf_command Ciphersuites {}", setting.cipher.suite_name()),
        "ssl_ecdh_curve X25519".to_string(),
    ];
    if kernel_tls {
        directives.push("ssl_conf_command Options KTLS".to_string());
    }
    let tls = Tls { chain: &setting.certificate.chain, key: &setting.certificate.key, directives };
    let configuration = Configuration {
        folder: prefix,
        root: setting.root,
        workers: 1,
        connections: CONNECTIONS,
        listeners: vec![
            Listener { address: endpoints.plain, tls: None },
            Listener { address: endpoints.tls, tls: Some(tls) },
        ],
    };
    configuration.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_named_after_its_release() {
        assert_eq!(host_name("NAME=\"Debian\"\nVERSION_ID=\"12\"\nID=debian\n"), "nginx-12");
        assert_eq!(host_name("ID=ubuntu\nVERSION_ID=\"24.04\"\n"), "nginx-ubuntu-24.04");
        assert_eq!(host_name("ID=arch\n"), "nginx-arch-unknown");
    }
}
