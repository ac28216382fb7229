//! Records after the handshake, both those that authenticate and those that do not.

use crate::{
    Verdict,
    sealed::{Client, traffic_key},
};
use linerate_record::{
    AlertDescription, Channel, Cipher, Event, HEADER_BYTES, KeySource, KeyUpdateRate, KeyUpdateRequest,
    MAX_PLAINTEXT_BYTES, Opener, RecordError, RecordHeader, RecordLimit, Sealer, TrafficKey, Version,
};

const KEY_UPDATES_PER_SECOND: u32 = 3;
/// TLS 1.2 has sealed its Finished by then.
const FIRST_SEQUENCE: u64 = 1;

/// The first byte: bit 0 is TLS 1.2, bits 1 and 2 the cipher, bit 3 that one record follows as it stands on the wire.
/// Otherwise commands follow, each one record: content type, padding in bytes, two bytes of length, and as much of the
/// payload as there is; the rest of it is zeros.
///
/// # Panics
/// If a plaintext is not the one that was sealed, a forged record is taken, a fault of the peer is taken for one of
/// ours, or something follows a fatal alert.
pub fn record_open(data: &[u8]) -> Verdict {
    let Some((&settings, rest)) = data.split_first() else { return Verdict::Refused };
    let version = if settings & 1 == 0 { Version::Tls13 } else { Version::Tls12 };
    let cipher = Cipher::ALL[usize::from(settings >> 1 & 3) % Cipher::ALL.len()];
    let channel = channel(version, cipher);
    if settings & 8 == 0 {
        sealed_records(channel, Client::new(version, cipher, FIRST_SEQUENCE), rest)
    } else {
        wire_record(channel, rest)
    }
}

struct Keys {
    version: Version,
    cipher: Cipher,
    sending: u8,
    receiving: u8,
}

impl KeySource for Keys {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.sending = self.sending.wrapping_add(1);
        Ok(traffic_key(self.version, self.cipher, self.sending))
    }

    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.receiving = self.receiving.wrapping_add(1);
        Ok(traffic_key(self.version, self.cipher, self.receiving))
    }
}

fn channel(version: Version, cipher: Cipher) -> Channel<Keys> {
    let key = traffic_key(version, cipher, 0);
    let sealer = Sealer::new(&key, FIRST_SEQUENCE, RecordLimit::of(cipher)).expect("the key fits");
    let opener = Opener::new(&key, FIRST_SEQUENCE).expect("the key fits");
    let keys = Keys { version, cipher, sending: 0, receiving: 0 };
    Channel::new(sealer, opener, keys, KeyUpdateRate::new(KEY_UPDATES_PER_SECOND))
}

/// Records that authenticate, of any content.
fn sealed_records(mut channel: Channel<Keys>, mut client: Client, mut commands: &[u8]) -> Verdict {
    let mut updates = 0;
    while let Some((&[content_type, padding_bytes, high, low], rest)) = commands.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(MAX_PLAINTEXT_BYTES + 300);
        let (given, rest) = rest.split_at(length.min(rest.len()));
        commands = rest;
        let mut payload = given.to_vec();
        payload.resize(length, 0);

        let mut record = client.seal(content_type, &payload, padding_bytes.into());
        let header = RecordHeader::parse(&record, channel.incoming_layout());
        let received = match header {
            Ok(header) => {
                assert_eq!(header.map(RecordHeader::record_bytes), Some(record.len()));
                channel.receive(&mut record, 0)
            }
            Err(error) => Err(error),
        };
        match received {
            Ok(Event::Data(place)) => {
                assert_eq!((23, &record[place]), real_content(channel.version(), content_type, &payload));
            }
            Ok(Event::KeyUpdate(request)) => {
                client.update_key();
                updates += 1;
                assert!(updates <= KEY_UPDATES_PER_SECOND && channel.version() == Version::Tls13);
                answer_update(&mut channel, request);
            }
            Ok(Event::CloseNotify) => return Verdict::Taken,
            Ok(_) => {}
            Err(error) => return refused(channel, error),
        }
    }
    Verdict::Taken
}

/// Content type and plaintext of what was sealed. A type of zero is padding, too, and then the payload ends in the type
/// (RFC 8446 5.4).
fn real_content(version: Version, content_type: u8, payload: &[u8]) -> (u8, &[u8]) {
    if version == Version::Tls12 || content_type != 0 {
        return (content_type, payload);
    }
    let end = payload.iter().rposition(|byte| *byte != 0).expect("padding alone is refused");
    (payload[end], &payload[..end])
}

/// The first record as it comes from the wire: without the key nobody makes one that is taken.
fn wire_record(mut channel: Channel<Keys>, stream: &[u8]) -> Verdict {
    let layout = channel.incoming_layout();
    let header = match RecordHeader::parse(stream, layout) {
        Ok(Some(header)) => header,
        Ok(None) => return Verdict::Refused,
        Err(error) => return refused(channel, error),
    };
    assert!((HEADER_BYTES..=layout.record_limit_bytes()).contains(&header.record_bytes()));
    let Some(record) = stream.get(..header.record_bytes()) else { return Verdict::Refused };
    let mut record = record.to_vec();
    match channel.receive(&mut record, 0) {
        Ok(event) => panic!("a forged record was taken: {event:?}"),
        Err(error) => {
            assert!(channel.receive(&mut record, 0).is_err(), "a record after a fatal fault");
            refused(channel, error)
        }
    }
}

fn answer_update(channel: &mut Channel<Keys>, request: KeyUpdateRequest) {
    let mut outgoing = Vec::new();
    let sent = channel.prepare_sending(&mut outgoing).expect("the key is far from its limit");
    assert_eq!(sent, request == KeyUpdateRequest::Requested);
    assert_eq!(sent, !outgoing.is_empty());
    assert!(!channel.owes_key_update());
}

/// A fault: it must be the peer's, and its alert the last that is sealed.
fn refused(mut channel: Channel<Keys>, error: RecordError) -> Verdict {
    assert!(
        !matches!(error, RecordError::KeyExhausted | RecordError::Misuse(_) | RecordError::Crypto),
        "the peer caused a fault of ours: {error:?}"
    );
    if let Some(description) = error.alert() {
        assert_ne!(description, AlertDescription::InternalError);
        let mut outgoing = Vec::new();
        channel.alert(description, &mut outgoing).expect("an alert can always be sealed");
        assert_eq!(outgoing.len(), channel.outgoing_layout().record_bytes(2));
        assert!(channel.sealer().is_err(), "data after a fatal alert");
    }
    Verdict::Refused
}
