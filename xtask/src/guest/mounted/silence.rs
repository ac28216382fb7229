//! Connections that ask for TLS and say nothing after that, and what a client's reads take beside them.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::OFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bytes of a read.
const READ_BYTES: usize = 4096;
/// Memory for a thread that only waits.
const STACK_BYTES: usize = 128 << 10;
/// How long a server may take to answer that TLS may begin. One that is held up by the others is not waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// A server that takes no connection is asked again after so long.
const PAUSE: Duration = Duration::from_millis(100);
/// Without the numbers of a connection and of a thread the default of 1,024 files would not do.
const OPEN_FILES: u64 = 4096;

/// A call of NULL, NFS version 4, with the credential AUTH_TLS and no verifier, as one record (RFC 5531; RFC 9289, section 4.1).
const ASK_FOR_TLS: [u32; 11] = [0x8000_0028, 7, 0, 2, 100_003, 4, 0, 7, 0, 0, 0];

/// So many silent connections, each replaced when the server ends it; gone when dropped.
#[derive(Debug)]
pub(super) struct Silence {
    is_over: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<Option<Arc<TcpStream>>>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Silence {
    /// Opens them; returns when the server has told each that TLS may begin, or has let it wait for a minute.
    pub(super) fn begin(server: SocketAddr, connections: u32) -> Result<Self> {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(OPEN_FILES), maximum: limit.maximum })
            .context("cannot open as many connections")?;
        let mut silence = Self {
            is_over: Arc::default(),
            open: Arc::new(Mutex::new(vec![None; connections as usize])),
            threads: Vec::new(),
        };
        let (greeted, greetings) = mpsc::channel();
        for number in 0..connections as usize {
            let (is_over, open, greeted) = (silence.is_over.clone(), silence.open.clone(), greeted.clone());
            let keep = move || {
                while !is_over.load(Ordering::Relaxed) {
                    if fall_silent(server, number, &open, &greeted).is_err() {
                        thread::sleep(PAUSE);
                    }
                }
            };
            silence.threads.push(thread::Builder::new().stack_size(STACK_BYTES).spawn(keep)?);
        }
        let mut waits = vec![true; connections as usize];
        let give_up = Instant::now() + PATIENCE;
        while waits.contains(&true) {
            let left = give_up.saturating_duration_since(Instant::now());
            let Ok(number) = greetings.recv_timeout(left) else { break };
            waits[number] = false;
        }
        Ok(silence)
    }

    /// How many are connected now.
    pub(super) fn connected(&self) -> usize {
        self.open.lock().map_or(0, |open| open.iter().flatten().count())
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Ok(open) = self.open.lock() {
            for stream in open.iter().flatten() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// One connection, from its beginning to its end by the server.
fn fall_silent(
    server: SocketAddr,
    number: usize,
    open: &Mutex<Vec<Option<Arc<TcpStream>>>>,
    greeted: &Sender<usize>,
) -> Result<()> {
    let stream = Arc::new(TcpStream::connect(server)?);
    let keep = |kept: Option<Arc<TcpStream>>| {
        if let Ok(mut open) = open.lock() {
            open[number] = kept;
        }
    };
    keep(Some(stream.clone()));
    let ended = wait_for_the_end(&stream, number, greeted);
    keep(None);
    ended
}

fn wait_for_the_end(mut stream: &TcpStream, number: usize, greeted: &Sender<usize>) -> Result<()> {
    let asked: Vec<u8> = ASK_FOR_TLS.iter().flat_map(|word| word.to_be_bytes()).collect();
    stream.write_all(&asked)?;
    let mut answer = [0; 36];
    stream.read_exact(&mut answer)?;
    if !answer.windows(8).any(|bytes| bytes == b"STARTTLS") {
        bail!("the server does not begin TLS");
    }
    // Nobody listens any more, once all have been greeted.
    let _ = greeted.send(number);
    while stream.read(&mut answer)? > 0 {}
    Ok(())
}

/// What each of so many reads of the file takes, past the client's cache, in nanoseconds.
pub(super) fn read(file: &Path, reads: u32) -> Result<Vec<u64>> {
    let direct = i32::try_from(OFlags::DIRECT.bits())?;
    let file = File::options().read(true).custom_flags(direct).open(file)?;
    let pages = file.metadata()?.len() / READ_BYTES as u64;
    let mut bytes = [0; READ_BYTES];
    let mut place = 12_345_u64;
    let mut took_ns = Vec::new();
    for _ in 0..reads {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let offset = (place >> 33) % pages * READ_BYTES as u64;
        let began = Instant::now();
        file.read_exact_at(&mut bytes, offset)?;
        took_ns.push(u64::try_from(began.elapsed().as_nanos())?);
    }
    Ok(took_ns)
}
