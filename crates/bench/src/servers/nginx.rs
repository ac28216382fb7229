//! nginx as an experiment starts it.

use super::{Launch, Mode, Place, post_quantum_group, system};
use crate::definition::Workload;
use crate::nginx::{self, Configuration, Listener, Tls};

pub(super) fn probe(program: &[String], mode: Mode) -> Result<String, String> {
    if mode == Mode::Kernel
        && let Some(reason) = system::no_kernel_tls()
    {
        return Err(reason);
    }
    system::output_of(program, &["-V"]).map(|said| nginx::version(&said))
}

/// OpenSSL has X25519MLKEM768 since 3.5.
pub(super) fn refusal(version: &str, workload: &Workload) -> Option<String> {
    let group = post_quantum_group(workload)?;
    let (_, openssl) = version.split_once("OpenSSL ")?;
    let mut numbers = openssl.split(['.', ' ']).map_while(|number| number.parse::<u32>().ok());
    let found = (numbers.next()?, numbers.next()?);
    (found < (3, 5))
        .then(|| format!("nginx here has OpenSSL {}.{}, which has no {group} (3.5 has)", found.0, found.1))
}

pub(super) fn launch(program: Vec<String>, mode: Mode, place: &Place<'_>, added: &str) -> Launch {
    Launch::configured(program, place, ("nginx.conf", configuration(mode, place, added)), |path| {
        let folder = place.folder.to_string_lossy();
        ["-p", &folder, "-c", path, "-e", "stderr"].map(str::to_owned).to_vec()
    })
}

fn configuration(mode: Mode, place: &Place<'_>, added: &str) -> String {
    let tls = (mode != Mode::Plaintext).then(|| Tls {
        chain: &place.certificate.chain,
        key: &place.certificate.key,
        directives: directives(mode, place.workload),
    });
    let configuration = Configuration {
        folder: place.folder,
        root: place.root,
        workers: place.cores.len(),
        // `reuseport` divides connections by hash, not evenly: each worker has room for all of them.
        connections: place.workload.connections + 512,
        added,
        listeners: vec![Listener { address: place.address, tls }],
    };
    configuration.to_string()
}

fn directives(mode: Mode, workload: &Workload) -> Vec<String> {
    let mut directives = vec!["ssl_protocols TLSv1.2 TLSv1.3".to_owned()];
    if mode == Mode::Kernel {
        directives.push("ssl_conf_command Options KTLS".to_owned());
    }
    directives.extend(workload.record_bytes.map(|bytes| format!("ssl_buffer_size {bytes}")));
    directives.extend(workload.group.as_ref().map(|group| format!("ssl_ecdh_curve {group}")));
    directives
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_place;
    use super::*;

    #[test]
    fn the_configuration_has_what_the_load_asks_for() {
        let workload = Workload { record_bytes: Some(4096), connections: 40_000, ..Workload::default() };
        let kernel = with_place(&workload, |place| configuration(Mode::Kernel, place, "aio threads;\n"));
        for line in [
            "listen 127.0.0.1:4433 ssl reuseport;",
            "ssl_conf_command Options KTLS;",
            "ssl_buffer_size 4096;",
            "worker_connections 40512;",
            "worker_processes 2;",
            "root /files;\n    aio threads;\n",
        ] {
            assert!(kernel.contains(line), "{line} is missing:\n{kernel}");
        }
        let plaintext = with_place(&workload, |place| configuration(Mode::Plaintext, place, ""));
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
