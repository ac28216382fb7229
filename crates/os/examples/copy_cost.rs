//! What a copy of a gigabyte costs one core, by where it comes from and how it is written. The constants
//! `copy_cycles_per_byte` and `bounce_ns_per_byte` of `linerate plan` are from here (docs/PLAN.md).
//!
//! ```sh
//! cargo run --release -p linerate-os --example copy_cost
//! ```

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

const PAGE_WORDS: usize = 512;
/// More than any cache holds.
const SOURCE_BYTES: usize = 1 << 30;
const ROUNDS: usize = 9;

fn main() {
    let source = vec![7u64; SOURCE_BYTES / 8];
    for (from, from_bytes) in [("cache", 128 << 10), ("memory", SOURCE_BYTES)] {
        let source = &source[..from_bytes / 8];
        for (to, to_bytes) in [("128 KiB", 128 << 10), ("16 MiB", 16 << 20), ("64 MiB", 64 << 20)] {
            let ordinary = least(source, to_bytes / 8, |from, to| to.copy_from_slice(from));
            println!("from {from} to {to}, ordinary: {ordinary:.3} s/GB");
        }
    }
    #[cfg(target_arch = "x86_64")]
    for (to, to_bytes) in [("128 KiB", 128 << 10), ("64 MiB", 64 << 20)] {
        let past_caches = least(&source, to_bytes / 8, past_caches);
        println!("from memory to {to}, past the caches: {past_caches:.3} s/GB");
    }
}

/// The least of some rounds, in seconds a gigabyte: the source page by page into a ring. What else a machine does only adds.
fn least(source: &[u64], ring_words: usize, copy: impl Fn(&[u64], &mut [u64])) -> f64 {
    let mut ring = vec![1u64; ring_words];
    let pages = SOURCE_BYTES / 8 / PAGE_WORDS;
    let times = (0..ROUNDS).map(|_| {
        let begun_s = cpu_time_s();
        let pieces = source.chunks_exact(PAGE_WORDS).cycle().take(pages);
        for (page, from) in pieces.enumerate() {
            let at = page * PAGE_WORDS % ring_words;
            copy(from, &mut ring[at..at + PAGE_WORDS]);
        }
        black_box(&ring);
        (cpu_time_s() - begun_s) / (SOURCE_BYTES as f64 / 1e9)
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Of this thread: what else the machine computes is not in it.
fn cpu_time_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// As the kernel's `copy_from_iter_nocache` copies for an adapter without `TLS_TX_ZEROCOPY_RO`: eight bytes at a time,
/// past the caches (`movnti`).
#[cfg(target_arch = "x86_64")]
fn past_caches(from: &[u64], to: &mut [u64]) {
    for (from, to) in from.iter().zip(to) {
        // SAFETY: `to` is a valid, aligned place for eight bytes, and SSE2 is part of every x86-64. Nobody reads the ring
        // as long as it is written, so that no fence is needed.
        unsafe { std::arch::x86_64::_mm_stream_si64(std::ptr::from_mut(to).cast(), (*from).cast_signed()) };
    }
}
