//! A report for people: short, aligned, every figure with its unit.

use std::fmt::{self, Display, Formatter};

use linerate_figures::{bits, bytes, count, figure, time};

use crate::{
    fault::{NO_PORT, NO_PORT_ADVICE},
    report::{Distribution, LoadReport},
};

/// Shows a report.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a>(pub &'a LoadReport);

impl Display for Summary<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        self.amounts(formatter)?;
        writeln!(
            formatter,
            "\n{:<12}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
            "", "50 %", "75 %", "90 %", "99 %", "99.9 %", "max", "mean"
        )?;
        for (name, times) in [
            ("latency", &report.latency),
            ("first byte", &report.first_byte),
            ("transfer", &report.transfer),
            ("connect", &report.connect),
            ("handshake", &report.handshake),
        ] {
            row(formatter, name, times)?;
        }
        writeln!(formatter)?;
        self.remarks(formatter)
    }
}

impl Summary<'_> {
    fn amounts(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let (totals, seconds) = (&report.totals, report.measured_s.max(1e-9));
        let mut line = |name: &str, text: String| writeln!(formatter, "{name:<12}{text}");
        let rate = totals.responses as f64 / seconds;
        let asked = report.rate_per_s.map_or(String::new(), |asked| format!(" of {}/s", figure(asked, 3)));
        line(
            "responses",
            format!("{} in {} s, {}/s{asked}", count(totals.responses), figure(seconds, 3), figure(rate, 3)),
        )?;
        let (body_bytes, wire_bytes) = (totals.body_bytes as f64, totals.received_bytes as f64);
        let per_second = |amount: f64| format!("{}/s", bits(amount * 8.0 / seconds, 3));
        line(
            "bodies",
            format!(
                "{}, {}/s, {}",
                bytes(body_bytes, 3),
                bytes(body_bytes / seconds, 3),
                per_second(body_bytes)
            ),
        )?;
        line("received", format!("{}, {}", bytes(wire_bytes, 3), per_second(wire_bytes)))?;
        let tls = match (totals.full_handshakes, totals.resumed_handshakes) {
            (0, 0) => String::new(),
            (full, resumed) => format!("; handshakes: {} full, {} resumed", count(full), count(resumed)),
        };
        line("connections", format!("{} opened{tls}", count(totals.connections)))?;
        for (agreed, connections) in &report.negotiated {
            line("", format!("{agreed} ({})", count(*connections)))?;
        }
        let cost = &report.client;
        let cpu_s = cost.user_s + cost.system_s;
        let mut prices = Vec::new();
        if totals.body_bytes > 0 {
            prices.push(format!("{} s/GB", figure(cpu_s * 1e9 / body_bytes, 3)));
        }
        if totals.responses > 0 {
            prices.push(format!("{} a response", time(cpu_s * 1e9 / totals.responses as f64, 3)));
        }
        line(
            "client CPU",
            format!(
                "{} s (user {}, system {}){}",
                figure(cpu_s, 3),
                figure(cost.user_s, 3),
                figure(cost.system_s, 3),
                if prices.is_empty() { String::new() } else { format!(": {}", prices.join(", ")) }
            ),
        )
    }

    fn remarks(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let mut line = |name: &str, text: &str| writeln!(formatter, "{name:<12}{text}");
        if report.errors.is_empty() {
            line("errors", "none")?;
        }
        for (kind, times) in &report.errors {
            line("errors", &format!("{} × {kind}", count(*times)))?;
        }
        if report.errors.contains_key(NO_PORT) {
            line("", NO_PORT_ADVICE)?;
        }
        for mismatch in &report.mismatches {
            let byte = |byte: Option<u8>| byte.map_or("nothing".to_owned(), |byte| format!("0x{byte:02x}"));
            line(
                "",
                &format!(
                    "{}: byte {} is {}, in {} it is {}",
                    mismatch.url,
                    mismatch.offset,
                    byte(mismatch.received),
                    mismatch.file,
                    byte(mismatch.wanted)
                ),
            )?;
        }
        if report.verified && report.errors.is_empty() {
            line("verified", "every byte is its source's")?;
        }
        if report.discarded {
            line("discarded", "bodies were thrown away unread: the sender is what was measured")?;
        }
        let totals = &report.totals;
        if totals.unanswered > 0 && (report.rate_per_s.is_some() || totals.oldest_unanswered_us > 1_000_000) {
            line(
                "unanswered",
                &format!(
                    "{} requests at the end, the oldest for {}; they are in no figure above",
                    count(totals.unanswered),
                    time(totals.oldest_unanswered_us as f64 * 1e3, 3)
                ),
            )?;
        }
        if let Some(reason) = &report.client_limited {
            line("limit", &format!("client-limited: {reason}"))?;
        }
        if report.interrupted {
            line("interrupted", "this is what was measured until then")?;
        }
        Ok(())
    }
}

fn row(formatter: &mut Formatter<'_>, name: &str, times: &Distribution) -> fmt::Result {
    if times.count == 0 {
        return Ok(());
    }
    write!(formatter, "{name:<12}")?;
    for time_us in [times.p50_us, times.p75_us, times.p90_us, times.p99_us, times.p999_us, times.max_us] {
        write!(formatter, "{:>10}", time(time_us as f64 * 1e3, 3))?;
    }
    writeln!(formatter, "{:>10}", time(times.mean_us * 1e3, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Mismatch;

    #[test]
    fn what_matters_is_said() {
        let mut report = crate::report::tests::example();
        let said = Summary(&report).to_string();
        assert!(said.contains("errors      none"), "{said}");
        assert!(!said.contains("client-limited") && !said.contains("unread"), "{said}");
        report.errors.insert("status 404".to_owned(), 1234);
        report.mismatches.push(Mismatch {
            url: "https://h/f".to_owned(),
            file: "f".to_owned(),
            offset: 77,
            wanted: Some(1),
            received: None,
        });
        report.client_limited = Some("why".to_owned());
        report.discarded = true;
        report.interrupted = true;
        report.rate_per_s = Some(100.0);
        report.totals.unanswered = 3;
        report.totals.oldest_unanswered_us = 1_500_000;
        let said = Summary(&report).to_string();
        for words in [
            "errors      1,234 × status 404",
            "https://h/f: byte 77 is nothing, in f it is 0x01",
            "client-limited: why",
            "thrown away unread",
            "interrupted",
            "3 requests at the end, the oldest for 1.5 s",
            "of 100/s",
        ] {
            assert!(said.contains(words), "{words}\n{said}");
        }
    }
}
