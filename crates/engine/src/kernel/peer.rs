//! The other end of a connection, in the self-test and in tests: takes what arrives in whatever pieces, and opens the records
//! that are whole.

use linerate_os::socket;
use linerate_record::{Channel, Event, KeySource, RecordError, RecordHeader};
use std::{io, net::TcpStream};

/// A peer that opens what it is sent.
pub struct Peer<K> {
    channel: Channel<K>,
    /// Bytes that are no whole record yet.
    partial: Vec<u8>,
    /// All that was opened.
    pub opened: Vec<u8>,
    /// `close_notify` has come.
    pub is_closed: bool,
    /// Key updates that have come.
    pub key_updates: usize,
}

impl<K: KeySource> Peer<K> {
    /// A peer that opens with `channel`.
    #[must_use]
    pub fn new(channel: Channel<K>) -> Self {
        Self { channel, partial: Vec::new(), opened: Vec::new(), is_closed: false, key_updates: 0 }
    }

    /// Receives no more than so many bytes; 0 where the connection has ended.
    pub fn receive(&mut self, socket: &TcpStream, at_most_bytes: usize) -> io::Result<usize> {
        let before = self.partial.len();
        self.partial.resize(before + at_most_bytes, 0);
        let received = socket::receive(socket, &mut self.partial[before..]);
        self.partial.truncate(before + received.as_ref().unwrap_or(&0));
        received
    }

    /// Opens all records that are whole.
    pub fn open(&mut self) -> Result<(), RecordError> {
        while let Some(header) = RecordHeader::parse(&self.partial, self.channel.incoming_layout())?
            && header.record_bytes() <= self.partial.len()
        {
            let mut record: Vec<u8> = self.partial.drain(..header.record_bytes()).collect();
            match self.channel.receive(&mut record, 0)? {
                Event::Data(range) => self.opened.extend_from_slice(&record[range]),
                Event::CloseNotify => self.is_closed = true,
                Event::KeyUpdate(_) => self.key_updates += 1,
                _ => {}
            }
        }
        Ok(())
    }
}
