//! nginx as it is started under test: sendfile and tcp_nopush on, no access log, the rest by its own defaults.

use super::{Launch, Mode, Place, system};
use crate::definition::Workload;

pub(super) fn probe(program: &[String], mode: Mode) -> Result<String, String> {
    if mode == Mode::Kernel
        && let Some(reason) = system::no_kernel_tls()
    {
        return Err(reason);
    }
    let said = system::output_of(program, &["-V"])?;
    let named: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("nginx version: ").or(line.strip_prefix("built with ")))
        .filter(|line| !line.starts_with("gcc"))
        .collect();
    Ok(named.join(", "))
}

/// OpenSSL has X25519MLKEM768 since 3.5.
pub(super) fn refusal(version: &str, workload: &Workload) -> Option<String> {
    let group = workload.group.as_deref().filter(|group| group.contains("MLKEM"))?;
    let (_, openssl) = version.split_once("OpenSSL ")?;
    let mut numbers = openssl.split(['.', ' ']).map_while(|number| number.parse::<u32>().ok());
    let found = (numbers.next()?, numbers.next()?);
    (found < (3, 5))
        .then(|| format!("nginx here has OpenSSL {}.{}, which has no {group} (3.5 has)", found.0, found.1))
}

pub(super) fn launch(program: Vec<String>, mode: Mode, place: &Place<'_>) -> Launch {
    let path = place.folder.join("nginx.conf");
    let folder = place.folder.to_string_lossy().into_owned();
    let mut command = program;
    let configuration = path.to_string_lossy().into_owned();
    command.extend(["-p", &folder, "-c", &configuration, "-e", "stderr"].map(str::to_owned));
    Launch { command, configuration: Some((path, self::configuration(mode, place))) }
}

fn configuration(mode: Mode, place: &Place<'_>) -> String {
    // Workers give up root; the files may lie in a folder that only its owner can enter.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let ssl = if mode == Mode::Plaintext { "" } else { " ssl" };
    format!(
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

    server {{
        listen {address}{ssl} reuseport;
{tls}    }}
}}
",
        workers = place.cores.len(),
        folder = place.folder.display(),
        // A connection and the file that it is served from.
        files = 2 * connections(place.workload) + 64,
        connections = connections(place.workload),
        root = place.root.display(),
        address = place.address,
        tls = if mode == Mode::Plaintext { String::new() } else { tls(mode, place) },
    )
}

/// `reuseport` divides connections by hash, not evenly: each worker has room for all of them.
fn connections(workload: &Workload) -> u32 {
    workload.connections + 512
}

fn tls(mode: Mode, place: &Place<'_>) -> String {
    let mut lines = vec![
        format!("ssl_certificate {};", place.certificate.chain.display()),
        format!("ssl_certificate_key {};", place.certificate.key.display()),
        "ssl_protocols TLSv1.2 TLSv1.3;".to_owned(),
    ];
    if mode == Mode::Kernel {
        lines.push("ssl_conf_command Options KTLS;".to_owned());
    }
    if let Some(record_bytes) = place.workload.record_bytes {
        lines.push(format!("ssl_buffer_size {record_bytes};"));
    }
    if let Some(group) = &place.workload.group {
        lines.push(format!("ssl_ecdh_curve {group};"));
    }
    lines.iter().map(|line| format!("        {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_place;
    use super::*;

    #[test]
    fn the_configuration_has_what_the_load_asks_for() {
        let workload = Workload { record_bytes: Some(4096), connections: 40_000, ..Workload::default() };
        let kernel = with_place(&workload, |place| configuration(Mode::Kernel, place));
        for line in [
            "listen 127.0.0.1:4433 ssl reuseport;",
            "ssl_conf_command Options KTLS;",
            "ssl_buffer_size 4096;",
            "worker_connections 40512;",
            "worker_processes 2;",
        ] {
            assert!(kernel.contains(line), "{line} is missing:\n{kernel}");
        }
        let plaintext = with_place(&workload, |place| configuration(Mode::Plaintext, place));
        assert!(!plaintext.contains("ssl"), "{plaintext}");
    }

    #[test]
    fn an_old_openssl_has_no_post_quantum_group() {
        let with = |group: &str| Workload { group: Some(group.to_owned()), ..Workload::default() };
        let old = "nginx/1.22.1, OpenSSL 3.0.11 19 Sep 2023";
        let new = "nginx/1.26.3, OpenSSL 3.5.0 8 Apr 2025";
        assert!(refusal(old, &with("X25519MLKEM768")).unwrap().contains("OpenSSL 3.0"));
        assert_eq!(refusal(new, &with("X25519MLKEM768")), None);
        assert_eq!(refusal(old, &with("X25519")), None);
        assert_eq!(refusal(old, &Workload::default()), None);
    }
}
