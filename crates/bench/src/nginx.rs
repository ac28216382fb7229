//! nginx's configuration as it is measured: sendfile and tcp_nopush on, no access log, limits that no measurement meets;
//! the rest by its own defaults.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

/// What differs between measurements. Shown, it is the text of `nginx.conf`.
#[derive(Debug)]
pub struct Configuration<'a> {
    /// Where it keeps its process id and temporary files.
    pub folder: &'a Path,
    /// The document root.
    pub root: &'a Path,
    /// Worker processes.
    pub workers: usize,
    /// Connections of each worker.
    pub connections: u32,
    /// Further directives for all that it serves over HTTP, with their semicolons: "aio threads;".
    pub added: &'a str,
    /// Where it listens.
    pub listeners: Vec<Listener<'a>>,
}

/// An address, in the clear or over TLS.
#[derive(Debug)]
pub struct Listener<'a> {
    /// The address.
    pub address: SocketAddr,
    /// Of one that speaks TLS.
    pub tls: Option<Tls<'a>>,
}

/// What a listener that speaks TLS needs.
#[derive(Debug)]
pub struct Tls<'a> {
    /// The certificate, as PEM.
    pub chain: &'a Path,
    /// Its key, as PEM.
    pub key: &'a Path,
    /// Directives, without their semicolons: "ssl_protocols TLSv1.3".
    pub directives: Vec<String>,
}

/// nginx and the OpenSSL that it was built with, of what `nginx -V` says.
#[must_use]
pub fn version(said: &str) -> String {
    let named: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("nginx version: ").or(line.strip_prefix("built with ")))
        .filter(|line| !line.starts_with("gcc"))
        .collect();
    named.join(", ")
}

impl fmt::Display for Configuration<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, connections, .. } = self;
        let (folder, root) = (self.folder.display(), self.root.display());
        // Workers give up root; the files may lie in a folder that only its owner can enter.
        let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
        // A connection and the file that it is served from.
        let files = 2 * connections + 64;
        write!(
            formatter,
            "{user}daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log stderr warn;
worker_rlimit_nofile {files};
events {{
    worker_connections {connections};
}}
http {{
    default_type application/octet-stream;
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    root {root};
"
        )?;
        for line in self.added.lines() {
            writeln!(formatter, "    {line}")?;
        }
        formatter.write_str("\n")?;
        for listener in &self.listeners {
            write!(formatter, "{listener}")?;
        }
        formatter.write_str("}\n")
    }
}

impl fmt::Display for Listener<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ssl = if self.tls.is_some() { " ssl" } else { "" };
        writeln!(formatter, "    server {{\n        listen {}{ssl} reuseport;", self.address)?;
        if let Some(tls) = &self.tls {
            writeln!(formatter, "        ssl_certificate {};", tls.chain.display())?;
            writeln!(formatter, "        ssl_certificate_key {};", tls.key.display())?;
            for directive in &tls.directives {
                writeln!(formatter, "        {directive};")?;
            }
        }
        formatter.write_str("    }\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_nginx_and_openssl() {
        let said = "nginx version: nginx/1.22.1\nbuilt with gcc 12\nbuilt with OpenSSL 3.0.11 19 Sep 2023\nTLS SNI support enabled\n";
        assert_eq!(version(said), "nginx/1.22.1, OpenSSL 3.0.11 19 Sep 2023");
    }
}
