//! From marks and lines of a guest to a table of instructions per byte.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use linerate_bench::statistics::Summary;

use super::row::Row;
use super::{Lent, Line, Window};
use crate::guest::counted_guest::Said;

/// A window and what the machine executed in it: without the adapter's model, and without a receiver in the guest.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    window: Window,
    instructions: f64,
}

/// What one guest counted.
#[derive(Debug, Default)]
struct Count {
    about: String,
    counted: &'static str,
    windows: Vec<Counted>,
    lent: Vec<(Row, Lent)>,
    /// Windows that are in no figure: TCP sent segments again.
    repeated: u32,
}

/// What a byte costs at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PerByte {
    median: f64,
    /// Largest and smallest, apart by so much of the median.
    spread: f64,
    /// Mean length of what the adapter was handed.
    frame_bytes: f64,
}

/// The table of what a guest said, as docs/MEASUREMENTS.md has it.
pub(super) fn of(said: &Said) -> Result<String> {
    Ok(join(said)?.text())
}

/// What was executed between two marks stands at the second.
fn join(said: &Said) -> Result<Count> {
    let mut pairs = said.marks.chunks_exact(2).map(|pair| pair[1].user + pair[1].kernel);
    let mut count = Count::default();
    for line in said.output.lines() {
        let line = serde_json::from_str(line).with_context(|| format!("the guest said {line:?}"))?;
        match line {
            Line::Wire(facts) => {
                count.about = facts.words();
                count.counted = "sender only, virtio adapter with TSO";
            }
            Line::SoftwareAdapter(path) => {
                count.about = path;
                count.counted = "without the receiver's process and the adapter's model";
            }
            Line::Lent { row, lent } => count.lent.push((row, lent)),
            Line::Window(window) => {
                let whole = pairs.next().context("there are fewer marks than two for each window")?;
                let own = whole.checked_sub(window.receiver_ns);
                let own = own.with_context(|| {
                    format!(
                        "the receiver is said to have used {} of {whole} instructions",
                        window.receiver_ns
                    )
                })?;
                if window.sent.retransmitted_segments > 0 {
                    count.repeated += 1;
                } else {
                    count.windows.push(Counted { window, instructions: own as f64 });
                }
            }
        }
    }
    if pairs.next().is_some() || !said.marks.len().is_multiple_of(2) {
        bail!("{} marks are more than two for each window", said.marks.len());
    }
    Ok(count)
}

impl Count {
    fn per_byte(&self, row: Row, io_bytes: u32) -> Option<PerByte> {
        let own = self.windows.iter().filter(|one| (one.window.row, one.window.io_bytes) == (row, io_bytes));
        let costs: Vec<f64> = own.clone().map(|one| one.instructions / one.window.payload_bytes()).collect();
        let frames: Vec<f64> =
            own.map(|one| one.window.sent.bytes as f64 / one.window.sent.frames as f64).collect();
        let median = Summary::of(&costs)?.median;
        let (least, most) = extremes(&costs);
        Some(PerByte { median, spread: (most - least) / median, frame_bytes: Summary::of(&frames)?.median })
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.windows.iter().map(|one| one.window.row).collect();
        rows.dedup();
        rows
    }

    fn io_sizes_bytes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = self.windows.iter().map(|one| one.window.io_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn text(&self) -> String {
        let sizes = self.io_sizes_bytes();
        let head: String = sizes.iter().map(|&size| format!(" {} |", size_words(size))).collect();
        let rule: String = sizes.iter().map(|_| "---|").collect();
        let mut text = format!(
            "{}; {} windows were repeated because TCP sent segments again\n\n\
             | instructions per byte, {} |{head} spread up to | bytes a frame |\n|---|{rule}---|---|\n",
            self.about, self.repeated, self.counted
        );
        for row in self.rows() {
            text += &self.line(row, &sizes);
        }
        for row in self.rows().into_iter().filter(|row| row.lends()) {
            let own = self.lent.iter().filter(|(of, _)| *of == row).map(|(_, lent)| *lent);
            let Lent { sends, completed, copied, refused } = own.sum();
            // Writing to a text cannot fail.
            let _ = writeln!(
                text,
                "\n{}: {sends} sends lent memory, {completed} are complete, {copied} of these were copied after all, \
                 {refused} were refused (ENOBUFS)",
                row.title()
            );
        }
        text
    }

    fn line(&self, row: Row, sizes: &[u32]) -> String {
        let mut text = format!("| {} |", row.title());
        let (mut spreads, mut frames) = (Vec::new(), Vec::new());
        for &size in sizes {
            let Some(cost) = self.per_byte(row, size) else {
                text.push_str("  |");
                continue;
            };
            spreads.push(cost.spread);
            frames.push(cost.frame_bytes);
            let beside = row.copying().and_then(|copying| self.per_byte(copying, size));
            let ratio =
                beside.map_or_else(String::new, |copying| format!(" ({:.2})", cost.median / copying.median));
            // Writing to a text cannot fail.
            let _ = write!(text, " {:.3}{ratio} |", cost.median);
        }
        let ((_, spread), (least, most)) = (extremes(&spreads), extremes(&frames));
        text + &format!(" {:.1} % | {least:.0} to {most:.0} |\n", 100.0 * spread)
    }
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, f64::MIN), |(least, most), &one| (least.min(one), most.max(one)))
}

/// "4 KiB", or bytes where it is no whole number of them.
fn size_words(bytes: u32) -> String {
    if bytes.is_multiple_of(1024) { format!("{} KiB", bytes / 1024) } else { format!("{bytes} B") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::wire::adapter::Sent;

    fn window(row: Row, retransmitted_segments: u64) -> Line {
        // 2000 bytes of the application, where it is in the clear.
        let sent = Sent { frames: 10, bytes: 2660, received_frames: 1, retransmitted_segments };
        Line::Window(Window { row, io_bytes: 2048, sent, receiver_ns: 100, is_tls_1_2: false })
    }

    #[test]
    fn a_byte_costs_what_its_window_took_without_the_receiver() {
        let lent = Lent { sends: 2, completed: 2, copied: 1, refused: 0 };
        let lines = [
            Line::SoftwareAdapter("an adapter".to_owned()),
            window(Row::Plain, 0),
            window(Row::PlainLent, 1),
            window(Row::PlainLent, 0),
            Line::Lent { row: Row::PlainLent, lent },
        ];
        let text = join(&Said::of_test(&lines, &[(2000, 2100), (9000, 9000), (1000, 1100)])).unwrap().text();
        assert!(text.starts_with("an adapter; 1 windows were repeated"), "{text}");
        assert!(text.contains("| 2 KiB | spread up to | bytes a frame |\n|---|---|---|---|\n"), "{text}");
        assert!(text.contains("| plain | 2.000 | 0.0 % | 266 to 266 |\n"), "{text}");
        assert!(text.contains("| plain, `--zero-copy-send` | 1.000 (0.50) | 0.0 % |"), "{text}");
        assert!(text.contains("2 sends lent memory, 2 are complete, 1 of these were copied"), "{text}");
    }

    #[test]
    fn a_mark_too_few_or_too_many_is_no_result() {
        let one = [window(Row::User, 0)];
        assert!(join(&Said::of_test(&one, &[])).is_err());
        assert!(join(&Said::of_test(&one, &[(500, 500), (1, 1)])).is_err());
        assert!(join(&Said::of_test(&one, &[(50, 49)])).is_err(), "less than the receiver took");
        assert!(join(&Said::of_test(&one, &[(50, 50)])).is_ok());
    }
}
