//! What a worker counts. Each worker has its own counters, written by it alone, and a scrape adds them up: nothing on
//! the hot path is shared.

mod counter;
mod histogram;
mod render;

pub(crate) use counter::Counter;
pub(crate) use histogram::Histogram;
pub(crate) use render::{Single, render};

use crate::view::View;
use linerate_placement::{Decision, Lack, Reason};
use std::{
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

/// A label of a family of counters, all of whose values are known beforehand.
pub(crate) trait Label: Copy + 'static {
    /// What the label is called.
    const NAME: &'static str;
    /// All values, in the order of [`Label::index`].
    const ALL: &'static [Self];
    fn label(self) -> &'static str;
    fn index(self) -> usize;
}

macro_rules! labelled {
    ($(#[$doc:meta])* $called:literal $name:ident { $($variant:ident => $label:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),+ }

        impl Label for $name {
            const NAME: &'static str = $called;
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn label(self) -> &'static str {
                match self { $(Self::$variant => $label),+ }
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

labelled! {
    /// What carries a response's body.
    "engine" Engine { User => "user", Kernel => "kernel", Nic => "nic", Plain => "plain" }
}

impl Engine {
    /// As placement calls it; `None` in the clear, where there is nothing to place.
    pub(crate) fn placed(self) -> Option<linerate_placement::Engine> {
        match self {
            Self::User => Some(linerate_placement::Engine::User),
            Self::Kernel => Some(linerate_placement::Engine::Kernel),
            Self::Nic => Some(linerate_placement::Engine::Nic),
            Self::Plain => None,
        }
    }
}

labelled! {
    /// Why a connection was not taken, for want of room.
    "reason" Refused {
        Connections => "connection_limit",
        Handshakes => "handshake_limit",
        OfAddress => "address_connections",
        HandshakesOfAddress => "address_handshakes",
        Descriptors => "descriptors",
    }
}

labelled! {
    /// Why a connection that the kernel was to carry stays on the user engine.
    "reason" KernelRefused {
        Module => "module",
        Cipher => "cipher",
        SelfTest => "self_test",
        RecordLimit => "record_limit",
        NotConnected => "not_connected",
        Older => "before_reload",
        System => "system",
        NoAdapter => "no_adapter",
        FeatureOff => "feature_off",
        NotInNic => "not_in_nic",
        AdapterRefuses => "adapter_refuses",
    }
}

impl From<&Reason> for KernelRefused {
    /// The counter of connections that stay on the user engine for it, though they were meant for the kernel.
    fn from(reason: &Reason) -> Self {
        match reason {
            Reason::RecordLimit { .. } => Self::RecordLimit,
            Reason::NotConnected => Self::NotConnected,
            Reason::BeforeReload => Self::Older,
            Reason::Lacking(lack) => match lack {
                Lack::Module => Self::Module,
                Lack::NotInKernel(_) => Self::Cipher,
                Lack::SelfTest(_) => Self::SelfTest,
                Lack::NoAdapter | Lack::BondMode(_) | Lack::BondPolicy(_) | Lack::NotBeneath(_) => {
                    Self::NoAdapter
                }
                Lack::FeatureOff(_) => Self::FeatureOff,
                Lack::CipherNotInNic(_) | Lack::VersionNotInNic { .. } | Lack::FilesMayChange => {
                    Self::NotInNic
                }
                Lack::AdapterRefuses { .. } | Lack::AdapterGoesFirst => Self::AdapterRefuses,
                _ => Self::System,
            },
            _ => Self::System,
        }
    }
}

labelled! {
    /// What became of a connection that an adapter may have taken.
    "outcome" SetUp {
        Adapter => "adapter",
        Software => "software",
        Unproven => "unproven",
        Refused => "refused",
    }
}

labelled! {
    /// Why a connection left its adapter, to go on in the kernel's software (FreeBSD).
    "reason" LeftAdapter { Loss => "loss", FilesMayChange => "files_may_change" }
}

labelled! {
    /// Whether a key update was received or sent.
    "direction" Direction { Received => "received", Sent => "sent" }
}

labelled! {
    /// How a connection ended.
    "reason" Closed {
        Peer => "peer",
        Served => "served",
        Idle => "idle_timeout",
        Header => "header_timeout",
        Writing => "write_timeout",
        TooSlow => "too_slow",
        Handshake => "handshake_failed",
        HandshakeTimeout => "handshake_timeout",
        HandshakeEvicted => "handshake_evicted",
        IdleEvicted => "idle_evicted",
        Reset => "reset",
        RecordFault => "record_fault",
        RecordLimit => "record_limit",
        KernelKey => "kernel_key",
        BrokenFile => "broken_file",
        Unreadable => "unreadable_file",
        Request => "bad_request",
        Drain => "drain",
        Panic => "panic",
    }
}

labelled! {
    /// What became of a call of NFS.
    "outcome" NfsCall {
        Answered => "answered",
        Waited => "waited",
        Denied => "denied",
        Malformed => "malformed",
    }
}

labelled! {
    /// What was said to a client of NFS that asked for TLS.
    "answer" NfsTls { Begun => "begun", Declined => "declined" }
}

/// One counter for each value of a label; `N` is how many there are.
#[derive(Debug)]
pub(crate) struct Family<L, const N: usize> {
    counters: [Counter; N],
    label: PhantomData<L>,
}

impl<L: Label, const N: usize> Default for Family<L, N> {
    fn default() -> Self {
        const { assert!(N == L::ALL.len(), "a counter for each value") };
        Self { counters: std::array::from_fn(|_| Counter::default()), label: PhantomData }
    }
}

impl<L: Label, const N: usize> Family<L, N> {
    pub(crate) fn of(&self, value: L) -> &Counter {
        &self.counters[value.index()]
    }
}

/// Status codes are counted by number; those outside go to the last place.
const STATUS_SLOTS: usize = 600;

/// All that one worker counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) connections_accepted: Counter,
    pub(crate) connections_active: Counter,
    pub(crate) handshakes_in_flight: Counter,
    pub(crate) refused: Family<Refused, { Refused::ALL.len() }>,
    pub(crate) closed: Family<Closed, { Closed::ALL.len() }>,
    pub(crate) handshakes: [[Counter; 2]; 2],
    pub(crate) handshake_failures: std::sync::Mutex<std::collections::BTreeMap<&'static str, u64>>,
    pub(crate) response_bytes: Family<Engine, { Engine::ALL.len() }>,
    pub(crate) responses: Box<[Counter; STATUS_SLOTS]>,
    pub(crate) key_updates: Family<Direction, { Direction::ALL.len() }>,
    /// Responses, by the engine that sent their last byte.
    pub(crate) responses_by_engine: Family<Engine, { Engine::ALL.len() }>,
    /// Connections that moved to the kernel.
    pub(crate) kernel_promotions: Counter,
    pub(crate) kernel_refused: Family<KernelRefused, { KernelRefused::ALL.len() }>,
    pub(crate) nic_set_ups: Family<SetUp, { SetUp::ALL.len() }>,
    /// Connections that left their adapters.
    pub(crate) nic_left: Family<LeftAdapter, { LeftAdapter::ALL.len() }>,
    /// How long connections were parked for set-ups.
    pub(crate) nic_set_up_seconds: Histogram,
    /// Keys installed in place.
    pub(crate) kernel_key_updates: Counter,
    /// Responses over TLS, by the engine that sent their last byte and the reason for it (INV-PLACE-3).
    placements: [[Counter; Reason::LABELS.len()]; linerate_placement::Engine::ALL.len()],
    /// What the worker's heartbeat last told of its placement.
    placement_view: Mutex<View>,
    pub(crate) nfs_calls: Family<NfsCall, { NfsCall::ALL.len() }>,
    pub(crate) nfs_tls: Family<NfsTls, { NfsTls::ALL.len() }>,
    pub(crate) cold_reads: Counter,
    pub(crate) handshake_seconds: Histogram,
    pub(crate) request_seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            connections_accepted: Counter::default(),
            connections_active: Counter::default(),
            handshakes_in_flight: Counter::default(),
            refused: Family::default(),
            closed: Family::default(),
            handshakes: Default::default(),
            handshake_failures: std::sync::Mutex::default(),
            response_bytes: Family::default(),
            responses: Box::new(std::array::from_fn(|_| Counter::default())),
            key_updates: Family::default(),
            responses_by_engine: Family::default(),
            kernel_promotions: Counter::default(),
            kernel_refused: Family::default(),
            nic_set_ups: Family::default(),
            nic_left: Family::default(),
            nic_set_up_seconds: Histogram::new(&histogram::HANDSHAKE_BOUNDS_US),
            kernel_key_updates: Counter::default(),
            placements: std::array::from_fn(|_| std::array::from_fn(|_| Counter::default())),
            placement_view: Mutex::default(),
            nfs_calls: Family::default(),
            nfs_tls: Family::default(),
            cold_reads: Counter::default(),
            handshake_seconds: Histogram::new(&histogram::HANDSHAKE_BOUNDS_US),
            request_seconds: Histogram::new(&histogram::REQUEST_BOUNDS_US),
        }
    }
}

impl Metrics {
    pub(crate) fn refuse(&self, reason: Refused) {
        self.refused.of(reason).increment();
    }

    pub(crate) fn close(&self, how: Closed) {
        self.closed.of(how).increment();
    }

    pub(crate) fn refuse_kernel(&self, reason: KernelRefused) {
        self.kernel_refused.of(reason).increment();
    }

    pub(crate) fn set_up(&self, outcome: SetUp, elapsed: std::time::Duration) {
        self.nic_set_ups.of(outcome).increment();
        self.nic_set_up_seconds.observe(elapsed);
    }

    pub(crate) fn respond(&self, status: u16, engine: Engine) {
        self.responses_by_engine.of(engine).increment();
        self.responses[usize::from(status).min(STATUS_SLOTS - 1)].increment();
    }

    /// A response over TLS has ended.
    pub(crate) fn place(&self, decision: &Decision) {
        self.placements[decision.engine as usize][decision.reason.index()].increment();
    }

    /// Responses of this engine for the reason with this index.
    pub(crate) fn placements(&self, engine: linerate_placement::Engine, reason: usize) -> u64 {
        self.placements[engine as usize][reason].value()
    }

    /// The worker's heartbeat tells of its placement.
    pub(crate) fn show_placement(&self, view: View) {
        *self.placement_view.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }

    /// What it told last.
    pub(crate) fn placement_view(&self) -> View {
        self.placement_view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn send(&self, engine: Engine, bytes: u64) {
        self.response_bytes.of(engine).add(bytes);
    }

    pub(crate) fn handshake(&self, version: linerate_record::Version, resumed: bool) {
        let version = usize::from(version == linerate_record::Version::Tls13);
        self.handshakes[version][usize::from(resumed)].increment();
    }

    /// Failures are rare and their reasons many: a map behind a lock that nobody contends for.
    pub(crate) fn handshake_failed(&self, reason: &'static str) {
        let mut failures = self.handshake_failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *failures.entry(reason).or_default() += 1;
    }
}
