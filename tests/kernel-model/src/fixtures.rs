//! Keys, channels and content for tests of the switch to the kernel.

use linerate_record::{
    Channel, Cipher, KeySource, KeyUpdateRate, Opener, RecordError, RecordLimit, Sealer, TrafficKey, Version,
};
use std::{fs::File, io::Write};

/// Keys of which each differs from the one before.
#[derive(Debug)]
pub struct Counting(Version, Cipher, u8);

impl Counting {
    fn key(&self) -> TrafficKey {
        TrafficKey::new(self.0, self.1, &vec![self.2; self.1.key_bytes()], [self.2; 12]).unwrap()
    }
}

impl KeySource for Counting {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.2 += 1;
        Ok(self.key())
    }
    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.next_sending_key()
    }
}

/// A channel whose both directions have sealed one record, which keeps its key for a hand-over.
///
/// # Panics
/// If the record layer refuses a sound key.
#[must_use]
pub fn channel(version: Version, cipher: Cipher, limit: u64) -> Channel<Counting> {
    let keys = Counting(version, cipher, 1);
    let limit = RecordLimit::of(cipher).lowered_to(limit);
    Channel::new(
        Sealer::keeping(keys.key(), 1, limit).unwrap(),
        Opener::new(&keys.key(), 1).unwrap(),
        keys,
        KeyUpdateRate::new(u32::MAX),
    )
}

/// Bytes that tell a place from every other near it.
#[must_use]
pub fn content(length: usize) -> Vec<u8> {
    (0..length as u64).map(|index| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// A file that is gone when it is dropped.
///
/// # Panics
/// If the system has no place for it.
#[must_use]
pub fn temporary(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}
