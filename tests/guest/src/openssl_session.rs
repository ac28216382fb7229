//! `openssl s_client`, talked to in turns: what it is typed next waits for what it has shown so far.
//!
//! It takes a letter at the beginning of what it reads for a command (`K`, `k`), so that lines must not reach it
//! together; on an emulated processor no pause between them is long enough for certain.

use linerate_end_to_end::{CertificatePair, wait_until};
use std::{
    io::{Read, Write},
    net::SocketAddr,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

/// A running `openssl s_client`. Ended when dropped.
#[derive(Debug)]
pub struct OpensslSession {
    child: Child,
    typing: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
    remarks: Arc<Mutex<Vec<u8>>>,
    /// Of what it has shown, this much was expected and came.
    seen_bytes: usize,
    key_updates: usize,
}

impl OpensslSession {
    /// Connects by TLS 1.3 to a server with this certificate.
    ///
    /// # Panics
    /// If openssl cannot be run.
    #[must_use]
    pub fn connect(address: SocketAddr, pair: &CertificatePair) -> Self {
        let mut child = Command::new("openssl")
            .args(["s_client", "-tls1_3", "-groups", "X25519", "-servername", "localhost"])
            .args(["-verify_return_error", "-connect", &address.to_string(), "-CAfile"])
            .arg(&pair.certificate)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl can be run");
        let typing = child.stdin.take().expect("a pipe");
        let shown = collect(child.stdout.take().expect("a pipe"));
        let remarks = collect(child.stderr.take().expect("a pipe"));
        Self { child, typing, shown, remarks, seen_bytes: 0, key_updates: 0 }
    }

    /// Asks for a file, and waits until it has shown all of `body`, behind all that was waited for before.
    ///
    /// # Panics
    /// If that does not come.
    #[track_caller]
    pub fn get(&mut self, name: &str, body: &[u8]) {
        self.type_line(&format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        wait_until(&format!("openssl shows {name}"), || {
            let shown = self.shown.lock().expect("no test panics while it holds this");
            let end = self.seen_bytes + body.len();
            // Compared only where there is enough, and from the end: the head is short, the body is not.
            if shown.len() < end {
                return false;
            }
            let found = shown[self.seen_bytes..].windows(body.len()).position(|window| window == body);
            found.map(|at| self.seen_bytes += at + body.len()).is_some()
        });
    }

    /// Has it send a KeyUpdate; with `requested` it asks for one in return.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn update_keys(&mut self, requested: bool) {
        self.type_line(if requested { "K\n" } else { "k\n" });
        self.key_updates += 1;
        wait_until("openssl says KEYUPDATE", || {
            let remarks = self.remarks.lock().expect("no test panics while it holds this");
            String::from_utf8_lossy(&remarks).matches("KEYUPDATE").count() == self.key_updates
        });
    }

    /// Waits until the server has ended the connection, and openssl itself.
    ///
    /// # Panics
    /// If that does not happen, or openssl was not content with how the connection ended.
    #[track_caller]
    pub fn wait_for_end(mut self) {
        let mut status = None;
        wait_until("openssl ends", || {
            status = self.child.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        let remarks = self.remarks.lock().expect("no test panics while it holds this");
        let remarks = String::from_utf8_lossy(&remarks);
        assert!(status.is_some_and(|status| status.success()), "{status:?}\n{remarks}");
    }

    #[track_caller]
    fn type_line(&mut self, line: &str) {
        self.typing.write_all(line.as_bytes()).and_then(|()| self.typing.flush()).expect("openssl reads");
    }
}

impl Drop for OpensslSession {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads all that comes, on a thread of its own.
fn collect(mut source: impl Read + Send + 'static) -> Arc<Mutex<Vec<u8>>> {
    let collected = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&collected);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(bytes @ 1..) = source.read(&mut buffer) {
            sink.lock().expect("no test panics while it holds this").extend_from_slice(&buffer[..bytes]);
        }
    });
    collected
}
