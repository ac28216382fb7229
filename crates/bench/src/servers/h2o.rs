//! h2o as it is started under test: a file handler, as many threads as cores.

use super::{Launch, Mode, Place, system};
use crate::definition::Workload;

pub(super) fn probe(program: &[String]) -> Result<String, String> {
    let said = system::output_of(program, &["--version"])?;
    let named: Vec<&str> =
        said.lines().filter(|line| line.starts_with("h2o ") || line.starts_with("OpenSSL")).collect();
    Ok(named.join(", "))
}

pub(super) fn refusal(workload: &Workload) -> Option<String> {
    if workload.record_bytes.is_some() {
        return Some("h2o chooses the size of records by itself".to_owned());
    }
    let group = workload.group.as_deref().filter(|group| group.contains("MLKEM"))?;
    Some(format!("h2o's configuration has no way to ask for {group}"))
}

pub(super) fn launch(program: Vec<String>, mode: Mode, place: &Place<'_>) -> Launch {
    let path = place.folder.join("h2o.conf");
    let mut command = program;
    command.extend(["-c".to_owned(), path.to_string_lossy().into_owned()]);
    Launch { command, configuration: Some((path, configuration(mode, place))) }
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
