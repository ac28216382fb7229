//! In namespaces and without capabilities: what is made here is told as what it is, and what the doctor advises helps.

use crate::{doctor, findings};
use linerate_end_to_end::{Program, is_installed, linerate_binary, skip};
use serde_json::Value;
use std::{fs, path::Path};

/// The effective capabilities of this process, as bits.
fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

const NET_ADMIN: u64 = 1 << 12;

/// Runs a shell script in new network and user namespaces; `None` where that is not permitted. `$LINERATE` is the binary.
fn in_namespaces(name: &str, script: &str) -> Option<String> {
    for program in ["unshare", "ip", "ethtool"] {
        let is_there = is_installed(program) || Path::new("/usr/sbin").join(program).exists();
        if !is_there {
            skip(name, &format!("there is no {program}"));
            return None;
        }
    }
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let unshare = |script: &str| {
        Program::new("unshare", ["--user", "--map-root-user", "--net", "sh", "-e", "-c", script])
            .env("PATH", &path)
            .env("LINERATE", linerate_binary())
            .run()
    };
    let tried = unshare("ip link add trial0 type veth peer name trial1");
    if !tried.status.success() {
        skip(name, &format!("no namespaces with a veth pair: {}", tried.stderr.trim()));
        return None;
    }
    let finished = unshare(script);
    assert!(finished.status.success(), "{}\n{}", finished.stderr, finished.text());
    Some(finished.text())
}

#[test]
fn in_a_network_namespace_of_its_own_it_says_so() {
    let script = "env PATH=/linerate/none \"$LINERATE\" doctor --json || [ $? = 3 ]";
    let Some(said) = in_namespaces("in_a_network_namespace_of_its_own_it_says_so", script) else { return };
    let report: Value = serde_json::from_str(&said).unwrap();
    let [(_, verdict, text, commands)] = &findings(&report, "namespace.network")[..] else {
        panic!("{said}")
    };
    assert_eq!(*verdict, "note");
    assert!(text.contains("of its own") && commands[0].contains("nsenter"), "{text} {commands:?}");
    let [(_, verdict, text, _)] = &findings(&report, "capability.net_admin")[..] else { panic!("{said}") };
    assert_eq!(*verdict, "note");
    assert!(text.contains("only within a user namespace"), "{text}");
}

#[test]
fn outside_of_one_it_does_not() {
    const NAME: &str = "outside_of_one_it_does_not";
    // Of namespaces made after start only the first has this setting.
    if !Path::new("/proc/sys/net/core/netdev_max_backlog").exists() {
        return skip(NAME, "this test itself runs in a network namespace of its own");
    }
    let report: Value = serde_json::from_slice(&doctor(&["--json"]).run().stdout).unwrap();
    let [(_, verdict, text, _)] = &findings(&report, "namespace.network")[..] else { panic!("{report}") };
    assert_eq!(*verdict, "ok", "{text}");
}

#[test]
fn a_veth_without_tso_is_told_and_the_advice_helps() {
    // The command that is advised is run as it stands, without sudo and the comment on where.
    let script = r#"
        ip link add doc0 type veth peer name doc1
        ip link set doc0 up; ip link set doc1 up; ip link set lo up
        ethtool -K doc0 tso off
        look() { env PATH=/linerate/none "$LINERATE" doctor --json || [ $? = 3 ]; }
        look > "$OUT/before.json"
        ethtool -K doc0 tso on
        look > "$OUT/after.json"
    "#;
    const NAME: &str = "a_veth_without_tso_is_told_and_the_advice_helps";
    let folder = tempfile::tempdir().unwrap();
    let script = format!("OUT='{}'; {script}", folder.path().display());
    if in_namespaces(NAME, &script).is_none() {
        return;
    }
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.path().join(name)).unwrap()).unwrap()
    };
    let (before, after) = (read("before.json"), read("after.json"));
    let [(subject, verdict, _, commands)] = &findings(&before, "adapter.tso")[..] else { panic!("{before}") };
    assert_eq!((*subject, *verdict), ("doc0", "change"));
    assert!(commands[0].starts_with("sudo ethtool -K doc0 tso on"), "{commands:?}");
    assert_eq!(findings(&after, "adapter.tso"), []);
    let names: Vec<&str> = findings(&after, "adapter").iter().map(|finding| finding.0).collect();
    assert_eq!(names, ["doc0", "doc1"], "those of this namespace, whatever /sys shows");
}

/// The namespace that `/sys` was mounted in is the machine's: an interface of ours, even with the name and number of one of
/// the machine's, gets none of that one's facts, and ours where `/sys` is mounted anew.
#[test]
fn facts_are_of_the_interfaces_of_this_namespace() {
    const NAME: &str = "facts_are_of_the_interfaces_of_this_namespace";
    let told = |name: &str, file: &str| fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok();
    let of_machine = fs::read_dir("/sys/class/net").into_iter().flatten().flatten().find_map(|entry| {
        let name = entry.file_name().into_string().ok().filter(|name| name != "lo")?;
        let index: u32 = told(&name, "ifindex")?.trim().parse().ok()?;
        Some((name, index))
    });
    let Some((name, index)) = of_machine else {
        return skip(NAME, "this machine has no interface but loopback");
    };
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        ip link add "$IF" index "$INDEX" mtu 1234 type veth peer name doc1 index 4711
        env PATH=/linerate/none "$LINERATE" doctor --json > "$OUT/foreign.json" || [ $? = 3 ]
        unshare --mount sh -e -c '
            mount -t sysfs sysfs /sys 2> "$OUT/refused" || exit 0
            env PATH=/linerate/none "$LINERATE" doctor --json > "$OUT/own.json" || [ $? = 3 ]'
    "#;
    let settings = format!("export OUT='{}' IF='{name}' INDEX={index};", folder.path().display());
    if in_namespaces(NAME, &format!("{settings} {script}")).is_none() {
        return;
    }
    let read = |file: &str| -> Option<Value> {
        Some(serde_json::from_slice(&fs::read(folder.path().join(file)).ok()?).unwrap())
    };
    let groups = |report: &Value| -> Vec<String> {
        let groups = report["environment"].as_object().unwrap().keys();
        groups.filter_map(|group| group.strip_prefix("adapter ")).map(str::to_owned).collect()
    };
    let mut expected = vec!["doc1".to_owned(), "lo".to_owned(), name.clone()];
    expected.sort_unstable();
    let foreign = read("foreign.json").unwrap();
    assert_eq!(groups(&foreign), expected);
    for interface in &expected {
        let mtu = &foreign["environment"][format!("adapter {interface}")]["MTU"];
        assert!(mtu.to_string().contains("/sys shows another network namespace"), "{interface}: {mtu}");
    }
    let Some(own) = read("own.json") else {
        let refused = fs::read_to_string(folder.path().join("refused")).unwrap();
        return skip(NAME, &format!("the second half: {}", refused.trim()));
    };
    assert_eq!(groups(&own), expected);
    let mtu = &own["environment"][format!("adapter {name}")]["MTU"];
    assert!(mtu.to_string().contains("1234"), "{mtu}");
}

#[test]
fn without_net_admin_it_is_the_host_that_has_to_load_the_module() {
    const NAME: &str = "without_net_admin_it_is_the_host_that_has_to_load_the_module";
    let binary = linerate_binary().display().to_string();
    let arguments = ["doctor", "--json"];
    let program = if capabilities() & NET_ADMIN == 0 {
        Program::new(&binary, arguments)
    } else if is_installed("setpriv") {
        let drop = ["--bounding-set", "-net_admin", "--inh-caps", "-net_admin", &binary];
        Program::new("setpriv", drop).arguments(arguments)
    } else {
        return skip(NAME, "this process has CAP_NET_ADMIN, and there is no setpriv to give it up with");
    };
    let finished = program.run();
    let report: Value =
        serde_json::from_slice(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr));
    let [(_, _, text, _)] = &findings(&report, "capability.net_admin")[..] else { panic!("{report}") };
    assert!(text.starts_with("CAP_NET_ADMIN: no"), "{text}");
}

#[test]
fn without_the_tls_module_every_engine_but_the_user_s_says_why() {
    const NAME: &str = "without_the_tls_module_every_engine_but_the_user_s_says_why";
    let report: Value = serde_json::from_slice(&doctor(&["--json"]).run().stdout).unwrap();
    if Path::new("/proc/net/tls_stat").exists() {
        return skip(NAME, "the tls module is loaded here");
    }
    let engines = report["engines"].as_array().unwrap();
    assert_eq!(engines.len(), 6);
    for engine in engines {
        assert_eq!(engine["user"]["carries"], true);
        assert_eq!(engine["kernel"]["carries"], false, "{engine}");
        assert!(
            engine["kernel"]["reason"].as_str().unwrap().contains("the tls module is not loaded"),
            "{engine}"
        );
    }
    let [(_, verdict, text, _)] = &findings(&report, "kernel_tls.module")[..] else { panic!("{report}") };
    assert!(*verdict != "ok" && text.contains("tls module"), "{text}");
}
