//! The load clients. All but wrk run in a process of their own, this program started again as `peers-client`, so
//! that they can be put into a network namespace and their work is not mixed with the accounting's.
//!
//! Protocol, one JSON value a line: the parent sends an [`Order`]; the client prepares (connections that are not
//! part of the measured work) and answers `Ready`; on the parent's `go` it works and answers `Done`; then it keeps
//! its connections until its standard input ends. What has several rounds begins again with preparing.

pub(crate) mod channel;
pub(crate) mod counted;
pub(crate) mod discard;
pub(crate) mod handshakes;
pub(crate) mod idle;
pub(crate) mod response;
pub(crate) mod slow;
pub(crate) mod verify;
pub(crate) mod wrk;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::network::Link;
use super::options::Cipher;

/// Which server, how, and what to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The server.
    pub(crate) server: SocketAddr,
    /// TLS, or plain HTTP without it.
    pub(crate) tls: Option<TlsOrder>,
    /// The work.
    pub(crate) job: Job,
}

/// The one suite that is offered, and the certificate that is trusted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TlsOrder {
    /// The server's certificate.
    pub(crate) certificate: PathBuf,
    /// The suite.
    pub(crate) cipher: Cipher,
    /// The one version.
    pub(crate) version: Version,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Version {
    /// 1.2, which adapters can encrypt.
    Tls12,
    /// 1.3.
    Tls13,
}

/// What a client can do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Fetch and compare with the file, byte for byte.
    Verify(verify::Verify),
    /// Fetch and throw away unread.
    Discard(discard::Discard),
    /// Fetch between two marks of the guest's counting plugin.
    Counted(counted::Counted),
    /// One full handshake and one small file per connection.
    Handshakes(handshakes::Handshakes),
    /// Open connections, fetch once on each, and keep them.
    Idle(idle::Idle),
    /// Fetch on many connections, a record at a time.
    Slow(slow::Slow),
}

/// What was transferred.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Responses received whole.
    pub(crate) requests: u64,
    /// Bytes of response bodies.
    pub(crate) body_bytes: u64,
    /// Bytes received on the sockets, where the client counts them.
    pub(crate) wire_bytes: u64,
    /// Share of the reads that found something, where the client spins: near 1 it is the client that is the limit.
    pub(crate) fruitful_reads: Option<f64>,
    /// What was agreed on, where the client looks.
    pub(crate) agreed: Option<String>,
    /// CPU time and time that the client's work took, where it says.
    pub(crate) spent: Option<counted::Spent>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Ready,
    Done(Outcome),
    Failed(String),
}

/// A client process, seen from the parent.
#[derive(Debug)]
pub(crate) struct Client {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Client {
    /// Starts a client at the client's end of `link`; returns when it is ready.
    pub(crate) fn prepare(link: &Link, order: &Order) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = link.client_command(program);
        command.arg("peers-client").stdin(Stdio::piped()).stdout(Stdio::piped());
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
    pub(crate) fn wait_until_ready(&mut self) -> Result<()> {
        match self.answer()? {
            Answer::Ready => Ok(()),
            Answer::Failed(reason) => bail!("the client failed before its start: {reason}"),
            Answer::Done(_) => bail!("the client was done before its start"),
        }
    }

    /// Lets it work; returns when it is done. It keeps its connections until it is dropped.
    pub(crate) fn go(&mut self) -> Result<Outcome> {
        self.tell("go")?;
        match self.answer()? {
            Answer::Done(outcome) => Ok(outcome),
            Answer::Failed(reason) => bail!("the client failed: {reason}"),
            Answer::Ready => bail!("the client is ready twice"),
        }
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
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
pub(crate) fn serve_order() -> Result<()> {
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line).context("the order is not understood")?;
    super::raise_file_limit();
    let rounds = match &order.job {
        Job::Counted(job) => job.rounds,
        _ => 1,
    };
    for _ in 0..rounds {
        let answer = run(&order, || {
            say(&Answer::Ready)?;
            let mut go = String::new();
            input.read_line(&mut go)?;
            if go.trim() != "go" {
                bail!("called off");
            }
            Ok(())
        });
        match answer {
            Ok((outcome, connections)) => {
                say(&Answer::Done(outcome))?;
                if rounds == 1 {
                    let mut end = String::new();
                    input.read_line(&mut end)?;
                }
                drop(connections);
            }
            Err(error) => return say(&Answer::Failed(format!("{error:#}"))),
        }
    }
    Ok(())
}

/// Runs the job, with `start` called between preparation and work; the connections that outlive it come along.
fn run(order: &Order, start: impl FnOnce() -> Result<()>) -> Result<(Outcome, Vec<channel::Channel>)> {
    let dialer = channel::Dialer::new(order)?;
    match &order.job {
        Job::Idle(job) => {
            job.prepare(&dialer)?;
            start()?;
            job.run(&dialer)
        }
        Job::Slow(job) => {
            let readers = job.prepare(&dialer)?;
            start()?;
            Ok((job.run(readers)?, Vec::new()))
        }
        Job::Counted(job) => {
            let prepared = job.prepare(&dialer)?;
            start()?;
            Ok((job.run(&dialer, prepared)?, Vec::new()))
        }
        Job::Verify(job) => start().and_then(|()| Ok((job.run(&dialer)?, Vec::new()))),
        Job::Discard(job) => start().and_then(|()| Ok((job.run(&dialer)?, Vec::new()))),
        Job::Handshakes(job) => start().and_then(|()| Ok((job.run(&dialer)?, Vec::new()))),
    }
}

fn say(answer: &Answer) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(answer)?)?;
    Ok(output.flush()?)
}
