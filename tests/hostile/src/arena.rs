//! What a fault program is given: a way to start servers (or the one that runs already), files that they serve, and how
//! much of everything.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use linerate_end_to_end::{Algorithm, CertificatePair, ClientSetup, pattern};
use tempfile::TempDir;

use crate::{
    cleanup::{self, Guard, Leftover},
    server::Launcher,
};

/// The addresses that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// 127.0.0.0/8.
    V4,
    /// `::1`.
    V6,
}

impl Family {
    /// Where servers listen.
    #[must_use]
    pub fn loopback(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::LOCALHOST.into(),
            Self::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    /// Where client number `number` comes from. Of IPv4 every address of 127.0.0.0/8 can be had, so that limits for each
    /// address do not hide what a server does under many clients; of IPv6 there is one.
    #[must_use]
    pub fn source(self, number: usize) -> IpAddr {
        let [.., high, low] = (number / 4).to_be_bytes();
        match self {
            Self::V4 => Ipv4Addr::new(127, 7, high, low).into(),
            Self::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    /// Its name in reports.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// How much of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Seconds a program, for `make test`.
    Short,
    /// Minutes a program, for `make hostile`.
    Long,
}

impl Form {
    /// The one or the other.
    pub fn pick<T>(self, short: T, long: T) -> T {
        match self {
            Self::Short => short,
            Self::Long => long,
        }
    }
}

/// Files that a server serves, and where among its paths.
#[derive(Debug)]
pub struct Content {
    /// The folder with the files.
    pub folder: PathBuf,
    /// The folder that the server shows at `/`.
    pub root: PathBuf,
    /// What stands before their names in URLs, "" or with a slash at its end.
    pub prefix: String,
    _taken_away: Option<Guard>,
}

impl Content {
    /// Writes a file whose bytes follow from its name, and returns them.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&self, name: &str, length_bytes: usize) -> Result<Vec<u8>> {
        let bytes = pattern(name, length_bytes);
        let path = self.folder.join(name);
        fs::write(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(bytes)
    }
}

/// The file that well-behaved clients ask for, and its length.
pub const PROBE: (&str, usize) = ("probe.bin", 10_007);

/// What a program is given.
#[derive(Debug)]
pub struct Arena {
    /// Starts servers.
    pub launcher: Launcher,
    /// The addresses.
    pub family: Family,
    /// How much.
    pub form: Form,
    /// How long the soak lasts.
    pub soak: Duration,
    /// What servers serve if a program says nothing else.
    pub content: Content,
    /// The certificate that servers are started with.
    pub certificate: CertificatePair,
    /// TLS clients that trust it.
    pub tls: ClientSetup,
    folder: TempDir,
    _taken_away: Guard,
}

impl Arena {
    /// Makes the folder, the certificate and the first files.
    ///
    /// # Errors
    /// Something cannot be written.
    pub fn new(launcher: Launcher, family: Family, form: Form) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("linerate-hostile-").tempdir()?;
        let taken_away = cleanup::enter(Leftover::Folder(folder.path().to_owned()));
        let names = ["localhost", "127.0.0.1", "::1"];
        let certificate =
            CertificatePair::create(&folder.path().join("keys"), "first", Algorithm::Ecdsa, &names);
        let (content, tls) = match &launcher {
            Launcher::Attached(attached) => {
                let prefix = format!("linerate-hostile-{}", std::process::id());
                let content = attached.content.join(&prefix);
                fs::create_dir(&content).with_context(|| {
                    format!("{} has to be a folder that can be written to", attached.content.display())
                })?;
                let guard = cleanup::enter(Leftover::Folder(content.clone()));
                let content = Content {
                    folder: content,
                    root: attached.content.clone(),
                    prefix: format!("{prefix}/"),
                    _taken_away: Some(guard),
                };
                (content, attached.tls(&certificate)?)
            }
            _ => {
                let content = folder.path().join("content");
                fs::create_dir(&content)?;
                let content = Content {
                    folder: content.clone(),
                    root: content,
                    prefix: String::new(),
                    _taken_away: None,
                };
                (content, ClientSetup::new([&certificate]))
            }
        };
        content.add(PROBE.0, PROBE.1)?;
        let soak = form.pick(Duration::from_secs(5), Duration::from_secs(300));
        Ok(Self { launcher, family, form, soak, content, certificate, tls, folder, _taken_away: taken_away })
    }

    /// A folder for what is not served; it goes with the arena.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
