//! What happens when the process has no descriptor left. Alone in its file: the limit is the whole process's.

mod common;

use std::fs::File;
use std::time::Instant;

use common::{Site, accepted, lookup, path, set_age_seconds};
use linerate_content::{Blocking, Cache, CacheLimits, ContentError, Policy, Served};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn kept_files_are_given_up_when_descriptors_run_out() {
    let site = Site::new();
    for name in ["kept", "wanted", "other"] {
        site.write(name, name);
        set_age_seconds(&site.path(name), 60);
    }
    let root = site.open(Policy::default());
    let mut cache: Cache<()> = Cache::new(CacheLimits::default());
    let now = Instant::now();
    let mut get = |name: &str| cache.lookup(&root, &path(name), &accepted(""), now, Blocking::Allowed);
    drop(get("kept").unwrap());

    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: before.maximum }).unwrap();
    let mut filler = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        filler.push(file);
    }
    let direct = lookup(&root, "other");
    let by_cache = get("wanted");
    // The one descriptor that could be spared is in use by `by_cache` now.
    let without_any_to_spare = get("other");
    filler.clear();
    setrlimit(Resource::Nofile, before).unwrap();

    assert!(matches!(direct, Err(ContentError::DescriptorsExhausted)), "{direct:?}");
    assert!(
        matches!(&by_cache, Ok(Served::File(entry)) if entry.content.length_bytes() == 6),
        "{by_cache:?}"
    );
    assert!(
        matches!(without_any_to_spare, Err(ContentError::DescriptorsExhausted)),
        "{without_any_to_spare:?}"
    );
    assert!(matches!(get("other"), Ok(Served::File(_))));
}
