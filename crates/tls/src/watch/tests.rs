use super::*;
use std::{fs, os::unix::fs::symlink, path::Path, sync::mpsc};

/// Long enough for a loaded machine.
const SOON: Duration = Duration::from_secs(10);

/// Longer than a change takes to be reported.
const A_WHILE: Duration = Duration::from_millis(800);

fn watched(file: &Path) -> (FileWatch, Receiver<()>) {
    let (sender, changes) = mpsc::channel();
    let watch = FileWatch::start([file.to_owned()], move || sender.send(()).unwrap()).unwrap();
    assert_eq!(*watch.method(), WatchMethod::Events);
    (watch, changes)
}

fn replaced_by_rename(file: &Path, contents: &str) {
    let new = file.with_extension("new");
    fs::write(&new, contents).unwrap();
    fs::rename(&new, file).unwrap();
}

#[test]
fn a_file_is_watched_through_every_kind_of_replacement() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cert.pem");
    let (_watch, changes) = watched(&file);

    fs::write(&file, "created").unwrap();
    changes.recv_timeout(SOON).expect("its creation");
    fs::write(&file, "written in place").unwrap();
    changes.recv_timeout(SOON).expect("writing in place");
    for contents in ["first", "second"] {
        replaced_by_rename(&file, contents);
        changes.recv_timeout(SOON).expect("a rename");
    }
    fs::remove_file(&file).unwrap();
    changes.recv_timeout(SOON).expect("its removal");
}

#[test]
fn what_happens_beside_it_is_not_reported() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cert.pem");
    fs::write(&file, "x").unwrap();
    let (_watch, changes) = watched(&file);
    replaced_by_rename(&directory.path().join("other.pem"), "y");
    assert!(changes.recv_timeout(A_WHILE).is_err());
}

#[test]
fn changes_that_come_together_are_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cert.pem");
    fs::write(&file, "x").unwrap();
    let (_watch, changes) = watched(&file);
    for round in 0..10 {
        replaced_by_rename(&file, &format!("round {round}"));
    }
    changes.recv_timeout(SOON).unwrap();
    assert!(changes.recv_timeout(A_WHILE).is_err());
}

/// Kubernetes: `tls.crt -> ..data/tls.crt`, `..data -> ..2026_1`, and then `..data` is renamed over.
#[test]
fn a_swapped_symlink_in_the_parent_directory_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for (version, contents) in [("..1", "one"), ("..2", "two"), ("..3", "three")] {
        fs::create_dir(root.join(version)).unwrap();
        fs::write(root.join(version).join("tls.crt"), contents).unwrap();
    }
    symlink("..1", root.join("..data")).unwrap();
    symlink("..data/tls.crt", root.join("tls.crt")).unwrap();
    let (_watch, changes) = watched(&root.join("tls.crt"));
    for version in ["..2", "..3"] {
        symlink(version, root.join("..data_tmp")).unwrap();
        fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
        changes.recv_timeout(SOON).expect(version);
    }
    // The directory that it leads to now is watched, too.
    fs::write(root.join("..3/tls.crt"), "edited in place").unwrap();
    changes.recv_timeout(SOON).expect("the new target");
}

/// A symlink further up: `/srv/certs -> certs-1`.
#[test]
fn a_swapped_directory_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for version in ["certs-1", "certs-2"] {
        fs::create_dir(root.join(version)).unwrap();
        fs::write(root.join(version).join("cert.pem"), version).unwrap();
    }
    symlink("certs-1", root.join("certs")).unwrap();
    let (_watch, changes) = watched(&root.join("certs/cert.pem"));
    symlink("certs-2", root.join("new")).unwrap();
    fs::rename(root.join("new"), root.join("certs")).unwrap();
    changes.recv_timeout(SOON).unwrap();
}

#[test]
fn without_events_the_files_are_polled_and_it_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cert.pem");
    fs::write(&file, "x").unwrap();
    let (sender, changes) = mpsc::channel();
    let watch = FileWatch::start_with(
        BTreeSet::from([file.clone()]),
        move || sender.send(()).unwrap(),
        |_| Err(notify::Error::generic("no inotify here")),
    )
    .unwrap();
    let WatchMethod::Polling { reason } = watch.method() else { panic!("{watch:?}") };
    assert!(reason.contains("no inotify here"));
    replaced_by_rename(&file, "y");
    changes.recv_timeout(SOON).unwrap();
}

#[test]
fn dropping_ends_the_thread() {
    let directory = tempfile::tempdir().unwrap();
    let (watch, changes) = watched(&directory.path().join("cert.pem"));
    drop(watch);
    // The callback, and with it the sender, went with the thread.
    assert_eq!(changes.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
}
