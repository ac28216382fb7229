//! What would be served from: memory for the page cache, and the folder that was asked about with its file system.

use std::{
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::IoSliceMut,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use linerate_content::{FileTime, sibling_is_current, sibling_original};
use linerate_environment::{Files, Reading, value};
use linerate_http::MediaTypes;
use linerate_os::file::{ResidentRead, read_resident};

use crate::facts::{Content, Root, RootFacts};

/// So many entries of a folder and those below are looked at: a mirror has millions, and a doctor takes seconds.
const ENTRIES_LIMIT: usize = 20_000;

/// So many siblings that are not current are named; all are counted.
const NAMED_SIBLINGS_LIMIT: usize = 5;

/// Asks.
pub(super) fn gather(files: &Files<'_>, root: Option<&Path>) -> Content {
    let meminfo = files.text("/proc/meminfo");
    let of_meminfo = |key: &str| match &meminfo {
        Reading::Value(text) => bytes(text, key)
            .map_or_else(|| Reading::NotAvailable(format!("/proc/meminfo has no {key}")), Reading::Value),
        Reading::NotAvailable(reason) => Reading::NotAvailable(reason.clone()),
    };
    Content {
        available_bytes: of_meminfo("MemAvailable"),
        cached_bytes: of_meminfo("Cached"),
        root: root.map(|path| Root { path: path.display().to_string(), found: look_at(files, path) }),
    }
}

/// `MemAvailable:   23838996 kB` in bytes.
fn bytes(meminfo: &str, key: &str) -> Option<u64> {
    let kib: u64 = value(meminfo, ':', key)?.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn look_at(files: &Files<'_>, path: &Path) -> Result<RootFacts, String> {
    let refused = |error: std::io::Error| format!("{}: {error}", path.display());
    let path = path.canonicalize().map_err(refused)?;
    let device = fs::metadata(&path).map_err(refused)?.dev();
    let mount = files.text("/proc/self/mountinfo").map(|text| mounted(&text, &path));
    let of_mount = |part: fn(&Mount) -> &String| match &mount {
        Reading::Value(Some(mount)) => Reading::Value(part(mount).clone()),
        Reading::Value(None) => Reading::NotAvailable("no mount covers it".to_owned()),
        Reading::NotAvailable(reason) => Reading::NotAvailable(reason.clone()),
    };
    let mut facts = RootFacts {
        file_system: of_mount(|mount| &mount.kind),
        mount_options: of_mount(|mount| &mount.options),
        rotational: queue(files, device, "rotational").map(|number| number == 1),
        read_ahead_kib: queue(files, device, "read_ahead_kb"),
        files: 0,
        bytes: 0,
        more: false,
        tells_what_is_in_memory: Reading::NotAvailable("there is no file to ask about".to_owned()),
        tells_time_of_birth: tells_time_of_birth(&path),
        mounts_below: files.text("/proc/self/mountinfo").map(|text| mounted_below(&text, &path)),
        siblings: 0,
        stale_siblings: 0,
        stale_names: Vec::new(),
    };
    count(&path, &mut facts);
    Ok(facts)
}

/// Counts files, asks about the first that can be opened, and looks whether precompressed siblings are current.
fn count(path: &Path, facts: &mut RootFacts) {
    let media_types = MediaTypes::default();
    let mut folders: Vec<PathBuf> = vec![path.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        // What cannot be read is not served either.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > ENTRIES_LIMIT {
                facts.more = true;
                return;
            }
            // Of a link it is the link's own: none is followed, so none is counted twice.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.is_file() {
                facts.files += 1;
                facts.bytes += metadata.len();
                if facts.tells_what_is_in_memory.value().is_none() && metadata.len() > 0 {
                    facts.tells_what_is_in_memory = tells_what_is_in_memory(&entry.path());
                }
                let name = entry.file_name();
                if let Some(original) = sibling_original(name.as_bytes(), &media_types) {
                    let original = folder.join(OsStr::from_bytes(original));
                    count_sibling(path, &entry.path(), &metadata, &original, facts);
                }
            }
        }
    }
}

/// Counts a sibling of a file that is there, and whether the server would take it for current.
fn count_sibling(root: &Path, sibling: &Path, metadata: &Metadata, original: &Path, facts: &mut RootFacts) {
    let Ok(original) = fs::metadata(original) else { return };
    if !original.is_file() {
        return;
    }
    facts.siblings += 1;
    if !sibling_is_current(modified(metadata), modified(&original)) {
        facts.stale_siblings += 1;
        if facts.stale_names.len() < NAMED_SIBLINGS_LIMIT {
            facts.stale_names.push(sibling.strip_prefix(root).unwrap_or(sibling).to_owned());
        }
    }
}

fn modified(metadata: &Metadata) -> FileTime {
    // The kernel keeps nanoseconds below a second.
    let nanoseconds = u32::try_from(metadata.mtime_nsec()).unwrap_or(0);
    FileTime { unix_seconds: metadata.mtime(), nanoseconds }
}

fn tells_what_is_in_memory(path: &Path) -> Reading<bool> {
    let asked = File::open(path).and_then(|file| read_resident(&file, &mut [IoSliceMut::new(&mut [0])], 0));
    match asked {
        Ok(read) => Reading::Value(read != ResidentRead::Unsupported),
        Err(error) => Reading::NotAvailable(format!("{}: {error}", path.display())),
    }
}

fn tells_time_of_birth(path: &Path) -> Reading<bool> {
    // The standard library asks by statx, and has no other error for a time that is not there.
    match fs::metadata(path).and_then(|metadata| metadata.created()) {
        Ok(_) => Reading::Value(true),
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Reading::Value(false),
        Err(error) => Reading::NotAvailable(format!("{}: {error}", path.display())),
    }
}

struct Mount {
    kind: String,
    options: String,
}

/// The mount that covers a path: the last one of those with the longest mount point (proc(5), mountinfo).
fn mounted(mountinfo: &str, path: &Path) -> Option<Mount> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut fields = before.split(' ').skip(4);
            let (point, options) = (unescaped(fields.next()?), fields.next()?);
            let kind = after.split(' ').next()?;
            let depth = path.starts_with(&point).then(|| Path::new(&point).components().count())?;
            Some((depth, Mount { kind: kind.to_owned(), options: options.to_owned() }))
        })
        .max_by_key(|(depth, _)| *depth)
        .map(|(_, mount)| mount)
}

/// Where file systems are mounted below a path, each once.
fn mounted_below(mountinfo: &str, path: &Path) -> Vec<PathBuf> {
    let point = |line: &str| line.split(' ').nth(4).map(unescaped).map(PathBuf::from);
    let mut points: Vec<PathBuf> = mountinfo
        .lines()
        .filter_map(point)
        .filter(|point| point != path && point.starts_with(path))
        .collect();
    points.sort();
    points.dedup();
    points
}

/// White space in mount points is written in octal.
fn unescaped(point: &str) -> String {
    point.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// A number of the block device's queue: of the device itself or, for a partition, of the one that it is a part of.
fn queue(files: &Files<'_>, device: u64, name: &str) -> Reading<u64> {
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let of = |place: &str| files.text(&format!("/sys/dev/block/{number}/{place}queue/{name}"));
    [of(""), of("../")].into_iter().find_map(|text| text.value()?.parse().ok()).map_or_else(
        || Reading::NotAvailable("it is on no block device of its own".to_owned()),
        Reading::Value,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mountinfo = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                         30 22 8:2 / /srv rw,nodev - xfs /dev/sda2 rw\n\
                         31 22 8:3 / /srv/my\\040media ro,nosuid - btrfs /dev/sda3 rw\n\
                         broken\n";
        let of = |path: &str| mounted(mountinfo, Path::new(path)).map(|mount| (mount.kind, mount.options));
        let expected = |kind: &str, options: &str| Some((kind.to_owned(), options.to_owned()));
        assert_eq!(of("/srv/films"), expected("xfs", "rw,nodev"));
        assert_eq!(of("/srv/my media/a"), expected("btrfs", "ro,nosuid"));
        assert_eq!(of("/srvx"), expected("ext4", "rw,relatime"));
        let below = |path: &str| mounted_below(mountinfo, Path::new(path));
        assert_eq!(below("/srv"), [Path::new("/srv/my media")]);
        assert!(below("/srv/my media").is_empty() && below("/sr").is_empty());
    }

    #[test]
    fn a_folder_is_counted_and_asked_about() {
        let root = tempfile::tempdir().expect("a folder");
        let nothing = gather(&Files::below(Path::new("/")), Some(root.path())).root.expect("asked for");
        let nothing = nothing.found.expect("it is there");
        assert_eq!((nothing.files, nothing.bytes, nothing.more), (0, 0, false));
        assert!(nothing.tells_what_is_in_memory.value().is_none());
        fs::create_dir(root.path().join("below")).expect("made");
        fs::write(root.path().join("below/a"), [1; 1001]).expect("written");
        fs::write(root.path().join("b"), [1; 10]).expect("written");
        std::os::unix::fs::symlink(root.path(), root.path().join("loop")).expect("made");
        let found = gather(&Files::below(Path::new("/")), Some(root.path())).root.expect("asked for");
        let found = found.found.expect("it is there");
        assert_eq!((found.files, found.bytes, found.more), (2, 1011, false));
        assert!(found.tells_what_is_in_memory.value().is_some() && found.file_system.value().is_some());
        let missing = gather(&Files::below(Path::new("/")), Some(Path::new("/linerate/none"))).root;
        assert!(missing.expect("asked for").found.expect_err("none").contains("/linerate/none: "));
    }

    #[test]
    fn siblings_are_held_against_their_files() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir(root.path().join("below")).expect("made");
        let write = |name: &str, unix_s: u64, nanoseconds: u32| {
            let path = root.path().join(name);
            fs::write(&path, name).expect("written");
            let time = std::time::UNIX_EPOCH + std::time::Duration::new(unix_s, nanoseconds);
            File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_modified(time))
                .expect("its owner may");
        };
        write("below/a.js", 1_700_000_000, 5);
        // As brotli leaves it, older by an hour, newer; one without a file, and one that is never served.
        write("below/a.js.br", 1_700_000_000, 0);
        write("below/a.js.gz", 1_699_996_400, 5);
        write("below/a.js.zst", 1_700_000_001, 0);
        write("below/b.js.gz", 1, 0);
        write("film.mp4", 1_700_000_000, 0);
        write("film.mp4.gz", 1, 0);
        let found = gather(&Files::below(Path::new("/")), Some(root.path())).root.expect("asked for");
        let found = found.found.expect("it is there");
        assert_eq!((found.siblings, found.stale_siblings), (3, 1));
        assert_eq!(found.stale_names, [Path::new("below/a.js.gz")]);
    }

    #[test]
    fn memory_is_told_in_bytes() {
        assert_eq!(bytes("MemTotal: 8 kB\nMemAvailable:   23 kB\n", "MemAvailable"), Some(23 * 1024));
        assert_eq!(bytes("MemAvailable: 23 MB\n", "MemAvailable"), None);
        assert_eq!(bytes("MemAvailable: 99999999999999999999 kB\n", "MemAvailable"), None);
    }
}
