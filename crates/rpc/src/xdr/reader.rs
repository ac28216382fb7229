//! Values out of bytes that a peer sent.

use super::{XdrError, padding_bytes};

/// Reads values one after the other. What it returns borrows from the bytes that it was given. A value that cannot be read leaves
/// the reader where it was.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the beginning of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// [`XdrError::TooShort`].
    pub fn u32(&mut self) -> Result<u32, XdrError> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of 64 bits (`unsigned hyper`).
    ///
    /// # Errors
    /// [`XdrError::TooShort`].
    pub fn u64(&mut self) -> Result<u64, XdrError> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number of 64 bits with a sign (`hyper`).
    ///
    /// # Errors
    /// [`XdrError::TooShort`].
    pub fn i64(&mut self) -> Result<i64, XdrError> {
        self.array().map(i64::from_be_bytes)
    }

    /// `TRUE` or `FALSE`.
    ///
    /// # Errors
    /// [`XdrError::TooShort`], [`XdrError::Unknown`].
    pub fn boolean(&mut self) -> Result<bool, XdrError> {
        let mut ahead = *self;
        let value = match ahead.u32()? {
            0 => false,
            1 => true,
            _ => return Err(XdrError::Unknown),
        };
        *self = ahead;
        Ok(value)
    }

    /// Opaque data of a fixed length.
    ///
    /// # Errors
    /// [`XdrError::TooShort`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], XdrError> {
        let mut array = [0; N];
        array.copy_from_slice(self.fixed(N)?);
        Ok(array)
    }

    /// Opaque data of a variable length, or a string: at most `limit_bytes`.
    ///
    /// # Errors
    /// [`XdrError::TooLong`], [`XdrError::TooShort`].
    pub fn opaque(&mut self, limit_bytes: usize) -> Result<&'a [u8], XdrError> {
        let mut ahead = *self;
        let length_bytes = ahead.count(limit_bytes)?;
        let data = ahead.fixed(length_bytes)?;
        *self = ahead;
        Ok(data)
    }

    /// The number of elements of an array that follows: at most `limit`.
    ///
    /// # Errors
    /// [`XdrError::TooLong`], [`XdrError::TooShort`].
    pub fn count(&mut self, limit: usize) -> Result<usize, XdrError> {
        let mut ahead = *self;
        let count = usize::try_from(ahead.u32()?).map_err(|_| XdrError::TooLong)?;
        if count > limit {
            return Err(XdrError::TooLong);
        }
        *self = ahead;
        Ok(count)
    }

    /// `length_bytes` and their padding, whose value does not matter.
    fn fixed(&mut self, length_bytes: usize) -> Result<&'a [u8], XdrError> {
        let (data, rest) = self.rest.split_at_checked(length_bytes).ok_or(XdrError::TooShort)?;
        self.rest = rest.get(padding_bytes(length_bytes)..).ok_or(XdrError::TooShort)?;
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_bytes_of_the_rfc() {
        // RFC 4506, sections 4.1 to 4.10 and the file of section 7: sillyprog, executable by lisp, of john, "(quit)".
        let bytes = b"\0\0\0\x09sillyprog\0\0\0\0\0\0\x02\0\0\0\x04lisp\0\0\0\x04john\0\0\0\x06(quit)\0\0";
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.opaque(255), Ok(b"sillyprog".as_slice()));
        assert_eq!(reader.u32(), Ok(2));
        assert_eq!(reader.opaque(255), Ok(b"lisp".as_slice()));
        assert_eq!(reader.opaque(32), Ok(b"john".as_slice()));
        assert_eq!(reader.opaque(65535), Ok(b"(quit)".as_slice()));
        assert!(reader.rest().is_empty());

        let mut reader =
            Reader::new(b"\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\x01");
        assert_eq!(reader.u64(), Ok(0x0102_0304_0506_0708));
        assert_eq!(reader.i64(), Ok(-2));
        assert_eq!(reader.boolean(), Ok(true));
        assert_eq!(reader.u32(), Err(XdrError::TooShort));
    }

    #[test]
    fn what_cannot_be_read_leaves_the_reader_where_it_was() {
        type Read = fn(&mut Reader<'_>) -> Result<(), XdrError>;
        let cases: [(&[u8], Read, XdrError); 9] = [
            (b"\0\0\0", |reader| reader.u32().map(drop), XdrError::TooShort),
            (b"\0\0\0\0\0\0\0", |reader| reader.u64().map(drop), XdrError::TooShort),
            (b"\0\0\0\x02", |reader| reader.boolean().map(drop), XdrError::Unknown),
            (b"\0\0\0\x05abcde\0\0", |reader| reader.opaque(5).map(drop), XdrError::TooShort),
            (b"\0\0\0\x05abcd", |reader| reader.opaque(5).map(drop), XdrError::TooShort),
            (b"\0\0\0\x05abcde\0\0\0", |reader| reader.opaque(4).map(drop), XdrError::TooLong),
            (b"\xff\xff\xff\xffabcd", |reader| reader.opaque(usize::MAX).map(drop), XdrError::TooShort),
            (b"\0\0\0\x03", |reader| reader.count(2).map(drop), XdrError::TooLong),
            (b"abc", |reader| reader.array::<3>().map(drop), XdrError::TooShort),
        ];
        for (bytes, read, error) in cases {
            let mut reader = Reader::new(bytes);
            assert_eq!(read(&mut reader), Err(error), "{}", bytes.escape_ascii());
            assert_eq!(reader.rest(), bytes);
        }
    }

    #[test]
    fn the_value_of_padding_does_not_matter() {
        let mut reader = Reader::new(b"\0\0\0\x01a\xff\xff\xff");
        assert_eq!(reader.opaque(1), Ok(b"a".as_slice()));
        assert!(reader.rest().is_empty());
    }
}
