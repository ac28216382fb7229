//! The record layer against the traces of RFC 8448, section 3 ("Simple 1-RTT Handshake").

use linerate_record::{Cipher, ContentType, Opener, RecordLimit, Sealer, TrafficKey, Version};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn key(key: &str, iv: &str) -> TrafficKey {
    TrafficKey::new(Version::Tls13, Cipher::Aes128Gcm, &bytes(key), bytes(iv).try_into().unwrap()).unwrap()
}

fn server_key() -> TrafficKey {
    key("9f 02 28 3b 6c 9c 07 ef c2 6b b9 f2 ac 92 e3 56", "cf 78 2b 88 dd 83 54 9a ad f1 e9 84")
}

fn client_key() -> TrafficKey {
    key("17 42 2d da 59 6e d5 d9 ac d8 90 e3 c6 3f 50 51", "5b 78 92 3d ee 08 57 90 33 e5 23 d9")
}

const CLIENT_DATA: &str = "17 03 03 00 43 a2 3f 70 54 b6 2c 94
    d0 af fa fe 82 28 ba 55 cb ef ac ea 42 f9 14 aa 66 bc ab 3f 2b
    98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b 62 97 4e 1f 5a 62
    92 a2 97 70 14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4";
const SERVER_DATA: &str = "17 03 03 00 43 2e 93 7e 11 ef 4a c7
    40 e5 38 ad 36 00 5f c4 a4 69 32 fc 32 25 d0 5f 82 aa 1b 36 e3
    0e fa f9 7d 90 e6 df fc 60 2d cb 50 1a 59 a8 fc c4 9c 4b f2 e5
    f0 a2 1c 00 47 c2 ab f3 32 54 0d d0 32 e1 67 c2 95 5d";
const CLIENT_ALERT: &str = "17 03 03 00 13 c9 87 27 60 65 56 66 b7 4d 7f f1 15 3e fd 6d b6 d0 b0 e3";
const SERVER_ALERT: &str = "17 03 03 00 13 b5 8f d6 71 66 eb f5 99 d2 47 20 cf be 7e fa 7a 88 64 a9";

fn payload() -> Vec<u8> {
    (0..50).collect()
}

#[test]
fn the_clients_records_open() {
    let mut opener = Opener::new(&client_key(), 0).unwrap();
    let mut data = bytes(CLIENT_DATA);
    let opened = opener.open(&mut data).unwrap();
    assert_eq!(opened.content_type, ContentType::ApplicationData);
    assert_eq!(&data[opened.plaintext], payload());
    let mut alert = bytes(CLIENT_ALERT);
    let opened = opener.open(&mut alert).unwrap();
    assert_eq!(opened.content_type, ContentType::Alert);
    assert_eq!(&alert[opened.plaintext], [1, 0]);
}

#[test]
fn the_servers_records_are_sealed_byte_for_byte() {
    // The session ticket took sequence number 0.
    let mut sealer = Sealer::new(&server_key(), 1, RecordLimit::of(Cipher::Aes128Gcm)).unwrap();
    let mut outgoing = Vec::new();
    sealer.seal_append(ContentType::ApplicationData, &payload(), &mut outgoing).unwrap();
    assert_eq!(outgoing, bytes(SERVER_DATA));
    outgoing.clear();
    sealer.seal_append(ContentType::Alert, &[1, 0], &mut outgoing).unwrap();
    assert_eq!(outgoing, bytes(SERVER_ALERT));
}

#[test]
fn sealing_in_place_is_the_same() {
    let mut sealer = Sealer::new(&server_key(), 1, RecordLimit::of(Cipher::Aes128Gcm)).unwrap();
    let layout = sealer.layout();
    let mut record = vec![0xEE; layout.record_bytes(50)];
    record[layout.prefix_bytes()..][..50].copy_from_slice(&payload());
    sealer.seal_in_place(ContentType::ApplicationData, &mut record).unwrap();
    assert_eq!(record, bytes(SERVER_DATA));
}
