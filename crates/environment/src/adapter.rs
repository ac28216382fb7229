//! Network adapters, each a group: driver, firmware, speed, queues, and what is offloaded to them.

use std::path::Path;

use linerate_os::adapter;

use crate::{
    Group, Interfaces, Reading,
    facts::{Facts, missing},
    interfaces::FOLDER,
};

/// What the names of adapters' groups begin with.
pub(crate) const PREFIX: &str = "adapter ";

/// What `/sys` tells of an interface.
const OF_SYS: [&str; 6] = ["MTU", "state", "speed in Mb/s", "receive queues", "send queues", "NUMA node"];

/// The group of each interface.
pub(crate) fn facts(root: &Path, interfaces: &Interfaces) -> Vec<(String, Group)> {
    let group = |name: &String| match &interfaces.in_sys {
        Ok(()) => of_interface(root, name),
        Err(reason) => OF_SYS.map(|fact| (fact.to_owned(), missing(reason.clone()))).into(),
    };
    interfaces.names.iter().map(|name| (name.clone(), group(name))).collect()
}

fn of_interface(root: &Path, name: &str) -> Group {
    let mut facts = Facts::below(root);
    let folder = format!("{FOLDER}/{name}");
    facts.file("MTU", &format!("{folder}/mtu"));
    facts.file("state", &format!("{folder}/operstate"));
    // -1, or an error, where the driver does not know: veth, loopback, virtio without a host that tells.
    let speed = match facts.text(&format!("{folder}/speed")) {
        Reading::Value(speed) if speed.starts_with('-') => missing("the driver does not know"),
        Reading::NotAvailable(_) => missing("the driver tells none, or the interface is down"),
        known => known,
    };
    facts.note("speed in Mb/s", speed);
    let queues = facts.names(&format!("{folder}/queues"));
    for (fact, prefix) in [("receive queues", "rx-"), ("send queues", "tx-")] {
        let count = queues.iter().filter(|queue| queue.starts_with(prefix)).count();
        let answer = if count == 0 {
            missing(format!("there is no {folder}/queues"))
        } else {
            Reading::Value(count.to_string())
        };
        facts.note(fact, answer);
    }
    let node = match facts.text(&format!("{folder}/device/numa_node")) {
        Reading::Value(node) if node == "-1" => missing("the adapter belongs to no node"),
        Reading::NotAvailable(_) => missing("the interface is no device on a bus"),
        known => known,
    };
    facts.note("NUMA node", node);
    facts.finish()
}

/// Adds what the driver says of itself.
pub(crate) fn ask_driver(interface: &str, group: &mut Group) {
    let told = |text: String| {
        if text.is_empty() || text == "N/A" { missing("the driver tells none") } else { Reading::Value(text) }
    };
    match adapter::driver(interface) {
        Ok(driver) => group.extend([
            ("driver".to_owned(), told(driver.name)),
            ("driver version".to_owned(), told(driver.version)),
            ("firmware".to_owned(), told(driver.firmware)),
            ("bus".to_owned(), told(driver.bus)),
        ]),
        Err(error) => {
            let reason = format!("the driver does not answer: {error}");
            group.extend(["driver", "firmware"].map(|fact| (fact.to_owned(), missing(reason.clone()))));
        }
    }
    match adapter::features(interface) {
        Ok(features) => group.extend(of_features(&features)),
        Err(error) => {
            let reason = format!("the kernel does not tell features: {error}");
            group.insert("offloads that are on".to_owned(), missing(reason));
        }
    }
}

/// The features that are on, in one line; and those of TLS each by itself, as everybody will look for them.
fn of_features(features: &std::collections::BTreeMap<String, bool>) -> Group {
    let on: Vec<&str> = features.iter().filter(|(_, on)| **on).map(|(name, _)| name.as_str()).collect();
    let mut group = Group::from([("offloads that are on".to_owned(), Reading::Value(on.join(" ")))]);
    for name in ["tls-hw-tx-offload", "tls-hw-rx-offload", "tls-hw-record"] {
        let state = match features.get(name) {
            Some(true) => Reading::Value("on".to_owned()),
            Some(false) => Reading::Value("off".to_owned()),
            None => missing("this kernel knows no such feature"),
        };
        group.insert(name.to_owned(), state);
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_tls_are_told_even_when_off() {
        let features = [("tls-hw-tx-offload", true), ("tls-hw-rx-offload", false), ("rx-gro", true)];
        let group = of_features(&features.map(|(name, on)| (name.to_owned(), on)).into());
        let value = |fact: &str| group.get(fact).and_then(|answer| answer.value()).map(String::as_str);
        assert_eq!(value("tls-hw-tx-offload"), Some("on"));
        assert_eq!(value("tls-hw-rx-offload"), Some("off"));
        assert_eq!(value("tls-hw-record"), None);
        assert_eq!(value("offloads that are on"), Some("rx-gro tls-hw-tx-offload"));
    }

    #[test]
    fn what_sys_does_not_tell_of_has_the_same_facts_with_the_reason() {
        let root = Path::new("/linerate/none");
        let names = vec!["eth0".to_owned()];
        let mut interfaces = Interfaces { names, in_sys: Ok(()) };
        let named = |interfaces: &Interfaces| -> Vec<String> {
            facts(root, interfaces).remove(0).1.into_keys().collect()
        };
        let known = named(&interfaces);
        interfaces.in_sys = Err("another namespace".to_owned());
        assert_eq!(named(&interfaces), known);
        let group = facts(root, &interfaces).remove(0).1;
        assert!(group.values().all(|answer| *answer == missing("another namespace")), "{group:?}");
    }

    #[test]
    fn an_interface_that_is_not_there_has_reasons() {
        let mut group = Group::new();
        ask_driver("linerate-none", &mut group);
        assert!(!group.is_empty() && group.values().all(|answer| answer.value().is_none()), "{group:?}");
    }
}
