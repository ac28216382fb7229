//! `io_uring`'s `SEND_ZC`: one system call sends and takes notices, which come in memory that is shared with the kernel.
//!
//! A send has two entries in the completion queue: its result at once, and a notice when the kernel needs the pages no more
//! (`io_send_zc`, `io_uring/net.c`). Sends here never wait in the kernel (`MSG_DONTWAIT`), so the result is there when the call
//! returns. Memory can be registered, which spares the kernel to look its pages up for each send.

use crate::{
    facility,
    pages::Pages,
    socket::Follows,
    zero_copy::{Completion, Refusal, ZeroCopySend},
};
use io_uring::{
    IoUring, Probe, cqueue, opcode,
    squeue::Entry,
    types::{Fd, SubmitArgs, Timespec},
};
use std::{
    collections::VecDeque,
    fmt, io,
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd},
    time::Duration,
};

/// One send at a time is submitted.
const SUBMISSIONS: u32 = 4;
/// Notices that have room in the queue; the kernel keeps what exceeds it.
const COMPLETIONS: u32 = 512;
/// `IORING_SEND_ZC_REPORT_USAGE`, Linux 6.2: the notice says whether the pages were copied.
const REPORT_USAGE: u16 = 1 << 3;
/// `IORING_NOTIF_USAGE_ZC_COPIED`
const COPIED: u32 = 1 << 31;

impl Refusal {
    fn of(error: io::Error, disabled: &str) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) if matches!(disabled.trim(), "1" | "2") => Self::SwitchedOff,
            Some(libc::EPERM | libc::EACCES) => Self::Forbidden,
            Some(libc::ENOSYS) => Self::Missing,
            _ => Self::Failed(error),
        }
    }

    fn from_kernel(error: io::Error) -> Self {
        let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
        Self::of(error, &disabled)
    }
}

/// The sends of one connection, by a ring of its own.
pub struct Submissions {
    ring: IoUring,
    /// What is put into the send: [`REPORT_USAGE`], where the kernel knows it.
    flags: u16,
    /// The number of the next successful send.
    number: u32,
    /// Tries, successful or not: each has a mark of its own, as a notice can come for one that failed, too.
    tries: u32,
    /// Marks of failed tries whose notices are still to come.
    void: Vec<u64>,
    completed: VecDeque<Completion>,
    /// The addresses of memory that was registered, in its order.
    registered: Vec<usize>,
}

impl fmt::Debug for Submissions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Submissions").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Submissions {
    /// Sets a ring up.
    ///
    /// # Errors
    /// Why this process cannot have one.
    pub fn new() -> Result<Self, Refusal> {
        facility::io_uring().map_err(Refusal::from_kernel)?;
        let ring: IoUring =
            IoUring::builder().setup_cqsize(COMPLETIONS).build(SUBMISSIONS).map_err(Refusal::from_kernel)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(Refusal::from_kernel)?;
        if !probe.is_supported(opcode::SendZc::CODE) {
            return Err(Refusal::TooOld);
        }
        Ok(Self {
            ring,
            flags: REPORT_USAGE,
            number: 0,
            tries: 0,
            void: Vec::new(),
            completed: VecDeque::new(),
            registered: Vec::new(),
        })
    }

    /// Whether memory was registered.
    #[must_use]
    pub fn has_registered(&self) -> bool {
        !self.registered.is_empty()
    }

    fn entry(&self, socket: BorrowedFd<'_>, memory: &Pages, bytes: &[u8], follows: Follows) -> Entry {
        let more = if follows == Follows::More { libc::MSG_MORE } else { 0 };
        let index = self.registered.iter().position(|&start| start == memory.as_ptr() as usize);
        // The kernel's lengths have 32 bits: what is beyond goes with the next call.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        opcode::SendZc::new(Fd(socket.as_raw_fd()), bytes.as_ptr(), length)
            .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | more)
            .zc_flags(self.flags)
            .buf_index(index.and_then(|index| u16::try_from(index).ok()))
            .build()
            .user_data(self.mark())
    }

    /// The mark of the try that is under way: its own number, and that of a send if it succeeds.
    fn mark(&self) -> u64 {
        u64::from(self.tries) << 32 | u64::from(self.number)
    }

    /// Takes entries from the completion queue; gives the result of the try that is under way, if it is among them.
    fn take_entries(&mut self) -> Option<i32> {
        let under_way = self.mark();
        let mut result = None;
        for entry in self.ring.completion() {
            let mark = entry.user_data();
            if cqueue::notif(entry.flags()) {
                match self.void.iter().position(|&void| void == mark) {
                    Some(index) => drop(self.void.swap_remove(index)),
                    None => self.completed.push_back(Completion {
                        first: mark as u32,
                        last: mark as u32,
                        copied: entry.result().cast_unsigned() & COPIED != 0,
                    }),
                }
            } else if mark == under_way {
                result = Some(entry.result());
                match (entry.result() >= 0, cqueue::more(entry.flags())) {
                    // No notice will come: the kernel has nothing of it any more.
                    (true, false) => {
                        let number = self.number;
                        self.completed.push_back(Completion { first: number, last: number, copied: true });
                    }
                    (false, true) => self.void.push(mark),
                    _ => {}
                }
            }
        }
        result
    }

    fn try_once(&mut self, entry: &Entry) -> io::Result<usize> {
        // SAFETY: the entry's socket is borrowed and its memory readable until this function returns, which is after the result
        // has come: the kernel has taken hold of the pages by then, and uses the address no more.
        unsafe { self.ring.submission().push(entry) }.map_err(|_| io::ErrorKind::ResourceBusy)?;
        let result = loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // EBUSY: notices fill the queue; taking them makes room. EAGAIN: no memory for the moment.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN)) => {}
                Err(error) => return Err(error),
            }
            if let Some(result) = self.take_entries() {
                break result;
            }
        };
        self.tries = self.tries.wrapping_add(1);
        match usize::try_from(result) {
            Ok(bytes) => {
                self.number = self.number.wrapping_add(1);
                Ok(bytes)
            }
            Err(_) => Err(io::Error::from_raw_os_error(-result)),
        }
    }
}

impl ZeroCopySend for Submissions {
    fn prepare(&mut self, memory: &[&Pages]) -> io::Result<()> {
        let buffers: Vec<libc::iovec> = memory
            .iter()
            .map(|pages| libc::iovec { iov_base: pages.as_ptr().cast_mut().cast(), iov_len: pages.len() })
            .collect();
        // SAFETY: the kernel takes hold of the pages themselves, and only reads them; should their mapping be gone before the
        // ring, it keeps them.
        unsafe { self.ring.submitter().register_buffers(&buffers) }?;
        self.registered = memory.iter().map(|pages| pages.as_ptr() as usize).collect();
        Ok(())
    }

    fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        memory: &Pages,
        range: Range<usize>,
        follows: Follows,
    ) -> io::Result<usize> {
        let bytes = memory.get(range).ok_or(io::ErrorKind::InvalidInput)?;
        loop {
            let entry = self.entry(socket, memory, bytes, follows);
            match self.try_once(&entry) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Linux 6.0 and 6.1 do not know the flag.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && self.flags != 0 => self.flags = 0,
                // The account of locked memory is full (`RLIMIT_MEMLOCK`).
                Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                    return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
                }
                other => return other,
            }
        }
    }

    fn completions(&mut self, _: BorrowedFd<'_>, take: &mut dyn FnMut(Completion)) -> io::Result<()> {
        self.take_entries();
        self.completed.drain(..).for_each(take);
        Ok(())
    }

    fn wait(&mut self, _: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
        self.take_entries();
        if self.completed.is_empty() {
            let limit = Timespec::from(limit);
            match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit)) {
                Err(error)
                    if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) =>
                {
                    return Err(error);
                }
                _ => {}
            }
            self.take_entries();
        }
        Ok(!self.completed.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::connected_pair;
    use std::{io::Read, os::fd::AsFd, time::Instant};

    fn submissions(test: &str) -> Option<Submissions> {
        match Submissions::new() {
            Ok(submissions) => Some(submissions),
            Err(refusal) => {
                eprintln!("SKIPPED: {test}: {refusal}");
                None
            }
        }
    }

    /// Every send is completed once, by registered memory and by other; a full socket takes no number.
    #[test]
    fn every_send_by_io_uring_is_completed_once() {
        for registers in [false, true] {
            let Some(mut submissions) = submissions("every_send_by_io_uring_is_completed_once") else {
                return;
            };
            let mut pages = Pages::new(300_000).unwrap();
            let content: Vec<u8> = (0..pages.len()).map(|index| (index % 251) as u8).collect();
            pages.copy_from_slice(&content);
            if registers && let Err(error) = submissions.prepare(&[&pages]) {
                eprintln!("SKIPPED: the second half of every_send_by_io_uring_is_completed_once: {error}");
                return;
            }
            assert_eq!(submissions.has_registered(), registers);
            let (ours, mut theirs) = connected_pair(Some(16_384)).unwrap();
            let (mut sent_bytes, mut sends, mut full) = (0, 0, 0);
            let mut received = Vec::new();
            let mut completed = Vec::new();
            let deadline = Instant::now() + Duration::from_secs(20);
            while received.len() < content.len() || completed.len() < sends {
                if sent_bytes < content.len() {
                    let range = sent_bytes..(sent_bytes + 40_001).min(content.len());
                    match submissions.send(ours.as_fd(), &pages, range, Follows::Nothing) {
                        Ok(bytes) => (sent_bytes, sends) = (sent_bytes + bytes, sends + 1),
                        Err(error) => {
                            assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
                            full += 1;
                        }
                    }
                }
                let mut buffer = [0; 10_000];
                if let Ok(bytes) = theirs.read(&mut buffer) {
                    received.extend_from_slice(&buffer[..bytes]);
                }
                if received.len() == content.len() {
                    submissions.wait(ours.as_fd(), Duration::from_millis(100)).unwrap();
                }
                submissions.completions(ours.as_fd(), &mut |completion| completed.push(completion)).unwrap();
                assert!(Instant::now() < deadline, "{} bytes, {completed:?} of {sends}", received.len());
            }
            assert!(received == content && full > 0);
            let mut numbers: Vec<u32> = completed.iter().map(|completion| completion.first).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..sends as u32).collect::<Vec<_>>());
            assert!(completed.iter().all(|completion| completion.first == completion.last));
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let of = |number, disabled| Refusal::of(io::Error::from_raw_os_error(number), disabled).to_string();
        assert!(of(libc::EPERM, "2\n").contains("kernel.io_uring_disabled"));
        assert!(of(libc::EPERM, "0\n").contains("seccomp"));
        assert!(of(libc::EACCES, "").contains("seccomp"));
        assert!(of(libc::ENOSYS, "").contains("no io_uring"));
        assert!(of(libc::ENOMEM, "0").contains("failed"));
        assert!(Refusal::TooOld.to_string().contains("Linux 6.0"));
    }

    #[test]
    fn a_connection_that_is_gone_is_told() {
        let Some(mut submissions) = submissions("a_connection_that_is_gone_is_told") else { return };
        let (ours, theirs) = connected_pair(None).unwrap();
        drop(theirs);
        let pages = Pages::new(4096).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let error = loop {
            match submissions.send(ours.as_fd(), &pages, 0..4096, Follows::Nothing) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => break error,
                _ => assert!(Instant::now() < deadline),
            }
        };
        assert!(
            matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset),
            "{error}"
        );
    }
}
