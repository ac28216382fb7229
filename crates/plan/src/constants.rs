//! The model's constants: what each is, how much, and where it is from.

use linerate_placement::Cipher;
use serde::Serialize;

use crate::machine::{CipherImplementation, Stack};

/// How a constant came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Measured by itself.
    Measured,
    /// Printed somewhere, or follows from how something is built.
    Published,
    /// Computed from a published point that is therefore no test of the model (`fit.rs`).
    Fitted,
    /// Neither: the best that we know.
    Estimated,
}

/// One constant, for tables.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Constant {
    /// Its name; the unit is last in it.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// How it came to be known.
    pub kind: Kind,
    /// Where it is from.
    pub source: &'static str,
}

/// The ciphers that there are figures for, in the order of [`Constants::aead_cycles_per_byte`]. No file can name another
/// ([`CipherName`](crate::CipherName)).
pub(crate) const CIPHERS: [Cipher; 3] = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];

/// Where the ciphers' figures are from, in the order of [`CipherImplementation`].
const AEAD_SOURCES: [(CipherImplementation, Kind, &str); 4] = [
    (
        CipherImplementation::AesNi2012,
        Kind::Published,
        "OpenSSL, ghash-x86_64.pl: GHASH 1.80 on Ivy Bridge; AES-CTR 0.9 beside it (one round a cycle is 0.63); AES-256 by its rounds; ChaCha20 estimated",
    ),
    (
        CipherImplementation::AesNi,
        Kind::Measured,
        "OpenSSL 3.0 without VAES: 3.6 GB/s at about 4 GHz; AES-256 by its rounds; ChaCha20 estimated for AVX2",
    ),
    (
        CipherImplementation::IsaL,
        Kind::Published,
        "one aesenc a cycle: 10 rounds of 16 bytes are 0.625, GHASH runs beside it; AES-256 by its rounds; it has no ChaCha20, so aes-ni's",
    ),
    (CipherImplementation::Vaes, Kind::Measured, "aws-lc with VAES: 13-18, 11-13 and 2.3 GB/s on one core"),
];

/// All of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// From page cache to adapter without TLS, segments made by the adapter: Linux.
    pub linux_path_cycles_per_byte: f64,
    /// The same: Netflix' FreeBSD of 2015.
    pub freebsd_2015_path_cycles_per_byte: f64,
    /// The same: Netflix' FreeBSD of 2021.
    pub freebsd_2021_path_cycles_per_byte: f64,
    /// What the path costs on FreeBSD with read and write in place of asynchronous sendfile, as a multiple.
    pub freebsd_read_write_factor: f64,
    /// A packet that the host makes, because the adapter does not.
    pub segment_cycles: f64,
    /// A cipher in cache, by library (in the order of [`CipherImplementation`]) and cipher.
    pub aead_cycles_per_byte: [[f64; CIPHERS.len()]; 4],
    /// A copy from cache to cache.
    pub copy_cycles_per_byte: f64,
    /// A byte that a core reads from memory, or whose line it fetches in order to write, on an idle machine.
    pub miss_ns_per_byte: f64,
    /// The copy that Linux makes for an adapter without `TLS_TX_ZEROCOPY_RO`, misses included, on an idle machine.
    pub bounce_ns_per_byte: f64,
    /// A record beside its bytes.
    pub record_cycles: f64,
    /// The same in Linux' kernel TLS: a request to the kernel's cryptography, its pages, its way through TCP.
    pub linux_kernel_record_cycles: f64,
    /// A system call that sends, beside its bytes.
    pub call_cycles: f64,
    /// A request beside its bytes, with linerate.
    pub request_cycles: f64,
    /// The same with a classic server.
    pub classic_request_cycles: f64,
    /// A connection with a full ECDSA handshake, from accept to close, with linerate.
    pub handshake_cycles: f64,
    /// The same with a classic server.
    pub classic_handshake_cycles: f64,
    /// What an RSA certificate of 2048 bits costs more.
    pub rsa_cycles: f64,
    /// What a resumed handshake costs less.
    pub resumed_cycles: f64,
    /// Giving a connection to the kernel.
    pub kernel_set_up_cycles: f64,
    /// Giving a connection to the adapter, as far as the CPU computes.
    pub nic_set_up_cycles: f64,
}

impl Constants {
    /// The constants of this release.
    pub const PRESENT: Self = Self {
        linux_path_cycles_per_byte: 0.2147,
        freebsd_2015_path_cycles_per_byte: 6.47,
        freebsd_2021_path_cycles_per_byte: 0.878,
        freebsd_read_write_factor: 4.0,
        segment_cycles: 3070.0,
        aead_cycles_per_byte: [[2.7, 2.95, 3.5], [1.1, 1.4, 1.9], [0.65, 0.88, 1.9], [0.22, 0.28, 1.45]],
        copy_cycles_per_byte: 0.063,
        miss_ns_per_byte: 0.041,
        bounce_ns_per_byte: 0.128,
        record_cycles: 230.0,
        linux_kernel_record_cycles: 4300.0,
        call_cycles: 1610.0,
        request_cycles: 16_000.0,
        classic_request_cycles: 24_000.0,
        handshake_cycles: 322_000.0,
        classic_handshake_cycles: 649_000.0,
        rsa_cycles: 547_000.0,
        resumed_cycles: 26_000.0,
        kernel_set_up_cycles: 11_500.0,
        nic_set_up_cycles: 23_000.0,
    };

    /// Cycles per byte of the path from file to adapter.
    #[must_use]
    pub(crate) fn path_cycles_per_byte(&self, stack: Stack) -> f64 {
        match stack {
            Stack::Linux => self.linux_path_cycles_per_byte,
            Stack::FreeBsd2015 => self.freebsd_2015_path_cycles_per_byte,
            Stack::FreeBsd2021 => self.freebsd_2021_path_cycles_per_byte,
        }
    }

    /// Cycles per byte of a cipher, in cache; infinite where there is no figure.
    #[must_use]
    pub(crate) fn aead_cycles_per_byte(&self, aead: CipherImplementation, cipher: Cipher) -> f64 {
        let column = CIPHERS.into_iter().position(|known| known == cipher);
        column.map_or(f64::INFINITY, |column| self.aead_cycles_per_byte[aead as usize][column])
    }

    /// All of them with their sources, in the order of documents.
    #[must_use]
    pub fn table(&self) -> Vec<Constant> {
        use Kind::{Estimated, Fitted, Measured, Published};
        let mut rows = Vec::new();
        let mut row = |name, value, kind, source| rows.push(Constant { name, value, kind, source });
        row(
            "linux_path_cycles_per_byte",
            self.linux_path_cycles_per_byte,
            Fitted,
            "point xeon-8380-zero-copy",
        );
        row(
            "freebsd_2015_path_cycles_per_byte",
            self.freebsd_2015_path_cycles_per_byte,
            Fitted,
            "point netflix-2015-plaintext",
        );
        row(
            "freebsd_2021_path_cycles_per_byte",
            self.freebsd_2021_path_cycles_per_byte,
            Fitted,
            "point netflix-nic",
        );
        row("segment_cycles", self.segment_cycles, Fitted, "point netflix-nic-without-tso");
        row(
            "freebsd_read_write_factor",
            self.freebsd_read_write_factor,
            Published,
            "Netflix 2015, slide \"Observations\": sendfile improved performance by 3x, async sendfile added 33 %",
        );
        row(
            "copy_cycles_per_byte",
            self.copy_cycles_per_byte,
            Measured,
            "crates/os/examples/copy_cost.rs: 0.027 s/GB at 2.3 GHz, 128 KiB to 128 KiB",
        );
        row(
            "miss_ns_per_byte",
            self.miss_ns_per_byte,
            Measured,
            "aws-lc AES-128-GCM in cache 13-18 GB/s, with the source from memory 8-11 GB/s: the difference of the means' inverses",
        );
        row(
            "bounce_ns_per_byte",
            self.bounce_ns_per_byte,
            Measured,
            "crates/os/examples/copy_cost.rs: past the caches (movnti), as the kernel's copy_from_iter_nocache does",
        );
        row("record_cycles", self.record_cycles, Measured, "100 ns at 2.3 GHz");
        row(
            "linux_kernel_record_cycles",
            self.linux_kernel_record_cycles,
            Measured,
            "nginx, Linux 7.3 with VAES: kernel TLS 0.25-0.29 s/GB, plaintext 0.045; less cipher (0.065) and two misses, at 3.4 GHz",
        );
        row("call_cycles", self.call_cycles, Measured, "700 ns at 2.3 GHz");
        row(
            "request_cycles",
            self.request_cycles,
            Measured,
            "docs/MEASUREMENTS.md: 10 kB in 8.8 µs at 2.3 GHz, less its bytes",
        );
        row(
            "classic_request_cycles",
            self.classic_request_cycles,
            Measured,
            "docs/MEASUREMENTS.md: nginx, 10 kB in 12.7 µs at 2.3 GHz, less its bytes",
        );
        row(
            "handshake_cycles",
            self.handshake_cycles,
            Measured,
            "docs/MEASUREMENTS.md: 149 µs less 8.8 µs at 2.3 GHz",
        );
        row(
            "classic_handshake_cycles",
            self.classic_handshake_cycles,
            Measured,
            "docs/MEASUREMENTS.md: nginx, 295 µs less 12.7 µs at 2.3 GHz",
        );
        row(
            "rsa_cycles",
            self.rsa_cycles,
            Measured,
            "docs/MEASUREMENTS.md: 303 µs in place of 65 µs at 2.3 GHz",
        );
        row(
            "resumed_cycles",
            self.resumed_cycles,
            Measured,
            "docs/MEASUREMENTS.md: 53.6 µs in place of 65 µs at 2.3 GHz",
        );
        row(
            "kernel_set_up_cycles",
            self.kernel_set_up_cycles,
            Estimated,
            "5 µs at 2.3 GHz: three system calls and a key schedule",
        );
        row(
            "nic_set_up_cycles",
            self.nic_set_up_cycles,
            Estimated,
            "10 µs at 2.3 GHz; the wait beside it is 1 / nic_set_ups_per_s",
        );
        for (aead, kind, source) in AEAD_SOURCES {
            let names = match aead {
                CipherImplementation::AesNi2012 => {
                    ["aes-ni-2012 AES-128 cycles/byte", "aes-ni-2012 AES-256 cycles/byte"]
                }
                CipherImplementation::AesNi => ["aes-ni AES-128 cycles/byte", "aes-ni AES-256 cycles/byte"],
                CipherImplementation::IsaL => ["isa-l AES-128 cycles/byte", "isa-l AES-256 cycles/byte"],
                CipherImplementation::Vaes => ["vaes AES-128 cycles/byte", "vaes AES-256 cycles/byte"],
            };
            for (name, value) in names.into_iter().zip(self.aead_cycles_per_byte[aead as usize]) {
                row(name, value, kind, source);
            }
        }
        rows
    }
}

impl Default for Constants {
    fn default() -> Self {
        Self::PRESENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_stands_at_its_place() {
        let constants = Constants::PRESENT;
        for (index, (aead, _, _)) in AEAD_SOURCES.into_iter().enumerate() {
            assert_eq!(aead as usize, index);
            let cycles = constants.aead_cycles_per_byte[index];
            assert!(cycles[0] < cycles[1]);
        }
        assert_eq!(constants.aead_cycles_per_byte(CipherImplementation::Vaes, Cipher::Aes256Gcm), 0.28);
    }

    #[test]
    fn every_constant_says_where_it_is_from() {
        let table = Constants::PRESENT.table();
        assert_eq!(table.len(), 27);
        assert!(table.iter().all(|row| !row.source.is_empty() && row.value > 0.0));
    }
}
