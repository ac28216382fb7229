//! Which connection is closed for a newcomer: the one that has been idle for longest.
//!
//! Nothing is kept in order while connections come and go, because that would cost each request something. Where a place is
//! needed all are looked at, those that are idle for longest are noted, and newcomers get theirs one by one.

use super::{Stage, Watch, Watches};
use std::{collections::VecDeque, rc::Weak};

/// Connections noted at once: looking at all of them is paid for by so many newcomers.
const NOTED: usize = 256;

/// What is known of idle connections.
#[derive(Default)]
pub(super) struct Idle {
    /// The first goes first. Each with the deadline by which it is known whether it still waits for the same.
    noted: VecDeque<(Weak<Watch>, u64)>,
    /// All that there were at this time have been noted.
    complete_at_ms: Option<u64>,
}

impl Watches {
    /// Closes the connection that has been idle for longest; one that we have closed already, and whose peer has not, goes
    /// before it. False if there is none.
    pub(crate) fn evict_idle(&self, now_ms: u64) -> bool {
        let mut idle = self.idle.borrow_mut();
        loop {
            while let Some((watch, deadline_ms)) = idle.noted.pop_front() {
                let watch = watch.upgrade();
                let still =
                    watch.filter(|watch| watch.may_make_room() && watch.deadline_ms.get() == deadline_ms);
                if let Some(watch) = still {
                    watch.evict();
                    return true;
                }
            }
            // Between two sweeps there are no more: a connection that has become idle since was only just served.
            if idle.complete_at_ms == Some(now_ms) {
                return false;
            }
            self.note_idle(&mut idle, now_ms);
        }
    }

    fn note_idle(&self, idle: &mut Idle, now_ms: u64) {
        let all = self.all.borrow();
        let waiting = all.iter().filter_map(Weak::upgrade).filter(|watch| watch.may_make_room());
        let mut waiting: Vec<(bool, u64, Weak<Watch>)> = waiting
            .map(|watch| {
                (watch.stage.get() == Stage::Idle, watch.deadline_ms.get(), std::rc::Rc::downgrade(&watch))
            })
            .collect();
        if waiting.len() > NOTED {
            waiting.select_nth_unstable_by_key(NOTED, |(is_idle, deadline_ms, _)| (*is_idle, *deadline_ms));
            waiting.truncate(NOTED);
        } else {
            idle.complete_at_ms = Some(now_ms);
        }
        waiting.sort_unstable_by_key(|(is_idle, deadline_ms, _)| (*is_idle, *deadline_ms));
        idle.noted = waiting.into_iter().map(|(_, deadline_ms, watch)| (watch, deadline_ms)).collect();
    }
}

impl Watch {
    /// Whether nothing happens on the connection, and it was not told to end.
    fn may_make_room(&self) -> bool {
        matches!(self.stage.get(), Stage::Idle | Stage::Closing) && self.expired.get().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Expiry;
    use std::{
        rc::Rc,
        task::{Context, Waker},
    };

    fn is_evicted(watch: &Watch) -> bool {
        matches!(watch.poll_expired(&Context::from_waker(Waker::noop())), Some(Expiry::Evicted(_)))
    }

    #[test]
    fn those_that_are_idle_for_longest_go_first_and_none_that_is_busy() {
        let watches = Watches::default();
        let all: Vec<Rc<Watch>> = (0..1000).map(|_| watches.enter()).collect();
        for (index, watch) in all.iter().enumerate() {
            // In an order that is not that of their coming; every tenth is busy.
            let stage = if index.is_multiple_of(10) { Stage::Sending } else { Stage::Idle };
            watch.begin(stage, 10_000 + (index as u64 * 7919) % 1000);
        }
        all[11].begin(Stage::Closing, 50_000);
        assert!(watches.evict_idle(0) && is_evicted(&all[11]), "what is over goes before all others");
        let mut by_age: Vec<&Rc<Watch>> =
            all.iter().filter(|watch| watch.stage.get() == Stage::Idle).collect();
        by_age.sort_by_key(|watch| watch.deadline_ms.get());
        // One that is served meanwhile has its turn later.
        by_age[100].begin(Stage::Head, 20_000);
        let spared = by_age.remove(100);
        for (index, watch) in by_age.iter().enumerate() {
            assert!(!is_evicted(watch) && watches.evict_idle(0) && is_evicted(watch), "{index}");
        }
        assert!(!watches.evict_idle(0), "nobody is left");
        spared.begin(Stage::Idle, 30_000);
        assert!(!watches.evict_idle(0), "not before the next sweep");
        assert!(watches.evict_idle(200) && is_evicted(spared));
        let busy = all.iter().filter(|watch| watch.stage.get() == Stage::Sending);
        assert!(busy.clone().count() == 100 && busy.clone().all(|watch| !is_evicted(watch)));
    }
}
