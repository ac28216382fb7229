//! Sealing: each cipher, out of place and in place, in full and in short records.

use std::{io, time::Duration};

use linerate_record::{Cipher, ContentType, RecordError, RecordLimit, Sealer, TrafficKey, Version};

use crate::{
    Figures,
    stretch::{Enough, cost_of_each_ns},
};

/// Bytes of plaintext in the records that are measured: from two sizes follow what a byte and what a record cost.
pub(crate) const SHORT_BYTES: usize = 1024;
/// As most records of a long response.
pub(crate) const FULL_BYTES: usize = 16_384;
/// How long each is measured in a round.
const TIME: Duration = Duration::from_millis(3);

/// What a record costs is under this name.
pub(crate) fn figure(cipher: Cipher, record_bytes: usize) -> String {
    format!("seal_{}_{record_bytes}_bytes_ns", cipher.name())
}

pub(crate) fn measure(figures: &mut Figures) -> io::Result<()> {
    let failed = |fault: RecordError| io::Error::other(fault);
    for cipher in Cipher::ALL {
        for bytes in [SHORT_BYTES, FULL_BYTES] {
            let mut sealer = sealer(cipher).map_err(failed)?;
            let plaintext = vec![0x5A; bytes];
            let mut record = vec![0; sealer.layout().record_bytes(bytes)];
            let out_of_place =
                each(|| sealer.seal_from(ContentType::ApplicationData, &plaintext, &mut record));
            figures.add(figure(cipher, bytes), out_of_place.map_err(failed)?);
            if bytes == FULL_BYTES {
                let in_place = each(|| sealer.seal_in_place(ContentType::ApplicationData, &mut record));
                let name = format!("seal_in_place_{}_{bytes}_bytes_ns", cipher.name());
                figures.add(name, in_place.map_err(failed)?);
            }
        }
    }
    Ok(())
}

/// A sending direction under a key of no secret.
pub(crate) fn sealer(cipher: Cipher) -> Result<Sealer, RecordError> {
    let key = TrafficKey::new(Version::Tls13, cipher, &vec![0x2B; cipher.key_bytes()], [0x17; 12])?;
    Sealer::new(&key, 0, RecordLimit::of(cipher))
}

/// What one call costs in nanoseconds.
fn each(mut call: impl FnMut() -> Result<(), RecordError>) -> Result<f64, RecordError> {
    /// Between two looks at the clock.
    const CALLS: u64 = 16;
    cost_of_each_ns(Enough { units: u64::MAX, time: TIME }, || {
        for _ in 0..CALLS {
            call()?;
        }
        Ok(CALLS)
    })
}
