//! Many connections that each fetch a file a record at a time, in turn, so that all of them progress together.
//!
//! Segments and receive buffers are those of a client behind a network (MSS 1448, 64 KiB): with loopback's
//! 64 KiB segments the kernel would take every response whole into the server's socket buffer. The bodies are
//! decrypted and compared with the file.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::channel::{Channel, Dialer, Shape};
use super::idle::open_kept;
use super::response::{self, Head};

/// What a connection reads when it is its turn: a full record.
const TURN_BYTES: usize = 16 * 1024;
const SHAPE: Shape = Shape { receive_buffer_bytes: Some(32 * 1024), segment_bytes: Some(1448) };
/// No connection got a byte for so long: the server has stalled.
const STALL: Duration = Duration::from_secs(30);

/// The order to read slowly.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Slow {
    /// Request target.
    pub(crate) path: String,
    /// The same file on disk.
    pub(crate) file: PathBuf,
    /// A small file for the first request on each connection.
    pub(crate) first_path: String,
    /// How many connections.
    pub(crate) connections: usize,
    /// Fetches one after the other on each of them.
    pub(crate) fetches: usize,
}

/// One connection and how far it is.
#[derive(Debug)]
pub(crate) struct Reader {
    channel: Channel,
    fetches_left: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The next request is to be sent.
    Asking,
    /// Collecting the head.
    Head(Vec<u8>),
    /// At this offset of the body.
    Body(usize),
    /// Nothing left to fetch.
    Finished,
}

impl Slow {
    /// Opens the connections and serves each once, so that handshakes are no part of the figures.
    pub(crate) fn prepare(&self, dialer: &Dialer) -> Result<Vec<Reader>> {
        let channels = open_kept(dialer, &self.first_path, self.connections, SHAPE)?;
        channels
            .into_iter()
            .map(|channel| {
                channel.stream.socket.set_nonblocking(true)?;
                Ok(Reader { channel, fetches_left: self.fetches, state: State::Asking })
            })
            .collect()
    }

    /// Fetches everything, in turns.
    pub(crate) fn run(&self, mut readers: Vec<Reader>) -> Result<Outcome> {
        let file = fs::read(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?;
        let host = readers.first().context("there are no connections")?.channel.stream.socket.peer_addr()?;
        let request = response::request(&host.to_string(), &self.path, None, false);
        let mut scratch = vec![0; TURN_BYTES];
        let mut outcome = Outcome::default();
        let mut progressed_at = Instant::now();
        while !readers.is_empty() {
            let mut progress = false;
            for (index, reader) in readers.iter_mut().enumerate() {
                let received = reader
                    .turn(request.as_bytes(), &file, &mut scratch)
                    .with_context(|| format!("connection {index} of {}", self.connections))?;
                outcome.body_bytes += received as u64;
                progress |= received > 0;
            }
            readers.retain(|reader| !matches!(reader.state, State::Finished));
            if progress {
                progressed_at = Instant::now();
            } else if let Some(reader) = readers.first() {
                if progressed_at.elapsed() > STALL {
                    bail!("no byte on any of {} connections for {STALL:?}", readers.len());
                }
                wait_a_moment(&reader.channel)?;
            }
        }
        outcome.requests = (self.connections * self.fetches) as u64;
        Ok(outcome)
    }
}

impl Reader {
    /// Reads a record's worth at most; returns the bytes of the body among it.
    fn turn(&mut self, request: &[u8], file: &[u8], scratch: &mut [u8]) -> Result<usize> {
        if let State::Asking = self.state {
            // A request fits any socket buffer that is empty.
            self.channel.send(request)?;
            self.state = State::Head(Vec::new());
        }
        let mut body_bytes = 0;
        while body_bytes < TURN_BYTES && !matches!(self.state, State::Finished | State::Asking) {
            let received = match read_some(&mut self.channel, &mut scratch[..TURN_BYTES - body_bytes]) {
                Ok(0) => bail!("the server closed the connection in the middle"),
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            };
            body_bytes += self.take(&scratch[..received], file)?;
        }
        Ok(body_bytes)
    }

    fn take(&mut self, bytes: &[u8], file: &[u8]) -> Result<usize> {
        let (offset, body) = match &mut self.state {
            State::Head(collected) => {
                collected.extend_from_slice(bytes);
                let Some(head) = Head::parse(collected)? else { return Ok(0) };
                if head.status != 200 || head.content_length != file.len() as u64 {
                    bail!("status {} with {} bytes", head.status, head.content_length);
                }
                (0, collected.split_off(head.head_bytes))
            }
            State::Body(offset) => (*offset, bytes.to_vec()),
            State::Asking | State::Finished => bail!("bytes come that nobody asked for"),
        };
        if file.get(offset..offset + body.len()) != Some(body.as_slice()) {
            bail!("the body differs from the file near byte {offset}");
        }
        let reached = offset + body.len();
        self.state = State::Body(reached);
        if reached == file.len() {
            self.fetches_left -= 1;
            self.state = if self.fetches_left == 0 { State::Finished } else { State::Asking };
        }
        Ok(body.len())
    }
}

/// Reads decrypted bytes without waiting; `rustls::Stream` would insist on flushing first, which may block.
fn read_some(channel: &mut Channel, bytes: &mut [u8]) -> std::io::Result<usize> {
    let Some(session) = &mut channel.tls else { return channel.stream.read(bytes) };
    loop {
        match session.reader().read(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => return other,
        }
        if session.read_tls(&mut channel.stream)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        session.process_new_packets().map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
        while session.wants_write() {
            session.write_tls(&mut channel.stream)?;
        }
        channel.stream.flush()?;
    }
}

/// Until the connection can be read, a few milliseconds at most.
fn wait_a_moment(channel: &Channel) -> Result<()> {
    let mut sockets = [PollFd::new(&channel.stream.socket, PollFlags::IN)];
    poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 5_000_000 })).context("cannot wait")?;
    Ok(())
}
