//! Channels under keys that are no secret: for trying an engine, and for measuring what it costs.

use linerate_record::{
    Channel, Combination, KeySource, KeyUpdateRate, Opener, RecordError, RecordLimit, Sealer, TrafficKey,
};

/// Keys that count up, for each direction on its own.
#[derive(Debug)]
pub struct TrialKeys {
    combination: Combination,
    sending: u8,
    receiving: u8,
}

/// The number of the first key.
const FIRST: u8 = 1;

fn key(combination: Combination, number: u8) -> Result<TrafficKey, RecordError> {
    let Combination { version, cipher } = combination;
    TrafficKey::new(version, cipher, &vec![number; cipher.key_bytes()], [number ^ 0x3C; 12])
}

impl KeySource for TrialKeys {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.sending = self.sending.wrapping_add(1);
        key(self.combination, self.sending)
    }
    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.receiving = self.receiving.wrapping_add(1);
        key(self.combination, self.receiving)
    }
}

/// One end of a connection, both of whose directions can be handed over. A key makes at most `records_per_key` records, if the cipher allows so
/// many. Two of the same combination understand each other.
///
/// # Errors
/// [`RecordError::Crypto`].
pub fn channel(combination: Combination, records_per_key: u64) -> Result<Channel<TrialKeys>, RecordError> {
    let keys = TrialKeys { combination, sending: FIRST, receiving: FIRST };
    let limit = RecordLimit::of(combination.cipher).lowered_to(records_per_key);
    let sealer = Sealer::keeping(key(combination, FIRST)?, 1, limit)?;
    let opener = Opener::keeping(key(combination, FIRST)?, 1)?;
    Ok(Channel::new(sealer, opener, keys, KeyUpdateRate::new(u32::MAX)))
}
