//! What a peer's first bytes are: a TLS record, plain HTTP, or something else; and what its ClientHello wants that rustls
//! does not show.

use linerate_record::HEADER_BYTES;

/// The methods that a request spoken to the wrong port begins with; `PRI` begins HTTP/2 without TLS.
const HTTP_METHODS: [&[u8]; 10] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
    b"PRI ",
];

/// What the first bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    /// Too few to tell.
    TooFew,
    /// A handshake record of TLS.
    HandshakeRecord,
    /// A request in plain HTTP.
    PlainHttp,
    /// The ClientHello of SSL 2, which RFC 6176 forbids.
    Sslv2Hello,
    /// Neither.
    Other,
}

/// Looks at the first bytes that a peer sent.
pub(crate) fn recognise(bytes: &[u8]) -> FirstBytes {
    let Some(&first) = bytes.first() else { return FirstBytes::TooFew };
    if first == 22 {
        return match bytes.get(1) {
            None => FirstBytes::TooFew,
            Some(3) => FirstBytes::HandshakeRecord,
            Some(_) => FirstBytes::Other,
        };
    }
    if HTTP_METHODS.iter().any(|method| bytes.starts_with(method)) {
        return FirstBytes::PlainHttp;
    }
    if HTTP_METHODS.iter().any(|method| method.starts_with(bytes)) {
        return FirstBytes::TooFew;
    }
    // A two-byte length with its highest bit set, then message type 1.
    match (first & 0x80 != 0, bytes.get(2)) {
        (true, None) => FirstBytes::TooFew,
        (true, Some(1)) => FirstBytes::Sslv2Hello,
        _ => FirstBytes::Other,
    }
}

/// Whether the ClientHello in `record` (its header included) is of TLS 1.1 or below: those of TLS 1.2 and 1.3 say 1.2
/// here (RFC 8446 4.1.2). A hint: `false` if the field is not in this record.
///
/// rustls first misses an extension that such clients don't send, and answers with the wrong alert.
pub(crate) fn is_before_tls12(record: &[u8]) -> bool {
    const CLIENT_HELLO: u8 = 1;
    match record.get(HEADER_BYTES..HEADER_BYTES + 6) {
        Some(&[CLIENT_HELLO, _, _, _, major, minor]) => major == 3 && minor < 3,
        _ => false,
    }
}

/// The numbers of the ChaCha20-Poly1305 suites (RFC 8446 B.4, RFC 7905).
const CHACHA20_SUITES: [u16; 3] = [0x1303, 0xCCA8, 0xCCA9];

/// What a ClientHello says that decides how it is answered. Both are hints: `false` if it is not in the first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientHint {
    /// It puts a ChaCha20-Poly1305 suite first, as clients do that have no AES instructions.
    pub(crate) prefers_chacha20: bool,
    /// It does not offer TLS 1.3.
    pub(crate) is_tls12_only: bool,
}

impl ClientHint {
    /// All there are; each at its [`index`](Self::index).
    pub(crate) const ALL: [Self; 4] = [
        Self { prefers_chacha20: false, is_tls12_only: false },
        Self { prefers_chacha20: true, is_tls12_only: false },
        Self { prefers_chacha20: false, is_tls12_only: true },
        Self { prefers_chacha20: true, is_tls12_only: true },
    ];

    /// Of the ClientHello in `record` (its header included).
    pub(crate) fn of(record: &[u8]) -> Self {
        let mut cursor = Cursor(record);
        let suites = cursor.cipher_suites();
        let prefers_chacha20 = suites
            .and_then(|list| pairs(list).find(|suite| suite & 0x0F0F != 0x0A0A))
            .is_some_and(|suite| CHACHA20_SUITES.contains(&suite));
        let is_tls12_only = suites.and_then(|_| cursor.offers_tls13()) == Some(false);
        Self { prefers_chacha20, is_tls12_only }
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.prefers_chacha20) + 2 * usize::from(self.is_tls12_only)
    }
}

/// Reads along a ClientHello (RFC 8446 4.1.2); `None` where the record ends.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let [high, low] = *self.take(2)?.first_chunk()?;
        Some(u16::from_be_bytes([high, low]))
    }

    /// What follows a length of one byte.
    fn short_vector(&mut self) -> Option<&'a [u8]> {
        let length = *self.take(1)?.first()?;
        self.take(length.into())
    }

    /// What follows a length of two bytes.
    fn vector(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length.into())
    }

    /// From the record's beginning on. A list that the record's end cuts is as good as one that ends there.
    fn cipher_suites(&mut self) -> Option<&'a [u8]> {
        // Type and length of the message (4 bytes), version (2), random (32).
        self.take(HEADER_BYTES + 38)?;
        self.short_vector()?;
        let length = self.number()?;
        self.take(usize::from(length).min(self.0.len()))
    }

    /// From behind the suites on. A client without `supported_versions` offers none but those before TLS 1.3.
    fn offers_tls13(&mut self) -> Option<bool> {
        const SUPPORTED_VERSIONS: u16 = 43;
        const TLS13: u16 = 0x0304;
        self.short_vector()?;
        let mut extensions = Cursor(self.vector()?);
        while !extensions.0.is_empty() {
            let (kind, body) = (extensions.number()?, extensions.vector()?);
            if kind == SUPPORTED_VERSIONS {
                return Some(pairs(Cursor(body).short_vector()?).any(|version| version == TLS13));
            }
        }
        Some(false)
    }
}

/// Numbers of two bytes. Some stand for nothing (GREASE, RFC 8701).
fn pairs(list: &[u8]) -> impl Iterator<Item = u16> {
    list.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_are_recognised_at_every_length() {
        for method in HTTP_METHODS {
            let request = [method, b"/ HTTP/1.1\r\n"].concat();
            for length in 0..=request.len() {
                let expected = if length < method.len() { FirstBytes::TooFew } else { FirstBytes::PlainHttp };
                assert_eq!(recognise(&request[..length]), expected, "{:?}", &request[..length]);
            }
        }
        assert_eq!(recognise(&[22]), FirstBytes::TooFew);
        assert_eq!(recognise(&[22, 3]), FirstBytes::HandshakeRecord);
        assert_eq!(recognise(&[22, 4]), FirstBytes::Other);
        assert_eq!(recognise(&[0x80]), FirstBytes::TooFew);
        assert_eq!(recognise(&[0x80, 0x2E]), FirstBytes::TooFew);
        assert_eq!(recognise(&[0x80, 0x2E, 1, 3, 1]), FirstBytes::Sslv2Hello);
        assert_eq!(recognise(&[0x80, 0x2E, 2]), FirstBytes::Other);
        assert_eq!(recognise(b"SSH-2.0-OpenSSH"), FirstBytes::Other);
        assert_eq!(recognise(b"GEX"), FirstBytes::Other);
        assert_eq!(recognise(&[23, 3, 3, 0, 1, 0]), FirstBytes::Other);
    }

    #[test]
    fn old_versions_are_recognised() {
        for (message, is_old) in [
            (&[1, 0, 0, 9, 3, 1][..], true),
            (&[1, 0, 0, 9, 3, 2], true),
            (&[1, 0, 0, 9, 3, 0], true),
            (&[1, 0, 0, 9, 3, 3], false),
            (&[1, 0, 0, 9, 3, 4], false),
            (&[1, 0, 0, 9, 2, 1], false),
            (&[2, 0, 0, 9, 3, 1], false),
            (&[1, 0, 0, 9, 3], false),
        ] {
            assert_eq!(is_before_tls12(&[&[22, 3, 1, 0, 9][..], message].concat()), is_old, "{message:?}");
        }
    }

    fn hello(session_id_bytes: u8, suites: &[u16]) -> Vec<u8> {
        let mut record = vec![0; HEADER_BYTES + 38];
        record.push(session_id_bytes);
        record.resize(record.len() + usize::from(session_id_bytes), 0);
        record.extend((suites.len() as u16 * 2).to_be_bytes());
        record.extend(suites.iter().flat_map(|suite| suite.to_be_bytes()));
        record
    }

    /// One that goes on behind the suites, with these extensions.
    fn extended(extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let mut list = Vec::new();
        for (kind, body) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend((body.len() as u16).to_be_bytes());
            list.extend(*body);
        }
        let mut record = hello(32, &[0x1301]);
        record.extend([1, 0]);
        record.extend((list.len() as u16).to_be_bytes());
        record.extend(list);
        record
    }

    fn prefers_chacha20(record: &[u8]) -> bool {
        ClientHint::of(record).prefers_chacha20
    }

    #[test]
    fn every_hint_is_at_its_index() {
        for (index, hint) in ClientHint::ALL.into_iter().enumerate() {
            assert_eq!(hint.index(), index);
        }
    }

    #[test]
    fn the_first_suite_is_found_behind_grease() {
        for session_id_bytes in [0, 32, 255] {
            for (suites, prefers) in [
                (&[0x1303, 0x1301][..], true),
                (&[0xCCA9], true),
                (&[0x1A1A, 0xCCA8], true),
                (&[0x1301, 0x1303], false),
                (&[0x1A1A], false),
                (&[], false),
            ] {
                assert_eq!(prefers_chacha20(&hello(session_id_bytes, suites)), prefers, "{suites:x?}");
            }
        }
    }

    #[test]
    fn versions_are_found_among_the_extensions() {
        for (extensions, is_tls12_only) in [
            (&[][..], true),
            (&[(0, &[0; 9][..]), (10, &[0, 2, 0, 29])], true),
            (&[(0, &[0; 9]), (43, &[4, 3, 4, 3, 3])], false),
            (&[(43, &[6, 0x2A, 0x2A, 3, 3, 3, 4]), (0, &[])], false),
            (&[(43, &[2, 3, 3]), (51, &[3, 4])], true),
            // Malformed: no hint; rustls refuses it.
            (&[(43, &[4, 3, 3])], false),
            (&[(43, &[])], false),
        ] {
            let whole = extended(extensions);
            assert_eq!(ClientHint::of(&whole).is_tls12_only, is_tls12_only, "{extensions:?}");
            for length in 0..whole.len() {
                assert!(!ClientHint::of(&whole[..length]).is_tls12_only, "cut at {length}: {extensions:?}");
            }
        }
    }

    #[test]
    fn a_cut_hello_is_no_preference() {
        let whole = hello(32, &[0x1303]);
        for length in 0..whole.len() {
            assert!(!prefers_chacha20(&whole[..length]), "{length}");
        }
        // The list may not claim more than there is, nor be read past its end.
        let mut empty_list = hello(0, &[]);
        empty_list.extend([0x13, 0x03]);
        assert!(!prefers_chacha20(&empty_list));
    }
}
