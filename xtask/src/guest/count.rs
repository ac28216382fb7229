//! The part on the host: builds what is needed, boots guests that count, and makes the table.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use linerate_bench::statistics::Summary;

use super::counted_guest::{CountedGuests, Limits, Mark, Said, Written};
use super::wire::adapter::{Facts, Sent};
use super::wire::tap;
use super::{Line, Subject, Transfer, streams};
use crate::linerate::{self, workspace};

const LIMITS: Limits = Limits { seconds: 1800, memory_mib: 2048 };

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
    /// Only the sender's work: the client is on the host, across a virtio adapter that cuts the segments.
    #[arg(long)]
    wire: bool,
    /// With `--wire`: only the senders that no server is around, which copy or lend to the kernel what they send.
    #[arg(long, requires = "wire")]
    senders: bool,
    /// With `--wire`: only NFS, READs of 1 MiB, knfsd and `linerate nfs`.
    #[arg(long, requires = "wire", conflicts_with = "senders")]
    nfs: bool,
    /// With `--wire`: MTU of the adapter, in bytes.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(576..=65_535))]
    mtu_bytes: u32,
    /// With `--wire`: only `linerate stream`, by engine and by I/O size, with a copy into the socket and without.
    #[arg(long, requires = "wire", conflicts_with_all = ["senders", "nfs"])]
    streams: bool,
    /// With `--streams`: only this I/O size, in bytes; may be repeated.
    #[arg(long, requires = "streams", value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    io_size: Vec<u32>,
    /// Also the bytes that are written to memory for each byte of body, by copies and ciphers: several times slower.
    #[arg(long, conflicts_with = "streams")]
    written: bool,
    /// Set by `--wire` itself: this process is alone in its network namespace.
    #[arg(long, hide = true)]
    in_namespace: bool,
}

/// Counts, and prints a table for each kernel.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = workspace();
    let guests = CountedGuests::prepare(&workspace)?.counting_written(options.written);
    let kernels = match &options.kernel[..] {
        [] => guests.kernels()?,
        named => named.to_vec(),
    };
    let program = linerate::find(options.linerate.as_deref(), &workspace)?;
    if options.wire {
        if !options.in_namespace {
            match tap::continue_in_namespace(&options.again(&kernels, &program))? {}
        }
        tap::make(options.mtu_bytes)?;
    }
    println!("linerate: {}", linerate::version(&program)?);
    for kernel in kernels {
        if options.streams {
            let table = streams::count(&options.streams(&program), &kernel, &guests, &workspace)?;
            println!("\n### Linux {kernel}\n\n{table}");
            continue;
        }
        let mut arguments = options.inside(&program);
        if options.nfs {
            arguments.extend(["--nfs-tree".into(), nfs_tree(&workspace)?.into()]);
        }
        let said = if options.wire {
            let share = workspace.join("target/guest").join(format!("wire-{kernel}"));
            let guests = guests.clone().with_flags(tap::guest_flags(&share));
            tap::with_client(|client| {
                let client = ["--client".into(), client.to_string().into()];
                guests.run(
                    &kernel,
                    &format!("wire-{kernel}"),
                    LIMITS,
                    &[arguments.as_slice(), &client].concat(),
                )
            })
        } else {
            guests.run(&kernel, &format!("cost-{kernel}"), LIMITS, &arguments)
        };
        println!("\n### Linux {kernel}\n\n{}", join(&said?)?.text());
    }
    Ok(())
}

/// Where `guest/nfs-tree` has the programs that knfsd and the kernel's client need.
pub(super) fn nfs_tree(workspace: &Path) -> Result<PathBuf> {
    let output = Command::new(workspace.join("guest/nfs-tree"))
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run guest/nfs-tree")?;
    if !output.status.success() {
        bail!("the programs of NFS cannot be had (the reason is printed above)");
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

impl Options {
    /// The arguments of this program in the guest.
    fn inside(&self, linerate: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["cost-inside".into()];
        arguments.extend(self.common(linerate));
        arguments.extend(self.senders.then(|| "--senders".into()));
        arguments
    }

    /// The arguments of this program in a network namespace of its own.
    fn again(&self, kernels: &[String], linerate: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> =
            ["guest", "cost", "--wire", "--in-namespace"].map(Into::into).into();
        arguments.extend(self.common(linerate));
        arguments.extend(self.senders.then(|| "--senders".into()));
        arguments.extend(self.nfs.then(|| "--nfs".into()));
        arguments.extend(self.streams.then(|| "--streams".into()));
        arguments.extend(self.written.then(|| "--written".into()));
        arguments.extend(self.io_size.iter().flat_map(|size| ["--io-size".into(), size.to_string().into()]));
        arguments.extend(kernels.iter().flat_map(|kernel| ["--kernel".into(), kernel.into()]));
        arguments
    }

    fn streams(&self, linerate: &Path) -> streams::Wanted {
        let io_sizes_bytes = match &self.io_size[..] {
            [] => streams::IO_SIZES_BYTES.to_vec(),
            named => named.to_vec(),
        };
        streams::Wanted {
            linerate: linerate.to_owned(),
            body_bytes: self.body_bytes,
            transfers: self.transfers,
            io_sizes_bytes,
            mtu_bytes: self.mtu_bytes,
        }
    }

    fn common(&self, linerate: &Path) -> [OsString; 8] {
        let [bytes, transfers, mtu] =
            [self.body_bytes, self.transfers.into(), self.mtu_bytes.into()].map(|number| number.to_string());
        let linerate = linerate.into();
        [
            "--linerate".into(),
            linerate,
            "--body-bytes".into(),
            bytes.into(),
            "--transfers".into(),
            transfers.into(),
            "--mtu-bytes".into(),
            mtu.into(),
        ]
    }
}

/// What one guest counted.
#[derive(Debug, Default)]
struct Count {
    /// How the guest sent, where the client was on the host.
    adapter: Option<Facts>,
    control_lines: Vec<(Subject, Executed)>,
    transfers: Vec<Counted>,
    /// Transfers that are in no figure: TCP sent segments again.
    repeated: u32,
}

/// A transfer and what the whole machine executed for it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    transfer: Transfer,
    executed: Executed,
}

/// Instructions, and what they wrote where that was counted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Executed {
    user: u64,
    kernel: u64,
    written: Option<Written>,
}

/// What was executed between two marks stands at the second.
fn join(said: &Said) -> Result<Count> {
    let mut pairs = said.marks.chunks_exact(2).map(|pair| {
        let Mark { user, kernel, written, .. } = pair[1];
        Executed { user, kernel, written }
    });
    let mut count = Count::default();
    for line in said.output.lines() {
        let line = serde_json::from_str(line).with_context(|| format!("the guest said {line:?}"))?;
        let mut executed = || pairs.next().context("there are fewer marks than two for each transfer");
        match line {
            Line::Adapter(facts) => count.adapter = Some(facts),
            Line::ControlLines(subject) => count.control_lines.push((subject, executed()?)),
            Line::Transfer(transfer) => {
                let executed = executed()?;
                if transfer.sent.is_some_and(|sent| sent.retransmitted_segments > 0) {
                    count.repeated += 1;
                } else {
                    count.transfers.push(Counted { transfer, executed });
                }
            }
        }
    }
    if pairs.next().is_some() || !said.marks.len().is_multiple_of(2) {
        bail!("{} marks are more than two for each transfer", said.marks.len());
    }
    Ok(count)
}

/// Instructions per byte of body, without those of control lines.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PerByte {
    user: f64,
    kernel: f64,
    whole: f64,
    /// Largest and smallest of `whole`, apart by so much of the median.
    spread: f64,
    /// Bytes written to memory, by user space and the kernel, where they were counted.
    written: Option<(f64, f64)>,
    /// Where the client is on the host.
    frames: Option<Frames>,
}

/// What went through the adapter in a transfer: medians.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Frames {
    /// Mean length of those that it was handed.
    bytes: f64,
    /// How many came, acknowledgements nearly all.
    received: f64,
}

impl Count {
    fn per_byte(&self, subject: Subject) -> Option<PerByte> {
        let of = |count: fn(&Executed) -> u64| -> Vec<f64> {
            let lines = self.control_lines(subject, count);
            let own = self.transfers.iter().filter(|one| one.transfer.subject == subject);
            own.map(|one| (count(&one.executed) as f64 - lines) / one.transfer.body_bytes as f64).collect()
        };
        let whole = of(Executed::whole);
        let median = Summary::of(&whole)?.median;
        let (low, high) =
            whole.iter().fold((f64::MAX, f64::MIN), |(low, high), &one| (low.min(one), high.max(one)));
        Some(PerByte {
            user: Summary::of(&of(|one| one.user))?.median,
            kernel: Summary::of(&of(|one| one.kernel))?.median,
            whole: median,
            spread: (high - low) / median,
            written: self.counts_written().then_some((
                Summary::of(&of(|one| one.written.map_or(0, |written| written.user)))?.median,
                Summary::of(&of(|one| one.written.map_or(0, |written| written.kernel)))?.median,
            )),
            frames: self.frames(subject),
        })
    }

    fn counts_written(&self) -> bool {
        self.transfers.iter().any(|one| one.executed.written.is_some())
    }

    /// What the control lines of a transfer take: the median.
    fn control_lines(&self, subject: Subject, count: fn(&Executed) -> u64) -> f64 {
        let own = self.control_lines.iter().filter(|(of, _)| *of == subject);
        let counts: Vec<f64> = own.map(|(_, executed)| count(executed) as f64).collect();
        Summary::of(&counts).map_or(0.0, |summary| summary.median)
    }

    fn frames(&self, subject: Subject) -> Option<Frames> {
        let own = self.transfers.iter().filter(|one| one.transfer.subject == subject);
        let sent: Vec<Sent> = own.filter_map(|one| one.transfer.sent).collect();
        let median = |value: fn(&Sent) -> f64| {
            Some(Summary::of(&sent.iter().map(value).collect::<Vec<f64>>())?.median)
        };
        Some(Frames {
            bytes: median(|sent| sent.bytes as f64 / sent.frames as f64)?,
            received: median(|sent| sent.received_frames as f64)?,
        })
    }

    /// Markdown, as docs/MEASUREMENTS.md has it.
    fn text(&self) -> String {
        self.adapter.as_ref().map_or_else(String::new, |adapter| self.about(adapter)) + &self.table()
    }

    /// What has to be known of a count over the adapter.
    fn about(&self, adapter: &Facts) -> String {
        let lines = Subject::ALL.map(|subject| self.control_lines(subject, Executed::whole));
        let most = lines.into_iter().fold(0.0, f64::max);
        format!(
            "{}; {most:.0} instructions of control lines at most are subtracted from each transfer; {} transfers were \
             repeated because TCP sent segments again\n\n",
            adapter.words(),
            self.repeated,
        )
    }

    fn table(&self) -> String {
        let (counted, columns, rule) = match self.adapter {
            Some(_) => {
                ("sender only, virtio adapter with TSO", " bytes a frame | frames received |", "---|---|")
            }
            None => ("whole machine", "", ""),
        };
        let (written_columns, written_rule) = match self.counts_written() {
            true => (" written by user | by kernel |", "---|---|"),
            false => ("", ""),
        };
        let mut text = format!(
            "| instructions per byte, {counted} | user | kernel | both | spread | of nginx's, knfsd's, or of the copy |\
             {written_columns}{columns}\n|---|---|---|---|---|---|{written_rule}{rule}\n"
        );
        for subject in Subject::ALL {
            let Some(cost) = self.per_byte(subject) else { continue };
            let yardstick = subject.yardstick().and_then(|nginx| self.per_byte(nginx));
            let ratio =
                yardstick.map_or_else(String::new, |nginx| format!("{:.2}", cost.whole / nginx.whole));
            let frames = cost.frames.map_or_else(String::new, |frames| {
                format!(" {:.0} | {:.0} |", frames.bytes, frames.received)
            });
            let written =
                cost.written.map_or_else(String::new, |(user, kernel)| format!(" {user:.2} | {kernel:.2} |"));
            text += &format!(
                "| {} | {:.3} | {:.3} | {:.3} | {:.1} % | {ratio} |{written}{frames}\n",
                subject.title(),
                cost.user,
                cost.kernel,
                cost.whole,
                100.0 * cost.spread
            );
        }
        text
    }
}

impl Executed {
    fn whole(&self) -> u64 {
        self.user + self.kernel
    }
}

#[cfg(test)]
mod tests {
    use linerate_bench::result::NetworkUsed;

    use super::*;

    fn transfer(subject: Subject, sent: Option<Sent>) -> Line {
        Line::Transfer(Transfer { subject, body_bytes: 1000, sent })
    }

    fn over_wire(subject: Subject, retransmitted_segments: u64) -> [Line; 2] {
        let sent = Sent { frames: 3, bytes: 6000, received_frames: 12, retransmitted_segments };
        [Line::ControlLines(subject), transfer(subject, Some(sent))]
    }

    #[test]
    fn what_a_transfer_cost_stands_at_its_second_mark() {
        let lines = [Subject::NginxUser, Subject::LinerateUser].map(|subject| transfer(subject, None));
        let count = join(&Said::of_test(&lines, &[(3000, 1000), (1000, 500)])).unwrap();
        let text = count.text();
        assert!(text.contains("| nginx, TLS in user space | 3.000 | 1.000 | 4.000 | 0.0 % |  |\n"), "{text}");
        assert!(
            text.contains("| linerate, user engine | 1.000 | 0.500 | 1.500 | 0.0 % | 0.38 |\n"),
            "{text}"
        );
    }

    #[test]
    fn control_lines_are_subtracted_and_a_transfer_that_was_repeated_is_in_no_figure() {
        let facts = Facts {
            network: NetworkUsed::default(),
            mtu_bytes: 1500,
            offloads: [("tso".to_owned(), "on".to_owned())].into(),
        };
        let subject = Subject::LineratePlain;
        let lines =
            [vec![Line::Adapter(facts)], over_wire(subject, 1).into(), over_wire(subject, 0).into()].concat();
        let count = join(&Said::of_test(&lines, &[(10, 100), (7000, 7000), (20, 200), (515, 1150)])).unwrap();
        let cost = count.per_byte(subject).unwrap();
        assert_eq!((cost.user, cost.kernel, cost.whole), (0.5, 1.0, 1.5));
        assert_eq!(cost.frames, Some(Frames { bytes: 2000.0, received: 12.0 }));
        let text = count.text();
        assert!(text.contains("MTU 1500 bytes; tso on; "), "{text}");
        assert!(text.contains("165 instructions of control lines at most"), "{text}");
        assert!(text.contains("1 transfers were repeated"), "{text}");
        assert!(text.contains("| 0.500 | 1.000 | 1.500 | 0.0 % |  | 2000 | 12 |\n"), "{text}");
    }

    #[test]
    fn what_was_written_stands_beside_what_was_executed() {
        let mut said = Said::of_test(&[transfer(Subject::NginxUser, None)], &[(3000, 1000)]);
        said.marks[1].written = Some(Written { user: 1500, kernel: 2250 });
        let text = join(&said).unwrap().text();
        assert!(
            text.contains("| of nginx's, knfsd's, or of the copy | written by user | by kernel |\n"),
            "{text}"
        );
        assert!(text.contains("| 3.000 | 1.000 | 4.000 | 0.0 % |  | 1.50 | 2.25 |\n"), "{text}");
    }

    #[test]
    fn a_mark_too_few_or_too_many_is_no_result() {
        let one = [transfer(Subject::NginxPlain, None)];
        assert!(join(&Said::of_test(&one, &[])).is_err());
        assert!(join(&Said::of_test(&one, &[(1, 1), (1, 1)])).is_err());
        let mut half = Said::of_test(&one, &[(1, 1), (1, 1)]);
        half.marks.pop();
        assert!(join(&half).is_err());
        assert!(join(&Said { output: "hello\n".to_owned(), marks: Vec::new() }).is_err());
    }

    #[test]
    fn medians_are_taken_of_each_column() {
        let transfer = Transfer { subject: Subject::NginxPlain, body_bytes: 10, sent: None };
        let transfers = [(10, 10), (40, 20), (20, 60)]
            .map(|(user, kernel)| Counted { transfer, executed: Executed { user, kernel, written: None } });
        let count = Count { transfers: transfers.into(), ..Count::default() };
        let cost = count.per_byte(Subject::NginxPlain).unwrap();
        assert_eq!((cost.user, cost.kernel, cost.whole, cost.spread), (2.0, 2.0, 6.0, 1.0));
        assert_eq!(count.per_byte(Subject::NginxUser), None);
    }
}
