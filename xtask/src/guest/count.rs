//! The part on the host: builds what is needed, boots guests that count, and makes the table.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use linerate_bench::statistics::Summary;

use super::counted_guest::{CountedGuests, Limits, Said};
use super::{Subject, Transfer};
use crate::linerate::{self, workspace};

const LIMITS: Limits = Limits { seconds: 600, memory_mib: 2048 };

/// Flags of `cargo xtask guest cost`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Only this kernel (6.1, 6.12, …); may be repeated. All that guest/setup has, if not said.
    #[arg(long, value_name = "LABEL")]
    kernel: Vec<String>,
    /// Length of each transfer. Odd, so that the last record is a short one.
    #[arg(long, default_value_t = 16 * 1024 * 1024 + 12_345)]
    body_bytes: u64,
    /// Transfers of each kind; the table has their medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    transfers: u32,
    /// The linerate binary; without it, `cargo build --release --package linerate` makes one.
    #[arg(long, value_name = "FILE")]
    linerate: Option<PathBuf>,
}

/// Counts, and prints a table for each kernel.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = workspace();
    let guests = CountedGuests::prepare(&workspace)?;
    let kernels = match &options.kernel[..] {
        [] => guests.kernels()?,
        named => named.to_vec(),
    };
    let program = linerate::find(options.linerate.as_deref(), &workspace)?;
    println!("linerate: {}", linerate::version(&program)?);
    for kernel in kernels {
        let counted = count_in(&guests, &kernel, &program, options)?;
        println!("\n### Linux {kernel}\n\n{}", table(&counted));
    }
    Ok(())
}

/// A transfer and what the whole machine executed for it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    transfer: Transfer,
    user: u64,
    kernel: u64,
}

fn count_in(
    guests: &CountedGuests,
    kernel: &str,
    linerate: &Path,
    options: &Options,
) -> Result<Vec<Counted>> {
    let mut arguments: Vec<OsString> = vec!["cost-inside".into(), "--linerate".into(), linerate.into()];
    arguments.extend(["--body-bytes".into(), options.body_bytes.to_string().into()]);
    arguments.extend(["--transfers".into(), options.transfers.to_string().into()]);
    join(&guests.run(kernel, &format!("cost-{kernel}"), LIMITS, &arguments)?)
}

/// Each transfer has two marks: what was executed in between stands at the second.
fn join(said: &Said) -> Result<Vec<Counted>> {
    let transfers: Vec<Transfer> = said
        .output
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("the guest said {line:?}")))
        .collect::<Result<_>>()?;
    if said.marks.len() != 2 * transfers.len() {
        bail!("{} marks for {} transfers; there have to be two for each", said.marks.len(), transfers.len());
    }
    let ends = said.marks.chunks_exact(2).map(|pair| pair[1]);
    Ok(transfers
        .into_iter()
        .zip(ends)
        .map(|(transfer, mark)| Counted { transfer, user: mark.user, kernel: mark.kernel })
        .collect())
}

/// Instructions per byte of body.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PerByte {
    user: f64,
    kernel: f64,
    whole: f64,
    /// Largest and smallest of `whole`, apart by so much of the median.
    spread: f64,
}

fn per_byte(counted: &[Counted], subject: Subject) -> Option<PerByte> {
    let of = |count: fn(&Counted) -> u64| -> Vec<f64> {
        let own = counted.iter().filter(|one| one.transfer.subject == subject);
        own.map(|one| count(one) as f64 / one.transfer.body_bytes as f64).collect()
    };
    let whole = of(|one| one.user + one.kernel);
    let median = Summary::of(&whole)?.median;
    let (low, high) =
        whole.iter().fold((f64::MAX, f64::MIN), |(low, high), &one| (low.min(one), high.max(one)));
    Some(PerByte {
        user: Summary::of(&of(|one| one.user))?.median,
        kernel: Summary::of(&of(|one| one.kernel))?.median,
        whole: median,
        spread: (high - low) / median,
    })
}

/// Markdown, as docs/MEASUREMENTS.md has it.
fn table(counted: &[Counted]) -> String {
    let mut text = String::from(
        "| instructions per byte, whole machine | user | kernel | both | spread | of nginx's |\n|---|---|---|---|---|---|\n",
    );
    for subject in Subject::ALL {
        let Some(cost) = per_byte(counted, subject) else { continue };
        let yardstick = subject.yardstick().and_then(|nginx| per_byte(counted, nginx));
        let ratio = yardstick.map_or_else(String::new, |nginx| format!("{:.2}", cost.whole / nginx.whole));
        text += &format!(
            "| {} | {:.3} | {:.3} | {:.3} | {:.1} % | {ratio} |\n",
            subject.title(),
            cost.user,
            cost.kernel,
            cost.whole,
            100.0 * cost.spread
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::counted_guest::parse_mark;
    use super::*;

    fn line(subject: Subject) -> String {
        serde_json::to_string(&Transfer { subject, body_bytes: 1000 }).unwrap()
    }

    fn said(output: String, marks: &str) -> Said {
        let marks = marks.lines().map(parse_mark).collect::<Result<_>>().unwrap();
        Said { output, marks }
    }

    #[test]
    fn what_a_transfer_cost_stands_at_its_second_mark() {
        let transfers = [line(Subject::NginxUser), line(Subject::LinerateUser)].join("\n");
        let marks = "mark 0 user 9 kernel 9 adapter 0\nmark 1 user 3000 kernel 1000 adapter 0\n\
                     mark 2 user 9 kernel 9 adapter 0\nmark 3 user 1000 kernel 500 adapter 0\n";
        let counted = join(&said(transfers, marks)).unwrap();
        assert_eq!((counted[1].user, counted[1].kernel), (1000, 500));
        let text = table(&counted);
        assert!(text.contains("| nginx, TLS in user space | 3.000 | 1.000 | 4.000 | 0.0 % |  |\n"), "{text}");
        assert!(
            text.contains("| linerate, user engine | 1.000 | 0.500 | 1.500 | 0.0 % | 0.38 |\n"),
            "{text}"
        );
    }

    #[test]
    fn a_mark_too_few_is_no_result() {
        let one = line(Subject::NginxPlain);
        assert!(join(&said(one, "mark 0 user 1 kernel 1 adapter 0\n")).is_err());
        assert!(join(&said("hello\n".to_owned(), "")).is_err());
    }

    #[test]
    fn medians_are_taken_of_each_column() {
        let transfer = Transfer { subject: Subject::NginxPlain, body_bytes: 10 };
        let counted = [(10, 10), (40, 20), (20, 60)].map(|(user, kernel)| Counted { transfer, user, kernel });
        let cost = per_byte(&counted, Subject::NginxPlain).unwrap();
        assert_eq!((cost.user, cost.kernel, cost.whole, cost.spread), (2.0, 2.0, 6.0, 1.0));
        assert_eq!(per_byte(&counted, Subject::NginxUser), None);
    }
}
