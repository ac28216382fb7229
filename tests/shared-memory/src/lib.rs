//! The server's own modules that threads share memory by, on loom's atomics: its tests run them in every order, and with
//! every stale value, that the memory model allows. They are included from where they live, and name what they need by
//! `crate::sync`, which is loom's here and the standard library's there.

/// As `linerate_os::sync` and `linerate_server::sync`.
mod sync {
    #![allow(unused_imports, reason = "each module takes what it needs")]
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};

    /// With the same keys in every run: a model has to take the same way each time.
    pub(crate) type RandomState = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;
}

mod admission;
mod counter;
mod mapping;
