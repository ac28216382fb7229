//! The engines (crates/engine), as the server has them: long transfers, small responses, and what a move to kernel TLS
//! costs.

use std::{
    io,
    os::fd::AsFd,
    rc::Rc,
    time::{Duration, Instant},
};

use linerate_engine::{
    Fault, Piece, Queue, Turn,
    batches::BatchEnd,
    kernel::{self, Carried, Refusal},
    sealing::{Passed, Sealing},
    source::OpenFile,
    trial::{self, TrialKeys},
};
use linerate_os::{kernel_tls::System, socket};
use linerate_record::{Channel, Cipher, Combination, Version};
use rustix::event::PollFlags;

use crate::{
    Figures,
    content::{CONTENT_BYTES, Content},
    send_path::{Connection, LARGEST_BATCH_BYTES, SendPath, wait},
    stretch::{Enough, cost_of_each_ns, cpu_ns},
};

/// Bytes of a small response, its head included.
pub(crate) const SMALL_BYTES: usize = 1024;
/// Of which so many are its head.
const HEAD_BYTES: usize = 256;
/// Small responses of a round.
const SMALL: Enough = Enough { units: 1500, time: Duration::from_millis(15) };
/// Small responses between two looks at the clock.
const SMALL_AT_ONCE: u64 = 4;
/// Bytes of a long transfer of a round.
const LONG: Enough = Enough { units: 2 * CONTENT_BYTES as u64, time: Duration::from_millis(60) };
/// What the kernel engine asks `sendfile` for at once, at most (`user_engine.quantum`).
pub(crate) const KERNEL_CALL_BYTES: usize = 1 << 20;
/// Connections that are moved in a round.
const MOVES: usize = 6;

/// The engines' names in figures.
pub(crate) const USER: &str = "user";
/// The user engine on the path to the peer, which an adapter is compared with.
pub(crate) const USER_TO_PEER: &str = "user_to_peer";
pub(crate) const KERNEL: &str = "kernel";
pub(crate) const NIC: &str = "nic";

/// `user_AES-128-GCM_per_byte_ns`
pub(crate) fn per_byte(engine: &str, cipher: Cipher) -> String {
    format!("{engine}_{}_per_byte_ns", cipher.name())
}

/// `user_AES-128-GCM_1024_bytes_response_ns`
pub(crate) fn small_response(engine: &str, cipher: Cipher) -> String {
    format!("{engine}_{}_{SMALL_BYTES}_bytes_response_ns", cipher.name())
}

/// `kernel_AES-128-GCM_set_up_ns`
pub(crate) fn set_up(engine: &str, cipher: Cipher) -> String {
    format!("{engine}_{}_set_up_ns", cipher.name())
}

/// A small response, head and content.
fn push_response(queue: &mut Queue, content: &Content) {
    let mut head = queue.take_spare();
    head.resize(HEAD_BYTES, 0x5A);
    queue.push(Piece::Bytes(head));
    queue.push(Piece::file(&content.file, 0..(SMALL_BYTES - HEAD_BYTES) as u64));
}

/// The user engine with one cipher, under this name.
pub(crate) fn user(
    name: &str,
    content: &Content,
    path: &SendPath,
    cipher: Cipher,
    figures: &mut Figures,
) -> io::Result<()> {
    let (mut long, mut small) = (Sealed::on(path, cipher)?, Sealed::on(path, cipher)?);
    let long_ns = long_transfer_ns(&content.mapped, |queue| long.turn(queue))?;
    figures.add(per_byte(name, cipher), long_ns);
    figures.add(small_response(name, cipher), small_responses_ns(content, |queue| small.turn(queue))?);
    Ok(())
}

/// What a byte of a long transfer costs.
fn long_transfer_ns(
    source: &Rc<OpenFile>,
    mut turn: impl FnMut(&mut Queue) -> io::Result<()>,
) -> io::Result<f64> {
    let mut queue = Queue::default();
    cost_of_each_ns(LONG, || {
        if queue.is_done() {
            queue.push(Piece::file(source, 0..CONTENT_BYTES as u64));
        }
        let before_bytes = queue.remaining_bytes();
        turn(&mut queue)?;
        Ok(before_bytes - queue.remaining_bytes())
    })
}

/// What a small response costs.
fn small_responses_ns(
    content: &Content,
    mut turn: impl FnMut(&mut Queue) -> io::Result<()>,
) -> io::Result<f64> {
    let mut queue = Queue::default();
    cost_of_each_ns(SMALL, || {
        for _ in 0..SMALL_AT_ONCE {
            push_response(&mut queue, content);
            while !queue.is_done() {
                turn(&mut queue)?;
            }
        }
        Ok(SMALL_AT_ONCE)
    })
}

/// A connection whose records are sealed here.
struct Sealed {
    connection: Connection,
    sealing: Sealing<TrialKeys>,
}

impl Sealed {
    fn on(path: &SendPath, cipher: Cipher) -> io::Result<Self> {
        let sealing = Sealing::new(channel(Version::Tls13, cipher)?, LARGEST_BATCH_BYTES);
        Ok(Self { connection: path.connect()?, sealing })
    }

    /// A batch, sealed and sent whole. The next is not sealed before the socket has room for it.
    fn turn(&mut self, queue: &mut Queue) -> io::Result<()> {
        let socket = &self.connection.socket;
        let room = || wait(socket, PollFlags::OUT);
        match self.sealing.turn(socket, queue, BatchEnd::AtBursts, room).map_err(failed)? {
            Passed::On => Ok(()),
            Passed::Cold(_) => Err(io::Error::other("the content was swapped out")),
        }
    }
}

/// Never at its key's limit: what a key update costs is not measured.
fn channel(version: Version, cipher: Cipher) -> io::Result<Channel<TrialKeys>> {
    trial::channel(Combination { version, cipher }, u64::MAX).map_err(io::Error::other)
}

fn failed(fault: Fault) -> io::Error {
    match fault {
        Fault::Socket(error) | Fault::Unreadable(error) => error,
        Fault::Record(fault) => io::Error::other(fault),
        Fault::Changed(_) => io::Error::other("the content was changed"),
    }
}

/// Kernel TLS with one cipher: the move, then what is sent.
pub(crate) fn kernel(
    content: &Content,
    path: &SendPath,
    cipher: Cipher,
    figures: &mut Figures,
) -> Result<(), Refusal> {
    /// No key is used up here, so it does not matter whether another would be taken.
    const CARRIED: Carried = Carried { takes_new_keys: true, zero_copy: false };
    let mut moved = Vec::new();
    for _ in 0..MOVES {
        let mut sender = Sender::on(path, Version::Tls13, cipher)?;
        let socket = &sender.connection.socket;
        let (began, began_ns) = (Instant::now(), cpu_ns());
        kernel::promote(&System, socket.as_fd(), &mut sender.channel, CARRIED, 0)?;
        socket::clear_not_sent_low_water(socket)?;
        // Nothing waits here: where CPU time goes by ticks, and none has passed, the wall's is as good.
        let computed_ns = match cpu_ns() - began_ns {
            0.0 => began.elapsed().as_nanos() as f64,
            computed_ns => computed_ns,
        };
        figures.add(set_up(KERNEL, cipher), computed_ns);
        moved.push(sender);
    }
    let [long, small, ..] = &mut moved[..] else { return Ok(()) };
    Ok(by_sendfile(KERNEL, content, [long, small], cipher, figures)?)
}

/// A connection that goes, or went, to the kernel.
pub(crate) struct Sender {
    pub(crate) connection: Connection,
    pub(crate) channel: Channel<TrialKeys>,
}

impl Sender {
    pub(crate) fn on(path: &SendPath, version: Version, cipher: Cipher) -> io::Result<Self> {
        Ok(Self { connection: path.connect()?, channel: channel(version, cipher)? })
    }

    /// A turn, and the wait for room behind it.
    fn turn(&mut self, queue: &mut Queue) -> io::Result<()> {
        let socket = &self.connection.socket;
        let turn = kernel::turn(&System, socket.as_fd(), &mut self.channel, queue, KERNEL_CALL_BYTES as u64);
        match turn.map_err(failed)? {
            Turn::Sent(_) => Ok(()),
            Turn::Full(_) => wait(socket, PollFlags::OUT),
            Turn::Cold(_) => Err(io::Error::other("the content was swapped out")),
            Turn::KeyUpdate => Err(io::Error::other("a key was used up")),
        }
    }
}

/// What somebody below encrypts: a long transfer on the first connection, small responses on the second.
pub(crate) fn by_sendfile(
    name: &str,
    content: &Content,
    [long, small]: [&mut Sender; 2],
    cipher: Cipher,
    figures: &mut Figures,
) -> io::Result<()> {
    let long_ns = long_transfer_ns(&content.file, |queue| long.turn(queue))?;
    figures.add(per_byte(name, cipher), long_ns);
    figures.add(small_response(name, cipher), small_responses_ns(content, |queue| small.turn(queue))?);
    Ok(())
}
