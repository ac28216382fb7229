//! The client of a count: so many responses on so many connections, between two marks of the guest's counting plugin
//! (guest/instructions/count.c), with what it used itself, so that this can be told apart from the server's.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::channel::{Channel, Dialer};
use super::discard::discard_all;
use super::response;

/// Executions of `pause` that the plugin takes for a mark, and some more.
const MARK_PAUSES: u32 = 1100;

/// The order to fetch between marks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::guest) struct Counted {
    /// Request target.
    pub(in crate::guest) path: String,
    /// The same file on disk: every byte is compared.
    pub(in crate::guest) file: PathBuf,
    /// Connections that are kept, asked in turn.
    pub(in crate::guest) connections: u32,
    /// Responses of each.
    pub(in crate::guest) responses: u32,
    /// Requests that are under way at a time, each on a connection of its own; no more than there are kept connections.
    pub(in crate::guest) at_a_time: u32,
    /// How often the whole is done, each time with new connections.
    pub(in crate::guest) rounds: u32,
    /// How they are asked for.
    pub(in crate::guest) manner: Manner,
}

/// How responses are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::guest) enum Manner {
    /// On connections that were open before the first mark.
    Kept,
    /// A connection for each.
    OneEach,
    /// A connection for each; what comes behind the head is thrown away unread. For lengths that would take long to
    /// decrypt.
    Discarded,
}

/// What the client's process used between the marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::guest) struct Spent {
    /// CPU time in nanoseconds, the kernel's share included.
    pub(in crate::guest) cpu_ns: u64,
    /// From the first request to the end of the last response, in nanoseconds.
    pub(in crate::guest) elapsed_ns: u64,
}

/// What is there before the first mark.
#[derive(Debug)]
pub(in crate::guest) struct Prepared {
    body: Vec<u8>,
    kept: Vec<Channel>,
}

impl Counted {
    /// Reads the file, and opens the connections that are to be kept.
    pub(in crate::guest) fn prepare(&self, dialer: &Dialer) -> Result<Prepared> {
        let body = match self.manner {
            Manner::Discarded => Vec::new(),
            Manner::Kept | Manner::OneEach => {
                std::fs::read(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?
            }
        };
        let kept = match self.manner {
            Manner::Kept => (0..self.connections).map(|_| dialer.connect()).collect::<Result<_>>()?,
            Manner::OneEach | Manner::Discarded => Vec::new(),
        };
        Ok(Prepared { body, kept })
    }

    /// Fetches everything. On one thread: each new one would first gather entropy for half as long as the rest takes.
    pub(in crate::guest) fn run(&self, dialer: &Dialer, mut prepared: Prepared) -> Result<Outcome> {
        mark();
        let (began, began_ns) = (Instant::now(), cpu_ns());
        let body_bytes = self.fetch(dialer, &mut prepared);
        let spent = Spent {
            cpu_ns: cpu_ns() - began_ns,
            elapsed_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        mark();
        Ok(Outcome {
            requests: u64::from(self.connections) * u64::from(self.responses),
            body_bytes: body_bytes?,
            spent,
        })
    }

    /// The bytes of all bodies.
    fn fetch(&self, dialer: &Dialer, Prepared { body, kept }: &mut Prepared) -> Result<u64> {
        let close = self.manner != Manner::Kept;
        let request = response::request(&dialer.host(), &self.path, close);
        let mut scratch = vec![0; 256 * 1024];
        let mut bytes = 0;
        let (mut asked, total) = (0, self.responses * self.connections);
        while asked < total {
            let together = self.at_a_time.min(total - asked);
            let mut fresh = Vec::new();
            let channels: Vec<&mut Channel> = if self.manner == Manner::Kept {
                // Those that were asked last go to the end.
                kept.rotate_left(asked.min(together) as usize);
                kept.iter_mut().take(together as usize).collect()
            } else {
                for _ in 0..together {
                    fresh.push(dialer.connect()?);
                }
                fresh.iter_mut().collect()
            };
            asked += together;
            bytes += self.fetch_together(channels, &request, &mut scratch, body)?;
        }
        Ok(bytes)
    }

    /// Asks on all of these, then takes one response after the other: the server goes on with each as far as its socket
    /// has room.
    fn fetch_together(
        &self,
        mut channels: Vec<&mut Channel>,
        request: &str,
        scratch: &mut [u8],
        body: &[u8],
    ) -> Result<u64> {
        for channel in &mut channels {
            channel.send(request.as_bytes())?;
        }
        let mut bytes = 0;
        for channel in channels {
            bytes += match self.manner {
                Manner::Discarded => self.discard(channel, scratch)?,
                Manner::Kept => self.compare(channel, scratch, body)?,
                Manner::OneEach => {
                    let compared = self.compare(channel, scratch, body)?;
                    response::expect_end(channel, scratch)?;
                    compared
                }
            };
        }
        Ok(bytes)
    }

    fn compare(&self, channel: &mut Channel, scratch: &mut [u8], expected: &[u8]) -> Result<u64> {
        let head = response::receive(channel, scratch, |offset, bytes| {
            let from = usize::try_from(offset)?;
            if expected.get(from..from + bytes.len()) != Some(bytes) {
                bail!("{}: the body differs from the file near byte {offset}", self.path);
            }
            Ok(())
        })?;
        if head.status != 200 || head.content_length != expected.len() as u64 {
            bail!("{}: status {} and {} bytes", self.path, head.status, head.content_length);
        }
        Ok(head.content_length)
    }

    /// What is on the wire is the body and what TLS adds to it, a fiftieth at most.
    fn discard(&self, channel: &Channel, scratch: &mut [u8]) -> Result<u64> {
        let length = self.file.metadata()?.len();
        let received = discard_all(&channel.stream.socket, scratch)?;
        if !(length..=length + length / 50 + 4096).contains(&received) {
            bail!("{}: {received} bytes came of a file of {length}", self.path);
        }
        Ok(length)
    }
}

/// What the plugin recognises; on a processor it does nothing.
pub(in crate::guest) fn mark() {
    for _ in 0..MARK_PAUSES {
        std::hint::spin_loop();
    }
}

/// CPU time of this process so far.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
