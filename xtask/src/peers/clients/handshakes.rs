//! One full TLS handshake for every request: `Connection: close`, and no session is ever resumed.
//!
//! wrk is no use here: it keeps its SSL objects, and OpenSSL then resumes the last session with the server's ticket
//! (nginx logs `$ssl_session_reused` as `r` for all but the first request of each connection slot).

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::channel::Dialer;
use super::response;

/// The order for handshakes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Handshakes {
    /// Request target.
    pub(crate) path: String,
    /// Length of the file.
    pub(crate) body_bytes: u64,
    /// Connections at a time.
    pub(crate) connections: usize,
    /// Requests altogether.
    pub(crate) requests: u64,
}

impl Handshakes {
    /// Runs all requests, as many at a time as there are connections.
    pub(crate) fn run(&self, dialer: &Dialer) -> Result<Outcome> {
        let begun = AtomicU64::new(0);
        let wire_bytes = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.connections).map(|_| scope.spawn(|| self.run_thread(dialer, &begun))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| bail!("a client thread panicked")))
                .sum::<Result<u64>>()
        })?;
        let body_bytes = self.requests * self.body_bytes;
        Ok(Outcome { requests: self.requests, body_bytes, wire_bytes, ..Outcome::default() })
    }

    fn run_thread(&self, dialer: &Dialer, begun: &AtomicU64) -> Result<u64> {
        let request = response::request(&dialer.host(), &self.path, None, true);
        let mut scratch = vec![0; 32 * 1024];
        let mut wire_bytes = 0;
        while begun.fetch_add(1, Ordering::Relaxed) < self.requests {
            let mut channel = dialer.connect()?;
            channel.send(request.as_bytes())?;
            let head = response::receive(&mut channel, &mut scratch, |_, _| Ok(()))?;
            if head.status != 200 || head.content_length != self.body_bytes {
                bail!("status {} with {} bytes", head.status, head.content_length);
            }
            // The server closes first, as `Connection: close` has it.
            match channel.read(&mut scratch) {
                Ok(0) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Ok(_) => bail!("bytes follow the body"),
                Err(error) => return Err(error.into()),
            }
            wire_bytes += channel.stream.received;
        }
        Ok(wire_bytes)
    }
}
