use super::*;
use crate::{Combination, EngineCosts, Lack, Name, NicLimits, NicMode, Release, Version};

const TAKEN: Verdict = Verdict::Carried(Carried { takes_new_keys: true });
const AES: Cipher = Cipher::Aes128Gcm;

/// The kernel saves 0.1 ns a byte after 10 µs: from 100 kB on. The adapter 0.2 ns after 1 ms: from 5 MB on.
fn costs() -> Costs {
    let mut costs = Costs::defaults();
    for cipher in Cipher::ALL {
        costs.set(Engine::User, cipher, EngineCosts { per_byte_ns: 0.3, ..EngineCosts::FREE });
        let kernel = EngineCosts { per_byte_ns: 0.2, set_up_ns: 10_000.0, ..EngineCosts::FREE };
        costs.set(Engine::Kernel, cipher, kernel);
        costs.set(Engine::Nic, cipher, EngineCosts { per_byte_ns: 0.1, set_up_ns: 1e6, ..EngineCosts::FREE });
    }
    costs.nic_limits = NicLimits { set_ups_per_s: 200.0, flow_table_flows: 1000 };
    costs
}

fn placer() -> Placer {
    Placer::new(Policy::default(), costs())
}

fn fresh(bytes: u64) -> ConnectionSignals {
    ConnectionSignals {
        combination: Combination { version: Version::Tls13, cipher: AES },
        engine: Engine::User,
        response_bytes: bytes,
        left_bytes: bytes,
        sent_before_bytes: 0,
        responses_before: 0,
        records_left: None,
    }
}

fn kernel_only() -> Capabilities {
    Capabilities { kernel: TAKEN, nic: Verdict::Lacking(Lack::NoAdapter) }
}

/// As Linux has it: a flow that the adapter takes cannot be had in software.
fn with_nic() -> Capabilities {
    Capabilities { kernel: Verdict::Lacking(Lack::AdapterGoesFirst), nic: TAKEN }
}

fn never_asked() -> Option<f64> {
    panic!("retransmissions cost a system call, and cannot matter here")
}

fn said(decision: Decision) -> String {
    decision.to_string()
}

#[test]
fn a_response_moves_when_it_pays_for_it() {
    let mut placer = placer();
    let mut decide = |bytes| said(placer.decide(&kernel_only(), &fresh(bytes), 0, never_asked));
    assert_eq!(decide(10_000), "user: 10 kB response, break-even 100 kB");
    assert_eq!(decide(99_999), "user: 100 kB response, break-even 100 kB");
    assert_eq!(decide(100_001), "kernel: 100 kB response, break-even 100 kB");
    assert_eq!(decide(10_000_000), "kernel: 10 MB response, break-even 100 kB");
}

#[test]
fn a_connection_that_may_not_move_does_not_whatever_can_be_had() {
    let try_all = Policy { trial_every: 1, learning: true, ..Policy::default() };
    let fixed = Mode::Fixed { engine: Engine::Kernel, from_bytes: 0, after_bytes: 0 };
    let mut asked = Vec::new();
    for policy in [Policy::default(), try_all, Policy { mode: fixed, ..Policy::default() }] {
        for left_bytes in [0, 1, 10_000, 99_999, 100_001, 1 << 20, 5_000_001] {
            for (engine, sent_before_bytes) in [
                (Engine::User, 0),
                (Engine::User, 91_000),
                (Engine::User, 9_000_000),
                (Engine::Kernel, 91_000),
                (Engine::Nic, 91_000),
            ] {
                let connection = ConnectionSignals { engine, sent_before_bytes, ..fresh(left_bytes) };
                for can in [kernel_only(), with_nic(), Capabilities { nic: TAKEN, ..kernel_only() }] {
                    let mut placer = Placer::new(policy, costs());
                    let may_move = placer.may_move(&connection);
                    let moves = placer.decide(&can, &connection, 0, || None).engine != engine;
                    assert!(may_move || !moves, "{connection:?}");
                    asked.push(may_move);
                }
            }
        }
    }
    assert!(asked.contains(&true) && asked.contains(&false));
    assert!(!placer().may_move(&fresh(99_999)) && placer().may_move(&fresh(100_001)));
}

#[test]
fn what_was_sent_before_predicts_what_comes() {
    let mut placer = placer();
    let mut decide = |before| {
        let connection =
            ConnectionSignals { sent_before_bytes: before, responses_before: 9, ..fresh(10_000) };
        placer.decide(&kernel_only(), &connection, 0, never_asked)
    };
    assert_eq!(said(decide(89_000)), "user: 10 kB response after 89 kB, break-even 100 kB");
    assert_eq!(said(decide(91_000)), "kernel: 10 kB response after 91 kB, break-even 100 kB");
    assert_eq!(decide(91_000).reason.label(), "expected_to_pay");
}

#[test]
fn what_is_sent_of_the_response_under_way_predicts_nothing() {
    let connection = ConnectionSignals { left_bytes: 50_000, ..fresh(10_000_000) };
    let decision = placer().decide(&kernel_only(), &connection, 0, never_asked);
    assert_eq!(decision.engine, Engine::User);
    let done = ConnectionSignals { left_bytes: 0, sent_before_bytes: 1 << 40, ..fresh(10_000_000) };
    assert_eq!(placer().decide(&kernel_only(), &done, 0, never_asked).engine, Engine::User);
}

#[test]
fn responses_that_cost_more_there_count_against_it() {
    let mut costs = costs();
    let kernel = EngineCosts { per_response_ns: 2000.0, ..*costs.of(Engine::Kernel, AES) };
    costs.set(Engine::Kernel, AES, kernel);
    let mut placer = Placer::new(Policy::default(), costs);
    // Each of 10 kB saves 1 µs of bytes and costs 2 µs more: however many there were.
    let small = ConnectionSignals { sent_before_bytes: 10_000_000, responses_before: 1000, ..fresh(10_000) };
    let decision = placer.decide(&kernel_only(), &small, 0, never_asked);
    assert_eq!(said(decision), "user: 10 kB response after 10 MB, break-even 20 MB");
    let large = ConnectionSignals { sent_before_bytes: 30_000_000, responses_before: 1000, ..fresh(10_000) };
    assert_eq!(placer.decide(&kernel_only(), &large, 0, never_asked).engine, Engine::Kernel);
    // The first is one, too: 10 µs of set-up and 2 µs.
    let mut first = |bytes| said(placer.decide(&kernel_only(), &fresh(bytes), 0, never_asked));
    assert_eq!(first(110_000), "user: 110 kB response, break-even 120 kB");
    assert_eq!(first(130_000), "kernel: 130 kB response, break-even 120 kB");
    let near = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes.abs_diff(120_000) <= 1);
    assert!(near(placer.break_even_bytes(Engine::Kernel, AES)));
    assert!((placer.saved_ns_per_byte(Engine::Kernel, AES) - 0.1).abs() < 1e-9);
}

/// The set-up is paid by responses, not by bytes; this one alone does not pay it.
#[test]
fn responses_that_cost_less_there_count_for_it() {
    let mut costs = costs();
    let user = EngineCosts { per_response_ns: 2000.0, ..*costs.of(Engine::User, AES) };
    costs.set(Engine::User, AES, user);
    let tenth = ConnectionSignals { sent_before_bytes: 900, responses_before: 9, ..fresh(100) };
    let decision = Placer::new(Policy::default(), costs).decide(&kernel_only(), &tenth, 0, never_asked);
    assert_eq!((decision.engine, decision.reason.label()), (Engine::Kernel, "expected_to_pay"));
}

#[test]
fn an_engine_that_costs_as_much_carries_nothing() {
    let mut costs = costs();
    for engine in [Engine::User, Engine::Kernel] {
        costs.set(engine, AES, EngineCosts::FREE);
    }
    let mut placer = Placer::new(Policy::default(), costs);
    let decision = placer.decide(&kernel_only(), &fresh(1 << 30), 0, never_asked);
    assert_eq!(said(decision), "user: the kernel engine costs 0.000 ns a byte more");
}

#[test]
fn by_default_software_kernel_tls_carries_nothing() {
    let mut placer = Placer::new(Policy::default(), Costs::defaults());
    for combination in Combination::ALL {
        let connection = ConnectionSignals { combination, ..fresh(1 << 40) };
        let decision = placer.decide(&kernel_only(), &connection, 0, never_asked);
        assert_eq!((decision.engine, decision.reason.label()), (Engine::User, "not_cheaper"));
    }
}

#[test]
fn a_saving_within_the_noise_is_none() {
    let mut costs = costs();
    costs.set(Engine::Kernel, AES, EngineCosts { per_byte_ns: 0.29, ..EngineCosts::FREE });
    let decision =
        Placer::new(Policy::default(), costs).decide(&kernel_only(), &fresh(1 << 30), 0, never_asked);
    assert_eq!(said(decision), "user: the kernel engine saves 0.010 ns a byte, too little to be sure");
}

#[test]
fn the_best_engine_is_taken() {
    let both = Capabilities { kernel: TAKEN, nic: TAKEN };
    let mut placer = placer();
    let mut engine = |bytes| placer.decide(&both, &fresh(bytes), 0, || Some(0.0)).engine;
    assert_eq!(
        [50_000, 1_000_000, 9_000_000].map(&mut engine),
        [Engine::User, Engine::Kernel, Engine::Kernel]
    );
    assert_eq!(engine(10_000_000), Engine::Nic, "1 ms more for 0.1 ns a byte less: from 9.9 MB on");
    // The adapter would pay, too, but is not the best: it has nothing to do with the reason.
    let decision = placer.decide(&both, &fresh(9_000_000), 0, never_asked);
    assert_eq!(said(decision), "kernel: 9 MB response, break-even 100 kB");
}

#[test]
fn the_reason_is_what_stood_against_the_best_engine() {
    let version = Lack::VersionNotInNic {
        version: Version::Tls13,
        driver: Name::new("mlx5_core"),
        release: Release { major: 6, minor: 12 },
    };
    let can = Capabilities { kernel: TAKEN, nic: Verdict::Lacking(version) };
    let mut placer = placer();
    let mut decide = |can: &Capabilities, bytes| said(placer.decide(can, &fresh(bytes), 0, never_asked));
    assert_eq!(decide(&can, 1 << 30), "kernel: TLS 1.3 is not offloaded by mlx5_core on 6.12");
    assert_eq!(decide(&can, 10_000), "user: 10 kB response, break-even 100 kB");
    let neither = Capabilities {
        kernel: Verdict::Lacking(Lack::Module),
        nic: Verdict::Lacking(Lack::CipherNotInNic(Cipher::ChaCha20Poly1305)),
    };
    assert_eq!(decide(&neither, 1 << 30), "user: cipher ChaCha20-Poly1305 not in NIC");
    assert_eq!(decide(&neither, 10), "user: cipher ChaCha20-Poly1305 not in NIC");
    let no_adapter = Capabilities { nic: Verdict::Lacking(Lack::NoAdapter), ..neither };
    assert_eq!(decide(&no_adapter, 1 << 30), "user: the tls module is not loaded (modprobe tls)");
    assert_eq!(decide(&no_adapter, 10), "user: the tls module is not loaded (modprobe tls)");
    assert_eq!(decide(&Capabilities::USER_ONLY, 10), "user: the kernel engine is not asked for");
    let off = Capabilities { nic: Verdict::Lacking(Lack::FeatureOff(Name::new("eth0"))), ..kernel_only() };
    assert_eq!(
        decide(&off, 1 << 30),
        "kernel: eth0 could encrypt (ethtool -K eth0 tls-hw-tx-offload on; FreeBSD: ifconfig eth0 txtls)"
    );
}

#[test]
fn the_adapter_is_asked_for_no_more_set_ups_than_its_budget() {
    let mut placer = placer();
    assert_eq!(placer.set_ups_per_s(), 200.0, "all that the adapter can do");
    let mut moved = 0;
    // Ten times as many as it can do, each worth more than any price.
    for half_ms in 0..20_000 {
        let mut asked = false;
        let decision = placer.decide(&with_nic(), &fresh(6 << 30), half_ms * 500_000, || {
            asked = true;
            Some(0.0)
        });
        assert_eq!(asked, decision.engine == Engine::Nic, "a system call only where it decides");
        match decision.engine {
            Engine::Nic => moved += 1,
            _ => assert_eq!(said(decision), "user: set-up budget spent (200/s)"),
        }
    }
    let burst = placer.budget().burst() as i32;
    assert!((2000..=2000 + burst).contains(&moved), "{moved} in 10 s");
}

#[test]
fn who_saves_little_leaves_set_ups_to_who_saves_much() {
    let mut placer = placer();
    let mut decide = |bytes, at_ns| placer.decide(&with_nic(), &fresh(bytes), at_ns, || None);
    // 5 MB break even. A small gain has a set-up while there is plenty, however often it asks.
    let small = (0..100).filter(|_| decide(6_000_000, 0).engine == Engine::Nic).count();
    assert!((50..75).contains(&small), "{small} of 100: half without a price, then few");
    let refused = decide(6_000_000, 0);
    assert_eq!((refused.engine, refused.reason.label()), (Engine::User, "others_save_more"));
    assert_eq!(refused.reason.again(), crate::Again::NextRecord);
    let large = (0..100).filter(|_| decide(1_000_000_000, 0).engine == Engine::Nic).count();
    assert!((10..35).contains(&large), "{large} were left for it");
    // The rest is for responses that save a second.
    assert!((0..100).filter(|_| decide(20_000_000_000, 0).engine == Engine::Nic).count() >= 1);
    assert_eq!(decide(20_000_000_000, 0).reason.label(), "budget_spent");
    // A lone one has a set-up again as soon as nobody else wants them.
    assert_eq!(decide(5_100_000, 300_000_000).engine, Engine::Nic);
}

/// What was sent before pays for the set-up, and bids for none: the responses that follow can ask again.
#[test]
fn a_response_bids_what_it_saves_itself() {
    let mut placer = placer();
    let kept =
        ConnectionSignals { sent_before_bytes: 10_000_000_000, responses_before: 1000, ..fresh(10_000) };
    assert_eq!(placer.decide(&with_nic(), &kept, 0, || None).engine, Engine::Nic, "while there is plenty");
    while placer.decide(&with_nic(), &fresh(20_000_000), 0, || None).engine == Engine::Nic {}
    // 10 kB save 2 µs here; 20 MB save 4 ms, less the set-up.
    let short = said(placer.decide(&with_nic(), &kept, 0, || None));
    assert!(short.starts_with("user: set-ups are short: it would save 2 µs, others save over "), "{short}");
    // Less what the response itself costs more there.
    let mut costs = costs();
    let nic = EngineCosts { per_response_ns: 500.0, ..*costs.of(Engine::Nic, AES) };
    costs.set(Engine::Nic, AES, nic);
    placer.adopt(Policy::default(), costs);
    let short = said(placer.decide(&with_nic(), &kept, 0, || None));
    assert!(short.starts_with("user: set-ups are short: it would save 1.5 µs, others"), "{short}");
}

/// Where the kernel can be had, too, a set-up on the adapter saves what is between the two.
#[test]
fn a_response_bids_what_the_adapter_saves_beside_the_kernel() {
    let both = Capabilities { kernel: TAKEN, nic: TAKEN };
    let mut placer = placer();
    while placer.decide(&both, &fresh(20_000_000), 0, || None).engine == Engine::Nic {}
    // 1.4 ms on the adapter, 1.19 ms in the kernel.
    let said = said(placer.decide(&both, &fresh(12_000_000), 0, || None));
    assert!(said.starts_with("kernel: set-ups are short: it would save 210 µs, others save over "), "{said}");
}

#[test]
fn a_set_up_that_was_not_made_is_had_by_the_next() {
    let mut placer = placer();
    let mut moved = 0;
    for _ in 0..1000 {
        if placer.decide(&with_nic(), &fresh(20 << 30), 0, || None).engine == Engine::Nic {
            moved += 1;
            placer.give_back_set_up();
        }
    }
    assert_eq!(moved, 1000);
}

/// As where the operator chose the kernel, and Linux asks the adapter first.
#[test]
fn a_move_by_the_adapter_takes_a_set_up_too() {
    let mut placer = placer();
    let taken = (0..1000).filter(|_| placer.take_set_up(0).is_none()).count();
    assert_eq!(taken, 100, "half a second's");
    assert_eq!(placer.take_set_up(0), Some(Reason::BudgetSpent { set_ups_per_s: 200.0 }));
    assert_eq!(placer.take_set_up(10_000_000), None, "and two in each hundredth of a second");
}

#[test]
fn small_responses_spend_no_set_ups() {
    let mut placer = placer();
    let left = placer.budget().left();
    for _ in 0..1000 {
        assert_eq!(placer.decide(&with_nic(), &fresh(10_000), 0, never_asked).engine, Engine::User);
    }
    assert_eq!(placer.budget().left(), left);
}

/// Others use the adapter, or it does less than was calibrated: set-ups take longer and longer.
#[test]
fn where_set_ups_queue_fewer_are_asked_for() {
    let mut placer = placer();
    let mut now_ns = 0;
    for set_up in 0..200u64 {
        now_ns += 20_000_000;
        placer.set_up_took(5_000_000 * (1 + set_up), now_ns);
    }
    assert!(placer.set_ups_per_s() < 100.0, "{}", placer.set_ups_per_s());
    while placer.decide(&with_nic(), &fresh(6 << 30), now_ns, || None).engine == Engine::Nic {}
    let decision = placer.decide(&with_nic(), &fresh(6 << 30), now_ns, || None);
    assert_eq!(said(decision), format!("user: set-up budget spent ({:.0}/s)", placer.set_ups_per_s()));
    placer.refresh(MachineSignals::default(), now_ns + 30_000_000_000);
    assert_eq!(placer.set_ups_per_s(), 200.0, "and as many again when that is over");
}

#[test]
fn workers_share_the_budget() {
    let policy = Policy { workers: 4, nic_set_ups_per_s: Some(100.0), ..Policy::default() };
    let placer = Placer::new(policy, costs());
    assert_eq!(placer.budget().rate_per_s(), 25.0);
    assert_eq!(placer.set_ups_per_s(), 100.0);
}

#[test]
fn a_full_flow_table_takes_no_more() {
    let mut placer = placer();
    placer.refresh(MachineSignals { nic_flows: 1000, ..MachineSignals::default() }, 0);
    let decision = placer.decide(&with_nic(), &fresh(1 << 30), 0, never_asked);
    assert_eq!(said(decision), "user: the adapter has 1000 flows, and keeps 1000");
}

#[test]
fn flows_that_lose_packets_stay_off_the_adapter() {
    let mut placer = placer();
    let before = placer.budget().left();
    let decision = placer.decide(&with_nic(), &fresh(1 << 30), 0, || Some(0.014));
    assert_eq!(said(decision), "user: 1.4 % of its bytes were retransmitted, over 1 %");
    assert_eq!(placer.budget().left(), before, "and cost no set-up");
    assert_eq!(placer.decide(&with_nic(), &fresh(1 << 30), 0, || Some(0.01)).engine, Engine::Nic);
}

#[test]
fn freebsd_takes_lossy_flows_back_and_linux_cannot() {
    let on_nic = ConnectionSignals { engine: Engine::Nic, ..fresh(1 << 30) };
    let decision = placer().decide(&with_nic(), &on_nic, 0, never_asked);
    assert_eq!(said(decision), "nic: moved there before");
    let freebsd = Policy { nic_mode: NicMode::FreeBsdIfnet, ..Policy::default() };
    let mut placer = Placer::new(freebsd, costs());
    let decision = placer.decide(&with_nic(), &on_nic, 0, || Some(0.02));
    assert_eq!(said(decision), "kernel: 2 % of its bytes were retransmitted, over 1 %");
    assert_eq!(placer.decide(&with_nic(), &on_nic, 0, || Some(0.01)).engine, Engine::Nic, "not over it");
    // And gives the adapter those that the kernel carries, if that pays again.
    let both = Capabilities { kernel: TAKEN, nic: TAKEN };
    let mut on_kernel = |bytes| {
        let connection = ConnectionSignals { engine: Engine::Kernel, ..fresh(bytes) };
        said(placer.decide(&both, &connection, 0, || Some(0.0)))
    };
    assert_eq!(on_kernel(9_000_000), "kernel: moved there before");
    assert_eq!(on_kernel(11_000_000), "nic: 11 MB response, break-even 10 MB");
    // What a response costs more in the kernel is saved, too.
    let mut dear = costs();
    let kernel = EngineCosts { per_response_ns: 100_000.0, ..*dear.of(Engine::Kernel, AES) };
    dear.set(Engine::Kernel, AES, kernel);
    let connection = ConnectionSignals { engine: Engine::Kernel, ..fresh(9_500_000) };
    let decision = Placer::new(freebsd, dear).decide(&both, &connection, 0, || Some(0.0));
    assert_eq!(said(decision), "nic: 9.5 MB response, break-even 9 MB");
    let connection = ConnectionSignals { engine: Engine::Kernel, ..fresh(1 << 30) };
    let decision = placer.decide(&both, &connection, 0, || Some(0.02));
    assert_eq!(said(decision), "kernel: 2 % of its bytes were retransmitted, over 1 %");
    assert_eq!(
        said(placer.decide(&kernel_only(), &connection, 0, never_asked)),
        "kernel: moved there before"
    );
    let decision = self::placer().decide(&both, &connection, 0, never_asked);
    assert_eq!(said(decision), "kernel: moved there before", "not on Linux");
    let toe = Policy { nic_mode: NicMode::FreeBsdToe, ..Policy::default() };
    let decision = Placer::new(toe, costs()).decide(&with_nic(), &fresh(1 << 30), 0, never_asked);
    assert_eq!(decision.reason.label(), "not_on_this_system");
}

#[test]
fn a_key_that_cannot_be_changed_has_to_have_room() {
    let fixed_key = Verdict::Carried(Carried { takes_new_keys: false });
    let can = Capabilities { kernel: fixed_key, ..kernel_only() };
    let few = ConnectionSignals { records_left: Some(100), ..fresh(1 << 20) };
    let decision = placer().decide(&can, &few, 0, never_asked);
    assert_eq!(said(decision), "user: it may need 258 records, its key has 100 left");
    let more = ConnectionSignals { records_left: Some(259), ..few };
    assert_eq!(placer().decide(&can, &more, 0, never_asked).engine, Engine::Kernel);
    // Where the key can be changed the count does not matter.
    assert_eq!(placer().decide(&kernel_only(), &few, 0, never_asked).engine, Engine::Kernel);
}

#[test]
fn what_the_operator_chose_is_done_where_it_can_be() {
    let fixed = |engine| Policy {
        mode: Mode::Fixed { engine, from_bytes: 65_536, after_bytes: 1_000_000 },
        ..Policy::default()
    };
    let mut user = Placer::new(fixed(Engine::User), costs());
    assert_eq!(
        said(user.decide(&kernel_only(), &fresh(1 << 30), 0, never_asked)),
        "user: fixed by --engine user"
    );
    let mut kernel = Placer::new(fixed(Engine::Kernel), Costs::defaults());
    let mut decide = |can, bytes, before| {
        let connection = ConnectionSignals { sent_before_bytes: before, ..fresh(bytes) };
        said(kernel.decide(&can, &connection, 0, never_asked))
    };
    assert_eq!(decide(kernel_only(), 10_000, 0), "user: 10 kB response, kernel_engine.from is 66 kB");
    assert_eq!(decide(kernel_only(), 70_000, 0), "user: 0 B sent, kernel_engine.after is 1 MB");
    assert_eq!(decide(kernel_only(), 65_536, 1_000_000), "kernel: fixed by --engine kernel");
    let none = Capabilities { kernel: Verdict::Lacking(Lack::Module), ..kernel_only() };
    assert_eq!(decide(none, 70_000, 1_000_000), "user: the tls module is not loaded (modprobe tls)");
}

#[test]
fn a_wait_counts_where_there_is_time_to_spare() {
    let mut costs = costs();
    let nic = EngineCosts { set_up_ns: 0.0, set_up_wait_ns: 1e6, per_byte_ns: 0.1, ..EngineCosts::FREE };
    costs.set(Engine::Nic, AES, nic);
    let mut placer = Placer::new(Policy::default(), costs);
    let near = |bytes: Option<u64>, expected: u64| bytes.is_some_and(|bytes| bytes.abs_diff(expected) <= 1);
    assert!(near(placer.break_even_bytes(Engine::Nic, AES), 0));
    placer.refresh(MachineSignals { cpu_left: 0.9, ..MachineSignals::default() }, 0);
    assert!(near(placer.break_even_bytes(Engine::Nic, AES), 90_000));
}

/// A calibration that is wrong about this machine is corrected by what transfers cost.
#[test]
fn what_is_learnt_stops_promotions_that_do_not_pay() {
    let mut placer = placer();
    assert_eq!(placer.decide(&kernel_only(), &fresh(1 << 30), 0, never_asked).engine, Engine::Kernel);
    let mut learn = |learning| {
        placer.adopt(Policy { learning, ..Policy::default() }, costs());
        for _ in 0..2000 {
            placer.observe(Engine::User, AES, 1 << 20, (0.30 * 1048576.0) as u64);
            placer.observe(Engine::Kernel, AES, 1 << 20, (0.45 * 1048576.0) as u64);
        }
        placer.refresh(MachineSignals::default(), 0);
        placer.decide(&kernel_only(), &fresh(1 << 30), 0, never_asked)
    };
    assert_eq!(learn(false).engine, Engine::Kernel);
    assert_eq!((learn(true).engine, learn(true).reason.label()), (Engine::User, "not_cheaper"));
}

#[test]
fn trials_are_one_in_so_many_large_responses() {
    let policy = Policy { trial_every: 100, ..Policy::default() };
    let mut placer = Placer::new(policy, Costs::defaults());
    let mut trials = 0;
    for _ in 0..1000 {
        let decision = placer.decide(&kernel_only(), &fresh(Placer::TRIAL_BYTES), 0, never_asked);
        if decision.engine == Engine::Kernel {
            assert_eq!(said(decision), "kernel: one of 100, to learn what it costs");
            trials += 1;
        }
        placer.decide(&kernel_only(), &fresh(Placer::TRIAL_BYTES - 1), 0, never_asked);
    }
    assert_eq!(trials, 10);
}

#[test]
fn a_reload_keeps_what_was_learnt_and_spent() {
    let mut placer = placer();
    placer.observe(Engine::User, AES, 1 << 20, 1_000_000);
    let decision = placer.decide(&with_nic(), &fresh(1 << 30), 0, || None);
    assert_eq!(decision.engine, Engine::Nic);
    let left = placer.budget().left();
    placer.adopt(Policy { trial_every: 7, ..Policy::default() }, costs());
    assert_eq!(placer.learner().observed(Engine::User, AES).observations, 1);
    assert_eq!(placer.budget().left(), left);
    assert_eq!(placer.policy().trial_every, 7);
    assert_eq!(*placer.costs(), costs());
}
