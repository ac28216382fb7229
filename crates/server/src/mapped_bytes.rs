//! The budget of bytes that a worker maps.

use std::{cell::Cell, rc::Rc};

/// The bytes that a worker has mapped, and may map.
#[derive(Debug, Default)]
pub(crate) struct MappedBytes {
    mapped: Cell<u64>,
    limit: Cell<u64>,
}

impl MappedBytes {
    pub(crate) fn set_limit(&self, limit_bytes: u64) {
        self.limit.set(limit_bytes);
    }

    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit.get()
    }

    pub(crate) fn take(self: &Rc<Self>, bytes: u64) -> Option<Share> {
        let mapped = self.mapped.get().checked_add(bytes).filter(|&mapped| mapped <= self.limit.get())?;
        self.mapped.set(mapped);
        Some(Share { of: Rc::clone(self), bytes })
    }
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    of: Rc<MappedBytes>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.mapped.set(self.of.mapped.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_kept_and_given_back() {
        let budget = Rc::new(MappedBytes::default());
        budget.set_limit(100);
        let first = budget.take(60);
        assert!(first.is_some() && budget.take(41).is_none());
        let second = budget.take(40);
        assert!(second.is_some());
        drop(first);
        assert!(budget.take(u64::MAX).is_none());
        assert!(budget.take(60).is_some());
    }
}
