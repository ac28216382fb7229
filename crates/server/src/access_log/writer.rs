//! From the workers' buffers to the file. A worker never waits for it (INV-LOG-1).

use crate::report;
use linerate_config::LogTarget;
use std::{
    cell::RefCell,
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, SyncSender, TrySendError, sync_channel},
    },
};

/// A worker hands its lines over when it has gathered this much, and at each sweep.
const HAND_OVER_BYTES: usize = 32 * 1024;
/// Buffers that may wait for the disk, over all workers: 8 MiB.
const WAITING_BUFFERS: usize = 256;

enum Message {
    Lines(Vec<u8>),
    Reopen(Sender<io::Result<()>>),
    Flush(Sender<()>),
}

/// The thread that writes.
pub(crate) struct AccessLog {
    sender: SyncSender<Message>,
    dropped_lines: Arc<AtomicU64>,
}

impl AccessLog {
    /// Opens the log and starts its thread.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or the thread not be started.
    pub(crate) fn start(target: &LogTarget) -> io::Result<Arc<Self>> {
        let dropped_lines = Arc::new(AtomicU64::new(0));
        let mut output = Output::open(target, Arc::clone(&dropped_lines))?;
        let (sender, receiver) = sync_channel(WAITING_BUFFERS);
        std::thread::Builder::new().name("access-log".into()).spawn(move || output.run(&receiver))?;
        Ok(Arc::new(Self { sender, dropped_lines }))
    }

    /// Lines that were lost since the start: the thread could not keep up, or the file did not take them.
    pub(crate) fn dropped_lines(&self) -> u64 {
        self.dropped_lines.load(Ordering::Relaxed)
    }

    /// Opens the file anew, after it was renamed (USR1).
    ///
    /// # Errors
    /// The new file cannot be opened; the old one stays in use.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let (answer, answered) = std::sync::mpsc::channel();
        self.sender.send(Message::Reopen(answer)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        answered.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }

    /// Returns when everything handed over so far is written.
    pub(crate) fn flush(&self) {
        let (answer, answered) = std::sync::mpsc::channel();
        if self.sender.send(Message::Flush(answer)).is_ok() {
            // An error means that the thread is gone and nothing is left to wait for.
            let _ = answered.recv();
        }
    }
}

/// Where the lines go.
struct Output {
    file: File,
    /// `None` for standard output, which cannot be opened anew.
    path: Option<Box<Path>>,
    dropped_lines: Arc<AtomicU64>,
    /// Lines lost since writing last worked; 0 while it works.
    outage_lines: u64,
    /// The last line is there in part: the next begins on a line of its own.
    is_torn: bool,
}

impl Output {
    fn open(target: &LogTarget, dropped_lines: Arc<AtomicU64>) -> io::Result<Self> {
        let (file, path) = match target {
            LogTarget::Stdout => (File::from(io::stdout().as_fd().try_clone_to_owned()?), None),
            LogTarget::File(path) => (append_to(path)?, Some(path.as_path().into())),
        };
        Ok(Self { file, path, dropped_lines, outage_lines: 0, is_torn: false })
    }

    fn run(&mut self, messages: &Receiver<Message>) {
        for message in messages {
            match message {
                Message::Lines(lines) => self.write(&lines),
                Message::Reopen(answer) => drop(answer.send(self.reopen())),
                Message::Flush(answer) => drop(answer.send(())),
            }
        }
    }

    /// A full disk must not stop the server: what is not taken is dropped and counted, the next write tells whether
    /// there is room again, and the operator hears of the outage's beginning and of its end.
    fn write(&mut self, lines: &[u8]) {
        let (mut written_bytes, mut result) = (0, Ok(()));
        if self.is_torn {
            (_, result) = write_as_far_as_possible(&mut self.file, b"\n");
            self.is_torn = result.is_err();
        }
        if result.is_ok() {
            (written_bytes, result) = write_as_far_as_possible(&mut self.file, lines);
            self.is_torn = lines[..written_bytes].last().is_some_and(|last| *last != b'\n');
        }
        match result {
            Ok(()) if self.outage_lines > 0 => {
                report::note(&format!(
                    "the access log is written again; {} lines were lost",
                    self.outage_lines
                ));
                self.outage_lines = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if self.outage_lines == 0 {
                    report::warn(&format!("the access log cannot be written, lines are dropped: {error}"));
                }
                let lost_lines = count_lines(&lines[written_bytes..]);
                self.outage_lines += lost_lines;
                self.dropped_lines.fetch_add(lost_lines, Ordering::Relaxed);
            }
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.file = append_to(path)?;
            self.is_torn = false;
        }
        Ok(())
    }
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

fn append_to(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
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
        match self.log.sender.try_send(Message::Lines(gathered)) {
            Ok(()) => {}
            Err(
                TrySendError::Full(Message::Lines(lost)) | TrySendError::Disconnected(Message::Lines(lost)),
            ) => {
                self.log.dropped_lines.fetch_add(count_lines(&lost), Ordering::Relaxed);
            }
            Err(_) => {}
        }
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

    #[test]
    fn lines_arrive_in_order_and_a_renamed_file_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let log = AccessLog::start(&LogTarget::File(path.clone())).unwrap();
        let sink = Sink::new(Arc::clone(&log));
        sink.line(|lines| lines.extend_from_slice(b"one\n"));
        sink.line(|lines| lines.extend_from_slice(b"two\n"));
        sink.hand_over();
        log.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        log.reopen().unwrap();
        sink.line(|lines| lines.extend_from_slice(b"three\n"));
        drop(sink);
        log.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn what_the_disk_cannot_take_is_dropped_and_counted() {
        // A pipe that nobody reads blocks the thread once it is full, as a hanging disk would.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
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
        let dropped_lines = Arc::new(AtomicU64::new(0));
        let target = LogTarget::File(path.clone());
        let mut output = Output::open(&target, Arc::clone(&dropped_lines)).unwrap();
        // The kernel's own full disk.
        output.file = append_to(Path::new("/dev/full")).unwrap();
        output.write(b"one\ntwo\n");
        output.write(b"three\n");
        assert_eq!((dropped_lines.load(Ordering::Relaxed), output.outage_lines), (3, 3));
        // Room again, behind the half of a line.
        std::fs::write(&path, "hal").unwrap();
        output.file = append_to(&path).unwrap();
        output.is_torn = true;
        output.write(b"four\n");
        output.write(b"five\n");
        assert_eq!((dropped_lines.load(Ordering::Relaxed), output.outage_lines), (3, 0));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "hal\nfour\nfive\n");
    }
}
