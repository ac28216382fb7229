//! The little of DER that people want to see and webpki does not tell: what kind of key a certificate has, how long it
//! is, and what its issuer is called. Nothing is decided by it.

use crate::KeyAlgorithm;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
/// The identifier of RSA keys, with its tag.
const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";

/// The first value of `input`: its tag, its content, and what follows it. `None` where the input is cut off or longer
/// than any certificate.
fn value(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The content of the first value, which has to have this tag, and what follows.
fn expect(tag: u8, input: &[u8]) -> Option<(&[u8], &[u8])> {
    value(input).filter(|(found, ..)| *found == tag).map(|(_, content, rest)| (content, rest))
}

/// The kind of a key and its length in bits, from a SubjectPublicKeyInfo (RFC 5280 4.1.2.7). `None` for a kind that
/// linerate does not know.
pub(crate) fn key_kind(info: &[u8]) -> Option<(KeyAlgorithm, usize)> {
    let (info, _) = expect(SEQUENCE, info)?;
    let (algorithm, rest) = expect(SEQUENCE, info)?;
    let (key, _) = expect(BIT_STRING, rest)?;
    // The algorithm's identifier, and for curves the curve's: RFC 3279 2.3, RFC 5480 2.1.1, RFC 8410 3.
    const P256: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
    const P384: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22";
    const P521: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x23";
    const ED25519: &[u8] = b"\x06\x03\x2b\x65\x70";
    match algorithm {
        P256 => Some((KeyAlgorithm::EcdsaP256, 256)),
        P384 => Some((KeyAlgorithm::EcdsaP384, 384)),
        P521 => Some((KeyAlgorithm::EcdsaP521, 521)),
        ED25519 => Some((KeyAlgorithm::Ed25519, 256)),
        _ if algorithm.starts_with(RSA) => Some((KeyAlgorithm::Rsa, modulus_bits(key)?)),
        _ => None,
    }
}

/// The length of an RSA key, from a private key as PKCS#1 (RFC 8017 A.1.2) or PKCS#8 (RFC 5958) has it. `None` for other
/// keys.
pub(crate) fn rsa_private_key_bits(key: &[u8]) -> Option<usize> {
    const OCTET_STRING: u8 = 0x04;
    // Both begin with a version; behind it are the modulus, or the algorithm and a key of the other form.
    let behind_version = |key| {
        let (content, _) = expect(SEQUENCE, key)?;
        expect(INTEGER, content).map(|(_version, rest)| rest)
    };
    let content = behind_version(key)?;
    let modulus = match expect(SEQUENCE, content) {
        None => content,
        Some((algorithm, rest)) if algorithm.starts_with(RSA) => {
            behind_version(expect(OCTET_STRING, rest)?.0)?
        }
        Some(_) => return None,
    };
    bits(expect(INTEGER, modulus)?.0)
}

/// The length of an RSA modulus, from the content of a BIT STRING: the number of unused bits (none), then the key.
fn modulus_bits(key: &[u8]) -> Option<usize> {
    let (key, _) = expect(SEQUENCE, key.get(1..)?)?;
    bits(expect(INTEGER, key)?.0)
}

/// The length of a positive number.
fn bits(modulus: &[u8]) -> Option<usize> {
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros)?;
    Some((modulus.len() - zeros) * 8 - first.leading_zeros() as usize)
}

/// The common name in a distinguished name without its outer SEQUENCE, else the organisation.
pub(crate) fn common_name(name: &[u8]) -> Option<String> {
    const COMMON_NAME: &[u8] = b"\x55\x04\x03";
    const ORGANISATION: &[u8] = b"\x55\x04\x0a";
    const SET: u8 = 0x31;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    let (mut rest, mut found) = (name, None);
    while let Some((set, after)) = expect(SET, rest) {
        rest = after;
        let Some((attribute, _)) = expect(SEQUENCE, set) else { continue };
        let Some((kind, text)) = expect(OBJECT_IDENTIFIER, attribute) else { continue };
        let Some((_, text, _)) = value(text) else { continue };
        let text = || String::from_utf8_lossy(text).into_owned();
        if kind == COMMON_NAME {
            return Some(text());
        }
        if kind == ORGANISATION {
            found = Some(text());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_no_value() {
        assert_eq!(value(b"\x02\x02\x01\x02\xff"), Some((2, &b"\x01\x02"[..], &b"\xff"[..])));
        assert_eq!(value(b"\x04\x81\x01\x07"), Some((4, &b"\x07"[..], &b""[..])));
        for input in
            [&b""[..], b"\x02", b"\x02\x02\x01", b"\x02\x80", b"\x02\x84\0\0\0\x01\x01", b"\x02\x82\x01"]
        {
            assert_eq!(value(input), None, "{input:?}");
        }
    }

    #[test]
    fn a_modulus_has_as_many_bits_as_its_highest_one_says() {
        // Unused bits, SEQUENCE { INTEGER 00 80 01 }
        assert_eq!(modulus_bits(b"\x00\x30\x05\x02\x03\x00\x80\x01"), Some(16));
        assert_eq!(modulus_bits(b"\x00\x30\x04\x02\x02\x01\x00"), Some(9));
        assert_eq!(modulus_bits(b"\x00\x30\x03\x02\x01\x00"), None);
        assert_eq!(modulus_bits(b""), None);
    }

    #[test]
    fn the_common_name_goes_before_the_organisation() {
        let organisation = b"\x31\x0a\x30\x08\x06\x03\x55\x04\x0a\x0c\x01\x41";
        let common = b"\x31\x0a\x30\x08\x06\x03\x55\x04\x03\x0c\x01\x42";
        assert_eq!(common_name(&[&organisation[..], &common[..]].concat()).as_deref(), Some("B"));
        assert_eq!(common_name(organisation).as_deref(), Some("A"));
        assert_eq!(common_name(b"\x31"), None);
    }
}
