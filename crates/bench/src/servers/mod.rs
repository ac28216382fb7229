//! The servers under test: which there are, whether one can be run here, and how it is started.
//!
//! All get the same: one document root, the server's cores, the same certificate, no access log, as many workers as
//! cores, and limits that no experiment meets. Whatever else they do is their own default, and the configuration that
//! they were started with is kept in the result.

mod caddy;
pub(crate) mod debian13;
mod h2o;
mod linerate;
mod nginx;
mod own;
pub mod process;
mod system;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::certificate::Certificate;
use crate::definition::{OwnServer, Workload};
pub(crate) use system::{find_program, not_installed};

/// The servers that need no description in an experiment's file.
pub(crate) const BUILT_IN: &[&str] = &[
    "linerate user",
    "linerate kernel",
    "linerate nic",
    "linerate auto",
    "linerate plaintext",
    "nginx tls",
    "nginx ktls",
    "nginx plaintext",
    "nginx-13 tls",
    "nginx-13 ktls",
    "nginx-13 plaintext",
    "caddy tls",
    "caddy plaintext",
    "h2o tls",
    "h2o plaintext",
];

/// A server that is to be measured.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name in results.
    pub name: String,
    kind: Kind,
    /// What its description changes.
    own: OwnServer,
    programs: Programs,
}

/// Where those programs are that are not looked for.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `linerate`.
    pub linerate: PathBuf,
    /// The Debian 13 tree; `linerate bench setup` makes one.
    pub debian13: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linerate(Mode),
    Nginx(Mode),
    /// That of Debian 13, with OpenSSL 3.5.
    Nginx13(Mode),
    Caddy(Mode),
    H2o(Mode),
    /// Any command.
    Own,
}

/// What carries the bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plaintext,
    /// TLS in user space.
    User,
    /// TLS in the kernel.
    Kernel,
    /// TLS in the network adapter.
    Nic,
    /// What the server decides by itself, connection by connection.
    Auto,
}

/// What every server is told alike.
#[derive(Debug)]
pub struct Place<'a> {
    /// Where it is to listen.
    pub address: SocketAddr,
    /// The document root.
    pub root: &'a Path,
    /// The certificate.
    pub certificate: &'a Certificate,
    /// Its cores.
    pub cores: &'a [usize],
    /// A folder of its own, for its configuration and whatever it writes.
    pub folder: &'a Path,
    /// The load that it will meet.
    pub workload: &'a Workload,
}

/// How a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its configuration, to be written to this file first.
    pub configuration: Option<(PathBuf, String)>,
}

impl Launch {
    /// `program` with the arguments that `arguments` makes of its configuration's path: the file `name` in the server's
    /// folder, with `text` in it.
    fn configured(
        mut program: Vec<String>,
        place: &Place<'_>,
        (name, text): (&str, String),
        arguments: impl FnOnce(&str) -> Vec<String>,
    ) -> Self {
        let path = place.folder.join(name);
        program.extend(arguments(&path.to_string_lossy()));
        Self { command: program, configuration: Some((path, text)) }
    }
}

impl Candidate {
    /// The server `name` of an experiment. Of a definition that was checked there is one.
    #[must_use]
    pub fn new(name: &str, own_servers: &[OwnServer], programs: &Programs) -> Option<Self> {
        let own = own_servers.iter().find(|own| own.name == name);
        let kind = match own {
            Some(OwnServer { like: None, .. }) => Kind::Own,
            Some(OwnServer { like: Some(like), .. }) => Kind::of(like)?,
            None => Kind::of(name)?,
        };
        let own = own.cloned().unwrap_or_default();
        Some(Self { name: name.to_owned(), kind, own, programs: programs.clone() })
    }

    /// Whether it speaks plaintext.
    pub(crate) fn is_plaintext(&self) -> bool {
        match self.kind {
            Kind::Linerate(mode)
            | Kind::Nginx(mode)
            | Kind::Nginx13(mode)
            | Kind::Caddy(mode)
            | Kind::H2o(mode) => mode == Mode::Plaintext,
            Kind::Own => self.own.plaintext,
        }
    }

    /// What it calls itself, with the version.
    ///
    /// # Errors
    /// Why it cannot be run here, and what to do about it.
    pub fn probe(&self) -> Result<String, String> {
        match self.kind {
            Kind::Linerate(mode) => linerate::probe(&self.program("")?, mode),
            Kind::Nginx(mode) => nginx::probe(&self.program("nginx")?, mode),
            Kind::Nginx13(mode) => nginx::probe(&self.nginx13()?, mode),
            Kind::Caddy(_) => caddy::probe(&self.program("caddy")?),
            Kind::H2o(_) => h2o::probe(&self.program("h2o")?),
            Kind::Own => own::probe(&self.own),
        }
    }

    /// Why it cannot meet this load, if it cannot. `version` is what [`Candidate::probe`] said.
    pub(crate) fn refusal(&self, version: &str, workload: &Workload) -> Option<String> {
        match self.kind {
            Kind::Linerate(mode) if mode != Mode::Plaintext => linerate::refusal(workload),
            Kind::Nginx(mode) | Kind::Nginx13(mode) if mode != Mode::Plaintext => {
                nginx::refusal(version, workload)
            }
            Kind::Caddy(Mode::User) => caddy::refusal(workload),
            Kind::H2o(Mode::User) => h2o::refusal(workload),
            _ => None,
        }
    }

    /// How it is started at `place`.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn launch(&self, place: &Place<'_>) -> Result<Launch, String> {
        let added = self.own.configuration.as_deref().unwrap_or_default();
        let mut launch = match self.kind {
            Kind::Linerate(mode) => linerate::launch(self.program("")?, mode, place, added),
            Kind::Nginx(mode) => nginx::launch(self.program("nginx")?, mode, place, added),
            Kind::Nginx13(mode) => nginx::launch(self.nginx13()?, mode, place, added),
            Kind::Caddy(mode) => caddy::launch(self.program("caddy")?, mode, place),
            Kind::H2o(mode) => h2o::launch(self.program("h2o")?, mode, place),
            Kind::Own => return own::launch(&self.own, &self.programs.linerate, place),
        };
        launch
            .command
            .extend(self.own.arguments.iter().map(|text| own::filled(text, &self.programs.linerate, place)));
        Ok(launch)
    }

    /// The port that it has to listen on, where it cannot be told one.
    pub(crate) fn fixed_port(&self) -> Option<u16> {
        self.own.port
    }

    /// The certificate that clients are to trust, where it is not the run's own.
    pub(crate) fn ca(&self) -> Option<PathBuf> {
        self.own.ca.as_ref().map(PathBuf::from)
    }

    /// The program and the arguments that come before all others: its description's, else `name` of this machine, else
    /// (without a name) this program.
    fn program(&self, name: &str) -> Result<Vec<String>, String> {
        if !self.own.program.is_empty() {
            return Ok(self.own.program.clone());
        }
        if name.is_empty() {
            return Ok(vec![self.programs.linerate.to_string_lossy().into_owned()]);
        }
        let found = find_program(name);
        found.map(|path| vec![path.to_string_lossy().into_owned()]).ok_or_else(|| not_installed(name))
    }

    /// nginx of the Debian 13 tree, unless the description names another.
    fn nginx13(&self) -> Result<Vec<String>, String> {
        if self.own.program.is_empty() {
            return debian13::nginx(&self.programs.debian13);
        }
        Ok(self.own.program.clone())
    }
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        let (product, mode) = name.split_once(' ')?;
        let mode = match mode {
            "plaintext" => Mode::Plaintext,
            "user" | "tls" => Mode::User,
            "kernel" | "ktls" => Mode::Kernel,
            "nic" => Mode::Nic,
            "auto" => Mode::Auto,
            _ => return None,
        };
        match product {
            "linerate" => Some(Self::Linerate(mode)),
            _ if matches!(mode, Mode::Nic | Mode::Auto) => None,
            "nginx" => Some(Self::Nginx(mode)),
            "nginx-13" => Some(Self::Nginx13(mode)),
            "caddy" => Some(Self::Caddy(mode)),
            "h2o" => Some(Self::H2o(mode)),
            _ => None,
        }
    }
}

/// Whether a description may add to the configuration of the built-in server `like`.
pub(crate) fn takes_configuration(like: &str) -> bool {
    matches!(Kind::of(like), Some(Kind::Linerate(_) | Kind::Nginx(_) | Kind::Nginx13(_)))
}

/// Why a server that lets nobody choose its records' size cannot meet a load that does.
fn no_choice_of_records(server: &str, workload: &Workload) -> Option<String> {
    workload.record_bytes.map(|_| format!("{server} chooses the size of records by itself"))
}

/// The group of a load, where it is a post-quantum one.
fn post_quantum_group(workload: &Workload) -> Option<&str> {
    workload.group.as_deref().filter(|group| group.contains("MLKEM"))
}

impl Place<'_> {
    fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    fn port(&self) -> u16 {
        self.address.port()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{CertificateKind, Definition};

    fn programs() -> Programs {
        Programs { linerate: "/bin/linerate".into(), debian13: "/nowhere/debian-13".into() }
    }

    /// A place of a test: what configurations are made for.
    pub(super) fn with_place<T>(workload: &Workload, test: impl FnOnce(&Place<'_>) -> T) -> T {
        let certificate = Certificate { chain: "/run/ecdsa.pem".into(), key: "/run/ecdsa.key".into() };
        test(&Place {
            address: ([127, 0, 0, 1], 4433).into(),
            root: Path::new("/files"),
            certificate: &certificate,
            cores: &[0, 1],
            folder: Path::new("/run/server"),
            workload,
        })
    }

    #[test]
    fn every_built_in_server_is_one_and_knows_whether_it_is_plaintext() {
        for name in BUILT_IN {
            let candidate = Candidate::new(name, &[], &programs()).unwrap();
            assert_eq!(candidate.is_plaintext(), name.ends_with("plaintext"), "{name}");
        }
        assert!(Candidate::new("nginx quic", &[], &programs()).is_none());
    }

    #[test]
    fn a_description_changes_a_built_in_server() {
        let own = OwnServer {
            name: "nginx of mine".to_owned(),
            like: Some("nginx plaintext".to_owned()),
            program: vec!["/opt/ld.so".to_owned(), "/opt/nginx".to_owned()],
            arguments: vec!["-g".to_owned(), "# {port}".to_owned()],
            ..OwnServer::default()
        };
        let candidate = Candidate::new("nginx of mine", &[own], &programs()).unwrap();
        assert!(candidate.is_plaintext());
        let launch = with_place(&Workload::default(), |place| candidate.launch(place)).unwrap();
        assert_eq!(launch.command[..2], ["/opt/ld.so", "/opt/nginx"]);
        assert_eq!(launch.command.last().unwrap(), "# 4433");
    }

    #[test]
    fn both_kinds_of_certificate_are_made_for_the_address() {
        let folder = tempfile::tempdir().unwrap();
        for kind in [CertificateKind::Ecdsa, CertificateKind::Rsa] {
            let made = Certificate::make(folder.path(), kind, &[[127, 0, 0, 1].into()]).unwrap();
            assert!(std::fs::read_to_string(&made.chain).unwrap().contains("BEGIN CERTIFICATE"));
            assert!(std::fs::read_to_string(&made.key).unwrap().contains("PRIVATE KEY"));
        }
    }

    #[test]
    fn experiments_name_servers_that_there_are() {
        for (name, text) in crate::definition::catalogue::EXPERIMENTS {
            let definition = Definition::parse(name, text, false).unwrap();
            for server in &definition.servers {
                assert!(Candidate::new(server, &definition.own_servers, &programs()).is_some());
            }
        }
    }
}
