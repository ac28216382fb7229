//! From the workers' buffers to the file. A worker never waits for it (INV-LOG-1).

use crate::{outbox::Outbox, report};
use linerate_config::LogTarget;
use linerate_os::file::{append_to, is_unread_fifo};
use std::{
    cell::RefCell,
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// A worker hands its lines over when it has gathered this much, and at each sweep.
const HAND_OVER_BYTES: usize = 32 * 1024;
/// Buffers that may wait for the disk, over all workers: 8 MiB.
const WAITING_BUFFERS: usize = 256;
/// How long the end of the process waits for lines to be taken when none is.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long it waits at most, for a log that takes them slowly.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

enum Item {
    Lines(Vec<u8>),
    Reopen,
}

/// What the log's thread and the threads that hand lines over tell each other.
#[derive(Debug, Default)]
struct Shared {
    dropped_lines: AtomicU64,
    /// Handed over, and not yet written or dropped.
    waiting_lines: AtomicU64,
    /// Lines were dropped because too many waited, and the operator was told.
    is_overflowing: AtomicBool,
    /// The file is to be opened anew, and there was no room to say so in the queue.
    is_to_reopen: AtomicBool,
}

/// The thread that writes. It ends with the process: nobody waits for it longer than said here (INV-LOG-1).
pub(crate) struct AccessLog {
    outbox: Outbox<Item>,
    shared: Arc<Shared>,
}

impl AccessLog {
    /// Opens the log and starts its thread. A FIFO that nobody reads is tried again with each batch of lines.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or the thread not be started.
    pub(crate) fn start(target: &LogTarget) -> io::Result<Arc<Self>> {
        let shared = Arc::new(Shared::default());
        let mut output = Output::open(target, Arc::clone(&shared))?;
        let outbox = Outbox::start("access-log", WAITING_BUFFERS, move |item| output.take(item))?;
        Ok(Arc::new(Self { outbox, shared }))
    }

    /// Lines that were lost since the start: the thread could not keep up, or the file did not take them.
    pub(crate) fn dropped_lines(&self) -> u64 {
        self.shared.dropped_lines.load(Ordering::Relaxed)
    }

    /// Has the file opened anew, after it was renamed (USR1): by the thread that writes, when what was handed over before is
    /// written. Opening may wait for the file system as long as writing may.
    pub(crate) fn reopen(&self) {
        if !self.outbox.put(Item::Reopen) {
            self.shared.is_to_reopen.store(true, Ordering::Relaxed);
            report::warn("the access log is stuck: it is reopened when it takes what it was given before");
        }
    }

    /// Waits until everything handed over so far is written, as long as lines are taken. Returns how many were not.
    pub(crate) fn settle(&self) -> u64 {
        let give_up = Instant::now() + LONGEST_WAIT;
        let waiting = || self.shared.waiting_lines.load(Ordering::Relaxed);
        let mut before = waiting();
        while !self.outbox.flush(PATIENCE) {
            let now = waiting();
            if now == before || Instant::now() >= give_up {
                return now;
            }
            before = now;
        }
        0
    }

    /// Gives lines to the thread; drops and counts them if it cannot take any.
    fn hand_over(&self, lines: Vec<u8>) {
        let count = count_lines(&lines);
        let shared = &self.shared;
        shared.waiting_lines.fetch_add(count, Ordering::Relaxed);
        if !self.outbox.put(Item::Lines(lines)) {
            shared.waiting_lines.fetch_sub(count, Ordering::Relaxed);
            shared.dropped_lines.fetch_add(count, Ordering::Relaxed);
            if !shared.is_overflowing.swap(true, Ordering::Relaxed) {
                report::warn(
                    "the access log is stuck, lines are dropped: its disk, or who reads it, is too slow",
                );
            }
        }
    }
}

/// Where the lines go.
struct Output {
    /// `None` while the path is a FIFO that nobody reads.
    file: Option<File>,
    /// `None` for standard output, which cannot be opened anew.
    path: Option<Box<Path>>,
    shared: Arc<Shared>,
    /// Lines lost since writing last worked; 0 while it works.
    outage_lines: u64,
    /// The last line is there in part: the next begins on a line of its own.
    is_torn: bool,
}

impl Output {
    fn open(target: &LogTarget, shared: Arc<Shared>) -> io::Result<Self> {
        let (file, path) = match target {
            LogTarget::Stdout => (Some(File::from(io::stdout().as_fd().try_clone_to_owned()?)), None),
            LogTarget::File(path) => {
                let file = match append_to(path) {
                    Ok(file) => Some(file),
                    Err(error) if is_unread_fifo(&error) => {
                        report::warn(&format!(
                            "{}: {UNREAD_FIFO}; lines are dropped until somebody does",
                            path.display()
                        ));
                        None
                    }
                    Err(error) => return Err(error),
                };
                (file, Some(path.as_path().into()))
            }
        };
        Ok(Self { file, path, shared, outage_lines: 0, is_torn: false })
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Lines(lines) => {
                if self.shared.is_to_reopen.swap(false, Ordering::Relaxed) {
                    self.reopen();
                }
                self.write(&lines);
                self.shared.waiting_lines.fetch_sub(count_lines(&lines), Ordering::Relaxed);
            }
            Item::Reopen => self.reopen(),
        }
    }

    /// A full disk must not stop the server: what is not taken is dropped and counted, the next write tells whether
    /// there is room again, and the operator hears of the outage's beginning and of its end.
    fn write(&mut self, lines: &[u8]) {
        let (written_bytes, result) = self.write_lines(lines);
        match result {
            Ok(()) => {
                let overflowed = self.shared.is_overflowing.swap(false, Ordering::Relaxed);
                if self.outage_lines > 0 || overflowed {
                    let dropped = self.shared.dropped_lines.load(Ordering::Relaxed);
                    report::note(&format!(
                        "the access log is written again; {dropped} lines were lost since the start"
                    ));
                }
                self.outage_lines = 0;
            }
            Err(error) => {
                if self.outage_lines == 0 {
                    report::warn(&format!(
                        "the access log cannot be written, lines are dropped: {}",
                        explain(&error)
                    ));
                }
                let lost_lines = count_lines(&lines[written_bytes..]);
                self.outage_lines += lost_lines;
                self.shared.dropped_lines.fetch_add(lost_lines, Ordering::Relaxed);
            }
        }
    }

    /// Returns how many bytes of `lines` were written, too.
    fn write_lines(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
        if let (None, Some(path)) = (&self.file, &self.path) {
            match append_to(path) {
                Ok(file) => self.file = Some(file),
                Err(error) => return (0, Err(error)),
            }
        }
        let Some(file) = &mut self.file else { return (0, Ok(())) };
        if self.is_torn {
            let (_, result) = write_as_far_as_possible(file, b"\n");
            self.is_torn = result.is_err();
            if result.is_err() {
                return (0, result);
            }
        }
        let (written_bytes, result) = write_as_far_as_possible(file, lines);
        self.is_torn = lines[..written_bytes].last().is_some_and(|last| *last != b'\n');
        (written_bytes, result)
    }

    /// The old file stays in use where the new one cannot be had.
    fn reopen(&mut self) {
        let Some(path) = &self.path else { return };
        match append_to(path) {
            Ok(file) => {
                self.file = Some(file);
                self.is_torn = false;
            }
            Err(error) => report::warn(&format!(
                "the access log could not be reopened, the old file stays in use: {}: {}",
                path.display(),
                explain(&error)
            )),
        }
    }
}

/// The kernel says "no such device or address", which helps nobody.
const UNREAD_FIFO: &str = "nobody reads this FIFO";

fn explain(error: &io::Error) -> String {
    if is_unread_fifo(error) { UNREAD_FIFO.to_owned() } else { error.to_string() }
}

/// Returns how many bytes were written, which `Write::write_all` does not tell when it fails.
fn write_as_far_as_possible(output: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written_bytes = 0;
    while written_bytes < bytes.len() {
        match output.write(&bytes[written_bytes..]) {
            Ok(0) => return (written_bytes, Err(io::ErrorKind::WriteZero.into())),
            Ok(more_bytes) => written_bytes += more_bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written_bytes, Err(error)),
        }
    }
    (written_bytes, Ok(()))
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// A worker's end: lines gather here.
pub(crate) struct Sink {
    log: Arc<AccessLog>,
    lines: RefCell<Vec<u8>>,
}

impl Sink {
    pub(crate) fn new(log: Arc<AccessLog>) -> Self {
        Self { log, lines: RefCell::new(Vec::with_capacity(HAND_OVER_BYTES + 4096)) }
    }

    /// Lets `write` append a line.
    pub(crate) fn line(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let full = {
            let mut lines = self.lines.borrow_mut();
            write(&mut lines);
            lines.len() >= HAND_OVER_BYTES
        };
        if full {
            self.hand_over();
        }
    }

    /// Gives the gathered lines to the thread; drops and counts them if it cannot take any.
    pub(crate) fn hand_over(&self) {
        let mut lines = self.lines.borrow_mut();
        if lines.is_empty() {
            return;
        }
        let gathered = std::mem::replace(&mut *lines, Vec::with_capacity(HAND_OVER_BYTES + 4096));
        self.log.hand_over(gathered);
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.hand_over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

    #[test]
    fn lines_arrive_in_order_and_a_renamed_file_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let log = AccessLog::start(&LogTarget::File(path.clone())).unwrap();
        let sink = Sink::new(Arc::clone(&log));
        sink.line(|lines| lines.extend_from_slice(b"one\n"));
        sink.line(|lines| lines.extend_from_slice(b"two\n"));
        sink.hand_over();
        assert_eq!(log.settle(), 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        log.reopen();
        sink.line(|lines| lines.extend_from_slice(b"three\n"));
        drop(sink);
        assert_eq!(log.settle(), 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn what_the_disk_cannot_take_is_dropped_and_counted() {
        // A pipe that nobody reads blocks the thread once it is full, as a hanging disk would.
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        let _reader = File::options().read(true).write(true).open(&path).unwrap();
        let log = AccessLog::start(&LogTarget::File(path)).unwrap();
        let sink = Sink::new(Arc::clone(&log));
        let line = vec![b'x'; 1023];
        for _ in 0..20_000 {
            sink.line(|lines| {
                lines.extend_from_slice(&line);
                lines.push(b'\n');
            });
        }
        let dropped = log.dropped_lines();
        assert!(dropped > 1000, "20 MB do not fit into 8 MiB and a pipe: {dropped}");
        // Neither a reopening nor the end waits for it, and every line is accounted for: those that the pipe has are
        // part of the batch that is being written.
        sink.hand_over();
        log.reopen();
        let started = Instant::now();
        let left = log.settle();
        assert!(started.elapsed() < LONGEST_WAIT + PATIENCE + Duration::from_secs(10));
        let written = 20_000 - log.dropped_lines() - left;
        assert!(written * 1024 <= 64 * 1024, "{left} are left, {written} written");
    }

    fn fifo(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        path
    }

    #[test]
    fn a_fifo_that_nobody_reads_is_not_waited_for_and_takes_lines_when_somebody_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        let log = AccessLog::start(&LogTarget::File(path.clone())).unwrap();
        let sink = Sink::new(Arc::clone(&log));
        sink.line(|lines| lines.extend_from_slice(b"unread\n"));
        sink.hand_over();
        log.reopen();
        assert_eq!((log.settle(), log.dropped_lines()), (0, 1));
        let mut reader = rustix::fs::open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
            .map(File::from)
            .unwrap();
        sink.line(|lines| lines.extend_from_slice(b"read\n"));
        sink.hand_over();
        assert_eq!((log.settle(), log.dropped_lines()), (0, 1));
        let mut read = [0; 100];
        let length = io::Read::read(&mut reader, &mut read).unwrap();
        assert_eq!(&read[..length], b"read\n");
    }

    /// Takes so many bytes, then is full.
    struct Disk {
        taken: Vec<u8>,
        room_bytes: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room_bytes).min(3);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room_bytes -= taken;
            self.taken.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_write_that_fails_tells_how_far_it_got() {
        let lines = b"one\ntwo\nthree\n";
        for room_bytes in 0..=lines.len() {
            let mut disk = Disk { taken: Vec::new(), room_bytes };
            let (written_bytes, result) = write_as_far_as_possible(&mut disk, lines);
            assert_eq!((written_bytes, disk.taken.as_slice()), (room_bytes, &lines[..room_bytes]));
            assert_eq!(result.is_ok(), room_bytes == lines.len());
        }
    }

    #[test]
    fn lines_lost_to_a_full_disk_are_counted_until_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let shared = Arc::new(Shared::default());
        let dropped_lines = &shared.dropped_lines;
        let target = LogTarget::File(path.clone());
        let mut output = Output::open(&target, Arc::clone(&shared)).unwrap();
        // The kernel's own full disk.
        output.file = Some(append_to(Path::new("/dev/full")).unwrap());
        output.write(b"one\ntwo\n");
        output.write(b"three\n");
        assert_eq!((dropped_lines.load(Ordering::Relaxed), output.outage_lines), (3, 3));
        // Room again, behind the half of a line.
        std::fs::write(&path, "hal").unwrap();
        output.file = Some(append_to(&path).unwrap());
        output.is_torn = true;
        output.write(b"four\n");
        output.write(b"five\n");
        assert_eq!((dropped_lines.load(Ordering::Relaxed), output.outage_lines), (3, 0));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "hal\nfour\nfive\n");
    }
}
