//! XDR by hand.

pub(crate) fn array(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

pub(crate) fn u32s(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

pub(crate) fn u64s(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// Its length, its bytes, and zeros up to a multiple of four.
pub(crate) fn text(bytes: &[u8]) -> Vec<u8> {
    let mut all = [array(bytes.len() as u32).as_slice(), bytes].concat();
    while all.len() % 4 != 0 {
        all.push(0);
    }
    all
}

/// What is still to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    pub(crate) fn text(&mut self) -> &'a [u8] {
        let length = self.u32() as usize;
        let text = self.take(length);
        self.take(length.wrapping_neg() & 3);
        text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
