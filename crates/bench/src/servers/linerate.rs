//! linerate as it is started under test.
//!
//! `linerate auto` decides by the calibration that `linerate calibrate` left in the state directory of the user who runs the bench,
//! as any server of theirs would; where there is none, by published figures. Which it was is told with its version.

use std::path::Path;

use linerate_config::EngineChoice;

use super::{Launch, Mode, Place, system};
use crate::cores::list_text;
use crate::definition::Workload;

/// Its records are always this large where there is enough to send.
const RECORD_BYTES: u32 = 1 << 14;

pub(super) fn probe(program: &[String], mode: Mode) -> Result<String, String> {
    let needs_kernel = matches!(mode, Mode::Kernel | Mode::Nic);
    if let Some(reason) = system::no_kernel_tls().filter(|_| needs_kernel) {
        return Err(reason);
    }
    if let Some(reason) = system::no_adapter_that_encrypts().filter(|_| mode == Mode::Nic) {
        return Err(reason);
    }
    let said = system::output_of(program, &["--version"])?;
    let version = said.lines().next().unwrap_or_default();
    if mode != Mode::Auto {
        return Ok(version.to_owned());
    }
    let checked = system::output_of(program, &["check", "/", "--engine", "auto"])?;
    Ok(format!("{version}, costs: {}", basis(&checked).unwrap_or("not told")))
}

/// What `linerate check` says its costs are from, without the path: `measured at 2026-11-21T12:00:00Z`.
fn basis(checked: &str) -> Option<&str> {
    let costs = checked.lines().find_map(|line| line.strip_prefix("costs "))?.trim_start();
    let measured = costs.find("measured at ").map(|start| &costs[start..]);
    // What follows a semicolon is what to do about it.
    measured.or(Some(costs)).and_then(|text| text.split(';').next())
}

pub(super) fn refusal(workload: &Workload) -> Option<String> {
    let record_bytes = workload.record_bytes?;
    (record_bytes != RECORD_BYTES).then(|| format!("linerate always fills records of {RECORD_BYTES} bytes"))
}

pub(super) fn launch(program: Vec<String>, mode: Mode, place: &Place<'_>, added: &str) -> Launch {
    Launch::configured(program, place, ("linerate.toml", configuration(mode, place, added)), |path| {
        ["serve", "--config", path].map(str::to_owned).to_vec()
    })
}

fn configuration(mode: Mode, place: &Place<'_>, added: &str) -> String {
    let scheme = if mode == Mode::Plaintext { "http" } else { "https" };
    let [root, certificates] = [quoted(place.root), certificates(mode, place)];
    format!("{}\n[[site]]\nroot = {root}\n{certificates}{added}", common(scheme, mode, place))
}

/// What does not depend on what is served.
pub(super) fn common(scheme: &str, mode: Mode, place: &Place<'_>) -> String {
    let engine = match mode {
        Mode::Plaintext => String::new(),
        Mode::User => format!("engine = \"{}\"\n", EngineChoice::User),
        Mode::Kernel => format!("engine = \"{}\"\n", EngineChoice::Kernel),
        Mode::Nic => format!("engine = \"{}\"\n", EngineChoice::Nic),
        Mode::Auto => format!("engine = \"{}\"\n", EngineChoice::Auto),
    };
    format!(
        "listen = [\"{scheme}://{address}\"]
workers = {workers}
cpus = \"{cpus}\"
{engine}
[limits]
connections = 1000000

[timeouts]
idle = \"600s\"
",
        address = place.address,
        workers = place.cores.len(),
        cpus = list_text(place.cores),
    )
}

/// The key of the certificates, where there is TLS.
pub(super) fn certificates(mode: Mode, place: &Place<'_>) -> String {
    if mode == Mode::Plaintext {
        return String::new();
    }
    let [certificate, key] = [&place.certificate.chain, &place.certificate.key].map(|path| quoted(path));
    format!("certificates = [{{ certificate = {certificate}, key = {key} }}]\n")
}

/// A path as a TOML string.
pub(super) fn quoted(path: &Path) -> String {
    toml::Value::String(path.to_string_lossy().into_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{is_taken, with_place};
    use super::*;

    #[test]
    fn the_configuration_is_one_that_linerate_takes() {
        for mode in [Mode::Plaintext, Mode::User, Mode::Kernel, Mode::Nic, Mode::Auto] {
            is_taken(&with_place(&Workload::default(), |place| {
                configuration(mode, place, "[user_engine]\nbatch = \"64KiB\"\n")
            }));
        }
    }

    #[test]
    fn what_auto_decides_by_is_told_without_the_path() {
        let measured = "listen         *:8443\ncosts          /home/me/calibration.toml, measured at 2026-11-21T12:00:00Z\n";
        assert_eq!(basis(measured), Some("measured at 2026-11-21T12:00:00Z"));
        let published = "costs          published figures; `linerate calibrate` measures this machine\n";
        assert_eq!(basis(published), Some("published figures"));
        assert_eq!(basis("placement      none\n"), None);
    }

    #[test]
    fn only_full_records_are_on_offer() {
        let with = |record_bytes| Workload { record_bytes, ..Workload::default() };
        assert_eq!(refusal(&with(None)), None);
        assert_eq!(refusal(&with(Some(16_384))), None);
        assert!(refusal(&with(Some(4096))).is_some());
    }
}
