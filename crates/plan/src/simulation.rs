//! Drives placement's own decisions connection by connection, so that bursts, budget and flow table show.
//!
//! Discrete events: a place for each connection at a time; on each one response after the other, at the rate that the
//! machine's steady state leaves it, and then the next connection. Every response asks the [`Placer`], as the server does.
//! The same seed gives the same run. A system that is too large is simulated to scale: a thousandth of the connections has
//! a thousandth of the set-ups and of the flow table.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use linerate_placement::{
    Again, Capabilities, ConnectionSignals, Decision, Engine, MachineSignals, NicMode, Placer, Policy, Reason,
};

use crate::Size;
use crate::capacity::Prediction;
use crate::cost::Costing;
use crate::fixed::capabilities;

/// Responses that one run simulates at most, with those before it counts.
const MOST_RESPONSES: f64 = 60_000.0;
/// How often a response that waits for the budget asks again. The server asks at every record.
const TRIES: u32 = 8;
/// The worker's heartbeat.
const HEARTBEAT_NS: u64 = 250_000_000;
/// Before it counts a run lasts so long at least: the bucket of set-ups fills in less, where there are enough of them.
const WARM_UP_NS: f64 = 300e6;

/// What a run counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counts {
    /// Responses by reason, as [`Reason::index`] orders them. Of a connection that has moved it is the reason of the move.
    pub(crate) reasons: Vec<u64>,
    /// One example of each reason, in words.
    pub(crate) examples: Vec<Option<String>>,
    /// Bytes by engine.
    pub(crate) bytes: [f64; Engine::ALL.len()],
    /// Connections that were moved, by engine they were moved to.
    pub(crate) moved: [f64; Engine::ALL.len()],
    /// Connections.
    pub(crate) connections: f64,
    /// The most flows that the adapter had at once, scaled back.
    pub(crate) most_flows: f64,
}

impl Counts {
    fn new() -> Self {
        let labels = Reason::LABELS.len();
        Self {
            reasons: vec![0; labels],
            examples: vec![None; labels],
            bytes: [0.0; 3],
            moved: [0.0; 3],
            connections: 0.0,
            most_flows: 0.0,
        }
    }

    fn note(&mut self, decision: &Decision) {
        let index = decision.reason.index();
        self.reasons[index] += 1;
        self.examples[index].get_or_insert_with(|| decision.to_string());
    }
}

/// A place, and the connection on it.
#[derive(Clone, Copy, Debug)]
struct Place {
    engine: Engine,
    responses_left: u64,
    responses_before: u64,
    sent_before_bytes: u64,
    /// Of the response under way; 0 between two.
    response_bytes: u64,
    left_bytes: u64,
    tries_left: u32,
    retransmitted: f64,
    /// Its bytes count: it began after the warm-up.
    counted: bool,
    /// The decision on the response under way.
    last: Option<Decision>,
    /// The decision that moved the connection: its reason stands for the responses after it, too.
    moved_by: Option<Decision>,
}

pub(crate) struct Simulation<'a> {
    costing: Costing<'a>,
    can: Capabilities,
    placer: Placer,
    dice: fastrand::Rng,
    /// Of one connection.
    bytes_per_ns: f64,
    scale: f64,
    cpu_left: f64,
    places: Vec<Place>,
    /// (when, number, place): the number keeps equal times in order.
    due: BinaryHeap<Reverse<(u64, u64, usize)>>,
    number: u64,
    flow_limit: u64,
    flows: u64,
    /// What the adapter takes for a set-up: one after the other.
    set_up_ns: u64,
    /// When it is through with those that it was asked for.
    adapter_free_ns: u64,
    /// When each of them is over, and what it took; told then.
    set_ups: VecDeque<(u64, u64)>,
    heartbeat_ns: u64,
    count_from_ns: u64,
    counts: Counts,
}

impl<'a> Simulation<'a> {
    /// A machine in this steady state.
    pub(crate) fn new(costing: Costing<'a>, steady: &Prediction, seed: u64) -> Self {
        let (machine, workload) = (costing.machine, costing.workload);
        let bytes_per_s = steady.gbit_s * 1e9 / 8.0;
        let connections = concurrency(costing, bytes_per_s);
        let bytes_per_ns = bytes_per_s / connections * 1e-9;
        let life_ns = workload.connection_bytes() / bytes_per_ns;
        // Three lives of each connection, or more of short ones: a third to warm up, the others count.
        let warm_up_ns = life_ns.max(WARM_UP_NS);
        let responses_of_each = 3.0 * warm_up_ns / life_ns * workload.requests_per_connection as f64;
        let scale = (connections * responses_of_each / MOST_RESPONSES).max(1.0);
        let places = (connections / scale).round().max(1.0);
        let scale = connections / places;
        let mut costs = costing.placement_costs(steady.memory_load);
        costs.nic_limits.set_ups_per_s /= scale;
        // Without an adapter that encrypts nobody asks.
        let set_up_ns = (1e9 / costs.nic_limits.set_ups_per_s).min(1e18) as u64;
        let flow_limit = (machine.nic_flows as f64 / scale).round() as u64;
        costs.nic_limits.flow_table_flows = flow_limit;
        let nic_mode = if machine.is_linux() { NicMode::LinuxInline } else { NicMode::FreeBsdIfnet };
        let policy = Policy { nic_mode, learning: false, ..Policy::default() };
        let mut simulation = Self {
            costing,
            can: capabilities(machine, workload),
            placer: Placer::new(policy, costs),
            dice: fastrand::Rng::with_seed(seed),
            bytes_per_ns,
            scale,
            cpu_left: (1.0 - steady.cpu_share / machine.cpu_share).clamp(0.0, 1.0),
            places: Vec::new(),
            due: BinaryHeap::new(),
            number: 0,
            flow_limit,
            flows: 0,
            set_up_ns,
            adapter_free_ns: 0,
            set_ups: VecDeque::new(),
            heartbeat_ns: 0,
            count_from_ns: warm_up_ns as u64,
            counts: Counts::new(),
        };
        simulation.spend_burst();
        for place in 0..places as usize {
            let under_way = simulation.under_way();
            simulation.places.push(under_way);
            simulation.schedule(0, place);
        }
        simulation
    }

    /// A machine that has been running for long has no burst of set-ups saved up, unless nobody wants them.
    fn spend_burst(&mut self) {
        let worth_any_price =
            Place { response_bytes: 1 << 60, left_bytes: 1 << 60, ..self.connection(false) };
        while self.decide(&worth_any_price, 0).engine == Engine::Nic {}
    }

    /// Runs until enough responses were counted.
    pub(crate) fn run(mut self) -> Counts {
        let mut steps = 0u64;
        // Each response is a step for its beginning, and one for each time it asks again.
        let most_steps = MOST_RESPONSES as u64 * u64::from(TRIES + 1);
        let mut responses = 0u64;
        while let Some(Reverse((now_ns, _, index))) = self.due.pop() {
            steps += 1;
            if steps > most_steps || responses as f64 > MOST_RESPONSES {
                break;
            }
            self.beat(now_ns);
            self.tell_set_ups(now_ns);
            if self.places[index].response_bytes == 0 {
                responses += 1;
                self.begin(index, now_ns);
            }
            self.ask_and_send(index, now_ns);
        }
        self.counts
    }

    fn schedule(&mut self, when_ns: u64, place: usize) {
        self.number += 1;
        self.due.push(Reverse((when_ns, self.number, place)));
    }

    fn connection(&mut self, counted: bool) -> Place {
        let mean = self.costing.workload.retransmitted_share;
        let retransmitted = if mean > 0.0 { -mean * (1.0 - self.dice.f64()).ln() } else { 0.0 };
        if counted {
            self.counts.connections += 1.0;
        }
        Place {
            engine: Engine::User,
            responses_left: self.costing.workload.requests_per_connection,
            responses_before: 0,
            sent_before_bytes: 0,
            response_bytes: 0,
            left_bytes: 0,
            tries_left: 0,
            retransmitted: retransmitted.min(1.0),
            counted,
            last: None,
            moved_by: None,
        }
    }

    /// What the server does a few times a second.
    fn beat(&mut self, now_ns: u64) {
        if now_ns < self.heartbeat_ns {
            return;
        }
        self.heartbeat_ns = now_ns + HEARTBEAT_NS;
        let machine = MachineSignals { cpu_left: self.cpu_left, nic_flows: self.flows };
        self.placer.refresh(machine, now_ns);
    }

    /// The next response, after the end of a connection the next connection's first.
    fn begin(&mut self, index: usize, now_ns: u64) {
        if self.places[index].responses_left == 0 {
            self.leave(self.places[index].engine);
            self.places[index] = self.connection(now_ns >= self.count_from_ns);
        }
        let bytes = self.draw_bytes(|size| size.share);
        let place = &mut self.places[index];
        place.responses_left -= 1;
        place.response_bytes = bytes;
        place.left_bytes = bytes;
        place.tries_left = TRIES;
        place.last = None;
    }

    /// The state of a place at a random time: a connection somewhere in its life, with a response partly sent. A larger
    /// response is met with higher probability. It is not counted.
    fn under_way(&mut self) -> Place {
        let bytes = self.draw_bytes(|size| size.share * size.bytes as f64);
        let fresh = self.connection(false);
        let responses_left = self.dice.u64(0..fresh.responses_left);
        let responses_before = fresh.responses_left - responses_left - 1;
        Place {
            responses_left,
            responses_before,
            sent_before_bytes: (responses_before as f64 * self.costing.workload.response_bytes()) as u64,
            response_bytes: bytes,
            left_bytes: self.dice.u64(0..bytes) + 1,
            tries_left: TRIES,
            ..fresh
        }
    }

    fn draw_bytes(&mut self, weight: impl Fn(&Size) -> f64) -> u64 {
        let sizes = &self.costing.workload.sizes;
        let all: f64 = sizes.iter().map(&weight).sum();
        let mut at = self.dice.f64() * all;
        for size in sizes {
            at -= weight(size);
            if at < 0.0 {
                return size.bytes;
            }
        }
        sizes.last().map_or(1, |size| size.bytes)
    }

    /// Asks which engine carries the response from here, and sends until it is time to ask again or the response ends.
    fn ask_and_send(&mut self, index: usize, now_ns: u64) {
        let before = self.places[index];
        let decision = self.decide(&before, now_ns);
        let again = decision.reason.again() == Again::NextRecord && decision.engine == before.engine;
        let place = &mut self.places[index];
        place.last = Some(decision);
        let bytes = if again && place.tries_left > 1 {
            place.tries_left -= 1;
            (place.response_bytes / u64::from(TRIES)).min(place.left_bytes)
        } else {
            place.left_bytes
        };
        place.left_bytes -= bytes;
        if decision.engine != before.engine {
            self.move_to(index, decision.engine, now_ns);
        }
        let place = &mut self.places[index];
        if place.counted {
            self.counts.bytes[place.engine as usize] += bytes as f64;
        }
        if place.left_bytes == 0 {
            place.responses_before += 1;
            place.sent_before_bytes += place.response_bytes;
            place.response_bytes = 0;
            if let (true, Some(last)) = (place.counted, place.moved_by.or(place.last)) {
                self.counts.note(&last);
            }
        }
        let takes_ns = (bytes as f64 / self.bytes_per_ns).min(1e18) as u64;
        self.schedule(now_ns.saturating_add(takes_ns.max(1)), index);
    }

    fn decide(&mut self, place: &Place, now_ns: u64) -> Decision {
        let connection = ConnectionSignals {
            combination: self.costing.workload.combination(),
            engine: place.engine,
            response_bytes: place.response_bytes,
            left_bytes: place.left_bytes,
            sent_before_bytes: place.sent_before_bytes,
            responses_before: place.responses_before,
            records_left: None,
        };
        let retransmitted = place.retransmitted;
        let decision = self.placer.decide(&self.can, &connection, now_ns, || Some(retransmitted));
        // The flows that the placer knows of are those of the last heartbeat: the adapter may have none left.
        let full =
            decision.engine == Engine::Nic && place.engine != Engine::Nic && self.flows >= self.flow_limit;
        if full { Decision { engine: Engine::Kernel, reason: Reason::FellBack } } else { decision }
    }

    fn move_to(&mut self, index: usize, engine: Engine, now_ns: u64) {
        self.leave(self.places[index].engine);
        self.places[index].engine = engine;
        self.places[index].moved_by = self.places[index].last;
        if engine == Engine::Nic {
            self.flows += 1;
            self.queue_set_up(now_ns);
            self.counts.most_flows = self.counts.most_flows.max(self.flows as f64 * self.scale);
        }
        if self.places[index].counted {
            self.counts.moved[engine as usize] += 1.0;
        }
    }

    /// The adapter has another set-up to make, behind those before.
    fn queue_set_up(&mut self, now_ns: u64) {
        let over_ns = self.adapter_free_ns.max(now_ns).saturating_add(self.set_up_ns);
        self.adapter_free_ns = over_ns;
        self.set_ups.push_back((over_ns, over_ns - now_ns));
    }

    /// What the set-ups that are over by now took, as the server tells it when they are.
    fn tell_set_ups(&mut self, now_ns: u64) {
        while let Some(&(over_ns, took_ns)) = self.set_ups.front().filter(|(over_ns, _)| *over_ns <= now_ns) {
            self.set_ups.pop_front();
            self.placer.set_up_took(took_ns, over_ns);
        }
    }

    fn leave(&mut self, engine: Engine) {
        if engine == Engine::Nic {
            self.flows = self.flows.saturating_sub(1);
        }
    }
}

/// Connections at a time: as described, or fewer where clients come and go faster.
fn concurrency(costing: Costing<'_>, bytes_per_s: f64) -> f64 {
    let workload = costing.workload;
    let described = workload.connections as f64;
    match workload.client_mbit {
        // So many clients at their own rate make up the whole.
        Some(mbit) => (bytes_per_s / (mbit * 1e6 / 8.0)).clamp(1.0, described),
        None => described,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Part;
    use crate::{Constants, Machine, Sender, Workload, presets};

    fn run(machine: &Machine, workload: &Workload, seed: u64) -> Counts {
        let costing = Costing { machine, workload, constants: &Constants::PRESENT };
        let steady = costing.predict(&[Part::whole(Sender::User)]);
        Simulation::new(costing, &steady, seed).run()
    }

    fn total(counts: &Counts) -> u64 {
        counts.reasons.iter().sum()
    }

    fn of(counts: &Counts, label: &str) -> u64 {
        counts.reasons[Reason::LABELS.iter().position(|&known| known == label).unwrap()]
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let (machine, workload) =
            (presets::machine("media-server").unwrap(), presets::workload("mirror").unwrap());
        assert_eq!(run(&machine, &workload, 7), run(&machine, &workload, 7));
        assert_ne!(run(&machine, &workload, 7), run(&machine, &workload, 8));
    }

    #[test]
    fn small_responses_stay_with_the_user_engine() {
        let machine = presets::machine("connectx6-thread").unwrap();
        let counts = run(&machine, &presets::workload("thread-10kb").unwrap(), 1);
        assert_eq!(counts.bytes[Engine::Nic as usize], 0.0);
        assert_eq!(of(&counts, "below_break_even"), total(&counts));
        assert!(total(&counts) > 10_000);
    }

    #[test]
    fn large_responses_move_and_the_budget_holds() {
        let mut machine = presets::machine("connectx6-thread").unwrap();
        machine.nic_zero_copy = true;
        machine.nic_gbit = 10_000.0;
        machine.memory_gb_per_s = 10_000.0;
        machine.cores = 1000;
        let mut workload = presets::workload("thread-10kb").unwrap();
        workload.sizes[0].bytes = 20_000_000;
        workload.connections = 20_000;
        let counts = run(&machine, &workload, 1);
        assert!(counts.moved[Engine::Nic as usize] > 0.0);
        let short = of(&counts, "others_save_more") + of(&counts, "budget_spent");
        assert!(short > 0, "{counts:?}");
        assert_eq!(of(&counts, "pays") + short, total(&counts));
    }

    #[test]
    fn a_small_flow_table_fills() {
        let mut machine = presets::machine("netflix-rome-2021").unwrap();
        machine.nic_flows = 10_000;
        let workload = presets::workload("netflix").unwrap();
        let counts = run(&machine, &workload, 1);
        let nic = counts.bytes[Engine::Nic as usize] / counts.bytes.iter().sum::<f64>();
        assert!((0.18..0.32).contains(&nic), "a quarter of the connections fit: {nic}");
        assert!(of(&counts, "flow_table_full") > 0);
        assert!(counts.most_flows <= 10_000.0 * 1.1);
    }

    #[test]
    fn lossy_connections_stay_off_the_adapter() {
        let machine = presets::machine("netflix-rome-2021").unwrap();
        let mut workload = presets::workload("netflix").unwrap();
        workload.retransmitted_share = 0.02;
        let counts = run(&machine, &workload, 1);
        let lossy = of(&counts, "lossy") as f64 / total(&counts) as f64;
        // An exponential with mean 2 % is over 1 % with probability e^-0.5.
        assert!((0.4..0.8).contains(&lossy), "{lossy}");
    }

    #[test]
    fn version_and_cipher_that_the_adapter_lacks_are_the_reason() {
        let machine = presets::machine("media-server").unwrap();
        let mut workload = presets::workload("mirror").unwrap();
        workload.tls = presets::workload("web").unwrap().tls;
        let counts = run(&machine, &workload, 1);
        assert!(of(&counts, "version_not_in_nic") > 0);
        let example = counts.examples.iter().flatten().find(|example| example.contains("TLS 1.3")).unwrap();
        assert!(example.ends_with("TLS 1.3 is not offloaded by mlx5_core on 6.12"), "{example}");
    }
}
