//! The link on the kernel engine: being promoted, turns, control records, and the end.

#[cfg(test)]
mod freebsd_tests;
#[cfg(test)]
mod tests;

use super::{secure::Secure, wire::Wire};
use crate::{
    ending::Ending,
    metrics::{LeftAdapter, SetUp},
    report,
};
pub(super) use linerate_engine::kernel::counted_for_one;
use linerate_engine::{
    Queue, Turn,
    kernel::{self, Carried, Departure, Refusal},
    nic::{self, Flow, Proof, route},
};
use linerate_os::{kernel_tls::Carrier, socket};
use linerate_placement::{Capabilities, Engine as Placed, Lack, Reason};
use linerate_record::KeySource;
use std::{
    io,
    os::fd::AsFd,
    sync::{Arc, Once},
    time::{Duration, Instant},
};

/// How a connection stands to the kernel engine.
#[derive(Debug, Default)]
pub(super) struct KernelSide {
    /// The adapter by which it leaves, if that encrypts or could, once it was looked for.
    adapter: Option<Option<Arc<nic::Egress>>>,
    /// The adapter has it.
    flow: Option<Flow>,
    /// A set-up was taken from the budget, and the adapter has not been asked for it yet.
    holds_set_up: bool,
    /// What the kernel carries of its version and cipher, once promoted.
    carried: Option<Carried>,
    departure: Departure,
    /// The content of the response under way never changes.
    pub(super) immutable: bool,
    /// Whether adapters may read files while they are sent.
    zero_copy: bool,
}

impl KernelSide {
    pub(super) fn is_with_adapter(&self) -> bool {
        self.flow.is_some()
    }
}

/// The engine that a move would use.
enum Target {
    Kernel,
    Adapter(Arc<nic::Egress>),
    /// It stays on the user engine.
    None(Lack),
}

/// What an attempt to promote a connection came to.
pub(super) enum Promotion {
    /// It makes its records no longer here. The reason, if it is another than that of the decision.
    Done(Option<Reason>),
    /// Another record boundary may do.
    NotNow,
    /// The next response may do.
    NotThisTime(Reason),
    /// It stays on the user engine for good.
    Never(Reason),
}

/// How often, at first and at most, it is looked whether all has left.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(50);

impl<K: KeySource> Secure<K> {
    /// The engines that can carry this connection. The adapter by which it leaves is looked for once, and only where
    /// `is_wanted`: that costs system calls. Where nothing would move, not even to an adapter, the reason is told as if the
    /// connection left by one, if there is one.
    pub(super) fn capabilities(&mut self, wire: &Wire, is_wanted: bool) -> Capabilities {
        let combination = self.combination();
        let placer = &wire.workplace.placer;
        let can = placer.capabilities(combination);
        if can.kernel.lack().is_some() {
            return can;
        }
        if !is_wanted {
            let has_adapter = placer.is_auto() && placer.has_adapter();
            return if has_adapter { route::with_adapter(can, None, true) } else { can };
        }
        let Some(adapter) = self.adapter(wire) else { return can };
        route::with_adapter(can, adapter.known_lack(combination), placer.is_auto())
    }

    /// The adapter by which the connection leaves, if it encrypts or could.
    fn adapter(&mut self, wire: &Wire) -> Option<Arc<nic::Egress>> {
        let adapter = self.kernel.adapter.get_or_insert_with(|| {
            let adapters = wire.workplace.adapters.borrow();
            adapters.towards(&*wire.workplace.calls, wire.stream.as_fd())
        });
        adapter.clone()
    }

    /// Promotes the connection, so many bytes before the end of its response. Everything sealed has been written to the
    /// socket (precondition 1 of the switch). Whatever stands against it, the user engine goes on.
    ///
    /// # Errors
    /// The connection cannot go on at all.
    pub(super) async fn promote(
        &mut self,
        wire: &Wire,
        wanted: Placed,
        remaining_bytes: u64,
    ) -> Result<Promotion, Ending> {
        debug_assert!(self.unsent.is_empty(), "what is sealed goes first");
        let combination = self.combination();
        let capabilities = wire.workplace.kernel.borrow().clone();
        let Some(capabilities) = capabilities else {
            // Nothing was to move there when the kernel was looked at, so it was not tested.
            return Ok(self.refuse(wire, Reason::Lacking(Lack::NotKnown(Placed::Kernel))));
        };
        let carried = match capabilities.verdict(combination) {
            Ok(carried) => carried,
            Err(objection) => return Ok(self.refuse(wire, Reason::Lacking(objection.lack))),
        };
        if !self.channel.keeps_key() {
            return Ok(self.refuse(wire, Reason::BeforeReload));
        }
        match self.target(wire, wanted) {
            Target::Kernel => Ok(self.promote_to_kernel(wire, carried, remaining_bytes)),
            Target::Adapter(adapter) => {
                // Meant for the kernel, and the adapter goes first: that is a set-up like any other.
                if wanted == Placed::Kernel {
                    if let Some(spent) = wire.workplace.placer.take_set_up() {
                        return Ok(Promotion::NotThisTime(spent));
                    }
                    self.kernel.holds_set_up = true;
                }
                self.promote_to_adapter(wire, &adapter, carried, wanted, remaining_bytes).await
            }
            Target::None(lack) => {
                let reason = Reason::Lacking(lack);
                self.count_refusal(wire, &reason);
                Ok(Promotion::NotThisTime(reason))
            }
        }
    }

    /// What a move would move to. Linux, and FreeBSD, give a connection to an adapter that may take it, whatever was asked for.
    fn target(&mut self, wire: &Wire, wanted: Placed) -> Target {
        let combination = self.combination();
        let adapter_only = wanted == Placed::Nic;
        let Some(adapter) = self.adapter(wire) else {
            return if adapter_only { Target::None(Lack::NoAdapter) } else { Target::Kernel };
        };
        let reads_files = wire.workplace.calls.habits().adapter_reads_files;
        if reads_files && !self.kernel.immutable && adapter.may_be_asked(combination) {
            return Target::None(Lack::FilesMayChange);
        }
        match adapter.objects(combination) {
            Some(lack) if adapter_only => Target::None(lack),
            // It would not be asked.
            Some(_) if !adapter.may_be_asked(combination) => Target::Kernel,
            _ => Target::Adapter(adapter),
        }
    }

    /// The connection stays on the user engine for good.
    fn refuse(&mut self, wire: &Wire, reason: Reason) -> Promotion {
        self.count_refusal(wire, &reason);
        Promotion::Never(reason)
    }

    fn promote_to_kernel(&mut self, wire: &Wire, carried: Carried, remaining_bytes: u64) -> Promotion {
        let (calls, socket) = (&*wire.workplace.calls, wire.stream.as_fd());
        match kernel::promote(calls, socket, &mut self.channel, carried, remaining_bytes) {
            Ok(departure) => {
                self.promoted(wire, carried, departure, None);
                Promotion::Done(None)
            }
            Err(refusal) => self.promotion_failed(wire, &refusal),
        }
    }

    /// The switch is made on a thread that may wait for the adapter, with the connection parked: nothing is sent, sealed or
    /// received for it meanwhile. The adapter takes no new key for it, whatever the kernel's software does.
    async fn promote_to_adapter(
        &mut self,
        wire: &Wire,
        adapter: &nic::Egress,
        carried: Carried,
        wanted: Placed,
        remaining_bytes: u64,
    ) -> Result<Promotion, Ending> {
        let Some(place) = wire.workplace.set_ups.enter() else { return Ok(Promotion::NotNow) };
        let calls = Arc::clone(&wire.workplace.calls);
        // A descriptor of its own: this task may end before the thread does.
        let Ok(socket) = wire.stream.as_fd().try_clone_to_owned() else { return Ok(Promotion::NotNow) };
        let prepared =
            match kernel::prepare(&*calls, socket.as_fd(), &mut self.channel, false, remaining_bytes) {
                Ok(prepared) => prepared,
                Err(refusal) => return Ok(self.promotion_failed(wire, &refusal)),
            };
        let witness = Arc::clone(&wire.workplace.adapters.borrow().witness);
        self.kernel.holds_set_up = false;
        wire.begin_own_work();
        let started = Instant::now();
        let finished = tokio::task::spawn_blocking(move || {
            let asked = Instant::now();
            let proof = nic::set_up(&*calls, socket.as_fd(), &prepared, &witness);
            (prepared, proof, asked.elapsed())
        });
        // Without the key there is no way to go on.
        let (prepared, proof, took) =
            finished.await.map_err(|error| Ending::KernelKey(io::Error::other(error)))?;
        drop(place);
        wire.watch.forget_pace();
        wire.begin(crate::watch::Stage::Sending);
        let outcome = proof.as_ref().map_or(SetUp::Refused, |&proof| proof.into());
        wire.workplace.metrics.set_up(outcome, started.elapsed());
        if let SetUp::Adapter = outcome {
            wire.workplace.placer.set_up_took(took);
        }
        let switched = proof.map(|proof| (proof, adapter.learn(self.combination(), proof)));
        let takes_new_keys = matches!(switched, Ok((Proof::Software, _))) && carried.takes_new_keys;
        let (switched, flow) = match switched {
            Ok((_, flow)) => (Ok(takes_new_keys), flow),
            Err(refusal) => (Err(refusal), None),
        };
        match kernel::settle(&mut self.channel, prepared, switched) {
            Ok(departure) => {
                let fell_back = wanted == Placed::Nic && flow.is_none();
                self.promoted(wire, carried, departure, flow);
                Ok(Promotion::Done(fell_back.then_some(Reason::FellBack)))
            }
            Err(refusal) => Ok(self.promotion_failed(wire, &refusal)),
        }
    }

    fn promoted(&mut self, wire: &Wire, carried: Carried, departure: Departure, flow: Option<Flow>) {
        self.kernel.carried = Some(carried);
        self.kernel.departure = departure;
        self.kernel.flow = flow;
        wire.workplace.metrics.kernel_promotions.increment();
        // The mark only matters to how the socket reports room; there is nobody to tell.
        let _ = socket::clear_not_sent_low_water(&wire.stream);
    }

    fn promotion_failed(&mut self, wire: &Wire, refusal: &Refusal) -> Promotion {
        if refusal.reason == Reason::NotReady {
            return Promotion::NotNow;
        }
        tell_once(refusal);
        self.refuse(wire, refusal.reason)
    }

    /// It was decided to give it to the adapter: a set-up was taken from the budget for that.
    pub(super) fn take_set_up(&mut self) {
        self.kernel.holds_set_up = true;
    }

    /// What was taken from the budget and not asked of the adapter goes back.
    pub(super) fn give_back_set_up(&mut self, wire: &Wire) {
        if std::mem::take(&mut self.kernel.holds_set_up) {
            wire.workplace.placer.give_back_set_up();
        }
    }

    /// Where the kernel moves connections: it may have taken this one back from its adapter because too much of it was lost, and
    /// it has to be taken back for content that may change while the adapter reads it (INV-NIC-3).
    pub(super) fn follow_the_adapter(&mut self, wire: &Wire) -> Result<(), Ending> {
        let (calls, socket) = (&*wire.workplace.calls, wire.stream.as_fd());
        if self.kernel.flow.is_none() || !calls.habits().moves_connections {
            return Ok(());
        }
        let is_with_adapter = || match calls.carriers(socket) {
            Ok(carriers) => Ok(carriers.sending == Some(Carrier::Adapter)),
            Err(error) => Err(Ending::Socket(error)),
        };
        let left = if !is_with_adapter()? {
            LeftAdapter::Loss
        } else if calls.habits().adapter_reads_files && !self.kernel.immutable {
            match calls.set_carrier(socket, Carrier::Software) {
                Ok(()) => LeftAdapter::FilesMayChange,
                // The kernel was quicker.
                Err(_) if !is_with_adapter()? => LeftAdapter::Loss,
                Err(error) => return Err(Ending::Socket(error)),
            }
        } else {
            return Ok(());
        };
        self.kernel.flow = None;
        wire.workplace.metrics.nic_left.of(left).increment();
        Ok(())
    }

    /// Lets adapters read the file while it is sent, or forbids it, as this response's content allows.
    pub(super) fn allow_zero_copy(&mut self, wire: &Wire) -> Result<(), Ending> {
        let wanted = self.kernel.immutable && self.kernel.carried.is_some_and(|carried| carried.zero_copy);
        if wanted != self.kernel.zero_copy {
            wire.workplace.calls.set_zero_copy(wire.stream.as_fd(), wanted).map_err(Ending::Socket)?;
            self.kernel.zero_copy = wanted;
        }
        Ok(())
    }

    /// A turn of the kernel engine.
    pub(super) fn kernel_turn(&mut self, wire: &Wire, queue: &mut Queue) -> Result<Turn, Ending> {
        let quantum_bytes = wire.workplace.tuning.get().quantum_bytes;
        let (calls, socket) = (&*wire.workplace.calls, wire.stream.as_fd());
        let turn = kernel::turn(calls, socket, &mut self.channel, queue, quantum_bytes)?;
        if let Turn::Sent(bytes) | Turn::Full(bytes) = turn {
            self.kernel.departure.add(bytes);
        }
        Ok(turn)
    }

    /// Sends the control records that wait, each whole and in its turn, however full the socket is; behind a key update
    /// the next key is installed.
    pub(super) async fn flush_control(&mut self, wire: &mut Wire) -> Result<(), Ending> {
        while let Some(record) = self.channel.next_control() {
            let (calls, socket) = (&*wire.workplace.calls, wire.stream.as_fd());
            match calls.send_control(socket, record.content_type().wire(), record.payload()) {
                Ok(()) => {
                    let Self { channel, kernel: KernelSide { departure, .. }, .. } = self;
                    let changed = kernel::after_control(calls, socket, channel, departure)
                        .map_err(Ending::KernelKey)?;
                    wire.workplace.metrics.kernel_key_updates.add(u64::from(changed));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room(wire).await?,
                Err(error) => return Err(Ending::Socket(error)),
            }
        }
        Ok(())
    }

    /// Before the next response, near the record limit of a key that cannot be changed: the exact count.
    pub(super) fn count_exactly(&mut self, wire: &Wire) {
        if self.channel.is_handed_over() && !self.channel.can_send() {
            let (calls, socket) = (&*wire.workplace.calls, wire.stream.as_fd());
            kernel::count_exactly_near_the_limit(calls, socket, &mut self.channel, u64::MAX);
        }
    }

    /// Waits until what the kernel holds back has gone on to TCP: closing the socket before would throw it away.
    pub(super) async fn wait_for_departure(&self, wire: &Wire) -> Result<(), Ending> {
        let mut pause = FIRST_LOOK;
        while self.channel.is_handed_over() {
            let (calls, socket) = (&*wire.workplace.calls, wire.stream.as_fd());
            if self.kernel.departure.is_complete(calls, socket, &self.channel).map_err(Ending::Socket)? {
                break;
            }
            tokio::select! {
                ended = wire.wait(false, false) => drop(ended?),
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LAST_LOOK);
        }
        Ok(())
    }
}

/// An error that nobody foresaw is told, the first one of the process; the others are counted.
fn tell_once(refusal: &Refusal) {
    static TOLD: Once = Once::new();
    if let Some(error) = &refusal.error {
        TOLD.call_once(|| {
            report::warn(&format!("a connection stays on the user engine: kernel TLS refused it: {error}"));
        });
    }
}

impl From<Proof> for SetUp {
    fn from(proof: Proof) -> Self {
        match proof {
            Proof::Adapter => Self::Adapter,
            Proof::Software => Self::Software,
            Proof::Unproven => Self::Unproven,
        }
    }
}
