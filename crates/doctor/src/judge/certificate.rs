//! What a certificate is good for: of a file, or as a server shows it.

use std::time::Duration;

use linerate_tls::{ChainTrust, Inspection, KeyAlgorithm};

use crate::{Facts, Finding, Group, Use};

/// From here on it is time to renew: authorities' own clients begin earlier.
const SOON: Duration = Duration::from_secs(14 * 86_400);
/// What public authorities ask of RSA keys at least.
const LEAST_RSA_BITS: usize = 2048;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(certificate) = &facts.certificate else { return };
    let first = findings.len();
    match &certificate.inspection {
        Ok(inspection) => inspected(Group::Certificate, inspection, certificate.left, findings),
        Err(reason) => findings.push(Finding::change(
            Group::Certificate,
            "certificate.file",
            Use::Works,
            format!("it cannot be used: {reason}"),
        )),
    }
    for finding in &mut findings[first..] {
        finding.subject = Some(certificate.file.clone());
    }
}

/// Of a certificate that was read; `left` is how long it is still valid.
pub(super) fn inspected(
    group: Group,
    inspection: &Inspection,
    left: Option<Duration>,
    findings: &mut Vec<Finding>,
) {
    findings.push(key(group, inspection));
    findings.push(days(group, left));
    findings.push(match inspection.names.as_slice() {
        [] => Finding::change(
            group,
            "certificate.names",
            Use::Works,
            "it has no subjectAltName, so clients accept it for no host: have it made anew with its names",
        ),
        names => Finding::ok(group, "certificate.names", format!("for {}", listed(names))),
    });
    findings.push(chain(group, inspection));
    findings.push(clients(group, inspection));
}

/// The first ones of many names.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn key(group: Group, inspection: &Inspection) -> Finding {
    const NAME: &str = "certificate.key";
    match inspection.key {
        Some((KeyAlgorithm::Rsa, bits)) if bits < LEAST_RSA_BITS => Finding::change(
            group,
            NAME,
            Use::Works,
            format!("RSA of {bits} bits: clients want {LEAST_RSA_BITS} at least"),
        ),
        Some((KeyAlgorithm::Rsa, bits)) => Finding::note(
            group,
            NAME,
            format!(
                "RSA of {bits} bits: a signature costs many times what one of ECDSA P-256 does; with one of each, every \
                 client gets the cheapest that it can verify"
            ),
        ),
        Some((algorithm @ KeyAlgorithm::EcdsaP256, _)) => {
            Finding::ok(group, NAME, format!("{}: the cheapest signatures", algorithm.label()))
        }
        Some((algorithm, _)) => Finding::ok(group, NAME, algorithm.label()),
        None => Finding::change(
            group,
            NAME,
            Use::Works,
            "a kind of key that linerate does not serve: use ECDSA P-256",
        ),
    }
}

fn days(group: Group, left: Option<Duration>) -> Finding {
    const NAME: &str = "certificate.validity";
    match left {
        None => Finding::change(group, NAME, Use::Works, "it has expired: renew it"),
        Some(left) if left < SOON => {
            let text = format!("{} days left: renew it", left.as_secs() / 86_400);
            Finding::change(group, NAME, Use::Works, text)
        }
        Some(left) => Finding::ok(group, NAME, format!("{} days left", left.as_secs() / 86_400)),
    }
}

fn chain(group: Group, inspection: &Inspection) -> Finding {
    const NAME: &str = "certificate.chain";
    let named = |name: &Option<String>| {
        name.clone().map_or_else(|| "an authority without a name".to_owned(), |name| format!("\"{name}\""))
    };
    let count = match inspection.certificates {
        1 => "one certificate".to_owned(),
        count => format!("{count} certificates"),
    };
    match &inspection.trust {
        ChainTrust::Trusted => {
            Finding::ok(group, NAME, format!("complete: {count}, which lead to an authority that this system trusts"))
        }
        ChainTrust::SelfSigned => Finding::note(
            group,
            NAME,
            "issued by itself: clients take it only if they are told to (curl --cacert), which is fine for tests",
        ),
        ChainTrust::PrivateAuthority { name } => Finding::note(
            group,
            NAME,
            format!("{count}, up to {}, which this system does not trust: for clients that do", named(name)),
        ),
        ChainTrust::EndsAt { issuer } => Finding::change(
            group,
            NAME,
            Use::Works,
            format!(
                "{count}, and the issuer of the last, {}, is no authority of this system's: an intermediate certificate is \
                 missing (browsers may find it, curl does not), or the authority is private",
                named(issuer)
            ),
        )
        .command("cat own.pem intermediate.pem > chain.pem    # the authority's full chain, without its root"),
        ChainTrust::Broken { position } => Finding::change(
            group,
            NAME,
            Use::Works,
            format!("certificate {position} was not issued by the one behind it: put each one's issuer behind it"),
        ),
        ChainTrust::Refused(reason) => {
            Finding::change(group, NAME, Use::Works, format!("clients refuse it: {reason}"))
        }
        ChainTrust::NotKnown(reason) => {
            Finding::note(group, NAME, format!("whether it is complete is not known: {reason}"))
        }
        _ => Finding::note(group, NAME, "whether it is complete is not known"),
    }
}

fn clients(group: Group, inspection: &Inspection) -> Finding {
    const NAME: &str = "certificate.clients";
    match inspection.key.map(|(algorithm, _)| algorithm) {
        Some(KeyAlgorithm::EcdsaP256 | KeyAlgorithm::EcdsaP384) => Finding::ok(
            group,
            NAME,
            "TLS 1.2 (ECDHE-ECDSA suites) and 1.3, every client of the last ten years",
        ),
        Some(KeyAlgorithm::Rsa) => {
            Finding::ok(group, NAME, "TLS 1.2 (ECDHE-RSA suites) and 1.3, every client that speaks them")
        }
        Some(KeyAlgorithm::EcdsaP521) => Finding::note(
            group,
            NAME,
            "TLS 1.2 and 1.3, but Chromium's browsers take no signatures of P-521: add a pair of P-256",
        ),
        Some(KeyAlgorithm::Ed25519) => Finding::note(
            group,
            NAME,
            "TLS 1.2 and 1.3 with OpenSSL 1.1.1 and rustls; few browsers verify it: add a pair of P-256",
        ),
        None => Finding::note(group, NAME, "which clients take it is not known"),
    }
}
