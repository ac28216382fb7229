//! `cargo xtask guest cost`, `never-lose` and `mounted`: what bytes, responses and listings cost in instructions, counted in guests (see
//! guest/README.md).
//!
//! An emulated processor says nothing of speed, but it can count: the same transfer takes the same instructions, to
//! about one in a hundred, on any machine. One AES round is one instruction, a copied 32 bytes are two: like is to be
//! compared with like.
//!
//! [`counted_guest`] boots guests with QEMU's counting plugin. For `cost`, [`count`] puts results together on the host, and
//! [`inside`] is this program in the guest, which starts servers, fetches, and marks where counting begins and ends. Both
//! know the [`Subject`]s. [`server`] starts the servers of `linerate bench`,
//! [`streams`] counts `linerate stream`, [`sender`] has senders without a server around them, [`client`] fetches, in the guest or, for what only
//! the sender pays, on the host ([`wire`]). [`never_lose`] has the same for every engine beside `auto`, [`mounted`] for
//! Linux' NFS client with a server of its own kernel or ours.

mod client;
mod count;
mod counted_guest;
mod in_memory;
mod inside;
mod mounted;
mod never_lose;
mod nfs;
mod sender;
mod served_file;
mod server;
mod streams;
mod subject;
mod wire;

use std::io::Write;

use anyhow::Result;

pub(crate) use count::Options as CountOptions;
pub(crate) use inside::Options as InsideOptions;
use subject::Subject;
use wire::adapter::{Facts, Sent};

/// What `cargo xtask guest` can do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum GuestTask {
    /// Count the instructions that a byte costs: plaintext, linerate's engines, nginx with and without kernel TLS; or NFS; or streams.
    Cost(CountOptions),
    /// The part of `cost` that runs in the guest.
    #[command(hide = true)]
    CostInside(InsideOptions),
    /// Count what a mounted NFS client pays in listings, and time its reads beside connections that fell silent: `linerate nfs`
    /// beside knfsd.
    Mounted(mounted::Options),
    /// The part of `mounted` that runs in the guest.
    #[command(hide = true)]
    MountedInside(mounted::InsideOptions),
    /// The part of `cost --wire --streams` that runs in the guest.
    #[command(hide = true)]
    StreamsInside(streams::InsideOptions),
    /// The client of `never-lose`: an order on standard input, answers on output.
    #[command(hide = true)]
    Client,
    /// Count what every engine costs beside `auto`, from 1 kB to 1 GB, behind software adapters of 850, 16,500 and 100,000
    /// set-ups a second.
    NeverLose(never_lose::Options),
    /// The part of `never-lose` that runs in the guest.
    #[command(hide = true)]
    NeverLoseInside(never_lose::InsideOptions),
}

impl GuestTask {
    /// Does it.
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Self::Cost(options) => count::run(options),
            Self::CostInside(options) => inside::run(options),
            Self::Mounted(options) => mounted::run(options),
            Self::MountedInside(options) => mounted::run_inside(options),
            Self::StreamsInside(options) => streams::run_inside(options),
            Self::Client => client::serve_order(),
            Self::NeverLose(options) => never_lose::run(options),
            Self::NeverLoseInside(options) => never_lose::run_inside(options),
        }
    }
}

/// A line of JSON from a guest.
fn say(line: &impl serde::Serialize) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(line)?)?;
    Ok(output.flush()?)
}

/// What the guest of `cost` says: lines of JSON on standard output, in the order of the plugin's marks.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
enum Line {
    /// How it sends, where the client is on the host. No marks.
    Adapter(Facts),
    /// Two marks around a control line and its answer, on this subject's next transfer's behalf.
    ControlLines(Subject),
    /// Two marks around a transfer, and around the same control lines where the client is on the host.
    Transfer(Transfer),
}

/// One transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Transfer {
    subject: Subject,
    /// Length of the body.
    body_bytes: u64,
    /// By the adapter, where the client is on the host.
    sent: Option<Sent>,
}
