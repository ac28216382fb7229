//! The link on the kernel engine: being promoted, turns, control records, and the end.

use super::{Link, Protection, Turn};
pub(super) use crate::engine::kernel::COUNTED_FOR_ONE;
use crate::{
    ending::Ending,
    engine::{
        Pieces,
        kernel::{self, Carried, Departure, Fault, Refusal, Step},
        nic::{self, Adapter, Flow, Proof},
        source::Source,
    },
    metrics::{Engine, KernelRefused, SetUp},
    report,
};
use linerate_os::socket;
use linerate_placement::Lack;
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
    /// It was promoted, or will never be.
    settled: bool,
    /// What stands in its way may pass, but not as soon as at the next record.
    waits_for_next_response: bool,
    /// It is counted among those that stay on the user engine.
    is_counted: bool,
    /// The adapter by which it leaves, if that encrypts or could, once it was looked for.
    adapter: Option<Option<Arc<Adapter>>>,
    /// The adapter has it.
    flow: Option<Flow>,
    /// Bytes of responses that the user engine has sent.
    sent_bytes: u64,
    /// What the kernel carries of its version and cipher, once promoted.
    carried: Option<Carried>,
    departure: Departure,
    /// The content of the response under way never changes.
    immutable: bool,
    /// Whether adapters may read files while they are sent.
    zero_copy: bool,
}

impl KernelSide {
    /// The user engine has sent so many bytes.
    pub(super) fn count(&mut self, sent_bytes: u64) {
        self.sent_bytes += sent_bytes;
    }
}

/// By whom a connection that is due would be carried.
enum Way {
    Kernel,
    Adapter(Arc<Adapter>),
    /// It stays on the user engine.
    None(KernelRefused),
}

/// How often, at first and at most, it is looked whether all has left.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(50);

impl<K: KeySource> Link<K> {
    /// Says whether the content of the next response never changes.
    pub(crate) fn content_is_immutable(&mut self, immutable: bool) {
        self.kernel.immutable = immutable;
    }

    /// Bytes of responses that the user engine has sent.
    pub(crate) fn user_engine_bytes(&self) -> u64 {
        self.kernel.sent_bytes
    }

    /// Whether the kernel makes the records.
    pub(super) fn is_promoted(&self) -> bool {
        self.channel().is_some_and(linerate_record::Channel::is_handed_over)
    }

    /// A response begins: what stood in the way of the last one may not stand in the way of this.
    pub(super) fn response_begins(&mut self) {
        self.kernel.waits_for_next_response = false;
    }

    /// Promotes the connection, if a response of this size (so much of it left) is to and can. Everything sealed has
    /// been written to the socket (precondition 1 of the switch). Whatever stands against it, the user engine goes on.
    pub(super) async fn promote_if_due(
        &mut self,
        response_bytes: u64,
        remaining_bytes: u64,
    ) -> Result<(), Ending> {
        if let Some(carried) = self.due(response_bytes) {
            match self.way() {
                Way::Kernel => self.promote_to_kernel(carried, remaining_bytes),
                Way::Adapter(adapter) => self.promote_to_adapter(&adapter, carried, remaining_bytes).await?,
                Way::None(refusal) => self.refuse(refusal),
            }
        }
        self.allow_zero_copy()
    }

    /// How the kernel carries this connection, if it is due for that and nothing is known to stand against it.
    fn due(&mut self, response_bytes: u64) -> Option<Carried> {
        if self.kernel.settled || self.kernel.waits_for_next_response {
            return None;
        }
        let tuning = self.workplace.tuning.get();
        let Protection::Tls(channel) = &self.protection else { return None };
        let capabilities = self.workplace.kernel.borrow().clone()?;
        if response_bytes < tuning.kernel_from_bytes || self.kernel.sent_bytes < tuning.kernel_after_bytes {
            return None;
        }
        debug_assert!(self.unsent.is_empty(), "what is sealed goes first");
        let refusal = match capabilities.verdict(channel.version(), channel.aead()) {
            Err(lack) => lack.refused(),
            Ok(_) if !channel.keeps_key() => KernelRefused::Older,
            Ok(carried) => return Some(carried),
        };
        self.refuse(refusal);
        None
    }

    /// By whom the connection would be carried. Linux gives it to an adapter that may take it, whoever asks.
    fn way(&mut self) -> Way {
        let Some(channel) = self.channel() else { return Way::None(KernelRefused::System) };
        let combination = kernel::combination(channel.version(), channel.aead());
        let adapter_only = self.workplace.tuning.get().adapter_only;
        let adapter = self.kernel.adapter.get_or_insert_with(|| {
            let adapters = self.workplace.adapters.borrow();
            adapters.towards(&*self.workplace.calls, self.stream.as_fd())
        });
        let Some(adapter) = adapter else {
            return if adapter_only { Way::None(KernelRefused::NoAdapter) } else { Way::Kernel };
        };
        match adapter.objects(combination) {
            Some(lack) if adapter_only => Way::None(KernelRefused::of_adapter(&lack)),
            // It would not be asked.
            Some(Lack::FeatureOff(_) | Lack::CipherNotInNic(_)) => Way::Kernel,
            _ => Way::Adapter(Arc::clone(adapter)),
        }
    }

    /// The connection stays on the user engine: for good, or until the next response.
    fn refuse(&mut self, refusal: KernelRefused) {
        let passes = refusal == KernelRefused::AdapterRefuses || refusal == KernelRefused::NotInNic;
        self.kernel.settled = !passes;
        self.kernel.waits_for_next_response = passes;
        if !std::mem::replace(&mut self.kernel.is_counted, true) {
            self.workplace.metrics.refuse_kernel(refusal);
        }
    }

    fn promote_to_kernel(&mut self, carried: Carried, remaining_bytes: u64) {
        let Protection::Tls(channel) = &mut self.protection else { return };
        let calls = &*self.workplace.calls;
        match kernel::promote(calls, self.stream.as_fd(), channel, carried, remaining_bytes) {
            Ok(departure) => self.promoted(carried, departure, None),
            Err(refusal) => self.promotion_failed(&refusal),
        }
    }

    /// The switch is made on a thread that may wait for the adapter, with the connection parked: nothing is sent, sealed or
    /// received for it meanwhile. The adapter takes no new key for it, whatever the kernel's software does.
    async fn promote_to_adapter(
        &mut self,
        adapter: &Arc<Adapter>,
        carried: Carried,
        remaining_bytes: u64,
    ) -> Result<(), Ending> {
        let Some(place) = self.workplace.set_ups.enter() else { return Ok(()) };
        let Protection::Tls(channel) = &mut self.protection else { return Ok(()) };
        let combination = kernel::combination(channel.version(), channel.aead());
        let calls = Arc::clone(&self.workplace.calls);
        // A descriptor of its own: this task may end before the thread does.
        let socket = self.stream.as_fd().try_clone_to_owned().map_err(Ending::Socket)?;
        let prepared = match kernel::prepare(&*calls, socket.as_fd(), channel, false, remaining_bytes) {
            Ok(prepared) => prepared,
            Err(refusal) => {
                self.promotion_failed(&refusal);
                return Ok(());
            }
        };
        let witness = Arc::clone(&self.workplace.adapters.borrow().witness);
        let started = Instant::now();
        let finished = tokio::task::spawn_blocking(move || {
            let proof = nic::set_up(&*calls, socket.as_fd(), &prepared, &witness);
            (prepared, proof)
        });
        // Without the key there is no way to go on.
        let (prepared, proof) = finished.await.map_err(|error| Ending::KernelKey(io::Error::other(error)))?;
        drop(place);
        self.watch.forget_pace();
        self.begin(crate::watch::Stage::Sending);
        let outcome = proof.as_ref().map_or(SetUp::Refused, |&proof| proof.into());
        self.workplace.metrics.set_up(outcome, started.elapsed());
        let switched = proof.map(|proof| (proof, adapter.learn(combination, proof)));
        let takes_new_keys = matches!(switched, Ok((Proof::Software, _))) && carried.takes_new_keys;
        let Protection::Tls(channel) = &mut self.protection else { return Ok(()) };
        let (switched, flow) = match switched {
            Ok((_, flow)) => (Ok(takes_new_keys), flow),
            Err(refusal) => (Err(refusal), None),
        };
        match kernel::settle(channel, prepared, switched) {
            Ok(departure) => self.promoted(carried, departure, flow),
            Err(refusal) => self.promotion_failed(&refusal),
        }
        Ok(())
    }

    fn promoted(&mut self, carried: Carried, departure: Departure, flow: Option<Flow>) {
        self.kernel.settled = true;
        self.kernel.carried = Some(carried);
        self.kernel.departure = departure;
        self.kernel.flow = flow;
        self.workplace.metrics.kernel_promotions.increment();
        // The mark only matters to how the socket reports room; there is nobody to tell.
        let _ = socket::clear_not_sent_low_water(&self.stream);
    }

    fn promotion_failed(&mut self, refusal: &Refusal) {
        if matches!(refusal, Refusal::NotReady) {
            return;
        }
        tell_once(refusal);
        self.refuse(refusal.refused());
    }

    /// The engine of a connection that was promoted.
    pub(super) fn promoted_engine(&self) -> Engine {
        if self.kernel.flow.is_some() { Engine::Nic } else { Engine::Kernel }
    }

    /// Lets adapters read the file while it is sent, or forbids it, as this response's content allows.
    fn allow_zero_copy(&mut self) -> Result<(), Ending> {
        let wanted = self.kernel.immutable && self.kernel.carried.is_some_and(|carried| carried.zero_copy);
        if wanted != self.kernel.zero_copy {
            self.workplace.calls.set_zero_copy(self.stream.as_fd(), wanted).map_err(Ending::Socket)?;
            self.kernel.zero_copy = wanted;
        }
        Ok(())
    }

    /// A turn of the kernel engine.
    pub(super) fn kernel_turn(
        &mut self,
        pieces: &mut Pieces<'_>,
        source: Option<Source<'_>>,
    ) -> Result<Turn, Ending> {
        let Protection::Tls(channel) = &mut self.protection else { return Ok(Turn::Full) };
        let quantum_bytes = self.workplace.tuning.get().quantum_bytes;
        let metrics = &self.workplace.metrics;
        let calls = &*self.workplace.calls;
        match kernel::step(calls, self.stream.as_fd(), channel, pieces, source, quantum_bytes) {
            Ok(Step::Sent(bytes)) => {
                self.kernel.departure.add(bytes);
                Ok(Turn::Sent(bytes))
            }
            Ok(Step::Full(bytes)) => {
                self.kernel.departure.add(bytes);
                metrics.send(self.promoted_engine(), bytes);
                if bytes > 0 {
                    self.begin(crate::watch::Stage::Sending);
                }
                Ok(Turn::Full)
            }
            Ok(Step::KeyUpdate) => {
                metrics.key_updates_sent.increment();
                Ok(Turn::Sent(0))
            }
            Ok(Step::Cold(range)) => Ok(Turn::Cold(range)),
            Ok(Step::Truncated(offset)) => Err(Ending::Truncated { offset }),
            Err(Fault::Socket(error)) => Err(Ending::Socket(error)),
            Err(Fault::Record(fault)) => Err(Ending::Record(fault)),
        }
    }

    /// Whether control records wait.
    pub(super) fn has_control(&self) -> bool {
        self.channel().is_some_and(|channel| channel.next_control().is_some())
    }

    /// Sends the control records that wait, each whole and in its turn, however full the socket is; behind a key update
    /// the next key is installed.
    pub(super) async fn flush_control(&mut self) -> Result<(), Ending> {
        loop {
            let Protection::Tls(channel) = &mut self.protection else { return Ok(()) };
            let Some(record) = channel.next_control() else { return Ok(()) };
            let (calls, socket) = (&*self.workplace.calls, self.stream.as_fd());
            match calls.send_control(socket, record.content_type().wire(), record.payload()) {
                Ok(()) => {
                    let changed = kernel::after_control(calls, socket, channel, &mut self.kernel.departure)
                        .map_err(Ending::KernelKey)?;
                    self.workplace.metrics.kernel_key_updates.add(u64::from(changed));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room().await?,
                Err(error) => return Err(Ending::Socket(error)),
            }
        }
    }

    /// Before the next response, near the record limit of a key that cannot be changed: the exact count.
    pub(super) fn count_exactly(&mut self) {
        if let Protection::Tls(channel) = &mut self.protection
            && channel.is_handed_over()
            && !channel.can_send()
        {
            kernel::count_exactly_near_the_limit(
                &*self.workplace.calls,
                self.stream.as_fd(),
                channel,
                u64::MAX,
            );
        }
    }

    /// Waits until what the kernel holds back has gone on to TCP: closing the socket before would throw it away.
    pub(super) async fn wait_for_departure(&mut self) -> Result<(), Ending> {
        let mut pause = FIRST_LOOK;
        while let Protection::Tls(channel) = &self.protection
            && channel.is_handed_over()
        {
            let calls = &*self.workplace.calls;
            if self
                .kernel
                .departure
                .is_complete(calls, self.stream.as_fd(), channel)
                .map_err(Ending::Socket)?
            {
                break;
            }
            tokio::select! {
                ended = self.wait(false, false) => drop(ended?),
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
    if let Refusal::System(error) = refusal {
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

impl KernelRefused {
    /// The counter of what an adapter has against a connection.
    fn of_adapter(lack: &Lack) -> Self {
        match lack {
            Lack::FeatureOff(_) => Self::FeatureOff,
            Lack::CipherNotInNic(_) | Lack::VersionNotInNic { .. } => Self::NotInNic,
            _ => Self::AdapterRefuses,
        }
    }
}

impl Refusal {
    /// The counter it belongs to.
    fn refused(&self) -> KernelRefused {
        match self {
            Self::RecordLimit => KernelRefused::RecordLimit,
            Self::NotConnected => KernelRefused::NotConnected,
            Self::Module => KernelRefused::Module,
            Self::Cipher => KernelRefused::Cipher,
            Self::System(_) | Self::NotReady => KernelRefused::System,
        }
    }
}
