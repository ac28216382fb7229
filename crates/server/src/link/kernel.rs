//! The link on the kernel engine: being promoted, turns, control records, and the end.

use super::{Link, Protection, Turn};
pub(super) use crate::engine::kernel::COUNTED_FOR_ONE;
use crate::{
    ending::Ending,
    engine::{
        Pieces,
        kernel::{self, Carried, Departure, Fault, Refusal, Step},
        source::Source,
    },
    metrics::{Engine, KernelRefused},
    report,
};
use linerate_os::socket;
use linerate_record::KeySource;
use std::{io, os::fd::AsFd, sync::Once, time::Duration};

/// How a connection stands to the kernel engine.
#[derive(Debug, Default)]
pub(super) struct KernelSide {
    /// It was promoted, or will never be.
    settled: bool,
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

    /// Promotes the connection, if a response of this size (so much of it left) is to and can. Everything sealed has
    /// been written to the socket (precondition 1 of the switch). Whatever stands against it, the user engine goes on.
    pub(super) fn promote_if_due(&mut self, response_bytes: u64, remaining_bytes: u64) -> Result<(), Ending> {
        if !self.kernel.settled {
            self.try_to_promote(response_bytes, remaining_bytes);
        }
        self.allow_zero_copy()
    }

    fn try_to_promote(&mut self, response_bytes: u64, remaining_bytes: u64) {
        let tuning = self.workplace.tuning.get();
        let Protection::Tls(channel) = &mut self.protection else { return };
        let capabilities = self.workplace.kernel.borrow().clone();
        let Some(capabilities) = capabilities else { return };
        if response_bytes < tuning.kernel_from_bytes || self.kernel.sent_bytes < tuning.kernel_after_bytes {
            return;
        }
        debug_assert!(self.unsent.is_empty(), "what is sealed goes first");
        let metrics = &self.workplace.metrics;
        let refusal = match capabilities.verdict(channel.version(), channel.aead()) {
            Err(lack) => lack.refused(),
            Ok(_) if !channel.keeps_key() => KernelRefused::Older,
            Ok(carried) => {
                let calls = &*self.workplace.calls;
                match kernel::promote(calls, self.stream.as_fd(), channel, carried, remaining_bytes) {
                    Ok(departure) => {
                        self.kernel.settled = true;
                        self.kernel.carried = Some(carried);
                        self.kernel.departure = departure;
                        metrics.kernel_promotions.increment();
                        // The mark only matters to how the socket reports room; there is nobody to tell.
                        let _ = socket::clear_not_sent_low_water(&self.stream);
                        return;
                    }
                    Err(Refusal::NotReady) => return,
                    Err(refusal) => {
                        tell_once(&refusal);
                        refusal.refused()
                    }
                }
            }
        };
        self.kernel.settled = true;
        metrics.refuse_kernel(refusal);
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
                metrics.send(Engine::Kernel, bytes);
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
