//! The system calls themselves, in the form of Linux (`include/uapi/linux/tls.h`).

use crate::{kernel_tls::DirectionKey, memory::Wiped};
use libc::{
    TLS_1_2_VERSION, TLS_1_3_VERSION, TLS_CIPHER_AES_GCM_128, TLS_CIPHER_AES_GCM_256,
    TLS_CIPHER_CHACHA20_POLY1305, tls_crypto_info, tls12_crypto_info_aes_gcm_128,
    tls12_crypto_info_aes_gcm_256, tls12_crypto_info_chacha20_poly1305,
};
use linerate_suite::{Cipher, Version};
use std::{
    ffi::{c_int, c_void},
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
};

/// What a `setsockopt` of `TLS_TX` or `TLS_RX` takes: plain integers and arrays of bytes, without padding, in which any bytes are
/// a value.
trait CryptoInfo {
    fn sequence(&self) -> u64;
}

macro_rules! crypto_info {
    ($($type:ty),+) => { $(
        impl CryptoInfo for $type {
            fn sequence(&self) -> u64 {
                u64::from_be_bytes(self.rec_seq)
            }
        }
    )+ };
}
crypto_info!(
    tls12_crypto_info_aes_gcm_128,
    tls12_crypto_info_aes_gcm_256,
    tls12_crypto_info_chacha20_poly1305
);

fn header(version: Version, cipher: Cipher) -> tls_crypto_info {
    tls_crypto_info {
        version: match version {
            Version::Tls12 => TLS_1_2_VERSION,
            Version::Tls13 => TLS_1_3_VERSION,
        },
        cipher_type: match cipher {
            Cipher::Aes128Gcm => TLS_CIPHER_AES_GCM_128,
            Cipher::Aes256Gcm => TLS_CIPHER_AES_GCM_256,
            Cipher::ChaCha20Poly1305 => TLS_CIPHER_CHACHA20_POLY1305,
        },
    }
}

fn set_option<T>(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: `value` is valid for reads of its own size for the length of the call, and the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast::<c_void>(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn attach(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_ULP, b"tls")
}

pub(super) fn set_zero_copy(socket: BorrowedFd<'_>, allowed: bool) -> io::Result<()> {
    set_option(socket, libc::SOL_TLS, libc::TLS_TX_ZEROCOPY_RO, &libc::c_uint::from(allowed))
}

/// No record will be padded: the kernel decrypts straight into the receiver's memory, and once more where that was wrong
/// (`TLS_RX_EXPECT_NO_PAD`).
pub(super) fn expect_no_padding(socket: BorrowedFd<'_>, expected: bool) -> io::Result<()> {
    set_option(socket, libc::SOL_TLS, TLS_RX_EXPECT_NO_PAD, &libc::c_uint::from(expected))
}

/// include/uapi/linux/tls.h, Linux 6.0.
const TLS_RX_EXPECT_NO_PAD: c_int = 4;

/// The option that takes a direction's key.
pub(super) const SENDING: c_int = libc::TLS_TX;
/// The same for receiving.
pub(super) const RECEIVING: c_int = libc::TLS_RX;

/// `direction`: [`SENDING`] or [`RECEIVING`].
pub(super) fn install(socket: BorrowedFd<'_>, direction: c_int, key: &DirectionKey<'_>) -> io::Result<()> {
    let info = header(key.version, key.cipher);
    let rec_seq = key.sequence.to_be_bytes();
    let (salt, explicit) = key.vector.split_at(4);
    let wrong_length =
        |_| io::Error::new(io::ErrorKind::InvalidInput, "the key's length does not fit the cipher");
    // What the kernel reads is wiped afterwards (copies on the stack are not covered: see `Wiped`).
    match key.cipher {
        Cipher::Aes128Gcm => {
            let mut value =
                tls12_crypto_info_aes_gcm_128 { info, iv: [0; 8], key: [0; 16], salt: [0; 4], rec_seq };
            value.iv.copy_from_slice(explicit);
            value.salt.copy_from_slice(salt);
            value.key = key.key.try_into().map_err(wrong_length)?;
            set_option(socket, libc::SOL_TLS, direction, &*Wiped::new(value))
        }
        Cipher::Aes256Gcm => {
            let mut value =
                tls12_crypto_info_aes_gcm_256 { info, iv: [0; 8], key: [0; 32], salt: [0; 4], rec_seq };
            value.iv.copy_from_slice(explicit);
            value.salt.copy_from_slice(salt);
            value.key = key.key.try_into().map_err(wrong_length)?;
            set_option(socket, libc::SOL_TLS, direction, &*Wiped::new(value))
        }
        Cipher::ChaCha20Poly1305 => {
            let key_bytes = key.key.try_into().map_err(wrong_length)?;
            let value = tls12_crypto_info_chacha20_poly1305 {
                info,
                iv: *key.vector,
                key: key_bytes,
                salt: [],
                rec_seq,
            };
            set_option(socket, libc::SOL_TLS, direction, &*Wiped::new(value))
        }
    }
}

pub(super) fn sequence(socket: BorrowedFd<'_>, version: Version, cipher: Cipher) -> io::Result<u64> {
    let info = header(version, cipher);
    // The kernel's answer holds the key, too: it is wiped with its home.
    match cipher {
        Cipher::Aes128Gcm => read_sequence(
            socket,
            tls12_crypto_info_aes_gcm_128 { info, iv: [0; 8], key: [0; 16], salt: [0; 4], rec_seq: [0; 8] },
        ),
        Cipher::Aes256Gcm => read_sequence(
            socket,
            tls12_crypto_info_aes_gcm_256 { info, iv: [0; 8], key: [0; 32], salt: [0; 4], rec_seq: [0; 8] },
        ),
        Cipher::ChaCha20Poly1305 => read_sequence(
            socket,
            tls12_crypto_info_chacha20_poly1305 {
                info,
                iv: [0; 12],
                key: [0; 32],
                salt: [],
                rec_seq: [0; 8],
            },
        ),
    }
}

fn read_sequence<T: CryptoInfo>(socket: BorrowedFd<'_>, empty: T) -> io::Result<u64> {
    let value = Wiped::new(std::cell::UnsafeCell::new(empty));
    let mut length = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the cell's content is valid for writes of `length` bytes, nothing else refers to it, and T is made of
    // integers for which any bytes are a value (see `CryptoInfo`); the kernel writes no more than `length`
    // (net/tls/tls_main.c, do_tls_getsockopt_conf).
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_TLS,
            libc::TLS_TX,
            value.get().cast::<c_void>(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call is over, and no other reference to the content exists.
    Ok(unsafe { &*value.get() }.sequence())
}

/// Room for one control message of one byte, aligned as the kernel wants its header. `CMSG_SPACE(1)` is 24 bytes on
/// 64-bit systems and 16 on 32-bit ones.
#[repr(C, align(8))]
pub(super) struct ControlBuffer(pub(super) [u8; 32]);

pub(super) fn send_control(socket: BorrowedFd<'_>, content_type: u8, bytes: &[u8]) -> io::Result<()> {
    let mut control = ControlBuffer([0; 32]);
    let mut payload =
        libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(), iov_len: bytes.len() };
    // SAFETY: a msghdr is made of integers and pointers; zeros are a valid value of it.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut payload;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast::<c_void>();
    // SAFETY: CMSG_SPACE only computes; it is at most 24 here, and the buffer has 32 bytes.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(1) } as _;
    // SAFETY: `msg_control` points to `control`, which is large enough for one header and one byte of data, aligned
    // for the header, and alive until after `sendmsg`. CMSG_FIRSTHDR is not null, as there is room for a header.
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_TLS;
        (*header).cmsg_type = libc::TLS_SET_RECORD_TYPE;
        (*header).cmsg_len = libc::CMSG_LEN(1) as _;
        *libc::CMSG_DATA(header) = content_type;
        loop {
            let sent = libc::sendmsg(
                socket.as_raw_fd(),
                &raw const message,
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            );
            if sent >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break sent;
            }
        }
    };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        // A message of a few bytes in part: what follows would be of the wrong type.
        Ok(_) => Err(io::Error::new(io::ErrorKind::WriteZero, "the kernel took part of a control record")),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::AsFd,
    };

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, client)
    }

    /// The structures have to be as long as the kernel's, or it refuses them.
    #[test]
    fn structures_have_the_kernels_size() {
        assert_eq!(mem::size_of::<tls12_crypto_info_aes_gcm_128>(), 4 + 8 + 16 + 4 + 8);
        assert_eq!(mem::size_of::<tls12_crypto_info_aes_gcm_256>(), 4 + 8 + 32 + 4 + 8);
        assert_eq!(mem::size_of::<tls12_crypto_info_chacha20_poly1305>(), 4 + 12 + 32 + 8);
        // SAFETY: it only computes.
        assert!(unsafe { libc::CMSG_SPACE(1) } as usize <= mem::size_of::<ControlBuffer>());
    }

    /// On a machine without the module the first call says so; with it a whole life goes through.
    #[test]
    fn a_socket_is_attached_or_the_reason_is_told() {
        let (ours, _theirs) = pair();
        match attach(ours.as_fd()) {
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "{error}");
                eprintln!(
                    "SKIPPED the rest of a_socket_is_attached_or_the_reason_is_told: no tls module here"
                );
            }
            Ok(()) => {
                let key = DirectionKey {
                    version: Version::Tls13,
                    cipher: Cipher::Aes128Gcm,
                    key: &[1; 16],
                    vector: &[2; 12],
                    sequence: 77,
                };
                install(ours.as_fd(), SENDING, &key).unwrap();
                assert_eq!(sequence(ours.as_fd(), key.version, key.cipher).unwrap(), 77);
                send_control(ours.as_fd(), 21, &[1, 0]).unwrap();
                assert_eq!(sequence(ours.as_fd(), key.version, key.cipher).unwrap(), 78);
            }
        }
    }

    #[test]
    fn what_tcp_has_taken_is_counted_from_the_beginning() {
        use crate::kernel_tls::{Calls, System};
        use std::io::{Read, Write};
        let (mut ours, mut theirs) = pair();
        assert_eq!(System.taken_bytes(ours.as_fd()).unwrap(), 0);
        for round in 1..=3 {
            ours.write_all(&[7; 5000]).unwrap();
            theirs.read_exact(&mut [0; 4321]).unwrap();
            assert_eq!(System.taken_bytes(ours.as_fd()).unwrap(), round * 5000);
        }
    }

    #[test]
    fn a_key_of_the_wrong_length_is_refused_before_the_kernel_sees_it() {
        let (ours, _theirs) = pair();
        for (cipher, length) in
            [(Cipher::Aes128Gcm, 32), (Cipher::Aes256Gcm, 16), (Cipher::ChaCha20Poly1305, 31)]
        {
            let key = vec![3; length];
            let key =
                DirectionKey { version: Version::Tls13, cipher, key: &key, vector: &[0; 12], sequence: 0 };
            for direction in [SENDING, RECEIVING] {
                let refused = install(ours.as_fd(), direction, &key).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
            }
        }
    }
}
