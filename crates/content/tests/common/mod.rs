//! A directory to serve, and short ways to ask for things in it.

// Each test file uses a part of these.
#![allow(dead_code)]

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linerate_content::{Blocking, Content, ContentError, Found, Policy, Refusal, Resolver, Root};
use linerate_http::{AcceptedCodings, DecodedPath, MediaTypes};
use tempfile::TempDir;

pub(crate) const RESOLVERS: [Resolver; 2] = [Resolver::Kernel { cached: true }, Resolver::ByHand];

/// `outside/` with a secret, and beside it `root/`, which is served.
pub(crate) struct Site {
    directory: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        let site = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(site.root_path()).unwrap();
        fs::create_dir(site.directory.path().join("outside")).unwrap();
        fs::write(site.directory.path().join("outside/secret.txt"), "secret").unwrap();
        site
    }

    pub(crate) fn root_path(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root_path().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, relative: &str) {
        std::os::unix::fs::symlink(target, self.path(relative)).unwrap();
    }

    pub(crate) fn open(&self, policy: Policy) -> Root {
        Root::open(self.root_path(), policy, Arc::new(MediaTypes::default())).unwrap()
    }

    pub(crate) fn open_with(&self, policy: Policy, resolver: Resolver) -> Root {
        Root::open_with_resolver(self.root_path(), policy, Arc::new(MediaTypes::default()), resolver).unwrap()
    }
}

/// A path as the HTTP layer would hand it over, but without that layer's checks.
pub(crate) fn path(path: impl AsRef<Path>) -> DecodedPath<'static> {
    let bytes = path.as_ref().as_os_str().as_bytes();
    let is_directory = bytes.is_empty() || bytes.ends_with(b"/");
    let relative = bytes.strip_suffix(b"/").unwrap_or(bytes).to_vec().into();
    DecodedPath { relative, is_directory, has_dotfile: false, is_utf8: true }
}

pub(crate) fn accepted(header: &str) -> AcceptedCodings {
    AcceptedCodings::parse([header.as_bytes()])
}

pub(crate) fn lookup(root: &Root, relative: impl AsRef<Path>) -> Result<Found, ContentError> {
    root.lookup(&path(relative), &AcceptedCodings::IDENTITY_ONLY, Blocking::Allowed)
}

pub(crate) fn file(root: &Root, relative: impl AsRef<Path>) -> Content {
    let relative = relative.as_ref();
    match lookup(root, relative) {
        Ok(Found::File(content)) => content,
        other => panic!("{}: {other:?}", relative.display()),
    }
}

pub(crate) fn refusal(outcome: Result<Found, ContentError>) -> Refusal {
    match outcome {
        Err(ContentError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn bytes(content: &Content) -> Vec<u8> {
    let mut bytes = Vec::new();
    content.file().read_to_end(&mut bytes).unwrap();
    bytes
}

/// Puts a file's time of modification so far back that its tag is strong.
pub(crate) fn set_age_seconds(path: &Path, age_seconds: u64) {
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age_seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// What each outcome is called in the tables.
pub(crate) fn outcome(outcome: Result<Found, ContentError>) -> String {
    match outcome {
        Ok(Found::File(content)) => format!("file {}", String::from_utf8_lossy(&bytes(&content))),
        Ok(Found::NeedsSlash) => "needs slash".to_owned(),
        Ok(Found::Listing(_)) => "listing".to_owned(),
        Err(ContentError::Refused(refusal)) => refusal.name().to_owned(),
        Err(other) => format!("error {other}"),
    }
}
