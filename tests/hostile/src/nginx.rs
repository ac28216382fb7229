//! nginx as it is started for fault programs: one worker below a master, `sendfile` on as Debian's package has it, room for
//! as many connections as linerate allows, and nginx's own defaults for the rest.

use std::{
    ffi::OsString,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::server::Setting;

pub(crate) const CONFIGURATION: &str = "nginx.conf";

/// nginx of the machine's own distribution.
#[must_use]
pub fn binary() -> Option<PathBuf> {
    let places = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"];
    places.into_iter().map(PathBuf::from).find(|path| path.is_file())
}

pub(crate) fn version(binary: &Path) -> String {
    let said = Command::new(binary).arg("-V").output().map(|output| output.stderr).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let named = said.lines().filter_map(|line| {
        line.strip_prefix("nginx version: ")
            .or(line.strip_prefix("built with "))
            .filter(|line| !line.starts_with("gcc"))
    });
    named.collect::<Vec<_>>().join(", ")
}

pub(crate) fn arguments(folder: &Path) -> Vec<OsString> {
    let file = folder.join(CONFIGURATION);
    vec!["-p".into(), folder.into(), "-c".into(), file.into(), "-e".into(), "stderr".into()]
}

pub(crate) fn configuration(setting: &Setting<'_>) -> String {
    let Setting { arena, wishes, ports, folder, log } = setting;
    // Workers give up root; the files may lie in a folder that only its owner can enter.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let log = if log == "-" { "/dev/stdout" } else { log };
    let folder = folder.display();
    let mut text = format!(
        "{user}daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log stderr;\n\
         events {{ worker_connections 65536; }}\nhttp {{\n    access_log {log};\n    sendfile on;\n    tcp_nopush on;\n    \
         default_type application/octet-stream;\n    root {};\n",
        setting.content().display()
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(text, "    {kind}_temp_path {folder}/{kind};");
    }
    if let Some(limit) = wishes.time_limit {
        for directive in ["keepalive_timeout", "client_header_timeout", "send_timeout"] {
            let _ = writeln!(text, "    {directive} {}ms;", limit.as_millis());
        }
    }
    let _ = writeln!(text, "    ssl_certificate {};", arena.certificate.certificate.display());
    let _ = writeln!(text, "    ssl_certificate_key {};", arena.certificate.key.display());
    let _ =
        writeln!(text, "    server {{\n        listen {} ssl;\n        listen {};", ports.https, ports.http);
    if let Some(further) = wishes.further {
        let _ = writeln!(text, "        listen {further} ssl;");
    }
    text += "    }\n}\n";
    if let Some(drain) = wishes.drain {
        text = format!("worker_shutdown_timeout {}ms;\n{text}", drain.as_millis());
    }
    text
}
