//! Keys, channels and content for tests of the switch to the kernel.

use linerate_record::{
    Channel, Cipher, KeySource, KeyUpdateRate, Opener, RecordError, RecordLimit, Sealer, TrafficKey, Version,
};
use std::{fs::File, io::Write};

/// Keys of which each differs from the one before, for each direction on its own.
#[derive(Debug)]
pub struct Counting {
    version: Version,
    cipher: Cipher,
    sending: u8,
    receiving: u8,
}

impl Counting {
    fn key(&self, number: u8) -> TrafficKey {
        let key = vec![number; self.cipher.key_bytes()];
        TrafficKey::new(self.version, self.cipher, &key, [number; 12]).unwrap()
    }
}

impl KeySource for Counting {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.sending += 1;
        Ok(self.key(self.sending))
    }
    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.receiving += 1;
        Ok(self.key(self.receiving))
    }
}

/// A channel whose both directions have sealed one record, which keeps its keys for a hand-over.
///
/// # Panics
/// If the record layer refuses a sound key.
#[must_use]
pub fn channel(version: Version, cipher: Cipher, limit: u64) -> Channel<Counting> {
    let keys = Counting { version, cipher, sending: 1, receiving: 1 };
    let limit = RecordLimit::of(cipher).lowered_to(limit);
    Channel::new(
        Sealer::keeping(keys.key(1), 1, limit).unwrap(),
        Opener::keeping(keys.key(1), 1).unwrap(),
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
