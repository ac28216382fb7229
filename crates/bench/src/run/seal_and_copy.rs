//! What sealing and copying a byte costs on the servers' cores, read after each slice of a server that encrypts: the part of
//! the floor ([`crate::floor`]) that has no server.

use linerate_load::report::LoadReport;
use linerate_suite::CipherSuite;

use crate::definition::Workload;
use crate::floor::OWN_PLAINTEXT;
use crate::result::{ExperimentRun, Reading, SealAndCopy};

/// Measures it on `cores`, as `workload` has records and as its client agreed on a suite in `load`. The server is idle
/// meanwhile.
pub(super) fn measure(
    run: &ExperimentRun,
    workload: &Workload,
    load: &[LoadReport],
    cores: &[usize],
) -> Reading<SealAndCopy> {
    found(run, workload, load, cores).map_or_else(Reading::NotAvailable, Reading::Value)
}

fn found(
    run: &ExperimentRun,
    workload: &Workload,
    load: &[LoadReport],
    cores: &[usize],
) -> Result<SealAndCopy, String> {
    if workload.idle {
        return Err("connections are idle, and a floor of bytes says nothing about them".to_owned());
    }
    if workload.close {
        return Err(
            "each request has a connection and a handshake of its own, and a floor of bytes says nothing \
                    about them"
                .to_owned(),
        );
    }
    if !run.servers.iter().any(|server| server.name == OWN_PLAINTEXT) {
        return Err(format!("{OWN_PLAINTEXT} did not take part, and its cost is a part of the floor"));
    }
    let suite = suite(workload, load).ok_or("the cipher suite that was agreed on is not known")?;
    let cipher = suite.cipher();
    let record_bytes = record_bytes(workload);
    let failed = |error| format!("sealing and copying could not be measured: {error}");
    let cost = linerate_calibrate::seal_and_copy(cipher, record_bytes as usize, cores).map_err(failed)?;
    Ok(SealAndCopy {
        cipher: cipher.name().to_owned(),
        record_bytes,
        seal_s_per_gb: cost.seal_ns_per_byte,
        copy_s_per_gb: cost.copy_ns_per_byte,
    })
}

/// The suite that was asked for, else what the client says was agreed on: "TLS 1.3, TLS_AES_256_GCM_SHA384, X25519".
fn suite(workload: &Workload, load: &[LoadReport]) -> Option<CipherSuite> {
    if let Some(asked) = &workload.cipher {
        return CipherSuite::named(asked);
    }
    let agreed = load.iter().flat_map(|report| report.negotiated.keys());
    agreed.filter_map(|agreed| CipherSuite::named(agreed.split(", ").nth(1)?)).next()
}

/// Plaintext of a record: full ones, but for what is shorter than one, and what was asked for.
fn record_bytes(workload: &Workload) -> u32 {
    const FULL_BYTES: u32 = 16_384;
    let response_bytes = workload.range_bytes.unwrap_or(u64::MAX).min(workload.file_bytes);
    let response_bytes = u32::try_from(response_bytes).unwrap_or(u32::MAX);
    workload.record_bytes.unwrap_or(FULL_BYTES).min(FULL_BYTES).min(response_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{load_report, run_of};

    fn measured(workload: &Workload, load: &[LoadReport], plaintext: &str) -> Reading<SealAndCopy> {
        let cores = linerate_os::processor::allowed().unwrap();
        measure(&run_of(&[(plaintext, &[0.1])]), workload, load, &cores[..1])
    }

    #[test]
    fn the_suite_is_the_one_that_was_agreed_on() {
        let mut load = load_report();
        load.negotiated.insert("TLS 1.3, TLS_AES_128_GCM_SHA256, X25519".to_owned(), 8);
        let agreed = measured(&Workload::default(), &[load.clone()], OWN_PLAINTEXT);
        let agreed = agreed.value().unwrap();
        assert_eq!((agreed.cipher.as_str(), agreed.record_bytes), ("AES-128-GCM", 16_384));
        assert!(agreed.seal_s_per_gb > 0.0 && agreed.copy_s_per_gb > 0.0, "{agreed:?}");
        let cipher = Some("TLS_CHACHA20_POLY1305_SHA256".to_owned());
        let asked = Workload { cipher, file_bytes: 10_000, ..Workload::default() };
        let asked = measured(&asked, &[load], OWN_PLAINTEXT);
        let asked = asked.value().unwrap();
        assert_eq!((asked.cipher.as_str(), asked.record_bytes), ("ChaCha20-Poly1305", 10_000));
    }

    #[test]
    fn what_has_no_floor_says_why() {
        let cipher = Some("TLS_AES_128_GCM_SHA256".to_owned());
        let bulk = Workload { cipher, ..Workload::default() };
        for (workload, plaintext, word) in [
            (Workload { idle: true, ..bulk.clone() }, OWN_PLAINTEXT, "idle"),
            (Workload { close: true, ..bulk.clone() }, OWN_PLAINTEXT, "handshake"),
            (bulk, "nginx plaintext", "linerate plaintext did not take part"),
            (Workload::default(), OWN_PLAINTEXT, "suite"),
        ] {
            let Reading::NotAvailable(reason) = measured(&workload, &[load_report()], plaintext) else {
                panic!("{word}: it has one")
            };
            assert!(reason.contains(word), "{reason}");
        }
    }
}
