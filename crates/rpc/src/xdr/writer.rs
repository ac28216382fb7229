//! Bytes out of values.

use super::padding_bytes;

/// Appends values to bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    bytes: Vec<u8>,
}

/// Room that was left for a number.
#[derive(Clone, Copy, Debug)]
#[must_use = "its value is written later"]
pub struct Reserved {
    at: usize,
}

impl Writer {
    /// Into the memory of `bytes`, which is emptied.
    #[must_use]
    pub fn reusing(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { bytes }
    }

    /// What has been written.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What has been written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// How much has been written.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes back what was written behind the first `length_bytes`.
    pub fn truncate(&mut self, length_bytes: usize) {
        self.bytes.truncate(length_bytes);
    }

    /// Takes out what was written behind the first `length_bytes`.
    #[must_use]
    pub fn split_off(&mut self, length_bytes: usize) -> Vec<u8> {
        self.bytes.split_off(length_bytes.min(self.bytes.len()))
    }

    /// A number of 32 bits.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A number of 64 bits (`unsigned hyper`).
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A number of 64 bits with a sign (`hyper`).
    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// `TRUE` or `FALSE`.
    pub fn boolean(&mut self, value: bool) {
        self.u32(value.into());
    }

    /// Opaque data of a fixed length.
    pub fn fixed(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
        self.padding(data.len());
    }

    /// Opaque data of a variable length, or a string.
    ///
    /// # Panics
    /// In debug builds, if it is longer than XDR can say.
    pub fn opaque(&mut self, data: &[u8]) {
        self.count(data.len());
        self.fixed(data);
    }

    /// The number of elements that follow.
    ///
    /// # Panics
    /// In debug builds, if it is larger than XDR can say.
    pub fn count(&mut self, count: usize) {
        debug_assert!(u32::try_from(count).is_ok(), "{count}");
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// What follows data of this length, up to a multiple of four.
    pub fn padding(&mut self, length_bytes: usize) {
        self.bytes.resize(self.bytes.len() + padding_bytes(length_bytes), 0);
    }

    /// Leaves room for a number of 32 bits that is not known yet: zero until [`Self::fill`].
    pub fn reserve_u32(&mut self) -> Reserved {
        let at = self.bytes.len();
        self.u32(0);
        Reserved { at }
    }

    /// Writes a number over the first four bytes, if there are so many.
    pub(crate) fn fill_first(&mut self, value: u32) {
        self.fill(Reserved { at: 0 }, value);
    }

    /// Writes a number where room was left for it. If that has been taken back meanwhile, nothing happens.
    pub fn fill(&mut self, reserved: Reserved, value: u32) {
        if let Some(room) = self.bytes.get_mut(reserved.at..).and_then(|rest| rest.first_chunk_mut()) {
            *room = value.to_be_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_bytes_of_the_rfc() {
        let mut writer = Writer::reusing(b"of before".to_vec());
        writer.opaque(b"sillyprog");
        writer.u32(2);
        writer.u64(0x0102_0304_0506_0708);
        writer.i64(-2);
        writer.boolean(true);
        writer.fixed(b"abcde");
        writer.count(3);
        let expected: &[u8] = b"\0\0\0\x09sillyprog\0\0\0\0\0\0\x02\x01\x02\x03\x04\x05\x06\x07\x08\
            \xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\x01abcde\0\0\0\0\0\0\x03";
        assert_eq!(writer.as_bytes(), expected);
        assert_eq!(writer.length_bytes(), expected.len());
        assert_eq!(writer.into_bytes(), expected);
    }

    #[test]
    fn a_number_is_written_where_room_was_left() {
        let mut writer = Writer::default();
        writer.u32(7);
        let reserved = writer.reserve_u32();
        writer.u32(8);
        writer.fill(reserved, 0x0a0b_0c0d);
        assert_eq!(writer.as_bytes(), b"\0\0\0\x07\x0a\x0b\x0c\x0d\0\0\0\x08");
        writer.truncate(6);
        writer.fill(reserved, u32::MAX);
        assert_eq!(writer.as_bytes(), b"\0\0\0\x07\x0a\x0b");
        assert_eq!(writer.split_off(4), b"\x0a\x0b");
        assert!(writer.split_off(5).is_empty());
        assert_eq!(writer.length_bytes(), 4);
    }
}
