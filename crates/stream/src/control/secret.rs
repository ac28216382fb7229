//! What both ends know, and how each proves it without saying it.
//!
//! A proof is an HMAC (RFC 2104, SHA-256) by the secret over the role of the proving end, both ends' nonces and the
//! fingerprint of the certificate that the listener shows and the client sees. A proof is of no use to another connection, which has other
//! nonces; nor to a man in the middle, which has to show the client another certificate (the binding that RFC 5929 section 4
//! calls `tls-server-end-point`). The client proves first: a stranger that connects learns nothing by which secrets could
//! be guessed.

use crate::{StreamError, keymakers};
use aws_lc_rs::{hmac, rand};
use std::{fmt, fs, path::Path};
use zeroize::Zeroizing;

/// The fewest bytes of a secret. Whoever sits in between and has let a client prove can try secrets on his own: a secret of
/// random bytes has to be too long for that.
const LEAST_BYTES: usize = 16;
/// The most bytes.
const MOST_BYTES: usize = 4096;

/// A shared secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

/// Which end proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prover {
    /// The client.
    Client,
    /// The listener.
    Listener,
}

/// What a proof is good for: one control connection.
#[derive(Clone, Copy, Debug)]
pub struct Bond<'a> {
    /// The client's nonce.
    pub client_nonce: &'a [u8; 32],
    /// The listener's nonce.
    pub listener_nonce: &'a [u8; 32],
    /// The SHA-256 fingerprint of the listener's certificate, as this end knows it.
    pub certificate: &'a str,
}

impl Secret {
    /// A secret of these bytes, line breaks at their end taken off.
    ///
    /// # Errors
    /// It is too short or too long: in words.
    pub fn new(bytes: &[u8]) -> Result<Self, String> {
        let secret = bytes.trim_ascii_end();
        if secret.len() < LEAST_BYTES {
            return Err(format!(
                "it has {} bytes, and at least {LEAST_BYTES} are needed: `head -c 32 /dev/urandom | base64` makes a good one",
                secret.len()
            ));
        }
        if secret.len() > MOST_BYTES {
            return Err(format!("it has {} bytes, and {MOST_BYTES} are the most", secret.len()));
        }
        Ok(Self(Zeroizing::new(secret.to_vec())))
    }

    /// The secret in a file.
    ///
    /// # Errors
    /// [`StreamError::Secret`].
    pub fn read(file: &Path) -> Result<Self, StreamError> {
        let cannot = |reason: String| StreamError::Secret { file: file.to_owned(), reason };
        let bytes = Zeroizing::new(fs::read(file).map_err(|error| cannot(error.to_string()))?);
        Self::new(&bytes).map_err(cannot)
    }

    /// That `prover` knows the secret.
    #[must_use]
    pub fn prove(&self, prover: Prover, bond: Bond<'_>) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let tag = hmac::sign(&key, &statement(prover, bond));
        let mut proof = [0; 32];
        proof.copy_from_slice(tag.as_ref());
        proof
    }

    /// Whether `proof` is what `prover` has to say. Takes the same time for every wrong one.
    #[must_use]
    pub fn is_proved(&self, prover: Prover, bond: Bond<'_>, proof: &[u8; 32]) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        hmac::verify(&key, &statement(prover, bond), proof).is_ok()
    }
}

/// All parts but the last have a fixed length.
fn statement(prover: Prover, bond: Bond<'_>) -> Vec<u8> {
    let label: &[u8; 24] = match prover {
        Prover::Client => b"linerate stream client 1",
        Prover::Listener => b"linerate stream listen 1",
    };
    [&label[..], bond.client_nonce, bond.listener_nonce, bond.certificate.as_bytes()].concat()
}

/// Bytes that nobody can foresee.
///
/// # Errors
/// The system has none.
pub fn random<const BYTES: usize>() -> Result<[u8; BYTES], StreamError> {
    let made = keymakers::done(|| {
        let mut bytes = [0; BYTES];
        rand::fill(&mut bytes).map(|()| bytes)
    });
    made.ok().and_then(Result::ok).ok_or_else(|| StreamError::System {
        what: "no random bytes",
        source: std::io::ErrorKind::Unsupported.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_good_for_one_prover_secret_and_connection() {
        let secret = Secret::new(b"sixteen bytes is the least\n").unwrap();
        let bond = Bond { client_nonce: &[1; 32], listener_nonce: &[2; 32], certificate: "AA:BB" };
        let proof = secret.prove(Prover::Client, bond);
        assert!(secret.is_proved(Prover::Client, bond, &proof));
        assert!(!secret.is_proved(Prover::Listener, bond, &proof));
        for other in [
            Bond { client_nonce: &[3; 32], ..bond },
            Bond { listener_nonce: &[3; 32], ..bond },
            Bond { certificate: "AA:BC", ..bond },
            Bond { client_nonce: &[2; 32], listener_nonce: &[1; 32], ..bond },
        ] {
            assert!(!secret.is_proved(Prover::Client, other, &proof));
        }
        let other = Secret::new(b"sixteen bytes is the leasT").unwrap();
        assert!(!other.is_proved(Prover::Client, bond, &proof));
        let mut damaged = proof;
        damaged[31] ^= 1;
        assert!(!secret.is_proved(Prover::Client, bond, &damaged));
    }

    #[test]
    fn a_secret_is_long_enough_and_its_line_break_is_none_of_it() {
        assert_eq!(Secret::new(b"0123456789abcdef\r\n").unwrap(), Secret::new(b"0123456789abcdef").unwrap());
        assert!(Secret::new(b"0123456789abcde\n").unwrap_err().contains("15 bytes"));
        assert!(Secret::new(&[b'x'; 5000]).is_err());
        assert!(!format!("{:?}", Secret::new(b"0123456789abcdef").unwrap()).contains('0'));
    }
}
