//! The kernel engine of a stream: the switch before the run begins, turns and control records, and the end.

use crate::{keys::Keys, plan::StreamEngine, wait};
use linerate_engine::{
    Fault, Queue, Turn,
    kernel::{self, Capabilities, Departure},
    nic::{self, Proof, Witness},
    receive,
};
use linerate_os::kernel_tls::{Calls, Carrier, System};
use linerate_record::{AlertDescription, Channel};
use std::{
    io,
    net::TcpStream,
    os::fd::AsFd,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// How often, at first and at most, it is looked whether all has gone on to TCP.
const FIRST_LOOK: Duration = Duration::from_micros(100);
const LAST_LOOK: Duration = Duration::from_millis(10);
/// What has not gone on to TCP after so long is stuck with the other end.
const DEPARTURE_TIME: Duration = Duration::from_secs(60);

/// What the kernel of this machine carries, found out once. Bytes are not compared: that is the receiver's, by `--verify`.
pub(super) fn capabilities() -> &'static Capabilities {
    static CAPABILITIES: OnceLock<Capabilities> = OnceLock::new();
    CAPABILITIES.get_or_init(|| Capabilities::find(&System, false))
}

fn witness() -> &'static Witness {
    static WITNESS: OnceLock<Witness> = OnceLock::new();
    WITNESS.get_or_init(Witness::default)
}

/// A stream whose records the kernel, or an adapter, makes.
pub(crate) struct KernelSending {
    channel: Channel<Keys>,
    departure: Departure,
    proof: Proof,
}

impl KernelSending {
    /// Hands the sending side over, and asks the kernel what carries it.
    ///
    /// # Errors
    /// It cannot be carried as `wanted`, the kernel or the adapter: why, in words.
    pub(crate) fn promote(
        socket: &TcpStream,
        mut channel: Channel<Keys>,
        wanted: StreamEngine,
        stream_bytes: u64,
    ) -> Result<Self, String> {
        let refused = |reason: &dyn std::fmt::Display| format!("the {} engine: {reason}", wanted.name());
        let carried =
            capabilities().verdict(channel.combination()).map_err(|objection| refused(&objection))?;
        let socket = socket.as_fd();
        let prepared = kernel::prepare(&System, socket, &mut channel, carried.takes_new_keys, stream_bytes)
            .map_err(|refusal| refused(&refusal))?;
        let proof = nic::set_up(&System, socket, &prepared, witness());
        // An adapter takes no new key.
        let switched = match &proof {
            Ok(proof) => Ok(*proof == Proof::Software && carried.takes_new_keys),
            Err(_) => Ok(false),
        };
        let proof = match proof {
            Ok(proof) => proof,
            Err(refusal) => {
                let words = refused(&refusal);
                // The stream ends here: that the key is taken back makes no difference.
                let _ = kernel::settle(&mut channel, prepared, Err(refusal));
                return Err(words);
            }
        };
        let departure =
            kernel::settle(&mut channel, prepared, switched).map_err(|refusal| refused(&refusal))?;
        match (wanted, proof) {
            (StreamEngine::Nic, Proof::Software) => {
                Err(refused(&"no adapter took the connection: the kernel carries it in software"))
            }
            (StreamEngine::Nic, Proof::Unproven) => Err(refused(
                &"it cannot be told whether an adapter took the connection (CAP_NET_ADMIN helps)",
            )),
            (StreamEngine::Kernel, Proof::Adapter) => Err(refused(
                &"an adapter took the connection, as Linux asks it first: --engine nic measures that",
            )),
            _ => Ok(Self { channel, departure, proof }),
        }
    }

    /// What makes the records, and how that is known.
    pub(crate) fn carried_by(&self) -> &'static str {
        match self.proof {
            Proof::Adapter => {
                "nic: the kernel says that the adapter seals this connection's records (txconf hw)"
            }
            Proof::Software => {
                "kernel: the kernel says that it seals this connection's records in software (txconf sw)"
            }
            Proof::Unproven => {
                "kernel: Linux took the key; it does not tell this process whether an adapter seals (CAP_NET_ADMIN helps)"
            }
        }
    }

    /// How often the sending key changed.
    pub(super) fn key_updates(&self) -> u64 {
        self.channel.key_updates_sent()
    }

    /// Sends some of the queue, and waits where the socket is full. `None` if a file has to be fetched: its range is given.
    pub(super) fn turn(
        &mut self,
        socket: &TcpStream,
        queue: &mut Queue,
        limit_bytes: u64,
    ) -> Result<Option<linerate_engine::FileRange>, Fault> {
        let turn = kernel::turn(&System, socket.as_fd(), &mut self.channel, queue, limit_bytes)?;
        match turn {
            Turn::Sent(bytes) => self.departure.add(bytes),
            Turn::Full(bytes) => {
                self.departure.add(bytes);
                wait::for_room(socket).map_err(Fault::Socket)?;
            }
            Turn::Cold(range) => return Ok(Some(range)),
            Turn::KeyUpdate => self.flush_control(socket)?,
        }
        Ok(None)
    }

    /// Sends the control records that wait; behind a key update the next key is installed.
    fn flush_control(&mut self, socket: &TcpStream) -> Result<(), Fault> {
        while let Some(record) = self.channel.next_control() {
            match System.send_control(socket.as_fd(), record.content_type().wire(), record.payload()) {
                Ok(()) => {
                    kernel::after_control(&System, socket.as_fd(), &mut self.channel, &mut self.departure)
                        .map_err(Fault::Socket)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait::for_room(socket).map_err(Fault::Socket)?;
                }
                Err(error) => return Err(Fault::Socket(error)),
            }
        }
        Ok(())
    }

    /// Says `close_notify`, and waits until what the kernel holds back has gone on to TCP: closing before would throw it away
    /// (INV-ORDER-2).
    pub(super) fn end(&mut self, socket: &TcpStream) -> Result<(), Fault> {
        self.channel.alert(AlertDescription::CloseNotify, &mut Vec::new())?;
        self.flush_control(socket)?;
        let (deadline, mut pause) = (Instant::now() + DEPARTURE_TIME, FIRST_LOOK);
        while !self.departure.is_complete(&System, socket.as_fd(), &self.channel).map_err(Fault::Socket)? {
            if Instant::now() > deadline || socket.take_error().ok().flatten().is_some() {
                return Err(Fault::Socket(io::ErrorKind::TimedOut.into()));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LAST_LOOK);
        }
        Ok(())
    }
}

/// A stream whose records the kernel opens.
pub(crate) struct KernelReceiving {
    pub(super) channel: Channel<Keys>,
    pub(super) incoming: receive::kernel::Incoming,
    carrier: Option<Carrier>,
}

impl KernelReceiving {
    /// Hands the receiving side over. Nothing of the stream may have come yet.
    ///
    /// # Errors
    /// The kernel does not open its records: why, in words.
    pub(crate) fn promote(socket: &TcpStream, mut channel: Channel<Keys>) -> Result<Self, String> {
        let refused = |reason: &dyn std::fmt::Display| format!("receiving by the kernel: {reason}");
        let nothing = receive::user::Incoming::default();
        // Our own sender pads nothing.
        let padding = receive::kernel::Padding::NotExpected;
        let incoming = receive::kernel::promote(&System, socket.as_fd(), &mut channel, &nothing, padding)
            .map_err(|refusal| refused(&refusal))?;
        let carrier = System.carriers(socket.as_fd()).ok().and_then(|carriers| carriers.receiving);
        Ok(Self { channel, incoming, carrier })
    }

    /// What opens the records, and how that is known.
    pub(crate) fn carried_by(&self) -> &'static str {
        match self.carrier {
            Some(Carrier::Software) => {
                "kernel: the kernel says that it opens this connection's records in software (rxconf sw)"
            }
            Some(Carrier::Adapter) => {
                "nic: the kernel says that the adapter opens this connection's records (rxconf hw)"
            }
            None => {
                "kernel: Linux took the key; it does not tell this process whether an adapter opens (CAP_NET_ADMIN helps)"
            }
        }
    }
}
