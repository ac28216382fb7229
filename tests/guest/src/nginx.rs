//! nginx with its own use of kernel TLS, as a peer.

use linerate_end_to_end::{CertificatePair, Site, wait_until};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// A running nginx with one worker and two TLS listeners. Ended when dropped.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    folder: TempDir,
    /// Where TLS is the kernel's once the handshake is over.
    pub kernel_tls: SocketAddr,
    /// Where it stays OpenSSL's.
    pub user_tls: SocketAddr,
}

impl Nginx {
    /// The program, if it is installed.
    #[must_use]
    pub fn program() -> Option<PathBuf> {
        ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.is_file())
    }

    /// Starts it on 127.0.0.1, and waits until it listens. `None` where it is not installed.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(site: &Site, pair: &CertificatePair) -> Option<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), site, pair)
    }

    /// Starts it on an address of this machine.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_at(address: IpAddr, site: &Site, pair: &CertificatePair) -> Option<Self> {
        let program = Self::program()?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (kernel_tls, user_tls) = two_free_ports(address);
        let configuration = folder.path().join("nginx.conf");
        fs::write(&configuration, configuration_for(site, pair, &folder, kernel_tls, user_tls))
            .expect("nginx's configuration");
        let child = Command::new(program)
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&configuration)
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx can be run");
        let mut nginx = Self { child, folder, kernel_tls, user_tls };
        wait_until("nginx listens", || {
            let ended = nginx.child.try_wait().expect("a child can be waited for");
            assert!(ended.is_none(), "nginx ended: {ended:?}");
            TcpStream::connect(nginx.user_tls).is_ok()
        });
        Some(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM, not KILL: its worker is to end with it.
        if let Ok(pid) = fs::read_to_string(self.folder.path().join("nginx.pid")) {
            let _ = Command::new("kill").arg(pid.trim()).status();
        }
        let _ = self.child.wait();
    }
}

/// Two ports of an address that nobody listens on.
fn two_free_ports(address: IpAddr) -> (SocketAddr, SocketAddr) {
    let listeners = [0; 2].map(|port| TcpListener::bind((address, port)).expect("a free port"));
    let [first, second] =
        listeners.map(|listener| listener.local_addr().expect("a bound socket has an address"));
    (first, second)
}

fn configuration_for(
    site: &Site,
    pair: &CertificatePair,
    folder: &TempDir,
    kernel_tls: SocketAddr,
    user_tls: SocketAddr,
) -> String {
    format!(
        "user root; daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; tcp_nopush on; default_type application/octet-stream; root {root};
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
    server {{ listen {kernel_tls} ssl; ssl_conf_command Options KTLS; }}
    server {{ listen {user_tls} ssl; }}
}}
",
        folder = folder.path().display(),
        root = site.path().display(),
        certificate = pair.certificate.display(),
        key = pair.key.display(),
    )
}
