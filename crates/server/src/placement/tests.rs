use super::*;
use linerate_config::Flags;
use linerate_placement::{EngineCosts, Name};
use std::path::Path;

fn settings(text: &str) -> Settings {
    let text = format!("{text}\n[[site]]\nroot = \"r\"\n");
    Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).unwrap()
}

fn plan_with(text: &str, costs: Costs) -> PlacementPlan {
    PlacementPlan::new(&settings(text), (Basis::Defaults, costs), 1)
}

/// By these the kernel pays from 100 kB on.
fn cheap_kernel() -> Costs {
    let mut costs = Costs::defaults();
    let user = EngineCosts { per_byte_ns: 0.3, ..EngineCosts::FREE };
    let kernel = EngineCosts { per_byte_ns: 0.2, set_up_ns: 10_000.0, ..EngineCosts::FREE };
    costs.set(Engine::User, Cipher::Aes256Gcm, user);
    costs.set(Engine::Kernel, Cipher::Aes256Gcm, kernel);
    costs
}

fn carrying(mut plan: PlacementPlan, kernel: Verdict) -> PlacementPlan {
    for can in &mut plan.capabilities {
        *can = Capabilities { kernel, nic: Verdict::Lacking(Lack::NoAdapter) };
    }
    plan
}

#[test]
fn the_summary_says_what_will_happen() {
    let taken = Verdict::Carried(linerate_placement::Carried { takes_new_keys: true });
    let without = Verdict::Lacking(Lack::Module);
    let said = |text, costs, kernel| carrying(plan_with(text, costs), kernel).summary();
    assert_eq!(said("engine = \"user\"", Costs::defaults(), taken), "engine user for all, as configured");
    assert_eq!(
        said("engine = \"auto\"", Costs::defaults(), without),
        "engine auto: user for all; the tls module is not loaded (modprobe tls)"
    );
    assert_eq!(
        said("", Costs::defaults(), taken),
        "engine auto: user for all; the kernel engine costs 0.044 ns a byte more, by published figures"
    );
    assert_eq!(
        said("", cheap_kernel(), taken),
        "engine auto: kernel from 100 kB (AES-256-GCM), else user, by published figures"
    );
    let mut with_adapter = carrying(plan_with("", Costs::defaults()), taken);
    with_adapter.has_adapter = true;
    let summary = with_adapter.summary();
    assert!(
        summary.starts_with("engine auto: nic from ") && summary.contains("else user, by published"),
        "{summary}"
    );
    assert_eq!(
        said("engine = \"kernel\"\n[kernel_engine]\nfrom = \"1MiB\"", Costs::defaults(), taken),
        "engine kernel for responses from 1 MB, as configured"
    );
    assert_eq!(
        said("engine = \"kernel\"", Costs::defaults(), without),
        "engine kernel, as configured, but user for all: the tls module is not loaded (modprobe tls)"
    );
}

#[test]
fn the_kernel_is_tested_only_where_it_may_be_used() {
    for (text, costs, expected) in [
        ("engine = \"user\"", cheap_kernel(), false),
        ("", Costs::defaults(), false),
        ("", cheap_kernel(), true),
        ("[placement]\ntrial_every = 7", Costs::defaults(), true),
        ("engine = \"kernel\"", Costs::defaults(), true),
    ] {
        assert_eq!(plan_with(text, costs).may_use_kernel(), expected, "{text}");
    }
}

#[test]
fn settings_become_policy() {
    let plan = plan_with(
        "[placement]\nnic_set_ups_per_second = 400\nmax_retransmitted_percent = 5\nlearning = false\ntrial_every = 9",
        Costs::defaults(),
    );
    let policy = Policy {
        nic_set_ups_per_s: Some(400.0),
        retransmitted_limit: 0.05,
        learning: false,
        trial_every: 9,
        ..Policy::default()
    };
    assert_eq!(plan.policy, policy);
}

#[test]
fn combinations_keep_their_places() {
    let mut plan = plan_with("", Costs::defaults());
    let lack = Lack::FeatureOff(Name::new("eth9"));
    plan.capabilities[5].nic = Verdict::Lacking(lack);
    assert_eq!(plan.capabilities(Combination::ALL[5]).nic.lack(), Some(lack));
    assert_ne!(plan.capabilities(Combination::ALL[4]).nic.lack(), Some(lack));
}
