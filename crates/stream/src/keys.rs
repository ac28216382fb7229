//! Where the next keys of a connection come from, whichever end of the handshake this was.

use linerate_record::{Channel, Cipher, KeySource, KeyUpdateRate, RecordError, RecordLimit, TrafficKey};
use linerate_tls::{ClientKeySchedule, Connected, Established, KeptKeys, KeySchedule};

/// Key updates in a second that are taken from the other end.
const KEY_UPDATES_LIMIT: u32 = 100;
/// The same on streams whose sender was asked for them: one for every few records.
const ASKED_KEY_UPDATES_LIMIT: u32 = 1_000_000;

/// The key schedule of one end.
#[derive(Debug)]
pub(crate) enum Keys {
    Client(ClientKeySchedule),
    Listener(KeySchedule),
}

impl KeySource for Keys {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        match self {
            Self::Client(schedule) => schedule.next_sending_key(),
            Self::Listener(schedule) => schedule.next_sending_key(),
        }
    }

    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        match self {
            Self::Client(schedule) => schedule.next_receiving_key(),
            Self::Listener(schedule) => schedule.next_receiving_key(),
        }
    }
}

/// What a connection's keys are for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyUse {
    /// Directions whose keys are kept may be handed over later.
    pub(crate) kept: KeptKeys,
    /// The sending key is changed after so many records, or after as many as its cipher allows.
    pub(crate) records: Option<u64>,
}

impl KeyUse {
    fn rate(self) -> KeyUpdateRate {
        KeyUpdateRate::new(if self.records.is_some() { ASKED_KEY_UPDATES_LIMIT } else { KEY_UPDATES_LIMIT })
    }

    fn limit(self, cipher: Cipher) -> RecordLimit {
        let limit = RecordLimit::of(cipher);
        self.records.map_or(limit, |records| limit.lowered_to(records))
    }
}

/// The client's record layer.
pub(crate) fn of_client(connected: Connected, keys: KeyUse) -> Result<Channel<Keys>, RecordError> {
    let limit = keys.limit(connected.send.key.cipher());
    let rate = keys.rate();
    Ok(connected.into_channel_keeping(limit, keys.kept, rate)?.with_keys(Keys::Client))
}

/// The listener's.
pub(crate) fn of_listener(established: Established, keys: KeyUse) -> Result<Channel<Keys>, RecordError> {
    let limit = keys.limit(established.send.key.cipher());
    let rate = keys.rate();
    Ok(established.into_channel_keeping(limit, keys.kept, rate)?.with_keys(Keys::Listener))
}
