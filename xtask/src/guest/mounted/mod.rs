//! `cargo xtask guest mounted`: what a mounted client pays in listings, and in reads beside connections that fell silent:
//! `linerate nfs` beside knfsd.
//!
//! Linux' own client and both servers are in one guest, on its one processor, whose clock goes by instructions: a nanosecond is one.
//! So a time here is what client and server execute together, and the idle waits between. [`inside`] runs in the guest,
//! [`outcome`] makes the tables.

mod inside;
mod mount;
mod outcome;
mod silence;
mod work;

use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::count::nfs_tree;
use super::counted_guest::{CountedGuests, Limits};
use super::subject::NfsKind;
use crate::linerate::{self, workspace};
pub(crate) use inside::{InsideOptions, run as run_inside};
use work::Work;

const LIMITS: Limits = Limits { seconds: 1800, memory_mib: 3072 };

/// Flags of `cargo xtask guest mounted`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// Only this kernel (6.12, 7.3, …); may be repeated. 6.12, if not said.
    #[arg(long, value_name = "LABEL", default_value = "6.12")]
    kernel: Vec<String>,
    /// The linerate binary; without it, `cargo build --release --package linerate` makes one.
    #[arg(long, value_name = "FILE")]
    linerate: Option<PathBuf>,
    #[command(flatten)]
    amounts: Amounts,
}

/// How much is done.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Amounts {
    /// Only these parts.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Entries of the large directory.
    #[arg(long, default_value_t = 100_000)]
    entries: u32,
    /// Files of the tree, 100 in each directory.
    #[arg(long, default_value_t = 10_000)]
    files: u32,
    /// How often each is done; the tables have medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Reads beside each number of silent connections, in each round.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    reads: u32,
}

/// What can be done by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// A large directory is listed, a tree is searched and listed at length.
    Listings,
    /// Reads beside silent connections.
    Reads,
}

impl Amounts {
    fn includes(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    fn arguments(&self) -> Vec<std::ffi::OsString> {
        let numbers = [
            ("--entries", self.entries),
            ("--files", self.files),
            ("--rounds", self.rounds),
            ("--reads", self.reads),
        ];
        let mut arguments: Vec<std::ffi::OsString> =
            numbers.into_iter().flat_map(|(flag, number)| [flag.into(), number.to_string().into()]).collect();
        match self.only {
            Some(Part::Listings) => arguments.extend(["--only".into(), "listings".into()]),
            Some(Part::Reads) => arguments.extend(["--only".into(), "reads".into()]),
            None => {}
        }
        arguments
    }
}

/// What the guest says: lines of JSON on standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Line {
    /// Two marks of the plugin around a piece of work.
    Worked {
        /// By which server.
        server: NfsKind,
        /// Over TLS, or in the clear.
        tls: bool,
        /// What.
        work: Work,
        /// CPU time of the server's threads, in nanoseconds.
        server_ns: u64,
    },
    /// Reads over TLS, one after the other.
    Read {
        /// By which server.
        server: NfsKind,
        /// Connections that had asked for TLS and said nothing since.
        silent: u32,
        /// What each took, in nanoseconds.
        took_ns: Vec<u64>,
    },
}

/// Measures, and prints tables for each kernel.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = workspace();
    let guests = CountedGuests::prepare(&workspace)?;
    let program = linerate::find(options.linerate.as_deref(), &workspace)?;
    let tree = nfs_tree(&workspace)?;
    println!("linerate: {}", linerate::version(&program)?);
    for kernel in &options.kernel {
        let mut arguments = vec!["mounted-inside".into(), "--linerate".into(), program.clone().into()];
        arguments.extend(["--nfs-tree".into(), tree.clone().into()]);
        arguments.extend(options.amounts.arguments());
        let said = guests.run(kernel, &format!("mounted-{kernel}"), LIMITS, &arguments)?;
        println!("\n### Linux {kernel}\n\n{}", outcome::text(&said)?);
    }
    Ok(())
}
