//! `cargo xtask guest cost`: what a byte costs in instructions, counted in a guest (see guest/README.md).
//!
//! An emulated processor says nothing of speed, but it can count: the same transfer takes the same instructions, to
//! about one in a hundred, on any machine. One AES round is one instruction, a copied 32 bytes are two: like is to be
//! compared with like.
//!
//! [`count`] runs on the host: it boots guests with QEMU's counting plugin and puts results together. [`inside`] is
//! this program in the guest, which starts servers, fetches, and marks where counting begins and ends. Both know the
//! [`Subject`]s.

mod count;
mod inside;
mod subject;

use anyhow::Result;

pub(crate) use count::Options as CountOptions;
pub(crate) use inside::Options as InsideOptions;
use subject::Subject;

/// What `cargo xtask guest` can do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum GuestTask {
    /// Count the instructions that a byte costs: plaintext, linerate's engines, nginx with and without kernel TLS.
    Cost(CountOptions),
    /// The part of `cost` that runs in the guest.
    #[command(hide = true)]
    CostInside(InsideOptions),
}

impl GuestTask {
    /// Does it.
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Self::Cost(options) => count::run(options),
            Self::CostInside(options) => inside::run(options),
        }
    }
}

/// One transfer, as the guest reports it: a line of JSON on standard output, in the order of the plugin's marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Transfer {
    subject: Subject,
    /// Length of the body.
    body_bytes: u64,
}
