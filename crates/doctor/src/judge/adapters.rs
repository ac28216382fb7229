//! Network adapters: what is offloaded to them, where their interrupts go, what went wrong on them.

use std::collections::BTreeSet;

use linerate_engine::nic::route::TLS_FEATURE;
use linerate_environment::Reading;
use linerate_os::adapter::Obstacle;

use crate::{
    Facts, Finding, Group, Use,
    facts::{Adapter, Interrupt},
    judge::{counted, engines, on_the_host},
};

const GROUP: Group = Group::Adapters;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    if facts.adapters.is_empty() {
        findings.push(Finding::note(GROUP, "adapter", "no interface but loopback is in sight"));
    }
    for adapter in &facts.adapters {
        let first = findings.len();
        findings.push(described(facts, adapter));
        if adapter.up {
            findings.extend(segmentation(facts, adapter));
            findings.extend(other_features(facts, adapter));
            findings.extend(encryption(facts, adapter));
            findings.extend(way_down(facts, adapter));
            findings.extend(queues(facts, adapter));
            findings.extend(places(facts, adapter));
        }
        findings.extend(errors(adapter));
        for finding in &mut findings[first..] {
            finding.subject = Some(adapter.name.clone());
        }
    }
}

fn described(facts: &Facts, adapter: &Adapter) -> Finding {
    let mut parts = Vec::new();
    match &adapter.driver {
        Reading::Value(driver) => {
            let is_told = |text: &str| !text.is_empty() && text != "N/A";
            let firmware = Some(&driver.firmware).filter(|text| is_told(text));
            parts.push(match firmware {
                Some(firmware) => format!("{}, firmware {firmware}", driver.name),
                None => format!("{}, no firmware told", driver.name),
            });
        }
        Reading::NotAvailable(reason) => parts.push(reason.clone()),
    }
    if !adapter.lower.is_empty() {
        parts.push(format!("made of {}", adapter.lower.join(", ")));
    }
    match &adapter.mtu_bytes {
        Reading::Value(mtu) => parts.push(format!("MTU {mtu}")),
        Reading::NotAvailable(reason) => parts.push(format!("MTU not known ({reason})")),
    }
    if let Ok(speed) = facts.told(&format!("adapter {}", adapter.name), "speed in Mb/s") {
        parts.push(format!("{speed} Mb/s"));
    }
    if let Reading::Value(node) = adapter.node {
        parts.push(format!("NUMA node {node}"));
    }
    let text = parts.join(", ");
    match adapter.up {
        true => Finding::ok(GROUP, "adapter", text),
        false => Finding::note(GROUP, "adapter", format!("down; {text}")),
    }
}

/// A feature that is off although it can be on: what that costs, and how to change it.
struct Wanted {
    /// ethtool's names of the kernel's features; the first that is off decides.
    features: &'static [&'static str],
    /// ethtool's name for all of them together.
    switch: &'static str,
    name: &'static str,
    what_for: Use,
    without: &'static str,
}

const TSO: Wanted = Wanted {
    features: &["tx-tcp-segmentation", "tx-tcp6-segmentation"],
    switch: "tso",
    name: "adapter.tso",
    what_for: Use::Segments,
    without: "TSO is off: the processor cuts every packet, which halves what a server can send and leaves an adapter's \
              encryption little to gain",
};

const OTHERS: [Wanted; 3] = [
    Wanted {
        features: &["tx-scatter-gather"],
        switch: "sg",
        name: "adapter.scatter_gather",
        what_for: Use::Segments,
        without: "scatter-gather is off: every packet is copied together, and sendfile copies",
    },
    Wanted {
        features: &["tx-generic-segmentation"],
        switch: "gso",
        name: "adapter.gso",
        what_for: Use::Segments,
        without: "GSO is off: the network stack is passed once for each packet, not for each 64 KiB",
    },
    Wanted {
        features: &["rx-gro"],
        switch: "gro",
        name: "adapter.gro",
        what_for: Use::Tuning,
        without: "GRO is off: acknowledgements and requests are taken one by one",
    },
];

impl Wanted {
    fn judge(&self, facts: &Facts, adapter: &Adapter) -> Option<Finding> {
        let features = adapter.features.value()?;
        let states = self.features.iter().filter_map(|name| features.get(*name));
        let off: Vec<_> = states.filter(|state| !state.on).collect();
        if off.is_empty() {
            return None;
        }
        if off.iter().all(|state| !state.changeable) {
            return Some(Finding::note(
                GROUP,
                self.name,
                format!("{}; it cannot be switched here", self.without),
            ));
        }
        let command = format!("sudo ethtool -K {} {} on{}", adapter.name, self.switch, on_the_host(facts));
        Some(Finding::change(GROUP, self.name, self.what_for, self.without).command(command))
    }
}

fn segmentation(facts: &Facts, adapter: &Adapter) -> Option<Finding> {
    match &adapter.features {
        Reading::NotAvailable(reason) => {
            Some(Finding::note(GROUP, "adapter.features", format!("what it offloads is not known: {reason}")))
        }
        Reading::Value(_) => TSO.judge(facts, adapter),
    }
}

fn other_features(facts: &Facts, adapter: &Adapter) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        OTHERS.iter().filter_map(|wanted| wanted.judge(facts, adapter)).collect();
    let has_all = findings.is_empty() && TSO.judge(facts, adapter).is_none();
    if adapter.features.value().is_some() && has_all {
        findings.push(Finding::ok(GROUP, "adapter.segmentation", "TSO, GSO, GRO and scatter-gather are on"));
    }
    findings
}

/// Of what stands upon adapters that encrypt, or could: whether Linux hands its connections down to them.
fn way_down(facts: &Facts, adapter: &Adapter) -> Option<Finding> {
    const NAME: &str = "adapter.way_down";
    const HASH: &str = "mode balance-xor or 802.3ad, with xmit_hash_policy layer3+4";
    if adapter.lower.is_empty() {
        return None;
    }
    let routes = engines::routes(facts);
    let route = routes.iter().find(|route| route.interface == adapter.name)?;
    let (port, place) = (&route.adapter, on_the_host(facts));
    Some(match &adapter.beneath.obstacle {
        None => Finding::ok(
            GROUP,
            NAME,
            format!("Linux hands its connections to the adapter of the port that they leave by ({HASH})"),
        ),
        Some(Obstacle::BondPolicy { bond, policy }) => Finding::change(
            GROUP,
            NAME,
            Use::Adapter,
            format!("{port} encrypts nothing for it: its policy is {policy}, and Linux asks for {HASH}"),
        )
        .command(format!("sudo ip link set {bond} type bond xmit_hash_policy layer3+4{place}")),
        Some(Obstacle::BondMode { bond, mode }) => {
            let text =
                format!("{port} encrypts nothing for it: its mode is {mode}, and Linux asks for {HASH}");
            let mut finding = Finding::change(GROUP, NAME, Use::Adapter, text).command(format!(
                "# the switch has to speak LACP on these ports; the network is away meanwhile{place}"
            ));
            let link = |what: String| format!("sudo ip link set {what}");
            let ports = &adapter.lower;
            finding = finding.command(link(format!("{bond} down")));
            finding =
                ports.iter().fold(finding, |finding, port| finding.command(link(format!("{port} nomaster"))));
            finding =
                finding.command(link(format!("{bond} type bond mode 802.3ad xmit_hash_policy layer3+4")));
            finding = ports.iter().fold(finding, |finding, port| {
                finding.command(link(format!("{port} down"))).command(link(format!("{port} master {bond}")))
            });
            finding.command(link(format!("{bond} up")))
        }
        Some(Obstacle::NoBond { interface, kind }) => {
            let what = if kind.is_empty() { String::new() } else { format!(", a {kind}") };
            let text = format!(
                "{port} encrypts nothing for it, the user and kernel engines do: Linux looks for adapters beneath bonds \
                 only, not beneath {interface}{what}"
            );
            Finding::note(GROUP, NAME, text)
        }
    })
}

fn encryption(facts: &Facts, adapter: &Adapter) -> Option<Finding> {
    const NAME: &str = "adapter.tls";
    // What a bond shows here only mirrors its settings, and only on some kernels.
    if !adapter.lower.is_empty() {
        return None;
    }
    let feature = adapter.features.value()?.get(TLS_FEATURE)?;
    if feature.on {
        return Some(Finding::ok(GROUP, NAME, format!("{TLS_FEATURE} is on; {}", counted_of_tls(adapter))));
    }
    if feature.changeable {
        return Some(
            Finding::change(GROUP, NAME, Use::Adapter, format!("it could encrypt, and {TLS_FEATURE} is off"))
                .command(format!("sudo ethtool -K {} {TLS_FEATURE} on{}", adapter.name, on_the_host(facts))),
        );
    }
    let driver = adapter.driver.value().map(|driver| driver.name.as_str());
    (driver == Some("mlx5_core")).then(|| {
        Finding::note(
            GROUP,
            NAME,
            "mlx5_core offers no TLS offload here: ConnectX-6 Dx and later have it, BlueField-2 and later too, in \
             editions with crypto enabled and with a firmware that allows it",
        )
    })
}

/// What the driver has counted of TLS and is not zero.
fn counted_of_tls(adapter: &Adapter) -> String {
    match &adapter.tls_counters {
        Reading::Value(counters) if counters.is_empty() => "its driver counts nothing of TLS".to_owned(),
        Reading::Value(counters) => {
            let moved: Vec<String> = counters
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(name, count)| format!("{name} {count}"))
                .collect();
            if moved.is_empty() { "its driver has counted no TLS yet".to_owned() } else { moved.join(", ") }
        }
        Reading::NotAvailable(reason) => format!("what it has carried is not known: {reason}"),
    }
}

fn queues(facts: &Facts, adapter: &Adapter) -> Option<Finding> {
    const NAME: &str = "adapter.queues";
    if !adapter.is_device {
        return None;
    }
    let (channels, workers) = (adapter.channels.value()?, facts.cores.usable.value()?.len());
    let (kind, now, most) = match channels.most_combined {
        0 => ("tx", channels.sending, channels.most_sending),
        most => ("combined", channels.combined, most),
    };
    let wanted = most.min(u32::try_from(workers).unwrap_or(u32::MAX));
    if now >= wanted {
        let fewer =
            if most < u32::try_from(workers).unwrap_or(u32::MAX) { ", which is all it has" } else { "" };
        return Some(Finding::ok(
            GROUP,
            NAME,
            format!("{} for {}{fewer}", counted(now as usize, "queue"), counted(workers, "worker")),
        ));
    }
    let text = format!(
        "{} for {}, and it could have {most}: workers wait for each other's locks",
        counted(now as usize, "queue"),
        counted(workers, "worker")
    );
    Some(Finding::change(GROUP, NAME, Use::Places, text).command(format!(
        "sudo ethtool -L {} {kind} {wanted}{}",
        adapter.name,
        on_the_host(facts)
    )))
}

/// Interrupts, queues and workers belong on the same node, and interrupts on more than one CPU.
fn places(facts: &Facts, adapter: &Adapter) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(cores) = facts.cores.usable.value() else { return findings };
    let interrupts = adapter.interrupts.value().map(Vec::as_slice).unwrap_or_default();
    let taking: BTreeSet<usize> =
        interrupts.iter().flat_map(|interrupt| interrupt.cpus.iter().copied()).collect();
    if interrupts.len() > 2 && taking.len() == 1 && cores.len() > 1 {
        let cpu = taking.iter().next().copied().unwrap_or_default();
        let all: Vec<usize> = cores.iter().map(|(cpu, _)| *cpu).collect();
        let text = format!("all {} interrupts go to CPU {cpu}", interrupts.len());
        findings.push(spread(text, interrupts, &all, facts));
    }
    let nodes: BTreeSet<usize> = cores.iter().filter_map(|(_, node)| *node).collect();
    let Reading::Value(node) = adapter.node else { return findings };
    if nodes.len() < 2 && nodes.contains(&node) {
        return findings;
    }
    let near: Vec<usize> = cores.iter().filter(|(_, of)| *of == Some(node)).map(|(cpu, _)| *cpu).collect();
    if near.is_empty() {
        if !nodes.is_empty() {
            let text = format!(
                "it is on NUMA node {node}, and no CPU that this process may use is: every byte crosses between nodes"
            );
            findings.push(Finding::change(GROUP, "adapter.node", Use::Places, text).command(format!(
                "linerate serve … --cpus \"$(cat /sys/devices/system/node/node{node}/cpulist)\""
            )));
        }
        return findings;
    }
    let text = format!(
        "it is on NUMA node {node}, workers would run on {} nodes: those on other nodes send across",
        nodes.len()
    );
    // Half of the CPUs may be too few for what the adapter can send: only a measurement tells.
    findings.push(
        Finding::note(GROUP, "adapter.node", text)
            .command(format!("linerate serve … --cpus {}", list(&near))),
    );
    if !taking.is_empty() && taking.iter().all(|cpu| !near.contains(cpu)) {
        findings.push(spread(
            format!("none of its interrupts goes to a CPU of its node {node}"),
            interrupts,
            &near,
            facts,
        ));
    }
    findings
}

/// Interrupts that should go to these CPUs, one after the other.
fn spread(text: String, interrupts: &[Interrupt], cpus: &[usize], facts: &Facts) -> Finding {
    const SHOWN: usize = 8;
    let place = on_the_host(facts);
    let mut finding = Finding::change(GROUP, "adapter.interrupts", Use::Places, text);
    for (interrupt, cpu) in interrupts.iter().zip(cpus.iter().cycle()).take(SHOWN) {
        let number = interrupt.number;
        finding =
            finding.command(format!("echo {cpu} | sudo tee /proc/irq/{number}/smp_affinity_list{place}"));
    }
    if interrupts.len() > SHOWN {
        finding = finding
            .command(format!("# … and so on for all {}; irqbalance must not be running", interrupts.len()));
    }
    finding
}

/// `0-3,8`
fn list(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

fn errors(adapter: &Adapter) -> Option<Finding> {
    let counted: Vec<String> = adapter.errors.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let text = format!("since it came up: {}", counted.join(", "));
    (!counted.is_empty()).then(|| Finding::note(GROUP, "adapter.errors", text))
}
