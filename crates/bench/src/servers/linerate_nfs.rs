//! `linerate nfs` as it is started under test: one export, which is the root of what clients see.

use super::linerate::{certificates, common, quoted};
use super::{Launch, Mode, Place};

pub(super) fn launch(program: Vec<String>, mode: Mode, place: &Place<'_>, added: &str) -> Launch {
    Launch::configured(program, place, ("linerate-nfs.toml", configuration(mode, place, added)), |path| {
        ["nfs", "--config", path].map(str::to_owned).to_vec()
    })
}

fn configuration(mode: Mode, place: &Place<'_>, added: &str) -> String {
    let tls = if mode == Mode::Plaintext { "off" } else { "require" };
    format!(
        "{common}
[nfs]
{certificates}
[[export]]
directory = {root}
tls = \"{tls}\"
{added}",
        common = common("nfs", mode, place),
        certificates = certificates(mode, place),
        root = quoted(place.root),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_place;
    use super::*;
    use crate::definition::Workload;

    #[test]
    fn the_configuration_is_one_that_linerate_takes() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [Mode::Plaintext, Mode::User, Mode::Kernel, Mode::Nic, Mode::Auto] {
            let text = with_place(&Workload::default(), |place| {
                configuration(mode, place, "identity = \"server\"\n")
            });
            let path = folder.path().join("linerate-nfs.toml");
            std::fs::write(&path, &text).unwrap();
            let source = linerate_config::Source { file: Some(path), ..Default::default() };
            let settings = source.load().unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(settings.workers.map(std::num::NonZeroUsize::get), Some(2), "{text}");
        }
    }
}
