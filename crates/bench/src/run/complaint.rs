//! What a load did other than what was asked of it.

use crate::definition::Workload;
use linerate_load::report::LoadReport;

/// Why a load's reports are no measurement, if they are none.
pub(super) fn complaint(reports: &[LoadReport]) -> Option<String> {
    let sum = |count: fn(&LoadReport) -> u64| reports.iter().map(count).sum::<u64>();
    let errors = sum(|report| report.errors.values().sum());
    let responses = sum(|report| report.totals.responses);
    let kinds = || {
        let kinds = reports.iter().flat_map(|report| &report.errors);
        kinds.map(|(kind, count)| format!("{kind} ({count})")).collect::<Vec<_>>().join(", ")
    };
    if sum(|report| report.totals.body_bytes) == 0 {
        if errors > 0 {
            return Some(format!("nothing came: {}", kinds()));
        }
        let measured_s = reports.iter().map(|report| report.measured_s).fold(0.0, f64::max);
        return Some(format!(
            "nothing came in {measured_s} s, and no error was seen; in that time {} connections were made, {} handshakes \
             and {} requests: warmup_s and measured_s may be too short for this server",
            sum(|report| report.totals.connections),
            sum(|report| report.totals.full_handshakes + report.totals.resumed_handshakes),
            sum(|report| report.totals.requests),
        ));
    }
    // A few in a hundred thousand are the weather; one in a hundred is another load than was asked for.
    (errors * 100 > responses).then(|| format!("{errors} requests failed, {responses} did not: {}", kinds()))
}

/// Why connections that were to ask once and be idle are not what was asked for, if they are not.
pub(super) fn idle_complaint(workload: &Workload, reports: &[LoadReport]) -> Option<String> {
    let responses: u64 = reports.iter().map(|report| report.totals.responses).sum();
    let connections = u64::from(workload.connections);
    (workload.idle && responses != connections).then(|| {
        format!(
            "{responses} responses came in time, for {connections} connections that were to ask once each"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::load_report;

    fn report(responses: u64, body_bytes: u64, errors: &[(&str, u64)]) -> LoadReport {
        let mut report = load_report();
        report.totals.responses = responses;
        report.totals.body_bytes = body_bytes;
        report.errors = errors.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
        report
    }

    #[test]
    fn a_load_that_failed_is_no_measurement() {
        assert_eq!(complaint(&[report(10, 1000, &[])]), None);
        assert_eq!(complaint(&[report(0, 1000, &[])]), None, "a long transfer need not be over");
        assert_eq!(complaint(&[report(1000, 1000, &[("reset", 9)])]), None);
        let complaint_of = |reports: &[LoadReport]| complaint(reports).unwrap();
        let silent = complaint_of(&[report(0, 0, &[])]);
        assert!(silent.contains("no error was seen") && silent.contains("0 handshakes"), "{silent}");
        assert_eq!(
            complaint_of(&[report(0, 0, &[("certificate not trusted", 3)])]),
            "nothing came: certificate not trusted (3)"
        );
        let both = [report(100, 1000, &[("reset", 1)]), report(100, 1000, &[("timeout", 2)])];
        assert_eq!(complaint_of(&both), "3 requests failed, 200 did not: reset (1), timeout (2)");
    }

    #[test]
    fn every_idle_connection_has_asked() {
        let idle = Workload { idle: true, connections: 200, ..Workload::default() };
        let both = |second: u64| [report(100, 1000, &[]), report(second, 1000, &[])];
        assert_eq!(idle_complaint(&idle, &both(100)), None);
        assert_eq!(
            idle_complaint(&idle, &both(99)).unwrap(),
            "199 responses came in time, for 200 connections that were to ask once each"
        );
        assert_eq!(idle_complaint(&Workload::default(), &both(99)), None);
    }
}
