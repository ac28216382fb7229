//! Sets of attributes (`bitmap4`).

use linerate_rpc::xdr::{Reader, Writer, XdrError};

/// Words of a bitmap that are read. Attributes have numbers below 128 so far.
const WORDS_LIMIT: usize = 16;
/// Words that a set can hold.
const WORDS: usize = 4;

/// A set of attributes by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttributeSet(u128);

impl AttributeSet {
    pub(crate) const fn of(numbers: &[u8]) -> Self {
        let mut bits = 0;
        let mut rest = numbers;
        while let Some((number, behind)) = rest.split_first() {
            bits |= 1 << *number;
            rest = behind;
        }
        Self(bits)
    }

    /// Attributes above the highest number that is known become 127, which is none of the known ones.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        let mut bits = 0;
        for index in 0..reader.count(WORDS_LIMIT)? {
            let word = u128::from(reader.u32()?);
            if index < WORDS {
                bits |= word << (32 * index);
            } else if word != 0 {
                bits |= 1 << 127;
            }
        }
        Ok(Self(bits))
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        let words = (u128::BITS - self.0.leading_zeros()).div_ceil(32);
        writer.u32(words);
        for index in 0..words {
            writer.u32((self.0 >> (32 * index)) as u32);
        }
    }

    pub(crate) const fn has(self, number: u8) -> bool {
        self.0 >> number & 1 == 1
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The numbers, in order.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u8> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            // Below 128.
            let number = (rest != 0).then(|| rest.trailing_zeros() as u8)?;
            rest &= rest - 1;
            Some(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_from_the_lowest_of_the_first_word() {
        // RFC 8881 section 3.3.7: attribute n is bit n mod 32 of word n / 32.
        let set = AttributeSet::of(&[0, 1, 33, 75]);
        let mut writer = Writer::default();
        set.write(&mut writer);
        assert_eq!(writer.as_bytes(), b"\0\0\0\x03\0\0\0\x03\0\0\0\x02\0\0\x08\0");
        assert_eq!(AttributeSet::read(&mut Reader::new(writer.as_bytes())), Ok(set));
        assert_eq!(set.numbers().collect::<Vec<_>>(), [0, 1, 33, 75]);
        assert!(set.has(75) && !set.has(74));
        let mut writer = Writer::default();
        AttributeSet::default().write(&mut writer);
        assert_eq!(writer.as_bytes(), b"\0\0\0\0");
    }

    #[test]
    fn what_is_not_known_is_not_forgotten() {
        let mut reader = Reader::new(b"\0\0\0\x05\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0");
        let set = AttributeSet::read(&mut reader).unwrap();
        assert_eq!(set.numbers().collect::<Vec<_>>(), [0, 127]);
        assert_eq!(AttributeSet::read(&mut Reader::new(b"\0\0\0\x11")), Err(XdrError::TooLong));
        assert_eq!(AttributeSet::read(&mut Reader::new(b"\0\0\0\x01")), Err(XdrError::TooShort));
    }
}
