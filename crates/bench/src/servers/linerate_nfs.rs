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
    use super::super::tests::{is_taken, with_place};
    use super::*;
    use crate::definition::Workload;

    #[test]
    fn the_configuration_is_one_that_linerate_takes() {
        for mode in [Mode::Plaintext, Mode::User, Mode::Kernel, Mode::Nic, Mode::Auto] {
            is_taken(&with_place(&Workload::default(), |place| {
                configuration(mode, place, "identity = \"server\"\n")
            }));
        }
    }
}
