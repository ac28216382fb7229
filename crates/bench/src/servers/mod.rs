//! The servers under test: which there are, whether one can be run here, and how it is started.
//!
//! All get the same: one document root, the server's cores, the same certificate, no access log, as many workers as
//! cores, and limits that no experiment meets. Whatever else they do is their own default, and the configuration that
//! they were started with is kept in the result.

mod caddy;
pub(crate) mod debian13;
mod h2o;
mod knfsd;
mod linerate;
mod linerate_nfs;
mod nginx;
mod own;
pub mod process;
mod system;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use linerate_suite::Version;

use crate::certificate::Certificate;
use crate::definition::{Handshake, LoadProgram, OwnServer, ReadOrder, Workload};
use crate::network::{Esp, NetworkKind};
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
    "linerate-nfs user",
    "linerate-nfs kernel",
    "linerate-nfs nic",
    "linerate-nfs auto",
    "linerate-nfs plaintext",
    "knfsd tls",
    "knfsd mtls",
    "knfsd plaintext",
    "linerate esp-transport",
    "linerate esp-tunnel",
    "nginx esp-transport",
    "nginx esp-tunnel",
    "linerate-nfs esp-transport",
    "linerate-nfs esp-tunnel",
    "knfsd esp-transport",
    "knfsd esp-tunnel",
];

/// A server that is to be measured.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its name in results.
    pub name: String,
    kind: Kind,
    /// What seals all that it sends, beneath it.
    esp: Option<Esp>,
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
    LinerateNfs(Mode),
    /// The kernel's NFS server.
    Knfsd(knfsd::Security),
    /// Any command.
    Own,
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http,
    /// NFS 4.2.
    Nfs,
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
    /// What the kernel's threads are called that serve in its stead.
    pub kernel_threads: Option<&'static str>,
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
        Self { command: program, configuration: Some((path, text)), kernel_threads: None }
    }
}

impl Candidate {
    /// The server `name` of an experiment. Of a definition that was checked there is one.
    #[must_use]
    pub fn new(name: &str, own_servers: &[OwnServer], programs: &Programs) -> Option<Self> {
        let own = own_servers.iter().find(|own| own.name == name);
        let (kind, esp) = match own {
            Some(OwnServer { like: None, .. }) => (Kind::Own, None),
            Some(OwnServer { like: Some(like), .. }) => Kind::of(like)?,
            None => Kind::of(name)?,
        };
        let own = own.cloned().unwrap_or_default();
        Some(Self { name: name.to_owned(), kind, esp, own, programs: programs.clone() })
    }

    /// Whether what it sends goes over the network in the clear.
    pub(crate) fn is_plaintext(&self) -> bool {
        self.has_no_tls() && self.esp.is_none()
    }

    /// Whether it has no TLS: clients ask it in the clear.
    pub(crate) fn has_no_tls(&self) -> bool {
        match self.kind {
            Kind::Linerate(mode)
            | Kind::Nginx(mode)
            | Kind::Nginx13(mode)
            | Kind::Caddy(mode)
            | Kind::H2o(mode)
            | Kind::LinerateNfs(mode) => mode == Mode::Plaintext,
            Kind::Knfsd(security) => security == knfsd::Security::Plaintext,
            Kind::Own => self.own.plaintext,
        }
    }

    /// What seals all that it sends, beneath it.
    pub(crate) fn esp(&self) -> Option<Esp> {
        self.esp
    }

    /// Whether no other of its kind can be in its network namespace.
    pub(crate) fn is_alone_in_its_network(&self) -> bool {
        matches!(self.kind, Kind::Knfsd(_))
    }

    /// What it speaks.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.kind {
            Kind::LinerateNfs(_) | Kind::Knfsd(_) => Protocol::Nfs,
            _ => Protocol::Http,
        }
    }

    /// Whether its clients have to show a certificate.
    pub(crate) fn asks_clients_for_certificates(&self) -> bool {
        self.kind == Kind::Knfsd(knfsd::Security::MutualTls)
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
            Kind::LinerateNfs(mode) => linerate::probe(&self.program("")?, mode),
            Kind::Knfsd(security) => knfsd::probe(security),
            Kind::Own => own::probe(&self.own),
        }
    }

    /// Why it cannot meet this load, if it cannot. `version` is what [`Candidate::probe`] said.
    pub(crate) fn refusal(&self, version: &str, workload: &Workload) -> Option<String> {
        if self.esp.is_some() && !matches!(workload.network, NetworkKind::Veth { .. }) {
            return Some(
                "ESP goes between network namespaces: --set network=veth, or veth-9000 for an MTU of 9000"
                    .to_owned(),
            );
        }
        let lacking = match self.protocol() {
            Protocol::Http => no_such_thing_in_http(workload),
            Protocol::Nfs => no_such_thing_in_nfs(workload),
        };
        if lacking.is_some() {
            return lacking;
        }
        match self.kind {
            Kind::Linerate(mode) if mode != Mode::Plaintext => linerate::refusal(workload),
            Kind::Nginx(mode) | Kind::Nginx13(mode) if mode != Mode::Plaintext => {
                nginx::refusal(version, workload)
            }
            Kind::Caddy(Mode::User) => caddy::refusal(workload),
            Kind::H2o(Mode::User) => h2o::refusal(workload),
            Kind::Knfsd(_) => knfsd::refusal(workload),
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
            Kind::LinerateNfs(mode) => linerate_nfs::launch(self.program("")?, mode, place, added),
            Kind::Knfsd(security) => knfsd::launch(security, place),
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
    /// The server of this name, and what seals beneath it.
    fn of(name: &str) -> Option<(Self, Option<Esp>)> {
        let (product, mode) = name.split_once(' ')?;
        let (mode, esp) = match mode {
            "esp-transport" => ("plaintext", Some(Esp::Transport)),
            "esp-tunnel" => ("plaintext", Some(Esp::Tunnel)),
            mode => (mode, None),
        };
        let kind = match (product, mode) {
            ("knfsd", mode) => Self::Knfsd(knfsd::Security::named(mode)?),
            ("linerate", mode) => Self::Linerate(Mode::named(mode)?),
            ("linerate-nfs", mode) => Self::LinerateNfs(Mode::named(mode)?),
            (_, "nic" | "auto") => return None,
            ("nginx", mode) => Self::Nginx(Mode::named(mode)?),
            ("nginx-13", mode) => Self::Nginx13(Mode::named(mode)?),
            ("caddy", mode) => Self::Caddy(Mode::named(mode)?),
            ("h2o", mode) => Self::H2o(Mode::named(mode)?),
            _ => return None,
        };
        Some((kind, esp))
    }
}

impl Mode {
    fn named(name: &str) -> Option<Self> {
        match name {
            "plaintext" => Some(Self::Plaintext),
            "user" | "tls" => Some(Self::User),
            "kernel" | "ktls" => Some(Self::Kernel),
            "nic" => Some(Self::Nic),
            "auto" => Some(Self::Auto),
            _ => None,
        }
    }
}

/// Whether a description may add to the configuration of the built-in server `like`.
pub(crate) fn takes_configuration(like: &str) -> bool {
    let kind = Kind::of(like).map(|(kind, _)| kind);
    matches!(kind, Some(Kind::Linerate(_) | Kind::LinerateNfs(_) | Kind::Nginx(_) | Kind::Nginx13(_)))
}

/// Why HTTP cannot meet a load, if it cannot.
fn no_such_thing_in_http(workload: &Workload) -> Option<String> {
    if workload.client == LoadProgram::Fio {
        return Some("client fio: it reads through a mount, which HTTP has not".to_owned());
    }
    if workload.order == Some(ReadOrder::Sequential) {
        return Some(
            "order = \"sequential\": HTTP sends a file as one response; \"random\" asks for ranges"
                .to_owned(),
        );
    }
    (workload.depth > 1)
        .then(|| "depth: one request at a time is under way on a connection of HTTP/1.1".to_owned())
}

/// Why NFS cannot meet a load, if it cannot.
fn no_such_thing_in_nfs(workload: &Workload) -> Option<String> {
    let has_none = [
        ("range_bytes (read_bytes and order say what is read)", workload.range_bytes.is_some()),
        ("close", workload.close),
        ("idle", workload.idle),
        ("handshake = \"resumed\"", workload.handshake == Handshake::Resumed),
        ("requests_per_connection_s", workload.requests_per_connection_s.is_some()),
        ("tls = \"1.2\"", workload.tls == Version::Tls12),
        ("client = \"wrk\"", workload.client == LoadProgram::Wrk),
    ];
    let (name, _) = has_none.into_iter().find(|(_, is_asked_for)| *is_asked_for)?;
    Some(format!("NFS has no {name}"))
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

    /// Has linerate read a configuration for two cores.
    pub(super) fn is_taken(configuration: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("linerate.toml");
        std::fs::write(&path, configuration).unwrap();
        let source = linerate_config::Source { file: Some(path), ..Default::default() };
        let settings = source.load().unwrap_or_else(|error| panic!("{error}\n{configuration}"));
        assert_eq!(settings.workers.map(std::num::NonZeroUsize::get), Some(2), "{configuration}");
    }

    #[test]
    fn every_built_in_server_is_one_and_knows_whether_it_is_plaintext() {
        for name in BUILT_IN {
            let candidate = Candidate::new(name, &[], &programs()).unwrap();
            assert_eq!(candidate.is_plaintext(), name.ends_with("plaintext"), "{name}");
            assert_eq!(candidate.esp().is_some(), name.contains("esp-"), "{name}");
            assert_eq!(
                candidate.has_no_tls(),
                candidate.is_plaintext() || candidate.esp().is_some(),
                "{name}"
            );
            assert_eq!(candidate.protocol() == Protocol::Nfs, name.contains("nfs"), "{name}");
        }
        assert!(Candidate::new("nginx quic", &[], &programs()).is_none());
    }

    #[test]
    fn what_a_network_or_a_protocol_has_not_is_said() {
        let refused = |name: &str, workload: &Workload| {
            Candidate::new(name, &[], &programs()).unwrap().refusal("", workload)
        };
        let veth = Workload { network: NetworkKind::VETH, ..Workload::default() };
        assert_eq!(refused("linerate esp-tunnel", &veth), None);
        let reason = refused("linerate esp-tunnel", &Workload::default()).unwrap();
        assert!(reason.contains("--set network=veth"), "{reason}");
        assert_eq!(refused("linerate-nfs user", &Workload::default()), None);
        let ranges = Workload { range_bytes: Some(1), ..Workload::default() };
        assert!(refused("linerate-nfs user", &ranges).unwrap().contains("read_bytes"));
        let reason = refused("knfsd tls", &Workload::default()).unwrap();
        assert!(reason.contains("exports"), "{reason}");
        assert_eq!(refused("knfsd tls", &veth), None);
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
