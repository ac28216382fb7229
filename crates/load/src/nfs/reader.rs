//! One connection for a program that waits: what counts a server's instructions wants nothing around it.

use std::{
    net::SocketAddr,
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use linerate_os::socket::{self, SocketShape};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    connection::{Bench, Connection},
    plan::{NfsPlan, Prepared},
};
use crate::{LoadError, fault::Fault, report::Totals};

/// What a [`Reader`] is made of: a server and a file of it, looked up and checked.
#[derive(Debug)]
pub struct Setting {
    prepared: Prepared,
    timeout: Duration,
}

impl Setting {
    /// The first file of a plan.
    ///
    /// # Errors
    /// As those of [`super::run`].
    pub fn new(plan: &NfsPlan) -> Result<Self, LoadError> {
        plan.check()?;
        Ok(Self { prepared: Prepared::new(plan)?, timeout: plan.timeout })
    }

    /// The server's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.prepared.origins[0].address
    }
}

/// A connection on which the file is found.
pub struct Reader {
    setting: Arc<Setting>,
    connection: Connection,
    bench: Bench,
    handshakes: u32,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reader").field("setting", &self.setting).finish_non_exhaustive()
    }
}

impl Reader {
    /// Connects, with TLS if the plan has it, makes a session and looks the file up.
    ///
    /// # Errors
    /// Something of that failed, in words.
    pub fn connect(setting: &Arc<Setting>, number: u32) -> Result<Self, String> {
        let socket = socket::connect(setting.address(), None, SocketShape::default())
            .map_err(|error| error.to_string())?;
        let subject = setting.prepared.subject(0, number, 0);
        let connection = Connection::new(socket, subject, Instant::now());
        let mut reader =
            Self { setting: Arc::clone(setting), connection, bench: Bench::new(), handshakes: number };
        while reader.connection.file().is_none() {
            reader.step()?;
        }
        Ok(reader)
    }

    /// Reads so many bytes from the beginning of the file, by READs of the plan's block and in its depth.
    ///
    /// # Errors
    /// A READ failed, or brought other bytes than the plan's source.
    pub fn read(&mut self, length_bytes: u64) -> Result<Totals, String> {
        let mut next = 0;
        let mut left = length_bytes.div_ceil(u64::from(self.setting.prepared.block_bytes));
        while left > 0 {
            while self.connection.has_room() && next < length_bytes {
                let count = u64::from(self.setting.prepared.block_bytes).min(length_bytes - next);
                // At most a block, which has 32 bits.
                self.connection.read(next, count as u32, &mut self.bench).map_err(|fault| fault.story())?;
                next += count;
            }
            self.connection.send_calls(&mut self.bench).map_err(|fault| fault.story())?;
            self.step()?;
            left = left.saturating_sub(self.connection.take_ended());
        }
        match self.bench.tally.errors.keys().next() {
            Some(kind) => Err(kind.clone()),
            None => Ok(self.bench.tally.totals),
        }
    }

    /// Waits for the socket, and does what can be done then.
    fn step(&mut self) -> Result<(), String> {
        let target = &self.setting.prepared.origins[0].target;
        let story = |fault: Fault| format!("connection {}: {}", self.handshakes, fault.story());
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, self.connection.waits_to_send());
        let limit = Timespec {
            tv_sec: i64::try_from(self.setting.timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: 0,
        };
        let ready = poll(&mut [PollFd::new(&self.connection.socket.as_fd(), flags)], Some(&limit));
        match ready {
            Ok(0) => return Err(format!("connection {}: nothing came for too long", self.handshakes)),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
        self.connection.drive(target, &mut self.bench).map_err(story)?;
        if self.connection.has_put_off() {
            std::thread::sleep(Duration::from_millis(250));
            self.connection.ask_again(&mut self.bench).map_err(story)?;
        }
        Ok(())
    }
}
