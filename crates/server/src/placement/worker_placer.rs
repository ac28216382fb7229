//! A worker's placer with what it is fed and what it reports: the server's plan, timed turns, recent decisions.

use super::PlacementPlan;
use crate::view::{Recent, Ring, View};
use linerate_os::{kernel_tls, usage};
use linerate_placement::{
    Capabilities, Cipher, Combination, ConnectionSignals, Decision, Engine, MachineSignals, Mode, Placer,
    Reason,
};
use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    time::{Duration, Instant},
};

/// One of so many turns of an engine is timed. A look at the clock costs 25 ns where the kernel maps it into the process,
/// and some hundred where it does not; a turn of 64 KiB takes 10 µs.
const TIMED_EVERY: u32 = 16;

/// A worker's own; nothing in it is shared.
pub(crate) struct WorkerPlacer {
    plan: RefCell<Arc<PlacementPlan>>,
    placer: RefCell<Placer>,
    recent: RefCell<Ring>,
    turns_until_timed: Cell<u32>,
    started: Instant,
    cpu: Cell<CpuUse>,
}

/// CPU time and clock at the last heartbeat.
#[derive(Clone, Copy, Debug, Default)]
struct CpuUse {
    cpu_s: f64,
    at_ms: u64,
    left: f64,
}

impl WorkerPlacer {
    pub(crate) fn new(plan: Arc<PlacementPlan>) -> Self {
        let placer = Placer::new(plan.policy, plan.costs.clone());
        Self {
            plan: RefCell::new(plan),
            placer: RefCell::new(placer),
            recent: RefCell::default(),
            turns_until_timed: Cell::new(TIMED_EVERY),
            started: Instant::now(),
            cpu: Cell::default(),
        }
    }

    /// Another plan, after a reload.
    pub(crate) fn adopt(&self, plan: Arc<PlacementPlan>) {
        self.placer.borrow_mut().adopt(plan.policy, plan.costs.clone());
        self.plan.replace(plan);
    }

    /// The engines that can carry a combination, as far as that does not depend on the peer.
    pub(crate) fn capabilities(&self, combination: Combination) -> Capabilities {
        self.plan.borrow().capabilities(combination)
    }

    /// Whether the server decides by cost.
    pub(crate) fn is_auto(&self) -> bool {
        self.plan.borrow().policy.mode == Mode::Auto
    }

    /// Whether an adapter of this machine encrypts.
    pub(crate) fn has_adapter(&self) -> bool {
        self.plan.borrow().has_adapter
    }

    /// Whether a connection may be moved at all; see [`Placer::may_move`].
    pub(crate) fn may_move(&self, connection: &ConnectionSignals) -> bool {
        self.placer.borrow().may_move(connection)
    }

    /// Whether a connection that stays for this reason was meant for the kernel or the adapter.
    pub(crate) fn is_refusal(&self, reason: &Reason) -> bool {
        match reason {
            Reason::RecordLimit { .. } => true,
            Reason::Lacking(_) => !self.is_auto(),
            _ => false,
        }
    }

    /// What carries the response from here on; see [`Placer::decide`]. The clock is asked only where an adapter could take
    /// it: nothing else depends on time.
    pub(crate) fn decide(
        &self,
        can: &Capabilities,
        connection: &ConnectionSignals,
        retransmitted: impl FnOnce() -> Option<f64>,
    ) -> Decision {
        let now_ns = if can.nic.lack().is_none() { self.now_ns() } else { 0 };
        self.placer.borrow_mut().decide(can, connection, now_ns, retransmitted)
    }

    /// The adapter took a connection, in so much time from the question on; see [`Placer::set_up_took`].
    pub(crate) fn set_up_took(&self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.placer.borrow_mut().set_up_took(took_ns, self.now_ns());
    }

    /// A move to the kernel of which the adapter will be asked first; see [`Placer::take_set_up`]. Where the operator has
    /// chosen the engine there is no budget.
    pub(crate) fn take_set_up(&self) -> Option<Reason> {
        if self.is_auto() { self.placer.borrow_mut().take_set_up(self.now_ns()) } else { None }
    }

    /// A set-up that was taken was not made; see [`Placer::give_back_set_up`].
    pub(crate) fn give_back_set_up(&self) {
        if self.is_auto() {
            self.placer.borrow_mut().give_back_set_up();
        }
    }

    /// For tests: set-ups that are left, and how many a second there are.
    #[cfg(test)]
    pub(crate) fn set_ups(&self) -> (f64, f64) {
        let placer = self.placer.borrow();
        (placer.budget().left(), placer.budget().rate_per_s())
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A response over TLS has ended.
    pub(crate) fn note(&self, recent: Recent) {
        self.recent.borrow_mut().push(recent);
    }

    /// Now and then the time at which a turn begins; give it to [`WorkerPlacer::observe`] when it is over.
    pub(crate) fn begin_turn(&self) -> Option<Instant> {
        let left = self.turns_until_timed.get();
        self.turns_until_timed.set(if left == 0 { TIMED_EVERY - 1 } else { left - 1 });
        (left == 0).then(Instant::now)
    }

    /// So many bytes went into a socket in a turn that did not wait.
    pub(crate) fn observe(&self, began: Instant, engine: Engine, cipher: Cipher, bytes: u64) {
        let elapsed_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.placer.borrow_mut().observe(engine, cipher, bytes, elapsed_ns);
    }

    /// The worker's heartbeat; `has_adapter` if one of the machine's encrypts. Returns what is to be told.
    pub(crate) fn refresh(&self, now_ms: u64, has_adapter: bool) -> View {
        let mut machine = MachineSignals { cpu_left: self.cpu_left(now_ms), ..MachineSignals::default() };
        if has_adapter {
            machine.nic_flows = adapter_flows();
        }
        let mut placer = self.placer.borrow_mut();
        placer.refresh(machine, self.now_ns());
        View::of(&placer, &self.recent.borrow(), machine.cpu_left, now_ms)
    }

    /// The part of this thread's time since the last heartbeat in which it did nothing; none where that is not known.
    fn cpu_left(&self, now_ms: u64) -> f64 {
        let before = self.cpu.get();
        let elapsed_s = now_ms.saturating_sub(before.at_ms) as f64 / 1000.0;
        let Ok(used) = usage::current_thread() else { return 0.0 };
        let cpu_s = used.user_s + used.system_s;
        // Two heartbeats in the same moment say nothing.
        let left = if elapsed_s > 0.01 {
            (1.0 - (cpu_s - before.cpu_s) / elapsed_s).clamp(0.0, 1.0)
        } else {
            return before.left;
        };
        self.cpu.set(CpuUse { cpu_s, at_ms: now_ms, left });
        left
    }
}

/// Flows that adapters have, as the kernel counts them for this network namespace.
fn adapter_flows() -> u64 {
    let Ok(statistics) = kernel_tls::statistics() else { return 0 };
    statistics.iter().find(|one| one.name == "TlsCurrTxDevice").map_or(0, |one| one.value)
}
