//! Files that are not in memory: fetched elsewhere, so that no worker waits for the disk (INV-COLD-1).

use crate::support::{Connection, Fixture, Transport, add_at_rest, certificate_folder};
use linerate_end_to_end::{ServerSetup, Site, skip};
use linerate_os::file::{ResidentRead, read_resident};
use rustix::fs::{Advice, fadvise};
use std::{
    fs::{self, File, Permissions},
    io::IoSliceMut,
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Writes a file out and has the kernel forget it. False where that can't be done (tmpfs, some overlays).
fn evict(path: &Path) -> bool {
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    let mut byte = [0];
    matches!(read_resident(&file, &mut [IoSliceMut::new(&mut byte)], 1 << 20), Ok(ResidentRead::WouldWait))
}

#[test]
fn cold_files_arrive_whole_and_are_counted() {
    let site = Site::empty();
    let names = ["mapped.bin", "plain.bin", "read.bin", "range.bin"];
    let files = names.map(|name| {
        if name == "read.bin" {
            site.add_pattern(name, 5_000_001)
        } else {
            add_at_rest(&site, name, 5_000_001)
        }
    });
    let fixture = Fixture::start(site);
    for (name, bytes) in names.iter().zip(&files) {
        let transport = if *name == "plain.bin" { Transport::Plain } else { Transport::Tls };
        let mut connection = fixture.connect(transport);
        // The name is known from here on: what is counted below is the file's own.
        connection.send(format!("HEAD /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(connection.response_to(true).content_length(), Some(bytes.len()));
        if !evict(&fixture.site.path().join(name)) {
            skip(
                "cold_files_arrive_whole_and_are_counted",
                "files in the temporary folder cannot leave memory",
            );
            return;
        }
        let before = fixture.server.metric("linerate_cold_reads_total", "");
        if *name == "range.bin" {
            let range = "Range: bytes=3000001-4000000\r\n";
            connection.get(&format!("/{name}"), range).assert_is(206, &bytes[3_000_001..=4_000_000]);
        } else {
            connection.get(&format!("/{name}"), "").assert_is(200, bytes);
        }
        let after = fixture.server.metric("linerate_cold_reads_total", "");
        assert!(after > before, "{name}: {before} cold reads, then {after}");
        connection.get(&format!("/{name}"), "").assert_is(200, bytes);
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
    let bytes = add_at_rest(&site, "film.bin", 5_000_001);
    let film = site.path().join("film.bin");
    let (keys, pair) = certificate_folder();
    for (path, mode) in [
        (site.path(), 0o755),
        (&film, 0o444),
        (keys.path(), 0o755),
        (&pair.certificate, 0o444),
        (&pair.key, 0o444),
    ] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let server = ServerSetup::tls(&site, &pair).admin().user(NOBODY).start();
    let mut connection = Connection::tls(server.address(), &pair, "localhost");
    connection.send("HEAD /film.bin HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(connection.response_to(true).content_length(), Some(bytes.len()));
    let cold_reads = || server.metric("linerate_cold_reads_total", "");
    if evict(&film) {
        let before = cold_reads();
        connection.get("/film.bin", "").assert_is(200, &bytes);
        assert!(cold_reads() > before);
    } else {
        skip(NAME, "files in the temporary folder cannot leave memory: that part is left out");
    }
    let before = cold_reads();
    for _ in 0..3 {
        connection.get("/film.bin", "").assert_is(200, &bytes);
    }
    assert_eq!(cold_reads(), before, "it is in memory");
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    assert!(status.lines().any(|line| line.starts_with("Uid:\t65534\t65534")), "{status}");
    let mappings = fs::read_to_string(format!("/proc/{}/maps", server.pid())).unwrap();
    assert!(mappings.contains("film.bin"), "it is not mapped");
}
