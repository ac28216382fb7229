//! How many records a key may seal.

use crate::Cipher;

/// Records kept back from application data, so that a key update and a `close_notify` always fit under the old key
/// (INV-LIMIT-2).
pub(crate) const RESERVED_FOR_CONTROL: u64 = 2;

/// The most records that one sending key seals, control records included (INV-LIMIT-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimit(u64);

impl RecordLimit {
    /// The least limit that leaves room for application data: one record, a key update and a `close_notify`.
    pub(crate) const MINIMUM: u64 = RESERVED_FOR_CONTROL + 1;

    /// The limit of a cipher: [`Cipher::records_per_key`].
    #[must_use]
    pub fn of(cipher: Cipher) -> Self {
        Self(cipher.records_per_key())
    }

    /// A lower limit, set by configuration; never above the cipher's own and never below `RecordLimit::MINIMUM`.
    #[must_use]
    pub fn lowered_to(self, records: u64) -> Self {
        Self(records.clamp(Self::MINIMUM, self.0))
    }

    pub(crate) fn records(self) -> u64 {
        self.0
    }
}
