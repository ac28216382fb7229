//! Caddy as it is started under test: a file server on HTTP/1.1, no administration, no certificates from elsewhere.
//!
//! It runs as many threads as it has cores to run on, which Go reads from the affinity that it was started with.

use super::{Launch, Mode, Place, no_choice_of_records, post_quantum_group, system};
use crate::definition::Workload;

pub(super) fn probe(program: &[String]) -> Result<String, String> {
    let said = system::output_of(program, &["version"])?;
    Ok(format!("caddy {}", said.split_ascii_whitespace().next().unwrap_or("of unknown version")))
}

pub(super) fn refusal(workload: &Workload) -> Option<String> {
    // Go has it since 1.24; Caddy does not say which Go it was built with, and its names for curves lack it before 2.10.
    let unknown = |group: &str| {
        format!(
            "whether this Caddy has {group} depends on the Go that it was built with, which it does not tell"
        )
    };
    no_choice_of_records("Caddy", workload).or_else(|| post_quantum_group(workload).map(unknown))
}

pub(super) fn launch(program: Vec<String>, mode: Mode, place: &Place<'_>) -> Launch {
    // It keeps a copy of its last configuration below this folder; the option that forbids it came with 2.7.
    let mut command = vec!["env".to_owned(), format!("XDG_CONFIG_HOME={}", place.folder.display())];
    command.extend(program);
    Launch::configured(command, place, ("Caddyfile", configuration(mode, place)), |path| {
        ["run", "--config", path, "--adapter", "caddyfile"].map(str::to_owned).to_vec()
    })
}

fn configuration(mode: Mode, place: &Place<'_>) -> String {
    let scheme = if mode == Mode::Plaintext { "http" } else { "https" };
    let tls = if mode == Mode::Plaintext {
        String::new()
    } else {
        let (chain, key) = (place.certificate.chain.display(), place.certificate.key.display());
        let curves = match place.workload.group.as_deref() {
            Some("X25519") => "\n\t\tcurves x25519",
            _ => "",
        };
        format!("\ttls {chain} {key} {{\n\t\tprotocols tls1.2 tls1.3{curves}\n\t}}\n")
    };
    // The client asks by address and sends no server name.
    format!(
        "{{
\tadmin off
\tauto_https off
\tdefault_sni {ip}
\tstorage file_system {folder}/storage
\tlog {{
\t\tlevel WARN
\t}}
\tservers {{
\t\tprotocols h1
\t}}
}}
{scheme}://{ip}:{port} {{
\tbind {ip}
{tls}\troot * {root}
\tfile_server
}}
",
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
    fn the_configuration_names_certificate_and_root_once_each() {
        let text = with_place(&Workload::default(), |place| configuration(Mode::User, place));
        assert!(text.contains("https://127.0.0.1:4433 {"), "{text}");
        assert!(text.contains("\ttls /run/ecdsa.pem /run/ecdsa.key {"), "{text}");
        let text = with_place(&Workload::default(), |place| configuration(Mode::Plaintext, place));
        assert!(text.contains("http://127.0.0.1:4433 {") && !text.contains("\ttls "), "{text}");
    }
}
