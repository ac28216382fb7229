//! `getdirentries(2)`, whose entries have a cookie each since FreeBSD 12 (`d_off`, sys/dirent.h).

use rustix::{fs::FileType, io::Errno};
use std::{
    ffi::CStr,
    io,
    mem::{self, MaybeUninit},
    os::fd::{AsFd, AsRawFd},
    ptr,
};

/// Entries of a directory from where its descriptor stands, read into memory that is lent.
#[derive(Debug)]
pub struct Entries<'buffer, Directory> {
    directory: Directory,
    buffer: &'buffer mut [MaybeUninit<u8>],
    filled_bytes: usize,
    position: usize,
}

/// One entry.
#[derive(Debug)]
pub struct Entry<'a> {
    name: &'a CStr,
    inode: u64,
    kind: FileType,
    cookie: u64,
}

impl<'buffer, Directory: AsFd> Entries<'buffer, Directory> {
    /// `buffer` should have room for some hundred entries.
    pub fn new(directory: Directory, buffer: &'buffer mut [MaybeUninit<u8>]) -> Self {
        Self { directory, buffer, filled_bytes: 0, position: 0 }
    }

    /// The next entry; `None` behind the last.
    ///
    /// # Errors
    /// The kernel's.
    #[allow(clippy::should_implement_trait, reason = "it lends, which an iterator cannot")]
    pub fn next(&mut self) -> Option<Result<Entry<'_>, Errno>> {
        if self.position >= self.filled_bytes {
            match self.read() {
                Ok(0) => return None,
                Ok(bytes) => (self.filled_bytes, self.position) = (bytes, 0),
                Err(errno) => return Some(Err(errno)),
            }
        }
        let filled = self.buffer.get(self.position..self.filled_bytes)?;
        // SAFETY: the kernel has written these bytes.
        let filled = unsafe { &*(ptr::from_ref(filled) as *const [u8]) };
        let Some((entry, length_bytes)) = parse(filled) else { return Some(Err(Errno::IO)) };
        self.position += length_bytes;
        Some(Ok(entry))
    }

    fn read(&mut self) -> Result<usize, Errno> {
        // SAFETY: the kernel writes no more than the buffer has room for; it is told no place for the position, which it need not
        // tell.
        let bytes = unsafe {
            getdirentries(
                self.directory.as_fd().as_raw_fd(),
                self.buffer.as_mut_ptr().cast(),
                self.buffer.len(),
                ptr::null_mut(),
            )
        };
        usize::try_from(bytes)
            .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

unsafe extern "C" {
    fn getdirentries(
        descriptor: libc::c_int,
        buffer: *mut libc::c_char,
        bytes: libc::size_t,
        base: *mut libc::off_t,
    ) -> libc::ssize_t;
}

impl Entry<'_> {
    /// Its name.
    #[must_use]
    pub fn file_name(&self) -> &CStr {
        self.name
    }

    /// Its inode number.
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.inode
    }

    /// What it is, where the file system tells.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.kind
    }

    /// Where the next entry begins.
    #[must_use]
    pub fn next_entry_cookie(&self) -> u64 {
        self.cookie
    }
}

/// `struct dirent`: inode, cookie, its length, kind, padding, the length of the name, padding, the name. The first of `bytes`, and
/// its length.
fn parse(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    const NAME: usize = 24;
    let number = |place: usize| Some(u64::from_ne_bytes(*bytes.get(place..)?.first_chunk()?));
    let short = |place: usize| Some(usize::from(u16::from_ne_bytes(*bytes.get(place..)?.first_chunk()?)));
    let (length_bytes, name_bytes) = (short(16)?, short(20)?);
    let name = bytes.get(NAME..length_bytes)?.get(..=name_bytes)?;
    let entry = Entry {
        name: CStr::from_bytes_until_nul(name).ok()?,
        inode: number(0)?,
        cookie: number(mem::size_of::<u64>())?,
        kind: match *bytes.get(18)? {
            libc::DT_FIFO => FileType::Fifo,
            libc::DT_CHR => FileType::CharacterDevice,
            libc::DT_DIR => FileType::Directory,
            libc::DT_BLK => FileType::BlockDevice,
            libc::DT_REG => FileType::RegularFile,
            libc::DT_LNK => FileType::Symlink,
            libc::DT_SOCK => FileType::Socket,
            _ => FileType::Unknown,
        },
    };
    Some((entry, length_bytes))
}
