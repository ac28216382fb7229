//! What threads share memory by. Modules that name it through here can be run in a model of it (`tests/shared-memory`).

pub(crate) use std::hash::RandomState;
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
