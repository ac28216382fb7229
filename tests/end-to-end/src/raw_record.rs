//! Record protection as a hostile client wants it: any content type, any length, any padding. Written from the RFCs
//! apart from the server's own, so that the two can disagree.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::ConnectionTrafficSecrets;

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct RecordProtection {
    is_tls13: bool,
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
    /// Bytes of the nonce that each record carries: 8 in TLS 1.2 with AES-GCM (RFC 5288 3), else none.
    explicit_bytes: usize,
}

impl RecordProtection {
    pub(crate) fn new(is_tls13: bool, sequence: u64, secrets: &ConnectionTrafficSecrets) -> Self {
        let (algorithm, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => panic!("a cipher that the tests do not offer"),
        };
        let explicit_bytes = if !is_tls13 && algorithm != &CHACHA20_POLY1305 { 8 } else { 0 };
        let key = UnboundKey::new(algorithm, key.as_ref()).expect("a key of the cipher's length");
        let iv = iv.as_ref().try_into().expect("all these ciphers take 12 bytes");
        Self { is_tls13, key: LessSafeKey::new(key), iv, sequence, explicit_bytes }
    }

    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// What is authenticated beside the plaintext (RFC 8446 5.2, RFC 5246 6.2.3.3).
    fn additional(&self, header: [u8; 5], plaintext_bytes: usize) -> Vec<u8> {
        if self.is_tls13 {
            return header.to_vec();
        }
        let mut additional = self.sequence.to_be_bytes().to_vec();
        additional.extend(&header[..3]);
        additional.extend((plaintext_bytes as u16).to_be_bytes());
        additional
    }

    /// Seals a record. `padding` zeros follow the inner content type in TLS 1.3; no length is too long.
    pub(crate) fn seal(&mut self, content_type: u8, payload: &[u8], padding: usize) -> Vec<u8> {
        let mut text = payload.to_vec();
        if self.is_tls13 {
            text.push(content_type);
            text.resize(text.len() + padding, 0);
        }
        self.seal_text(if self.is_tls13 { 23 } else { content_type }, text)
    }

    /// Seals what stands in for plaintext, content type and padding.
    pub(crate) fn seal_text(&mut self, outer_type: u8, mut text: Vec<u8>) -> Vec<u8> {
        let nonce = self.nonce();
        let [high, low] = ((self.explicit_bytes + text.len() + 16) as u16).to_be_bytes();
        let header = [outer_type, 3, 3, high, low];
        let additional = self.additional(header, text.len());
        let mut record = header.to_vec();
        record.extend(&nonce[12 - self.explicit_bytes..]);
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(additional), &mut text)
            .expect("sealing works");
        record.extend(text);
        self.sequence += 1;
        record
    }

    /// Opens a record: its real content type and its plaintext. `None` if it does not authenticate.
    pub(crate) fn open(&mut self, record: &[u8]) -> Option<(u8, Vec<u8>)> {
        let header: [u8; 5] = record.get(..5)?.try_into().ok()?;
        let (explicit, sealed) = record[5..].split_at_checked(self.explicit_bytes)?;
        let mut nonce = self.nonce();
        nonce[12 - self.explicit_bytes..].copy_from_slice(explicit);
        let additional = self.additional(header, sealed.len().checked_sub(16)?);
        let mut text = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self.key.open_in_place(nonce, Aad::from(additional), &mut text).ok()?.len();
        text.truncate(opened);
        self.sequence += 1;
        if !self.is_tls13 {
            return Some((header[0], text));
        }
        let end = text.iter().rposition(|&byte| byte != 0)?;
        let content_type = text[end];
        text.truncate(end);
        Some((content_type, text))
    }
}
