//! The slow disk itself: what it shows, and that rules do what they say. Files are read by other processes, because a
//! thread of this one that hangs in the kernel would keep the test from ending.

use linerate_end_to_end::{Program, Site, skip};
use linerate_hostile::{Fault, SlowDisk};
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(20);

fn mounted(test: &str, site: &Site) -> Option<SlowDisk> {
    SlowDisk::mount(site.path()).map_err(|why| skip(test, &why)).ok()
}

fn read(disk: &SlowDisk, name: &str) -> linerate_end_to_end::Finished {
    Program::new("cat", [disk.path().join(name)]).run()
}

#[test]
fn the_files_are_those_of_the_folder() {
    let site = Site::empty();
    let bytes = site.add_pattern("folder/odd.bin", 1_048_577);
    let Some(disk) = mounted("the_files_are_those_of_the_folder", &site) else { return };
    assert_eq!(read(&disk, "folder/odd.bin").success(), bytes);
    let names = Program::new("ls", [disk.path().join("folder")]).run();
    assert_eq!(names.text(), "odd.bin\n");
    assert_eq!(disk.broken_reads(), 0);
}

#[test]
fn a_read_that_is_to_fail_fails_and_the_bytes_before_it_come() {
    let site = Site::empty();
    let bytes = site.add_pattern("odd.bin", 1_048_577);
    let Some(disk) = mounted("a_read_that_is_to_fail_fails_and_the_bytes_before_it_come", &site) else {
        return;
    };
    disk.break_reads("odd.bin", 600_000..600_001, Fault::Fail);
    let failed = read(&disk, "odd.bin");
    assert!(!failed.status.success());
    assert!(failed.stdout.len() <= 600_000 && bytes.starts_with(&failed.stdout));
    disk.mend();
    assert_eq!(read(&disk, "odd.bin").success(), bytes);
}

#[test]
fn a_read_waits_as_long_as_it_is_to() {
    let site = Site::empty();
    let bytes = site.add_pattern("odd.bin", 300_001);
    let Some(disk) = mounted("a_read_waits_as_long_as_it_is_to", &site) else { return };
    disk.break_reads("odd.bin", 0..1, Fault::Delay(Duration::from_millis(700)));
    let begun = Instant::now();
    assert_eq!(read(&disk, "odd.bin").success(), bytes);
    assert!(begun.elapsed() >= Duration::from_millis(700));
}

#[test]
fn a_read_that_hangs_is_answered_once_the_disk_is_mended() {
    let site = Site::empty();
    let bytes = site.add_pattern("odd.bin", 300_001);
    let Some(disk) = mounted("a_read_that_hangs_is_answered_once_the_disk_is_mended", &site) else { return };
    disk.break_reads("odd.bin", 0..1, Fault::Hang);
    let mut reader =
        Command::new("cat").arg(disk.path().join("odd.bin")).stdout(Stdio::piped()).spawn().unwrap();
    assert!(disk.wait_for_broken_reads(1, PATIENCE));
    assert!(reader.try_wait().unwrap().is_none());
    disk.mend();
    let output = reader.wait_with_output().unwrap();
    assert_eq!(output.stdout, bytes);
}

#[test]
fn the_mount_goes_with_it_even_while_a_read_hangs() {
    let site = Site::empty();
    site.add_pattern("odd.bin", 300_001);
    let Some(disk) = mounted("the_mount_goes_with_it_even_while_a_read_hangs", &site) else { return };
    let place = disk.path().to_owned();
    disk.break_reads("odd.bin", 0..1, Fault::Hang);
    let mut reader = Command::new("cat").arg(place.join("odd.bin")).stdout(Stdio::null()).spawn().unwrap();
    assert!(disk.wait_for_broken_reads(1, PATIENCE));
    drop(disk);
    reader.wait().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(place.to_str().unwrap()), "{mounts}");
}
