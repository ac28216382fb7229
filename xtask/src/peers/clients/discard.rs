//! The sender-limited client: after handshake and request it has the kernel throw the stream away.
//!
//! `recv` with MSG_TRUNC discards without copying (tcp(7)), so that the server's core is the limit. What is not
//! read cannot be decrypted: a transfer counts as whole when the server closes the connection in order and the
//! bytes on the wire are as many as the verified fetch of the same bytes took, to within 0.1 %. Body bytes are the
//! length of what was asked for, exactly.
//!
//! A client that sleeps until bytes come has to be woken by the server's core, which on loopback is part of the
//! server's `send`; one that spins has not. Real clients are neither: their wake-ups happen elsewhere.

use std::os::fd::AsFd;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::channel::{Dialer, PATIENCE};
use super::response::{self, Span};
use crate::peers::options::ClientWait;

/// Asked for in one `recv`. Never written to, so that its pages are never even allocated.
const DISCARD_BYTES: usize = 1 << 20;

/// The order to fetch and throw away.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Discard {
    /// Request target.
    pub(crate) path: String,
    /// The part of the file that each transfer fetches; everything without it.
    pub(crate) span: Option<Span>,
    /// Length of the body of each transfer.
    pub(crate) body_bytes: u64,
    /// Connections at a time.
    pub(crate) connections: usize,
    /// Transfers one after the other, each on a connection of its own.
    pub(crate) transfers: usize,
    /// How to wait for bytes.
    pub(crate) wait: ClientWait,
    /// Bytes on the wire of a verified transfer of the same span.
    pub(crate) verified_wire_bytes: u64,
}

impl Discard {
    /// Runs all transfers, one thread for each connection; all start together.
    pub(crate) fn run(&self, dialer: &Dialer) -> Result<Outcome> {
        let start = Barrier::new(self.connections);
        let total = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.connections).map(|_| scope.spawn(|| self.run_connection(dialer, &start))).collect();
            let mut total = Discarded::default();
            for thread in threads {
                total.add(thread.join().unwrap_or_else(|_| bail!("a client thread panicked"))?);
            }
            anyhow::Ok(total)
        })?;
        let requests = (self.connections * self.transfers) as u64;
        let spins = self.wait == ClientWait::Spin;
        Ok(Outcome {
            requests,
            body_bytes: requests * self.body_bytes,
            wire_bytes: total.bytes,
            fruitful_reads: spins.then(|| total.fruitful_reads as f64 / total.reads as f64),
            agreed: None,
            spent: None,
        })
    }

    fn run_connection(&self, dialer: &Dialer, start: &Barrier) -> Result<Discarded> {
        let mut scratch = vec![0; DISCARD_BYTES];
        let mut total = Discarded::default();
        let first = dialer.connect();
        start.wait();
        let mut ready = Some(first?);
        for _ in 0..self.transfers {
            let mut channel = match ready.take() {
                Some(channel) => channel,
                None => dialer.connect()?,
            };
            channel.send(response::request(&dialer.host(), &self.path, self.span, true).as_bytes())?;
            let mut discarded = discard_all(&channel.stream.socket, self.wait, &mut scratch)?;
            discarded.bytes += channel.stream.received;
            self.check(discarded.bytes)?;
            total.add(discarded);
        }
        Ok(total)
    }

    fn check(&self, received: u64) -> Result<()> {
        let tolerance = 4096 + self.verified_wire_bytes / 1000;
        if received < self.body_bytes || received.abs_diff(self.verified_wire_bytes) > tolerance {
            bail!("a transfer took {received} bytes, the verified one {}", self.verified_wire_bytes);
        }
        Ok(())
    }
}

/// What came of reading a stream to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Discarded {
    /// Bytes on the wire.
    pub(crate) bytes: u64,
    reads: u64,
    fruitful_reads: u64,
}

impl Discarded {
    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.reads += other.reads;
        self.fruitful_reads += other.fruitful_reads;
    }
}

/// Discards until the peer's end of the stream.
pub(crate) fn discard_all(socket: &impl AsFd, wait: ClientWait, scratch: &mut [u8]) -> Result<Discarded> {
    let flags = match wait {
        ClientWait::Sleep => RecvFlags::TRUNC,
        ClientWait::Spin => RecvFlags::TRUNC | RecvFlags::DONTWAIT,
    };
    let mut discarded = Discarded::default();
    let mut last_bytes_at = Instant::now();
    loop {
        discarded.reads += 1;
        match rustix::net::recv(socket, &mut *scratch, flags) {
            Ok((_, received)) => {
                discarded.fruitful_reads += 1;
                if received == 0 {
                    return Ok(discarded);
                }
                discarded.bytes += received as u64;
                last_bytes_at = Instant::now();
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if wait == ClientWait::Spin && last_bytes_at.elapsed() < PATIENCE => {
                // The other connections' threads share this core.
                std::thread::yield_now();
            }
            Err(error) => return Err(error).context("the transfer broke off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn discarded_bytes_are_counted_and_not_written() {
        for wait in [ClientWait::Sleep, ClientWait::Spin] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let sender = std::thread::spawn(move || {
                let mut socket = listener.accept().unwrap().0;
                socket.write_all(&[7; 300_001]).unwrap();
            });
            let receiver = TcpStream::connect(address).unwrap();
            let mut scratch = vec![0; 100_000];
            let discarded = discard_all(&receiver, wait, &mut scratch).unwrap();
            assert_eq!(discarded.bytes, 300_001);
            // Four reads for the bytes, and one for the end.
            assert!((5..=discarded.reads).contains(&discarded.fruitful_reads), "{discarded:?}");
            assert!(scratch.iter().all(|&byte| byte == 0));
            sender.join().unwrap();
        }
    }

    #[test]
    fn a_transfer_that_is_not_like_the_verified_one_is_refused() {
        let job = Discard {
            path: "/".into(),
            span: None,
            body_bytes: 1_000_000,
            connections: 1,
            transfers: 1,
            wait: ClientWait::Sleep,
            verified_wire_bytes: 1_003_000,
        };
        assert!(job.check(1_003_000).is_ok());
        assert!(job.check(1_004_000).is_ok());
        assert!(job.check(1_020_000).is_err());
        assert!(job.check(999_999).is_err());
    }
}
