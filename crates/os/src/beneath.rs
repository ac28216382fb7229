//! Opening what lies beneath a directory, and nowhere else, by the kernel's own rule.

pub use crate::system::beneath::{REFUSES_SYMLINKS, open};

/// What a look-up may do. Which of it the kernel can hold to differs: it says `ENOSYS` (or `EPERM`, where a filter stands before
/// it) to what it cannot, and `EINVAL` where it cannot tell that it would wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// No step leads out of the directory: `EXDEV` for one that would.
    pub stays_beneath: bool,
    /// Symbolic links are followed; where not, they are `ELOOP`, wherever in the path they stand.
    pub follows_symlinks: bool,
    /// Mount points are crossed; where not, they are `EXDEV`.
    pub crosses_mounts: bool,
    /// Only names in the kernel's cache: `EAGAIN` where it would have to wait for a disk.
    pub cached_only: bool,
}

impl Rule {
    /// Symbolic links and mount points may lead anywhere beneath the directory.
    pub const BENEATH: Self =
        Self { stays_beneath: true, follows_symlinks: true, crosses_mounts: true, cached_only: false };
}
