//! Where the next keys of a connection come from, whichever end of the handshake this was.

use linerate_record::{Channel, KeySource, KeyUpdateRate, RecordError, RecordLimit, TrafficKey};
use linerate_tls::{ClientKeySchedule, Connected, Established, KeptKeys, KeySchedule};

/// Key updates in a second that are taken from the other end.
const KEY_UPDATES_LIMIT: u32 = 100;

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

/// The client's record layer. Directions whose keys are `kept` may be handed over.
pub(crate) fn of_client(connected: Connected, kept: KeptKeys) -> Result<Channel<Keys>, RecordError> {
    let limit = RecordLimit::of(connected.send.key.cipher());
    let rate = KeyUpdateRate::new(KEY_UPDATES_LIMIT);
    Ok(connected.into_channel_keeping(limit, kept, rate)?.with_keys(Keys::Client))
}

/// The listener's.
pub(crate) fn of_listener(established: Established, kept: KeptKeys) -> Result<Channel<Keys>, RecordError> {
    let limit = RecordLimit::of(established.send.key.cipher());
    let rate = KeyUpdateRate::new(KEY_UPDATES_LIMIT);
    Ok(established.into_channel_keeping(limit, kept, rate)?.with_keys(Keys::Listener))
}
