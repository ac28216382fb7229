//! A run that is interrupted leaves nothing behind: no process, no mount, no folder.

use linerate_end_to_end::{linerate_binary, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    process::{Command, Stdio},
};

#[test]
fn an_interrupted_run_takes_everything_away() {
    for program in ["soak", "disks"] {
        let place = tempfile::tempdir().unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_linerate-hostile"))
            .args(["run", program, "--soak", "600", "--server"])
            .arg(linerate_binary())
            // All folders and mounts are made here.
            .env("TMPDIR", place.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let here = place.path().to_str().unwrap().to_owned();
        let servers = || {
            let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
            let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
            lines
                .filter(|line| String::from_utf8_lossy(line).contains(&format!("{here}/linerate-hostile-")))
                .count()
        };
        // Unless the machine cannot mount disks at all: then the run is over at once, and has nothing to leave.
        wait_until("a server runs", || servers() > 0 || run.try_wait().unwrap().is_some());
        let is_over = run.try_wait().unwrap().is_some();
        let pid = Pid::from_raw(i32::try_from(run.id()).unwrap()).unwrap();
        if !is_over {
            kill_process(pid, Signal::INT).unwrap();
        }
        let status = run.wait().unwrap();
        assert_eq!(status.code(), Some(if is_over { 0 } else { 130 }));
        wait_until("no server runs", || servers() == 0);
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().filter_map(Result::ok).collect();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(&here), "{mounts}");
        // The empty folder that a disk was mounted at is the system's to sweep.
        for entry in left {
            assert!(fs::read_dir(entry.path()).unwrap().next().is_none(), "{entry:?} is left");
        }
    }
}
