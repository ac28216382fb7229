//! Files that are not in memory: fetched elsewhere, so that no worker waits for the disk (INV-COLD-1).

use crate::support::{Connection, Fixture, Transport, add_at_rest, certificate_folder};
use linerate_end_to_end::{Server, ServerSetup, Site, skip};
use linerate_os::mapping::Mapping;
use rustix::fs::{Advice, fadvise};
use std::{
    fs::{self, File, Permissions},
    ops::RangeInclusive,
    os::unix::fs::PermissionsExt,
    path::Path,
    thread,
    time::Duration,
};

/// Writes a file out and has the kernel forget all of it. False where that can't be done (tmpfs, some overlays).
fn evict(path: &Path) -> bool {
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.sync_all().unwrap();
    let mapping = Mapping::new(&file, file.metadata().unwrap().len()).unwrap();
    let mut scratch = Vec::new();
    // Page by page, as a mapping only tells whether all of a range is there. Asking brings nothing into memory.
    let mut nothing_is_left = || {
        (0..mapping.length_bytes())
            .step_by(4096)
            .all(|page| !mapping.is_resident(&file, page..page + 1, &mut scratch).unwrap())
    };
    // Pages that the kernel still has on the way to its lists stay behind at first.
    (0..50).any(|_| {
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        nothing_is_left() || {
            thread::sleep(Duration::from_millis(10));
            false
        }
    })
}

/// What came of asking for files that had left memory.
enum Cold {
    Counted,
    NeverCounted,
    /// Files cannot leave memory here.
    Never,
}

/// Has files added, evicted and asked for until such a read was counted as cold; every answer is verified.
///
/// One file is not enough. Where a worker cannot ask which pages are there, it probes them by reads that do not wait. Such a
/// read has the kernel begin to read ahead, and a disk that answers at once brings the whole file before the worker has
/// looked further: nothing waited, and nothing is counted. A virtual disk did that with one file of ten.
fn ask_for_cold_files(
    server: &Server,
    connection: &mut Connection,
    root: &Path,
    mut add: impl FnMut(&str) -> Vec<u8>,
    range: Option<RangeInclusive<usize>>,
) -> Cold {
    let cold_reads = || server.metric("linerate_cold_reads_total", "");
    for name in (0..10).map(|number| format!("{number}.bin")) {
        let bytes = add(&name);
        // The name is known from here on: what is counted below is the file's own.
        connection.send(format!("HEAD /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(connection.response_to(true).content_length(), Some(bytes.len()));
        let is_cold = evict(&root.join(&name));
        let before = cold_reads();
        match &range {
            Some(range) => {
                let field = format!("Range: bytes={}-{}\r\n", range.start(), range.end());
                connection.get(&format!("/{name}"), &field).assert_is(206, &bytes[range.clone()]);
            }
            None => connection.get(&format!("/{name}"), "").assert_is(200, &bytes),
        }
        let after = cold_reads();
        connection.get(&format!("/{name}"), "").assert_is(200, &bytes);
        if !is_cold {
            return Cold::Never;
        }
        if after > before {
            return Cold::Counted;
        }
    }
    Cold::NeverCounted
}

#[test]
fn cold_files_arrive_whole_and_are_counted() {
    const LENGTH_BYTES: usize = 5_000_001;
    let add_mapped: fn(&Site, &str) -> Vec<u8> = |site, name| add_at_rest(site, name, LENGTH_BYTES);
    // Written a moment ago: it may be written again, and is not mapped.
    let add_read: fn(&Site, &str) -> Vec<u8> = |site, name| site.add_pattern(name, LENGTH_BYTES);
    for (what, transport, add, range) in [
        ("mapped", Transport::Tls, add_mapped, None),
        ("plain", Transport::Plain, add_mapped, None),
        ("read", Transport::Tls, add_read, None),
        ("range", Transport::Tls, add_mapped, Some(3_000_001..=4_000_000)),
    ] {
        let fixture = Fixture::start(Site::empty());
        let mut connection = fixture.connect(transport);
        let add = |name: &str| add(&fixture.site, name);
        match ask_for_cold_files(&fixture.server, &mut connection, fixture.site.path(), add, range) {
            Cold::Counted => {}
            Cold::NeverCounted => panic!("{what}: no cold read is counted"),
            Cold::Never => {
                skip(
                    "cold_files_arrive_whole_and_are_counted",
                    "files in the temporary folder cannot leave memory",
                );
                return;
            }
        }
    }
}

/// Content that the server's user does not own and may only read, as the systemd unit has it: sealed from mappings all the
/// same, and no worker waits for the disk.
#[test]
fn files_that_may_only_be_read_are_mapped_and_never_waited_for() {
    const NAME: &str = "files_that_may_only_be_read_are_mapped_and_never_waited_for";
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return skip(NAME, "only root can run the server as another user");
    }
    let site = Site::empty();
    let (keys, pair) = certificate_folder();
    let set_mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    for folder in [site.path(), keys.path()] {
        set_mode(folder, 0o755);
    }
    for file in [&pair.certificate, &pair.key] {
        set_mode(file, 0o444);
    }
    let server = ServerSetup::tls(&site, &pair).admin().user(NOBODY).start();
    let mut connection = Connection::tls(server.address(), &pair, "localhost");
    let mut films = Vec::new();
    let add = |name: &str| {
        let bytes = add_at_rest(&site, name, 5_000_001);
        set_mode(&site.path().join(name), 0o444);
        films.push((name.to_owned(), bytes.clone()));
        bytes
    };
    match ask_for_cold_files(&server, &mut connection, site.path(), add, None) {
        Cold::Counted => {}
        Cold::NeverCounted => panic!("no cold read is counted"),
        Cold::Never => skip(NAME, "files in the temporary folder cannot leave memory: that part is left out"),
    }
    let cold_reads = || server.metric("linerate_cold_reads_total", "");
    let before = cold_reads();
    for (name, bytes) in films.iter().flat_map(|film| [film; 3]) {
        connection.get(&format!("/{name}"), "").assert_is(200, bytes);
    }
    assert_eq!(cold_reads(), before, "they are in memory");
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    assert!(status.lines().any(|line| line.starts_with("Uid:\t65534\t65534")), "{status}");
    let mappings = fs::read_to_string(format!("/proc/{}/maps", server.pid())).unwrap();
    assert!(mappings.contains(&films[0].0), "it is not mapped");
}
