//! What a turn of an engine comes to, the same for all engines.

use crate::{queue::FileRange, source::Change};
use linerate_record::RecordError;
use std::io;

/// How far a turn got.
#[derive(Debug)]
pub enum Turn {
    /// So many bytes went into the socket, as many as were asked for.
    Sent(u64),
    /// So many went, and the socket is full. Asking again at once would feed a peer that drains it meanwhile by
    /// little pieces, and wake it for each: that doubled the price of a byte. The kernel says when there is real room.
    Full(u64),
    /// These bytes of a file are not in memory: they are to be fetched where waiting is allowed.
    Cold(FileRange),
    /// A key update is due and waits as a control record: it goes first.
    KeyUpdate,
}

/// Why a turn failed: the connection ends.
#[derive(Debug)]
pub enum Fault {
    /// The socket failed.
    Socket(io::Error),
    /// A file cannot be read.
    Unreadable(io::Error),
    /// A file is not what it was when its response began (INV-FILE-1).
    Changed(Change),
    /// The record layer refused. For a connection whose key is used up and cannot be changed this is its end
    /// ([`RecordError::KeyExhausted`]).
    Record(RecordError),
}

impl From<Change> for Fault {
    fn from(change: Change) -> Self {
        Self::Changed(change)
    }
}

impl From<RecordError> for Fault {
    fn from(fault: RecordError) -> Self {
        Self::Record(fault)
    }
}
