//! What is compared: a way of sending, by I/O size.

use serde::{Deserialize, Serialize};

/// I/O sizes of the table, in bytes.
pub(crate) const IO_SIZES_BYTES: [u32; 6] = [1 << 10, 2 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10];

/// What carries the bytes of a stream, and how they get into the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Row {
    /// In the clear, copied into the socket.
    Plain,
    /// In the clear, lent to the kernel.
    PlainLent,
    /// In the clear, from the page cache.
    PlainFile,
    /// Records of the user engine, copied.
    User,
    /// Records of the user engine, lent.
    UserLent,
    /// Kernel TLS in software, from memory.
    Kernel,
    /// The same from the page cache.
    KernelFile,
    /// The adapter encrypts, from memory.
    Nic,
    /// The same from the page cache.
    NicFile,
}

impl Row {
    /// Those that an adapter carries that does not encrypt.
    pub(super) const WIRE: [Self; 7] = [
        Self::Plain,
        Self::PlainLent,
        Self::PlainFile,
        Self::User,
        Self::UserLent,
        Self::Kernel,
        Self::KernelFile,
    ];
    /// Those that the software adapter carries. It takes kernel TLS over, so that there is none in software.
    pub(super) const SOFTWARE_ADAPTER: [Self; 4] = [Self::Plain, Self::User, Self::Nic, Self::NicFile];

    /// Its name in the table.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::PlainLent => "plain, `--zero-copy-send`",
            Self::PlainFile => "plain, `--sendfile`",
            Self::User => "user engine",
            Self::UserLent => "user engine, `--zero-copy-send`",
            Self::Kernel => "kernel engine",
            Self::KernelFile => "kernel engine, `--sendfile`",
            Self::Nic => "nic engine",
            Self::NicFile => "nic engine, `--sendfile`",
        }
    }

    /// What `--engine` is.
    pub(super) fn engine(self) -> &'static str {
        match self {
            Self::Plain | Self::PlainLent | Self::PlainFile => "plain",
            Self::User | Self::UserLent => "user",
            Self::Kernel | Self::KernelFile => "kernel",
            Self::Nic | Self::NicFile => "nic",
        }
    }

    /// Whether memory is lent to the kernel.
    pub(super) fn lends(self) -> bool {
        matches!(self, Self::PlainLent | Self::UserLent)
    }

    /// Whether a file is sent from the page cache.
    pub(super) fn sends_file(self) -> bool {
        matches!(self, Self::PlainFile | Self::KernelFile | Self::NicFile)
    }

    /// The same with a copy, which this one is to be held against.
    pub(super) fn copying(self) -> Option<Self> {
        match self {
            Self::PlainLent | Self::PlainFile => Some(Self::Plain),
            Self::UserLent => Some(Self::User),
            Self::KernelFile => Some(Self::Kernel),
            Self::NicFile => Some(Self::Nic),
            Self::Plain | Self::User | Self::Kernel | Self::Nic => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_spares_a_copy_is_held_against_what_makes_it_on_the_same_engine() {
        for row in Row::WIRE.into_iter().chain(Row::SOFTWARE_ADAPTER) {
            let spares = row.lends() || row.sends_file();
            assert_eq!(row.copying().is_some(), spares, "{row:?}");
            assert!(row.copying().is_none_or(|copying| copying.engine() == row.engine()), "{row:?}");
        }
    }
}
