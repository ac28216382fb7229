//! From the workers' buffers to the file. A worker never waits for it (INV-LOG-1).

use crate::metrics::Metrics;
use linerate_config::LogTarget;
use std::{
    cell::RefCell,
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{
        Arc,
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
}

impl AccessLog {
    /// Opens the log and starts its thread.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or the thread not be started.
    pub(crate) fn start(target: &LogTarget) -> io::Result<Arc<Self>> {
        let mut output = Output::open(target)?;
        let (sender, receiver) = sync_channel(WAITING_BUFFERS);
        std::thread::Builder::new().name("access-log".into()).spawn(move || output.run(&receiver))?;
        Ok(Arc::new(Self { sender }))
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

enum Output {
    Stdout,
    File(File, Box<Path>),
}

impl Output {
    fn open(target: &LogTarget) -> io::Result<Self> {
        match target {
            LogTarget::Stdout => Ok(Self::Stdout),
            LogTarget::File(path) => Ok(Self::File(append_to(path)?, path.as_path().into())),
        }
    }

    fn run(&mut self, messages: &Receiver<Message>) {
        for message in messages {
            match message {
                // A full disk must not stop the server; the next write tells whether there is room again.
                Message::Lines(lines) => drop(self.write(&lines)),
                Message::Reopen(answer) => drop(answer.send(self.reopen())),
                Message::Flush(answer) => drop(answer.send(())),
            }
        }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().lock().write_all(lines).and_then(|()| io::stdout().flush()),
            Self::File(file, _) => file.write_all(lines),
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Self::File(file, path) = self {
            *file = append_to(path)?;
        }
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
}

/// A worker's end: lines gather here.
pub(crate) struct Sink {
    log: Arc<AccessLog>,
    lines: RefCell<Vec<u8>>,
    metrics: Arc<Metrics>,
}

impl Sink {
    pub(crate) fn new(log: Arc<AccessLog>, metrics: Arc<Metrics>) -> Self {
        Self { log, lines: RefCell::new(Vec::with_capacity(HAND_OVER_BYTES + 4096)), metrics }
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
                let count = lost.iter().filter(|&&byte| byte == b'\n').count();
                self.metrics.access_log_dropped.add(count as u64);
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
        let sink = Sink::new(Arc::clone(&log), Arc::default());
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
        let metrics = Arc::new(Metrics::default());
        let sink = Sink::new(log, Arc::clone(&metrics));
        let line = vec![b'x'; 1023];
        for _ in 0..20_000 {
            sink.line(|lines| {
                lines.extend_from_slice(&line);
                lines.push(b'\n');
            });
        }
        let dropped = metrics.access_log_dropped.value();
        assert!(dropped > 1000, "20 MB do not fit into 8 MiB and a pipe: {dropped}");
    }
}
