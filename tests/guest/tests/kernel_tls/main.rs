//! Kernel TLS for real: the kernel, a peer that uses it, and linerate's engines on a machine that has it.

mod kernel_engine;
mod peer;
mod receiving;
mod streams;
mod user_engine;
