//! A disk that is slow, fails or hangs: a FUSE file system that shows another folder, read-only, and breaks reads by rule.
//!
//! ```no_run
//! use linerate_hostile::{Fault, SlowDisk};
//! use std::{path::Path, time::Duration};
//!
//! let disk = SlowDisk::mount(Path::new("/srv/media"))?;
//! disk.break_reads("film.mp4", 1_000_000..1_000_001, Fault::Delay(Duration::from_secs(5)));
//! // A server of disk.path() waits five seconds for the read that has this byte in it.
//! # Ok::<(), String>(())
//! ```
//!
//! Every open of a file finds the page cache cold, because the file system lets the kernel forget its pages then.
//! This process must not read through the mount while a rule says [`Fault::Hang`]: a thread of its own that hangs in the
//! kernel would keep the process from ending, and only the end of the process would free the thread.

use std::{
    fs::{self, File},
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use fuser::BackgroundSession;
use tempfile::TempDir;

use crate::{
    cleanup::{self, Guard, Leftover},
    disk_files::Mirror,
};

/// What happens to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It takes so long, and succeeds.
    Delay(Duration),
    /// It fails with EIO.
    Fail,
    /// It is not answered until [`SlowDisk::mend`] is called, and succeeds then.
    Hang,
}

/// A rule: reads of this file that touch these bytes.
#[derive(Clone, Debug)]
struct Rule {
    name: String,
    bytes: Range<u64>,
    fault: Fault,
}

/// The rules, and how often they met a read.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    broken_reads: u64,
    /// How often the disk was mended: a read that hangs waits for the next time.
    mended: u64,
}

impl Rules {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens to this read, if anything does, and how often the disk had been mended when that was decided.
    fn fault(&self, name: &str, bytes: &Range<u64>) -> Option<(Fault, u64)> {
        let mut state = self.state();
        let meets =
            |rule: &&Rule| rule.name == name && rule.bytes.start < bytes.end && bytes.start < rule.bytes.end;
        let fault = state.rules.iter().find(meets).map(|rule| rule.fault)?;
        state.broken_reads += 1;
        self.changed.notify_all();
        Some((fault, state.mended))
    }

    /// Returns when the disk has been mended more often than `before`.
    fn wait_until_mended(&self, before: u64) {
        let mut state = self.state();
        while state.mended == before {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reads for the kernel, off the thread that takes its requests where it takes long: a slow file must not stop others.
    pub(crate) fn read(
        self: &Arc<Self>,
        name: &str,
        file: &Arc<File>,
        bytes: Range<u64>,
        answer: impl FnOnce(io::Result<Vec<u8>>) + Send + 'static,
    ) {
        let Some((fault, mended)) = self.fault(name, &bytes) else {
            return answer(read_range(file, &bytes));
        };
        if fault == Fault::Fail {
            return answer(Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error())));
        }
        let (rules, file) = (Arc::clone(self), Arc::clone(file));
        thread::spawn(move || {
            match fault {
                Fault::Delay(delay) => thread::sleep(delay),
                Fault::Hang | Fault::Fail => rules.wait_until_mended(mended),
            }
            answer(read_range(&file, &bytes));
        });
    }
}

fn read_range(file: &File, bytes: &Range<u64>) -> io::Result<Vec<u8>> {
    let length_bytes = usize::try_from(bytes.end - bytes.start).map_err(io::Error::other)?;
    let mut buffer = vec![0; length_bytes];
    let mut filled = 0;
    while filled < length_bytes {
        match file.read_at(&mut buffer[filled..], bytes.start + filled as u64)? {
            0 => break,
            more => filled += more,
        }
    }
    buffer.truncate(filled);
    Ok(buffer)
}

/// The mounted disk. Mended and unmounted when dropped.
#[derive(Debug)]
pub struct SlowDisk {
    rules: Arc<Rules>,
    // Unmounted by force before the session is joined, or a server that still reads would keep it from ending.
    mount: Option<Guard>,
    session: Option<BackgroundSession>,
    place: TempDir,
}

impl SlowDisk {
    /// Shows the files of `folder` at a path of its own.
    ///
    /// # Errors
    /// Why this machine cannot: no `/dev/fuse`, or not the right to mount.
    pub fn mount(folder: &Path) -> Result<Self, String> {
        let fault = |what: &str, error: io::Error| format!("{what}: {error}");
        // fuser would look for a helper program; without the device none can help.
        File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| fault("/dev/fuse cannot be opened", error))?;
        let place = tempfile::tempdir().map_err(|error| fault("no temporary folder", error))?;
        let folder = fs::canonicalize(folder).map_err(|error| fault("the folder to show", error))?;
        let rules = Arc::<Rules>::default();
        let mut options = fuser::Config::default();
        options.mount_options = vec![
            fuser::MountOption::RO,
            fuser::MountOption::FSName("linerate-slow-disk".to_owned()),
            fuser::MountOption::NoSuid,
            fuser::MountOption::NoDev,
        ];
        let session = fuser::Session::new(Mirror::new(folder, Arc::clone(&rules)), place.path(), &options)
            .map_err(|error| fault("a FUSE file system cannot be mounted", error))?;
        let mount = cleanup::enter(Leftover::Mount(place.path().to_owned()));
        let session = session.spawn().map_err(|error| fault("a thread cannot be started", error))?;
        Ok(Self { rules, mount: Some(mount), session: Some(session), place })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// From now on reads of the file `name` (relative to the folder) that touch these bytes meet `fault`. Of several rules
    /// that meet a read the oldest counts.
    pub fn break_reads(&self, name: &str, bytes: Range<u64>, fault: Fault) {
        self.rules.state().rules.push(Rule { name: name.to_owned(), bytes, fault });
    }

    /// Drops all rules, and answers all reads that hang.
    pub fn mend(&self) {
        let mut state = self.rules.state();
        state.rules.clear();
        state.mended += 1;
        self.rules.changed.notify_all();
    }

    /// How many reads have met a rule so far.
    #[must_use]
    pub fn broken_reads(&self) -> u64 {
        self.rules.state().broken_reads
    }

    /// Waits until at least so many reads have met a rule. Returns false when that takes longer than `limit`.
    #[must_use]
    pub fn wait_for_broken_reads(&self, reads: u64, limit: Duration) -> bool {
        let state = self.rules.state();
        let waited = self.rules.changed.wait_timeout_while(state, limit, |state| state.broken_reads < reads);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.mend();
        drop(self.mount.take());
        if let Some(session) = self.session.take() {
            let _ = session.join();
        }
    }
}
