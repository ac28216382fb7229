//! Every rule, by made facts: a machine on which all is well, and what becomes of it when one thing is not.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use linerate_engine::kernel::{Carried as KernelCarried, Objection};
use linerate_environment::{Reading, ZEROES_PAGES};
use linerate_os::adapter::{Beneath, Channels, Driver, FeatureState, Obstacle};
use linerate_placement::Lack;
use linerate_record::{Cipher, Combination, Version};
use linerate_tls::{ChainTrust, Inspection, KeyAlgorithm};

use super::*;
use crate::{
    Use, Verdict, changes,
    facts::{
        Adapter, Answer, CertificateFile, Confinement, Content, Cores, Interrupt, KernelEngine, Module,
        NET_ADMIN, Rate, ResponseFacts, Root, RootFacts, Server,
    },
};

const ON: FeatureState = FeatureState { on: true, changeable: true };
const OFF: FeatureState = FeatureState { on: false, changeable: true };
const FIXED_OFF: FeatureState = FeatureState { on: false, changeable: false };

/// A server of bare metal with a ConnectX-6 Dx, set as it should be.
fn machine() -> Facts {
    let mut facts = Facts {
        environment: BTreeMap::new(),
        module: Module::Loaded,
        statistics: Reading::Value(BTreeMap::from([
            ("TlsTxSw".to_owned(), 3),
            ("TlsTxDevice".to_owned(), 0),
        ])),
        confinement: Confinement {
            own_network: Reading::Value(false),
            first_user: Reading::Value(true),
            container: None,
            capabilities: Reading::Value(u64::MAX),
            seccomp: Reading::Value("none".to_owned()),
            first_open_port: Reading::Value(1024),
            io_uring: Ok(()),
        },
        kernel_engine: kernel_engine(|_| Ok(KernelCarried { takes_new_keys: true, zero_copy: true })),
        adapters: vec![connect_x()],
        cores: Cores { usable: Reading::Value((0..4).map(|cpu| (cpu, Some(0))).collect()) },
        content: Content {
            available_bytes: Reading::Value(64 << 30),
            cached_bytes: Reading::Value(1 << 30),
            root: None,
        },
        rates: vec![Rate {
            library: "aws-lc".to_owned(),
            cipher: Cipher::Aes128Gcm,
            bytes_per_s: Reading::Value(14.2e9),
        }],
        certificate: None,
        server: None,
    };
    for (group, fact, value) in [
        ("kernel", "release", "6.12.41+deb13-amd64"),
        ("kernel", "distribution", "Debian GNU/Linux 13 (trixie)"),
        ("kernel", ZEROES_PAGES, "no"),
        ("cpu", "model", "AMD EPYC 9554"),
        ("cpu", "flags that matter", "aes pclmulqdq vaes"),
        ("cpu", "governor", "performance"),
        ("cpu", "frequency driver", "acpi-cpufreq"),
        ("cpu", "boost", "on"),
        ("cpu", "hypervisor", "none"),
        ("linerate", "profile", "release"),
        ("network", "net.ipv4.tcp_congestion_control", "cubic"),
        ("network", "net.core.somaxconn", "4096"),
        ("network", "net.ipv4.tcp_wmem", "4096 16384 4194304"),
        ("network", "net.ipv4.tcp_slow_start_after_idle", "0"),
        ("network", "net.ipv4.ip_local_port_range", "32768 60999"),
        ("limits", "most open files", "524288"),
        ("limits", "control group's CPU time", "no limit"),
        ("limits", "control group's memory in bytes", "no limit"),
    ] {
        tell(&mut facts, group, fact, value);
    }
    facts
}

fn tell(facts: &mut Facts, group: &str, fact: &str, value: &str) {
    let group = facts.environment.entry(group.to_owned()).or_default();
    group.insert(fact.to_owned(), Reading::Value(value.to_owned()));
}

fn untell(facts: &mut Facts, group: &str, fact: &str) {
    let group = facts.environment.entry(group.to_owned()).or_default();
    group.insert(fact.to_owned(), Reading::NotAvailable("it is made up".to_owned()));
}

fn kernel_engine(verdict: impl Fn(Combination) -> Result<KernelCarried, Objection>) -> Vec<KernelEngine> {
    let of = |combination| KernelEngine { combination, verdict: verdict(combination) };
    Combination::ALL.into_iter().map(of).collect()
}

fn without_module(_: Combination) -> Result<KernelCarried, Objection> {
    Err(Lack::Module.into())
}

fn failed_self_test(combination: Combination) -> Result<KernelCarried, Objection> {
    Err(Objection { lack: Lack::SelfTest(combination), detail: "byte 7".to_owned() })
}

fn connect_x() -> Adapter {
    let features = [
        ("tx-tcp-segmentation", ON),
        ("tx-tcp6-segmentation", ON),
        ("tx-generic-segmentation", ON),
        ("tx-scatter-gather", ON),
        ("rx-gro", ON),
        ("tls-hw-tx-offload", ON),
    ];
    Adapter {
        name: "eth0".to_owned(),
        up: true,
        is_device: true,
        lower: Vec::new(),
        beneath: Beneath { ports: vec!["eth0".to_owned()], ..Beneath::default() },
        driver: Reading::Value(Driver {
            name: "mlx5_core".to_owned(),
            version: "6.12.41".to_owned(),
            firmware: "22.41.1000".to_owned(),
            bus: "0000:81:00.0".to_owned(),
        }),
        features: Reading::Value(features.map(|(name, state)| (name.to_owned(), state)).into()),
        channels: Reading::Value(Channels { most_combined: 63, combined: 4, ..Channels::default() }),
        mtu_bytes: Reading::Value(9000),
        node: Reading::Value(0),
        interrupts: Reading::Value(
            (0..4).map(|queue| Interrupt { number: 100 + queue, cpus: vec![queue as usize] }).collect(),
        ),
        tls_counters: Reading::Value(BTreeMap::from([("tx_tls_ctx".to_owned(), 12)])),
        errors: BTreeMap::new(),
    }
}

fn set(facts: &mut Facts, feature: &str, state: FeatureState) {
    let Reading::Value(features) = &mut facts.adapters[0].features else { panic!("features are known") };
    features.insert(feature.to_owned(), state);
}

/// The one finding of this name.
#[track_caller]
fn found(facts: &Facts, name: &str) -> Finding {
    let found: Vec<Finding> = judge(facts).into_iter().filter(|finding| finding.name == name).collect();
    let [finding] = <[Finding; 1]>::try_from(found).unwrap_or_else(|found| panic!("{name}: {found:?}"));
    finding
}

#[track_caller]
fn change(facts: &Facts, name: &str, what_for: Use, words: &str, command: &str) {
    let finding = found(facts, name);
    assert_eq!(finding.verdict, Verdict::Change(what_for), "{finding:?}");
    assert!(finding.text.contains(words), "{finding:?}");
    // Where no command would do, none is expected.
    let is_told = finding.commands.iter().any(|line| line.contains(command));
    assert!(if command.is_empty() { finding.commands.is_empty() } else { is_told }, "{finding:?}");
}

#[track_caller]
fn note(facts: &Facts, name: &str, words: &str) {
    let finding = found(facts, name);
    assert!(finding.verdict == Verdict::Note && finding.text.contains(words), "{finding:?}");
}

/// What is said of a version and cipher.
#[track_caller]
fn engine(facts: &Facts, subject: &str) -> String {
    let of = |finding: &Finding| finding.name == "engine" && finding.subject.as_deref() == Some(subject);
    judge(facts).into_iter().find(of).expect("all combinations are there").text
}

#[test]
fn a_machine_that_is_set_right_has_nothing_to_change() {
    let findings = judge(&machine());
    let not_well: Vec<&Finding> = findings.iter().filter(|finding| finding.verdict != Verdict::Ok).collect();
    assert_eq!(not_well, Vec::<&Finding>::new());
    assert!(findings.len() > 20);
}

#[test]
fn names_are_stable_words() {
    for finding in judge(&machine()) {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte == b'.';
        assert!(finding.name.bytes().all(is_word), "{}", finding.name);
        assert!(!finding.text.is_empty() && !finding.text.contains('\n'), "{finding:?}");
    }
}

#[test]
fn without_the_tls_module_it_is_loaded_where_that_helps() {
    let mut facts = machine();
    facts.module = Module::Installed;
    facts.kernel_engine = kernel_engine(without_module);
    facts.statistics = Reading::NotAvailable("there is none".to_owned());
    change(&facts, "kernel_tls.module", Use::Adapter, "an adapter that encrypts", "sudo modprobe tls");
    assert!(engine(&facts, "TLSv1.2 AES-128-GCM").contains("kernel no: the tls module is not loaded"));
    assert!(engine(&facts, "TLSv1.2 AES-128-GCM").contains("eth0 no: the tls module is not loaded"));
    // Without an adapter it is for the kernel engine, which is less.
    set(&mut facts, "tls-hw-tx-offload", FIXED_OFF);
    change(&facts, "kernel_tls.module", Use::KernelTls, "the user engine needs none", "/etc/modules-load.d/");
    facts.module = Module::NotInKernel;
    note(&facts, "kernel_tls.module", "CONFIG_TLS");
    facts.module = Module::NoModules;
    note(&facts, "kernel_tls.module", "no modules of this kernel are installed");
    facts.module = Module::NotKnown("a reason".to_owned());
    note(&facts, "kernel_tls.module", "not known: a reason");
}

#[test]
fn a_container_without_net_admin_is_told_to_ask_the_host() {
    let mut facts = machine();
    facts.module = Module::Installed;
    facts.confinement.container = Some("docker".to_owned());
    facts.confinement.capabilities = Reading::Value(0xa804_25fb);
    assert_eq!(facts.confinement.has(NET_ADMIN), Some(false));
    change(
        &facts,
        "kernel_tls.module",
        Use::Adapter,
        "it lacks CAP_NET_ADMIN",
        "modprobe tls    # on the host",
    );
    note(&facts, "capability.net_admin", "nothing loads the tls module by itself");
    note(&facts, "container", "docker");
    // What is loaded needs no capability.
    facts.module = Module::Loaded;
    assert_eq!(found(&facts, "capability.net_admin").verdict, Verdict::Ok);
    // No module files, as in most containers.
    facts.module = Module::NoModules;
    change(&facts, "kernel_tls.module", Use::Adapter, "a container cannot load it", "# on the host");
    // In a user namespace of one's own the capability is worth nothing outside.
    facts.confinement.capabilities = Reading::Value(u64::MAX);
    facts.confinement.first_user = Reading::Value(false);
    facts.module = Module::Installed;
    change(&facts, "kernel_tls.module", Use::Adapter, "may not have it loaded", "# on the host");
    note(&facts, "capability.net_admin", "only within a user namespace");
    facts.confinement.capabilities = Reading::NotAvailable("no /proc".to_owned());
    note(&facts, "capability.net_admin", "not known: no /proc");
}

#[test]
fn a_network_namespace_of_its_own_reads_zeros() {
    let mut facts = machine();
    facts.confinement.own_network = Reading::Value(true);
    note(&facts, "namespace.network", "reads zero for all others");
    assert!(found(&facts, "namespace.network").commands[0].contains("nsenter --target 1 --net"));
    facts.confinement.own_network = Reading::NotAvailable("a reason".to_owned());
    note(&facts, "namespace.network", "not known: a reason");
}

#[test]
fn an_adapter_whose_feature_is_off_is_switched_on() {
    let mut facts = machine();
    assert_eq!(found(&facts, "adapter.tls").text, "tls-hw-tx-offload is on; tx_tls_ctx 12");
    set(&mut facts, "tls-hw-tx-offload", OFF);
    let command = "sudo ethtool -K eth0 tls-hw-tx-offload on";
    change(&facts, "adapter.tls", Use::Adapter, "tls-hw-tx-offload is off", command);
    assert!(engine(&facts, "TLSv1.2 AES-128-GCM").contains("eth0 no: eth0 could encrypt (ethtool -K"));
    set(&mut facts, "tls-hw-tx-offload", FIXED_OFF);
    note(&facts, "adapter.tls", "ConnectX-6 Dx and later");
    assert!(!engine(&facts, "TLSv1.2 AES-128-GCM").contains("eth0"));
    assert!(found(&facts, "engine.adapter").text.contains("no adapter here encrypts"));
}

#[test]
fn tls_1_3_is_not_offloaded_by_mlx5() {
    let mut facts = machine();
    let tls13 = engine(&facts, "TLSv1.3 AES-128-GCM");
    assert!(tls13.contains("eth0 no: TLS 1.3 is not offloaded by mlx5_core on 6.12"), "{tls13}");
    assert!(tls13.contains("user yes; kernel yes, self-test passed, new keys in place"), "{tls13}");
    for subject in ["TLSv1.2 AES-128-GCM", "TLSv1.2 AES-256-GCM"] {
        assert!(engine(&facts, subject).contains("eth0 yes"), "{subject}");
    }
    assert!(
        engine(&facts, "TLSv1.2 ChaCha20-Poly1305").contains("eth0 no: cipher ChaCha20-Poly1305 not in NIC")
    );
    for release in ["6.18.2", "7.2.0"] {
        tell(&mut facts, "kernel", "release", release);
        assert!(engine(&facts, "TLSv1.3 AES-256-GCM").contains("eth0 no: TLS 1.3"), "{release}");
    }
    // A kernel that was not known when this was written may have it: nothing is claimed.
    tell(&mut facts, "kernel", "release", "9.1.0");
    assert!(engine(&facts, "TLSv1.3 AES-128-GCM").contains("eth0 not known: Linux 9.1 is newer"));
    tell(&mut facts, "kernel", "release", "5.15.0");
    assert!(engine(&facts, "TLSv1.2 AES-256-GCM").contains("keys of 128 bits only"));
    untell(&mut facts, "kernel", "release");
    assert!(engine(&facts, "TLSv1.2 AES-128-GCM").contains("eth0 not known"));
}

/// The ConnectX and another one as ports of a bond, with a VLAN on top.
fn bonded(obstacle: Option<Obstacle>) -> Facts {
    let mut facts = machine();
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<String>>();
    let upper = |name: &str, lower: &[&str], obstacle: Option<Obstacle>| {
        let mut adapter = connect_x();
        (adapter.name, adapter.is_device, adapter.lower) = (name.to_owned(), false, names(lower));
        adapter.beneath = Beneath { ports: names(&["eth0", "eth1"]), obstacle, port_of: None };
        // As Linux 6.1 shows it for a bond whatever its ports do.
        let features = [(linerate_engine::nic::route::TLS_FEATURE.to_owned(), FIXED_OFF)];
        adapter.features = Reading::Value(features.into());
        adapter
    };
    let vlan = Obstacle::NoBond { interface: "bond0.7".to_owned(), kind: "vlan".to_owned() };
    facts.adapters.push(connect_x());
    for (adapter, name) in facts.adapters.iter_mut().zip(["eth0", "eth1"]) {
        name.clone_into(&mut adapter.name);
        adapter.beneath =
            Beneath { ports: names(&[name]), port_of: Some("bond0".to_owned()), obstacle: None };
    }
    facts.adapters.push(upper("bond0", &["eth0", "eth1"], obstacle));
    facts.adapters.push(upper("bond0.7", &["bond0"], Some(vlan)));
    facts
}

/// What is said of the way down from an interface.
#[track_caller]
fn way_down(facts: &Facts, interface: &str) -> Finding {
    let of = |finding: &Finding| {
        finding.name == "adapter.way_down" && finding.subject.as_deref() == Some(interface)
    };
    judge(facts).into_iter().find(of).expect("something is said")
}

#[test]
fn a_bond_hands_connections_down_where_it_chooses_by_them() {
    let facts = bonded(None);
    assert_eq!(way_down(&facts, "bond0").verdict, Verdict::Ok);
    let carried = engine(&facts, "TLSv1.2 AES-128-GCM");
    assert!(carried.contains("; bond0 yes"), "{carried}");
    assert!(!carried.contains("; eth0 "), "a port sends nothing by itself: {carried}");

    let policy = Obstacle::BondPolicy { bond: "bond0".to_owned(), policy: "layer2".to_owned() };
    let facts = bonded(Some(policy));
    let finding = way_down(&facts, "bond0");
    assert_eq!(finding.verdict, Verdict::Change(Use::Adapter));
    assert_eq!(finding.commands, ["sudo ip link set bond0 type bond xmit_hash_policy layer3+4"]);
    assert!(finding.text.contains("its policy is layer2"), "{finding:?}");
    let carried = engine(&facts, "TLSv1.2 AES-128-GCM");
    assert!(carried.contains("user yes; kernel yes"), "{carried}");
    assert!(
        carried.contains("; bond0 no: bond0 hands no connections to adapters (ip link set bond0"),
        "{carried}"
    );

    let mode = Obstacle::BondMode { bond: "bond0".to_owned(), mode: "active-backup".to_owned() };
    let finding = way_down(&bonded(Some(mode)), "bond0");
    assert_eq!(finding.verdict, Verdict::Change(Use::Adapter));
    assert!(finding.text.contains("its mode is active-backup"), "{finding:?}");
    // The kernel changes the mode of a bond without ports, and takes ports that are down.
    let expected = [
        "bond0 down",
        "eth0 nomaster",
        "eth1 nomaster",
        "bond0 type bond mode 802.3ad xmit_hash_policy layer3+4",
        "eth0 down",
        "eth0 master bond0",
        "eth1 down",
        "eth1 master bond0",
        "bond0 up",
    ];
    assert!(finding.commands[0].starts_with("# the switch has to speak LACP"), "{finding:?}");
    let commands = finding.commands[1..].iter().map(|line| line.strip_prefix("sudo ip link set ").unwrap());
    assert!(commands.eq(expected), "{finding:?}");
}

#[test]
fn linux_looks_beneath_no_vlan_whatever_the_bond_does() {
    let policy = Obstacle::BondPolicy { bond: "bond0".to_owned(), policy: "layer2".to_owned() };
    for obstacle in [None, Some(policy)] {
        let facts = bonded(obstacle);
        let finding = way_down(&facts, "bond0.7");
        assert!(finding.verdict == Verdict::Note && finding.commands.is_empty(), "{finding:?}");
        assert!(finding.text.contains("the user and kernel engines do"), "{finding:?}");
        assert!(finding.text.ends_with("beneath bonds only, not beneath bond0.7, a vlan"), "{finding:?}");
        let carried = engine(&facts, "TLSv1.2 AES-256-GCM");
        assert!(
            carried.contains("; bond0.7 no: Linux does not look for an adapter beneath bond0.7"),
            "{carried}"
        );
    }
    // Where no port could encrypt there is nothing to hand down to.
    let mut facts = bonded(None);
    for port in 0..2 {
        facts.adapters[port].features = Reading::Value(BTreeMap::new());
    }
    assert!(judge(&facts).iter().all(|finding| finding.name != "adapter.way_down"));
}

/// What is said of an engine, and what the server goes by when it starts, over all that can be found of the kernel and of
/// the way to an adapter.
#[test]
fn what_is_said_of_engines_is_what_the_server_goes_by() {
    let kernels: [fn(Combination) -> Result<KernelCarried, Objection>; 6] = [
        |_| Ok(KernelCarried { takes_new_keys: false, zero_copy: false }),
        |_| Ok(KernelCarried { takes_new_keys: true, zero_copy: true }),
        without_module,
        |combination| Err(Lack::NotInKernel(combination).into()),
        failed_self_test,
        |_| {
            Err(Objection {
                lack: Lack::NotKnown(linerate_placement::Engine::Kernel),
                detail: "no sockets".to_owned(),
            })
        },
    ];
    let obstacles = [
        None,
        Some(Obstacle::BondMode { bond: "bond0".to_owned(), mode: "balance-rr".to_owned() }),
        Some(Obstacle::BondPolicy { bond: "bond0".to_owned(), policy: "layer2+3".to_owned() }),
    ];
    let mut said = [0; 3];
    for kernel in kernels {
        for (obstacle, feature) in
            obstacles.iter().flat_map(|obstacle| [ON, OFF, FIXED_OFF].map(|feature| (obstacle, feature)))
        {
            for release in ["5.15.0", "6.12.41", "9.1.0"] {
                let mut facts = bonded(obstacle.clone());
                facts.kernel_engine = kernel_engine(kernel);
                tell(&mut facts, "kernel", "release", release);
                set(&mut facts, "tls-hw-tx-offload", feature);
                facts.adapters[1].features = facts.adapters[0].features.clone();
                agree(&facts, &mut said);
            }
        }
    }
    assert!(said.iter().all(|times| *times >= 30), "{said:?}");
}

/// Counts how often it is said that an adapter carries a version and cipher, that it does not, and that nobody can tell.
#[track_caller]
fn agree(facts: &Facts, said: &mut [usize; 3]) {
    use linerate_placement::Engine;

    let routes = engines::routes(facts);
    for (engine, adapter) in facts
        .kernel_engine
        .iter()
        .flat_map(|engine| facts.adapters.iter().map(move |adapter| (engine, adapter)))
    {
        let leaves_by = if adapter.name.starts_with("eth") { "bond0" } else { &adapter.name };
        let route = routes.iter().find(|route| route.interface == leaves_by);
        let kernel = engine.verdict.as_ref().map(|carried| *carried);
        let can = linerate_engine::nic::route::at_start(engine.combination, kernel, route);
        let answer = engines::carries(facts, adapter, engine);
        let what = format!("{engine:?} {} {can:?} {answer:?}", adapter.name);
        // What the server would not try is not promised, and what it would try is refused only with what it would find.
        match (&answer, can.nic.lack()) {
            (engines::Answer::Yes, lack) => assert_eq!(lack, None, "{what}"),
            (engines::Answer::NotKnown(_), None) => {}
            (engines::Answer::NotKnown(reason), Some(lack)) => {
                assert_eq!(*reason, lack.to_string(), "{what}")
            }
            (engines::Answer::No(reason), Some(lack)) if route.is_some() => {
                assert_eq!(*reason, lack.to_string())
            }
            (engines::Answer::No(_), Some(_)) => {
                assert!(engine.verdict.is_err() || route.is_none(), "{what}")
            }
            (engines::Answer::No(reason), None) => {
                let release = facts.release().unwrap();
                let (lack, _) = route.unwrap().foreseen(engine.combination, release).expect(&what);
                assert!(reason.starts_with(&lack.to_string()), "{what}");
            }
        }
        said[match answer {
            engines::Answer::Yes => 0,
            engines::Answer::No(_) => 1,
            engines::Answer::NotKnown(_) => 2,
        }] += 1;
        // In words, the kernel engine is there where the server would use it, if no adapter went first.
        let text = self::engine(facts, &engine.combination.label());
        let adapter_first = linerate_placement::Lack::AdapterGoesFirst;
        let by_kernel = can.of(Engine::Kernel).lack().is_none_or(|lack| lack == adapter_first);
        assert_eq!(text.contains("kernel yes"), by_kernel, "{text} {what}");
        assert!(text.starts_with("user yes") && can.of(Engine::User).lack().is_none());
    }
}

#[test]
fn pages_that_are_zeroed_before_they_are_filled_are_written_twice() {
    let mut facts = machine();
    assert_eq!(found(&facts, "kernel.init_on_alloc").verdict, Verdict::Ok);
    tell(&mut facts, "kernel", ZEROES_PAGES, "yes");
    note(&facts, "kernel.init_on_alloc", "what is copied into a socket is written twice");
    untell(&mut facts, "kernel", ZEROES_PAGES);
    assert!(judge(&facts).iter().all(|finding| finding.name != "kernel.init_on_alloc"));
}

#[test]
fn without_tso_every_packet_costs() {
    let mut facts = machine();
    set(&mut facts, "tx-tcp-segmentation", OFF);
    change(&facts, "adapter.tso", Use::Segments, "TSO is off", "sudo ethtool -K eth0 tso on");
    set(&mut facts, "tx-tcp-segmentation", FIXED_OFF);
    note(&facts, "adapter.tso", "cannot be switched here");
    let mut facts = machine();
    set(&mut facts, "tx-generic-segmentation", OFF);
    change(&facts, "adapter.gso", Use::Segments, "GSO is off", "ethtool -K eth0 gso on");
    set(&mut facts, "rx-gro", OFF);
    change(&facts, "adapter.gro", Use::Tuning, "GRO is off", "ethtool -K eth0 gro on");
    facts.adapters[0].up = false;
    note(&facts, "adapter", "down; mlx5_core");
    assert!(judge(&facts).iter().all(|finding| finding.name != "adapter.gso"), "what is down is not judged");
}

#[test]
fn powersave_is_as_bad_as_its_driver() {
    let mut facts = machine();
    tell(&mut facts, "cpu", "governor", "powersave");
    change(&facts, "cpu.governor", Use::Clock, "lowest frequency", "echo performance | sudo tee");
    tell(&mut facts, "cpu", "frequency driver", "intel_pstate");
    change(&facts, "cpu.governor", Use::Tuning, "follow the load", "echo performance | sudo tee");
    tell(&mut facts, "cpu", "governor", "schedutil");
    assert_eq!(found(&facts, "cpu.governor").verdict, Verdict::Ok);
    untell(&mut facts, "cpu", "governor");
    note(&facts, "cpu.governor", "it is made up");
}

#[test]
fn the_processor_and_the_build_are_told() {
    let mut facts = machine();
    tell(&mut facts, "cpu", "flags that matter", "none");
    note(&facts, "cpu.ciphers", "no instructions for AES");
    tell(&mut facts, "cpu", "hypervisor", "KVMKVMKVM");
    note(&facts, "cpu.hypervisor", "KVMKVMKVM");
    tell(&mut facts, "linerate", "profile", "debug");
    note(&facts, "build", "development (debug)");
    tell(&mut facts, "cpu", "boost", "off");
    note(&facts, "cpu.boost", "off");
}

#[test]
fn interrupts_and_queues_belong_to_the_workers() {
    let mut facts = machine();
    let all_on_one = (0..4).map(|queue| Interrupt { number: 100 + queue, cpus: vec![3] }).collect();
    facts.adapters[0].interrupts = Reading::Value(all_on_one);
    change(
        &facts,
        "adapter.interrupts",
        Use::Places,
        "all 4 interrupts go to CPU 3",
        "echo 1 | sudo tee /proc/irq/101/smp_affinity_list",
    );
    let mut facts = machine();
    facts.adapters[0].channels =
        Reading::Value(Channels { most_combined: 63, combined: 2, ..Channels::default() });
    change(&facts, "adapter.queues", Use::Places, "2 queues for 4 workers", "ethtool -L eth0 combined 4");
    facts.adapters[0].channels =
        Reading::Value(Channels { most_sending: 8, sending: 1, ..Channels::default() });
    change(&facts, "adapter.queues", Use::Places, "1 queue for 4 workers", "ethtool -L eth0 tx 4");
    facts.adapters[0].channels =
        Reading::Value(Channels { most_combined: 1, combined: 1, ..Channels::default() });
    assert_eq!(found(&facts, "adapter.queues").verdict, Verdict::Ok, "it has no more");
}

#[test]
fn an_adapter_on_another_node_is_noticed() {
    let mut facts = machine();
    facts.adapters[0].node = Reading::Value(1);
    change(&facts, "adapter.node", Use::Places, "crosses between nodes", "node1/cpulist");
    // Workers on both nodes: those of the adapter's are named.
    facts.cores.usable = Reading::Value((0..8).map(|cpu| (cpu, Some(usize::from(cpu >= 4)))).collect());
    note(&facts, "adapter.node", "workers would run on 2 nodes");
    assert!(found(&facts, "adapter.node").commands[0].ends_with("--cpus 4-7"));
    change(
        &facts,
        "adapter.interrupts",
        Use::Places,
        "none of its interrupts",
        "echo 4 | sudo tee /proc/irq/100/",
    );
    facts.adapters[0].node = Reading::NotAvailable("no bus".to_owned());
    assert!(judge(&facts).iter().all(|finding| finding.name != "adapter.node"));
}

#[test]
fn what_went_wrong_on_an_adapter_is_told() {
    let mut facts = machine();
    facts.adapters[0].errors.insert("tx_dropped".to_owned(), 7);
    note(&facts, "adapter.errors", "tx_dropped 7");
    facts.adapters[0].driver = Reading::NotAvailable("no answer".to_owned());
    facts.adapters[0].features = Reading::NotAvailable("no answer".to_owned());
    note(&facts, "adapter.features", "not known: no answer");
    facts.adapters.clear();
    note(&facts, "adapter", "no interface but loopback");
}

#[test]
fn limits_and_settings_are_held_against_what_the_server_wants() {
    let mut facts = machine();
    tell(&mut facts, "limits", "most open files", "1024");
    change(&facts, "limits.open_files", Use::Limits, "may open 1024 files", "LimitNOFILE=524288");
    untell(&mut facts, "limits", "most open files");
    note(&facts, "limits.open_files", "it is made up");
    tell(&mut facts, "limits", "control group's CPU time", "50000 100000 (cpu.max of /a)");
    note(&facts, "limits.cpu_time", "50000 100000");
    tell(&mut facts, "network", "net.core.somaxconn", "128");
    change(&facts, "network.backlog", Use::Limits, "128", "sysctl --write net.core.somaxconn=4096");
    tell(&mut facts, "network", "net.ipv4.tcp_congestion_control", "bbr");
    note(&facts, "network.congestion_control", "timers");
    tell(&mut facts, "network", "net.ipv4.tcp_slow_start_after_idle", "1");
    note(&facts, "network.slow_start_after_idle", "starts slowly again");
    for fact in ["net.core.somaxconn", "net.ipv4.tcp_wmem", "net.ipv4.ip_local_port_range"] {
        tell(&mut facts, "network", fact, "odd");
    }
    note(&facts, "network.backlog", "\"odd\" is no number");
    note(&facts, "network.send_buffer", "\"odd\" is not understood");
    note(&facts, "network.ports", "\"odd\" is not understood");
}

#[test]
fn content_is_held_against_memory_and_the_file_system() {
    let mut facts = machine();
    let found_there = RootFacts {
        file_system: Reading::Value("xfs".to_owned()),
        mount_options: Reading::Value("rw,nodev,nosuid".to_owned()),
        rotational: Reading::Value(false),
        read_ahead_kib: Reading::Value(128),
        files: 12,
        bytes: 1 << 40,
        more: false,
        tells_what_is_in_memory: Reading::Value(true),
        tells_time_of_birth: Reading::Value(true),
        mounts_below: Reading::Value(Vec::new()),
        siblings: 0,
        stale_siblings: 0,
        stale_names: Vec::new(),
    };
    let root = |found| Some(Root { path: "/srv".to_owned(), found });
    facts.content.root = root(Ok(found_there.clone()));
    note(&facts, "content.size", "1 TiB in 12 files, and memory has room for 64 GiB");
    assert_eq!(found(&facts, "content.residency").verdict, Verdict::Ok);
    facts.content.root = root(Ok(RootFacts {
        bytes: 10,
        mount_options: Reading::Value("rw".to_owned()),
        tells_what_is_in_memory: Reading::Value(false),
        ..found_there.clone()
    }));
    assert_eq!(found(&facts, "content.size").verdict, Verdict::Ok);
    assert!(matches!(found(&facts, "content.residency").verdict, Verdict::Change(_)));
    note(&facts, "content.nodev", "without nodev");
    let exported = |tells_time_of_birth, mounts: &[&str]| {
        let mounts_below = Reading::Value(mounts.iter().map(Into::into).collect());
        let tells_time_of_birth = Reading::Value(tells_time_of_birth);
        root(Ok(RootFacts { tells_time_of_birth, mounts_below, ..found_there.clone() }))
    };
    facts.content.root = exported(true, &[]);
    assert_eq!(found(&facts, "content.handles").verdict, Verdict::Ok);
    assert!(judge(&facts).iter().all(|finding| finding.name != "content.mounts"));
    facts.content.root = exported(false, &["/srv/films"]);
    note(&facts, "content.handles", "xfs does not say when a file was made");
    note(
        &facts,
        "content.mounts",
        "1 other file system is mounted below it: \"/srv/films\". NFS clients do not see it",
    );
    facts.content.root = exported(true, &["/srv/1", "/srv/2", "/srv/3", "/srv/4", "/srv/5", "/srv/6"]);
    note(
        &facts,
        "content.mounts",
        "\"/srv/5\" and 1 more. NFS clients do not see them; give each an [[export]] of its own",
    );
    let siblings = |siblings, stale_siblings, stale_names: &[&str]| {
        let stale_names = stale_names.iter().map(Into::into).collect();
        root(Ok(RootFacts { siblings, stale_siblings, stale_names, ..found_there.clone() }))
    };
    facts.content.root = siblings(2, 0, &[]);
    assert_eq!(found(&facts, "content.siblings").text, "2 precompressed siblings, none older than its file");
    facts.content.root = siblings(2, 1, &["a.js.br"]);
    change(
        &facts,
        "content.siblings",
        Use::Works,
        "1 is older than the file and therefore not served: \"a.js.br\". ",
        "",
    );
    facts.content.root = siblings(9, 6, &["a\u{1b}.br", "b.br"]);
    change(&facts, "content.siblings", Use::Works, "6 are older", "");
    assert!(found(&facts, "content.siblings").text.contains("\"a\\u{1b}.br\", \"b.br\" and 4 more."));
    facts.content.root = root(Err("no such folder".to_owned()));
    change(&facts, "content.root", Use::Works, "no such folder", "");
}

#[test]
fn a_failed_self_test_comes_before_all_else() {
    let mut facts = machine();
    facts.kernel_engine.truncate(1);
    facts.kernel_engine[0].verdict = failed_self_test(facts.kernel_engine[0].combination);
    tell(&mut facts, "cpu", "governor", "powersave");
    let findings = judge(&facts);
    let first = changes(&findings)[0];
    assert_eq!(first.name, "engine");
    assert!(first.text.contains("byte 7"), "{first:?}");
}

#[test]
fn a_rate_that_is_not_known_is_no_zero() {
    let mut facts = machine();
    facts.rates[0].bytes_per_s = Reading::NotAvailable("openssl cannot be run".to_owned());
    note(&facts, "cipher.rate", "not available: openssl cannot be run");
}

fn inspection() -> Inspection {
    Inspection {
        key: Some((KeyAlgorithm::EcdsaP256, 256)),
        names: vec!["media.example".to_owned()],
        not_before: UNIX_EPOCH,
        not_after: SystemTime::now() + Duration::from_secs(90 * 86_400),
        issuer: Some("An Authority".to_owned()),
        certificates: 2,
        trust: ChainTrust::Trusted,
        sha256_fingerprint: "00".to_owned(),
    }
}

/// What is said of a certificate.
fn certificate(inspection: Result<Inspection, String>, days_left: Option<u64>) -> Facts {
    let left = days_left.map(|days| Duration::from_secs(days * 86_400));
    let mut facts = machine();
    facts.certificate = Some(CertificateFile { file: "cert.pem".to_owned(), inspection, left });
    facts
}

#[test]
fn a_certificate_is_judged_by_what_clients_will_say() {
    let of = |alter: fn(&mut Inspection)| {
        let mut inspection = inspection();
        alter(&mut inspection);
        certificate(Ok(inspection), Some(80))
    };
    assert!(changes(&judge(&of(|_| {}))).is_empty());
    assert_eq!(found(&of(|_| {}), "certificate.validity").text, "80 days left");
    change(&certificate(Ok(inspection()), None), "certificate.validity", Use::Works, "expired", "");
    change(&certificate(Ok(inspection()), Some(3)), "certificate.validity", Use::Works, "3 days left", "");
    change(&certificate(Err("no".to_owned()), None), "certificate.file", Use::Works, "no", "");
    change(&of(|all| all.names.clear()), "certificate.names", Use::Works, "no subjectAltName", "");
    let many = of(|all| all.names = (0..20).map(|number| format!("{number}.example")).collect());
    assert!(found(&many, "certificate.names").text.contains("7.example and 12 more"));
    let incomplete = of(|all| all.trust = ChainTrust::EndsAt { issuer: Some("The Middle".to_owned()) });
    change(&incomplete, "certificate.chain", Use::Works, "\"The Middle\"", "cat own.pem intermediate.pem");
    change(
        &of(|all| all.trust = ChainTrust::Broken { position: 2 }),
        "certificate.chain",
        Use::Works,
        "certificate 2",
        "",
    );
    note(&of(|all| all.trust = ChainTrust::SelfSigned), "certificate.chain", "issued by itself");
    change(&of(|all| all.key = Some((KeyAlgorithm::Rsa, 1024))), "certificate.key", Use::Works, "1024", "");
    note(&of(|all| all.key = Some((KeyAlgorithm::Rsa, 4096))), "certificate.key", "ECDSA P-256");
    note(&of(|all| all.key = Some((KeyAlgorithm::Ed25519, 256))), "certificate.clients", "few browsers");
    note(&of(|all| all.key = Some((KeyAlgorithm::EcdsaP521, 521))), "certificate.clients", "Chromium");
    change(&of(|all| all.key = None), "certificate.key", Use::Works, "does not serve", "");
}

#[test]
fn a_server_is_described_as_it_answered() {
    let mut facts = machine();
    let mut answer = Answer {
        version: Version::Tls13,
        cipher_suite: "TLS_AES_128_GCM_SHA256".to_owned(),
        cipher: Cipher::Aes128Gcm,
        group: Some("X25519MLKEM768".to_owned()),
        speaks: [(Version::Tls12, Err("protocol version".to_owned())), (Version::Tls13, Ok(()))],
        certificate: Ok(inspection()),
        left: Some(Duration::from_secs(50 * 86_400)),
        distrust: Some("UnknownIssuer".to_owned()),
        response: Reading::Value(ResponseFacts { status: 206, server: Some("linerate".to_owned()) }),
        engine: Reading::Value(vec!["linerate_http_responses_total{engine=\"kernel\"}".to_owned()]),
    };
    let server = |answer| Some(Server { address: "media.example:443".to_owned(), answer });
    facts.server = server(Ok(answer.clone()));
    let agreed = found(&facts, "server.agreed");
    assert_eq!(agreed.text, "TLSv1.3, TLS_AES_128_GCM_SHA256 (AES-128-GCM), keys by X25519MLKEM768");
    assert_eq!(agreed.subject.as_deref(), Some("media.example:443"));
    assert_eq!(found(&facts, "server.versions").text, "it speaks TLSv1.3; not TLSv1.2: protocol version");
    assert_eq!(found(&facts, "server.response").text, "linerate answers with 206");
    assert!(found(&facts, "server.engine").text.contains("engine=\"kernel\""));
    note(&facts, "server.trust", "UnknownIssuer");
    answer.engine = Reading::NotAvailable("only a linerate tells".to_owned());
    answer.response = Reading::NotAvailable("it speaks another protocol".to_owned());
    facts.server = server(Ok(answer));
    note(&facts, "server.engine", "only a linerate tells");
    note(&facts, "server.response", "another protocol");
    facts.server = server(Err("connection refused".to_owned()));
    change(&facts, "server.reachable", Use::Works, "connection refused", "");
}
