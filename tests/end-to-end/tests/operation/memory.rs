//! What an idle connection costs (INV-MEMORY-1).

use crate::{
    process::anonymous_bytes,
    support::{Connection, Fixture, Transport},
};
use linerate_end_to_end::Site;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const CONNECTIONS: usize = 1000;

#[test]
fn a_thousand_idle_connections_over_tls_cost_little_memory() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let wanted = CONNECTIONS as u64 + 500;
    if getrlimit(Resource::Nofile).current.is_some_and(|current| current < wanted) {
        linerate_end_to_end::skip(
            "a_thousand_idle_connections_over_tls_cost_little_memory",
            "this user may not open 1,500 files (ulimit -Hn)",
        );
        return;
    }
    let site = Site::empty();
    site.add("small", b"small");
    let fixture = Fixture::start(site);
    let trust = fixture.trust();
    let address = fixture.address(Transport::Tls);
    let open = || {
        let mut connection = Connection::try_tls(address, &trust, "localhost").expect("a handshake");
        connection.get("/small", "").assert_is(200, b"small");
        connection
    };
    // What the first connections leave behind in the allocator is not theirs.
    let _first: Vec<Connection> = (0..50).map(|_| open()).collect();
    let before = anonymous_bytes(&fixture.server);
    let connections: Vec<Connection> = (0..CONNECTIONS).map(|_| open()).collect();
    let each = anonymous_bytes(&fixture.server).saturating_sub(before) / connections.len() as u64;
    eprintln!("anonymous memory of an idle connection: {each} bytes");
    assert!(each < 16 * 1024, "{each} bytes a connection");
    assert_eq!(fixture.server.metric("linerate_connections_active", ""), (50 + CONNECTIONS) as f64);
}
