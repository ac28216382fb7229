//! `cargo xtask TASK`: the project's own tasks, which need no other tool than cargo.

mod guest;
#[cfg(test)]
mod invariants;
mod peers;

use std::process::ExitCode;

use clap::Parser;

/// What can be asked for on the command line.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "linerate's own tasks")]
enum Task {
    /// Measure linerate beside nginx on this machine: server CPU per gigabyte and per request.
    Peers(Box<peers::Options>),
    /// What is measured in a guest with a kernel of its own (guest/README.md).
    #[command(subcommand)]
    Guest(guest::GuestTask),
    /// The load client, started by `peers` in its own process: an order on standard input, answers on output.
    #[command(hide = true)]
    PeersClient,
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Peers(options) => peers::run(&options),
        Task::Guest(task) => task.run(),
        Task::PeersClient => peers::run_client(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace that RUST_BACKTRACE would add: these errors are for operators.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
