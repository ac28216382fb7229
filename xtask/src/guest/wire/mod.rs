//! `cargo xtask guest cost --wire`: the servers are in the guest, their client is on the host, so that what is counted is
//! the sender's work alone.
//!
//! Between them is a virtio adapter on a tap device ([`tap`]), in a network namespace that ends with its last process.
//! [`adapter`] is the guest's end. The guest tells the client what to do by the lines of [`control`]. What is protected by ESP
//! is so between [`esp`] in the guest and [`esp_peer`] on the host.

pub(super) mod adapter;
pub(super) mod control;
pub(super) mod esp;
pub(super) mod esp_peer;
pub(super) mod tap;

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs a program to its end, and returns what it printed.
fn output_of(program: &str, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed: {}", arguments.join(" "), said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
