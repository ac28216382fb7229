//! Roots that are replaced while they are served, as deployments do it; without a signal.

use crate::support::{Connection, Fixture, Transport, add_at_rest, client_config};
use linerate_end_to_end::{CertificatePair, Site, wait_until};
use std::{fs, os::unix::fs::symlink, path::Path};

/// Large enough to be mapped, and to be sealed in several batches.
const LENGTH: usize = 700_001;

/// A folder with two releases, `first` and `second`, and a server of its entry `current`.
struct Deployment {
    folder: Site,
    first: Vec<u8>,
    second: Vec<u8>,
    fixture: Fixture,
}

impl Deployment {
    /// `publish` makes `current` out of `first`.
    fn new(publish: impl FnOnce(&Path)) -> Self {
        let folder = Site::empty();
        let [first, second] = ["first", "second"].map(|release| {
            fs::create_dir(folder.path().join(release)).unwrap();
            add_at_rest(&folder, &format!("{release}/film.bin"), LENGTH)
        });
        assert!(first != second);
        publish(folder.path());
        let served = Site::empty();
        let own_root = format!("root = {:?}", served.path());
        let root = format!("root = {:?}", folder.path().join("current"));
        let fixture = Fixture::start_changed_toml(served, "", |toml| toml.replace(&own_root, &root));
        Self { folder, first, second, fixture }
    }

    fn connections(&self) -> [Connection; 2] {
        Transport::ALL.map(|transport| self.fixture.connect(transport))
    }
}

/// Points the link at another directory, by a rename: there is no moment without it.
fn switch(link: &Path, target: &str) {
    let new = link.with_extension("new");
    symlink(target, &new).unwrap();
    fs::rename(new, link).unwrap();
}

#[test]
fn a_link_that_is_switched_is_followed_by_connections_old_and_new() {
    let deployment = Deployment::new(|folder| switch(&folder.join("current"), "first"));
    let link = deployment.folder.path().join("current");
    let mut kept = deployment.connections();
    for (target, expected) in
        [("first", &deployment.first), ("second", &deployment.second), ("first", &deployment.first)]
    {
        switch(&link, target);
        for connection in &mut kept {
            wait_until(target, || connection.get("/film.bin", "").body == *expected);
        }
        for mut connection in deployment.connections() {
            // From the cache, too.
            for _ in 0..3 {
                connection.get("/film.bin", "").assert_is(200, expected);
            }
        }
    }
    let said = deployment.fixture.server.stderr();
    assert_eq!(said.matches("another directory now, served from here on").count(), 2, "{said}");
}

#[test]
fn a_response_that_has_begun_is_sent_to_its_end() {
    let deployment = Deployment::new(|folder| switch(&folder.join("current"), "first"));
    let mut slow = deployment.fixture.connect_with_small_window(Transport::Tls, 16 * 1024);
    slow.send(crate::support::get("/film.bin", ""));
    switch(&deployment.folder.path().join("current"), "second");
    let mut other = deployment.fixture.connect(Transport::Tls);
    wait_until("the second release", || other.get("/film.bin", "").body == deployment.second);
    slow.response().assert_is(200, &deployment.first);
}

#[test]
fn a_directory_that_is_renamed_into_place_is_followed() {
    let deployment =
        Deployment::new(|folder| fs::rename(folder.join("first"), folder.join("current")).unwrap());
    let path = |name| deployment.folder.path().join(name);
    let mut kept = deployment.connections();
    for connection in &mut kept {
        connection.get("/film.bin", "").assert_is(200, &deployment.first);
    }
    fs::rename(path("current"), path("old")).unwrap();
    fs::rename(path("second"), path("current")).unwrap();
    for connection in &mut kept {
        wait_until("second", || connection.get("/film.bin", "").body == deployment.second);
    }
}

#[test]
fn a_link_beneath_the_root_is_followed() {
    let site = Site::empty();
    let [first, second] = ["first", "second"].map(|release| {
        fs::create_dir(site.path().join(release)).unwrap();
        add_at_rest(&site, &format!("{release}/film.bin"), LENGTH)
    });
    let link = site.path().join("current");
    switch(&link, "first");
    let fixture = Fixture::start(site);
    let mut kept = Transport::ALL.map(|transport| fixture.connect(transport));
    for connection in &mut kept {
        connection.get("/current/film.bin", "").assert_is(200, &first);
    }
    switch(&link, "second");
    for connection in &mut kept {
        wait_until("second", || connection.get("/current/film.bin", "").body == second);
    }
}

/// Certificates are renewed at their own time: what is wrong with a root then is told, and keeps nothing from being
/// served.
#[test]
fn a_root_that_is_missing_keeps_no_certificate_from_being_renewed() {
    let deployment = Deployment::new(|folder| switch(&folder.join("current"), "first"));
    let link = deployment.folder.path().join("current");
    let fixture = &deployment.fixture;
    fs::remove_file(&link).unwrap();
    let folder = fixture.pair.certificate.parent().unwrap();
    let renewed = CertificatePair::for_localhost(folder);
    let trust = client_config(&renewed);
    let address = fixture.address(Transport::Tls);
    wait_until("the new certificate", || Connection::try_tls(address, &trust, "localhost").is_ok());
    fixture.server.wait_for_stderr("the directory opened before is served until it is back");
    let mut connection = Connection::tls(address, &renewed, "localhost");
    connection.get("/film.bin", "").assert_is(200, &deployment.first);
    switch(&link, "second");
    wait_until("second", || connection.get("/film.bin", "").body == deployment.second);
    assert_eq!(fixture.server.stderr().matches("until it is back").count(), 1);
}
