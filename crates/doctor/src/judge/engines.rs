//! Which engine carries which version and cipher, and why not.

use linerate_environment::Reading;
use linerate_record::{Aead, Version};
use linerate_server::{KernelCarried, KernelLack};

use crate::{
    Facts, Finding, Group, Use,
    facts::{Adapter, KernelEngine, Module},
};

/// The feature by which an adapter encrypts (NETIF_F_HW_TLS_TX).
pub(crate) const TLS_FEATURE: &str = "tls-hw-tx-offload";

/// Kernels up to this one give adapters TLS 1.2 only (net/tls/tls_device.c, and the drivers' own checks); patches for
/// TLS 1.3 were in their 17th version in September 2026.
const LAST_KNOWN_FOR_TLS_1_2_ONLY: (u32, u32) = (7, 2);
/// The first that gives adapters keys of 256 bits (net/tls/tls_device.c).
const FIRST_WITH_256_BITS: (u32, u32) = (6, 0);
/// Drivers that take AES-128-GCM alone.
const DRIVERS_OF_128_BITS: [&str; 3] = ["cxgb4", "nfp", "funeth"];

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    for engine in &facts.kernel_engine {
        let kernel = match &engine.verdict {
            Ok(carried) => carried_in_words(engine.version, *carried),
            // What to do about it stands with the module.
            Err(KernelLack::Module) => "no: the tls module is not loaded".to_owned(),
            Err(lack) => lack.to_string(),
        };
        let adapters: Vec<String> = facts
            .adapters
            .iter()
            .filter(|adapter| encrypts(adapter))
            .map(|adapter| {
                format!(
                    "; {} {}",
                    adapter.name,
                    in_words(&carries(facts, adapter, engine.version, engine.aead))
                )
            })
            .collect();
        let text = format!("user yes; kernel {kernel}{}", adapters.concat());
        let finding = match &engine.verdict {
            Err(KernelLack::SelfTest(_)) => Finding::change(
                Group::Engines,
                "engine",
                Use::Works,
                format!("{text}: use another kernel, and report it"),
            ),
            Err(KernelLack::System(_)) => Finding::note(Group::Engines, "engine", text),
            _ => Finding::ok(Group::Engines, "engine", text),
        };
        findings.push(finding.of(combination(engine)));
    }
    if !facts.adapters.iter().any(encrypts) {
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

fn combination(engine: &KernelEngine) -> String {
    format!("{} {}", engine.version.label(), cipher(engine.aead))
}

/// As people write it.
pub(crate) fn cipher(aead: Aead) -> &'static str {
    match aead {
        Aead::Aes128Gcm => "AES-128-GCM",
        Aead::Aes256Gcm => "AES-256-GCM",
        Aead::ChaCha20Poly1305 => "ChaCha20-Poly1305",
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

/// Whether an adapter could encrypt: it has the feature on, or can switch it on.
pub(crate) fn encrypts(adapter: &Adapter) -> bool {
    adapter
        .features
        .value()
        .and_then(|features| features.get(TLS_FEATURE))
        .is_some_and(|feature| feature.on || feature.changeable)
}

/// Whether an adapter carries a version and cipher: yes, no, or not known, each with the reason.
pub(crate) fn carries(facts: &Facts, adapter: &Adapter, version: Version, aead: Aead) -> Answer {
    let features = match &adapter.features {
        Reading::Value(features) => features,
        Reading::NotAvailable(reason) => return Answer::NotKnown(reason.clone()),
    };
    let driver = adapter.driver.value().map_or("its driver", |driver| driver.name.as_str());
    match features.get(TLS_FEATURE) {
        None => return Answer::No("this kernel knows no adapters that encrypt".to_owned()),
        Some(feature) if !feature.on && !feature.changeable => {
            return Answer::No(format!("{driver} does not have the feature on this adapter"));
        }
        Some(feature) if !feature.on => return Answer::No("the feature is switched off".to_owned()),
        Some(_) => {}
    }
    if facts.module != Module::Loaded {
        return Answer::No("the tls module is not loaded".to_owned());
    }
    let Some(release) = facts.release() else {
        return Answer::NotKnown("the kernel's release is not known".to_owned());
    };
    let (major, minor) = release;
    if aead == Aead::ChaCha20Poly1305 {
        return Answer::No("adapters have AES-GCM only".to_owned());
    }
    if version == Version::Tls13 {
        return match release <= LAST_KNOWN_FOR_TLS_1_2_ONLY {
            true => Answer::No(format!(
                "TLS 1.3 is not offloaded by {driver} on {major}.{minor}: Linux gives it TLS 1.2 only"
            )),
            false => Answer::NotKnown(format!("Linux {major}.{minor} is newer than what is known here")),
        };
    }
    if aead == Aead::Aes256Gcm {
        if release < FIRST_WITH_256_BITS {
            return Answer::No(format!(
                "Linux {major}.{minor} gives adapters keys of 128 bits only (6.0: 256)"
            ));
        }
        if DRIVERS_OF_128_BITS.contains(&driver) {
            return Answer::No(format!("{driver} takes AES-128-GCM only"));
        }
    }
    Answer::Yes
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
