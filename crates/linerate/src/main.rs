//! The binary: from the command line to library calls, nothing else.

mod bench;
mod calibrate;
mod check;
mod cli;
mod doctor;
mod key_list;
mod load;
mod manual;
mod nfs;
mod one_of;
mod output;
mod plan;
mod serve;
mod stream;
mod summary;
mod usage_error;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};
use crate::output::print;
use crate::usage_error::UsageError;

/// The exit status when the configuration or the run failed; clap exits with 2 when the command line is wrong.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(status) => status,
        Err(error) => match error.downcast::<UsageError>() {
            Ok(usage) => usage.of(Cli::command()).exit(),
            Err(error) => {
                // Without a prefix: editors and terminals jump to a line that begins with FILE:LINE:COLUMN.
                // Standard error gone is no reason for another exit status.
                let _ = writeln!(io::stderr(), "{error}");
                ExitCode::from(FAILED)
            }
        },
    }
}

fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Serve(arguments) => serve::serve(arguments.source("serve")?)?,
        Command::Nfs(arguments) => serve::serve(arguments.source()?)?,
        Command::Check(arguments) if arguments.keys => print(key_list::text().as_bytes())?,
        Command::Check(arguments) => print(check::check(&arguments.serve.source("check")?)?.as_bytes())?,
        Command::Bench(arguments) => return bench::bench(arguments),
        Command::Load(arguments) => return load::load(*arguments),
        Command::Calibrate(arguments) => return calibrate::calibrate(&arguments),
        Command::Doctor(arguments) => return doctor::doctor(arguments),
        Command::Stream(arguments) => return stream::stream(*arguments),
        Command::Plan(arguments) => return plan::plan(&arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "linerate", &mut script);
            print(&script)?;
        }
        Command::Man => print(&manual::page()?)?,
    }
    Ok(ExitCode::SUCCESS)
}
