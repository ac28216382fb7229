//! The long forms: many files, many entries, a network that is gone for a while. `make test` has short ones beside.

use super::{Fixture, Security};
use crate::{client::Client, tree};
use linerate_end_to_end::{pattern, runs_all, skip};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::FileExt,
    process::Command,
    thread,
    time::Duration,
};

/// Files of the large tree, odd names beside them.
const FILES: u32 = 10_000;
/// Entries of the large directory.
const ENTRIES: u32 = 100_000;
/// How long the network is gone.
const CUT: Duration = Duration::from_secs(30);

fn set_up(test: &str) -> Option<(Fixture, Client, Security)> {
    if !runs_all() {
        skip(test, "it takes minutes: LINERATE_TEST_ALL runs it");
        return None;
    }
    let fixture = Fixture::new();
    let client = Client::set_up(test, &fixture.server, &fixture.client)?;
    let security = if client.has_tls() { Security::Tls } else { Security::None };
    Some((fixture, client, security))
}

#[test]
fn a_tree_of_ten_thousand_files_is_what_it_is() {
    let Some((fixture, client, security)) = set_up("a_tree_of_ten_thousand_files_is_what_it_is") else {
        return;
    };
    tree::make(&fixture.shown(), FILES);
    let _server = fixture.start();
    let mounted = client.mount("open", security).unwrap();
    let (here, there) = (tree::contents(mounted.path()), tree::contents(&fixture.shown()));
    assert!(here.len() > FILES as usize && here == there);
}

#[test]
fn every_entry_of_a_large_directory_is_listed_once() {
    let Some((fixture, client, security)) = set_up("every_entry_of_a_large_directory_is_listed_once") else {
        return;
    };
    for number in 0..ENTRIES {
        File::create(fixture.shown().join(format!("entry {number}"))).unwrap();
    }
    let _server = fixture.start();
    let mounted = client.mount("open", security).unwrap();
    let names: Vec<_> =
        fs::read_dir(mounted.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!((names.len(), distinct.len()), (ENTRIES as usize, ENTRIES as usize));
    // The client asks for the attributes of each by itself; these lie in every part of the listing.
    for name in names.iter().step_by(500) {
        assert_eq!(fs::metadata(mounted.path().join(name)).unwrap().len(), 0);
    }
}

#[test]
fn a_network_that_was_cut_for_half_a_minute_costs_time_alone() {
    let Some((fixture, client, security)) =
        set_up("a_network_that_was_cut_for_half_a_minute_costs_time_alone")
    else {
        return;
    };
    let large = pattern("large", 8 << 20);
    fs::write(fixture.shown().join("large"), &large).unwrap();
    let _server = fixture.start();
    let mounted = client.mount("open", security).unwrap();
    let file = File::open(mounted.path().join("large")).unwrap();
    let mut all = vec![0; large.len()];
    file.read_exact_at(&mut all[..1 << 20], 0).unwrap();
    let set = |state: &str| {
        assert!(Command::new("ip").args(["link", "set", "lo", state]).status().unwrap().success());
    };
    set("down");
    let back = thread::spawn(move || {
        thread::sleep(CUT);
        set("up");
    });
    // It waits, as a mount without `soft` does.
    file.read_exact_at(&mut all[1 << 20..], 1 << 20).unwrap();
    back.join().unwrap();
    assert!(all == large);
}
