//! Nothing outside the root is reached, by either way of resolving paths, and both ways agree (INV-PATH-1).

mod common;

use common::{RESOLVERS, Site, lookup, outcome};
use linerate_content::{Policy, Symlinks};

/// Files, directories and every kind of link there is.
fn site() -> Site {
    let site = Site::new();
    site.write("file.txt", "file");
    site.write("dir/inner.txt", "inner");
    site.write("dir/deep/er/leaf.txt", "leaf");
    site.write("with-index/index.html", "index");
    site.write("dir-index/index.html/x", "x");
    site.write("odd/\u{e4} b?#%&.txt", "odd");
    site.write("odd/a:b", "colon");
    site.write(".hidden", "hidden");
    site.write(".well-known/acme", "acme");

    site.link("file.txt", "to-file");
    site.link("dir", "to-dir");
    site.link("dir/", "to-dir-slash");
    site.link("file.txt/", "to-file-slash");
    site.link("../file.txt", "dir/to-file-above");
    site.link("../to-file", "dir/to-link-above");
    site.link("deep/../inner.txt", "dir/roundabout");
    site.link(".", "to-itself-directory");
    site.link("dir//deep/./er", "to-er");
    site.link("..", "dir/to-root");
    site.link("../..", "dir/to-above");
    site.link("..", "to-above");
    site.link("../outside", "to-outside");
    site.link("../outside/secret.txt", "to-secret");
    site.link("dir/../../outside/secret.txt", "to-secret-roundabout");
    site.link("../root/file.txt", "out-and-in");
    site.link("/etc/passwd", "to-absolute");
    site.link(site.path("file.txt"), "to-absolute-within");
    site.link("to-secret", "to-link-out");
    site.link("missing", "dangling");
    site.link("../outside/missing", "dangling-outside");
    site.link("loop-b", "loop-a");
    site.link("loop-a", "loop-b");
    site.link("to-myself", "to-myself");
    site.link("x/self", "x-self");
    site.link("/proc/self/root", "magic");
    site.link(".hidden", "to-hidden");
    let mut previous = "file.txt".to_owned();
    for number in 0..45 {
        let name = format!("chain-{number}");
        site.link(&previous, &name);
        previous = name;
    }
    site
}

/// Path; outcome with links kept within the root; outcome with links refused.
const TABLE: [(&str, &str, &str); 62] = [
    ("", "listing", "listing"),
    ("file.txt", "file file", "file file"),
    ("file.txt/", "missing", "missing"),
    ("file.txt/x", "missing", "missing"),
    ("missing", "missing", "missing"),
    ("missing/", "missing", "missing"),
    ("missing/x", "missing", "missing"),
    ("dir", "needs slash", "needs slash"),
    ("dir/", "listing", "listing"),
    ("dir/inner.txt", "file inner", "file inner"),
    ("dir/deep/er/leaf.txt", "file leaf", "file leaf"),
    ("with-index", "needs slash", "needs slash"),
    ("with-index/", "file index", "file index"),
    ("dir-index/", "listing", "listing"),
    ("odd/\u{e4} b?#%&.txt", "file odd", "file odd"),
    ("odd/a:b", "file colon", "file colon"),
    (".hidden", "dotfile", "dotfile"),
    (".missing", "dotfile", "dotfile"),
    (".well-known/acme", "file acme", "file acme"),
    ("to-file", "file file", "symbolic_link"),
    ("to-file/", "missing", "symbolic_link"),
    ("to-dir", "needs slash", "symbolic_link"),
    ("to-dir/", "listing", "symbolic_link"),
    ("to-dir/inner.txt", "file inner", "symbolic_link"),
    ("to-dir/missing", "missing", "symbolic_link"),
    ("to-dir-slash/inner.txt", "file inner", "symbolic_link"),
    ("to-file-slash", "missing", "symbolic_link"),
    ("dir/to-file-above", "file file", "symbolic_link"),
    ("dir/to-link-above", "file file", "symbolic_link"),
    ("dir/roundabout", "file inner", "symbolic_link"),
    ("to-itself-directory", "needs slash", "symbolic_link"),
    ("to-itself-directory/", "listing", "symbolic_link"),
    ("to-itself-directory/to-itself-directory/file.txt", "file file", "symbolic_link"),
    ("to-er/leaf.txt", "file leaf", "symbolic_link"),
    ("to-er/", "listing", "symbolic_link"),
    ("dir/to-root", "needs slash", "symbolic_link"),
    ("dir/to-root/", "listing", "symbolic_link"),
    ("dir/to-root/file.txt", "file file", "symbolic_link"),
    ("dir/to-root/dir/to-root/dir/inner.txt", "file inner", "symbolic_link"),
    ("dir/to-above", "symbolic_link", "symbolic_link"),
    ("dir/to-above/outside/secret.txt", "symbolic_link", "symbolic_link"),
    ("to-above", "symbolic_link", "symbolic_link"),
    ("to-above/", "symbolic_link", "symbolic_link"),
    ("to-above/outside/secret.txt", "symbolic_link", "symbolic_link"),
    ("to-outside", "symbolic_link", "symbolic_link"),
    ("to-outside/", "symbolic_link", "symbolic_link"),
    ("to-outside/secret.txt", "symbolic_link", "symbolic_link"),
    ("to-secret", "symbolic_link", "symbolic_link"),
    ("to-secret-roundabout", "symbolic_link", "symbolic_link"),
    ("out-and-in", "symbolic_link", "symbolic_link"),
    ("to-absolute", "symbolic_link", "symbolic_link"),
    ("to-absolute-within", "symbolic_link", "symbolic_link"),
    ("to-link-out", "symbolic_link", "symbolic_link"),
    ("dangling", "missing", "symbolic_link"),
    ("dangling-outside", "symbolic_link", "symbolic_link"),
    ("loop-a", "symbolic_link", "symbolic_link"),
    ("to-myself/x", "symbolic_link", "symbolic_link"),
    ("x-self", "missing", "symbolic_link"),
    ("magic/etc/passwd", "symbolic_link", "symbolic_link"),
    ("to-hidden", "file hidden", "symbolic_link"),
    ("chain-39", "file file", "symbolic_link"),
    ("chain-40", "symbolic_link", "symbolic_link"),
];

#[test]
fn both_resolvers_give_every_path_the_same_outcome() {
    let site = site();
    for resolver in RESOLVERS {
        for (symlinks, column) in [(Symlinks::Within, 1), (Symlinks::Refused, 2)] {
            let root = site.open_with(Policy { symlinks, ..Policy::default() }, resolver);
            for row in TABLE {
                let expected = if column == 1 { row.1 } else { row.2 };
                assert_eq!(outcome(lookup(&root, row.0)), expected, "{} {symlinks:?} {resolver:?}", row.0);
            }
        }
    }
}

#[test]
fn links_anywhere_are_followed_anywhere() {
    let site = site();
    for resolver in RESOLVERS {
        let root = site.open_with(Policy { symlinks: Symlinks::Anywhere, ..Policy::default() }, resolver);
        for (path, expected) in [
            ("to-secret", "file secret"),
            ("to-outside/secret.txt", "file secret"),
            ("dir/to-above/outside/secret.txt", "file secret"),
            ("to-absolute-within", "file file"),
            ("loop-a", "symbolic_link"),
            ("dangling", "missing"),
        ] {
            assert_eq!(outcome(lookup(&root, path)), expected, "{path} {resolver:?}");
        }
    }
}

#[test]
fn malformed_paths_never_reach_the_kernel() {
    let site = site();
    for resolver in RESOLVERS {
        // Under this policy nothing but the check of the path itself stands before the secret.
        let policy = Policy { symlinks: Symlinks::Anywhere, dotfiles: true, ..Policy::default() };
        let root = site.open_with(policy, resolver);
        for path in [
            "../outside/secret.txt",
            "dir/../../outside/secret.txt",
            "..",
            "../",
            "/etc/passwd",
            "dir//inner.txt",
            "./file.txt",
            "file.txt\0",
            "dir/.",
            "//",
        ] {
            assert_eq!(outcome(lookup(&root, path)), "malformed_path", "{path:?} {resolver:?}");
        }
    }
}

#[test]
fn dotfiles_are_served_when_allowed() {
    let site = site();
    let root = site.open(Policy { dotfiles: true, ..Policy::default() });
    assert_eq!(outcome(lookup(&root, ".hidden")), "file hidden");
}

#[test]
fn names_too_long_are_missing() {
    let site = site();
    for resolver in RESOLVERS {
        let root = site.open_with(Policy::default(), resolver);
        assert_eq!(outcome(lookup(&root, "a".repeat(256))), "missing");
        assert_eq!(outcome(lookup(&root, "a/".repeat(3000))), "missing");
    }
}

/// A link that is switched back and forth between the inside and the outside while it is being looked up.
#[test]
fn a_switching_link_never_leads_out() {
    let site = site();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (link, next) = (site.path("switch"), site.path("switch-next"));
    site.link("dir", "switch");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for target in ["../outside", "dir"].into_iter().cycle() {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                std::os::unix::fs::symlink(target, &next).unwrap();
                std::fs::rename(&next, &link).unwrap();
            }
        });
        let mut unexpected = Vec::new();
        for resolver in RESOLVERS {
            let root = site.open_with(Policy::default(), resolver);
            for _ in 0..3000 {
                let outcome = outcome(lookup(&root, "switch/secret.txt"));
                if !matches!(outcome.as_str(), "missing" | "symbolic_link") {
                    unexpected.push((outcome, resolver));
                }
            }
        }
        // First of all: a failed assertion would wait for the other thread for ever.
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(unexpected.is_empty(), "{unexpected:?}");
    });
}
