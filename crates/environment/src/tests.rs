use std::fs;

use super::*;

/// A machine whose files are written below a folder, from a sample: after its description, "=== PATH" and content.
fn machine(sample: &str) -> BTreeMap<String, Group> {
    let root = tempfile::tempdir().expect("a directory");
    for section in sample.split("\n=== /").skip(1) {
        let (path, content) = section.split_once('\n').expect("a line for the path");
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }
    of_files(root.path(), &Interfaces::recorded(&Files::below(root.path())))
}

fn answer<'a>(environment: &'a BTreeMap<String, Group>, group: &str, fact: &str) -> &'a Reading<String> {
    let group = environment.get(group).unwrap_or_else(|| panic!("a group {group}"));
    group.get(fact).unwrap_or_else(|| panic!("a fact {fact} among {:?}", group.keys()))
}

#[track_caller]
fn assert_facts(environment: &BTreeMap<String, Group>, expected: &[(&str, &str, &str)]) {
    for (group, fact, value) in expected {
        let answer = answer(environment, group, fact);
        assert_eq!(answer, &Reading::Value((*value).to_owned()), "{group}: {fact}");
    }
}

#[track_caller]
fn assert_reasons(environment: &BTreeMap<String, Group>, expected: &[(&str, &str, &str)]) {
    for (group, fact, part) in expected {
        match answer(environment, group, fact) {
            Reading::NotAvailable(reason) => assert!(reason.contains(part), "{group}: {fact}: {reason}"),
            Reading::Value(value) => panic!("{group}: {fact} is {value}"),
        }
    }
}

#[test]
fn a_server_of_bare_metal_is_described() {
    let epyc = machine(include_str!("samples/epyc.txt"));
    assert_facts(
        &epyc,
        &[
            ("kernel", "release", "6.1.0-26-amd64"),
            ("kernel", "distribution", "Debian GNU/Linux 12 (bookworm)"),
            (
                "kernel",
                "soft interrupts charged to",
                "nobody (CONFIG_IRQ_TIME_ACCOUNTING): look at the machine's figures as well",
            ),
            ("kernel", "user and system time", "sampled at the tick"),
            ("kernel", "ticks a second", "250"),
            ("cpu", "model", "AMD EPYC 7502 32-Core Processor"),
            ("cpu", "microcode", "0x830107c"),
            ("cpu", "flags that matter", "aes pclmulqdq avx2 sha_ni adx bmi2"),
            ("cpu", "flags that are missing", "vaes vpclmulqdq avx512f avx512bw avx512vl gfni erms fsrm"),
            ("cpu", "SMT", "on"),
            ("cpu", "sockets", "2"),
            ("cpu", "NUMA nodes", "0-7"),
            ("cpu", "governor", "performance, schedutil"),
            ("cpu", "boost", "on"),
            ("cpu", "mitigation of meltdown", "Not affected"),
            ("memory", "total", "263853104 kB"),
            ("memory", "transparent huge pages", "madvise"),
            ("network", "net.ipv4.tcp_wmem", "4096 16384 4194304"),
            ("network", "kernel TLS", "the module tls is loaded"),
            ("adapter enp129s0f0np0", "speed in Mb/s", "100000"),
            ("adapter enp129s0f0np0", "receive queues", "2"),
            ("adapter enp129s0f0np0", "send queues", "1"),
            ("adapter enp129s0f0np0", "NUMA node", "2"),
            ("limits", "kernel.perf_event_paranoid", "3"),
            ("limits", "open files", "1024"),
            ("limits", "most open files", "1048576"),
            (
                "limits",
                "control group's CPU time",
                "200000 100000 (cpu.max of /system.slice/linerate.service)",
            ),
            ("limits", "control group's memory in bytes", "no limit"),
        ],
    );
    assert_reasons(
        &epyc,
        &[
            ("network", "net.core.somaxconn", "there is no /proc/sys/net/core/somaxconn"),
            ("adapter lo", "speed in Mb/s", "the driver tells none"),
        ],
    );
    assert!(!epyc.contains_key("adapter bonding_masters"), "a file is no interface");
}

#[test]
fn a_server_of_another_architecture_is_described() {
    let altra = machine(include_str!("samples/altra.txt"));
    assert_facts(
        &altra,
        &[
            ("cpu", "model", "Arm Neoverse N1 (implementer 0x41, part 0xd0c)"),
            ("cpu", "flags that matter", "aes pmull sha1 sha2 asimd atomics"),
            ("cpu", "flags that are missing", "sha3 sha512 sve sve2"),
            ("cpu", "SMT", "off"),
            ("kernel", "distribution", "Ubuntu 24.04.1 LTS"),
            ("network", "kernel TLS", "the module tls is installed, but not loaded (modprobe tls)"),
        ],
    );
    assert_reasons(
        &altra,
        &[
            ("cpu", "microcode", "does not tell"),
            ("cpu", "governor", "cpufreq/scaling_governor"),
            ("cpu", "boost", "no_turbo"),
            ("kernel", "ticks a second", "configuration"),
            ("adapter enP4p3s0", "speed in Mb/s", "does not know"),
            ("adapter enP4p3s0", "NUMA node", "no node"),
        ],
    );
}

#[test]
fn what_is_damaged_or_missing_has_a_reason() {
    let container = machine(include_str!("samples/container.txt"));
    assert_facts(
        &container,
        &[
            ("cpu", "model", "implementer 0x99, part 0x123"),
            ("limits", "control group's CPU time", "50000 (cpu.cfs_quota_us of /)"),
            ("limits", "control group's memory in bytes", "no limit"),
        ],
    );
    assert_reasons(
        &container,
        &[
            ("kernel", "distribution", "/etc/os-release does not tell"),
            ("network", "net.ipv4.tcp_wmem", "is empty"),
            ("cpu", "flags that matter", "does not tell"),
            ("memory", "total", "there is no /proc/meminfo"),
        ],
    );
    let nothing = machine("");
    for (group, facts) in &nothing {
        for (fact, answer) in facts {
            let told = answer.value();
            assert!(told.is_none() || fact == "kernel TLS", "{group}: {fact} of no machine is {told:?}");
        }
    }
}

#[test]
fn this_machine_is_described() {
    let environment = capture();
    for (group, facts) in &environment {
        for (fact, answer) in facts {
            let text = match answer {
                Reading::Value(value) => value,
                Reading::NotAvailable(reason) => reason,
            };
            assert!(!text.trim().is_empty() && !text.contains('\n'), "{group}: {fact}: {text:?}");
        }
    }
    for (group, fact) in [
        ("kernel", "release"),
        ("cpu", "model"),
        ("memory", "total"),
        ("network", "net.ipv4.tcp_congestion_control"),
        ("limits", "cores that may be used"),
        ("limits", "io_uring"),
        ("linerate", "rustls"),
        ("linerate", "aws-lc-sys"),
        ("linerate", "compiler"),
        ("adapter lo", "MTU"),
    ] {
        assert!(answer(&environment, group, fact).value().is_some(), "{group}: {fact}");
    }
    assert!(environment.contains_key("software"));
}

#[test]
fn the_tls_libraries_are_those_of_the_lock_file() {
    let lock =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).expect("readable");
    let own = software::own();
    for package in ["rustls", "aws-lc-rs", "aws-lc-sys"] {
        let version = own.get(package).and_then(|answer| answer.value()).expect("known to the build");
        let entry = format!("name = \"{package}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&entry), "{entry}");
    }
}
