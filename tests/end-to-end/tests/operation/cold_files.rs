//! Files that are not in memory: fetched elsewhere, so that no worker waits for the disk (INV-COLD-1).

use crate::support::{Fixture, Transport, add_at_rest};
use linerate_end_to_end::{Site, skip};
use rustix::{
    fs::{Advice, fadvise},
    io::{Errno, ReadWriteFlags, preadv2},
};
use std::{fs::File, io::IoSliceMut, path::Path};

/// Writes a file out and has the kernel forget it. False where that can't be done (tmpfs, some overlays).
fn evict(path: &Path) -> bool {
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    let mut byte = [0];
    preadv2(&file, &mut [IoSliceMut::new(&mut byte)], 1 << 20, ReadWriteFlags::NOWAIT) == Err(Errno::AGAIN)
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
