//! The table by which the signal handler finds the mapping that a fault is in (INV-FILE-2).

#[path = "../../../crates/os/src/mapping/slot.rs"]
#[allow(dead_code, unreachable_pub, reason = "only what the models need is called")]
mod slot;

#[cfg(test)]
mod tests {
    use super::slot::Slot;
    use crate::sync::{AtomicBool, AtomicUsize, Ordering};
    use loom::{sync::Arc, thread};
    use std::ops::Range;

    fn free() -> Slot {
        Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    fn holding(mapping: Range<usize>) -> Slot {
        let slot = free();
        assert!(slot.claim());
        slot.publish(mapping);
        slot
    }

    /// A slot goes from one mapping to another while the handler looks for a third between the two.
    #[test]
    fn a_slot_that_changes_hands_covers_nothing_between() {
        loom::model(|| {
            let slot = Arc::new(holding(1_000..2_000));
            let owner = {
                let slot = Arc::clone(&slot);
                thread::spawn(move || {
                    slot.release_and(|| {});
                    assert!(slot.claim());
                    slot.publish(8_000..9_000);
                })
            };
            assert_eq!(slot.end_if_covering(5_000), None, "memory of neither would be overwritten");
            owner.join().unwrap();
            assert_eq!(slot.end_if_covering(8_500), Some(9_000));
        });
    }

    /// The addresses of a mapping that goes are at once another's. A fault there is the other's.
    #[test]
    fn an_address_that_is_mapped_anew_is_not_the_old_mappings() {
        loom::model(|| {
            let old = Arc::new(holding(1_000..9_000));
            // What the kernel knows: whether the old mapping's addresses are taken.
            let taken = Arc::new(AtomicBool::new(true));
            let owner = {
                let (old, taken) = (Arc::clone(&old), Arc::clone(&taken));
                thread::spawn(move || old.release_and(|| taken.store(false, Ordering::Release)))
            };
            if !taken.load(Ordering::Acquire) {
                let new = holding(1_000..2_000);
                assert_eq!(old.end_if_covering(1_500), None, "zeros would go to where the old one ended");
                assert_eq!(new.end_if_covering(1_500), Some(2_000));
            }
            owner.join().unwrap();
        });
    }

    #[test]
    fn a_slot_has_one_owner() {
        loom::model(|| {
            let slot = Arc::new(free());
            let other = {
                let slot = Arc::clone(&slot);
                thread::spawn(move || slot.claim())
            };
            let mine = slot.claim();
            assert!(mine != other.join().unwrap());
        });
    }

    /// A reader that has seen the zeros that the handler put there finds the mapping broken.
    #[test]
    fn zeros_are_never_taken_for_the_file() {
        loom::model(|| {
            let slot = Arc::new(holding(1_000..2_000));
            let zeros = Arc::new(AtomicUsize::new(0));
            let handler = {
                let (slot, zeros) = (Arc::clone(&slot), Arc::clone(&zeros));
                thread::spawn(move || {
                    assert_eq!(slot.end_if_covering(1_500), Some(2_000));
                    slot.mark_broken();
                    // The kernel's part: other threads see the new pages by its own locks.
                    zeros.store(1, Ordering::Release);
                })
            };
            let saw_zeros = zeros.load(Ordering::Acquire) == 1;
            assert!(slot.is_broken() || !saw_zeros);
            handler.join().unwrap();
        });
    }
}
