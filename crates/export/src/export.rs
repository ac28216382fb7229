//! One directory that clients see, and the way into it that leads nowhere else (INV-EXPORT-1).

use crate::{
    ClientRule, ExportError, IdentityRule, attributes::Facts, file::descriptor_path, handle::Key,
    search::Lost,
};
use linerate_nfs::{Fault, FileSystemId, Name, Waiting};
use linerate_os::beneath::{self, Rule};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{CWD, Mode, OFlags, open, openat},
    io::Errno,
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// Attempts at a look-up that another process' rename gets in the way of.
const ATTEMPTS: u32 = 64;

/// How everything beneath an export is looked up.
const CONFINED: Rule =
    Rule { stays_beneath: true, follows_symlinks: false, crosses_mounts: false, cached_only: false };

/// What is exported, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// What clients call it, `/NAME`; empty makes it the root of all that they see. File handles hold to the name: a
    /// directory that is moved keeps its clients if its export keeps its name.
    pub name: String,
    /// The directory.
    pub directory: PathBuf,
    /// Which clients may use it.
    pub clients: ClientRule,
    /// By whom permission is judged.
    pub identity: IdentityRule,
}

/// A directory that clients see.
#[derive(Debug)]
pub struct Export {
    options: ExportOptions,
    id: u32,
    directory: OwnedFd,
    /// The file system that it is on: nothing beyond is shown.
    device: (u32, u32),
    root_inode: u64,
    /// Whether the kernel can say that a look-up would wait (`RESOLVE_CACHED`, Linux 5.12).
    tells_waiting: bool,
    /// Handles that led nowhere.
    pub(crate) lost: Mutex<Lost>,
}

impl Export {
    /// Opens the directory. It may be a symbolic link: it is the operator's.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(options: ExportOptions) -> Result<Arc<Self>, ExportError> {
        let path = || options.directory.clone();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fault = |errno| match errno {
            Errno::NOENT => ExportError::Missing { path: path() },
            Errno::NOTDIR => ExportError::NotDirectory { path: path() },
            Errno::ACCESS | Errno::PERM => ExportError::NotPermitted { path: path() },
            other => ExportError::Unusable { path: path(), source: other.into() },
        };
        let directory = open(&options.directory, flags, Mode::empty()).map_err(fault)?;
        let facts = Facts::of(&directory).map_err(fault)?;
        let look = |rule| beneath::open(&directory, ".", flags, rule).err();
        match look(CONFINED) {
            None => {}
            Some(Errno::NOSYS | Errno::PERM) => return Err(ExportError::NoConfinement { path: path() }),
            Some(other) => return Err(fault(other)),
        }
        // EAGAIN is the ordinary answer of a kernel that knows it.
        let tells_waiting = look(Rule { cached_only: true, ..CONFINED }) != Some(Errno::INVAL);
        openat(CWD, descriptor_path(directory.as_fd()).as_str(), flags, Mode::empty())
            .map_err(|errno| ExportError::NoProc(errno.into()))?;
        Ok(Arc::new(Self {
            id: number_of(&options.name),
            device: facts.file_system,
            root_inode: facts.inode,
            options,
            directory,
            tells_waiting,
            lost: Mutex::default(),
        }))
    }

    /// What clients call it; empty is the root of all that they see.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// The directory as it was named.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.options.directory
    }

    /// Which clients may use it.
    #[must_use]
    pub fn clients(&self) -> &ClientRule {
        &self.options.clients
    }

    pub(crate) fn identity(&self) -> IdentityRule {
        self.options.identity
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(crate) fn root_key(&self) -> Key {
        Key { export: self.id, inode: 0, birth: 0 }
    }

    /// The same across restarts, and another for each export.
    pub(crate) fn file_system_id(&self) -> FileSystemId {
        FileSystemId { major: u64::from(self.id) << 16 | 1, minor: u64::from(self.id) }
    }

    /// The number that the listing above has for it, or its own where there is none.
    pub(crate) fn mounted_on_number(&self) -> u64 {
        if self.options.name.is_empty() { self.root_inode } else { u64::from(self.id) << 1 | 1 << 40 }
    }

    /// The key of what `facts` say, which is not the export's root.
    pub(crate) fn key(&self, facts: &Facts) -> Key {
        facts.key(self.id)
    }

    /// Finds `path` in the directory `base`, which is the export's own or one beneath it, and opens it as what can only be
    /// described. No symbolic link is followed, and no mount point crossed (INV-EXPORT-1).
    pub(crate) fn find(
        &self,
        base: BorrowedFd<'_>,
        path: &[u8],
        waiting: Waiting,
    ) -> Result<(OwnedFd, Facts), Fault> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = self.open_confined(base, path, flags, waiting)?;
        let facts = Facts::of(&descriptor).map_err(fault_of)?;
        // A subvolume is no mount point, and has inode numbers of its own all the same.
        if facts.file_system == self.device { Ok((descriptor, facts)) } else { Err(Fault::NotFound) }
    }

    /// Describes an entry of the directory `base`, by one call where [`Export::find`] takes several, and by the same rules: a name
    /// has no way out of its directory, no symbolic link is followed, and what is mounted there is not shown (INV-EXPORT-1). `None`
    /// if the kernel does not tell mount points. It may wait.
    pub(crate) fn describe(&self, base: BorrowedFd<'_>, name: Name<'_>) -> Result<Option<Facts>, Fault> {
        let (facts, is_mount) = Facts::at(base, name).map_err(fault_of)?;
        match is_mount {
            None => Ok(None),
            Some(false) if facts.file_system == self.device => Ok(Some(facts)),
            Some(_) => Err(Fault::NotFound),
        }
    }

    /// Opens a directory to be listed. It may wait.
    pub(crate) fn open_directory(&self, base: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.open_confined(base, path, flags, Waiting::Allowed)
    }

    fn open_confined(
        &self,
        base: BorrowedFd<'_>,
        path: &[u8],
        flags: OFlags,
        waiting: Waiting,
    ) -> Result<OwnedFd, Fault> {
        let path = if path.is_empty() { b"." } else { path };
        if waiting == Waiting::Forbidden {
            if !self.tells_waiting {
                return Err(Fault::WouldWait);
            }
            return beneath::open(base, path, flags, Rule { cached_only: true, ..CONFINED })
                .map_err(|errno| if errno == Errno::AGAIN { Fault::WouldWait } else { fault_of(errno) });
        }
        for _ in 0..ATTEMPTS {
            match beneath::open(base, path, flags, CONFINED) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                found => return found.map_err(fault_of),
            }
        }
        Err(Fault::Busy)
    }
}

/// What an error of the kernel means for a look-up.
pub(crate) fn fault_of(errno: Errno) -> Fault {
    match errno {
        // A link, or a mount point, where a directory was: that is not shown.
        Errno::NOENT | Errno::LOOP | Errno::XDEV => Fault::NotFound,
        Errno::ACCESS | Errno::PERM => Fault::Denied,
        Errno::NOTDIR => Fault::NotDirectory,
        Errno::ISDIR => Fault::IsDirectory,
        Errno::NAMETOOLONG => Fault::NameTooLong,
        Errno::STALE => Fault::Stale,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => Fault::Busy,
        _ => Fault::Failed,
    }
}

/// A number for a name, never 0 (FNV-1a). Of two exports whose numbers are equal one has to be renamed.
fn number_of(name: &str) -> u32 {
    let hashed =
        name.bytes().fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hashed.max(1)
}
