//! What every server does with each byte that seals in software: the cipher, and one copy into a socket's memory. Nothing
//! else is measured, no engine and no socket: it is the part of a floor that no server can go below.

use std::{hint::black_box, io, thread, time::Duration};

use linerate_os::processor;
use linerate_record::{Cipher, ContentType, MAX_PLAINTEXT_BYTES, RecordError};

use crate::{
    ciphers::sealer,
    send_path::LARGEST_BATCH_BYTES,
    stretch::{Enough, cost_of_each_ns},
};

/// CPU time of a byte of plaintext, in nanoseconds: the same figures as seconds per GB (10⁹ bytes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SealAndCopy {
    /// Sealing it, in records of the given size, from a buffer into a batch.
    pub seal_ns_per_byte: f64,
    /// Copying what it was sealed to out of the batch, once.
    pub copy_ns_per_byte: f64,
}

/// How long each of the two is measured.
const TIME: Duration = Duration::from_millis(30);

/// Measures both on each of `cpus` at the same time, by a thread that is pinned there; the result is their mean. Records carry
/// `record_bytes` of plaintext, and as many are sealed before they are copied as the user engine puts into a batch. All
/// buffers together are half a megabyte to three quarters and stay in the cache: what memory costs is not in the figures.
///
/// # Errors
/// A CPU that this process may not use, no CPU at all, or no memory for a thread.
pub fn seal_and_copy(cipher: Cipher, record_bytes: usize, cpus: &[usize]) -> io::Result<SealAndCopy> {
    let found: Vec<SealAndCopy> = thread::scope(|scope| {
        let start = |&cpu: &usize| {
            thread::Builder::new().name("seal-and-copy".to_owned()).spawn_scoped(scope, move || {
                processor::pin_current_thread(cpu)?;
                on_this_thread(cipher, record_bytes).map_err(io::Error::other)
            })
        };
        let threads = cpus.iter().map(start).collect::<io::Result<Vec<_>>>()?;
        let ended_early = |_| Err(io::Error::other("the thread ended early"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(ended_early)).collect::<io::Result<_>>()
    })?;
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a CPU to measure on is needed"));
    }
    let mean = |figure: fn(&SealAndCopy) -> f64| found.iter().map(figure).sum::<f64>() / found.len() as f64;
    Ok(SealAndCopy {
        seal_ns_per_byte: mean(|found| found.seal_ns_per_byte),
        copy_ns_per_byte: mean(|found| found.copy_ns_per_byte),
    })
}

fn on_this_thread(cipher: Cipher, record_bytes: usize) -> Result<SealAndCopy, RecordError> {
    let record_bytes = record_bytes.clamp(1, MAX_PLAINTEXT_BYTES);
    let mut sealer = sealer(cipher)?;
    let sealed_bytes = sealer.layout().record_bytes(record_bytes);
    let records = (LARGEST_BATCH_BYTES / sealed_bytes).max(1);
    let plaintext = vec![0x5A; records * record_bytes];
    let mut batch = vec![0; records * sealed_bytes];
    let mut seal = || {
        let parts = plaintext.chunks_exact(record_bytes).zip(batch.chunks_exact_mut(sealed_bytes));
        for (plaintext, record) in parts {
            sealer.seal_from(ContentType::ApplicationData, plaintext, record)?;
        }
        Ok((records * record_bytes) as u64)
    };
    // The first batch meets cold buffers.
    seal()?;
    let enough = Enough { units: u64::MAX, time: TIME };
    let seal_ns_per_byte = cost_of_each_ns(enough, seal)?;
    let mut socket_memory = batch.clone();
    let copy_ns_per_byte = cost_of_each_ns::<RecordError>(enough, || {
        black_box(&mut socket_memory[..]).copy_from_slice(black_box(&batch));
        Ok((records * record_bytes) as u64)
    })?;
    Ok(SealAndCopy { seal_ns_per_byte, copy_ns_per_byte })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_records_cost_more_to_seal() {
        let cpus = processor::allowed().expect("the kernel tells");
        let full = seal_and_copy(Cipher::Aes256Gcm, MAX_PLAINTEXT_BYTES, &cpus[..1]).expect("a CPU");
        let short = seal_and_copy(Cipher::Aes256Gcm, 64, &cpus[..1]).expect("a CPU");
        // From 100 GB/s to 1 MB/s: an emulated processor makes 13.
        assert!((0.01..1000.0).contains(&full.seal_ns_per_byte), "{full:?}");
        assert!((0.001..100.0).contains(&full.copy_ns_per_byte), "{full:?}");
        // Nonce, header and tag for each 64 bytes: several times as much on any processor.
        assert!(short.seal_ns_per_byte > 1.5 * full.seal_ns_per_byte, "{short:?} {full:?}");
    }

    #[test]
    fn it_is_measured_nowhere_but_on_the_cpus_that_were_named() {
        assert!(seal_and_copy(Cipher::Aes128Gcm, 1024, &[]).is_err());
        assert!(seal_and_copy(Cipher::Aes128Gcm, 1024, &[usize::MAX]).is_err());
    }
}
