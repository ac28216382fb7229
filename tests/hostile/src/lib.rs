//! Fault programs against a file server. [`SlowDisk`] is a disk that is slow, fails or hangs; [`cleanup`] takes away what a
//! program made, whatever happens.

pub mod cleanup;
mod disk;
mod disk_files;

pub use disk::{Fault, SlowDisk};
