//! Channels under keys that are no secret: for trying an engine, and for measuring what it costs.

use linerate_record::{
    Channel, Combination, KeySource, KeyUpdateRate, Opener, RecordError, RecordLimit, Sealer, TrafficKey,
};

/// Keys that count up.
#[derive(Debug)]
pub struct TrialKeys {
    combination: Combination,
    number: u8,
}

impl TrialKeys {
    fn key(&self) -> Result<TrafficKey, RecordError> {
        let Combination { version, cipher } = self.combination;
        TrafficKey::new(version, cipher, &vec![self.number; cipher.key_bytes()], [self.number ^ 0x3C; 12])
    }

    fn next(&mut self) -> Result<TrafficKey, RecordError> {
        self.number = self.number.wrapping_add(1);
        self.key()
    }
}

impl KeySource for TrialKeys {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.next()
    }
    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.next()
    }
}

/// One end of a connection, which can be handed over. A key makes at most `records_per_key` records, if the cipher allows so
/// many. Two of the same combination understand each other.
///
/// # Errors
/// [`RecordError::Crypto`].
pub fn channel(combination: Combination, records_per_key: u64) -> Result<Channel<TrialKeys>, RecordError> {
    let keys = TrialKeys { combination, number: 1 };
    let limit = RecordLimit::of(combination.cipher).lowered_to(records_per_key);
    let sealer = Sealer::keeping(keys.key()?, 1, limit)?;
    Ok(Channel::new(sealer, Opener::new(&keys.key()?, 1)?, keys, KeyUpdateRate::new(u32::MAX)))
}
