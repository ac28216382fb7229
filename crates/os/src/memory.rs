//! Memory that is wiped before it is given back, for expanded cipher keys that have no wipe of their own.

use std::{
    alloc::{Layout, dealloc},
    ops::Deref,
    ptr::{self, NonNull},
    sync::atomic::{Ordering, compiler_fence},
};

/// A value on the heap whose bytes are overwritten with zeros after it is dropped.
///
/// aws-lc's AES-GCM leaves its expanded key schedule in place when a context is cleaned up; `zeroize` cannot reach into
/// such a foreign value, so its home is wiped instead. Copies that the compiler made on the stack while the value was
/// moved here are not covered.
pub struct Wiped<T> {
    home: NonNull<T>,
}

impl<T> Wiped<T> {
    /// Moves `value` to a home that will be wiped.
    #[must_use]
    pub fn new(value: T) -> Self {
        const { assert!(size_of::<T>() > 0, "a value without bytes has nothing to wipe") }
        Self { home: NonNull::from(Box::leak(Box::new(value))) }
    }
}

impl<T> Deref for Wiped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `home` came from a Box in `new`, is valid until `drop`, and only shared references are handed out.
        unsafe { self.home.as_ref() }
    }
}

impl<T> Drop for Wiped<T> {
    fn drop(&mut self) {
        let pointer = self.home.as_ptr();
        // SAFETY: the value is dropped once, here. Its memory stays ours until `dealloc`, which gets the layout that
        // Box::new allocated with (the global allocator, Layout of T, which is not zero-sized).
        unsafe {
            ptr::drop_in_place(pointer);
            ptr::write_bytes(pointer.cast::<u8>(), 0, size_of::<T>());
            // The pointer escapes to code the compiler cannot see, so the zeros are not removed as dead stores.
            std::hint::black_box(pointer);
            compiler_fence(Ordering::SeqCst);
            dealloc(pointer.cast::<u8>(), Layout::new::<T>());
        }
    }
}

// SAFETY: like Box, a Wiped owns its value and hands out nothing but plain references to it.
unsafe impl<T: Send> Send for Wiped<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Wiped<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, rc::Rc};

    #[test]
    fn the_value_is_usable_and_dropped_once() {
        struct Counts(Rc<Cell<u32>>, [u8; 40]);
        impl Drop for Counts {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let drops = Rc::new(Cell::new(0));
        let wiped = Wiped::new(Counts(Rc::clone(&drops), [7; 40]));
        assert_eq!(wiped.1, [7; 40]);
        assert_eq!(drops.get(), 0);
        drop(wiped);
        assert_eq!(drops.get(), 1);
    }
}
