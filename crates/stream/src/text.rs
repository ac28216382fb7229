//! A run for people, in the form that users of iperf3 know: a line for each stream and interval, sums, then both ends.

use crate::{
    plan::{Amount, Direction, Reception, StreamEngine},
    report::{Connected, EndReport, Floor, Interval, LentReport, MappedReport, PathReport, StreamReport},
};
use linerate_figures::figure;
use std::fmt::Write;

/// Of more streams than this only sums are shown.
const SHOWN_STREAMS: usize = 16;
const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// What is told of a run, as it goes on and at its end.
#[derive(Debug)]
pub struct Text {
    direction: Direction,
    streams: u32,
    has_heading: bool,
}

/// Amounts by 1024, as iperf3 has them: `1.25 GBytes`.
fn amount(bytes: f64) -> String {
    let (mut value, mut unit) = (bytes, "Bytes");
    for larger in ["KBytes", "MBytes", "GBytes", "TBytes"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    format!("{} {unit}", three_digits(value))
}

/// Rates by 1000, as iperf3 has them: `9.41 Gbits/sec`.
fn rate(bits: f64) -> String {
    let (mut value, mut unit) = (bits, "bits/sec");
    for larger in ["Kbits/sec", "Mbits/sec", "Gbits/sec", "Tbits/sec"] {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1000.0, larger);
    }
    format!("{} {unit}", three_digits(value))
}

fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// The columns from the interval to the rate.
fn moved(label: &str, start_s: f64, end_s: f64, bytes: u64) -> String {
    let length_s = (end_s - start_s).max(1e-9);
    let interval = format!("{start_s:.2}-{end_s:.2}");
    format!(
        "[{label}] {interval:>13} sec  {:>12}  {:>15}",
        amount(bytes as f64),
        rate(bytes as f64 * 8.0 / length_s)
    )
}

fn label(number: u32, sends: bool, both: bool) -> String {
    let mark = match (both, sends) {
        (false, _) => "",
        (true, true) => "][TX",
        (true, false) => "][RX",
    };
    // Streams are numbered from 1, here alone.
    format!("{:>3}{mark}", number + 1)
}

fn sum_label(sends: bool, both: bool) -> String {
    match (both, sends) {
        (false, _) => "SUM".to_owned(),
        (true, true) => "SUM][TX".to_owned(),
        (true, false) => "SUM][RX".to_owned(),
    }
}

impl Text {
    /// Of a run in this direction, with so many streams each way.
    #[must_use]
    pub fn new(direction: Direction, streams: u32) -> Self {
        Self { direction, streams, has_heading: false }
    }

    fn shows_streams(&self) -> bool {
        self.direction.connections(self.streams) as usize <= SHOWN_STREAMS
    }

    fn is_both(&self) -> bool {
        self.direction == Direction::Both
    }

    /// The streams are connected.
    #[must_use]
    pub fn connected(&self, streams: &[Connected]) -> String {
        let mut text = String::new();
        if !self.shows_streams() {
            if let Some(first) = streams.first() {
                let _ = writeln!(text, "{} connections to {}", streams.len(), first.remote);
            }
            return text;
        }
        for stream in streams {
            let _ = writeln!(
                text,
                "[{}] local {} port {} connected to {} port {}",
                label(stream.number, stream.sends, self.is_both()),
                stream.local.ip(),
                stream.local.port(),
                stream.remote.ip(),
                stream.remote.port()
            );
        }
        text
    }

    /// An interval is over.
    #[must_use]
    pub fn interval(&mut self, interval: &Interval) -> String {
        let mut text = String::new();
        let sends = self.direction != Direction::Receive;
        if !self.has_heading {
            self.has_heading = true;
            let more = if sends { "  Retr  Cwnd" } else { "" };
            let _ = writeln!(text, "[ ID] Interval               Transfer      Bitrate{more}");
        }
        let both = self.is_both();
        if self.shows_streams() {
            for stream in &interval.streams {
                let columns = moved(
                    &label(stream.number, stream.sends, both),
                    interval.start_s,
                    interval.end_s,
                    stream.bytes,
                );
                let _ = writeln!(text, "{columns}{}", stream.path.map_or(String::new(), path_columns));
            }
        }
        if self.streams > 1 {
            for &sends in self.direction.ways() {
                let of_way = || interval.streams.iter().filter(|stream| stream.sends == sends);
                let bytes = of_way().map(|stream| stream.bytes).sum();
                let retransmits: u64 =
                    of_way().filter_map(|stream| stream.path).map(|path| u64::from(path.retransmits)).sum();
                let columns = moved(&sum_label(sends, both), interval.start_s, interval.end_s, bytes);
                let more = if sends { format!("  {retransmits:>4}") } else { String::new() };
                let _ = writeln!(text, "{columns}{more}");
            }
        }
        if self.shows_streams() && self.direction.connections(self.streams) > 1 {
            text.push_str(RULE);
        }
        text
    }

    /// The run is over.
    #[must_use]
    pub fn end(&self, report: &StreamReport) -> String {
        let mut text = String::new();
        if self.has_heading && !(self.shows_streams() && report.local.streams.len() > 1) {
            text.push_str(RULE);
        }
        text.push_str("[ ID] Interval               Transfer      Bitrate  Retr\n");
        if self.shows_streams() {
            for (place, stream) in report.local.streams.iter().enumerate() {
                let name = label(stream.number, stream.sends, self.is_both());
                let other = report.remote.as_ref().and_then(|remote| remote.streams.get(place));
                let pair = if stream.sends { (Some(stream), other) } else { (other, Some(stream)) };
                for (end, role) in [(pair.0, "sender"), (pair.1, "receiver")] {
                    let Some(end) = end else { continue };
                    let retransmits = end
                        .path
                        .filter(|_| end.sends)
                        .map_or(String::new(), |path| path.retransmits.to_string());
                    let columns = moved(&name, 0.0, end.seconds, end.bytes);
                    let _ = writeln!(text, "{columns}  {retransmits:>4}  {role:>14}");
                }
            }
        }
        if self.streams > 1 {
            for &sends in self.direction.ways() {
                let name = sum_label(sends, self.is_both());
                let ends = [Some(&report.local), report.remote.as_ref()];
                let (sender, receiver) = if sends { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
                for (end, of, role) in [(sender, true, "sender"), (receiver, false, "receiver")] {
                    let Some(end) = end else { continue };
                    let columns = moved(&name, 0.0, end.stream_seconds(of), end.bytes(of));
                    let retransmits = if of { end.retransmits(of).to_string() } else { String::new() };
                    let _ = writeln!(text, "{columns}  {retransmits:>4}  {role:>14}");
                }
            }
        }
        text.push('\n');
        for (end, name) in [(Some(&report.local), "here"), (report.remote.as_ref(), "listener")] {
            if let Some(end) = end {
                text.push_str(&cost(end, name));
            }
        }
        text.push_str(&conditions(report));
        text
    }
}

/// Runs by several engines in turn, as a table: what each cost beside the first that was had, and the floor of this end.
#[must_use]
pub fn engines(runs: &[(StreamEngine, Result<StreamReport, String>)], floor: Option<&Floor>) -> String {
    let mut text = format!(
        "{:<8} {:>16} {:>8} {:>12} {:>8} {:>12} {:>8}\n",
        "engine", "bitrate", "ratio", "here µs/KB", "ratio", "there µs/KB", "ratio"
    );
    let figures = |report: &StreamReport| {
        let moved = (report.local.bytes(true) + report.local.bytes(false)) as f64;
        let rate = moved * 8.0 / report.local.seconds.max(1e-9);
        let there = report.remote.as_ref().and_then(EndReport::service_demand_us_per_kb);
        (rate, report.local.service_demand_us_per_kb(), there)
    };
    let first = runs.iter().find_map(|(_, run)| run.as_ref().ok()).map(figures);
    for (engine, run) in runs {
        let report = match run {
            Ok(report) => report,
            Err(lack) => {
                let _ = writeln!(text, "{:<8} {lack}", engine.name());
                continue;
            }
        };
        let (rate_bits, here, there) = figures(report);
        let ratio = |now: Option<f64>, first: Option<f64>| match (now, first) {
            (Some(now), Some(first)) if first > 0.0 => format!("{:.2}", now / first),
            _ => "-".to_owned(),
        };
        let shown = |demand: Option<f64>| demand.map_or("-".to_owned(), |demand| figure(demand, 3));
        let (first_rate, first_here, first_there) = first.unwrap_or((rate_bits, here, there));
        let _ = writeln!(
            text,
            "{:<8} {:>16} {:>8} {:>12} {:>8} {:>12} {:>8}{}",
            engine.name(),
            rate(rate_bits),
            ratio(Some(rate_bits), Some(first_rate)),
            shown(here),
            ratio(here, first_here),
            shown(there),
            ratio(there, first_there),
            if report.faults.is_empty() { "" } else { "  with faults" }
        );
    }
    text.push_str(&floor.map_or(String::new(), |floor| floor_row(runs, floor)));
    text
}

/// What no engine that seals in software goes below at this end, and how far above it each is.
fn floor_row(runs: &[(StreamEngine, Result<StreamReport, String>)], floor: &Floor) -> String {
    let least = floor.us_per_kb();
    let mut text = format!(
        "{:<8} {:>16} {:>8} {:>12} {:>8}   here: {} {} + copy {} + plain {} µs/KB",
        "floor",
        "",
        "",
        figure(least, 3),
        figure(least / floor.plain_us_per_kb, 3),
        floor.cipher,
        figure(floor.cipher_us_per_kb, 3),
        figure(floor.copy_us_per_kb, 3),
        figure(floor.plain_us_per_kb, 3),
    );
    for (engine, run) in runs.iter().filter(|(engine, _)| engine.is_tls()) {
        if let Some(demand) = run.as_ref().ok().and_then(|report| report.local.service_demand_us_per_kb()) {
            let _ = write!(text, "; {} is {} × it", engine.name(), figure(demand / least, 3));
        }
    }
    text.push('\n');
    text
}

fn path_columns(path: PathReport) -> String {
    format!("  {:>4}  {:>12}", path.retransmits, amount(path.congestion_window_bytes as f64))
}

/// What an end has cost.
fn cost(end: &EndReport, name: &str) -> String {
    let seconds = end.seconds.max(1e-9);
    let share = |cpu_s: f64| format!("{:.1}", cpu_s * 100.0 / seconds);
    let demand = end.service_demand_us_per_kb();
    let mut text = format!(
        "CPU {name:<9} {} s, {} % of a core (user {} %, system {} %){}",
        figure(end.cpu.total_s(), 3),
        share(end.cpu.total_s()),
        share(end.cpu.user_s),
        share(end.cpu.system_s),
        demand.map_or(String::new(), |demand| format!(": {} µs/KB", figure(demand, 3))),
    );
    if let Some(machine) = end.machine {
        let _ = write!(
            text,
            "; the machine {} s of {} cores{}",
            figure(machine.busy_s, 3),
            machine.cores,
            if machine.stolen_s > 0.0 {
                format!(", stolen {} s", figure(machine.stolen_s, 3))
            } else {
                String::new()
            }
        );
    }
    text.push('\n');
    text
}

/// What the figures were found with.
fn conditions(report: &StreamReport) -> String {
    let mut text = String::new();
    let mut line = |name: &str, words: &str| {
        let _ = writeln!(text, "{name:<13} {words}");
    };
    let ends = || [Some(&report.local), report.remote.as_ref()].into_iter().flatten();
    let first = |sends: bool| ends().flat_map(|end| &end.streams).find(|stream| stream.sends == sends);
    for (sends, role) in [(true, "sent by"), (false, "received by")] {
        if let Some(stream) = first(sends) {
            let tls = stream.tls.as_ref().map_or(String::new(), |tls| format!(" ({tls})"));
            line(role, &format!("{}{tls}", stream.carried_by));
        }
    }
    if let Some(stream) = first(true)
        && let Some(path) = stream.path
    {
        let congestion = stream.congestion.as_deref().unwrap_or("not known");
        line(
            "TCP",
            &format!(
                "{congestion}, segments of {} bytes, round trip {} ms ± {}, at the first stream's end",
                path.segment_bytes,
                figure(f64::from(path.rtt_us) / 1e3, 3),
                figure(f64::from(path.rtt_deviation_us) / 1e3, 3),
            ),
        );
    }
    for (end, name) in [(Some(&report.local), "here"), (report.remote.as_ref(), "listener")] {
        let Some(end) = end else { continue };
        let updates: u64 = end.streams.iter().map(|stream| stream.key_updates).sum();
        if updates > 0 {
            line("keys", &format!("{name}: changed {updates} times"));
        }
        if let Some(lent) = end.lent() {
            line("zero-copy", &lent_words(lent, name));
        }
        if let Some(mapped) = end.mapped() {
            line("zero-copy", &mapped_words(&mapped, name));
        }
    }
    if report.reception == Reception::Discarded {
        line(
            "discarded",
            "received bytes were neither copied nor looked at: the lower bound of what receiving costs",
        );
    }
    if report.verified && report.faults.is_empty() {
        line("verified", "every byte is the one that it had to be");
    }
    if let (Amount::Bytes(bytes), true) = (report.amount, report.faults.is_empty() && !report.interrupted) {
        line("bytes", &format!("exactly {bytes} each way"));
    }
    if report.interrupted {
        line("interrupted", "this is what was measured until then");
    }
    for fault in &report.faults {
        line("fault", fault);
    }
    text
}

/// What came of memory that an end lent.
fn lent_words(lent: LentReport, name: &str) -> String {
    let LentReport { by, sends, completed, copied, refused } = lent;
    let outstanding = match sends - completed {
        0 => "all completed".to_owned(),
        outstanding => format!("{outstanding} not completed"),
    };
    let mut text = format!("{name}: {sends} sends by {}, {outstanding}", by.name());
    if completed > 0 {
        let share = copied as f64 * 100.0 / completed as f64;
        let _ = write!(text, "; the kernel copied {} % after all", figure(share, 3));
        if copied > 0 {
            text.push_str(" (loopback, veth and adapters without scatter-gather need copies)");
        }
    }
    if refused > 0 {
        let _ = write!(
            text,
            "; {refused} more were given copies of, as the kernel took no loan (net.core.optmem_max, ulimit -l)"
        );
    }
    text
}

/// What an end received without a copy.
fn mapped_words(mapped: &MappedReport, name: &str) -> String {
    let all_bytes = mapped.mapped_bytes + mapped.copied_bytes;
    let share = mapped.mapped_bytes as f64 * 100.0 / all_bytes.max(1) as f64;
    let obstacle = mapped.obstacle.as_ref().map_or(String::new(), |obstacle| format!(": {obstacle}"));
    format!("{name}: {} % of what was received was mapped{obstacle}", figure(share, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_iperf3_writes_them() {
        for (bytes, text) in [
            (0.0, "0.00 Bytes"),
            (1.0, "1.00 Bytes"),
            (1536.0, "1.50 KBytes"),
            (1.2e9, "1.12 GBytes"),
            (53.0 * 1024.0, "53.0 KBytes"),
            (1e18, "909495 TBytes"),
        ] {
            assert_eq!(amount(bytes), text);
        }
        for (bits, text) in [(999.0, "999 bits/sec"), (1e6, "1.00 Mbits/sec"), (94.1e9, "94.1 Gbits/sec")] {
            assert_eq!(rate(bits), text);
        }
    }
}
