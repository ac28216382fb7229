//! The client of a guest: connections that block, one thread, so that a count has nothing in it that is not asked for.
//!
//! In `never-lose` it runs in a process of its own, this program started again as `guest client`, so that it can be put into
//! a network namespace and its work is told apart from the server's. Protocol, one JSON value a line: the parent sends an
//! [`Order`]; for each round the client prepares and answers `Ready`, works on the parent's `go`, and answers `Done`.

pub(super) mod channel;
pub(super) mod counted;
pub(super) mod discard;
pub(super) mod nfs;
pub(super) mod response;
pub(super) mod steps;
pub(super) mod verify;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail};
use linerate_bench::network::Network;
use serde::{Deserialize, Serialize};

use counted::{Counted, Spent};

/// Which server, how, and what to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    /// The server.
    pub(super) server: SocketAddr,
    /// TLS.
    pub(super) tls: TlsOrder,
    /// The work.
    pub(super) job: Counted,
}

/// AES-256-GCM and X25519 are offered, and the certificate is trusted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TlsOrder {
    /// The server's certificate.
    pub(super) certificate: PathBuf,
    /// The one version.
    pub(super) version: Version,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Version {
    /// 1.2, which adapters can encrypt.
    Tls12,
    /// 1.3.
    Tls13,
}

/// What was transferred.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Responses received whole.
    pub(super) requests: u64,
    /// Bytes of response bodies.
    pub(super) body_bytes: u64,
    /// CPU time and time that the client's work took.
    pub(super) spent: Spent,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Ready,
    Done(Outcome),
    Failed(String),
}

/// A client process, seen from the parent.
#[derive(Debug)]
pub(super) struct Client {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Client {
    /// Starts a client at the client's end of `network`; returns when it is ready.
    pub(super) fn prepare(network: &Network, order: &Order) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = network.client_command(program);
        command.args(["guest", "client"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the client")?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the client has no standard input or output");
        };
        let mut client = Self { child, orders: Some(orders), answers: BufReader::new(answers) };
        client.tell(&serde_json::to_string(order)?)?;
        client.wait_until_ready()?;
        Ok(client)
    }

    /// Returns when it is ready: for the first round, and after each for the next, if there is one.
    pub(super) fn wait_until_ready(&mut self) -> Result<()> {
        match self.answer()? {
            Answer::Ready => Ok(()),
            Answer::Failed(reason) => bail!("the client failed before its start: {reason}"),
            Answer::Done(_) => bail!("the client was done before its start"),
        }
    }

    /// Lets it work; returns when it is done.
    pub(super) fn go(&mut self) -> Result<Outcome> {
        self.tell("go")?;
        match self.answer()? {
            Answer::Done(outcome) => Ok(outcome),
            Answer::Failed(reason) => bail!("the client failed: {reason}"),
            Answer::Ready => bail!("the client is ready twice"),
        }
    }

    /// The process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        let orders = self.orders.as_mut().context("the client's standard input is closed")?;
        writeln!(orders, "{line}").context("the client has gone")
    }

    fn answer(&mut self) -> Result<Answer> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("the client does not answer")?;
        serde_json::from_str(&line).with_context(|| format!("the client ended early (said {line:?})"))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

/// The client process: one order, then the end.
pub(super) fn serve_order() -> Result<()> {
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line).context("the order is not understood")?;
    for _ in 0..order.job.rounds {
        let outcome = round(&order, || {
            say(&Answer::Ready)?;
            let mut go = String::new();
            input.read_line(&mut go)?;
            if go.trim() != "go" {
                bail!("called off");
            }
            Ok(())
        });
        match outcome {
            Ok(outcome) => say(&Answer::Done(outcome))?,
            Err(error) => return say(&Answer::Failed(format!("{error:#}"))),
        }
    }
    Ok(())
}

/// A round, with `start` called between preparation and work.
fn round(order: &Order, start: impl FnOnce() -> Result<()>) -> Result<Outcome> {
    let dialer = channel::Dialer::new(order.server, Some(&order.tls))?;
    let prepared = order.job.prepare(&dialer)?;
    start()?;
    order.job.run(&dialer, prepared)
}

fn say(answer: &Answer) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(answer)?)?;
    Ok(output.flush()?)
}
