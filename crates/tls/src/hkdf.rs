//! The TLS 1.3 suites with a key schedule that prepares each secret once.
//!
//! HKDF-Expand is an HMAC keyed with the secret (RFC 5869 2.3), and HMAC hashes its padded key twice before any data
//! (RFC 2104). rustls' own suites do that anew for each label that they derive from a secret. An `HkdfUsingHmac` keeps the
//! prepared key: of the two to four labels of a secret each but the first costs two blocks of the hash instead of four.
//! With SHA-384, for which x86-64 has no instructions, the hash is a fifth of what a server computes for a handshake.

use aws_lc_rs::hmac;
use rustls::{
    CipherSuite, CipherSuiteCommon, SupportedCipherSuite, Tls13CipherSuite,
    crypto::{
        aws_lc_rs::ALL_CIPHER_SUITES,
        hmac::{Hmac, Key, Tag},
        tls13::{Hkdf, HkdfUsingHmac},
    },
};
use std::sync::LazyLock;

/// rustls' TLS 1.3 suites, but for the key schedule.
static TLS13_SUITES: LazyLock<Vec<Tls13CipherSuite>> =
    LazyLock::new(|| ALL_CIPHER_SUITES.iter().filter_map(with_prepared_keys).collect());

/// All suites that rustls has: those of TLS 1.2 as they are, those of TLS 1.3 with this key schedule.
pub(crate) fn all_suites() -> impl Iterator<Item = SupportedCipherSuite> {
    let tls12 = ALL_CIPHER_SUITES.iter().copied().filter(|suite| suite.tls13().is_none());
    TLS13_SUITES.iter().map(SupportedCipherSuite::Tls13).chain(tls12)
}

fn with_prepared_keys(suite: &SupportedCipherSuite) -> Option<Tls13CipherSuite> {
    let suite = suite.tls13()?;
    let hkdf_provider: &'static dyn Hkdf = match suite.common.suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => &HkdfUsingHmac(&PreparedHmac::Sha384),
        CipherSuite::TLS13_AES_128_GCM_SHA256 | CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => {
            &HkdfUsingHmac(&PreparedHmac::Sha256)
        }
        // rustls' own serves for a suite that it may get.
        _ => suite.hkdf_provider,
    };
    let CipherSuiteCommon { suite: name, hash_provider, confidentiality_limit, .. } = suite.common;
    Some(Tls13CipherSuite {
        common: CipherSuiteCommon { suite: name, hash_provider, confidentiality_limit },
        hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: None,
    })
}

/// HMAC of a hash, from aws-lc.
enum PreparedHmac {
    Sha256,
    Sha384,
}

impl PreparedHmac {
    fn algorithm(&self) -> hmac::Algorithm {
        match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
        }
    }
}

impl Hmac for PreparedHmac {
    fn with_key(&self, key: &[u8]) -> Box<dyn Key> {
        Box::new(PreparedKey(hmac::Key::new(self.algorithm(), key)))
    }

    fn hash_output_len(&self) -> usize {
        self.algorithm().digest_algorithm().output_len()
    }
}

/// A secret, hashed as HMAC pads it. aws-lc wipes it when it goes.
struct PreparedKey(hmac::Key);

impl Key for PreparedKey {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> Tag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(first);
        for part in middle {
            context.update(part);
        }
        context.update(last);
        Tag::new(context.sign().as_ref())
    }

    fn tag_len(&self) -> usize {
        self.0.algorithm().digest_algorithm().output_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rustls' own key schedule derives, label for label, from keys and messages of odd lengths.
    #[test]
    fn derives_what_rustls_derives() {
        let mut compared = 0;
        for suite in all_suites() {
            let Some(ours) = suite.tls13() else { continue };
            let rustls_own = ALL_CIPHER_SUITES.iter().find(|one| one.suite() == suite.suite()).unwrap();
            let theirs = rustls_own.tls13().unwrap();
            let secret: Vec<u8> = (0..77).collect();
            for salt in [None, Some(&secret[..13])] {
                let extracted = [ours, theirs].map(|suite| {
                    let hkdf = suite.hkdf_provider;
                    let expander = hkdf.extract_from_secret(salt, &secret);
                    let okm = expander.expand_block(&[b"tls13 ", b"derived", b""]);
                    let again = hkdf.expander_for_okm(&okm);
                    let mut odd = [0; 131];
                    again.expand_slice(&[b"odd", &secret], &mut odd).unwrap();
                    let mut key = [0; 12];
                    again.expand_slice(&[b"iv"], &mut key).unwrap();
                    let mut from_zeros = [0; 32];
                    let zeros = hkdf.extract_from_zero_ikm(salt);
                    zeros.expand_slice(&[b"z"], &mut from_zeros).unwrap();
                    let too_long = zeros.expand_slice(&[b"z"], &mut vec![0; 255 * zeros.hash_len() + 1]);
                    assert!(too_long.is_err());
                    let finished = hkdf.hmac_sign(&okm, &secret);
                    (okm.as_ref().to_vec(), odd, key, from_zeros, finished.as_ref().to_vec())
                });
                assert_eq!(extracted[0], extracted[1], "{:?}", suite.suite());
                compared += 1;
            }
        }
        assert_eq!(compared, 6, "three suites, with salt and without");
    }
}
