//! The control connection: messages over TLS, with deadlines.

use super::{
    frame::{self, FrameFault, Frames},
    message::Message,
};
use crate::{handshake::Secured, keys::Keys, wait};
use linerate_os::socket::{self, Follows};
use linerate_record::{Channel, ContentType, Event, MAX_PLAINTEXT_BYTES, RecordError, RecordHeader};
use rustix::event::PollFlags;
use std::{
    fmt, io,
    net::TcpStream,
    time::{Duration, Instant},
};

/// A message that does not leave within this time: the other end takes nothing.
const SEND_TIME: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 32 * 1024;

/// Why there is no further message.
#[derive(Debug)]
pub(crate) enum LinkFault {
    /// The other end has closed the connection.
    Closed,
    /// The connection failed.
    Broken(io::Error),
    /// The record layer refused.
    Record(RecordError),
    /// What came is no message.
    Frame(FrameFault),
    /// The other end takes nothing.
    Stuck,
    /// What had to come did not.
    Silent,
}

impl fmt::Display for LinkFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => formatter.write_str("it closed the control connection"),
            Self::Broken(error) => write!(formatter, "the control connection failed: {error}"),
            Self::Record(fault) => write!(formatter, "the control connection failed: {fault}"),
            Self::Frame(fault) => write!(formatter, "it sent {fault}"),
            Self::Silent => formatter.write_str("it did not answer in time"),
            Self::Stuck => formatter.write_str("it takes nothing on the control connection"),
        }
    }
}

impl From<io::Error> for LinkFault {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<RecordError> for LinkFault {
    fn from(fault: RecordError) -> Self {
        Self::Record(fault)
    }
}

/// A control connection whose handshake is over.
pub(crate) struct ControlLink {
    socket: TcpStream,
    channel: Channel<Keys>,
    /// What came and is no whole record yet.
    arrived: Vec<u8>,
    frames: Frames,
    began: Instant,
    is_closed: bool,
}

impl ControlLink {
    /// Takes messages of up to `limit_bytes`.
    pub(crate) fn new(socket: TcpStream, secured: Secured, limit_bytes: usize) -> Self {
        Self {
            socket,
            channel: secured.channel,
            arrived: secured.rest,
            frames: Frames::new(limit_bytes),
            began: Instant::now(),
            is_closed: false,
        }
    }

    /// Sends a message whole.
    pub(crate) fn send(&mut self, message: &Message) -> Result<(), LinkFault> {
        let (mut plaintext, mut outgoing) = (Vec::new(), Vec::new());
        frame::encode(message, &mut plaintext);
        self.channel.prepare_sending(&mut outgoing)?;
        for part in plaintext.chunks(MAX_PLAINTEXT_BYTES) {
            self.channel.sealer()?.seal_append(ContentType::ApplicationData, part, &mut outgoing)?;
        }
        self.send_sealed(&outgoing)
    }

    fn send_sealed(&mut self, mut outgoing: &[u8]) -> Result<(), LinkFault> {
        let mut deadline = Instant::now() + SEND_TIME;
        while !outgoing.is_empty() {
            match socket::send(&self.socket, outgoing, Follows::Nothing) {
                Ok(bytes) => {
                    outgoing = &outgoing[bytes..];
                    deadline = Instant::now() + SEND_TIME;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !wait::until(&self.socket, PollFlags::OUT, deadline)? {
                        return Err(LinkFault::Stuck);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The next message; `None` if none is whole at `deadline`.
    pub(crate) fn receive(&mut self, deadline: Instant) -> Result<Option<Message>, LinkFault> {
        loop {
            if let Some(message) = self.frames.next_message().map_err(LinkFault::Frame)? {
                return Ok(Some(message));
            }
            if self.open_record()? {
                continue;
            }
            if self.is_closed {
                return Err(LinkFault::Closed);
            }
            if !wait::until(&self.socket, PollFlags::IN, deadline)? {
                return Ok(None);
            }
            let start = self.arrived.len();
            self.arrived.resize(start + READ_BYTES, 0);
            let received = socket::receive(&self.socket, &mut self.arrived[start..]);
            self.arrived.truncate(start + received.as_ref().unwrap_or(&0));
            match received {
                Ok(0) => self.is_closed = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Opens the next record, if it is whole.
    fn open_record(&mut self) -> Result<bool, LinkFault> {
        let header = RecordHeader::parse(&self.arrived, self.channel.incoming_layout())?;
        let Some(record) = header.and_then(|header| self.arrived.get_mut(..header.record_bytes())) else {
            return Ok(false);
        };
        let record_bytes = record.len();
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match self.channel.receive(record, now_ms)? {
            Event::Data(range) => self.frames.take(&record[range]),
            Event::CloseNotify => self.is_closed = true,
            Event::KeyUpdate(_) | Event::RenegotiationRefused | Event::Nothing => {}
        }
        self.arrived.drain(..record_bytes);
        Ok(true)
    }
}
