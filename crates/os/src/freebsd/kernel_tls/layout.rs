//! What FreeBSD's headers say: numbers, and the structures that the kernel is given. `layout.c` says the same in C, and is compiled
//! against those headers (`scripts/check-freebsd.sh`); a test holds the two together.

use std::{
    ffi::{c_int, c_void},
    fmt,
    marker::PhantomData,
    mem::{align_of, offset_of, size_of},
    ptr, slice,
};

/// The level of all of it (netinet/in.h).
pub const IPPROTO_TCP: c_int = 6;
/// Takes a [`TlsEnable`] (netinet/tcp.h).
pub const TCP_TXTLS_ENABLE: c_int = 39;
/// Gives and takes a mode.
pub const TCP_TXTLS_MODE: c_int = 40;
/// The kernel makes no records.
pub const TCP_TLS_MODE_NONE: c_int = 0;
/// It makes them itself.
pub const TCP_TLS_MODE_SW: c_int = 1;
/// The adapter does, the kernel keeps TCP.
pub const TCP_TLS_MODE_IFNET: c_int = 2;
/// The adapter does, and has TCP, too.
pub const TCP_TLS_MODE_TOE: c_int = 3;
/// AES-GCM of both key lengths (crypto/cryptodev.h).
pub const CRYPTO_AES_NIST_GCM_16: c_int = 25;
/// ChaCha20-Poly1305.
pub const CRYPTO_CHACHA20_POLY1305: c_int = 41;
/// The first byte of a version (sys/ktls.h).
pub const TLS_MAJOR_VER_ONE: u8 = 3;
/// The second byte of TLS 1.2.
pub const TLS_MINOR_VER_TWO: u8 = 3;
/// The second byte of TLS 1.3.
pub const TLS_MINOR_VER_THREE: u8 = 4;
/// The control message that names a record's type.
pub const TLS_SET_RECORD_TYPE: c_int = 1;
/// `sendfile` says `EBUSY` instead of waiting for a page that another process reads (sys/socket.h).
pub const SF_NODISKIO: c_int = 1;
/// `CMSG_LEN(1)`.
pub const CMSG_LEN_1: u32 = 17;
/// `CMSG_SPACE(1)`.
pub const CMSG_SPACE_1: usize = 24;
/// Where the data of a control message begins.
pub const CMSG_DATA_OFFSET: usize = 16;

/// Bytes of `struct tcp_info`, and where fields of four bytes lie in it.
pub const TCP_INFO_BYTES: usize = 256;
/// `tcpi_snd_mss`
pub const TCPI_SND_MSS: usize = 16;
/// `tcpi_rcv_mss`
pub const TCPI_RCV_MSS: usize = 20;
/// `tcpi_rtt`, in µs.
pub const TCPI_RTT: usize = 68;
/// `tcpi_rttvar`, in µs.
pub const TCPI_RTTVAR: usize = 72;
/// `tcpi_snd_cwnd`, in bytes.
pub const TCPI_SND_CWND: usize = 80;
/// `tcpi_snd_rexmitpack`
pub const TCPI_SND_REXMITPACK: usize = 120;
/// `tcpi_snd_una`, a sequence number.
pub const TCPI_SND_UNA: usize = 176;
/// `tcpi_snd_max`, a sequence number.
pub const TCPI_SND_MAX: usize = 180;
/// Bytes of the name in a `struct tcp_function_set` (netinet/tcp.h), and of all of it.
pub const TCP_FUNCTION_NAME_LEN_MAX: usize = 32;
/// See above.
pub const TCP_FUNCTION_SET_BYTES: usize = 36;
/// Asks for the capabilities of an interface (sys/sockio.h): `_IOWR('i', 31, struct ifreq)`.
pub const SIOCGIFCAP: u32 = 0xC020_691F;
/// Bytes in the buffer of a socket (sys/filio.h).
pub const FIONWRITE: u32 = 0x4004_6677;
/// CPUs of a NUMA node (sys/cpuset.h).
pub const CPU_WHICH_DOMAIN: c_int = 6;
/// Listeners among which the kernel divides connections (sys/socket.h).
pub const SO_REUSEPORT_LB: c_int = 0x10000;
/// Fields of `struct dirent` (sys/dirent.h).
pub const DIRENT: [(&str, usize); 6] =
    [("d_fileno", 0), ("d_off", 8), ("d_reclen", 16), ("d_type", 18), ("d_namlen", 20), ("d_name", 24)];

/// `struct tls_enable`: a key, given to the kernel, which copies it. It borrows what it points to.
#[repr(C)]
pub struct TlsEnable<'a> {
    cipher_key: *const u8,
    iv: *const u8,
    auth_key: *const u8,
    cipher_algorithm: c_int,
    cipher_key_len: c_int,
    iv_len: c_int,
    auth_algorithm: c_int,
    auth_key_len: c_int,
    flags: c_int,
    tls_vmajor: u8,
    tls_vminor: u8,
    rec_seq: [u8; 8],
    borrowed: PhantomData<&'a [u8]>,
}

const _: () = assert!(size_of::<TlsEnable<'_>>() == 64 || size_of::<*const u8>() != 8);
const _: () = assert!(align_of::<TlsEnable<'_>>() == align_of::<*const u8>());
const _: () = assert!(offset_of!(TlsEnable<'_>, cipher_key) == 0);
#[cfg(target_pointer_width = "64")]
mod on_64_bits {
    use super::{TlsEnable, offset_of};
    const _: () = assert!(offset_of!(TlsEnable<'_>, iv) == 8);
    const _: () = assert!(offset_of!(TlsEnable<'_>, auth_key) == 16);
    const _: () = assert!(offset_of!(TlsEnable<'_>, cipher_algorithm) == 24);
    const _: () = assert!(offset_of!(TlsEnable<'_>, cipher_key_len) == 28);
    const _: () = assert!(offset_of!(TlsEnable<'_>, iv_len) == 32);
    const _: () = assert!(offset_of!(TlsEnable<'_>, auth_algorithm) == 36);
    const _: () = assert!(offset_of!(TlsEnable<'_>, auth_key_len) == 40);
    const _: () = assert!(offset_of!(TlsEnable<'_>, flags) == 44);
    const _: () = assert!(offset_of!(TlsEnable<'_>, tls_vmajor) == 48);
    const _: () = assert!(offset_of!(TlsEnable<'_>, tls_vminor) == 49);
    const _: () = assert!(offset_of!(TlsEnable<'_>, rec_seq) == 50);
}

impl<'a> TlsEnable<'a> {
    /// A key and what nonces are made from, for records from `sequence` on. There is no key of another kind, and no flag.
    #[must_use]
    pub fn new(algorithm: c_int, minor_version: u8, key: &'a [u8], vector: &'a [u8], sequence: u64) -> Self {
        Self {
            cipher_key: key.as_ptr(),
            iv: vector.as_ptr(),
            auth_key: ptr::null(),
            cipher_algorithm: algorithm,
            // Both are a few bytes.
            cipher_key_len: key.len() as c_int,
            iv_len: vector.len() as c_int,
            auth_algorithm: 0,
            auth_key_len: 0,
            flags: 0,
            tls_vmajor: TLS_MAJOR_VER_ONE,
            tls_vminor: minor_version,
            rec_seq: sequence.to_be_bytes(),
            borrowed: PhantomData,
        }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        // SAFETY: pointer and length are those of a slice that is borrowed for 'a, and are never changed.
        unsafe { slice::from_raw_parts(self.cipher_key, self.cipher_key_len as usize) }
    }

    /// What nonces are made from.
    #[must_use]
    pub fn vector(&self) -> &'a [u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(self.iv, self.iv_len as usize) }
    }

    /// `CRYPTO_…`.
    #[must_use]
    pub fn algorithm(&self) -> c_int {
        self.cipher_algorithm
    }

    /// Major and minor version.
    #[must_use]
    pub fn version(&self) -> (u8, u8) {
        (self.tls_vmajor, self.tls_vminor)
    }

    /// The number of the first record.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        u64::from_be_bytes(self.rec_seq)
    }

    /// Whether everything else is as it must be for a cipher that authenticates by itself: nothing.
    #[must_use]
    pub fn has_nothing_else(&self) -> bool {
        self.auth_key.is_null() && (self.auth_algorithm, self.auth_key_len, self.flags) == (0, 0, 0)
    }

    /// The structure, for the kernel.
    #[must_use]
    pub fn address(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }
}

impl fmt::Debug for TlsEnable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TlsEnable")
            .field("cipher_algorithm", &self.cipher_algorithm)
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

/// A control message that makes the bytes it is sent with a record of this type: `struct cmsghdr` (length, level, type), padding up
/// to eight bytes, the byte, padding.
#[must_use]
pub fn record_type_message(content_type: u8) -> [u8; CMSG_SPACE_1] {
    let mut message = [0; CMSG_SPACE_1];
    message[..4].copy_from_slice(&CMSG_LEN_1.to_ne_bytes());
    message[4..8].copy_from_slice(&IPPROTO_TCP.to_ne_bytes());
    message[8..12].copy_from_slice(&TLS_SET_RECORD_TYPE.to_ne_bytes());
    message[CMSG_DATA_OFFSET] = content_type;
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Everything that layout.c asserts, by its name there.
    fn own() -> BTreeMap<String, i64> {
        let named: [(&str, i64); 25] = [
            ("IPPROTO_TCP", IPPROTO_TCP.into()),
            ("TCP_TXTLS_ENABLE", TCP_TXTLS_ENABLE.into()),
            ("TCP_TXTLS_MODE", TCP_TXTLS_MODE.into()),
            ("TCP_TLS_MODE_NONE", TCP_TLS_MODE_NONE.into()),
            ("TCP_TLS_MODE_SW", TCP_TLS_MODE_SW.into()),
            ("TCP_TLS_MODE_IFNET", TCP_TLS_MODE_IFNET.into()),
            ("TCP_TLS_MODE_TOE", TCP_TLS_MODE_TOE.into()),
            ("CRYPTO_AES_NIST_GCM_16", CRYPTO_AES_NIST_GCM_16.into()),
            ("CRYPTO_CHACHA20_POLY1305", CRYPTO_CHACHA20_POLY1305.into()),
            ("TLS_MAJOR_VER_ONE", TLS_MAJOR_VER_ONE.into()),
            ("TLS_MINOR_VER_TWO", TLS_MINOR_VER_TWO.into()),
            ("TLS_MINOR_VER_THREE", TLS_MINOR_VER_THREE.into()),
            ("TLS_SET_RECORD_TYPE", TLS_SET_RECORD_TYPE.into()),
            ("SF_NODISKIO", SF_NODISKIO.into()),
            ("CMSG_LEN(1)", CMSG_LEN_1.into()),
            ("CMSG_SPACE(1)", CMSG_SPACE_1 as i64),
            ("sizeof(struct tls_enable)", size_of::<TlsEnable<'_>>() as i64),
            ("sizeof(struct tcp_info)", TCP_INFO_BYTES as i64),
            ("TCP_FUNCTION_NAME_LEN_MAX", TCP_FUNCTION_NAME_LEN_MAX as i64),
            ("sizeof(struct tcp_function_set)", TCP_FUNCTION_SET_BYTES as i64),
            ("FIONWRITE", FIONWRITE.into()),
            ("SIOCGIFCAP", SIOCGIFCAP.into()),
            ("CPU_WHICH_DOMAIN", CPU_WHICH_DOMAIN.into()),
            ("SO_REUSEPORT_LB", SO_REUSEPORT_LB.into()),
            // The message's three numbers stand one behind the other: see `record_type_message`.
            ("CMSG_DATA", CMSG_DATA_OFFSET as i64),
        ];
        macro_rules! enable {
            ($($field:ident),+) => {
                [$((concat!("tls_enable ", stringify!($field)), offset_of!(TlsEnable<'_>, $field))),+]
            };
        }
        let fields = enable!(
            cipher_key,
            iv,
            auth_key,
            cipher_algorithm,
            cipher_key_len,
            iv_len,
            auth_algorithm,
            auth_key_len,
            flags,
            tls_vmajor,
            tls_vminor,
            rec_seq
        );
        let tcp = [
            ("tcp_info tcpi_snd_mss", TCPI_SND_MSS),
            ("tcp_info tcpi_rcv_mss", TCPI_RCV_MSS),
            ("tcp_info tcpi_rtt", TCPI_RTT),
            ("tcp_info tcpi_rttvar", TCPI_RTTVAR),
            ("tcp_info tcpi_snd_cwnd", TCPI_SND_CWND),
            ("tcp_info tcpi_snd_rexmitpack", TCPI_SND_REXMITPACK),
            ("tcp_info tcpi_snd_una", TCPI_SND_UNA),
            ("tcp_info tcpi_snd_max", TCPI_SND_MAX),
            ("cmsghdr cmsg_len", 0),
            ("cmsghdr cmsg_level", 4),
            ("cmsghdr cmsg_type", 8),
        ];
        let entry = DIRENT.map(|(field, offset)| (format!("dirent {field}"), offset as i64));
        named
            .map(|(name, number)| (name.to_owned(), number))
            .into_iter()
            .chain(fields.into_iter().chain(tcp).map(|(name, offset)| (name.to_owned(), offset as i64)))
            .chain(entry)
            .collect()
    }

    /// What the headers of FreeBSD say, as far as layout.c asserts it, is what stands here: each the other's, and nothing else.
    #[test]
    fn numbers_and_structures_are_those_of_the_headers() {
        let mut asserted = BTreeMap::new();
        for line in include_str!("layout.c").lines() {
            let Some(line) = line.strip_suffix(");") else { continue };
            let (name, number) = if let Some(assertion) = line.strip_prefix("IS(") {
                let (name, number) = assertion.rsplit_once(", ").unwrap();
                (name.to_owned(), number)
            } else if let Some(assertion) = line.strip_prefix("LIES_AT(") {
                let (name, number) = assertion.rsplit_once(", ").unwrap();
                (name.replace(", ", " "), number)
            } else {
                continue;
            };
            let number = match number.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16),
                None => number.parse(),
            };
            asserted.insert(name, number.unwrap());
        }
        assert_eq!(asserted, own());
    }

    #[test]
    fn a_key_is_shown_to_the_kernel_and_to_nobody_else() {
        let (key, vector) = ([0xAB; 32], [0xCD; 12]);
        let enable = TlsEnable::new(CRYPTO_AES_NIST_GCM_16, TLS_MINOR_VER_THREE, &key, &vector, 0x0102);
        assert_eq!((enable.key(), enable.vector(), enable.sequence()), (&key[..], &vector[..], 0x0102));
        assert_eq!((enable.version(), enable.has_nothing_else()), ((3, 4), true));
        let shown = format!("{enable:?}");
        assert!(!shown.contains("171") && !shown.contains("205"), "{shown}");
    }

    #[test]
    fn a_record_type_stands_where_the_kernel_looks_for_it() {
        let message = record_type_message(21);
        assert_eq!(message[..12], [17_i32, 6, 1].map(i32::to_ne_bytes).concat());
        assert_eq!((message[16], message.len()), (21, 24));
    }
}
