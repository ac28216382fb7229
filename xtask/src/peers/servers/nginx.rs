//! nginx: the configuration it runs with, and its start.
//!
//! One worker, sendfile and tcp_nopush on, no access log; TLS session tickets and the rest as nginx has them by
//! default. The configuration is kept in the run folder for the reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::debian13::Debian13;
use super::{Endpoints, RunningServer, Setting, find_program};

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
        let named: Vec<&str> = said
            .lines()
            .filter_map(|line| line.strip_prefix("nginx version: ").or(line.strip_prefix("built with ")))
            .filter(|line| !line.starts_with("gcc"))
            .collect();
        Ok(named.join(", built with "))
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
    // Workers give up root; the files may lie in a folder that only its owner can enter.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let options = if kernel_tls { "ssl_conf_command Options KTLS;" } else { "" };
    let prefix = prefix.display();
    format!(
        "{user}\
daemon off;
worker_processes 1;
pid {prefix}/nginx.pid;
error_log stderr warn;
events {{
    worker_connections 32768;
}}
http {{
    default_type application/octet-stream;
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    client_body_temp_path {prefix}/body;
    proxy_temp_path {prefix}/proxy;
    fastcgi_temp_path {prefix}/fastcgi;
    uwsgi_temp_path {prefix}/uwsgi;
    scgi_temp_path {prefix}/scgi;
    root {root};

    server {{
        listen {plain};
    }}
    server {{
        listen {tls} ssl;
        ssl_certificate {chain};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites {suite};
        ssl_ecdh_curve X25519;
        {options}
    }}
}}
",
        root = setting.root.display(),
        plain = endpoints.plain,
        tls = endpoints.tls,
        chain = setting.certificate.chain.display(),
        key = setting.certificate.key.display(),
        suite = setting.cipher.suite_name(),
    )
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
