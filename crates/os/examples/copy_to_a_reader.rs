//! What a copy of a gigabyte costs where another core reads what is written, as a client on loopback does, and by how the
//! destination lies to the source (docs/MEASUREMENTS.md).
//!
//! ```sh
//! cargo run --release -p linerate-os --example copy_to_a_reader
//! ```

use linerate_os::processor;
use std::{
    array,
    hint::black_box,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

/// One copy: what the kernel copies at once into a socket's memory.
const PIECE_BYTES: usize = 32 << 10;
/// The source stays in the cache.
const SOURCE_BYTES: usize = 128 << 10;
const COPIES: usize = 32_768;
const PAGE_BYTES: usize = 4096;

fn main() {
    let cpus = processor::allowed().unwrap_or_default();
    let [writer, reader] = array::from_fn(|index| cpus.get(index).copied());
    let Some((writer, reader)) = writer.zip(reader) else {
        eprintln!("two processors are needed, one to write and one to read");
        return;
    };
    if let Err(error) = processor::pin_current_thread(writer) {
        eprintln!("not pinned: {error}");
    }
    println!("destination behind the source, modulo 4096 (alone):");
    for ahead_bytes in [0, 1, 8, 15, 16, 64, 2049, 4095] {
        println!("  {ahead_bytes:4} bytes: {:.3} s/GB", at_distance(ahead_bytes));
    }
    for ring_bytes in [512 << 10, 2 << 20, 8 << 20, 64 << 20, 512 << 20] {
        let (alone, read) = (into_ring(ring_bytes, None), into_ring(ring_bytes, Some(reader)));
        println!("ring of {:6} KiB: alone {alone:.3}, read by another core {read:.3} s/GB", ring_bytes >> 10);
    }
}

/// The least of some rounds.
fn at_distance(ahead_bytes: usize) -> f64 {
    let source = vec![7u8; PIECE_BYTES + PAGE_BYTES];
    let mut destination = vec![1u8; PIECE_BYTES + 3 * PAGE_BYTES];
    let start = |bytes: &[u8]| bytes.as_ptr().align_offset(PAGE_BYTES);
    let (from, to) = (start(&source), start(&destination) + ahead_bytes);
    let length = PIECE_BYTES - PAGE_BYTES;
    let rounds = (0..9).map(|_| {
        let began = Instant::now();
        for _ in 0..1000 {
            destination[to..to + length].copy_from_slice(black_box(&source[from..from + length]));
            black_box(&destination);
        }
        began.elapsed().as_secs_f64() / (1000 * length) as f64 * 1e9
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// Only the copies are timed, not the waits for the reader.
fn into_ring(ring_bytes: usize, reading_cpu: Option<usize>) -> f64 {
    let source = vec![7u8; SOURCE_BYTES];
    let slots = ring_bytes / PIECE_BYTES;
    let ring: Arc<Vec<_>> = Arc::new((0..slots).map(|_| Mutex::new(vec![1u8; PIECE_BYTES])).collect());
    let (written, has_read) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = reading_cpu.map(|cpu| {
        let (ring, written, has_read) = (Arc::clone(&ring), Arc::clone(&written), Arc::clone(&has_read));
        let is_over = Arc::clone(&is_over);
        thread::spawn(move || {
            let _ = processor::pin_current_thread(cpu);
            let mut taken = vec![0u8; PIECE_BYTES];
            let mut next = 0;
            while !is_over.load(Acquire) {
                if written.load(Acquire) > next {
                    let slot = ring[next % slots].lock().unwrap_or_else(PoisonError::into_inner);
                    taken.copy_from_slice(&slot);
                    drop(slot);
                    black_box(&taken);
                    next += 1;
                    has_read.store(next, Release);
                }
            }
        })
    });
    let mut copying = Duration::ZERO;
    for copy in 0..COPIES {
        while reader.is_some() && copy - has_read.load(Acquire) >= slots - 1 {
            std::hint::spin_loop();
        }
        let at = copy * PIECE_BYTES % SOURCE_BYTES;
        let mut slot = ring[copy % slots].lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        slot.copy_from_slice(black_box(&source[at..at + PIECE_BYTES]));
        copying += began.elapsed();
        drop(slot);
        written.store(copy + 1, Release);
    }
    is_over.store(true, Release);
    if let Some(reader) = reader {
        let _ = reader.join();
    }
    copying.as_secs_f64() / (COPIES * PIECE_BYTES) as f64 * 1e9
}
