//! The engines over loopback, as the server uses them: long transfers, small responses, and what a move costs.

use std::{io, os::fd::AsFd};

use linerate_os::{
    kernel_tls::{Calls, Cipher, SendingKey, System, Version},
    socket::{self, Follows},
};
use linerate_record::{Aead, ContentType, MAX_PLAINTEXT_BYTES, RecordError};

use crate::{
    Figures, ciphers,
    loopback::{Bench, CONTENT_BYTES, Connection, cpu_ns},
};

/// Bytes of a small response, its head included.
pub(crate) const SMALL_BYTES: usize = 1024;
/// Of which so many are its head.
const HEAD_BYTES: usize = 256;
const SMALL_RESPONSES: u32 = 1500;
/// Bytes of a long transfer.
const LONG_BYTES: u64 = 2 * CONTENT_BYTES as u64;
/// What the kernel engine asks `sendfile` for at once, at most (`user_engine.quantum`).
pub(crate) const KERNEL_CALL_BYTES: usize = 1 << 20;
/// Connections that are moved in a round.
const MOVES: usize = 6;

/// `user_AES-128-GCM_per_byte_ns`
pub(crate) fn per_byte(engine: &str, aead: Aead) -> String {
    format!("{engine}_{}_per_byte_ns", ciphers::name(aead))
}

/// `user_AES-128-GCM_1024_bytes_response_ns`
pub(crate) fn small_response(engine: &str, aead: Aead) -> String {
    format!("{engine}_{}_{SMALL_BYTES}_bytes_response_ns", ciphers::name(aead))
}

/// `kernel_AES-128-GCM_set_up_ns`
pub(crate) fn set_up(engine: &str, aead: Aead) -> String {
    format!("{engine}_{}_set_up_ns", ciphers::name(aead))
}

/// Measures a round; why an engine could not be measured is added to `lacks`, once.
pub(crate) fn measure(bench: &Bench, figures: &mut Figures, lacks: &mut Vec<String>) -> io::Result<()> {
    for aead in Aead::ALL {
        figures.add(per_byte("user", aead), user_long(bench, aead)? / LONG_BYTES as f64);
        figures.add(small_response("user", aead), user_small(bench, aead)? / f64::from(SMALL_RESPONSES));
        if let Err(error) = kernel(bench, aead, figures) {
            let why = match error.raw_os_error() {
                // What the first call says without the module, and the second without the cipher.
                Some(2) => "the tls module is not loaded, or lacks it".to_owned(),
                Some(22) => "this kernel does not have it".to_owned(),
                _ => error.to_string(),
            };
            let note = format!("kernel TLS with {} was not measured: {why}", ciphers::name(aead));
            if !lacks.contains(&note) {
                lacks.push(note);
            }
        }
    }
    Ok(())
}

/// Batches sealed from the mapping, each sent at once: CPU time in nanoseconds.
fn user_long(bench: &Bench, aead: Aead) -> io::Result<f64> {
    let failed = |fault: RecordError| io::Error::other(fault);
    let mut sealer = ciphers::sealer(aead).map_err(failed)?;
    let layout = sealer.layout();
    let overhead_bytes = layout.record_bytes(0);
    let mut batch = vec![0; bench.batch_bytes()];
    let connection = bench.connect()?;
    let began = cpu_ns();
    let mut offset = 0;
    while offset < LONG_BYTES as usize {
        let mut filled = 0;
        while filled + overhead_bytes < batch.len() {
            let room_bytes = (batch.len() - filled - overhead_bytes).min(MAX_PLAINTEXT_BYTES);
            let start = offset % CONTENT_BYTES;
            let plaintext = bench.mapping.bytes(start..(start + room_bytes).min(CONTENT_BYTES));
            let end = filled + layout.record_bytes(plaintext.len());
            sealer
                .seal_from(ContentType::ApplicationData, plaintext, &mut batch[filled..end])
                .map_err(failed)?;
            offset += plaintext.len();
            filled = end;
        }
        connection.send(&batch[..filled], Follows::Nothing)?;
    }
    Ok(cpu_ns() - began)
}

/// Head and body in one record, one call each.
fn user_small(bench: &Bench, aead: Aead) -> io::Result<f64> {
    let failed = |fault: RecordError| io::Error::other(fault);
    let mut sealer = ciphers::sealer(aead).map_err(failed)?;
    let mut record = vec![0; sealer.layout().record_bytes(SMALL_BYTES)];
    let connection = bench.connect()?;
    let began = cpu_ns();
    for _ in 0..SMALL_RESPONSES {
        sealer.seal_in_place(ContentType::ApplicationData, &mut record).map_err(failed)?;
        connection.send(&record, Follows::Nothing)?;
    }
    Ok(cpu_ns() - began)
}

fn kernel(bench: &Bench, aead: Aead, figures: &mut Figures) -> io::Result<()> {
    let mut moves_ns = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..MOVES {
        let connection = bench.connect()?;
        let began = cpu_ns();
        move_to_kernel(&connection, Version::Tls13, aead)?;
        moves_ns.push(cpu_ns() - began);
        connections.push(connection);
    }
    for move_ns in moves_ns {
        figures.add(set_up("kernel", aead), move_ns);
    }
    let connection = &connections[0];
    let began = cpu_ns();
    for _ in 0..LONG_BYTES / CONTENT_BYTES as u64 {
        connection.send_file(&bench.content, 0, CONTENT_BYTES as u64, KERNEL_CALL_BYTES)?;
    }
    figures.add(per_byte("kernel", aead), (cpu_ns() - began) / LONG_BYTES as f64);
    let (connection, head) = (&connections[1], [0x5A; HEAD_BYTES]);
    let began = cpu_ns();
    for _ in 0..SMALL_RESPONSES {
        connection.send(&head, Follows::More)?;
        connection.send_file(&bench.content, 0, (SMALL_BYTES - HEAD_BYTES) as u64, KERNEL_CALL_BYTES)?;
    }
    figures.add(small_response("kernel", aead), (cpu_ns() - began) / f64::from(SMALL_RESPONSES));
    Ok(())
}

/// The system calls of a promotion (crates/server, `engine/kernel/switch.rs`).
pub(crate) fn move_to_kernel(connection: &Connection, version: Version, aead: Aead) -> io::Result<()> {
    let socket = connection.socket.as_fd();
    let cipher = match aead {
        Aead::Aes128Gcm => Cipher::Aes128Gcm,
        Aead::Aes256Gcm => Cipher::Aes256Gcm,
        Aead::ChaCha20Poly1305 => Cipher::ChaCha20Poly1305,
    };
    let key = vec![0x2B; aead.key_bytes()];
    System.taken_bytes(socket)?;
    System.attach(socket)?;
    System.install(socket, &SendingKey { version, cipher, key: &key, vector: &[0x17; 12], sequence: 0 })?;
    socket::clear_not_sent_low_water(&connection.socket)
}
