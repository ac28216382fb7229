//! Which servers take part: found, started together, verified.

use std::path::Path;

use anyhow::{Context, Result};

use super::options::Options;
use super::servers::debian13::Debian13;
use super::servers::linerate::Linerate;
use super::servers::nginx::Nginx;
use super::servers::{RunningServer, Setting};
use super::slices::{Bench, Target};
use super::works::{Load, ROLES, Role, Work};

/// The servers that can be run here.
#[derive(Debug)]
pub(crate) struct Lineup {
    linerate: Option<Linerate>,
    host: Option<Nginx>,
    thirteen: Option<Nginx>,
    /// Who does not take part, and why.
    pub(crate) skipped: Vec<String>,
}

/// The servers, running.
#[derive(Debug)]
pub(crate) struct Running {
    linerate: Option<RunningServer>,
    host: Option<RunningServer>,
    thirteen: Option<RunningServer>,
}

impl Lineup {
    /// Looks for the servers. Only a linerate that does not build is an error: peers may be missing.
    pub(crate) fn find(options: &Options, workspace: &Path, tree: &Path) -> Result<Self> {
        let mut skipped = Vec::new();
        let mut keep = |name: &str, found: Result<Nginx>| match found {
            Ok(nginx) if options.without.contains(&nginx.name) => {
                skipped.push(format!("{}: as asked for by --without", nginx.name));
                None
            }
            Ok(nginx) => Some(nginx),
            Err(reason) => {
                skipped.push(format!("{name}: {reason:#}"));
                None
            }
        };
        let host = keep("nginx of this machine", Nginx::of_host());
        let thirteen = keep("nginx-13", Debian13::find(tree).map(Nginx::of_debian13));
        let linerate = if options.without.iter().any(|name| name == Linerate::NAME) {
            skipped.push(format!("{}: as asked for by --without", Linerate::NAME));
            None
        } else {
            Some(Linerate::find(options.linerate.as_deref(), &options.linerate_flag, workspace)?)
        };
        Ok(Self { linerate, host, thirteen, skipped })
    }

    /// What they say of themselves.
    pub(crate) fn versions(&self) -> Result<Vec<(String, String)>> {
        let mut versions = Vec::new();
        if let Some(linerate) = &self.linerate {
            versions.push((Linerate::NAME.to_string(), linerate.version()?));
        }
        for nginx in [&self.host, &self.thirteen].into_iter().flatten() {
            versions.push((nginx.name.clone(), nginx.version()?));
        }
        Ok(versions)
    }

    /// Whether a role can be played.
    pub(crate) fn has(&self, role: Role) -> bool {
        match role {
            Role::Linerate | Role::LineratePlain => self.linerate.is_some(),
            Role::NginxHost | Role::NginxPlain => self.host.is_some(),
            Role::Nginx13 => self.thirteen.is_some(),
        }
    }

    /// Whether the host's nginx is the one that the targets were set against, on OpenSSL 3.0.
    pub(crate) fn host_is_debian_12(&self) -> bool {
        self.host.as_ref().is_some_and(|nginx| nginx.name == "nginx-12")
    }

    /// Starts all of them.
    pub(crate) fn start(&self, setting: &Setting<'_>) -> Result<Running> {
        let nginx = |nginx: &Option<Nginx>| nginx.as_ref().map(|nginx| nginx.start(setting)).transpose();
        let linerate = self.linerate.as_ref().map(|linerate| linerate.start(setting)).transpose()?;
        Ok(Running { linerate, host: nginx(&self.host)?, thirteen: nginx(&self.thirteen)? })
    }

    /// Starts all of them once and compares what they serve with the files, byte for byte.
    pub(crate) fn verify(&self, bench: &Bench<'_>, setting: &Setting<'_>) -> Result<()> {
        let running = self.start(setting)?;
        for role in ROLES {
            let Some(server) = running.server(role) else { continue };
            let label = self.label(role, server);
            let agreed = bench
                .verify(Target { server, tls: role.is_tls() })
                .with_context(|| format!("{label} does not serve the files as they are"))?;
            println!("{label:>27}: every file served right; {agreed}; {}", server.version);
        }
        Ok(())
    }

    /// A work's entries at the running servers, and their names.
    pub(crate) fn targets<'a>(&self, work: &Work, running: &'a Running) -> (Vec<Target<'a>>, Vec<String>) {
        let present = work.entries.iter().filter_map(|entry| {
            let server = running.server(entry.role)?;
            let label = self.label(entry.role, server);
            let label = match entry.load {
                Load::Slow { connections } => format!("{label} × {connections}"),
                _ => label,
            };
            Some((Target { server, tls: entry.role.is_tls() }, label))
        });
        present.unzip()
    }

    fn label(&self, role: Role, server: &RunningServer) -> String {
        if role.is_tls() { server.name.clone() } else { format!("{} plain", server.name) }
    }
}

impl Running {
    fn server(&self, role: Role) -> Option<&RunningServer> {
        match role {
            Role::Linerate | Role::LineratePlain => self.linerate.as_ref(),
            Role::NginxHost | Role::NginxPlain => self.host.as_ref(),
            Role::Nginx13 => self.thirteen.as_ref(),
        }
    }
}
