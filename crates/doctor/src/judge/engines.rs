//! Which engine carries which version and cipher, and why not.

use linerate_engine::{
    kernel::{Carried as KernelCarried, Objection},
    nic::route::{self, Interface, Route, TLS_FEATURE},
};
use linerate_environment::Reading;
use linerate_placement::Lack;
use linerate_record::Version;

use crate::{
    Facts, Finding, Group, Use,
    facts::{Adapter, KernelEngine},
};

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    let routes = routes(facts);
    for engine in &facts.kernel_engine {
        let kernel = match &engine.verdict {
            Ok(carried) => carried_in_words(engine.combination.version, *carried),
            // What to do about it stands with the module.
            Err(Objection { lack: Lack::Module, .. }) => "no: the tls module is not loaded".to_owned(),
            Err(objection) => objection.to_string(),
        };
        let adapters: Vec<String> = routes
            .iter()
            .map(|route| format!("; {} {}", route.interface, in_words(&carried_by(facts, route, engine))))
            .collect();
        let text = format!("user yes; kernel {kernel}{}", adapters.concat());
        let finding = match &engine.verdict {
            Err(Objection { lack: Lack::SelfTest(_), .. }) => Finding::change(
                Group::Engines,
                "engine",
                Use::Works,
                format!("{text}: use another kernel, and report it"),
            ),
            Err(Objection { lack: Lack::NotKnown(_), .. }) => Finding::note(Group::Engines, "engine", text),
            _ => Finding::ok(Group::Engines, "engine", text),
        };
        findings.push(finding.of(engine.combination.label()));
    }
    if routes.is_empty() {
        findings.push(Finding::ok(
            Group::Engines,
            "engine.adapter",
            match facts.adapters.iter().any(|adapter| adapter.is_device) {
                true => "no adapter here encrypts: they do not have the feature",
                false => "no adapter is in sight, so none that encrypts",
            },
        ));
    }
}

fn carried_in_words(version: Version, carried: KernelCarried) -> String {
    let keys = match (version, carried.takes_new_keys) {
        (Version::Tls12, _) => "connections end at the record limit",
        (Version::Tls13, true) => "new keys in place",
        (Version::Tls13, false) => {
            "no new keys (Linux 6.14 has them): connections end at the record limit, or when a client asks for one"
        }
    };
    let zero_copy = if carried.zero_copy { "zero-copy known" } else { "no zero-copy" };
    format!("yes, self-test passed, {keys}, {zero_copy}")
}

/// The interfaces whose connections leave by an adapter that encrypts, or could, as the server finds them.
pub(crate) fn routes(facts: &Facts) -> Vec<Route> {
    let interface = |adapter: &Adapter| Interface {
        name: adapter.name.clone(),
        driver: adapter.driver.value().map(|driver| driver.name.clone()).unwrap_or_default(),
        feature: adapter.features.value().and_then(|features| features.get(TLS_FEATURE).copied()),
        beneath: adapter.beneath.clone(),
    };
    route::routes(&facts.adapters.iter().map(interface).collect::<Vec<_>>())
}

/// Whether an adapter carries a version and cipher of connections that leave by an interface: yes, no, or not known, each
/// with the reason.
pub(crate) fn carries(facts: &Facts, adapter: &Adapter, engine: &KernelEngine) -> Answer {
    let interface = adapter.beneath.port_of.as_ref().unwrap_or(&adapter.name);
    if let Some(route) = routes(facts).iter().find(|route| route.interface == *interface) {
        return carried_by(facts, route, engine);
    }
    match &adapter.features {
        Reading::NotAvailable(reason) => Answer::NotKnown(reason.clone()),
        Reading::Value(features) if !features.contains_key(TLS_FEATURE) => {
            Answer::No("this kernel knows no adapters that encrypt".to_owned())
        }
        Reading::Value(_) => {
            let driver = adapter.driver.value().map_or("its driver", |driver| driver.name.as_str());
            Answer::No(format!("{driver} does not have the feature on this adapter"))
        }
    }
}

fn carried_by(facts: &Facts, route: &Route, engine: &KernelEngine) -> Answer {
    let combination = engine.combination;
    let kernel = engine.verdict.as_ref().map(|carried| *carried);
    match route::at_start(combination, kernel, Some(route)).nic.lack() {
        Some(lack @ Lack::NotKnown(_)) => return Answer::NotKnown(lack.to_string()),
        Some(lack) => return Answer::No(lack.to_string()),
        None => {}
    }
    let Some(release) = facts.release() else {
        return Answer::NotKnown("the kernel's release is not known".to_owned());
    };
    match route.foreseen(combination, release) {
        Some((lack, why)) => Answer::No(format!("{lack}: {why}")),
        None if Route::is_beyond_knowledge(combination.version, release) => {
            Answer::NotKnown(format!("Linux {release} is newer than what is known here"))
        }
        None => Answer::Yes,
    }
}

/// What is known of an ability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has it.
    Yes,
    /// It does not: why.
    No(String),
    /// It cannot be told: why.
    NotKnown(String),
}

fn in_words(answer: &Answer) -> String {
    match answer {
        Answer::Yes => "yes, if its own limits allow (TlsTxDevice in /proc/net/tls_stat grows)".to_owned(),
        Answer::No(reason) => format!("no: {reason}"),
        Answer::NotKnown(reason) => format!("not known: {reason}"),
    }
}
