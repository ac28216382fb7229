//! A client that seals what no client should: any content type, any padding. Written from the RFCs, apart from the
//! record layer under test.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use linerate_record::{Cipher, TrafficKey, Version};

const IV: [u8; 12] = [0x5A; 12];

/// The key that both sides have after so many updates.
pub(crate) fn traffic_key(version: Version, cipher: Cipher, generation: u8) -> TrafficKey {
    let key = vec![generation; cipher.key_bytes()];
    TrafficKey::new(version, cipher, &key, IV).expect("the key has the cipher's length")
}

/// The client's sending half.
pub(crate) struct Client {
    version: Version,
    cipher: Cipher,
    generation: u8,
    sequence: u64,
    key: LessSafeKey,
}

impl Client {
    pub(crate) fn new(version: Version, cipher: Cipher, sequence: u64) -> Self {
        Self { version, cipher, generation: 0, sequence, key: key(cipher, 0) }
    }

    /// Follows a key update of its own.
    pub(crate) fn update_key(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.key = key(self.cipher, self.generation);
        self.sequence = 0;
    }

    /// One record. `padding_bytes` zeros follow the content type in TLS 1.3.
    pub(crate) fn seal(&mut self, content_type: u8, payload: &[u8], padding_bytes: usize) -> Vec<u8> {
        let mut text = payload.to_vec();
        let mut nonce = IV;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        let is_tls13 = self.version == Version::Tls13;
        let outer_type = if is_tls13 { 23 } else { content_type };
        if is_tls13 {
            text.push(content_type);
            text.resize(text.len() + padding_bytes, 0);
        }
        let explicit: &[u8] =
            if is_tls13 || self.cipher == Cipher::ChaCha20Poly1305 { &[] } else { &nonce[4..] };

        let [high, low] = u16::try_from(explicit.len() + text.len() + 16).unwrap_or(u16::MAX).to_be_bytes();
        let mut record = vec![outer_type, 3, 3, high, low];
        let additional = if is_tls13 {
            record.clone()
        } else {
            // RFC 5246 6.2.3.3
            let length = u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes();
            [&self.sequence.to_be_bytes()[..], &[content_type, 3, 3], &length].concat()
        };
        record.extend(explicit);
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(additional), &mut text)
            .expect("sealing works");
        record.extend(text);
        self.sequence += 1;
        record
    }
}

fn key(cipher: Cipher, generation: u8) -> LessSafeKey {
    let algorithm = match cipher {
        Cipher::Aes128Gcm => &AES_128_GCM,
        Cipher::Aes256Gcm => &AES_256_GCM,
        Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
    };
    let bytes = vec![generation; cipher.key_bytes()];
    LessSafeKey::new(UnboundKey::new(algorithm, &bytes).expect("the key has the cipher's length"))
}
