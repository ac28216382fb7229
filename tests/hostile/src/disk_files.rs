//! The files that [`SlowDisk`](crate::SlowDisk) shows: those of another folder, read-only, answered for the kernel.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use fuser::{
    Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, Request,
};

use crate::disk::Rules;

/// Nothing about a file is kept by the kernel: what changes in the folder is seen at once.
const KEPT: Duration = Duration::ZERO;

/// The file system.
pub(crate) struct Mirror {
    folder: PathBuf,
    rules: Arc<Rules>,
    /// Paths relative to the folder; a file's number is its place here and one more. The folder itself is the first.
    places: Mutex<Vec<PathBuf>>,
    open: Mutex<HashMap<u64, (String, Arc<File>)>>,
    next_handle: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(error: &io::Error) -> Errno {
    Errno::from_i32(error.raw_os_error().unwrap_or(Errno::EIO.code()))
}

impl Mirror {
    pub(crate) fn new(folder: PathBuf, rules: Arc<Rules>) -> Self {
        Self {
            folder,
            rules,
            places: Mutex::new(vec![PathBuf::new()]),
            open: Mutex::default(),
            next_handle: AtomicU64::new(1),
        }
    }

    fn place(&self, inode: INodeNo) -> io::Result<PathBuf> {
        let index = usize::try_from(inode.0).unwrap_or(0).wrapping_sub(1);
        locked(&self.places).get(index).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The number of a path, a new one for a new path.
    fn numbered(&self, place: PathBuf) -> u64 {
        let mut places = locked(&self.places);
        let index = places.iter().position(|known| *known == place).unwrap_or_else(|| {
            places.push(place);
            places.len() - 1
        });
        index as u64 + 1
    }

    fn look_up(&self, parent: INodeNo, name: &OsStr) -> io::Result<fuser::FileAttr> {
        let place = self.place(parent)?.join(name);
        let metadata = fs::metadata(self.folder.join(&place))?;
        Ok(attributes(self.numbered(place), &metadata))
    }

    /// Of an open file what is open counts, not what has its name now.
    fn attributes(&self, inode: INodeNo, handle: Option<FileHandle>) -> io::Result<fuser::FileAttr> {
        let open = handle.and_then(|handle| locked(&self.open).get(&handle.0).cloned());
        let metadata = match open {
            Some((_, file)) => file.metadata()?,
            None => fs::metadata(self.folder.join(self.place(inode)?))?,
        };
        Ok(attributes(inode.0, &metadata))
    }

    fn open_file(&self, inode: INodeNo) -> io::Result<FileHandle> {
        let place = self.place(inode)?;
        let file = File::open(self.folder.join(&place))?;
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        locked(&self.open).insert(handle, (place.to_string_lossy().into_owned(), Arc::new(file)));
        Ok(FileHandle(handle))
    }

    fn entries(&self, inode: INodeNo) -> io::Result<Vec<(u64, FileType, std::ffi::OsString)>> {
        let place = self.place(inode)?;
        let mut entries =
            vec![(inode.0, FileType::Directory, ".".into()), (1, FileType::Directory, "..".into())];
        for entry in fs::read_dir(self.folder.join(&place))? {
            let entry = entry?;
            let kind = if entry.file_type()?.is_dir() { FileType::Directory } else { FileType::RegularFile };
            entries.push((self.numbered(place.join(entry.file_name())), kind, entry.file_name()));
        }
        Ok(entries)
    }
}

impl Filesystem for Mirror {
    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.look_up(parent, name) {
            Ok(attributes) => reply.entry(&KEPT, &attributes, Generation(0)),
            Err(error) => reply.error(number(&error)),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode, handle) {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(number(&error)),
        }
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.open_file(inode) {
            Ok(handle) => reply.opened(handle, FopenFlags::empty()),
            Err(error) => reply.error(number(&error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some((name, file)) = locked(&self.open).get(&handle.0).cloned() else {
            return reply.error(Errno::EBADF);
        };
        let bytes = offset..offset + u64::from(size);
        self.rules.read(&name, &file, bytes, move |read| match read {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(number(&error)),
        });
    }

    fn release(
        &self,
        _request: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        locked(&self.open).remove(&handle.0);
        reply.ok();
    }

    fn readdir(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = match self.entries(inode) {
            Ok(entries) => entries,
            Err(error) => return reply.error(number(&error)),
        };
        let after = usize::try_from(offset).unwrap_or(usize::MAX);
        for (index, (number, kind, name)) in entries.into_iter().enumerate().skip(after) {
            if reply.add(INodeNo(number), index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// A file's attributes as FUSE wants them.
fn attributes(number: u64, metadata: &fs::Metadata) -> fuser::FileAttr {
    let time = |seconds: i64, nanoseconds: i64| {
        let since = Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
        UNIX_EPOCH + since
    };
    let is_folder = metadata.is_dir();
    fuser::FileAttr {
        ino: fuser::INodeNo(number),
        size: metadata.len(),
        blocks: metadata.blocks(),
        atime: time(metadata.atime(), metadata.atime_nsec()),
        mtime: time(metadata.mtime(), metadata.mtime_nsec()),
        ctime: time(metadata.ctime(), metadata.ctime_nsec()),
        crtime: UNIX_EPOCH,
        kind: if is_folder { fuser::FileType::Directory } else { fuser::FileType::RegularFile },
        perm: if is_folder { 0o555 } else { 0o444 },
        nlink: if is_folder { 2 } else { 1 },
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}
