//! nginx, another implementation of everything that the client speaks.

use super::program::{flawless, number};
use crate::support::certificate_folder;
use linerate_end_to_end::{CertificatePair, Site, skip, wait_until};
use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

struct Nginx {
    child: Child,
    _folder: TempDir,
    tls: SocketAddr,
    plain: SocketAddr,
}

fn program() -> Option<PathBuf> {
    let places = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"];
    places.into_iter().map(PathBuf::from).find(|path| path.is_file())
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

/// One worker; connections are closed after seven requests, so that the client has to open new ones.
fn configuration(
    folder: &Path,
    site: &Site,
    pair: &CertificatePair,
    [tls, plain]: [SocketAddr; 2],
) -> String {
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; root {root}; autoindex on; keepalive_requests 7; chunked_transfer_encoding on;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_tickets on;
    server {{ listen {tls} ssl; listen {plain}; }}
}}
",
        folder = folder.display(),
        root = site.path().display(),
        certificate = pair.certificate.display(),
        key = pair.key.display(),
    )
}

impl Nginx {
    fn start(site: &Site, pair: &CertificatePair) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (tls, plain) = (free_address(), free_address());
        let file = folder.path().join("nginx.conf");
        fs::write(&file, configuration(folder.path(), site, pair, [tls, plain])).expect("its configuration");
        let child = Command::new(program)
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&file)
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx can be run");
        let mut nginx = Self { child, _folder: folder, tls, plain };
        wait_until("nginx listens", || {
            let ended = nginx.child.try_wait().expect("a child can be waited for");
            assert!(ended.is_none(), "nginx ended: {ended:?}");
            TcpStream::connect(nginx.tls).is_ok()
        });
        Some(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // One process, without a master.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

#[test]
fn nginx_is_understood_whatever_is_asked_of_it() {
    let site = Site::empty();
    let (_keys, pair) = certificate_folder();
    for length in [0, 1, 1000, 16_384, 100_001, 5_000_003] {
        site.add_pattern(&format!("{length}.bin"), length);
    }
    let Some(nginx) = Nginx::start(&site, &pair) else {
        skip("nginx_is_understood_whatever_is_asked_of_it", "nginx is not installed");
        return;
    };
    let folder = site.path().to_str().unwrap();
    for length in [0u64, 1, 1000, 16_384, 100_001, 5_000_003] {
        for (scheme, address, flags) in [
            ("http", nginx.plain, &[][..]),
            ("https", nginx.tls, &["--insecure", "--tls", "1.2"]),
            ("https", nginx.tls, &["--insecure", "--tls", "1.3"]),
            ("https", nginx.tls, &["--insecure", "--close", "--resume"]),
            ("https", nginx.tls, &["--insecure", "--close", "--resume", "--tls", "1.2"]),
        ] {
            for body in [&["--verify", folder][..], &["--discard"]] {
                let url = format!("{scheme}://{address}/{length}.bin");
                let words = [&[url.as_str(), "-n", "30", "-c", "2"], flags, body].concat();
                let report = flawless(&words);
                assert_eq!(number(&report, "/totals/body_bytes"), (30 * length) as f64, "{words:?}");
                assert!(number(&report, "/totals/connections") >= 4.0, "{words:?}: {report:#}");
                if flags.contains(&"--resume") {
                    assert!(number(&report, "/totals/resumed_handshakes") >= 25.0, "{words:?}: {report:#}");
                }
            }
        }
    }
    // A listing comes in chunks.
    for body in [&[][..], &["--discard"]] {
        let url = format!("https://{}/", nginx.tls);
        let report = flawless(&[&[url.as_str(), "-n", "20", "--insecure"], body].concat());
        assert!(number(&report, "/totals/body_bytes") > 20.0 * 300.0, "{report:#}");
    }
}
