//! FIFOs, sockets, devices, unreadable files and roots that aren't: refused, quickly, and with a reason
//! (INV-PATH-2).

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use common::{RESOLVERS, Site, file, lookup, outcome, refusal};
use linerate_content::{ContentError, Found, ListingView, Policy, Refusal, Resolver, Root, Symlinks};
use linerate_http::MediaTypes;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

fn make_node(path: &std::path::Path, file_type: FileType, device: u64) -> rustix::io::Result<()> {
    mknodat(CWD, path, file_type, Mode::from_raw_mode(0o666), device)
}

/// Fails the test rather than hang it.
fn within_seconds<T: Send + 'static>(seconds: u64, job: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(job()));
    receiver.recv_timeout(Duration::from_secs(seconds)).expect("it blocked or panicked")
}

fn entry_names(root: &Root) -> String {
    let Ok(Found::Listing(directory)) = lookup(root, "") else { panic!("no listing") };
    String::from_utf8(root.list(directory).unwrap().render(ListingView::default()).body).unwrap()
}

#[test]
fn fifos_and_sockets_are_refused_without_waiting() {
    for resolver in RESOLVERS {
        let site = Site::new();
        make_node(&site.path("fifo"), FileType::Fifo, 0).unwrap();
        fs::create_dir(site.path("indexed")).unwrap();
        make_node(&site.path("indexed/index.html"), FileType::Fifo, 0).unwrap();
        site.write("page.html", "page");
        make_node(&site.path("page.html.gz"), FileType::Fifo, 0).unwrap();
        site.link("fifo", "to-fifo");
        let _socket = UnixListener::bind(site.path("socket")).unwrap();
        within_seconds(10, move || {
            let root = site.open_with(Policy::default(), resolver);
            for path in ["fifo", "to-fifo", "socket", "indexed/"] {
                assert_eq!(refusal(lookup(&root, path)), Refusal::NotServable, "{path}");
            }
            assert_eq!(outcome(lookup(&root, "fifo/")), "missing");
            let accepted = common::accepted("gzip");
            let found =
                root.lookup(&common::path("page.html"), &accepted, linerate_content::Blocking::Allowed);
            assert_eq!(outcome(found), "file page");
            let names = entry_names(&root);
            assert!(names.contains("page.html<") && names.contains("indexed/<"));
            assert!(!names.contains("fifo") && !names.contains("socket") && !names.contains("page.html.gz"));
        });
    }
}

#[test]
fn devices_are_refused() {
    let site = Site::new();
    site.link("/dev/null", "null");
    site.link("/dev/tty", "tty");
    for resolver in RESOLVERS {
        let root = site.open_with(Policy { symlinks: Symlinks::Anywhere, ..Policy::default() }, resolver);
        assert_eq!(refusal(lookup(&root, "null")), Refusal::NotServable);
        // Without a controlling terminal the open itself fails, with ENXIO.
        assert_eq!(refusal(lookup(&root, "tty")), Refusal::NotServable);
    }
}

#[test]
fn device_nodes_beneath_the_root_are_refused() {
    let site = Site::new();
    if make_node(&site.path("zero"), FileType::CharacterDevice, makedev(1, 5)).is_err() {
        eprintln!("SKIPPED device_nodes_beneath_the_root_are_refused: making a device node needs CAP_MKNOD");
        return;
    }
    for resolver in RESOLVERS {
        let root = site.open_with(Policy::default(), resolver);
        // On a file system mounted nodev the open itself is refused.
        assert!(matches!(refusal(lookup(&root, "zero")), Refusal::NotServable | Refusal::NotPermitted));
        assert!(!entry_names(&root).contains("zero"));
    }
}

#[test]
fn unreadable_files_are_not_permitted() {
    let site = Site::new();
    site.write("locked.txt", "locked");
    site.write("closed/file.txt", "file");
    site.write("enter-only/file.txt", "file");
    fs::set_permissions(site.path("locked.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(site.path("closed"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(site.path("enter-only"), fs::Permissions::from_mode(0o311)).unwrap();
    if fs::File::open(site.path("locked.txt")).is_ok() {
        eprintln!("SKIPPED unreadable_files_are_not_permitted: this user (root?) may read everything");
        return;
    }
    for resolver in RESOLVERS {
        let root = site.open_with(Policy::default(), resolver);
        assert_eq!(refusal(lookup(&root, "locked.txt")), Refusal::NotPermitted);
        assert_eq!(refusal(lookup(&root, "closed/file.txt")), Refusal::NotPermitted);
        assert_eq!(outcome(lookup(&root, "enter-only")), "needs slash");
        assert_eq!(outcome(lookup(&root, "enter-only/file.txt")), "file file");
        assert_eq!(refusal(lookup(&root, "enter-only/")), Refusal::NotPermitted);
        let names = entry_names(&root);
        assert!(!names.contains("locked") && !names.contains("closed") && names.contains("enter-only"));
    }
    fs::set_permissions(site.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(site.path("enter-only"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_root_that_is_none_says_so() {
    let site = Site::new();
    site.write("file.txt", "file");
    let open = |name: &str| {
        Root::open(site.path(name), Policy::default(), Arc::new(MediaTypes::default())).unwrap_err()
    };
    let (missing, not_directory, beneath_file) = (open("missing"), open("file.txt"), open("file.txt/x"));
    assert!(matches!(missing, ContentError::RootMissing { .. }));
    assert!(matches!(not_directory, ContentError::RootNotDirectory { .. }));
    assert!(matches!(beneath_file, ContentError::RootNotDirectory { .. }));
    assert!(missing.to_string().contains("root/missing: the directory to serve does not exist"));
    assert!(not_directory.to_string().contains("root/file.txt: not a directory"));
}

#[test]
fn the_root_may_be_a_link_and_a_switch_of_it_is_noticed() {
    let site = Site::new();
    site.write("release-1/file.txt", "one");
    site.write("release-2/file.txt", "two");
    site.link("release-1", "current");
    let root = Root::open(site.path("current"), Policy::default(), Arc::new(MediaTypes::default())).unwrap();
    assert!(root.reopened_if_replaced().unwrap().is_none());
    site.link("release-2", "next");
    fs::rename(site.path("next"), site.path("current")).unwrap();
    assert_eq!(common::bytes(&file(&root, "file.txt")), b"one");
    let reopened = root.reopened_if_replaced().unwrap().expect("the link was switched");
    assert_eq!(common::bytes(&file(&reopened, "file.txt")), b"two");
    assert_ne!(root.id(), reopened.id());
    fs::remove_file(site.path("current")).unwrap();
    assert!(matches!(reopened.reopened_if_replaced(), Err(ContentError::RootMissing { .. })));
}

#[test]
fn this_kernel_resolves_by_itself() {
    let root = Site::new().open(Policy::default());
    if root.resolver() == Resolver::ByHand {
        eprintln!("SKIPPED this_kernel_resolves_by_itself: openat2 is missing or filtered here");
        return;
    }
    assert!(matches!(root.resolver(), Resolver::Kernel { .. }));
}
