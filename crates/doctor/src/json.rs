//! Findings and facts for programs. Its form is published: `docs/schema/linerate-doctor-1.json`.

use std::{collections::BTreeMap, time::UNIX_EPOCH};

use linerate_engine::kernel::Objection;
use linerate_environment::{Group as FactGroup, Reading};
use linerate_placement::Lack;
use linerate_tls::{ChainTrust, Inspection};
use serde::Serialize;

use crate::{
    Facts, Finding, Verdict, changes,
    facts::{Adapter, KernelEngine},
    judge::engines::{self, Answer},
};

/// The name of the form; a change that breaks readers gets another number.
pub const SCHEMA: &str = "linerate-doctor/1";

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    version: &'static str,
    summary: Summary,
    findings: Vec<Entry<'a>>,
    /// Places in `findings`, the most useful change first.
    changes: Vec<usize>,
    engines: Vec<Engine<'a>>,
    adapters: Vec<AdapterEntry<'a>>,
    rates: Vec<RateEntry<'a>>,
    certificate: Option<CertificateEntry<'a>>,
    server: Option<ServerEntry<'a>>,
    environment: &'a BTreeMap<String, FactGroup>,
}

#[derive(Serialize)]
struct Summary {
    ok: usize,
    notes: usize,
    changes: usize,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'static str,
    group: &'static str,
    subject: Option<&'a str>,
    verdict: &'static str,
    text: &'a str,
    commands: &'a [String],
}

#[derive(Serialize)]
struct Engine<'a> {
    version: &'static str,
    cipher: &'static str,
    user: Carries,
    kernel: Carries,
    /// By the adapter's name.
    adapters: BTreeMap<&'a str, Carries>,
}

/// Whether an engine carries a combination; `None` where that is not known. Without a reason it needs none.
#[derive(Serialize)]
struct Carries {
    carries: Option<bool>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct AdapterEntry<'a> {
    name: &'a str,
    up: bool,
    is_device: bool,
    driver: Reading<&'a str>,
    firmware: Reading<&'a str>,
    mtu_bytes: &'a Reading<u32>,
    numa_node: &'a Reading<usize>,
    lower: &'a [String],
    /// By ethtool's name: on, and whether it can be switched.
    features: Reading<BTreeMap<&'a str, Feature>>,
    /// The CPUs that each interrupt goes to.
    interrupts: Reading<BTreeMap<String, &'a [usize]>>,
    tls_counters: &'a Reading<BTreeMap<String, u64>>,
    errors: &'a BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Feature {
    on: bool,
    changeable: bool,
}

#[derive(Serialize)]
struct RateEntry<'a> {
    library: &'a str,
    cipher: &'static str,
    bytes_per_s: &'a Reading<f64>,
}

#[derive(Serialize)]
struct CertificateEntry<'a> {
    file: &'a str,
    inspection: Reading<InspectionEntry<'a>>,
}

#[derive(Serialize)]
struct InspectionEntry<'a> {
    key: Option<&'static str>,
    key_bits: Option<usize>,
    names: &'a [String],
    not_before_unix_s: u64,
    not_after_unix_s: u64,
    certificates: usize,
    chain: &'static str,
    sha256_fingerprint: &'a str,
}

#[derive(Serialize)]
struct ServerEntry<'a> {
    address: &'a str,
    answer: Reading<AnswerEntry<'a>>,
}

#[derive(Serialize)]
struct AnswerEntry<'a> {
    version: &'static str,
    cipher_suite: &'a str,
    group: Option<&'a str>,
    speaks: Vec<&'static str>,
    trusted: bool,
    certificate: Reading<InspectionEntry<'a>>,
    status: Reading<u16>,
    server: Option<&'a str>,
    counters_moved: &'a Reading<Vec<String>>,
}

/// Writes all that was found, as one JSON value.
#[must_use]
pub fn json(facts: &Facts, findings: &[Finding]) -> String {
    let count = |wanted: &str| findings.iter().filter(|finding| finding.verdict.name() == wanted).count();
    let report = Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        summary: Summary {
            ok: count(Verdict::Ok.name()),
            notes: count(Verdict::Note.name()),
            changes: changes(findings).len(),
        },
        findings: findings.iter().map(entry).collect(),
        changes: changes(findings)
            .into_iter()
            .filter_map(|change| findings.iter().position(|finding| std::ptr::eq(finding, change)))
            .collect(),
        engines: facts.kernel_engine.iter().map(|engine| self::engine(facts, engine)).collect(),
        adapters: facts.adapters.iter().map(adapter).collect(),
        rates: facts
            .rates
            .iter()
            .map(|rate| RateEntry {
                library: &rate.library,
                cipher: rate.cipher.name(),
                bytes_per_s: &rate.bytes_per_s,
            })
            .collect(),
        certificate: facts.certificate.as_ref().map(|certificate| CertificateEntry {
            file: &certificate.file,
            inspection: inspection(&certificate.inspection),
        }),
        server: facts.server.as_ref().map(server),
        environment: &facts.environment,
    };
    // Maps with text for keys, and numbers that are finite: there is nothing that JSON has no form for.
    let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
    text.push('\n');
    text
}

fn entry(finding: &Finding) -> Entry<'_> {
    Entry {
        name: finding.name,
        group: finding.group.name(),
        subject: finding.subject.as_deref(),
        verdict: finding.verdict.name(),
        text: &finding.text,
        commands: &finding.commands,
    }
}

fn engine<'a>(facts: &'a Facts, engine: &KernelEngine) -> Engine<'a> {
    let adapters = facts.adapters.iter().map(|adapter| {
        let carries = match engines::carries(facts, adapter, engine) {
            Answer::Yes => Carries { carries: Some(true), reason: None },
            Answer::No(reason) => Carries { carries: Some(false), reason: Some(reason) },
            Answer::NotKnown(reason) => Carries { carries: None, reason: Some(reason) },
        };
        (adapter.name.as_str(), carries)
    });
    Engine {
        version: engine.combination.version.label(),
        cipher: engine.combination.cipher.name(),
        user: Carries { carries: Some(true), reason: None },
        kernel: match &engine.verdict {
            Ok(_) => Carries { carries: Some(true), reason: None },
            Err(Objection { lack: Lack::NotKnown(_), detail }) => {
                Carries { carries: None, reason: Some(detail.clone()) }
            }
            Err(objection) => Carries { carries: Some(false), reason: Some(objection.to_string()) },
        },
        adapters: adapters.collect(),
    }
}

fn adapter(adapter: &Adapter) -> AdapterEntry<'_> {
    let firmware = match &adapter.driver {
        Reading::Value(driver) if driver.firmware.is_empty() || driver.firmware == "N/A" => {
            Reading::NotAvailable("the driver tells none".to_owned())
        }
        Reading::Value(driver) => Reading::Value(driver.firmware.as_str()),
        Reading::NotAvailable(reason) => Reading::NotAvailable(reason.clone()),
    };
    AdapterEntry {
        name: &adapter.name,
        up: adapter.up,
        is_device: adapter.is_device,
        driver: as_ref(&adapter.driver).map(|driver| driver.name.as_str()),
        firmware,
        mtu_bytes: &adapter.mtu_bytes,
        numa_node: &adapter.node,
        lower: &adapter.lower,
        features: as_ref(&adapter.features).map(|features| {
            features
                .iter()
                .map(|(name, state)| (name.as_str(), Feature { on: state.on, changeable: state.changeable }))
                .collect()
        }),
        interrupts: as_ref(&adapter.interrupts).map(|interrupts| {
            interrupts
                .iter()
                .map(|interrupt| (interrupt.number.to_string(), interrupt.cpus.as_slice()))
                .collect()
        }),
        tls_counters: &adapter.tls_counters,
        errors: &adapter.errors,
    }
}

fn as_ref<T>(reading: &Reading<T>) -> Reading<&T> {
    match reading {
        Reading::Value(value) => Reading::Value(value),
        Reading::NotAvailable(reason) => Reading::NotAvailable(reason.clone()),
    }
}

fn inspection(inspection: &Result<Inspection, String>) -> Reading<InspectionEntry<'_>> {
    let inspection = match inspection {
        Ok(inspection) => inspection,
        Err(reason) => return Reading::NotAvailable(reason.clone()),
    };
    let seconds =
        |time: std::time::SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Reading::Value(InspectionEntry {
        key: inspection.key.map(|(algorithm, _)| algorithm.label()),
        key_bits: inspection.key.map(|(_, bits)| bits),
        names: &inspection.names,
        not_before_unix_s: seconds(inspection.not_before),
        not_after_unix_s: seconds(inspection.not_after),
        certificates: inspection.certificates,
        chain: match inspection.trust {
            ChainTrust::Trusted => "trusted",
            ChainTrust::SelfSigned => "self_signed",
            ChainTrust::PrivateAuthority { .. } => "private_authority",
            ChainTrust::EndsAt { .. } => "incomplete",
            ChainTrust::Broken { .. } => "broken",
            ChainTrust::Refused(_) => "refused",
            _ => "not_known",
        },
        sha256_fingerprint: &inspection.sha256_fingerprint,
    })
}

fn server(server: &crate::facts::Server) -> ServerEntry<'_> {
    let answer = match &server.answer {
        Ok(answer) => Reading::Value(AnswerEntry {
            version: answer.version.label(),
            cipher_suite: &answer.cipher_suite,
            group: answer.group.as_deref(),
            speaks: answer
                .speaks
                .iter()
                .filter(|(_, agreed)| agreed.is_ok())
                .map(|(version, _)| version.label())
                .collect(),
            trusted: answer.distrust.is_none(),
            certificate: inspection(&answer.certificate),
            status: as_ref(&answer.response).map(|response| response.status),
            server: answer.response.value().and_then(|response| response.server.as_deref()),
            counters_moved: &answer.engine,
        }),
        Err(reason) => Reading::NotAvailable(reason.clone()),
    };
    ServerEntry { address: &server.address, answer }
}
