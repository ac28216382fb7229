//! Kernel TLS as FreeBSD has it (ktls(4)): one option of the socket gives the kernel a key, another tells, and changes, what makes
//! the records.
//!
//! What it has otherwise than Linux: nothing is attached before; a connection gets one key in each direction, ever; the number of the
//! next record is not told; a TLS 1.2 AES-GCM key brings no explicit nonce, the kernel begins at a random one; the mode of that very
//! socket is told to anybody, so it is the proof; nothing waits in a module: what a call has taken is in the socket's buffer, in
//! order, and leaves however the socket is closed.
//!
//! The system calls stand behind [`Sockets`], so that all of this is compiled, and driven by a model of the kernel, on Linux, too. It
//! has never run on FreeBSD.
//!
//! Sources: ktls(4), tcp(4), sendfile(2); `sys/kern/uipc_ktls.c`, `sys/netinet/tcp_usrreq.c`, `sys/kern/kern_sendfile.c` of FreeBSD 14.

pub mod layout;
#[cfg(target_os = "freebsd")]
mod system;

pub use layout::{
    CMSG_DATA_OFFSET, CMSG_LEN_1, CMSG_SPACE_1, CRYPTO_AES_NIST_GCM_16, CRYPTO_CHACHA20_POLY1305,
    IPPROTO_TCP, SF_NODISKIO, TCP_TLS_MODE_IFNET, TCP_TLS_MODE_NONE, TCP_TLS_MODE_SW, TCP_TLS_MODE_TOE,
    TCP_TXTLS_ENABLE, TCP_TXTLS_MODE, TLS_MAJOR_VER_ONE, TLS_MINOR_VER_THREE, TLS_MINOR_VER_TWO,
    TLS_SET_RECORD_TYPE, TlsEnable, record_type_message,
};
#[cfg(target_os = "freebsd")]
pub(crate) use system::Kernel;
#[cfg(target_os = "freebsd")]
pub use system::{IS_A_MODULE, lacks_next_key, statistics};

use crate::{
    kernel_tls::{Calls, Carrier, Carriers, DirectionKey, Habits, HandedOver, Opened},
    socket::Follows,
};
use linerate_suite::{Cipher, Version};
use rustix::io::Errno;
use std::{ffi::c_int, fs::File, io, os::fd::BorrowedFd};

/// The system calls themselves. Errors are the kernel's, by their names.
pub trait Sockets: Send + Sync {
    /// `setsockopt` of `TCP_TXTLS_ENABLE`.
    ///
    /// # Errors
    /// `EALREADY`: it has a key. `EINVAL`: version, cipher or a length. `ENOTSUP`, `ENXIO`, `ENOPROTOOPT`: kernel TLS is off,
    /// or missing. `ENOTCONN`, `ECONNRESET`: there is no connection.
    fn enable_sending(&self, socket: BorrowedFd<'_>, key: &TlsEnable<'_>) -> io::Result<()>;

    /// `getsockopt` of `TCP_TXTLS_MODE`.
    ///
    /// # Errors
    /// The kernel's.
    fn sending_mode(&self, socket: BorrowedFd<'_>) -> io::Result<c_int>;

    /// `setsockopt` of `TCP_TXTLS_MODE`.
    ///
    /// # Errors
    /// `EALREADY`: an interface has the connection still. `ENXIO`: it was taken from one, for loss. `EBUSY`: another change was
    /// quicker. Else the driver's.
    fn set_sending_mode(&self, socket: BorrowedFd<'_>, mode: c_int) -> io::Result<()>;

    /// `sendmsg` of `bytes` with `control`, without waiting and without SIGPIPE.
    ///
    /// # Errors
    /// `EWOULDBLOCK`: the socket has no room for all of it, and took nothing.
    fn send_message(&self, socket: BorrowedFd<'_>, bytes: &[u8], control: &[u8]) -> io::Result<usize>;

    /// `send`, without waiting and without SIGPIPE.
    ///
    /// # Errors
    /// `EWOULDBLOCK`: the socket is full. `EINVAL` for no bytes, on a socket with a key.
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize>;

    /// `sendfile` of `length_bytes`, of which 0 are all up to the end of the file. Says how many bytes were sent, also beside an
    /// error.
    fn send_file(
        &self,
        socket: BorrowedFd<'_>,
        file: &File,
        offset: u64,
        length_bytes: usize,
        flags: c_int,
    ) -> (io::Result<()>, u64);

    /// The interface by which the connection leaves.
    ///
    /// # Errors
    /// The kernel's.
    fn leaves_by(&self, socket: BorrowedFd<'_>) -> io::Result<String>;
}

/// [`Calls`] on FreeBSD's system calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelTls<S>(pub S);

/// What a call makes of its bytes. `send` fills records to 16 KiB (`kern.ipc.tls.maxlen`), `sendfile` to four pages, the first less
/// where the offset is inside of a page. Both begin anew each time that they find room, and go on only from so much room on
/// (`SO_SNDLOWAT`, which is never set lower here), or with all that is left.
const LEAST_RECORD_BYTES: u64 = 2048;

impl<S: Sockets> Calls for KernelTls<S> {
    fn habits(&self) -> Habits {
        Habits {
            least_record_bytes: LEAST_RECORD_BYTES,
            tells_sequence: false,
            holds_back: false,
            moves_connections: true,
            adapter_reads_files: true,
        }
    }

    /// Nothing is attached.
    fn attach(&self, _: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn install(&self, socket: BorrowedFd<'_>, key: &DirectionKey<'_>) -> io::Result<()> {
        if key.key.len() != key.cipher.key_bytes() {
            let why = "the key's length does not fit the cipher";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let algorithm = match key.cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => CRYPTO_AES_NIST_GCM_16,
            Cipher::ChaCha20Poly1305 => CRYPTO_CHACHA20_POLY1305,
        };
        let is_aes = key.cipher != Cipher::ChaCha20Poly1305;
        let (minor_version, vector) = match key.version {
            // The salt. The explicit nonces are the kernel's.
            Version::Tls12 if is_aes => (TLS_MINOR_VER_TWO, key.vector.get(..4).unwrap_or_default()),
            Version::Tls12 => (TLS_MINOR_VER_TWO, &key.vector[..]),
            Version::Tls13 => (TLS_MINOR_VER_THREE, &key.vector[..]),
        };
        let key = TlsEnable::new(algorithm, minor_version, key.key, vector, key.sequence);
        self.0.enable_sending(socket, &key).map_err(in_words)
    }

    fn install_receiving(&self, _: BorrowedFd<'_>, _: &DirectionKey<'_>) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "receiving by FreeBSD's kernel TLS is not built"))
    }

    fn expect_no_padding(&self, _: BorrowedFd<'_>, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn receive(&self, _: BorrowedFd<'_>, _: &mut [u8]) -> io::Result<Opened> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never told.
    fn sequence(&self, _: BorrowedFd<'_>, _: Version, _: Cipher) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn carriers(&self, socket: BorrowedFd<'_>) -> io::Result<Carriers> {
        let sending = match self.0.sending_mode(socket)? {
            TCP_TLS_MODE_SW => Some(Carrier::Software),
            TCP_TLS_MODE_IFNET | TCP_TLS_MODE_TOE => Some(Carrier::Adapter),
            _ => None,
        };
        Ok(Carriers { sending, ..Carriers::default() })
    }

    fn set_carrier(&self, socket: BorrowedFd<'_>, carrier: Carrier) -> io::Result<()> {
        let mode = match carrier {
            Carrier::Software => TCP_TLS_MODE_SW,
            Carrier::Adapter => TCP_TLS_MODE_IFNET,
        };
        self.0.set_sending_mode(socket, mode)
    }

    fn leaves_by(&self, socket: BorrowedFd<'_>) -> io::Result<String> {
        self.0.leaves_by(socket)
    }

    /// The mode of the socket is the proof: there is nothing to count.
    fn handed_over(&self) -> io::Result<HandedOver> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Pages of files are never copied, so there is nothing to be switched: [`Habits::adapter_reads_files`].
    fn set_zero_copy(&self, _: BorrowedFd<'_>, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn send_control(&self, socket: BorrowedFd<'_>, content_type: u8, bytes: &[u8]) -> io::Result<()> {
        let control = record_type_message(content_type);
        loop {
            return match self.0.send_message(socket, bytes, &control) {
                Ok(sent) if sent == bytes.len() => Ok(()),
                Ok(_) => {
                    let why = "the kernel took part of a control record";
                    Err(io::Error::new(io::ErrorKind::WriteZero, why))
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// All that a call took is TCP's.
    fn taken_bytes(&self, _: BorrowedFd<'_>) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8], _: Follows) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            match self.0.send(socket, bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn send_file(
        &self,
        socket: BorrowedFd<'_>,
        file: &File,
        offset: u64,
        length_bytes: usize,
    ) -> io::Result<usize> {
        send_file(&self.0, socket, file, offset, length_bytes)
    }
}

/// `sendfile` in the words of [`crate::socket::send_file`]. A socket that becomes full is an error *and* bytes that were sent: those
/// count. No bytes would be all bytes up to the end of the file.
///
/// # Errors
/// As there.
pub(crate) fn send_file<S: Sockets>(
    sockets: &S,
    socket: BorrowedFd<'_>,
    file: &File,
    offset: u64,
    length_bytes: usize,
) -> io::Result<usize> {
    if length_bytes == 0 {
        return Ok(0);
    }
    let mut flags = SF_NODISKIO;
    loop {
        let (result, sent) = sockets.send_file(socket, file, offset, length_bytes, flags);
        let sent = usize::try_from(sent).unwrap_or(usize::MAX).min(length_bytes);
        let Err(error) = result else { return Ok(sent) };
        match Errno::from_io_error(&error) {
            // A socket that became full, a signal, a page that another process reads: what went before has been sent.
            Some(Errno::AGAIN | Errno::INTR | Errno::BUSY) if sent > 0 => return Ok(sent),
            Some(Errno::INTR) => {}
            // The page comes: it is waited for.
            Some(Errno::BUSY) if flags != 0 => flags = 0,
            _ => return Err(error),
        }
    }
}

/// What the first key's errors mean, where the number alone would mislead.
fn in_words(error: io::Error) -> io::Error {
    let words = match Errno::from_io_error(&error) {
        Some(Errno::OPNOTSUPP) => {
            "kernel TLS is switched off (sysctl kern.ipc.tls.enable=1), or nothing encrypts for it (kldload ktls_ocf, before \
             FreeBSD 14)"
        }
        Some(Errno::NXIO) => {
            "kernel TLS needs mbufs of whole pages, which are switched off (sysctl kern.ipc.mb_use_ext_pgs=1)"
        }
        Some(Errno::NOPROTOOPT) => "this kernel was built without KERN_TLS",
        _ => return error,
    };
    io::Error::new(io::ErrorKind::Unsupported, words)
}
