//! The short form of every fault program against linerate: small counts, seconds each. `make hostile` runs the long one,
//! with nginx beside it.

use std::io::Write as _;

use linerate_end_to_end::{linerate_binary, skip};
use linerate_hostile::{Arena, Family, Form, Launcher, Verdict, programs::Program};

fn holds(name: &str, family: Family) {
    if family == Family::V6 && std::net::TcpListener::bind("[::1]:0").is_err() {
        skip(&format!("{name} over IPv6"), "there is no ::1 here");
        return;
    }
    let launcher = Launcher::Linerate(linerate_binary().to_owned());
    let arena = Arena::new(launcher, family, Form::Short).unwrap();
    let outcome = Program::named(name).unwrap().run(&arena);
    // Written past the test's own capture, so that what was skipped is found.
    let _ = write!(std::io::stderr().lock(), "{outcome}");
    assert!(matches!(outcome.verdict, Verdict::Pass | Verdict::Skipped), "{outcome}");
}

macro_rules! short_form {
    ($($test:ident: $name:literal over $family:ident;)*) => {
        $(#[test]
        fn $test() {
            holds($name, Family::$family);
        })*

        #[test]
        fn every_program_is_among_these() {
            let here = [$($name),*];
            for program in linerate_hostile::programs::ALL {
                assert!(here.contains(&program.name), "{} has no short form here", program.name);
            }
        }
    };
}

short_form! {
    splits_and_ends_at_bytes: "every-byte" over V4;
    splits_and_ends_at_bytes_over_ipv6: "every-byte" over V6;
    slow_clients_shut_nobody_out: "slow-clients" over V4;
    few_descriptors: "descriptors" over V4;
    few_descriptors_over_ipv6: "descriptors" over V6;
    little_memory: "memory" over V4;
    stuck_and_full_logs: "logs" over V4;
    frozen_longer_than_the_limits: "frozen" over V4;
    slow_failing_and_hanging_disks: "disks" over V4;
    files_changed_under_a_transfer: "changed-files" over V4;
    files_changed_under_a_transfer_over_ipv6: "changed-files" over V6;
    reloads_under_load: "reloads" over V4;
    reloads_under_load_over_ipv6: "reloads" over V6;
    signals_while_it_starts: "starting" over V4;
    killed_and_started_again: "killed" over V4;
    soak_with_every_byte_compared: "soak" over V4;
    soak_with_every_byte_compared_over_ipv6: "soak" over V6;
}
