//! Files of pseudo-random bytes, so that no file system stores them with holes and nothing can compress them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const CHUNK_BYTES: usize = 1 << 20;

/// Writes a file, under another name until it is whole: what is broken off leaves no short file behind.
///
/// # Errors
/// The system's; [`io::ErrorKind::Interrupted`] once `interrupted` is set.
pub(crate) fn write(path: &Path, bytes: u64, seed: u64, interrupted: &AtomicBool) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = Path::new(&unfinished);
    let written = fill(unfinished, bytes, seed, interrupted).and_then(|()| fs::rename(unfinished, path));
    if written.is_err() {
        // It may not be there; what matters is the error itself.
        let _ = fs::remove_file(unfinished);
    }
    written
}

fn fill(path: &Path, bytes: u64, seed: u64, interrupted: &AtomicBool) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(CHUNK_BYTES, File::create(path)?);
    let mut generator = Generator::new(seed);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left = bytes;
    while left > 0 {
        if interrupted.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        generator.fill(&mut chunk[..length]);
        output.write_all(&chunk[..length])?;
        left -= length as u64;
    }
    output.flush()?;
    // Written to disk now, and not in the background of what is measured.
    output.get_ref().sync_data()
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    /// The sequence of this seed.
    #[must_use]
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next bytes of the sequence. A length that is no multiple of 8 loses the rest of a number.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^= mixed >> 31;
            word.copy_from_slice(&mixed.to_le_bytes()[..word.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_sequence() {
        // First outputs of SplitMix64 for seed 0, as in the reference implementation.
        let mut bytes = [0; 16];
        Generator::new(0).fill(&mut bytes);
        assert_eq!(bytes[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        assert_eq!(bytes[8..], 0x6e78_9e6a_a1b9_65f4_u64.to_le_bytes());
    }
}
