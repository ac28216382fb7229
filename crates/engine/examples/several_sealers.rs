//! What a single connection would gain if several threads sealed its records: each seals a batch of its own, and they send in
//! turn, in the order of the sequence numbers. Either the receiver throws the bytes away uncopied, so that the sender is the limit,
//! or it opens every record on one thread, as a client does (docs/MEASUREMENTS.md).
//!
//! ```sh
//! cargo run --release -p linerate-engine --example several_sealers
//! ```
//!
//! Before anything is timed, a receiver opens what each number of threads has sent, and compares it byte for byte.

use linerate_os::{socket, usage};
use linerate_record::{
    Cipher, ContentType, Layout, MAX_PLAINTEXT_BYTES, Opener, RecordLimit, Sealer, TrafficKey, Version,
};
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    error::Error,
    io::{self, Read, Write},
    net::TcpStream,
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::Instant,
};

const CIPHER: Cipher = Cipher::Aes256Gcm;
/// Sealed at a time, as the server does it.
const BATCH_BYTES: usize = 16 * MAX_PLAINTEXT_BYTES;
const RECORDS: u64 = (BATCH_BYTES / MAX_PLAINTEXT_BYTES) as u64;
/// The content: it stays in the processor's cache, as that of a popular file may.
const CONTENT_BYTES: usize = 4 * BATCH_BYTES;
const VERIFIED_BATCHES: u64 = 400;
const TIMED_BATCHES: u64 = 16_000;
const ROUNDS: usize = 5;
const MOST_THREADS: usize = 3;
/// Looks at whose turn it is before a thread goes to sleep over it.
const LOOKS: usize = 200;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let content = content();
    for threads in 1..=MOST_THREADS {
        let (sender, receiver) = pair()?;
        thread::scope(|scope| {
            let verifying = scope.spawn(|| verify(receiver, &content));
            send(&sender, &content, threads, VERIFIED_BATCHES)?;
            drop(sender);
            verifying.join().map_err(|_| "the receiver has panicked")?
        })?;
    }
    println!("verified: {VERIFIED_BATCHES} batches by each number of threads");
    println!("threads   receiver   GB/s   sender's CPU, s/GB   receiver's");
    let kinds: Vec<_> = [Receiver::Discards, Receiver::Opens]
        .into_iter()
        .flat_map(|receiver| (1..=MOST_THREADS).map(move |threads| (threads, receiver)))
        .collect();
    let mut rounds = vec![Vec::new(); kinds.len()];
    for round in 0..ROUNDS {
        for step in 0..kinds.len() {
            let index = (round + step) % kinds.len();
            let (threads, receiver) = kinds[index];
            rounds[index].push(timed(&content, threads, receiver)?);
        }
    }
    for ((threads, receiver), mut measured) in kinds.into_iter().zip(rounds) {
        let mut median = |of: fn(&Cost) -> f64| {
            measured.sort_by(|a, b| of(a).total_cmp(&of(b)));
            let [least, middle, most] = [0, ROUNDS / 2, ROUNDS - 1].map(|place| of(&measured[place]));
            format!("{middle:.2} ({least:.2} to {most:.2})")
        };
        println!(
            "{threads}   {receiver:?}   {}   {}   {}",
            median(|cost| cost.gb_per_s),
            median(|cost| cost.sender_s_per_gb),
            median(|cost| cost.receiver_s_per_gb)
        );
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Cost {
    gb_per_s: f64,
    sender_s_per_gb: f64,
    receiver_s_per_gb: f64,
}

/// What is done with the records.
#[derive(Clone, Copy, Debug)]
enum Receiver {
    Discards,
    Opens,
}

fn timed(content: &[u8], threads: usize, kind: Receiver) -> Result<Cost, Failure> {
    let (sender, receiver) = pair()?;
    let began = Instant::now();
    let (sender_s, receiver_s) = thread::scope(|scope| {
        let receiving = scope.spawn(move || match kind {
            Receiver::Discards => discard(receiver),
            Receiver::Opens => open(receiver),
        });
        let sender_s = send(&sender, content, threads, TIMED_BATCHES)?;
        drop(sender);
        let receiver_s = receiving.join().map_err(|_| "the receiver has panicked")??;
        Ok::<_, Failure>((sender_s, receiver_s))
    })?;
    let gigabytes = (TIMED_BATCHES * BATCH_BYTES as u64) as f64 / 1e9;
    Ok(Cost {
        gb_per_s: gigabytes / began.elapsed().as_secs_f64(),
        sender_s_per_gb: sender_s / gigabytes,
        receiver_s_per_gb: receiver_s / gigabytes,
    })
}

fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let (sender, receiver) = socket::connected_pair(None)?;
    sender.set_nonblocking(false)?;
    receiver.set_nonblocking(false)?;
    socket::set_not_sent_low_water(&sender, 16 << 10)?;
    Ok((sender, receiver))
}

fn content() -> Vec<u8> {
    (0..=250).cycle().take(CONTENT_BYTES).collect()
}

/// The plaintext of a batch.
fn plaintext(content: &[u8], batch: u64) -> &[u8] {
    let start = batch as usize * BATCH_BYTES % CONTENT_BYTES;
    &content[start..start + BATCH_BYTES]
}

fn key() -> Result<TrafficKey, Failure> {
    Ok(TrafficKey::new(Version::Tls13, CIPHER, &vec![0x3A; CIPHER.key_bytes()], [0x59; 12])?)
}

/// Whose turn it is to send: the number of the next batch.
struct Turn {
    next: Mutex<u64>,
    changed: Condvar,
}

impl Turn {
    /// Returns when it is the turn of this batch.
    fn wait(&self, batch: u64) {
        for _ in 0..LOOKS {
            if *self.next.lock().unwrap_or_else(PoisonError::into_inner) == batch {
                return;
            }
            std::hint::spin_loop();
        }
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(next, |next| *next != batch).unwrap_or_else(PoisonError::into_inner));
    }

    fn pass(&self, batch: u64) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = batch + 1;
        self.changed.notify_all();
    }
}

/// Seals and sends so many batches. CPU time of all threads, in seconds.
fn send(socket: &TcpStream, content: &[u8], threads: usize, batches: u64) -> Result<f64, Failure> {
    let turn = Turn { next: Mutex::new(0), changed: Condvar::new() };
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads as u64)
            .map(|first| {
                let turn = &turn;
                scope.spawn(move || {
                    let mut memory = vec![0; RECORDS as usize * layout().record_bytes(MAX_PLAINTEXT_BYTES)];
                    for batch in (first..batches).step_by(threads) {
                        let sealed = seal(plaintext(content, batch), batch, &mut memory);
                        turn.wait(batch);
                        let mut stream = socket;
                        let sent = sealed.and_then(|()| Ok(stream.write_all(&memory)?));
                        // Also after a fault, which the others meet in their turn.
                        turn.pass(batch);
                        sent?;
                    }
                    used_s()
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().map_err(|_| "a sender has panicked")?).sum()
    })
}

/// CPU time of this thread, in seconds.
fn used_s() -> Result<f64, Failure> {
    let used = usage::current_thread()?;
    Ok(used.user_s + used.system_s)
}

fn layout() -> Layout {
    Layout::new(Version::Tls13, CIPHER)
}

/// Each batch has its own range of sequence numbers, so no number is used twice (INV-NONCE-1), whichever thread seals it.
fn seal(plaintext: &[u8], batch: u64, memory: &mut [u8]) -> Result<(), Failure> {
    let mut sealer = Sealer::new(&key()?, batch * RECORDS, RecordLimit::of(CIPHER))?;
    let places = memory.chunks_exact_mut(layout().record_bytes(MAX_PLAINTEXT_BYTES));
    for (text, record) in plaintext.chunks_exact(MAX_PLAINTEXT_BYTES).zip(places) {
        sealer.seal_from(ContentType::ApplicationData, text, record)?;
    }
    Ok(())
}

fn verify(mut receiver: TcpStream, content: &[u8]) -> Result<(), Failure> {
    let mut opener = Opener::new(&key()?, 0)?;
    let mut record = vec![0; layout().record_bytes(MAX_PLAINTEXT_BYTES)];
    for batch in 0..VERIFIED_BATCHES {
        for expected in plaintext(content, batch).chunks_exact(MAX_PLAINTEXT_BYTES) {
            receiver.read_exact(&mut record)?;
            let opened = opener.open(&mut record)?;
            if &record[opened.plaintext] != expected {
                return Err(format!("wrong bytes in batch {batch}").into());
            }
        }
    }
    match receiver.read(&mut record)? {
        0 => Ok(()),
        bytes => Err(format!("{bytes} bytes too many").into()),
    }
}

/// Throws away what comes. CPU time in seconds.
fn discard(receiver: TcpStream) -> Result<f64, Failure> {
    let mut scratch = vec![0; 1 << 20];
    socket::set_receive_low_water(&receiver, BATCH_BYTES)?;
    loop {
        match socket::discard(&receiver, &mut scratch) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(&receiver, PollFlags::IN)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    used_s()
}

/// Opens what comes. CPU time in seconds.
fn open(mut receiver: TcpStream) -> Result<f64, Failure> {
    let mut opener = Opener::new(&key()?, 0)?;
    let record_bytes = layout().record_bytes(MAX_PLAINTEXT_BYTES);
    let mut memory = vec![0; RECORDS as usize * record_bytes];
    socket::set_receive_low_water(&receiver, memory.len())?;
    for _ in 0..TIMED_BATCHES {
        receiver.read_exact(&mut memory)?;
        for record in memory.chunks_exact_mut(record_bytes) {
            std::hint::black_box(opener.open(record)?);
        }
    }
    used_s()
}
