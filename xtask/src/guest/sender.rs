//! Senders of our own in the guest, with no server around them: the same bytes with the copy into the socket and without it.
//!
//! Each answers requests of the client's as a server would. What of TLS is sent is the record layer's work alone: the body is the
//! records themselves, sealed anew for each response under keys that are no secret.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use linerate_engine::trial;
use linerate_engine::user::{Batch, Sizing};
use linerate_engine::zero_copy::sealed::{Passed, SealedRing};
use linerate_engine::zero_copy::{Counts, Ring};
use linerate_engine::{Fault, Piece, Queue, SharedBytes};
use linerate_os::pages::Pages;
use linerate_os::socket::{self, Follows};
use linerate_os::zero_copy::{Notices, Submissions, ZeroCopySend};
use linerate_record::{Cipher, Combination, MAX_PLAINTEXT_BYTES, Version};

/// What is given to a call in the clear: the messages of a published measurement of one stream.
const MESSAGE_BYTES: usize = 512 * 1024;
/// A batch of sealed records, in whole bursts of segments of an MTU of 1500.
const BATCH_BYTES: usize = 260_640;
/// Batches that may be lent at a time.
const BATCHES: usize = 8;
/// Completions are waited for at most so long at a time.
const PATIENCE: Duration = Duration::from_secs(1);

/// How the bytes get into the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By a copy.
    Copied,
    /// The kernel is lent the pages (`MSG_ZEROCOPY`).
    Lent,
    /// The same by `io_uring` (`SEND_ZC`).
    Submitted,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// The file, from memory.
    Clear,
    /// The records that the user engine makes of it.
    Records,
}

/// A sender that waits for requests.
#[derive(Debug)]
pub(super) struct Sender {
    /// Where.
    pub(super) address: SocketAddr,
    /// What the body of its responses is, as a file.
    pub(super) body: PathBuf,
}

/// What came of lending, printed once for each sender at its end.
type Said = Counts;

impl Sender {
    /// Starts one that sends `file` to all that ask at `address`, for the rest of this process' life.
    pub(super) fn start(
        name: &'static str,
        address: IpAddr,
        file: &Path,
        (content, way): (Content, Way),
    ) -> Result<Self> {
        let text = fs::read(file)?;
        let length = text.len();
        let mut pages = Pages::allocated(length);
        pages[..length].copy_from_slice(&text);
        let pages = Arc::new(pages);
        // Refused now, if ever.
        drop(carrier(way, None)?);
        let body = match content {
            Content::Clear => file.to_owned(),
            Content::Records => {
                let body = file.with_extension("records");
                fs::write(&body, records(&pages, length)?)?;
                body
            }
        };
        let listener = TcpListener::bind((address, 0))?;
        let sender = Self { address: listener.local_addr()?, body };
        let body_bytes = fs::metadata(&sender.body)?.len();
        thread::spawn(move || {
            let mut said = Said::default();
            loop {
                let answered = listener.accept().map_err(anyhow::Error::from).and_then(|(socket, _)| {
                    answer(&socket, body_bytes)?;
                    let counts = match content {
                        Content::Clear => send_clear(&socket, &pages, length, way),
                        Content::Records => send_records(&socket, queue(&pages, length), way),
                    }?;
                    socket::finish_sending(&socket)?;
                    Ok(counts)
                });
                match answered {
                    Ok(counts) => said = counts,
                    Err(error) => eprintln!("{name}: {error:#}"),
                }
                if way != Way::Copied {
                    eprintln!("{}", words(name, said));
                }
            }
        });
        Ok(sender)
    }
}

fn words(name: &str, counts: Said) -> String {
    let Counts { sends, completed, copied, refused } = counts;
    let mut text = format!("{name}: {sends} sends lent pages, {completed} are complete");
    let _ = write!(text, ", {copied} of these were copied after all, {refused} were refused (ENOBUFS)");
    text
}

/// A way to lend, if there is one for this way; for a socket, once it is there.
fn carrier(way: Way, socket: Option<&TcpStream>) -> Result<Option<Box<dyn ZeroCopySend>>> {
    Ok(match (way, socket) {
        (Way::Copied, _) | (Way::Lent, None) => None,
        (Way::Lent, Some(socket)) => Some(Box::new(Notices::of(socket)?)),
        (Way::Submitted, _) => Some(Box::new(Submissions::new()?)),
    })
}

/// Takes a request, and sends the head of its response.
fn answer(mut socket: &TcpStream, body_bytes: u64) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut bytes = [0; 1024];
        match socket.read(&mut bytes) {
            Ok(0) => bail!("the client asks nothing"),
            Ok(count) => request.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\nConnection: close\r\n\r\n")?;
    Ok(())
}

fn send_clear(socket: &TcpStream, pages: &Arc<Pages>, length: usize, way: Way) -> Result<Counts> {
    let ends = |sent: usize| (sent + MESSAGE_BYTES).min(length);
    let mut sent = 0;
    let Some(carrier) = carrier(way, Some(socket))? else {
        while sent < length {
            match socket::send(socket, &pages[sent..ends(sent)], Follows::Nothing) {
                Ok(bytes) => sent += bytes,
                Err(error) => wait_for_room(socket, error)?,
            }
        }
        return Ok(Counts::default());
    };
    let mut ring = Ring::new(vec![Arc::clone(pages)], carrier);
    let slot = ring.free(socket.as_fd())?.context("nothing was lent")?;
    while sent < length {
        match ring.send(socket.as_fd(), slot, sent..ends(sent), Follows::Nothing) {
            Ok(bytes) => sent += bytes,
            Err(error) => {
                ring.take_completions(socket.as_fd())?;
                wait_for_room(socket, error)?;
            }
        }
    }
    while ring.counts().in_flight() > 0 {
        ring.wait(socket.as_fd(), PATIENCE)?;
    }
    Ok(ring.counts())
}

const SIZING: Sizing =
    Sizing { record_bytes: MAX_PLAINTEXT_BYTES, batch_bytes: BATCH_BYTES, opening_bytes: 0 };

fn channel() -> Result<linerate_record::Channel<trial::TrialKeys>> {
    let combination = Combination { version: Version::Tls13, cipher: Cipher::Aes256Gcm };
    trial::channel(combination, u64::MAX).map_err(|fault| anyhow::anyhow!("no channel: {fault}"))
}

fn queue(pages: &Arc<Pages>, length: usize) -> Queue {
    Queue::from_iter([Piece::Shared(SharedBytes::of(pages, 0..length))])
}

/// All records of a response.
fn records(pages: &Arc<Pages>, length: usize) -> Result<Vec<u8>> {
    let (mut channel, mut queue, mut batch) = (channel()?, queue(pages, length), Batch::new(BATCH_BYTES));
    let mut records = Vec::new();
    while !queue.is_done() {
        batch.seal(&mut channel, &mut queue, SIZING).map_err(failed)?;
        records.extend_from_slice(batch.sealed());
    }
    Ok(records)
}

fn send_records(socket: &TcpStream, mut queue: Queue, way: Way) -> Result<Counts> {
    let mut channel = channel()?;
    let Some(carrier) = carrier(way, Some(socket))? else {
        let mut batch = Batch::new(BATCH_BYTES);
        while !queue.is_done() {
            batch.seal(&mut channel, &mut queue, SIZING).map_err(failed)?;
            let mut left = batch.sealed();
            while !left.is_empty() {
                match socket::send(socket, left, Follows::Nothing) {
                    Ok(bytes) => left = &left[bytes..],
                    Err(error) => wait_for_room(socket, error)?,
                }
            }
        }
        return Ok(Counts::default());
    };
    let mut ring = SealedRing::new(BATCH_BYTES, BATCHES, carrier);
    while !(queue.is_done() && ring.is_at_boundary()) {
        match ring.turn(socket.as_fd(), &mut channel, &mut queue, SIZING).map_err(failed)? {
            Passed::Sent(_) => {}
            Passed::Full(_) => {
                ring.take_completions(socket.as_fd())?;
                wait_for_room(socket, std::io::ErrorKind::WouldBlock.into())?;
            }
            Passed::AllLent => ring.wait(socket.as_fd(), PATIENCE)?,
            Passed::Cold(_) => bail!("no file is sent"),
        }
    }
    while ring.counts().in_flight() > 0 {
        ring.wait(socket.as_fd(), PATIENCE)?;
    }
    Ok(ring.counts())
}

fn failed(fault: Fault) -> anyhow::Error {
    anyhow::anyhow!("sending failed: {fault:?}")
}

/// Waits until a full socket has room; notices end the wait, too.
fn wait_for_room(socket: &TcpStream, error: std::io::Error) -> Result<()> {
    if error.kind() != std::io::ErrorKind::WouldBlock {
        return Err(error.into());
    }
    use rustix::event::{PollFd, PollFlags, poll};
    poll(&mut [PollFd::new(socket, PollFlags::OUT)], None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::client::steps::{Fetcher, Served, Step};

    /// The client finds every byte as it should be, however it is sent.
    #[test]
    fn every_sender_sends_the_same_bytes() {
        let folder = std::env::temp_dir().join(format!("linerate-senders-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("file.bin");
        let content: Vec<u8> = (0..1_000_003_u32).map(|index| (index % 251) as u8).collect();
        fs::write(&file, content).unwrap();
        for content in [Content::Clear, Content::Records] {
            for way in [Way::Copied, Way::Lent, Way::Submitted] {
                let started = Sender::start("a sender", [127, 0, 0, 1].into(), &file, (content, way));
                let sender = match started {
                    Ok(sender) => sender,
                    Err(error) if way == Way::Submitted => {
                        eprintln!(
                            "SKIPPED: the part of every_sender_sends_the_same_bytes by io_uring: {error:#}"
                        );
                        continue;
                    }
                    Err(error) => panic!("{content:?} {way:?}: {error:#}"),
                };
                let mut fetcher = Fetcher::new();
                let served = Served { address: sender.address, certificate: None, file: sender.body.clone() };
                for step in [Step::Verify(served), Step::Connect, Step::Fetch] {
                    fetcher.carry_out(&step).unwrap_or_else(|error| panic!("{content:?} {way:?}: {error:#}"));
                }
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
