//! What a run is to do, checked for contradictions.

use crate::{Secret, StreamError};
pub use linerate_record::{Cipher, Version};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// The most streams of one run.
pub const STREAMS_LIMIT: u32 = 10_000;
/// The most bytes that a stream hands to the system at once.
pub const IO_BYTES_LIMIT: u32 = 64 << 20;
/// The longest run.
pub const TIME_LIMIT: Duration = Duration::from_secs(7 * 86_400);

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamEngine {
    /// TCP in the clear.
    Plain,
    /// TLS whose records the process itself makes, or opens.
    User,
    /// TLS whose records Linux makes, or opens, in software.
    Kernel,
    /// TLS whose records an adapter makes.
    Nic,
}

impl StreamEngine {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Plain, Self::User, Self::Kernel, Self::Nic];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Nic => "nic",
        }
    }

    /// Whether its streams are TLS.
    #[must_use]
    pub fn is_tls(self) -> bool {
        self != Self::Plain
    }
}

/// How memory is lent to the kernel, which sends from it without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroCopySend {
    /// `MSG_ZEROCOPY`: completions come in the socket's error queue.
    MsgZerocopy,
    /// `SEND_ZC` of `io_uring`.
    IoUring,
}

impl ZeroCopySend {
    /// Both.
    pub const ALL: [Self; 2] = [Self::MsgZerocopy, Self::IoUring];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MsgZerocopy => "msg_zerocopy",
            Self::IoUring => "io_uring",
        }
    }
}

/// What becomes of bytes in the clear where they are received. Records are always opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reception {
    /// They are copied into a buffer.
    #[default]
    Copied,
    /// Their pages are mapped (`TCP_ZEROCOPY_RECEIVE`), where that is possible.
    Mapped,
    /// The kernel throws them away without copying them (`MSG_TRUNC`): the lower bound of what receiving costs.
    Discarded,
}

impl Reception {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copied => "copied",
            Self::Mapped => "mapped",
            Self::Discarded => "discarded",
        }
    }
}

/// Which way the bytes go, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The client sends.
    Send,
    /// The client receives.
    Receive,
    /// Both at once, on connections of their own.
    Both,
}

impl Direction {
    /// Connections for so many streams each way.
    #[must_use]
    pub fn connections(self, streams: u32) -> u32 {
        match self {
            Self::Send | Self::Receive => streams,
            Self::Both => streams.saturating_mul(2),
        }
    }

    /// Whether the client sends on the connection of this number: with [`Direction::Both`] the first half goes to the
    /// listener, the second comes from it.
    #[must_use]
    pub fn client_sends(self, connection: u32, streams: u32) -> bool {
        match self {
            Self::Send => true,
            Self::Receive => false,
            Self::Both => connection < streams,
        }
    }

    /// For each way that bytes go, whether the client sends.
    #[must_use]
    pub fn ways(self) -> &'static [bool] {
        match self {
            Self::Send => &[true],
            Self::Receive => &[false],
            Self::Both => &[true, false],
        }
    }
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// After so many milliseconds.
    Milliseconds(u64),
    /// After so many bytes each way, all streams together.
    Bytes(u64),
}

impl Amount {
    /// Of an amount in bytes, what the stream `number` of `streams` sends: the first take what does not divide evenly.
    #[must_use]
    pub fn share_bytes(self, number: u32, streams: u32) -> Option<u64> {
        match self {
            Self::Milliseconds(_) => None,
            Self::Bytes(bytes) => {
                let streams = u64::from(streams.max(1));
                Some(bytes / streams + u64::from(u64::from(number) < bytes % streams))
            }
        }
    }
}

/// What a run is to do.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// Where the listener is: a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What both ends know.
    pub secret: Option<Secret>,
    /// Streams each way.
    pub streams: u32,
    /// Bytes that a stream hands to the system at once.
    pub io_bytes: u32,
    /// Of both socket buffers, as given to `SO_SNDBUF` and `SO_RCVBUF`: the kernel doubles it.
    pub socket_buffer_bytes: Option<u32>,
    /// When it is over.
    pub amount: Amount,
    /// Which way the bytes go.
    pub direction: Direction,
    /// What carries them, where they are sent.
    pub engine: StreamEngine,
    /// What opens their records where they are received: [`StreamEngine::User`] or [`StreamEngine::Kernel`]. Of no meaning in the
    /// clear.
    pub receive_engine: StreamEngine,
    /// How memory is lent to be sent without a copy; without it, what is sent is copied.
    pub zero_copy_send: Option<ZeroCopySend>,
    /// What becomes of bytes in the clear where they are received.
    pub reception: Reception,
    /// The version of TLS.
    pub version: Version,
    /// Each sender changes its key after so many records; without it after as many as the cipher allows. TLS 1.3 alone.
    pub key_records: Option<u64>,
    /// The cipher; without one what is best on this machine.
    pub cipher: Option<Cipher>,
    /// Bits of payload a second, each stream.
    pub rate_bits: Option<u64>,
    /// The congestion control of both ends.
    pub congestion: Option<String>,
    /// CPUs to pin the streams' threads to, in turn; nowhere without any.
    pub cpus: Vec<usize>,
    /// How often it is told how far the run is.
    pub interval: Option<Duration>,
    /// Each byte is verified by its place.
    pub verify: bool,
    /// The client sends this file, again and again, from the page cache.
    pub send_file: Option<PathBuf>,
    /// The command line, for the report.
    pub command: Vec<String>,
}

impl StreamPlan {
    /// One stream in the clear for ten seconds to this listener, by what is the default elsewhere, too.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            secret: None,
            streams: 1,
            io_bytes: 128 * 1024,
            socket_buffer_bytes: None,
            amount: Amount::Milliseconds(10_000),
            direction: Direction::Send,
            engine: StreamEngine::Plain,
            receive_engine: StreamEngine::User,
            zero_copy_send: None,
            reception: Reception::Copied,
            version: Version::Tls13,
            key_records: None,
            cipher: None,
            rate_bits: None,
            congestion: None,
            cpus: Vec::new(),
            interval: Some(Duration::from_secs(1)),
            verify: false,
            send_file: None,
            command: Vec::new(),
        }
    }

    /// Looks for contradictions.
    ///
    /// # Errors
    /// [`StreamError::Plan`] with the first one, in words for the command line.
    pub fn check(&self) -> Result<(), StreamError> {
        let wrong = |what: String| Err(StreamError::Plan(what));
        if !(1..=STREAMS_LIMIT).contains(&self.streams) {
            return wrong(format!("streams (-P): 1 to {STREAMS_LIMIT} are possible"));
        }
        if !(1..=IO_BYTES_LIMIT).contains(&self.io_bytes) {
            return wrong(format!("I/O size (-l): 1 to {IO_BYTES_LIMIT} bytes are possible"));
        }
        match self.amount {
            Amount::Milliseconds(0) => return wrong("a run of no length measures nothing".to_owned()),
            Amount::Bytes(bytes) if bytes < u64::from(self.streams) => {
                return wrong(format!(
                    "{bytes} bytes (-n) are too few for {} streams (-P): each has at least one",
                    self.streams
                ));
            }
            _ => {}
        }
        if !matches!(self.receive_engine, StreamEngine::User | StreamEngine::Kernel) {
            return wrong("records are opened by the user engine or by the kernel".to_owned());
        }
        if self.key_records.is_some() && (!self.engine.is_tls() || self.version != Version::Tls13) {
            return wrong("--key-records changes keys on the way, which TLS 1.3 alone can".to_owned());
        }
        if self.rate_bits == Some(0) {
            return wrong("the rate has to be above 0".to_owned());
        }
        check_copies(self.engine, self.zero_copy_send, self.reception).map_err(StreamError::Plan)?;
        if self.zero_copy_send.is_some() && self.send_file.is_some() && !self.engine.is_tls() {
            return wrong(
                "--sendfile sends a file's pages without a copy: leave --zero-copy-send out".to_owned(),
            );
        }
        if self.reception == Reception::Discarded && self.verify {
            return wrong(
                "--discard throws bytes away unread, so --verify cannot compare them: leave one of them out"
                    .to_owned(),
            );
        }
        if self.send_file.is_some() && self.direction != Direction::Send {
            return wrong("--sendfile is a file of the client: it goes with --send alone".to_owned());
        }
        if self.send_file.is_some() && self.verify {
            return wrong("--verify knows no file's bytes: leave --sendfile out".to_owned());
        }
        Ok(())
    }
}

/// Whether an engine can do without the copies that are to be spared.
///
/// # Errors
/// Why it cannot, in words for the command line.
pub(crate) fn check_copies(
    engine: StreamEngine,
    zero_copy_send: Option<ZeroCopySend>,
    reception: Reception,
) -> Result<(), String> {
    if zero_copy_send.is_some() && matches!(engine, StreamEngine::Kernel | StreamEngine::Nic) {
        return Err(format!(
            "--zero-copy-send does not go with --engine {}: kernel TLS takes no memory that is lent to it (MSG_ZEROCOPY is \
             refused with EOPNOTSUPP); --sendfile spares the copy there",
            engine.name()
        ));
    }
    match reception {
        Reception::Mapped if engine.is_tls() => Err(
            "--zero-copy-receive is for --engine plain: records have to be opened, and pages that are mapped cannot be written to"
                .to_owned(),
        ),
        Reception::Discarded if engine.is_tls() => Err(
            "--discard is for --engine plain: what is inside of records that nobody opens is not known".to_owned(),
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_belongs_to_one_stream() {
        for (bytes, streams) in [(1, 1), (10, 3), (1 << 40, 7), (5, 5), (u64::MAX, 10_000)] {
            let shares = (0..streams).map(|number| Amount::Bytes(bytes).share_bytes(number, streams));
            let shares: Option<Vec<u64>> = shares.collect();
            let shares = shares.unwrap();
            assert_eq!(shares.iter().sum::<u64>(), bytes);
            assert!(shares[0] - shares.last().unwrap() <= 1);
        }
        assert_eq!(Amount::Milliseconds(5).share_bytes(0, 1), None);
    }

    #[test]
    fn contradictions_are_told() {
        let plan = StreamPlan::new("h", 1);
        assert!(plan.check().is_ok());
        let file = Some(PathBuf::from("f"));
        let lent = Some(ZeroCopySend::MsgZerocopy);
        for (wrong, said) in [
            (StreamPlan { streams: 0, ..plan.clone() }, "1 to 10000"),
            (StreamPlan { streams: 10_001, ..plan.clone() }, "1 to 10000"),
            (StreamPlan { io_bytes: 0, ..plan.clone() }, "I/O size"),
            (StreamPlan { amount: Amount::Milliseconds(0), ..plan.clone() }, "no length"),
            (StreamPlan { amount: Amount::Bytes(3), streams: 4, ..plan.clone() }, "too few"),
            (StreamPlan { rate_bits: Some(0), ..plan.clone() }, "above 0"),
            (StreamPlan { key_records: Some(9), ..plan.clone() }, "TLS 1.3 alone"),
            (StreamPlan { send_file: file.clone(), direction: Direction::Both, ..plan.clone() }, "--send"),
            (StreamPlan { send_file: file.clone(), verify: true, ..plan.clone() }, "--verify"),
            (
                StreamPlan { send_file: file, zero_copy_send: lent, ..plan.clone() },
                "leave --zero-copy-send out",
            ),
            (StreamPlan { engine: StreamEngine::Kernel, zero_copy_send: lent, ..plan.clone() }, "EOPNOTSUPP"),
            (StreamPlan { engine: StreamEngine::Nic, zero_copy_send: lent, ..plan.clone() }, "--engine nic"),
            (
                StreamPlan { engine: StreamEngine::User, reception: Reception::Mapped, ..plan.clone() },
                "opened",
            ),
            (
                StreamPlan { engine: StreamEngine::User, reception: Reception::Discarded, ..plan.clone() },
                "--discard",
            ),
            (StreamPlan { verify: true, reception: Reception::Discarded, ..plan.clone() }, "--verify cannot"),
        ] {
            let told = wrong.check().unwrap_err().to_string();
            assert!(told.contains(said), "{told}");
        }
    }
}
