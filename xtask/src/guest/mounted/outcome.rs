//! Tables of what was measured, in Markdown, as docs/MEASUREMENTS.md has them.

use anyhow::{Context, Result, bail};
use linerate_bench::statistics::Summary;

use super::Line;
use super::work::Work;
use crate::guest::counted_guest::Said;
use crate::guest::subject::NfsKind;

/// A piece of work, and what was executed for it.
#[derive(Debug, Clone, Copy)]
struct Counted {
    server: NfsKind,
    tls: bool,
    work: Work,
    /// By the whole machine.
    whole: u64,
    server_ns: u64,
}

/// The tables of what a guest said.
pub(super) fn text(said: &Said) -> Result<String> {
    let mut pairs = said.marks.chunks_exact(2).map(|pair| pair[1].user + pair[1].kernel);
    let (mut counted, mut reads) = (Vec::new(), Vec::new());
    for line in said.output.lines() {
        match serde_json::from_str(line).with_context(|| format!("the guest said {line:?}"))? {
            Line::Worked { server, tls, work, server_ns } => {
                let whole = pairs.next().context("there are fewer marks than two for each piece of work")?;
                counted.push(Counted { server, tls, work, whole, server_ns });
            }
            Line::Read { server, silent, took_ns } => reads.push((server, silent, took_ns)),
        }
    }
    if pairs.next().is_some() || !said.marks.len().is_multiple_of(2) {
        bail!("{} marks are more than two for each piece of work", said.marks.len());
    }
    let tables = [listings(&counted), beside_silence(&reads)];
    Ok(tables.into_iter().flatten().collect::<Vec<_>>().join("\n"))
}

/// Millions of instructions, of the whole machine and of the server's threads.
fn listings(counted: &[Counted]) -> Option<String> {
    if counted.is_empty() {
        return None;
    }
    let mut text = "| millions of instructions | knfsd | linerate nfs | of knfsd's | spread | knfsd's threads | linerate's | of knfsd's |\n\
         |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for tls in [false, true] {
        for work in Work::ALL {
            let of = |server: NfsKind, figure: fn(&Counted) -> u64| {
                let own = counted.iter().filter(|one| (one.server, one.tls, one.work) == (server, tls, work));
                let figures: Vec<f64> = own.map(|one| figure(one) as f64 / 1e6).collect();
                let (low, high) = figures
                    .iter()
                    .fold((f64::MAX, f64::MIN), |(low, high), &one| (low.min(one), high.max(one)));
                Summary::of(&figures).map(|summary| (summary.median, 100.0 * (high - low) / summary.median))
            };
            let both = |figure| Some((of(NfsKind::Knfsd, figure)?, of(NfsKind::Linerate, figure)?));
            let Some((knfsd, ours)) = both(|one| one.whole) else { continue };
            let Some((knfsd_own, ours_own)) = both(|one| one.server_ns) else { continue };
            text += &format!(
                "| {}, {} | {:.0} | {:.0} | **{:.2}** | {:.1} %, {:.1} % | {:.0} | {:.0} | {:.2} |\n",
                name(work),
                if tls { "TLS" } else { "plaintext" },
                knfsd.0,
                ours.0,
                ours.0 / knfsd.0,
                knfsd.1,
                ours.1,
                knfsd_own.0,
                ours_own.0,
                ours_own.0 / knfsd_own.0,
            );
        }
    }
    Some(text)
}

fn name(work: Work) -> &'static str {
    match work {
        Work::List => "`ls -f`",
        Work::Find => "`find`",
        Work::ListLong => "`ls -lR`",
    }
}

/// Quantiles of all rounds' reads together.
fn beside_silence(reads: &[(NfsKind, u32, Vec<u64>)]) -> Option<String> {
    if reads.is_empty() {
        return None;
    }
    let mut text = "| server | silent connections | reads | median, µs | p99, µs | longest, µs | p99, of idle's |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for server in [NfsKind::Knfsd, NfsKind::Linerate] {
        let mut kinds: Vec<u32> =
            reads.iter().filter(|(of, ..)| *of == server).map(|(_, silent, _)| *silent).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut idle = None;
        for silent in kinds {
            let own = reads.iter().filter(|(of, beside, _)| (*of, *beside) == (server, silent));
            let mut took: Vec<u64> = own.flat_map(|(.., took)| took.iter().copied()).collect();
            took.sort_unstable();
            let at = |share: f64| {
                let place = (share * took.len() as f64).ceil() as usize;
                took.get(place.saturating_sub(1)).map_or(f64::NAN, |&ns| ns as f64 / 1e3)
            };
            let idle = *idle.get_or_insert(at(0.99));
            text += &format!(
                "| {} | {silent} | {} | {:.0} | {:.0} | {:.0} | **{:.2}** |\n",
                match server {
                    NfsKind::Knfsd => "knfsd, four threads",
                    NfsKind::Linerate => "linerate nfs",
                },
                took.len(),
                at(0.5),
                at(0.99),
                at(1.0),
                at(0.99) / idle,
            );
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::super::counted_guest::parse_mark;
    use super::*;

    fn said(lines: &[Line], counts: &[u64]) -> Said {
        let output: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
        let mark = |kernel: u64| parse_mark(&format!("mark 0 user 0 kernel {kernel} adapter 0")).unwrap();
        let marks = counts.iter().flat_map(|&count| [mark(9), mark(count)]).collect();
        Said { output: output.join("\n"), marks }
    }

    #[test]
    fn work_is_what_stands_at_its_second_mark_beside_knfsd() {
        let line = |server, server_ns| Line::Worked { server, tls: true, work: Work::Find, server_ns };
        let lines = [line(NfsKind::Knfsd, 8_000_000), line(NfsKind::Linerate, 4_000_000)];
        let text = text(&said(&lines, &[20_000_000, 25_000_000])).unwrap();
        assert!(
            text.contains("| `find`, TLS | 20 | 25 | **1.25** | 0.0 %, 0.0 % | 8 | 4 | 0.50 |\n"),
            "{text}"
        );
        assert!(super::text(&said(&lines, &[1])).is_err());
        assert!(super::text(&said(&lines, &[1, 1, 1])).is_err());
    }

    #[test]
    fn reads_of_all_rounds_are_held_against_idle_ones() {
        let read = |silent, took_ns: Vec<u64>| Line::Read { server: NfsKind::Linerate, silent, took_ns };
        let lines = [
            read(0, (1..=100).map(|number| number * 1000).collect()),
            read(4, (1..=50).map(|number| number * 2000).collect()),
            read(4, (51..=100).map(|number| number * 2000).collect()),
        ];
        let text = text(&said(&lines, &[])).unwrap();
        assert!(text.contains("| linerate nfs | 0 | 100 | 50 | 99 | 100 | **1.00** |\n"), "{text}");
        assert!(text.contains("| linerate nfs | 4 | 100 | 100 | 198 | 200 | **2.00** |\n"), "{text}");
    }
}
