//! Placement as the server uses it: what workers decide by ([`PlacementPlan`]), and what they tell of it ([`page`]).

mod calibration;
pub(crate) mod page;
pub(crate) mod worker_placer;

pub use calibration::default_calibration;
pub(crate) use calibration::{Basis, load};

use linerate_config::{EngineChoice, Settings};
use linerate_engine::kernel::{self, verdict};
use linerate_figures as figures;
use linerate_placement::{
    Capabilities, Cipher, Combination, Costs, Engine, Lack, Mode, Placer, Policy, Reason, Verdict,
};

/// What workers place by: made at start and at each reload, read by all, never changed.
#[derive(Clone, Debug)]
pub(crate) struct PlacementPlan {
    pub(crate) policy: Policy,
    pub(crate) costs: Costs,
    /// Where the costs are from.
    pub(crate) basis: Basis,
    choice: EngineChoice,
    /// An adapter of this machine encrypts.
    has_adapter: bool,
    /// By version and cipher, in the order of [`Combination::ALL`].
    capabilities: [Capabilities; Combination::ALL.len()],
}

impl PlacementPlan {
    /// What follows from the settings; nothing is known yet of what kernel and adapters carry.
    pub(crate) fn new(settings: &Settings, (basis, costs): (Basis, Costs), workers: usize) -> Self {
        let placement = &settings.placement;
        let (from_bytes, after_bytes) =
            (settings.kernel_engine.from_bytes, settings.kernel_engine.after_bytes);
        let fixed = |engine| Mode::Fixed { engine, from_bytes, after_bytes };
        let policy = Policy {
            mode: match settings.engine {
                EngineChoice::Auto => Mode::Auto,
                EngineChoice::User => fixed(Engine::User),
                EngineChoice::Kernel => fixed(Engine::Kernel),
                EngineChoice::Nic => fixed(Engine::Nic),
            },
            nic_set_ups_per_s: placement.nic_set_ups_per_second.map(|set_ups| set_ups as f64),
            workers,
            retransmitted_limit: f64::from(placement.max_retransmitted_percent) / 100.0,
            learning: placement.learning,
            trial_every: placement.trial_every,
            ..Policy::default()
        };
        let capabilities = [Capabilities::USER_ONLY; Combination::ALL.len()];
        Self { policy, costs, basis, choice: settings.engine, has_adapter: false, capabilities }
    }

    /// Whether a connection may move to software kernel TLS by these costs: only then it has to be tested.
    pub(crate) fn may_use_kernel(&self) -> bool {
        let pays =
            |cipher| Placer::new(self.policy, self.costs.clone()).break_even_bytes(Engine::Kernel, cipher);
        match self.choice {
            EngineChoice::User => false,
            EngineChoice::Kernel | EngineChoice::Nic => true,
            EngineChoice::Auto => {
                self.policy.trial_every > 0 || Cipher::ALL.into_iter().any(|cipher| pays(cipher).is_some())
            }
        }
    }

    /// Takes over what was found out about the kernel, and whether an adapter encrypts.
    pub(crate) fn with_found(mut self, found: Option<&kernel::Capabilities>, has_adapter: bool) -> Self {
        self.has_adapter = has_adapter;
        let Some(found) = found else { return self };
        for (index, combination) in Combination::ALL.into_iter().enumerate() {
            let kernel = verdict(found.verdict(combination));
            // By which adapter a connection leaves is known when it is there. None does what the kernel lacks.
            let lack = kernel.lack().filter(|_| self.choice == EngineChoice::Nic).unwrap_or(Lack::NoAdapter);
            self.capabilities[index] = Capabilities { kernel, nic: Verdict::Lacking(lack) };
        }
        self
    }

    /// The engines that can carry a combination.
    pub(crate) fn capabilities(&self, combination: Combination) -> Capabilities {
        self.capabilities[combination.index()]
    }

    /// From which size of response on another engine pays, a line for each cipher, and what that is known from.
    pub(crate) fn break_evens(&self) -> Vec<String> {
        let placer = Placer::new(self.policy, self.costs.clone());
        let of = |engine, cipher| {
            let bytes = placer.break_even_bytes(engine, cipher);
            bytes.map_or("never".to_owned(), |bytes| format!("from {}", figures::bytes(bytes as f64, 2)))
        };
        let ciphers = Cipher::ALL.into_iter().map(|cipher| {
            format!("{cipher}: kernel {}, nic {}", of(Engine::Kernel, cipher), of(Engine::Nic, cipher))
        });
        std::iter::once(self.basis.in_words()).chain(ciphers).collect()
    }

    /// What a start says of placement: what is going to happen, and by which figures it is decided, where it is.
    pub(crate) fn at_start(&self) -> Vec<String> {
        // Of a file that is not used a warning has told.
        let told = matches!(self.basis, Basis::Misfit { .. }) || self.policy.mode != Mode::Auto;
        let costs = (!told).then(|| format!("costs: {}", self.basis.in_words()));
        std::iter::once(self.summary()).chain(costs).collect()
    }

    /// What is going to happen, in a line: `engine auto: user for all; ...`.
    pub(crate) fn summary(&self) -> String {
        match self.policy.mode {
            Mode::Fixed { engine: Engine::User, .. } => "engine user for all, as configured".to_owned(),
            Mode::Fixed { engine, from_bytes, .. } => {
                let lacks = self.capabilities.map(|can| can.kernel.lack());
                match lacks.iter().flatten().next() {
                    Some(lack) if lacks.iter().all(Option::is_some) => {
                        format!("engine {engine}, as configured, but user for all: {lack}")
                    }
                    _ => format!(
                        "engine {engine} for responses from {}, as configured",
                        figures::bytes(from_bytes as f64, 2)
                    ),
                }
            }
            Mode::Auto => self.summary_by_cost(),
        }
    }

    fn summary_by_cost(&self) -> String {
        let placer = Placer::new(self.policy, self.costs.clone());
        let basis = self.basis.short();
        // The cipher that clients choose most; the others are on the admin page.
        let cipher = Cipher::Aes256Gcm;
        let can = self.capabilities(Combination::ALL[1]);
        let mut moved = Vec::new();
        for engine in [Engine::Kernel, Engine::Nic] {
            let is_there = match engine {
                // By which adapter a connection leaves is known when it is there.
                Engine::Nic => self.has_adapter && can.kernel.lack().is_none(),
                _ => can.of(engine).lack().is_none(),
            };
            if is_there && let Some(bytes) = placer.break_even_bytes(engine, cipher) {
                moved.push(format!("{engine} from {}", figures::bytes(bytes as f64, 2)));
            }
        }
        if !moved.is_empty() {
            return format!("engine auto: {} ({cipher}), else user, by {basis}", moved.join(", "));
        }
        let against = match can.kernel.lack() {
            Some(lack) => lack.to_string(),
            None => {
                let more_ns_per_byte = 0.0 - placer.saved_ns_per_byte(Engine::Kernel, cipher);
                format!("{}, by {basis}", Reason::NotCheaper { engine: Engine::Kernel, more_ns_per_byte })
            }
        };
        format!("engine auto: user for all; {against}")
    }
}

#[cfg(test)]
mod tests;
