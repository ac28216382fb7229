//! A server that is any command the user names, with its placeholders filled in.

use std::path::Path;

use super::{Launch, Place, system};
use crate::cores::list_text;
use crate::definition::OwnServer;

pub(super) fn probe(own: &OwnServer) -> Result<String, String> {
    let program = own.command.first().ok_or("its command is empty")?;
    let there =
        program.starts_with('{') || Path::new(program).is_file() || system::find_program(program).is_some();
    if !there {
        return Err(system::not_installed(program));
    }
    if own.version.is_empty() {
        return Ok("of unknown version".to_owned());
    }
    system::output_of(&own.version, &[]).map(|said| said.lines().next().unwrap_or_default().to_owned())
}

pub(super) fn launch(own: &OwnServer, linerate: &Path, place: &Place<'_>) -> Result<Launch, String> {
    let command: Vec<String> = own.command.iter().map(|text| filled(text, linerate, place)).collect();
    let configuration = own
        .configuration
        .as_ref()
        .map(|text| (configuration_path(place.folder), filled(text, linerate, place)));
    if configuration.is_none() && own.command.iter().any(|text| text.contains("{configuration}")) {
        return Err("its command names {configuration}, and it has none".to_owned());
    }
    Ok(Launch { command, configuration, kernel_threads: None })
}

fn configuration_path(folder: &Path) -> std::path::PathBuf {
    folder.join("configuration")
}

/// `text` with its placeholders filled in. What is no placeholder stays as it is.
pub(super) fn filled(text: &str, linerate: &Path, place: &Place<'_>) -> String {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    [
        ("{address}", place.ip().to_string()),
        ("{port}", place.port().to_string()),
        ("{root}", path(place.root)),
        ("{cert}", path(&place.certificate.chain)),
        ("{key}", path(&place.certificate.key)),
        ("{cpus}", list_text(place.cores)),
        ("{cores}", place.cores.len().to_string()),
        ("{folder}", path(place.folder)),
        ("{configuration}", path(&configuration_path(place.folder))),
        ("{linerate}", path(linerate)),
    ]
    .iter()
    .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_place;
    use super::*;
    use crate::definition::Workload;

    fn own(command: &[&str], configuration: Option<&str>) -> OwnServer {
        OwnServer {
            command: command.iter().map(ToString::to_string).collect(),
            configuration: configuration.map(str::to_owned),
            ..OwnServer::default()
        }
    }

    fn launched(own: &OwnServer) -> Result<Launch, String> {
        with_place(&Workload::default(), |place| launch(own, Path::new("/bin/linerate"), place))
    }

    #[test]
    fn placeholders_are_filled_in() {
        let own = own(
            &["{linerate}", "-c", "{configuration}", "{{x}", "{cpus}/{cores}"],
            Some("port={port};{root}"),
        );
        let launch = launched(&own).unwrap();
        assert_eq!(launch.command, ["/bin/linerate", "-c", "/run/server/configuration", "{{x}", "0-1/2"]);
        assert_eq!(launch.configuration.unwrap().1, "port=4433;/files");
    }

    #[test]
    fn what_is_missing_is_said() {
        assert!(launched(&own(&["x", "{configuration}"], None)).unwrap_err().contains("it has none"));
        let reason = probe(&own(&["no-such-server"], None)).unwrap_err();
        assert_eq!(
            reason,
            "no-such-server is not installed (on Debian and Ubuntu: apt install no-such-server)"
        );
        assert_eq!(probe(&own(&["sh"], None)).unwrap(), "of unknown version");
    }
}
