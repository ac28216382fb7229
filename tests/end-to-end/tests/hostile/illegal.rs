//! Illegal records after the handshake, each with the alert that it deserves. The tests of kernel TLS (`tests/guest`)
//! include this file, too.

use linerate_end_to_end::{
    RawClient,
    content_type::{ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE},
};

const UNEXPECTED_MESSAGE: u8 = 10;
const BAD_RECORD_MAC: u8 = 20;
const RECORD_OVERFLOW: u8 = 22;
const ILLEGAL_PARAMETER: u8 = 47;
const DECODE_ERROR: u8 = 50;

/// What is sent, made by a client whose handshake is over; its name; and the alert that it deserves.
pub(crate) type Case = (&'static str, u8, fn(&mut RawClient) -> Vec<u8>);

/// A record that nothing protects.
fn unprotected(content_type: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    [&[content_type, 3, 3, high, low], payload].concat()
}

fn damaged(mut record: Vec<u8>, at_from_end: usize) -> Vec<u8> {
    let at = record.len() - 1 - at_from_end;
    record[at] ^= 0x40;
    record
}

/// Illegal in either version.
pub(crate) const CASES: &[Case] = &[
    ("a wrong tag", BAD_RECORD_MAC, |client| damaged(client.seal_request("1.bin"), 0)),
    ("a wrong byte of ciphertext", BAD_RECORD_MAC, |client| damaged(client.seal_request("1.bin"), 20)),
    ("a record a second time", BAD_RECORD_MAC, |client| client.seal_request("1.bin").repeat(2)),
    ("a record left out", BAD_RECORD_MAC, |client| {
        let _left_out = client.seal_request("1.bin");
        client.seal_request("1.bin")
    }),
    ("a record without room for a tag", BAD_RECORD_MAC, |_| unprotected(APPLICATION_DATA, &[0; 15])),
    ("an empty record that nothing protects", BAD_RECORD_MAC, |_| unprotected(APPLICATION_DATA, &[])),
    ("a header that announces 65535 bytes", RECORD_OVERFLOW, |_| vec![APPLICATION_DATA, 3, 3, 0xff, 0xff]),
    ("plaintext of 2^14 + 1 bytes", RECORD_OVERFLOW, |client| {
        client.seal(APPLICATION_DATA, &vec![b'x'; (1 << 14) + 1])
    }),
    ("an unknown content type outside", UNEXPECTED_MESSAGE, |_| unprotected(99, b"what is this")),
    ("a heartbeat", UNEXPECTED_MESSAGE, |_| unprotected(24, &[1, 0x40, 0])),
    ("an alert of one byte", DECODE_ERROR, |client| client.seal(ALERT, &[1])),
    ("an alert of three bytes", DECODE_ERROR, |client| client.seal(ALERT, &[1, 0, 0])),
    ("an alert of no bytes", UNEXPECTED_MESSAGE, |client| client.seal(ALERT, &[])),
    ("a handshake record of no bytes", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[])),
    ("empty records without end", UNEXPECTED_MESSAGE, |client| {
        (0..100).flat_map(|_| client.seal(APPLICATION_DATA, &[])).collect()
    }),
    ("a protected change_cipher_spec", UNEXPECTED_MESSAGE, |client| client.seal(CHANGE_CIPHER_SPEC, &[1])),
];

/// Illegal in TLS 1.3.
pub(crate) const CASES_13: &[Case] = &[
    ("a header one byte over the limit", RECORD_OVERFLOW, |_| vec![APPLICATION_DATA, 3, 3, 0x41, 0x01]),
    ("padding beyond 2^14 + 1 bytes", RECORD_OVERFLOW, |client| {
        client.seal_padded(APPLICATION_DATA, b"x", 1 << 14)
    }),
    ("an unprotected change_cipher_spec", UNEXPECTED_MESSAGE, |_| unprotected(CHANGE_CIPHER_SPEC, &[1])),
    ("an unprotected close_notify", UNEXPECTED_MESSAGE, |_| unprotected(ALERT, &[1, 0])),
    ("an unprotected fatal alert", UNEXPECTED_MESSAGE, |_| unprotected(ALERT, &[2, 80])),
    ("an unprotected handshake message", UNEXPECTED_MESSAGE, |_| unprotected(HANDSHAKE, &[24, 0, 0, 1, 0])),
    ("an unknown content type inside", UNEXPECTED_MESSAGE, |client| client.seal(99, b"what is this")),
    ("nothing but padding", UNEXPECTED_MESSAGE, |client| client.seal_text(APPLICATION_DATA, &[0; 100])),
    ("no plaintext at all", UNEXPECTED_MESSAGE, |client| client.seal_text(APPLICATION_DATA, &[])),
    ("a ClientHello", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[1, 0, 0, 2, 3, 3])),
    ("a NewSessionTicket", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[4, 0, 0, 1, 0])),
    ("a Finished", UNEXPECTED_MESSAGE, |client| {
        client.seal(HANDSHAKE, &[[20, 0, 0, 32].as_slice(), &[7; 32]].concat())
    }),
    ("an end_of_early_data", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[5, 0, 0, 0])),
    ("a KeyUpdate with the value 2", ILLEGAL_PARAMETER, |client| client.seal(HANDSHAKE, &[24, 0, 0, 1, 2])),
    ("a KeyUpdate of two bytes", DECODE_ERROR, |client| client.seal(HANDSHAKE, &[24, 0, 0, 2, 0, 0])),
    ("a KeyUpdate of no bytes", DECODE_ERROR, |client| client.seal(HANDSHAKE, &[24, 0, 0, 0])),
    ("two KeyUpdates in a record", UNEXPECTED_MESSAGE, |client| {
        client.seal(HANDSHAKE, &[24, 0, 0, 1, 0, 24, 0, 0, 1, 0])
    }),
    ("data in the middle of a KeyUpdate", UNEXPECTED_MESSAGE, |client| {
        [client.seal(HANDSHAKE, &[24, 0, 0]), client.seal_request("1.bin"), client.seal(HANDSHAKE, &[1, 0])]
            .concat()
    }),
    ("the old key after a KeyUpdate", BAD_RECORD_MAC, |client| {
        [client.seal(HANDSHAKE, &[24, 0, 0, 1, 0]), client.seal_request("1.bin")].concat()
    }),
    ("the next key without a KeyUpdate", BAD_RECORD_MAC, |client| {
        client.next_sending_key();
        client.seal_request("1.bin")
    }),
];

/// Illegal in TLS 1.2.
pub(crate) const CASES_12: &[Case] = &[
    ("a header one byte over the limit", RECORD_OVERFLOW, |_| vec![APPLICATION_DATA, 3, 3, 0x48, 0x01]),
    ("a second wish to renegotiate", UNEXPECTED_MESSAGE, |client| {
        [client.seal(HANDSHAKE, &[1, 0, 0, 2, 3, 3]), client.seal(HANDSHAKE, &[1, 0, 0, 2, 3, 3])].concat()
    }),
    ("a HelloRequest", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[0, 0, 0, 0])),
    ("a ServerHello", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[2, 0, 0, 2, 3, 3])),
    ("a NewSessionTicket", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[4, 0, 0, 1, 0])),
    ("a Certificate", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[11, 0, 0, 3, 0, 0, 0])),
    ("a CertificateVerify", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[15, 0, 0, 0])),
    ("a ClientKeyExchange", UNEXPECTED_MESSAGE, |client| {
        client.seal(HANDSHAKE, &[[16, 0, 0, 33, 32].as_slice(), &[7; 32]].concat())
    }),
    ("a Finished", UNEXPECTED_MESSAGE, |client| {
        client.seal(HANDSHAKE, &[[20, 0, 0, 12].as_slice(), &[7; 12]].concat())
    }),
    ("a KeyUpdate", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[24, 0, 0, 1, 0])),
    ("an unknown handshake message", UNEXPECTED_MESSAGE, |client| client.seal(HANDSHAKE, &[99, 0, 0, 0])),
    ("a ClientHello of 16 MiB", DECODE_ERROR, |client| client.seal(HANDSHAKE, &[1, 0xff, 0xff, 0xff, 3])),
    ("a Finished behind a ClientHello", UNEXPECTED_MESSAGE, |client| {
        client.seal(HANDSHAKE, &[1, 0, 0, 2, 3, 3, 20, 0, 0, 0])
    }),
];

/// The fatal alert that comes. TLS 1.2's refusal to renegotiate is a warning and comes before.
#[track_caller]
pub(crate) fn fatal_alert(client: &mut RawClient) -> u8 {
    loop {
        match client.receive_alert() {
            [2, description] => return description,
            [1, 100] => {}
            other => panic!("the alert {other:?}"),
        }
    }
}
