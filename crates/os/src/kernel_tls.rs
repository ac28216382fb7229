//! Kernel TLS: what Linux' `tls` module, or FreeBSD's ktls(4), is asked to do for the sending and the receiving direction of a
//! connection. The names of options and errors below are Linux'; [`freebsd`] says what differs there.
//!
//! The system calls stand behind a trait, [`Calls`], so that tests can put failures and full sockets wherever they
//! want them, on machines without the module, too. [`System`] is the kernel itself.
//!
//! Sources: `include/uapi/linux/tls.h` and `Documentation/networking/tls.rst` of Linux; the behaviour cited below is
//! that of `net/tls/tls_main.c` and `net/tls/tls_sw.c`, 6.1 to 7.2.

pub use crate::{
    freebsd::kernel_tls as freebsd,
    system::kernel_tls::{IS_A_MODULE, lacks_next_key, statistics},
};

use crate::socket::Follows;
use linerate_suite::{Cipher, Version};
use std::{fmt, fs::File, io, os::fd::BorrowedFd};

/// A key of one direction as the kernel takes it. It borrows what it is made of: no copy is left behind but the kernel's.
#[derive(Clone, Copy)]
pub struct DirectionKey<'a> {
    /// The version of the records.
    pub version: Version,
    /// The cipher.
    pub cipher: Cipher,
    /// The key; as long as the cipher wants it.
    pub key: &'a [u8],
    /// What nonces are made from. TLS 1.3 and `ChaCha20`: the vector that sequence numbers are combined with. TLS 1.2
    /// AES-GCM: four bytes of salt, then, to send with, the explicit nonce of the first record; the kernel counts it up
    /// by one for each record. Records that arrive bring theirs.
    pub vector: &'a [u8; 12],
    /// The sequence number of the first record.
    pub sequence: u64,
}

impl fmt::Debug for DirectionKey<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DirectionKey")
            .field("version", &self.version)
            .field("cipher", &self.cipher)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

/// What a kernel's TLS is like, where systems differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// Every record of a call holds at least so many bytes, but for two of them: a short one at its beginning, a rest at its end.
    pub least_record_bytes: u64,
    /// [`Calls::sequence`] is answered.
    pub tells_sequence: bool,
    /// What a call has taken may wait in the kernel before TCP has it ([`Calls::taken_bytes`]), and is lost when the socket is closed
    /// meanwhile.
    pub holds_back: bool,
    /// A connection can leave its adapter: by [`Calls::set_carrier`], or because the kernel takes it back when too much of it is lost.
    pub moves_connections: bool,
    /// An adapter reads files' pages whenever it sends, whatever [`Calls::set_zero_copy`] said.
    pub adapter_reads_files: bool,
}

impl Habits {
    /// Linux fills records to 2^14 bytes. It may end one earlier (short of memory, or where it stopped reading ahead), but no earlier
    /// than at the end of a page.
    pub const LINUX: Self = Self {
        least_record_bytes: 4096,
        tells_sequence: true,
        holds_back: true,
        moves_connections: false,
        adapter_reads_files: false,
    };
}

/// The system calls that carry a connection on kernel TLS.
pub trait Calls: Send + Sync {
    /// What this kernel is like.
    fn habits(&self) -> Habits;

    /// Attaches the `tls` module to a connected socket (`TCP_ULP`). Until a key is installed the socket goes on as it
    /// was.
    ///
    /// # Errors
    /// `ENOENT`: there is no such module, or nobody loaded it. `ENOTCONN`: the peer has closed its side already.
    fn attach(&self, socket: BorrowedFd<'_>) -> io::Result<()>;

    /// Hands the sending direction over (`TLS_TX`). From its success on everything that is written to the socket
    /// leaves as records, for good; after an error the socket goes on as it was. On a socket that has a key it
    /// installs the next one, where the kernel can (TLS 1.3, Linux 6.14).
    ///
    /// # Errors
    /// `EINVAL`: a version or cipher that this kernel does not know. `ENOENT`: it lacks the cipher. `EBUSY`: it has a
    /// key and takes no other.
    fn install(&self, socket: BorrowedFd<'_>, key: &DirectionKey<'_>) -> io::Result<()>;

    /// Hands the receiving direction over (`TLS_RX`). From its success on the socket gives opened records, beginning with
    /// the next byte that was not received yet: [`Calls::receive`] takes them. After an error the socket goes on as it was.
    /// On a socket that has a key it installs the next one, where the kernel can (TLS 1.3, Linux 6.14): behind the peer's
    /// KeyUpdate, which the kernel lets nothing pass until then.
    ///
    /// # Errors
    /// As those of [`Calls::install`].
    fn install_receiving(&self, socket: BorrowedFd<'_>, key: &DirectionKey<'_>) -> io::Result<()>;

    /// Has the kernel decrypt straight into the receiver's memory, as no TLS 1.3 record is expected to be padded
    /// (`TLS_RX_EXPECT_NO_PAD`, Linux 6.0). One that is padded, or is no application data, is decrypted twice: a peer that
    /// is not trusted can double the cost of its records.
    ///
    /// # Errors
    /// `ENOPROTOOPT`: an older kernel. `EINVAL`: TLS 1.2, which needs no such promise; receiving was not handed over.
    fn expect_no_padding(&self, socket: BorrowedFd<'_>, expected: bool) -> io::Result<()>;

    /// Takes what the kernel has opened, without waiting: application data of as many records as fit, or one record of
    /// another kind. `buffer` should hold a full record (2^14 bytes): what does not fit of a record comes with the next call.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: nothing is there. `EBADMSG`: a record does not authenticate, or is too short to be one.
    /// `EMSGSIZE`: it is longer than TLS allows. `EINVAL`: it is of another version. `EKEYEXPIRED`: the peer changed its key,
    /// and the next was not installed. Else the connection is gone. No call after one of these may be believed.
    fn receive(&self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Opened>;

    /// The sequence number of the next record that the kernel will make, by its own count.
    ///
    /// # Errors
    /// The kernel's: it holds no key for the socket, or (before Linux 5.16) does not tell for the cipher.
    fn sequence(&self, socket: BorrowedFd<'_>, version: Version, cipher: Cipher) -> io::Result<u64>;

    /// What makes the records and what opens them, once a key was installed; `None` where the kernel does not tell this
    /// process, or has no key for the direction.
    ///
    /// # Errors
    /// The kernel's: netlink is refused, or the connection is gone.
    fn carriers(&self, socket: BorrowedFd<'_>) -> io::Result<Carriers>;

    /// Moves a connection whose sending side was handed over to another carrier, where [`Habits::moves_connections`].
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where connections stay where they are. `EALREADY`: an adapter has it still. `ENXIO`: it
    /// was taken from an adapter for loss, and never gets there again. `EBUSY`: it was moved in this moment. Else the driver's.
    fn set_carrier(&self, socket: BorrowedFd<'_>, carrier: Carrier) -> io::Result<()>;

    /// The name of the interface by which a connection leaves, by the routing table ([`crate::adapter::towards`]).
    ///
    /// # Errors
    /// As there; the connection is gone.
    fn leaves_by(&self, socket: BorrowedFd<'_>) -> io::Result<String>;

    /// How many connections of this network namespace were handed to adapters, and how many stayed with the kernel, so
    /// far.
    ///
    /// # Errors
    /// As those of [`statistics`].
    fn handed_over(&self) -> io::Result<HandedOver>;

    /// Lets an adapter read file pages while it sends, instead of from a copy (`TLS_TX_ZEROCOPY_RO`, Linux 6.0), or
    /// not any more. The file must not change until the peer has all of it.
    ///
    /// # Errors
    /// `ENOPROTOOPT`: an older kernel.
    fn set_zero_copy(&self, socket: BorrowedFd<'_>, allowed: bool) -> io::Result<()>;

    /// Sends `bytes` as a record of its own with this content type (a control message, `TLS_SET_RECORD_TYPE`), behind
    /// whatever was written before. All of it is taken, or nothing.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] on a full socket: it was not taken. Else the connection is gone.
    fn send_control(&self, socket: BorrowedFd<'_>, content_type: u8, bytes: &[u8]) -> io::Result<()>;

    /// Bytes that TCP has taken of the connection since its beginning, sent or not. What waits in the `tls` module for
    /// room is not among them.
    ///
    /// # Errors
    /// The kernel's.
    fn taken_bytes(&self, socket: BorrowedFd<'_>) -> io::Result<u64>;

    /// As [`socket::send`]; the kernel makes records of it.
    ///
    /// # Errors
    /// As there.
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8], follows: Follows) -> io::Result<usize>;

    /// As [`socket::send_file`]; the kernel makes records of it.
    ///
    /// # Errors
    /// As there.
    fn send_file(
        &self,
        socket: BorrowedFd<'_>,
        file: &File,
        offset: u64,
        length_bytes: usize,
    ) -> io::Result<usize>;
}

/// What makes or opens the records of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The kernel, on the processor (`txconf: sw`, `rxconf: sw`).
    Software,
    /// The adapter (`txconf: hw`, `rxconf: hw`). Should its link go down later the kernel takes over, and this stays as it was.
    Adapter,
}

/// What carries each direction; `None` for one without a key, and where the kernel does not tell this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carriers {
    /// What makes the records that leave.
    pub sending: Option<Carrier>,
    /// What opens the records that arrive.
    pub receiving: Option<Carrier>,
    /// The kernel decrypts into the receiver's memory, as no padding is expected (`TLS_INFO_RX_NO_PAD`).
    pub expects_no_padding: bool,
}

/// What the kernel has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// So many bytes of application data are in the buffer, of any number of records; 0 of empty ones.
    Data(usize),
    /// A record of another type.
    Control {
        /// The content type (RFC 8446 5.1): 21 is an alert, 22 a handshake message.
        content_type: u8,
        /// Bytes of it in the buffer.
        bytes: usize,
    },
    /// The peer has closed its side of the TCP connection.
    End,
}

/// One line of `/proc/net/tls_stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// The kernel's name, like `TlsTxSw`.
    pub name: String,
    /// Its count.
    pub value: u64,
}

/// Connections whose sending side was handed over in a network namespace, ever (`TlsTxDevice`, `TlsTxSw`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// To adapters.
    pub to_adapters: u64,
    /// To the kernel's own code.
    pub to_software: u64,
}

/// The kernel of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_key() {
        let key = DirectionKey {
            version: Version::Tls13,
            cipher: Cipher::Aes128Gcm,
            key: &[0xAB; 16],
            vector: &[0xCD; 12],
            sequence: 7,
        };
        let shown = format!("{key:?}");
        assert!(!shown.contains("171") && !shown.contains("205"), "{shown}");
    }
}
