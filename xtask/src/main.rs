//! `cargo xtask TASK`: the project's own tasks, which need no other tool than cargo.

mod guest;
#[cfg(test)]
mod invariants;
mod linerate;
mod readme;

use std::process::ExitCode;

use clap::Parser;

/// What can be asked for on the command line.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "linerate's own tasks")]
enum Task {
    /// What is measured in a guest with a kernel of its own (guest/README.md).
    #[command(subcommand)]
    Guest(guest::GuestTask),
    /// Write README's figures anew, from the runs of `make readme-figures`.
    ReadmeFigures(readme::ReadmeFigures),
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Guest(task) => task.run(),
        Task::ReadmeFigures(task) => task.run(),
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
