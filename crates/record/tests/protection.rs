//! Sealing and opening against each other: boundaries, tampering, limits, nonces.

use linerate_record::{
    Alert, AlertDescription, Channel, Cipher, Combination, ContentType, Event, HEADER_BYTES, KeySource,
    KeyUpdateRate, KeyUpdateRequest, Layout, MAX_PLAINTEXT_BYTES, Opener, RecordError, RecordHeader,
    RecordLimit, Sealer, TrafficKey, Version,
};
use std::{cell::RefCell, collections::HashSet, rc::Rc};

const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];

fn key(version: Version, cipher: Cipher, seed: u8) -> TrafficKey {
    TrafficKey::new(version, cipher, &vec![seed; cipher.key_bytes()], [seed ^ 0x5A; 12]).unwrap()
}

fn pair(version: Version, cipher: Cipher) -> (Sealer, Opener) {
    let key = key(version, cipher, 3);
    // TLS 1.2 has sealed its Finished by then.
    let sequence = u64::from(version == Version::Tls12);
    (Sealer::new(&key, sequence, RecordLimit::of(cipher)).unwrap(), Opener::new(&key, sequence).unwrap())
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 249) as u8).collect()
}

#[test]
fn every_length_around_the_boundaries_comes_back() {
    let lengths = (0..70).chain([255, 256, 257, 1459, 4095, 4096, 4097]).chain(16_300..=MAX_PLAINTEXT_BYTES);
    let lengths: Vec<usize> = lengths.collect();
    for version in VERSIONS {
        for cipher in Cipher::ALL {
            let (mut sealer, mut opener) = pair(version, cipher);
            let layout = sealer.layout();
            for &length in &lengths {
                let plaintext = text(length);
                let mut record = vec![0; layout.record_bytes(length)];
                if length % 2 == 0 {
                    sealer.seal_from(ContentType::ApplicationData, &plaintext, &mut record).unwrap();
                } else {
                    record[layout.prefix_bytes()..][..length].copy_from_slice(&plaintext);
                    sealer.seal_in_place(ContentType::ApplicationData, &mut record).unwrap();
                }
                let header = RecordHeader::parse(&record, layout).unwrap().unwrap();
                assert_eq!(header.record_bytes(), record.len());
                let opened = opener.open(&mut record).unwrap();
                assert_eq!(opened.content_type, ContentType::ApplicationData);
                assert_eq!(&record[opened.plaintext], plaintext, "{version:?} {cipher:?} {length}");
            }
        }
    }
}

#[test]
fn a_record_that_is_too_long_is_neither_made_nor_taken() {
    for version in VERSIONS {
        for cipher in Cipher::ALL {
            let (mut sealer, _) = pair(version, cipher);
            let layout = sealer.layout();
            let mut record = vec![0; layout.record_bytes(MAX_PLAINTEXT_BYTES + 1)];
            let refused = sealer.seal_in_place(ContentType::ApplicationData, &mut record);
            assert!(matches!(refused, Err(RecordError::Misuse(_))));
            let limit = layout.record_limit_bytes() - HEADER_BYTES;
            for (length, fits) in [(limit, true), (limit + 1, false), (65_535, false)] {
                let [high, low] = (length as u16).to_be_bytes();
                let parsed = RecordHeader::parse(&[23, 3, 3, high, low], layout);
                assert_eq!(parsed.is_ok(), fits, "{version:?} {length}: {parsed:?}");
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    for version in VERSIONS {
        for cipher in Cipher::ALL {
            let (mut sealer, _) = pair(version, cipher);
            let mut record = Vec::new();
            sealer.seal_append(ContentType::ApplicationData, &text(21), &mut record).unwrap();
            for bit in 0..record.len() * 8 {
                // The version field of a TLS 1.3 record is additional data, too: a change shows there as well.
                let mut bent = record.clone();
                bent[bit / 8] ^= 1 << (bit % 8);
                let (_, mut opener) = pair(version, cipher);
                assert!(opener.open(&mut bent).is_err(), "{version:?} {cipher:?} bit {bit}");
                // INV-OPEN-1: after a fault nothing is opened any more, not even what is right.
                assert!(opener.open(&mut record.clone()).is_err());
            }
        }
    }
}

#[test]
fn short_records_are_refused_without_a_panic() {
    for version in VERSIONS {
        for cipher in Cipher::ALL {
            for length in 0..40u16 {
                let (_, mut opener) = pair(version, cipher);
                let [high, low] = length.to_be_bytes();
                let mut record = vec![23, 3, 3, high, low];
                record.resize(HEADER_BYTES + usize::from(length), 0);
                assert_eq!(opener.open(&mut record).unwrap_err(), RecordError::BadRecordMac);
            }
        }
    }
}

/// A TLS 1.3 record with padding and an inner content type of our choice.
fn inner(cipher: Cipher, plaintext: &[u8], content_type: u8, padding: usize) -> Vec<u8> {
    // Sealed as TLS 1.2 never could: the inner type stands behind the text, so seal text + type + zeros by hand.
    use aws_lc_rs::aead::{Aad, Nonce};
    let key = raw_key(cipher, 3);
    let mut body = plaintext.to_vec();
    body.push(content_type);
    body.resize(body.len() + padding, 0);
    let [high, low] = ((body.len() + 16) as u16).to_be_bytes();
    let header = [23, 3, 3, high, low];
    let nonce = Nonce::assume_unique_for_key([3 ^ 0x5A; 12]);
    key.seal_in_place_append_tag(nonce, Aad::from(header), &mut body).unwrap();
    [&header[..], &body].concat()
}

#[test]
fn padding_is_taken_off_and_illegal_insides_are_refused() {
    for cipher in Cipher::ALL {
        let open = |mut record: Vec<u8>| {
            let (_, mut opener) = pair(Version::Tls13, cipher);
            opener.open(&mut record).map(|opened| (opened.content_type, record[opened.plaintext].to_vec()))
        };
        for padding in [0, 1, 15, 16, 17, 255, 1000, 16_384 - 5] {
            let opened = open(inner(cipher, b"hello", 23, padding)).unwrap();
            assert_eq!(opened, (ContentType::ApplicationData, b"hello".to_vec()), "{padding}");
        }
        assert_eq!(open(inner(cipher, b"", 23, 0)).unwrap(), (ContentType::ApplicationData, vec![]));
        assert_eq!(open(inner(cipher, &text(16_384), 23, 0)).unwrap().1, text(16_384));
        assert_eq!(open(inner(cipher, &text(16_385), 23, 0)).unwrap_err(), RecordError::Overflow);
        assert_eq!(open(inner(cipher, &text(16_384), 23, 1)).unwrap_err(), RecordError::Overflow);
        for (what, record) in [
            ("only zeros", inner(cipher, b"", 0, 30)),
            ("unknown type", inner(cipher, b"x", 24, 0)),
            ("change_cipher_spec", inner(cipher, &[1], 20, 0)),
            ("empty alert", inner(cipher, b"", 21, 0)),
            ("empty handshake", inner(cipher, b"", 22, 3)),
            ("unprotected alert", vec![21, 3, 3, 0, 2, 1, 0]),
            ("unprotected change_cipher_spec", vec![20, 3, 3, 0, 1, 1]),
        ] {
            let fault = open(record).unwrap_err();
            assert_eq!(fault.alert(), Some(AlertDescription::UnexpectedMessage), "{what}");
        }
    }
}

/// RFC 5246 6.2.3 lets a ciphertext have 2048 bytes more than the plaintext may have.
#[test]
fn tls12_takes_no_longer_plaintext_though_its_records_may_be_longer() {
    use aws_lc_rs::aead::{Aad, Nonce};
    let cipher = Cipher::Aes128Gcm;
    for (length, fits) in
        [(MAX_PLAINTEXT_BYTES, true), (MAX_PLAINTEXT_BYTES + 1, false), (MAX_PLAINTEXT_BYTES + 2024, false)]
    {
        let explicit = [7; 8];
        let nonce = [&[3 ^ 0x5A; 4][..], &explicit].concat().try_into().unwrap();
        let additional = [&1u64.to_be_bytes()[..], &[23, 3, 3], &(length as u16).to_be_bytes()].concat();
        let mut body = text(length);
        let key = raw_key(cipher, 3);
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(additional), &mut body)
            .unwrap();
        let [high, low] = ((explicit.len() + body.len()) as u16).to_be_bytes();
        let mut record = [&[23, 3, 3, high, low][..], &explicit, &body].concat();
        let opened = pair(Version::Tls12, cipher).1.open(&mut record).map(|opened| opened.plaintext.len());
        assert_eq!(opened, if fits { Ok(length) } else { Err(RecordError::Overflow) });
    }
}

#[test]
fn tls12_types_are_outside() {
    for cipher in Cipher::ALL {
        let (mut sealer, mut opener) = pair(Version::Tls12, cipher);
        let mut record = Vec::new();
        sealer.seal_append(ContentType::Alert, &[1, 0], &mut record).unwrap();
        assert_eq!(record[0], 21);
        let opened = opener.open(&mut record).unwrap();
        assert_eq!(opened.content_type, ContentType::Alert);
        assert_eq!(Alert::decode(&record[opened.plaintext]), Some(Alert::of(AlertDescription::CloseNotify)));
    }
}

/// A key schedule that derives nothing, but never gives the same key twice.
struct Numbered {
    version: Version,
    cipher: Cipher,
    sending: u8,
    receiving: u8,
    tickets: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl KeySource for Numbered {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.sending += 1;
        Ok(key(self.version, self.cipher, self.sending))
    }
    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.receiving += 1;
        Ok(key(self.version, self.cipher, self.receiving))
    }
    fn take_ticket(&mut self, ticket: &[u8]) -> Result<(), RecordError> {
        self.tickets.borrow_mut().push(ticket.to_vec());
        Ok(())
    }
}

/// Two ends: what one sends with, the other receives with.
fn ends(version: Version, cipher: Cipher, limit: u64, rate: u32) -> [Channel<Numbered>; 2] {
    let limit = RecordLimit::of(cipher).lowered_to(limit);
    [(10, 100), (100, 10)].map(|numbers| {
        let (sealer, opener, keys) = half(version, cipher, limit, numbers);
        Channel::new(sealer, opener, keys, KeyUpdateRate::new(rate))
    })
}

/// What an end is made of, from the numbers of its keys.
fn half(
    version: Version,
    cipher: Cipher,
    limit: RecordLimit,
    (sending, receiving): (u8, u8),
) -> (Sealer, Opener, Numbered) {
    let sequence = u64::from(version == Version::Tls12);
    (
        Sealer::new(&key(version, cipher, sending), sequence, limit).unwrap(),
        Opener::new(&key(version, cipher, receiving), sequence).unwrap(),
        Numbered { version, cipher, sending, receiving, tickets: Rc::default() },
    )
}

fn records(mut wire: &[u8], layout: Layout) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some(header) = RecordHeader::parse(wire, layout).unwrap() {
        let (record, rest) = wire.split_at(header.record_bytes());
        records.push(record.to_vec());
        wire = rest;
    }
    assert!(wire.is_empty());
    records
}

fn send(channel: &mut Channel<Numbered>, payload: &[u8]) -> Result<Vec<u8>, RecordError> {
    let mut wire = Vec::new();
    channel.prepare_sending(&mut wire)?;
    channel.sealer()?.seal_append(ContentType::ApplicationData, payload, &mut wire)?;
    Ok(wire)
}

/// The cipher itself, with the key of number `seed`: nothing of the record layer is in between.
fn raw_key(cipher: Cipher, seed: u8) -> aws_lc_rs::aead::LessSafeKey {
    use aws_lc_rs::aead::{LessSafeKey, UnboundKey};
    let algorithm = match cipher {
        Cipher::Aes128Gcm => &aws_lc_rs::aead::AES_128_GCM,
        Cipher::Aes256Gcm => &aws_lc_rs::aead::AES_256_GCM,
        Cipher::ChaCha20Poly1305 => &aws_lc_rs::aead::CHACHA20_POLY1305,
    };
    LessSafeKey::new(UnboundKey::new(algorithm, &vec![seed; cipher.key_bytes()]).unwrap())
}

/// The number whose nonce opens a record: by the cipher itself, which opens with no other than it was sealed with.
/// `position` is the record's place, which is authenticated in TLS 1.2.
fn nonce_number(
    version: Version,
    cipher: Cipher,
    seed: u8,
    record: &[u8],
    position: u64,
    numbers: u64,
) -> Option<u64> {
    use aws_lc_rs::aead::{Aad, Nonce};
    let key = raw_key(cipher, seed);
    let prefix_bytes = Layout::new(version, cipher).prefix_bytes();
    let additional = match version {
        Version::Tls13 => record[..HEADER_BYTES].to_vec(),
        Version::Tls12 => {
            let plaintext_bytes = (record.len() - prefix_bytes - 16) as u16;
            [&position.to_be_bytes()[..], &record[..3], &plaintext_bytes.to_be_bytes()].concat()
        }
    };
    (0..numbers).find(|number| {
        let mut nonce = [seed ^ 0x5A; 12];
        nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, mask)| *byte ^= mask);
        let mut body = record[prefix_bytes..].to_vec();
        key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(&additional), &mut body).is_ok()
    })
}

/// INV-NONCE-1, INV-LIMIT-1: over many key updates no (key, nonce) is used twice, and no key beyond its limit. Which nonce a
/// record was sealed with is not what the sender counts, but what the cipher says.
#[test]
fn keys_change_before_the_limit_and_no_nonce_comes_twice() {
    for cipher in Cipher::ALL {
        for limit in [3, 4, 7, 50] {
            let [mut server, mut client] = ends(Version::Tls13, cipher, limit, 100);
            let mut seen = HashSet::new();
            let (mut seed, mut sealed) = (10u8, 0u64);
            for round in 0..40usize {
                let payload = text(round * 7 + 1);
                let mut got = Vec::new();
                for mut record in records(&send(&mut server, &payload).unwrap(), client.incoming_layout()) {
                    let number = nonce_number(Version::Tls13, cipher, seed, &record, sealed, limit + 1);
                    let number = number.expect("no nonce of this key opens it");
                    assert!(seen.insert((seed, number)), "nonce {number} of key {seed} used twice");
                    sealed += 1;
                    assert!(sealed <= limit, "a key sealed {sealed} records, {limit} allowed");
                    match client.receive(&mut record, round as u64 * 1000).unwrap() {
                        Event::Data(range) => got.extend_from_slice(&record[range]),
                        Event::KeyUpdate(request) => {
                            assert_eq!(request, KeyUpdateRequest::NotRequested);
                            (seed, sealed) = (seed + 1, 0);
                        }
                        other => panic!("{other:?}"),
                    }
                }
                assert_eq!(got, payload);
            }
            assert!(server.key_updates_sent() > 0 || limit == 50);
            assert_eq!(server.key_updates_sent(), client.key_updates_received());
        }
    }
}

/// INV-NONCE-1 where the key stays: TLS 1.2, whose records with AES-GCM say themselves which nonce they have.
#[test]
fn no_nonce_comes_twice_in_tls_1_2() {
    for cipher in Cipher::ALL {
        let [mut server, _] = ends(Version::Tls12, cipher, 40, 100);
        let mut seen = HashSet::new();
        // The handshake's Finished was number 0.
        for position in 1.. {
            let Ok(record) = send(&mut server, &text(position as usize)) else { break };
            let number = nonce_number(Version::Tls12, cipher, 10, &record, position, 41);
            let number = number.expect("no nonce of this key opens it");
            assert!(number > 0 && seen.insert(number), "nonce {number} of record {position} used twice");
            if cipher != Cipher::ChaCha20Poly1305 {
                let explicit: [u8; 8] = record[HEADER_BYTES..HEADER_BYTES + 8].try_into().unwrap();
                let mask = u64::from_be_bytes([10 ^ 0x5A; 8]);
                assert_eq!(u64::from_be_bytes(explicit) ^ mask, number, "the peer opens it by what it says");
            }
        }
        assert_eq!(seen.len(), 40 - 1 - 2, "all but Finished and the two that are kept back");
    }
}

#[test]
fn a_requested_key_update_is_answered_once() {
    let [mut server, mut client] = ends(Version::Tls13, Cipher::Aes256Gcm, u64::MAX, 100);
    let mut asking = Vec::new();
    client.sealer().unwrap().seal_append(ContentType::Handshake, &[24, 0, 0, 1, 1], &mut asking).unwrap();
    assert_eq!(server.receive(&mut asking, 0).unwrap(), Event::KeyUpdate(KeyUpdateRequest::Requested));
    assert!(server.owes_key_update());
    let mut wire = Vec::new();
    assert!(server.prepare_sending(&mut wire).unwrap());
    assert!(!server.prepare_sending(&mut wire).unwrap(), "one answer");
    let mut answer = records(&wire, client.incoming_layout());
    assert_eq!(answer.len(), 1);
    assert_eq!(client.receive(&mut answer[0], 0).unwrap(), Event::KeyUpdate(KeyUpdateRequest::NotRequested));
    let mut data = send(&mut server, b"after").unwrap();
    assert!(matches!(client.receive(&mut data, 0).unwrap(), Event::Data(_)));
}

/// For peers that die of one: the key has to do, and the connection ends by `close_notify`.
#[test]
fn a_channel_that_keeps_one_key_sends_no_update_at_its_limit_or_when_it_is_asked() {
    let [mut server, mut client] = ends(Version::Tls13, Cipher::Aes128Gcm, 6, 100);
    server.keep_one_key();
    let left = server.remaining_records();
    for _ in 0..left {
        assert!(server.can_send() && !server.can_change_key());
        let wire = send(&mut server, b"x").unwrap();
        for mut record in records(&wire, client.incoming_layout()) {
            assert!(
                matches!(client.receive(&mut record, 0).unwrap(), Event::Data(_)),
                "no update among them"
            );
        }
    }
    assert!(!server.can_send());
    assert_eq!(send(&mut server, b"x"), Err(RecordError::KeyExhausted));
    let mut farewell = Vec::new();
    server.alert(AlertDescription::CloseNotify, &mut farewell).unwrap();
    assert_eq!(client.receive(&mut farewell, 0).unwrap(), Event::CloseNotify);
    assert_eq!(server.key_updates_sent(), 0);

    let [mut server, mut client] = ends(Version::Tls13, Cipher::Aes128Gcm, u64::MAX, 100);
    server.keep_one_key();
    let mut asking = Vec::new();
    client.sealer().unwrap().seal_append(ContentType::Handshake, &[24, 0, 0, 1, 1], &mut asking).unwrap();
    assert_eq!(server.receive(&mut asking, 0).unwrap(), Event::KeyUpdate(KeyUpdateRequest::Requested));
    assert!(!server.can_send(), "nothing may follow under the old key (RFC 8446 4.6.3)");
    assert!(!server.prepare_sending(&mut Vec::new()).unwrap());
}

#[test]
fn a_storm_of_key_updates_is_cut() {
    let [mut server, _] = ends(Version::Tls13, Cipher::Aes128Gcm, u64::MAX, 5);
    for (round, number) in (100u8..).enumerate() {
        let mut client = Sealer::new(
            &key(Version::Tls13, Cipher::Aes128Gcm, number),
            0,
            RecordLimit::of(Cipher::Aes128Gcm),
        );
        let mut wire = Vec::new();
        client.as_mut().unwrap().seal_append(ContentType::Handshake, &[24, 0, 0, 1, 0], &mut wire).unwrap();
        match server.receive(&mut wire, 17) {
            Ok(event) => assert_eq!(event, Event::KeyUpdate(KeyUpdateRequest::NotRequested)),
            Err(fault) => {
                assert_eq!((round, fault), (5, RecordError::TooManyKeyUpdates));
                break;
            }
        }
    }
}

#[test]
fn the_least_limit_leaves_room_for_a_record_of_data() {
    let limit = RecordLimit::of(Cipher::Aes128Gcm).lowered_to(0);
    let sealer = Sealer::new(&key(Version::Tls13, Cipher::Aes128Gcm, 3), 0, limit).unwrap();
    assert_eq!(sealer.remaining_records(), 1);
}

/// INV-LIMIT-2, where nobody asks how much is left.
#[test]
fn a_sealer_keeps_two_records_back_for_control() {
    let limit = RecordLimit::of(Cipher::Aes128Gcm).lowered_to(4);
    let mut sealer = Sealer::new(&key(Version::Tls13, Cipher::Aes128Gcm, 3), 0, limit).unwrap();
    let mut seal = |content_type| sealer.seal_append(content_type, b"x", &mut Vec::new());
    assert_eq!(
        [(); 3].map(|()| seal(ContentType::ApplicationData)),
        [Ok(()), Ok(()), Err(RecordError::KeyExhausted)]
    );
    assert_eq!([(); 3].map(|()| seal(ContentType::Alert)), [Ok(()), Ok(()), Err(RecordError::KeyExhausted)]);
}

#[test]
fn tls12_stops_at_its_limit_and_still_says_goodbye() {
    for cipher in Cipher::ALL {
        let [mut server, mut client] = ends(Version::Tls12, cipher, 5, 100);
        let sent = (0..).take_while(|_| send(&mut server, b"x").is_ok()).count();
        // Of five records the handshake's Finished was one and two are kept back.
        assert_eq!(sent, 2);
        assert!(!server.can_send());
        let mut wire = Vec::new();
        server.alert(AlertDescription::CloseNotify, &mut wire).unwrap();
        assert!(!wire.is_empty());
        // The client has missed two records; a fresh view of the alert needs its place in the sequence.
        let mut opener = Opener::new(&key(Version::Tls12, cipher, 10), 3).unwrap();
        let opened = opener.open(&mut wire).unwrap();
        assert_eq!(opened.content_type, ContentType::Alert);
        assert!(matches!(server.sealer(), Err(RecordError::Misuse(_))), "nothing after close_notify");
        assert!(client.sealer().is_ok());
    }
}

/// What the server makes of a client's handshake messages, a record each.
fn handshake_after_the_handshake(payloads: &[&[u8]]) -> Result<Event, RecordError> {
    let [mut server, mut client] = ends(Version::Tls12, Cipher::Aes128Gcm, u64::MAX, 100);
    payloads.iter().try_fold(Event::Nothing, |_, payload| {
        let mut wire = Vec::new();
        client.sealer().unwrap().seal_append(ContentType::Handshake, payload, &mut wire).unwrap();
        server.receive(&mut wire, 0)
    })
}

#[test]
fn tls12_refuses_to_renegotiate_once() {
    let hello = [&[1, 0, 0, 250][..], &[3; 250]].concat();
    assert_eq!(handshake_after_the_handshake(&[&hello]), Ok(Event::RenegotiationRefused));
    assert!(handshake_after_the_handshake(&[&hello, &hello]).is_err());
    for piece_bytes in [1, 3, 100, 253] {
        let pieces: Vec<_> = hello.chunks(piece_bytes).collect();
        assert_eq!(handshake_after_the_handshake(&pieces), Ok(Event::RenegotiationRefused));
        let (_, all_but_the_last) = pieces.split_last().unwrap();
        assert_eq!(handshake_after_the_handshake(all_but_the_last), Ok(Event::Nothing), "{piece_bytes}");
    }
}

#[test]
fn tls12_takes_no_handshake_message_but_a_client_hello() {
    for message_type in (0..=255).filter(|message_type| *message_type != 1) {
        let fault = handshake_after_the_handshake(&[&[message_type, 0, 0, 0]]).unwrap_err();
        assert_eq!(fault.alert(), Some(AlertDescription::UnexpectedMessage), "{message_type}");
    }
}

/// Application data may come inside the message (RFC 5246 6.2.1), but not for ever without content.
#[test]
fn tls12_bounds_empty_records_inside_a_client_hello() {
    let [mut server, mut client] = ends(Version::Tls12, Cipher::Aes128Gcm, u64::MAX, 100);
    let mut part = Vec::new();
    client.sealer().unwrap().seal_append(ContentType::Handshake, &[1, 0, 0, 9], &mut part).unwrap();
    assert_eq!(server.receive(&mut part, 0), Ok(Event::Nothing));
    assert!(matches!(server.receive(&mut send(&mut client, b"x").unwrap(), 0), Ok(Event::Data(_))));
    let cut_after = (0..1000).position(|_| server.receive(&mut send(&mut client, b"").unwrap(), 0).is_err());
    assert_eq!(cut_after, Some(32));
}

/// What a client makes of a server's records, the types and payloads of which are given; and the tickets it was given.
fn at_the_client(
    version: Version,
    records: &[(ContentType, &[u8])],
) -> (Result<Event, RecordError>, Vec<Vec<u8>>) {
    let cipher = Cipher::Aes128Gcm;
    let [mut server, _] = ends(version, cipher, u64::MAX, 100);
    let (sealer, opener, keys) = half(version, cipher, RecordLimit::of(cipher), (100, 10));
    let tickets = Rc::clone(&keys.tickets);
    let mut client = Channel::for_client(sealer, opener, keys, KeyUpdateRate::new(100));
    let last = records.iter().try_fold(Event::Nothing, |_, (content_type, payload)| {
        let mut wire = Vec::new();
        server.sealer().unwrap().seal_append(*content_type, payload, &mut wire).unwrap();
        client.receive(&mut wire, 0)
    });
    (last, tickets.take())
}

/// RFC 8446 5.1: no other record stands inside a message. A ticket's rest is not taken for a message of its own.
#[test]
fn a_client_takes_a_ticket_in_pieces_and_nothing_inside_it() {
    use ContentType::{ApplicationData, Handshake};
    let (first, rest) = (&[4, 0, 0, 6, 1, 2][..], &[24, 0, 0, 1][..]);
    let (last, tickets) = at_the_client(Version::Tls13, &[(Handshake, first), (Handshake, rest)]);
    assert_eq!((last, tickets), (Ok(Event::Nothing), vec![vec![1, 2, 24, 0, 0, 1]]));
    let (last, tickets) = at_the_client(Version::Tls13, &[(Handshake, first), (ApplicationData, b"x")]);
    assert_eq!(last.unwrap_err().alert(), Some(AlertDescription::UnexpectedMessage));
    assert!(tickets.is_empty());
    let [mut server, mut client] = ends(Version::Tls13, Cipher::Aes128Gcm, u64::MAX, 100);
    let mut wire = Vec::new();
    client.sealer().unwrap().seal_append(Handshake, &[4, 0, 0, 0], &mut wire).unwrap();
    let fault = server.receive(&mut wire, 0).unwrap_err();
    assert_eq!(fault.alert(), Some(AlertDescription::UnexpectedMessage), "clients send no tickets");
}

#[test]
fn a_tls12_server_asks_to_renegotiate_by_a_hello_request() {
    let (hello_request, client_hello) = ([0, 0, 0, 0], [1, 0, 0, 0]);
    let asked = at_the_client(Version::Tls12, &[(ContentType::Handshake, &hello_request)]).0;
    assert_eq!(asked, Ok(Event::RenegotiationRefused));
    let fault = at_the_client(Version::Tls12, &[(ContentType::Handshake, &client_hello)]).0.unwrap_err();
    assert_eq!(fault.alert(), Some(AlertDescription::UnexpectedMessage));
}

#[test]
fn what_a_channel_says_of_itself_follows_what_happens() {
    for combination in Combination::ALL {
        let [mut server, _] = ends(combination.version, combination.cipher, 100, 100);
        assert_eq!(server.combination(), combination);
        let open = |server: &Channel<Numbered>| server.can_send() && !server.sending_is_closed();
        assert!(open(&server) && !server.owes_key_update() && !server.is_handed_over());
        let mut wire = Vec::new();
        server.alert(AlertDescription::NoRenegotiation, &mut wire).unwrap();
        assert!(open(&server), "a warning closes nothing");
        server.alert(AlertDescription::CloseNotify, &mut wire).unwrap();
        assert!(!server.can_send() && server.sending_is_closed());
        let sent_bytes = wire.len();
        server.alert(AlertDescription::InternalError, &mut wire).unwrap();
        assert_eq!(wire.len(), sent_bytes, "nothing follows close_notify");
        let [mut failing, _] = ends(combination.version, combination.cipher, 100, 100);
        failing.alert(AlertDescription::DecodeError, &mut wire).unwrap();
        assert!(failing.sending_is_closed(), "nor a fatal alert");
    }
}

#[test]
fn alerts_end_what_they_must() {
    for version in VERSIONS {
        for (bytes, expected) in [
            (&[1, 0][..], Ok(Event::CloseNotify)),
            (&[2, 0], Ok(Event::CloseNotify)),
            (&[1, 90], Ok(Event::Nothing)),
            (&[2, 20], Err(None)),
            (&[9, 20], Err(Some(AlertDescription::DecodeError))),
            (&[2, 20, 2, 20], Err(Some(AlertDescription::DecodeError))),
        ] {
            let [mut server, mut client] = ends(version, Cipher::ChaCha20Poly1305, u64::MAX, 100);
            let mut wire = Vec::new();
            client.sealer().unwrap().seal_append(ContentType::Alert, bytes, &mut wire).unwrap();
            assert_eq!(
                server.receive(&mut wire, 0).map_err(RecordError::alert),
                expected,
                "{version:?} {bytes:?}"
            );
        }
    }
}

#[test]
fn empty_records_without_end_are_cut() {
    let [mut server, mut client] = ends(Version::Tls13, Cipher::Aes128Gcm, u64::MAX, 100);
    let cut_after = (0..1000).position(|_| server.receive(&mut send(&mut client, b"").unwrap(), 0).is_err());
    assert_eq!(cut_after, Some(32));
}

#[test]
fn another_record_inside_a_key_update_is_refused() {
    let [mut server, mut client] = ends(Version::Tls13, Cipher::Aes128Gcm, u64::MAX, 100);
    let mut half = Vec::new();
    client.sealer().unwrap().seal_append(ContentType::Handshake, &[24, 0, 0], &mut half).unwrap();
    assert_eq!(server.receive(&mut half, 0).unwrap(), Event::Nothing);
    let fault = server.receive(&mut send(&mut client, b"x").unwrap(), 0).unwrap_err();
    assert_eq!(fault.alert(), Some(AlertDescription::UnexpectedMessage));
}

#[test]
fn debug_output_shows_no_key() {
    let [server, _] = ends(Version::Tls13, Cipher::Aes256Gcm, u64::MAX, 100);
    let shown = format!("{server:?}");
    for part in ["Sealer", "Opener", "sequence"] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!shown.contains("10, 10"), "{shown}");
}

#[test]
fn the_record_behind_one_that_was_thrown_away_is_opened() {
    for version in VERSIONS {
        for cipher in Cipher::ALL {
            let [mut server, mut client] = ends(version, cipher, 1000, 100);
            for skipped in 0..4 {
                for _ in 0..skipped {
                    send(&mut server, &text(100)).unwrap();
                    client.skip_record().unwrap();
                }
                let mut record = send(&mut server, b"opened").unwrap();
                let Event::Data(range) = client.receive(&mut record, 0).unwrap() else {
                    panic!("it is data")
                };
                assert_eq!(&record[range], b"opened");
            }
            // One that was passed over without having been sent, or the other way round, is noticed.
            client.skip_record().unwrap();
            let mut record = send(&mut server, b"refused").unwrap();
            assert_eq!(client.receive(&mut record, 0), Err(RecordError::BadRecordMac));
            // INV-OPEN-1
            assert!(client.skip_record().is_err());
        }
    }
}
