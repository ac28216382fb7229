//! The cache: hits, changes that are noticed, bounds, and what it keeps beside the files.

mod common;

use std::cell::Cell;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use common::{Site, accepted, bytes, path, set_age_seconds};
use linerate_content::{
    Blocking, Cache, CacheLimits, Content, ContentError, Entry, Found, Policy, Root, Served,
};
use linerate_http::Coding;

type Kept = Arc<Entry<Cell<u32>>>;

struct Worker {
    cache: Cache<Cell<u32>>,
    now: Instant,
}

impl Worker {
    fn new(entries: usize) -> Self {
        Self { cache: Cache::new(CacheLimits { entries, ..CacheLimits::default() }), now: Instant::now() }
    }

    fn get(&mut self, root: &Root, name: &str, header: &str) -> Kept {
        match self.cache.lookup(root, &path(name), &accepted(header), self.now, Blocking::Allowed) {
            Ok(Served::File(entry)) => entry,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn is_kept(&mut self, root: &Root, name: &str) -> bool {
        self.cache.find(root.id(), &path(name), &accepted(""), self.now).is_some()
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }
}

/// A file that has been left alone for a minute, so that its tag does not change under the test.
fn write_old(site: &Site, name: &str, bytes: &str) {
    site.write(name, bytes);
    set_age_seconds(&site.path(name), 60);
}

fn content(root: &Root, name: &str, header: &str) -> Content {
    match root.lookup(&path(name), &accepted(header), Blocking::Allowed) {
        Ok(Found::File(content)) => content,
        other => panic!("{name}: {other:?}"),
    }
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_hit_gives_the_same_entry_and_its_extension() {
    let site = Site::new();
    write_old(&site, "file.txt", "text");
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    let first = worker.get(&root, "file.txt", "");
    first.extension.set(7);
    worker.pass(999);
    let second = worker.get(&root, "file.txt", "");
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(second.extension.get(), 7);
    assert_eq!(worker.cache.len(), 1);
}

#[test]
fn an_unchanged_file_keeps_its_entry_when_its_path_is_resolved_again() {
    let site = Site::new();
    write_old(&site, "file.txt", "text");
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    let first = worker.get(&root, "file.txt", "");
    worker.pass(1000);
    assert!(!worker.is_kept(&root, "file.txt"));
    assert!(Arc::ptr_eq(&first, &worker.get(&root, "file.txt", "")));
    assert!(worker.is_kept(&root, "file.txt"));
}

#[test]
fn a_file_that_was_written_to_or_renamed_over_is_opened_again_at_once() {
    let site = Site::new();
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    write_old(&site, "file.txt", "first");
    let first = worker.get(&root, "file.txt", "");
    fs::File::options().write(true).open(site.path("file.txt")).unwrap().set_len(2).unwrap();
    let truncated = worker.get(&root, "file.txt", "");
    assert_eq!((truncated.content.length_bytes(), first.content.length_bytes()), (2, 5));
    write_old(&site, "new.txt", "second");
    fs::rename(site.path("new.txt"), site.path("file.txt")).unwrap();
    let renamed = worker.get(&root, "file.txt", "");
    assert_eq!(bytes(&renamed.content), b"second");
    assert_eq!(worker.cache.len(), 1);
    // A transfer that had begun still has its bytes.
    assert_eq!(bytes(&truncated.content), b"fi");
}

#[test]
fn a_switched_directory_is_noticed_after_the_time_to_revalidate() {
    let site = Site::new();
    write_old(&site, "one/file.txt", "one");
    write_old(&site, "two/file.txt", "two");
    site.link("one", "current");
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    worker.get(&root, "current/file.txt", "");
    site.link("two", "next");
    fs::rename(site.path("next"), site.path("current")).unwrap();
    assert_eq!(bytes(&worker.get(&root, "current/file.txt", "").content), b"one");
    worker.pass(1000);
    assert_eq!(bytes(&worker.get(&root, "current/file.txt", "").content), b"two");
    assert_eq!(worker.cache.len(), 1);
}

#[test]
fn a_removed_file_is_closed_and_no_refusal_is_kept() {
    let site = Site::new();
    write_old(&site, "file.txt", "text");
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    worker.get(&root, "file.txt", "");
    fs::remove_file(site.path("file.txt")).unwrap();
    let gone = worker.cache.lookup(&root, &path("file.txt"), &accepted(""), worker.now, Blocking::Allowed);
    assert!(matches!(gone, Err(ContentError::Refused(_))));
    assert!(worker.cache.is_empty());
    write_old(&site, "file.txt", "again");
    assert_eq!(bytes(&worker.get(&root, "file.txt", "").content), b"again");
}

#[test]
fn a_weak_tag_becomes_strong() {
    let site = Site::new();
    site.write("file.txt", "text");
    // As far ahead as a tag is still weak: the file counts as fresh for four seconds from now on.
    let file = fs::File::options().write(true).open(site.path("file.txt")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(2)).unwrap();
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    assert!(worker.get(&root, "file.txt", "").content.etag().starts_with("W/"));
    // The cache's own time stands still: only the tag can be the reason.
    let give_up = Instant::now() + Duration::from_secs(60);
    while !worker.get(&root, "file.txt", "").content.etag().starts_with('"') {
        assert!(Instant::now() < give_up, "it stays weak");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(worker.cache.len(), 1);
}

#[test]
fn variants_are_kept_apart_and_shared_between_clients() {
    let site = Site::new();
    for name in ["app.js", "app.js.gz", "alone.js", "film.mp4"] {
        write_old(&site, name, name);
    }
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    let plain = worker.get(&root, "app.js", "");
    let gzip = worker.get(&root, "app.js", "gzip");
    assert_eq!((plain.content.coding(), gzip.content.coding()), (None, Some(Coding::Gzip)));
    assert!(Arc::ptr_eq(&gzip, &worker.get(&root, "app.js", "gzip, br")));
    assert!(Arc::ptr_eq(&plain, &worker.get(&root, "app.js", "br")));
    assert!(Arc::ptr_eq(&gzip, &worker.get(&root, "app.js", "gzip")));
    assert_eq!(worker.cache.len(), 2);
    // Without siblings all clients share one entry.
    let alone = worker.get(&root, "alone.js", "");
    for header in ["gzip", "br, zstd", "zstd;q=0.5, br;q=0.4", "gzip, br, zstd"] {
        assert!(Arc::ptr_eq(&alone, &worker.get(&root, "alone.js", header)));
    }
    let film = worker.get(&root, "film.mp4", "");
    assert!(Arc::ptr_eq(&film, &worker.get(&root, "film.mp4", "gzip")));
    assert_eq!(worker.cache.len(), 4);
}

#[test]
fn a_sibling_that_appears_or_goes_is_noticed() {
    let site = Site::new();
    write_old(&site, "app.js", "plain");
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    assert_eq!(worker.get(&root, "app.js", "gzip").content.coding(), None);
    write_old(&site, "app.js.gz", "packed");
    fs::write(site.path("app.js.gz"), "packed").unwrap();
    worker.pass(1000);
    assert_eq!(worker.get(&root, "app.js", "gzip").content.coding(), Some(Coding::Gzip));
    assert_eq!(worker.cache.len(), 1, "nobody chooses the plain file any more");
    fs::remove_file(site.path("app.js.gz")).unwrap();
    assert_eq!(worker.get(&root, "app.js", "gzip").content.coding(), None);
    assert_eq!(worker.cache.len(), 1);
}

#[test]
fn a_path_with_a_slash_is_another_than_one_without() {
    let site = Site::new();
    write_old(&site, "dir/index.html", "index");
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    assert_eq!(bytes(&worker.get(&root, "dir/", "").content), b"index");
    let without = worker.cache.lookup(&root, &path("dir"), &accepted(""), worker.now, Blocking::Allowed);
    assert!(matches!(without, Ok(Served::NeedsSlash)));
    assert!(worker.is_kept(&root, "dir/") && !worker.is_kept(&root, "dir"));
}

#[test]
fn roots_are_never_mixed_up() {
    let (one, two) = (Site::new(), Site::new());
    write_old(&one, "file.txt", "one");
    write_old(&two, "file.txt", "two");
    let roots = [one.open(Policy::default()), two.open(Policy::default()), one.open(Policy::default())];
    let mut worker = Worker::new(10);
    for _ in 0..2 {
        for (root, expected) in roots.iter().zip(["one", "two", "one"]) {
            assert_eq!(worker.get(root, "file.txt", "").content.length_bytes(), 3);
            let again = content(root, "file.txt", "");
            assert_eq!(worker.get(root, "file.txt", "").content.identity(), again.identity(), "{expected}");
        }
    }
    assert_eq!(worker.cache.len(), 3);
}

/// The only test that counts descriptors of the process would be disturbed by the others, so it looks for its own.
fn descriptors_beneath(site: &Site) -> usize {
    assert!(open_descriptors() > 0);
    let root = site.root_path();
    let links =
        fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    links.filter(|target| target.starts_with(&root) && *target != root).count()
}

#[test]
fn no_more_files_are_kept_open_than_allowed() {
    let site = Site::new();
    for number in 0..200 {
        write_old(&site, &format!("{number}.js"), "plain");
        write_old(&site, &format!("{number}.js.gz"), "packed");
    }
    let root = site.open(Policy::default());
    let mut worker = Worker::new(16);
    for round in 0..3 {
        for number in 0..200 {
            for header in ["", "gzip"] {
                // Nothing is found under a name that is another file's.
                let entry = worker.get(&root, &format!("{number}.js"), header);
                let expected = content(&root, &format!("{number}.js"), header).identity();
                assert_eq!(entry.content.identity(), expected, "{round}");
                drop(entry);
                assert!(worker.cache.len() <= 16);
            }
        }
        assert!(descriptors_beneath(&site) <= 16);
    }
    assert!(worker.cache.len() > 8);
    worker.cache.clear();
    assert_eq!(descriptors_beneath(&site), 0);
}

#[test]
fn what_is_used_is_spared() {
    let site = Site::new();
    for number in 0..100 {
        write_old(&site, &format!("{number}.bin"), "x");
    }
    write_old(&site, "hot.mp4", "hot");
    let root = site.open(Policy::default());
    let mut worker = Worker::new(8);
    let hot = worker.get(&root, "hot.mp4", "");
    for number in 0..100 {
        worker.get(&root, &format!("{number}.bin"), "");
        let again = worker.get(&root, "hot.mp4", "");
        assert!(Arc::ptr_eq(&hot, &again), "evicted after {number}");
    }
}

#[test]
fn a_cache_without_room_keeps_nothing() {
    let site = Site::new();
    write_old(&site, "file.txt", "text");
    let root = site.open(Policy::default());
    let mut worker = Worker::new(0);
    assert_eq!(bytes(&worker.get(&root, "file.txt", "").content), b"text");
    assert!(worker.cache.is_empty() && !worker.is_kept(&root, "file.txt"));
}

#[test]
fn the_sweep_closes_what_is_idle_or_gone() {
    let site = Site::new();
    for name in ["idle", "removed", "used"] {
        write_old(&site, name, name);
    }
    let root = site.open(Policy::default());
    let mut worker = Worker::new(10);
    for name in ["idle", "removed", "used"] {
        worker.get(&root, name, "");
    }
    worker.cache.sweep(worker.now);
    assert_eq!(worker.cache.len(), 3);
    fs::remove_file(site.path("removed")).unwrap();
    worker.cache.sweep(worker.now);
    assert_eq!(worker.cache.len(), 2);
    worker.pass(60_000);
    worker.get(&root, "used", "");
    worker.pass(1000);
    worker.cache.sweep(worker.now);
    assert_eq!(worker.cache.len(), 1);
    assert_eq!(descriptors_beneath(&site), 1);
    worker.get(&root, "used", "");
    assert!(worker.is_kept(&root, "used"));
}

#[test]
fn a_look_up_made_on_another_thread_is_kept_here() {
    let site = Site::new();
    write_old(&site, "file.txt", "text");
    let root = Arc::new(site.open_with(Policy::default(), linerate_content::Resolver::ByHand));
    let mut worker = Worker::new(10);
    let here = worker.cache.lookup(&root, &path("file.txt"), &accepted(""), worker.now, Blocking::CachedOnly);
    assert!(matches!(here, Err(ContentError::WouldBlock)));
    let found = std::thread::spawn({
        let root = Arc::clone(&root);
        move || content(&root, "file.txt", "")
    });
    let found = found.join().unwrap();
    let entry = worker.cache.insert(root.id(), &path("file.txt"), &accepted(""), found, worker.now);
    let hit = worker.cache.lookup(&root, &path("file.txt"), &accepted(""), worker.now, Blocking::CachedOnly);
    assert!(matches!(hit, Ok(Served::File(kept)) if Arc::ptr_eq(&kept, &entry)));
}
