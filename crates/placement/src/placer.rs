//! The decision: from costs, capabilities and signals to an engine and a reason.
//!
//! One placer a worker; nothing in it is shared. [`Placer::refresh`] is for the worker's heartbeat and does what takes
//! time; [`Placer::decide`] is for every response: comparisons and a few multiplications.
//!
//! # Never more than twice
//! Let a move cost `S`, and let each response `i` of a connection save `s(i) >= 0` if the connection has moved before it.
//! Knowing all that comes, one would move at once if the sum of all `s` is over `S`, and else never: what one pays more
//! than with a free move is `B = min(S, sum s)`. The placer moves at the first response `k` for which
//! `s(1) + … + s(k) >= S`.
//!
//! - It never does: then `sum s < S`, and it has paid `sum s = B`.
//! - It does: then `s(1) + … + s(k-1) < S` was paid by staying, and `S` by moving: less than `2 S`, and `B = S`.
//!
//! So never more than twice the excess of the best choice in hindsight, and exactly it where one response alone decides.
//! No rule that does not know the future does better than twice. Where responses can cost more after the move than before
//! (`s(i) < 0`: costs of a response, not of its bytes), many small ones behind a large one are not covered: on Linux
//! there is no way back. The sum counts small responses before the move as what they are, against it.
//!
//! # When set-ups on the adapter are short
//! Then not every connection that would gain can move, and [`SetUpBudget`] asks a price. What a response bids is what is lost for certain
//! if it does not move now: what it saves itself, as far as that is not needed to pay for the set-up. Responses that follow on
//! its connection are not in the bid: they can ask again. (Counting all that was sent before was tried: of connections that
//! all live equally long, those near their end bid most, and got set-ups for their last response. On the `media-server` of
//! `linerate plan` with 850 set-ups a second and 100 responses of 100 kB a connection the adapter then carried 0.3 % of the
//! bytes, with the bid as it is 7 %.)
//!
//! # The way to the adapter
//! On Linux a connection that has moved to the kernel never comes to the adapter. Where an adapter takes flows the question does not
//! come up: Linux gives it the flow, and software cannot be asked for ([`crate::Lack::AdapterGoesFirst`]). It does where the
//! adapter refuses for the moment and the kernel saves something, too. Then a connection moves to the kernel as soon as that
//! pays. Two other rules were tried (`examples/way_to_the_adapter.rs`). To wait for the adapter gains up to 23 % on
//! connections of a hundred responses, and costs up to 25 %, all that the kernel would have saved, on short ones and
//! where the adapter seldom has room: it would make `auto` lose against `--engine kernel`. To wait only where what was sent
//! before predicts that the adapter is worth more than the kernel changes nothing: the kernel pays so early that nothing
//! was sent before.
//!
//! FreeBSD moves a flow from the kernel to the adapter: there each move is decided for itself, the second by what it saves
//! beside the first, and to have moved to the kernel before costs that set-up and no more.

use crate::{
    Capabilities, Carried, Cipher, ConnectionSignals, Costs, Decision, Engine, Learner, MachineSignals, Mode,
    Policy, Reason, SetUpBudget, Verdict, costs::break_even_bytes, worth::Worth,
};

/// Decides for the connections of one worker.
#[derive(Clone, Debug)]
pub struct Placer {
    policy: Policy,
    costs: Costs,
    learner: Learner,
    machine: MachineSignals,
    budget: SetUpBudget,
    /// Indexed by engine and cipher.
    worths: [[Worth; Cipher::ALL.len()]; Engine::ALL.len()],
    trials_due_in: u32,
}

impl Placer {
    /// Savings below this part of what a byte costs now are noise: hysteresis, so that two engines that cost the same are
    /// not taken in turns.
    const LEAST_SAVING: f64 = 0.05;
    /// Only responses with so much left are moved for a trial.
    pub const TRIAL_BYTES: u64 = 1 << 20;
    /// The fewest bytes of a record that a kernel or adapter makes, and the records beside those, for a safe count.
    const LEAST_RECORD_BYTES: u64 = 4096;
    const EXTRA_RECORDS: u64 = 2;
    /// How `decide` looks at the engines that a connection may move to.
    const OTHERS: [Engine; 2] = [Engine::Nic, Engine::Kernel];

    /// Decides by these costs from now on.
    #[must_use]
    pub fn new(policy: Policy, costs: Costs) -> Self {
        let budget = Self::new_budget(&policy, &costs);
        let mut placer = Self {
            policy,
            costs,
            learner: Learner::default(),
            machine: MachineSignals::default(),
            budget,
            worths: Default::default(),
            trials_due_in: policy.trial_every,
        };
        placer.weigh();
        placer
    }

    /// Another policy and other costs, after a reload. What was learnt stays, and what was spent.
    pub fn adopt(&mut self, policy: Policy, costs: Costs) {
        let budget = Self::new_budget(&policy, &costs);
        if budget.most_per_s() != self.budget.most_per_s() {
            self.budget = budget;
        }
        self.policy = policy;
        self.costs = costs;
        self.trials_due_in = policy.trial_every;
        self.weigh();
    }

    fn new_budget(policy: &Policy, costs: &Costs) -> SetUpBudget {
        let of_all_per_s = policy.nic_set_ups_per_s.unwrap_or(costs.nic_limits.set_ups_per_s);
        SetUpBudget::new(of_all_per_s / policy.workers.max(1) as f64)
    }

    /// The worker's heartbeat, a few times a second: how the machine is, and what it has learnt.
    pub fn refresh(&mut self, machine: MachineSignals, now_ns: u64) {
        self.machine = machine;
        self.budget.fill(now_ns);
        self.weigh();
    }

    fn weigh(&mut self) {
        for cipher in Cipher::ALL {
            let user = self.costs.of(Engine::User, cipher);
            for to in Self::OTHERS {
                let other = self.costs.of(to, cipher);
                let expected_ns = user.slope_ns_per_byte() - other.slope_ns_per_byte();
                let saved_ns_per_byte = if self.policy.learning {
                    self.learner.saved_ns_per_byte(Engine::User, to, cipher, expected_ns)
                } else {
                    expected_ns
                };
                self.worths[to as usize][cipher as usize] = Worth {
                    once_ns: other.move_ns(self.machine.cpu_left),
                    saved_ns_per_response: user.per_response_ns - other.per_response_ns,
                    saved_ns_per_byte,
                    least_ns_per_byte: Self::LEAST_SAVING * user.slope_ns_per_byte(),
                };
            }
        }
    }

    /// Whether a connection may be moved if all engines can be had. Where not, nobody needs to ask what can be had: that
    /// costs system calls.
    #[must_use]
    pub fn may_move(&self, connection: &ConnectionSignals) -> bool {
        let pays = |engine: Engine| {
            self.worths[engine as usize][connection.combination.cipher as usize].pays_for(connection)
        };
        match (self.policy.mode, connection.engine) {
            (_, Engine::Nic) | (Mode::Fixed { engine: Engine::User, .. }, _) => false,
            (_, Engine::Kernel) => self.policy.nic_mode.can_enter_from_kernel(),
            (Mode::Fixed { .. }, Engine::User) => true,
            (Mode::Auto, Engine::User) => {
                connection.left_bytes >= Self::TRIAL_BYTES || Self::OTHERS.into_iter().any(pays)
            }
        }
    }

    /// What carries the response from here on. A decision to move to the adapter spends a set-up, whatever becomes of it.
    ///
    /// `retransmitted` tells the part (0 to 1) of the connection's bytes that were sent again, if that is known. It is
    /// called only where all else speaks for the adapter, or where a flow on it could leave.
    pub fn decide(
        &mut self,
        can: &Capabilities,
        connection: &ConnectionSignals,
        now_ns: u64,
        retransmitted: impl FnOnce() -> Option<f64>,
    ) -> Decision {
        match connection.engine {
            Engine::User => {}
            Engine::Kernel => return self.move_on_or_stay(can, connection, now_ns, retransmitted),
            Engine::Nic => return self.leave_or_stay(retransmitted),
        }
        match self.policy.mode {
            Mode::Fixed { engine: Engine::User, .. } => stay(Reason::Fixed(Engine::User)),
            Mode::Fixed { engine, from_bytes, after_bytes } => {
                self.decide_fixed(engine, from_bytes, after_bytes, can, connection)
            }
            Mode::Auto => self.decide_by_cost(can, connection, now_ns, retransmitted),
        }
    }

    /// The adapter has it. Only FreeBSD takes a flow back from there, and then into the kernel.
    fn leave_or_stay(&self, retransmitted: impl FnOnce() -> Option<f64>) -> Decision {
        let limit = self.policy.retransmitted_limit;
        if self.policy.nic_mode.can_leave()
            && let Some(retransmitted) = retransmitted().filter(|&share| share > limit)
        {
            return Decision { engine: Engine::Kernel, reason: Reason::Lossy { retransmitted, limit } };
        }
        Decision { engine: Engine::Nic, reason: Reason::MovedBefore }
    }

    /// The kernel has it. Only FreeBSD gives it to the adapter from there: that is a move like the first, for what it saves
    /// beside the kernel.
    fn move_on_or_stay(
        &mut self,
        can: &Capabilities,
        connection: &ConnectionSignals,
        now_ns: u64,
        retransmitted: impl FnOnce() -> Option<f64>,
    ) -> Decision {
        let stays = Decision { engine: Engine::Kernel, reason: Reason::MovedBefore };
        let Verdict::Carried(carried) = can.nic else { return stays };
        if !self.policy.nic_mode.can_enter_from_kernel() || self.policy.mode != Mode::Auto {
            return stays;
        }
        let cipher = connection.combination.cipher as usize;
        let of = |engine: Engine| &self.worths[engine as usize][cipher];
        let worth = of(Engine::Nic).beyond(of(Engine::Kernel));
        if !worth.pays_for(connection) {
            return stays;
        }
        let against = lacks_records(connection, carried)
            .or_else(|| self.adapter_objects(now_ns, worth.at_stake_ns(connection), retransmitted));
        match against {
            Some(reason) => Decision { reason, ..stays },
            None => Decision { engine: Engine::Nic, reason: worth.reason(connection) },
        }
    }

    fn decide_fixed(
        &self,
        engine: Engine,
        from_bytes: u64,
        after_bytes: u64,
        can: &Capabilities,
        connection: &ConnectionSignals,
    ) -> Decision {
        let carried = match can.of(engine) {
            Verdict::Lacking(lack) => return stay(Reason::Lacking(lack)),
            Verdict::Carried(carried) => carried,
        };
        if connection.response_bytes < from_bytes {
            return stay(Reason::BelowFrom { bytes: connection.response_bytes, from_bytes });
        }
        let of_this = connection.response_bytes.saturating_sub(connection.left_bytes);
        let sent_bytes = connection.sent_before_bytes.saturating_add(of_this);
        if sent_bytes < after_bytes {
            return stay(Reason::BeforeAfter { sent_bytes, after_bytes });
        }
        match lacks_records(connection, carried) {
            Some(reason) => stay(reason),
            None => Decision { engine, reason: Reason::Fixed(engine) },
        }
    }

    /// The engines by what they are expected to save, the best first. The first that can be had is taken; what stood
    /// against a better one is the reason.
    fn decide_by_cost(
        &mut self,
        can: &Capabilities,
        connection: &ConnectionSignals,
        now_ns: u64,
        retransmitted: impl FnOnce() -> Option<f64>,
    ) -> Decision {
        let cipher = connection.combination.cipher as usize;
        let mut others = Self::OTHERS.map(|engine| (engine, self.worths[engine as usize][cipher]));
        if others[1].1.gain_ns(connection) > others[0].1.gain_ns(connection) {
            others.swap(0, 1);
        }
        let mut obstacle = None;
        let mut retransmitted = Some(retransmitted);
        for (engine, worth) in others {
            if !worth.pays_for(connection) {
                continue;
            }
            let carried = match can.of(engine) {
                Verdict::Carried(carried) => carried,
                Verdict::Lacking(lack) => {
                    obstacle = obstacle.or(lack.is_news().then_some(Reason::Lacking(lack)));
                    continue;
                }
            };
            let against = lacks_records(connection, carried).or_else(|| match engine {
                // Asked once: there is one adapter.
                Engine::Nic => retransmitted.take().and_then(|ask| {
                    let gain_ns = worth.at_stake_ns(connection) - self.gain_of_kernel_ns(can, connection);
                    self.adapter_objects(now_ns, gain_ns, ask)
                }),
                _ => None,
            });
            match against {
                Some(reason) => obstacle = obstacle.or(Some(reason)),
                None => {
                    return Decision { engine, reason: obstacle.unwrap_or_else(|| worth.reason(connection)) };
                }
            }
        }
        let reason = obstacle.unwrap_or_else(|| self.too_little(can, connection));
        self.try_out(can, connection).unwrap_or_else(|| stay(reason))
    }

    /// What the kernel saves, if it can carry the connection and is worth it: what a set-up on the adapter has to be
    /// compared with.
    fn gain_of_kernel_ns(&self, can: &Capabilities, connection: &ConnectionSignals) -> f64 {
        let kernel = &self.worths[Engine::Kernel as usize][connection.combination.cipher as usize];
        let can_be_had = can.kernel.lack().is_none() && kernel.pays_for(connection);
        if can_be_had { kernel.gain_ns(connection) } else { 0.0 }
    }

    /// What the adapter has against another flow that saves so much, the cheapest question first: how much was
    /// retransmitted costs a system call. If nothing, a set-up is spent.
    fn adapter_objects(
        &mut self,
        now_ns: u64,
        gain_ns: f64,
        retransmitted: impl FnOnce() -> Option<f64>,
    ) -> Option<Reason> {
        let limits = self.costs.nic_limits;
        if !self.policy.nic_mode.can_enter_midway() {
            return Some(Reason::Lacking(crate::Lack::OperatingSystem(Engine::Nic)));
        }
        if self.machine.nic_flows >= limits.flow_table_flows {
            let (flows, limit) = (self.machine.nic_flows, limits.flow_table_flows);
            return Some(Reason::FlowTableFull { flows, limit });
        }
        self.budget.fill(now_ns);
        let Some(price_ns) = self.budget.price_ns() else {
            return Some(Reason::BudgetSpent { set_ups_per_s: self.set_ups_per_s() });
        };
        if gain_ns < price_ns {
            return Some(Reason::OthersSaveMore { gain_ns, price_ns });
        }
        let limit = self.policy.retransmitted_limit;
        if let Some(retransmitted) = retransmitted().filter(|&share| share > limit) {
            return Some(Reason::Lossy { retransmitted, limit });
        }
        self.budget.take();
        None
    }

    /// Why nothing is moved that nothing stood against: the figures of the best engine that can be had.
    fn too_little(&self, can: &Capabilities, connection: &ConnectionSignals) -> Reason {
        let cipher = connection.combination.cipher as usize;
        let of = |engine: Engine| (engine, self.worths[engine as usize][cipher]);
        let best = Self::OTHERS
            .into_iter()
            .filter(|&engine| can.of(engine).lack().is_none())
            .map(of)
            .max_by(|(_, one), (_, other)| one.gain_ns(connection).total_cmp(&other.gain_ns(connection)));
        let Some((engine, worth)) = best else {
            // Nothing can be had. A lack that is news, or that of software: there is always one.
            let lacks = [can.nic.lack(), can.kernel.lack()];
            let news = lacks.iter().flatten().find(|lack| lack.is_news()).or(lacks[1].as_ref());
            return news.map_or(Reason::Fixed(Engine::User), |lack| Reason::Lacking(*lack));
        };
        if worth.is_cheaper() {
            Reason::TooSmall {
                bytes: connection.left_bytes,
                before_bytes: connection.sent_before_bytes,
                break_even_bytes: worth.break_even_bytes(connection),
            }
        } else {
            Reason::NotCheaper { engine, more_ns_per_byte: 0.0 - worth.saved_ns_per_byte }
        }
    }

    /// One of `trial_every` large responses goes to the kernel all the same. The adapter needs no trials: its set-ups
    /// are too few.
    fn try_out(&mut self, can: &Capabilities, connection: &ConnectionSignals) -> Option<Decision> {
        let Verdict::Carried(carried) = can.kernel else { return None };
        let every = self.policy.trial_every;
        if every == 0
            || !self.policy.learning
            || connection.left_bytes < Self::TRIAL_BYTES
            || lacks_records(connection, carried).is_some()
        {
            return None;
        }
        self.trials_due_in -= 1;
        if self.trials_due_in > 0 {
            return None;
        }
        self.trials_due_in = every;
        Some(Decision { engine: Engine::Kernel, reason: Reason::Trial { every } })
    }

    /// Some bytes went into a socket without waiting, in so much time.
    pub fn observe(&mut self, engine: Engine, cipher: Cipher, bytes: u64, elapsed_ns: u64) {
        if self.policy.learning {
            self.learner.observe(engine, cipher, bytes, elapsed_ns);
        }
    }

    /// The adapter took a connection, in so much time from the question on: where set-ups queue there, it is asked for fewer.
    pub fn set_up_took(&mut self, took_ns: u64, now_ns: u64) {
        self.budget.took(took_ns, now_ns);
    }

    /// A move to the kernel of which the adapter will be asked first: takes a set-up, or tells why there is none.
    pub fn take_set_up(&mut self, now_ns: u64) -> Option<Reason> {
        self.budget.fill(now_ns);
        let set_ups_per_s = self.set_ups_per_s();
        (!self.budget.take()).then_some(Reason::BudgetSpent { set_ups_per_s })
    }

    /// A set-up that was decided on was not made: somebody else can have it.
    pub fn give_back_set_up(&mut self) {
        self.budget.give_back();
    }

    /// The smallest response, the first on its connection, that pays for a move as things are now.
    #[must_use]
    pub fn break_even_bytes(&self, to: Engine, cipher: Cipher) -> Option<u64> {
        if to == Engine::User {
            return None;
        }
        let worth = &self.worths[to as usize][cipher as usize];
        let once_ns = worth.once_ns - worth.saved_ns_per_response;
        worth.is_cheaper().then(|| break_even_bytes(once_ns, worth.saved_ns_per_byte)).flatten()
    }

    /// What each byte saves on another engine as things are now; negative where it costs more.
    #[must_use]
    pub fn saved_ns_per_byte(&self, to: Engine, cipher: Cipher) -> f64 {
        self.worths[to as usize][cipher as usize].saved_ns_per_byte
    }

    /// Set-ups a second that the adapter is asked for by all workers together, if the others are held back as this one is.
    #[must_use]
    pub fn set_ups_per_s(&self) -> f64 {
        self.budget.rate_per_s() * self.policy.workers.max(1) as f64
    }

    /// This worker's part of them.
    #[must_use]
    pub fn budget(&self) -> &SetUpBudget {
        &self.budget
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The costs in force.
    #[must_use]
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// What was observed.
    #[must_use]
    pub fn learner(&self) -> &Learner {
        &self.learner
    }
}

fn stay(reason: Reason) -> Decision {
    Decision { engine: Engine::User, reason }
}

/// A response that has begun must not end at a limit that was known before.
fn lacks_records(connection: &ConnectionSignals, carried: Carried) -> Option<Reason> {
    let left = connection.records_left.filter(|_| !carried.takes_new_keys)?;
    let needed = connection.left_bytes / Placer::LEAST_RECORD_BYTES + Placer::EXTRA_RECORDS;
    (needed >= left).then_some(Reason::RecordLimit { needed, left })
}

#[cfg(test)]
mod tests;
