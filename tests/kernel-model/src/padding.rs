//! TLS 1.3 records with padding (RFC 8446 5.4), which our own sender never makes: sealed by hand.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use linerate_record::{Cipher, ContentType};

/// The record of this number under a key, with so many zeros behind its content type.
///
/// # Panics
/// If the key is none of its cipher, or the record would be longer than records may be.
#[must_use]
pub fn padded_record(
    cipher: Cipher,
    key: &[u8],
    vector: [u8; 12],
    sequence: u64,
    content: (ContentType, &[u8]),
    padding_bytes: usize,
) -> Vec<u8> {
    let algorithm = match cipher {
        Cipher::Aes128Gcm => &AES_128_GCM,
        Cipher::Aes256Gcm => &AES_256_GCM,
        Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
    };
    let (content_type, plaintext) = content;
    let mut inner = [plaintext, &[content_type.wire()]].concat();
    inner.resize(inner.len() + padding_bytes, 0);
    // RFC 8446 5.2: the header is authenticated; 5.3: the nonce is the vector, mixed with the record's number.
    let [high, low] = u16::try_from(inner.len() + algorithm.tag_len()).unwrap().to_be_bytes();
    let header = [23, 3, 3, high, low];
    let mut nonce = vector;
    nonce[4..].iter_mut().zip(sequence.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key).unwrap());
    let nonce = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, Aad::from(header), &mut inner).unwrap();
    [&header[..], &inner].concat()
}
