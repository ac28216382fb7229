//! Version, cipher and what the kernel lacks, from the record layer's words into placement's and back.

use crate::kernel::{self, Carried};
use linerate_placement::{self as placement, Cipher, Combination, Engine, Lack, Verdict};
use linerate_record::{Aead, Version};

/// Version and cipher, as placement calls them.
pub fn combination(version: Version, aead: Aead) -> Combination {
    Combination {
        version: match version {
            Version::Tls12 => placement::Version::Tls12,
            Version::Tls13 => placement::Version::Tls13,
        },
        cipher: match aead {
            Aead::Aes128Gcm => placement::Cipher::Aes128Gcm,
            Aead::Aes256Gcm => placement::Cipher::Aes256Gcm,
            Aead::ChaCha20Poly1305 => placement::Cipher::ChaCha20Poly1305,
        },
    }
}

/// What was found out about the kernel for a combination, as placement calls it.
pub fn verdict(combination: Combination, found: Result<Carried, &kernel::Lack>) -> Verdict {
    match found {
        Ok(carried) => {
            Verdict::Carried(linerate_placement::Carried { takes_new_keys: carried.takes_new_keys })
        }
        Err(found) => Verdict::Lacking(lack(combination, found)),
    }
}

/// What the kernel lacks for a combination, as placement calls it.
pub fn lack(combination: Combination, found: &kernel::Lack) -> Lack {
    match found {
        kernel::Lack::Module => Lack::Module,
        kernel::Lack::Cipher => Lack::NotInKernel(combination),
        kernel::Lack::SelfTest(_) => Lack::SelfTest(combination),
        kernel::Lack::System(_) => Lack::NotKnown(Engine::Kernel),
    }
}

/// Version and cipher as the record layer calls them.
pub fn record_terms(combination: Combination) -> (Version, Aead) {
    let version = match combination.version {
        linerate_placement::Version::Tls12 => Version::Tls12,
        linerate_placement::Version::Tls13 => Version::Tls13,
    };
    let aead = match combination.cipher {
        Cipher::Aes128Gcm => Aead::Aes128Gcm,
        Cipher::Aes256Gcm => Aead::Aes256Gcm,
        Cipher::ChaCha20Poly1305 => Aead::ChaCha20Poly1305,
    };
    (version, aead)
}
