//! h2o as it is started under test: a file handler, as many threads as cores.

use super::{Launch, Mode, Place, no_choice_of_records, post_quantum_group, system};
use crate::definition::Workload;

pub(super) fn probe(program: &[String]) -> Result<String, String> {
    let said = system::output_of(program, &["--version"])?;
    let named: Vec<&str> =
        said.lines().filter(|line| line.starts_with("h2o ") || line.starts_with("OpenSSL")).collect();
    Ok(named.join(", "))
}

pub(super) fn refusal(workload: &Workload) -> Option<String> {
    let no_way = |group: &str| format!("h2o's configuration has no way to ask for {group}");
    no_choice_of_records("h2o", workload).or_else(|| post_quantum_group(workload).map(no_way))
}

pub(super) fn launch(program: Vec<String>, mode: Mode, place: &Place<'_>) -> Launch {
    Launch::configured(program, place, ("h2o.conf", configuration(mode, place)), |path| {
        vec!["-c".to_owned(), path.to_owned()]
    })
}

fn configuration(mode: Mode, place: &Place<'_>) -> String {
    let user = if rustix::process::geteuid().is_root() { "user: root\n" } else { "" };
    let tls = if mode == Mode::Plaintext {
        String::new()
    } else {
        format!(
            "  ssl:\n    certificate-file: \"{}\"\n    key-file: \"{}\"\n    minimum-version: TLSv1.2\n",
            place.certificate.chain.display(),
            place.certificate.key.display()
        )
    };
    format!(
        "{user}num-threads: {threads}
max-connections: {connections}
pid-file: \"{folder}/h2o.pid\"
error-log: \"/dev/stderr\"
http1-request-timeout: 600
listen:
  host: \"{ip}\"
  port: {port}
{tls}hosts:
  default:
    paths:
      \"/\":
        file.dir: \"{root}\"
        file.mime.setdefaulttype: \"application/octet-stream\"
",
        threads = place.cores.len(),
        connections = place.workload.connections + 512,
        folder = place.folder.display(),
        ip = place.ip(),
        port = place.port(),
        root = place.root.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_place;
    use super::*;

    #[test]
    fn the_configuration_speaks_tls_where_it_should() {
        let text = with_place(&Workload::default(), |place| configuration(Mode::User, place));
        assert!(text.contains("  port: 4433\n  ssl:\n    certificate-file: \"/run/ecdsa.pem\"\n"), "{text}");
        let text = with_place(&Workload::default(), |place| configuration(Mode::Plaintext, place));
        assert!(!text.contains("ssl:"), "{text}");
    }
}
