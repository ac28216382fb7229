//! The engines as the server uses them: long transfers, small responses, and what a move to kernel TLS costs.

use std::{
    fmt, io,
    os::fd::AsFd,
    time::{Duration, Instant},
};

use linerate_os::{
    kernel_tls::{Calls, SendingKey, System},
    socket::{self, Follows},
};
use linerate_record::{Cipher, ContentType, MAX_PLAINTEXT_BYTES, RecordError, Version};
use rustix::io::Errno;

use crate::{
    Figures, ciphers,
    content::{CONTENT_BYTES, Content},
    stretch::{Enough, cost_of_each_ns, cpu_ns},
    way::{Connection, Way},
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
/// The user engine on the way to the peer, which an adapter is compared with.
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

/// The user engine with one cipher, under this name.
pub(crate) fn user(
    name: &str,
    content: &Content,
    way: &Way,
    cipher: Cipher,
    figures: &mut Figures,
) -> io::Result<()> {
    figures.add(per_byte(name, cipher), user_long_ns(content, way, cipher)?);
    figures.add(small_response(name, cipher), user_small_ns(way, cipher)?);
    Ok(())
}

/// Batches sealed from the mapping, each sent at once: CPU time of a byte.
fn user_long_ns(content: &Content, way: &Way, cipher: Cipher) -> io::Result<f64> {
    let mut sealer = ciphers::sealer(cipher).map_err(failed)?;
    let layout = sealer.layout();
    let overhead_bytes = layout.record_bytes(0);
    let mut batch = vec![0; way.batch_bytes()];
    let connection = way.connect()?;
    let mut offset = 0;
    cost_of_each_ns(LONG, || {
        let (mut filled, mut sent_bytes) = (0, 0);
        while filled + overhead_bytes < batch.len() {
            let room_bytes = (batch.len() - filled - overhead_bytes).min(MAX_PLAINTEXT_BYTES);
            let plaintext = content.mapping.bytes(offset..(offset + room_bytes).min(CONTENT_BYTES));
            let end = filled + layout.record_bytes(plaintext.len());
            sealer
                .seal_from(ContentType::ApplicationData, plaintext, &mut batch[filled..end])
                .map_err(failed)?;
            offset = (offset + plaintext.len()) % CONTENT_BYTES;
            sent_bytes += plaintext.len() as u64;
            filled = end;
        }
        connection.send(&batch[..filled], Follows::Nothing)?;
        Ok(sent_bytes)
    })
}

/// Head and body in one record, one call each: CPU time of a response.
fn user_small_ns(way: &Way, cipher: Cipher) -> io::Result<f64> {
    let mut sealer = ciphers::sealer(cipher).map_err(failed)?;
    let mut record = vec![0; sealer.layout().record_bytes(SMALL_BYTES)];
    let connection = way.connect()?;
    cost_of_each_ns(SMALL, || {
        for _ in 0..SMALL_AT_ONCE {
            sealer.seal_in_place(ContentType::ApplicationData, &mut record).map_err(failed)?;
            connection.send(&record, Follows::Nothing)?;
        }
        Ok(SMALL_AT_ONCE)
    })
}

fn failed(fault: RecordError) -> io::Error {
    io::Error::other(fault)
}

/// Kernel TLS with one cipher: the move, then what is sent.
pub(crate) fn kernel(
    content: &Content,
    way: &Way,
    cipher: Cipher,
    figures: &mut Figures,
) -> Result<(), NotMoved> {
    let mut connections = Vec::new();
    for _ in 0..MOVES {
        let connection = way.connect()?;
        let (began, began_ns) = (Instant::now(), cpu_ns());
        move_to_kernel(&connection, Version::Tls13, cipher)?;
        // Nothing waits here: where CPU time goes by ticks, and none has passed, the wall's is as good.
        let computed_ns = match cpu_ns() - began_ns {
            0.0 => began.elapsed().as_nanos() as f64,
            computed_ns => computed_ns,
        };
        figures.add(set_up(KERNEL, cipher), computed_ns);
        connections.push(connection);
    }
    Ok(by_sendfile(KERNEL, content, [&connections[0], &connections[1]], cipher, figures)?)
}

/// What somebody below encrypts: a long transfer on the first connection, small responses on the second.
pub(crate) fn by_sendfile(
    name: &str,
    content: &Content,
    [long, small]: [&Connection; 2],
    cipher: Cipher,
    figures: &mut Figures,
) -> io::Result<()> {
    let mut offset = 0;
    let long_ns = cost_of_each_ns(LONG, || {
        let end = (offset + KERNEL_CALL_BYTES as u64).min(CONTENT_BYTES as u64);
        long.send_file(&content.file, offset, end, KERNEL_CALL_BYTES)?;
        let sent_bytes = end - offset;
        offset = end % CONTENT_BYTES as u64;
        Ok::<_, io::Error>(sent_bytes)
    })?;
    figures.add(per_byte(name, cipher), long_ns);
    let head = [0x5A; HEAD_BYTES];
    let small_ns = cost_of_each_ns(SMALL, || {
        for _ in 0..SMALL_AT_ONCE {
            small.send(&head, Follows::More)?;
            small.send_file(&content.file, 0, (SMALL_BYTES - HEAD_BYTES) as u64, KERNEL_CALL_BYTES)?;
        }
        Ok::<_, io::Error>(SMALL_AT_ONCE)
    })?;
    figures.add(small_response(name, cipher), small_ns);
    Ok(())
}

/// Why a connection did not go to kernel TLS, or did not go on there.
#[derive(Debug)]
pub(crate) enum NotMoved {
    /// The `tls` module is not there.
    Module,
    /// The kernel does not know the version or the cipher, or lacks the algorithm.
    Cipher,
    /// It failed otherwise.
    System(io::Error),
}

impl fmt::Display for NotMoved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Module => formatter.write_str("the tls module is not loaded (`sudo modprobe tls`)"),
            Self::Cipher => formatter.write_str("this kernel does not have it"),
            Self::System(error) => error.fmt(formatter),
        }
    }
}

impl From<io::Error> for NotMoved {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// The system calls of a promotion (crates/engine, `kernel/switch.rs`).
pub(crate) fn move_to_kernel(
    connection: &Connection,
    version: Version,
    cipher: Cipher,
) -> Result<(), NotMoved> {
    let socket = connection.socket.as_fd();
    let key = vec![0x2B; cipher.key_bytes()];
    let sending = SendingKey { version, cipher, key: &key, vector: &[0x17; 12], sequence: 0 };
    System.taken_bytes(socket)?;
    System.attach(socket).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => NotMoved::Module,
        _ => NotMoved::System(error),
    })?;
    System.install(socket, &sending).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::INVAL | Errno::NOENT) => NotMoved::Cipher,
        _ => NotMoved::System(error),
    })?;
    Ok(socket::clear_not_sent_low_water(&connection.socket)?)
}
