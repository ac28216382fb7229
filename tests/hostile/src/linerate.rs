//! linerate as it is started for fault programs: one worker, and its own defaults where a program wishes nothing else.

use std::{
    ffi::OsString,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::server::Setting;

pub(crate) const CONFIGURATION: &str = "linerate.toml";

pub(crate) fn version(binary: &Path) -> String {
    let said = Command::new(binary).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).lines().next().unwrap_or("linerate").to_owned()
}

pub(crate) fn arguments(folder: &Path) -> Vec<OsString> {
    vec!["serve".into(), "--config".into(), folder.join(CONFIGURATION).into()]
}

pub(crate) fn configuration(setting: &Setting<'_>) -> String {
    let Setting { arena, wishes, ports, folder: _, log } = setting;
    let mut listen = format!("\"{}\", \"http://{}\"", ports.https, ports.http);
    if let Some(further) = wishes.further {
        let _ = write!(listen, ", \"{further}\"");
    }
    let mut text =
        format!("listen = [{listen}]\nadmin = \"{}\"\nworkers = 1\naccess_log = \"{log}\"\n", ports.admin);
    if let Some(handshakes) = wishes.handshakes {
        let _ = writeln!(text, "[tls]\nhandshakes_in_flight = {handshakes}");
    }
    text += "[timeouts]\n";
    if let Some(limit) = wishes.time_limit {
        for key in ["idle", "header", "write_progress", "handshake"] {
            let _ = writeln!(text, "{key} = \"{}ms\"", limit.as_millis());
        }
    }
    if let Some(drain) = wishes.drain {
        let _ = writeln!(text, "drain = \"{}ms\"", drain.as_millis());
    }
    let _ = write!(
        text,
        "[[site]]\nroot = \"{}\"\ncertificates = [{{ certificate = \"{}\", key = \"{}\" }}]\n",
        setting.content().display(),
        arena.certificate.certificate.display(),
        arena.certificate.key.display(),
    );
    text
}

/// The binary to test: what was named, else the one that cargo builds beside this program.
#[must_use]
pub fn binary(named: Option<PathBuf>) -> PathBuf {
    named.unwrap_or_else(|| {
        let beside =
            std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("linerate")));
        beside.filter(|path| path.is_file()).unwrap_or_else(|| "linerate".into())
    })
}
