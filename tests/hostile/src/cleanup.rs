//! What has to be taken away again, whatever happens: children, mounts, control groups and folders.
//!
//! Each is entered in one list when it comes into being. Its guard takes it away and out of the list when it is dropped.
//! When the program is interrupted, [`on_interrupt`] takes away whatever still stands in the list.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    process,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::{
    mount::{UnmountFlags, unmount},
    process::{Pid, Signal, kill_process, kill_process_group},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

/// One thing to take away.
#[derive(Clone, Debug)]
pub enum Leftover {
    /// A child process, which a guard elsewhere waits for.
    Process(u32),
    /// A child that leads a process group, with all that it started.
    ProcessGroup(u32),
    /// A file system that was mounted here.
    Mount(PathBuf),
    /// A control group without processes.
    ControlGroup(PathBuf),
    /// A folder with all that is in it.
    Folder(PathBuf),
}

static LIST: Mutex<BTreeMap<u64, Leftover>> = Mutex::new(BTreeMap::new());
/// Set under the list's lock: what comes into being after that is taken away at once.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicU64 = AtomicU64::new(0);

fn list() -> MutexGuard<'static, BTreeMap<u64, Leftover>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes its leftover away when dropped.
#[derive(Debug)]
pub struct Guard {
    number: u64,
}

/// Enters something that has come into being. Does not return once the program was interrupted: it is about to end.
#[must_use]
pub fn enter(leftover: Leftover) -> Guard {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut list = list();
    if INTERRUPTED.load(Ordering::Relaxed) {
        drop(list);
        leftover.take_away();
        wait_for_the_end();
    }
    list.insert(number, leftover);
    Guard { number }
}

/// For the program's own end: does not return once the program was interrupted. What a run came to is no result when its
/// server was taken away under it, and what is being taken away has to be gone before the process is.
pub fn yield_to_interrupt() {
    let list = list();
    if INTERRUPTED.load(Ordering::Relaxed) {
        drop(list);
        wait_for_the_end();
    }
}

fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}

impl Guard {
    /// It has gone by itself: nothing is left to take away.
    pub fn release(self) {
        list().remove(&self.number);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let leftover = list().remove(&self.number);
        if let Some(leftover) = leftover {
            leftover.take_away();
        }
    }
}

impl Leftover {
    fn take_away(&self) {
        match self {
            // A frozen process is killed as well: KILL needs no CONT.
            Self::Process(pid) => {
                let _ = pid_of(*pid).map(|pid| kill_process(pid, Signal::KILL));
            }
            Self::ProcessGroup(pid) => {
                let _ = pid_of(*pid).map(|pid| kill_process_group(pid, Signal::KILL));
            }
            // Forced: a process that waits for a read that hangs is told that the disk has gone. Detached: open files do not matter.
            Self::Mount(path) => {
                let _ = unmount(path, UnmountFlags::FORCE | UnmountFlags::DETACH);
            }
            Self::ControlGroup(path) => remove_control_group(path),
            // The processes that write into it have been killed, and may need a moment to end.
            Self::Folder(path) => {
                for _ in 0..50 {
                    if fs::remove_dir_all(path).is_ok() || !path.exists() {
                        return;
                    }
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Its processes have been killed; the kernel may need a moment until they have left it.
fn remove_control_group(path: &std::path::Path) {
    for _ in 0..200 {
        match fs::remove_dir(path) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
    eprintln!("the control group {} could not be removed", path.display());
}

/// Has INT, TERM and HUP take everything away and end this process with 130.
///
/// # Errors
/// The signals cannot be caught.
pub fn on_interrupt() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            eprintln!("interrupted: taking away what was started");
            take_all_away();
            process::exit(130);
        }
    })?;
    Ok(())
}

/// Takes everything away, the latest first: processes before the disks that they read, disks before their folders.
fn take_all_away() {
    let all: Vec<Leftover> = {
        let mut list = list();
        INTERRUPTED.store(true, Ordering::Relaxed);
        std::mem::take(&mut *list).into_values().collect()
    };
    for leftover in all.iter().rev() {
        leftover.take_away();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_guard_takes_its_folder_away_and_a_released_one_does_not() {
        let place = tempfile::tempdir().unwrap();
        let (gone, kept) = (place.path().join("gone"), place.path().join("kept"));
        fs::create_dir(&gone).unwrap();
        fs::create_dir(&kept).unwrap();
        drop(enter(Leftover::Folder(gone.clone())));
        enter(Leftover::Folder(kept.clone())).release();
        assert!(!gone.exists());
        assert!(kept.exists());
    }
}
