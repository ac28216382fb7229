//! Every engine of this machine, proved byte for byte: what `linerate doctor --self-test` prints. Sockets of this machine are
//! connected to each other, with buffers so small that they are full most of the time; what arrives is opened by the record layer of
//! user space and compared.

use crate::{
    Piece, Queue, Turn,
    batches::BatchEnd,
    kernel::{Capabilities, Objection, peer::Peer},
    plain::{self, LastPage},
    sealing::{Passed, Sealing},
    source::OpenFile,
    trial,
};
use linerate_os::{
    file::{self, read_waiting},
    kernel_tls::{Calls, Carrier, DirectionKey},
    socket::{self, connected_pair},
};
use linerate_placement::{Combination, Lack};
use std::{
    fmt, fs,
    io::{self, IoSliceMut, Write},
    net::TcpStream,
    os::fd::AsFd,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

/// Bytes of the sending socket's buffer.
const BUFFER_BYTES: usize = 16 * 1024;
/// Longer than what any buffer or batch holds, and no multiple of a page.
const FILE_BYTES: usize = 700_001;
/// Offsets and ends on neither side of any boundary.
const RANGES: [(u64, u64); 4] = [(1, 70_002), (4095, 4097), (16_383, 49_154), (0, FILE_BYTES as u64)];
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// What became of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every byte arrived as it was sent; with what else is to be known.
    Proved(String),
    /// This machine does not have it: why.
    Lacking(String),
    /// Wrong bytes, or none.
    Failed(String),
}

/// One engine, as it was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Which, and how.
    pub what: String,
    /// What became of it.
    pub outcome: Outcome,
}

impl fmt::Display for Proof {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Proved(more) if more.is_empty() => write!(formatter, "ok      {}", self.what),
            Outcome::Proved(more) => write!(formatter, "ok      {}: {more}", self.what),
            Outcome::Lacking(why) => write!(formatter, "lacking {}: {why}", self.what),
            Outcome::Failed(why) => write!(formatter, "FAILED  {}: {why}", self.what),
        }
    }
}

/// Tries them all: in the clear, by the user engine, and by the kernel's, with each version and cipher. It takes some seconds.
pub fn engines(calls: &dyn Calls) -> Vec<Proof> {
    let content = content();
    let mut proofs = vec![
        of("in the clear, by sendfile, from memory", in_the_clear(&content, Kept::InMemory)),
        of("in the clear, by sendfile, from a file system", in_the_clear(&content, Kept::OnDisk)),
    ];
    for combination in Combination::ALL {
        let what = format!("user engine, {}", combination.label());
        proofs.push(of(&format!("{what}, read"), by_the_user_engine(&content, combination, Kept::InMemory)));
        proofs.push(of(&format!("{what}, mapped"), by_the_user_engine(&content, combination, Kept::OnDisk)));
    }
    for (combination, verdict) in Capabilities::find(calls, true).all() {
        let outcome = match verdict {
            Ok(carried) => {
                let keys =
                    if carried.takes_new_keys { "takes new keys" } else { "one key for each connection" };
                Outcome::Proved(format!("{}, {keys}", made_by(calls, combination)))
            }
            Err(Objection { lack: Lack::SelfTest(_), detail }) => Outcome::Failed(detail.clone()),
            Err(objection) => Outcome::Lacking(objection.to_string()),
        };
        proofs.push(Proof { what: format!("kernel engine, {}", combination.label()), outcome });
    }
    proofs
}

fn of(what: &str, tried: Result<(), Outcome>) -> Proof {
    let outcome = match tried {
        Ok(()) => Outcome::Proved(String::new()),
        Err(outcome) => outcome,
    };
    Proof { what: what.to_owned(), outcome }
}

impl From<String> for Outcome {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// What the kernel says that makes the records of a connection over loopback.
fn made_by(calls: &dyn Calls, combination: Combination) -> String {
    let asked = || {
        let Combination { version, cipher } = combination;
        let (ours, _theirs) = connected_pair(None)?;
        calls.attach(ours.as_fd())?;
        let key = [0x6B; 32];
        let key = key.get(..cipher.key_bytes()).unwrap_or_default();
        calls.install(
            ours.as_fd(),
            &DirectionKey { version, cipher, key, vector: &[0x1F; 12], sequence: 0 },
        )?;
        Ok::<_, io::Error>(calls.carriers(ours.as_fd())?.sending)
    };
    match asked() {
        Ok(Some(Carrier::Software)) => "made by the kernel's software".to_owned(),
        Ok(Some(Carrier::Adapter)) => "made by an adapter".to_owned(),
        Ok(None) => "what makes the records is not told".to_owned(),
        Err(error) => format!("what makes the records is not told ({error})"),
    }
}

fn content() -> Vec<u8> {
    (0..FILE_BYTES as u64).map(|index| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// Where the file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    InMemory,
    OnDisk,
}

fn opened(content: &[u8], kept: Kept, is_mapped: bool) -> Result<Rc<OpenFile>, Outcome> {
    let file = match kept {
        Kept::InMemory => file::in_memory(content),
        Kept::OnDisk => on_disk(content),
    };
    let file = file.map_err(|error| format!("no file: {error}"))?;
    let opened = if is_mapped { OpenFile::mapped(file) } else { OpenFile::of(file) };
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => {
            Outcome::Lacking("which pages of a file are in memory cannot be told here".to_owned())
        }
        _ => format!("no file: {error}").into(),
    })
}

/// A file without a name.
fn on_disk(content: &[u8]) -> io::Result<fs::File> {
    let path = std::env::temp_dir().join(format!("linerate-self-test-{}", std::process::id()));
    let mut file = fs::File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    file.write_all(content)?;
    Ok(file)
}

fn queue_of(content: &[u8], file: &Rc<OpenFile>) -> (Queue, Vec<u8>) {
    let (mut queue, mut expected) = (Queue::default(), Vec::new());
    for (number, (start, end)) in RANGES.into_iter().enumerate() {
        let head = vec![number as u8; 317 >> number];
        expected.extend_from_slice(&head);
        expected.extend_from_slice(content.get(start as usize..end as usize).unwrap_or_default());
        queue.push(Piece::Bytes(head));
        queue.push(Piece::file(file, start..end));
    }
    (queue, expected)
}

fn compare(arrived: &[u8], expected: &[u8]) -> Result<(), Outcome> {
    if arrived == expected {
        return Ok(());
    }
    let differing = arrived.iter().zip(expected).position(|(one, other)| one != other);
    let at = differing.unwrap_or_else(|| arrived.len().min(expected.len()));
    Err(format!("byte {at} of {} is not what was sent ({} arrived)", expected.len(), arrived.len()).into())
}

fn in_the_clear(content: &[u8], kept: Kept) -> Result<(), Outcome> {
    let file = opened(content, kept, false)?;
    let (mut queue, expected) = queue_of(content, &file);
    let (ours, theirs) = pair()?;
    let deadline = Instant::now() + TIME_LIMIT;
    let (mut arrived, mut limits_bytes) = (Vec::new(), [60_001, 4099, 20_011].into_iter().cycle());
    while !queue.is_done() {
        in_time(deadline)?;
        let limit_bytes = limits_bytes.next().unwrap_or(1);
        let (calls, socket) = (&linerate_os::kernel_tls::System, ours.as_fd());
        match plain::turn(calls, socket, &mut queue, limit_bytes, LastPage::InPlace) {
            Ok(Turn::Full(_)) => sip(&theirs, &mut arrived, 7001)?,
            Ok(Turn::Cold(range)) => fetch(&range)?,
            Ok(_) => {}
            Err(fault) => return Err(format!("sending failed: {fault:?}").into()),
        }
    }
    drop(ours);
    while arrived.len() < expected.len() {
        in_time(deadline)?;
        sip(&theirs, &mut arrived, 65_536)?;
    }
    compare(&arrived, &expected)
}

fn by_the_user_engine(content: &[u8], combination: Combination, kept: Kept) -> Result<(), Outcome> {
    let file = opened(content, kept, kept == Kept::OnDisk)?;
    let (mut queue, expected) = queue_of(content, &file);
    let (ours, theirs) = pair()?;
    let end = || trial::channel(combination, u64::MAX).map_err(|fault| fault.to_string());
    let (mut sealing, mut peer) = (Sealing::new(end()?, 65_536), Peer::new(end()?));
    let deadline = Instant::now() + TIME_LIMIT;
    while !queue.is_done() {
        in_time(deadline)?;
        let wait = || {
            open_some(&mut peer, &theirs)?;
            if Instant::now() < deadline { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
        };
        match sealing.turn(&ours, &mut queue, BatchEnd::AtBursts, wait) {
            Ok(Passed::On) => {}
            Ok(Passed::Cold(range)) => fetch(&range)?,
            Err(fault) => return Err(format!("sending failed: {fault:?}").into()),
        }
    }
    drop(ours);
    while peer.opened.len() < expected.len() {
        in_time(deadline)?;
        open_some(&mut peer, &theirs).map_err(|error| format!("receiving failed: {error}"))?;
    }
    compare(&peer.opened, &expected)
}

fn pair() -> Result<(TcpStream, TcpStream), String> {
    connected_pair(Some(BUFFER_BYTES)).map_err(|error| format!("no sockets: {error}"))
}

fn in_time(deadline: Instant) -> Result<(), String> {
    if Instant::now() < deadline { Ok(()) } else { Err("it stalled".to_owned()) }
}

fn fetch(range: &crate::FileRange) -> Result<(), String> {
    let mut scratch = vec![0; 64 * 1024];
    let mut position = range.range.start;
    while position < range.range.end {
        let read = read_waiting(range.source.file(), &mut [IoSliceMut::new(&mut scratch)], position)
            .map_err(|error| format!("reading failed: {error}"))?;
        if read == 0 {
            break;
        }
        position += read as u64;
    }
    Ok(())
}

/// Takes a little of what has arrived, or waits a moment.
fn sip(theirs: &TcpStream, arrived: &mut Vec<u8>, bytes: usize) -> Result<(), String> {
    let before = arrived.len();
    arrived.resize(before + bytes, 0);
    let received = socket::receive(theirs, arrived.get_mut(before..).unwrap_or_default());
    arrived.truncate(before + received.as_ref().unwrap_or(&0));
    match received {
        Ok(0) => Err("the connection ended too early".to_owned()),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            thread::sleep(Duration::from_micros(100));
            Ok(())
        }
        Err(error) => Err(format!("receiving failed: {error}")),
    }
}

fn open_some(peer: &mut Peer<trial::TrialKeys>, theirs: &TcpStream) -> io::Result<()> {
    match peer.receive(theirs, 7001) {
        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(Duration::from_micros(100)),
        Err(error) => return Err(error),
    }
    peer.open().map_err(|fault| io::Error::other(format!("a record does not open: {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_kernel_model::{FreeBsd, Simulated};
    use linerate_os::kernel_tls::freebsd::KernelTls;

    #[test]
    fn every_engine_is_proved_on_either_kernel() {
        let freebsd = FreeBsd::default();
        let models: [&dyn Calls; 2] = [&Simulated::default(), &KernelTls(freebsd)];
        for model in models {
            let proofs = engines(model);
            assert_eq!(proofs.len(), 2 + 3 * Combination::ALL.len());
            for proof in &proofs {
                assert!(matches!(proof.outcome, Outcome::Proved(_)), "{proof}");
            }
        }
    }

    #[test]
    fn wrong_bytes_and_what_is_lacking_are_told_apart() {
        let model = Simulated::default();
        model.script.corrupt_byte.set(Some(1000));
        model.script.install.lock().push_back(Some(22));
        let kernel: Vec<String> = engines(&model)
            .iter()
            .filter(|proof| proof.what.starts_with("kernel"))
            .map(ToString::to_string)
            .collect();
        assert!(kernel[0].starts_with("lacking kernel engine"), "{kernel:?}");
        assert!(kernel.iter().any(|line| line.starts_with("FAILED  kernel engine")), "{kernel:?}");
        let wrong = |text: &str| Err(Outcome::Failed(text.to_owned()));
        assert_eq!(compare(b"abcd", b"abxd"), wrong("byte 2 of 4 is not what was sent (4 arrived)"));
        assert_eq!(compare(b"ab", b"abxd"), wrong("byte 2 of 4 is not what was sent (2 arrived)"));
    }
}
