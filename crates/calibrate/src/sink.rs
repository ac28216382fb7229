//! The other end of `--peer`: takes connections and throws away what comes.

use std::{
    io::{self, Read as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Connections at once; more are closed.
const CONNECTIONS_LIMIT: usize = 256;

/// Takes connections until the listener fails.
///
/// # Errors
/// The kernel's, of the listener: it serves until then.
pub fn sink(listener: &TcpListener) -> io::Error {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let socket = match listener.accept() {
            Ok((socket, _)) => socket,
            // The client was quicker to leave than we to accept.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return error,
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_LIMIT {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let counted = Arc::clone(&open);
        let started = thread::Builder::new().name("sink".to_owned()).spawn(move || {
            swallow(socket);
            counted.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn swallow(mut socket: TcpStream) {
    let mut scratch = vec![0; 256 * 1024];
    while socket.read(&mut scratch).is_ok_and(|bytes| bytes > 0) {}
}
