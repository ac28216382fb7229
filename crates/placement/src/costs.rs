//! What every engine costs with every cipher, and what holds where nobody has measured.

use crate::{Cipher, Engine, EngineCosts};

/// What a network adapter can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NicLimits {
    /// Connections it can set up in a second, one after the other.
    pub set_ups_per_s: f64,
    /// Connections it keeps at once.
    pub flow_table_flows: u64,
}

impl NicLimits {
    /// A ConnectX-6 Dx as its owner met it: 8.7 MB/s of 10 kB files and 83 MB/s of 100 kB are both about 850 connections
    /// a second (four firmware commands each); about 20,000 flows in its cache. The least of what is published: an
    /// adapter that nobody has calibrated is taken for no better.
    pub const DEFAULT: Self = Self { set_ups_per_s: 850.0, flow_table_flows: 20_000 };
}

impl Default for NicLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What each engine costs with each cipher. The version of TLS makes no difference that was ever measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    engines: [[EngineCosts; Cipher::ALL.len()]; Engine::ALL.len()],
    /// What the adapter can take.
    pub nic_limits: NicLimits,
}

impl Costs {
    /// What an engine costs with a cipher.
    #[must_use]
    pub fn of(&self, engine: Engine, cipher: Cipher) -> &EngineCosts {
        &self.engines[engine as usize][cipher as usize]
    }

    /// Puts other costs there.
    pub fn set(&mut self, engine: Engine, cipher: Cipher, costs: EngineCosts) {
        self.engines[engine as usize][cipher as usize] = costs;
    }

    /// The smallest response, alone on its connection, that pays for a move from one engine to another, for a worker
    /// that has no time to spare. `None`: no size does.
    #[must_use]
    pub fn break_even_bytes(&self, from: Engine, to: Engine, cipher: Cipher) -> Option<u64> {
        let (from, to) = (self.of(from, cipher), self.of(to, cipher));
        let once_ns = to.move_ns(0.0) + to.per_response_ns - from.per_response_ns;
        break_even_bytes(once_ns, from.slope_ns_per_byte() - to.slope_ns_per_byte())
    }

    /// What holds where nobody has measured.
    ///
    /// | figure | source |
    /// |---|---|
    /// | user: AES-128 0.065, AES-256 0.083, ChaCha20 0.43 ns a byte for the cipher | aws-lc, 15, 12 and 2.3 GB/s a core with VAES |
    /// | user: 0.083 ns a byte for the copy into the socket | 0.25 cycles at 3 GHz; sealing from a mapping reads nothing |
    /// | user: 155 ns a key, 100 ns a record, 700 ns a call of 64 KiB | measured; a batch is one burst of the kernel's |
    /// | kernel: 0.20, 0.22, 0.60 ns a byte | nginx under Linux 7.3 with VAES, kTLS 0.25–0.29 s/GB less plaintext 0.045 |
    /// | kernel: 5 µs set-up | three system calls, a key schedule in the kernel's crypto; estimated |
    /// | nic: 0.11 ns a byte without zero-copy | 0.32 cycles for the bounce copy at 3 GHz |
    /// | nic: 1/850 s waiting, 50 µs computing a set-up | [`NicLimits::DEFAULT`]; 56,000 instructions with the software adapter |
    ///
    /// With these software kernel TLS never pays, which is what was measured (docs/MEASUREMENTS.md): the user engine
    /// costs less for each byte, and a move costs extra. Older processors and other kernels are what `linerate calibrate`
    /// is for.
    #[must_use]
    pub fn defaults() -> Self {
        const USER_AEAD_NS: [f64; Cipher::ALL.len()] = [0.065, 0.083, 0.43];
        const KERNEL_NS: [f64; Cipher::ALL.len()] = [0.20, 0.22, 0.60];
        const COPY_TO_SOCKET_NS: f64 = 0.083;
        const BOUNCE_COPY_NS: f64 = 0.11;
        let user = USER_AEAD_NS.map(|aead_ns| EngineCosts {
            per_byte_ns: aead_ns + COPY_TO_SOCKET_NS,
            per_record_ns: 100.0,
            per_call_ns: 700.0,
            call_bytes: 64 << 10,
            ..EngineCosts::FREE
        });
        let sendfile = EngineCosts {
            per_record_ns: 100.0,
            per_call_ns: 700.0,
            call_bytes: 1 << 20,
            ..EngineCosts::FREE
        };
        let kernel = KERNEL_NS.map(|per_byte_ns| EngineCosts { set_up_ns: 5000.0, per_byte_ns, ..sendfile });
        let nic = EngineCosts {
            set_up_ns: 50_000.0,
            set_up_wait_ns: 1e9 / NicLimits::DEFAULT.set_ups_per_s,
            per_byte_ns: BOUNCE_COPY_NS,
            ..sendfile
        };
        Self { engines: [user, kernel, [nic; Cipher::ALL.len()]], nic_limits: NicLimits::DEFAULT }
    }
}

impl Default for Costs {
    fn default() -> Self {
        Self::defaults()
    }
}

/// How many bytes pay `once_ns` when each saves `saved_ns_per_byte`.
pub(crate) fn break_even_bytes(once_ns: f64, saved_ns_per_byte: f64) -> Option<u64> {
    if saved_ns_per_byte.is_nan() || saved_ns_per_byte <= 0.0 {
        return None;
    }
    let bytes = (once_ns.max(0.0) / saved_ns_per_byte).ceil();
    // As large as no response is.
    (bytes < 1e18).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures that [`Costs::defaults`] gives sources for: each byte of a long response, and the move.
    #[test]
    fn the_defaults_are_those_of_their_table() {
        let costs = Costs::defaults();
        let sendfile_ns = 100.0 / 16_384.0 + 700.0 / 1_048_576.0;
        for (cipher, user_aead_ns, kernel_ns) in [
            (Cipher::Aes128Gcm, 0.065, 0.20),
            (Cipher::Aes256Gcm, 0.083, 0.22),
            (Cipher::ChaCha20Poly1305, 0.43, 0.60),
        ] {
            for (engine, slope_ns, set_up_ns, wait_ns) in [
                (Engine::User, user_aead_ns + 0.083 + 100.0 / 16_384.0 + 700.0 / 65_536.0, 0.0, 0.0),
                (Engine::Kernel, kernel_ns + sendfile_ns, 5000.0, 0.0),
                (Engine::Nic, 0.11 + sendfile_ns, 50_000.0, 1e9 / 850.0),
            ] {
                let found = costs.of(engine, cipher);
                assert!((found.slope_ns_per_byte() - slope_ns).abs() < 1e-9, "{engine} {cipher}: {found:?}");
                assert_eq!((found.set_up_ns, found.set_up_wait_ns), (set_up_ns, wait_ns), "{engine}");
            }
        }
    }

    #[test]
    fn by_default_software_kernel_tls_never_pays() {
        let costs = Costs::defaults();
        for cipher in Cipher::ALL {
            assert_eq!(costs.break_even_bytes(Engine::User, Engine::Kernel, cipher), None);
        }
    }

    #[test]
    fn by_default_an_adapter_pays_for_large_responses() {
        let costs = Costs::defaults();
        for cipher in Cipher::ALL {
            let bytes = costs.break_even_bytes(Engine::User, Engine::Nic, cipher).unwrap();
            assert!((64 << 10..2 << 20).contains(&bytes), "{cipher}: {bytes}");
        }
    }

    #[test]
    fn the_break_even_is_where_both_cost_the_same() {
        let mut dice = fastrand::Rng::with_seed(5);
        for _ in 0..1000 {
            let mut costs = Costs::defaults();
            for engine in [Engine::User, Engine::Kernel] {
                let drawn = EngineCosts {
                    set_up_ns: dice.f64() * 1e6,
                    per_byte_ns: dice.f64(),
                    per_record_ns: dice.f64() * 1000.0,
                    per_call_ns: dice.f64() * 1000.0,
                    per_response_ns: dice.f64() * 1000.0,
                    ..EngineCosts::FREE
                };
                costs.set(engine, Cipher::Aes128Gcm, drawn);
            }
            let (user, kernel) =
                (*costs.of(Engine::User, Cipher::Aes128Gcm), *costs.of(Engine::Kernel, Cipher::Aes128Gcm));
            // Records and calls are counted whole on both sides.
            let tolerance_ns = 4000.0 + 1.0;
            match costs.break_even_bytes(Engine::User, Engine::Kernel, Cipher::Aes128Gcm) {
                Some(bytes) => {
                    let moved_ns = kernel.move_ns(0.0) + kernel.cost_ns(bytes);
                    assert!(moved_ns <= user.cost_ns(bytes) + tolerance_ns);
                    let fewer = bytes.saturating_sub(bytes / 2);
                    let gain_ns = user.cost_ns(fewer) - kernel.move_ns(0.0) - kernel.cost_ns(fewer);
                    assert!(gain_ns <= tolerance_ns, "half of it must not pay");
                }
                None => assert!(user.slope_ns_per_byte() <= kernel.slope_ns_per_byte()),
            }
        }
    }

    #[test]
    fn what_a_response_costs_more_there_is_paid_like_the_set_up() {
        let mut costs = Costs::defaults();
        let user = EngineCosts { per_byte_ns: 0.3, per_response_ns: 1000.0, ..EngineCosts::FREE };
        let kernel = EngineCosts { per_byte_ns: 0.2, per_response_ns: 3000.0, ..EngineCosts::FREE };
        costs.set(Engine::User, Cipher::Aes128Gcm, user);
        costs.set(Engine::Kernel, Cipher::Aes128Gcm, EngineCosts { set_up_ns: 10_000.0, ..kernel });
        let bytes = costs.break_even_bytes(Engine::User, Engine::Kernel, Cipher::Aes128Gcm);
        assert!(bytes.is_some_and(|bytes| bytes.abs_diff(120_000) <= 1), "{bytes:?}");
    }

    #[test]
    fn a_saving_that_is_none_never_breaks_even() {
        assert_eq!(break_even_bytes(1000.0, 0.0), None);
        assert_eq!(break_even_bytes(1000.0, -1.0), None);
        assert_eq!(break_even_bytes(1000.0, f64::NAN), None);
        assert_eq!(break_even_bytes(1000.0, 1e-30), None);
        assert_eq!(break_even_bytes(1e18, 1.0), None);
        assert_eq!(break_even_bytes(-5.0, 0.1), Some(0));
        assert_eq!(break_even_bytes(1000.0, 0.1), Some(10_000));
    }
}
