//! `--discard`: what the kernel threw away is counted as the server counted it.

use super::program::{flawless, number};
use crate::support::{Fixture, Transport};
use linerate_end_to_end::Site;

#[test]
fn the_server_counts_the_same_bytes_and_responses() {
    let site = Site::empty();
    // From a head alone to many records; the last is larger than what a socket holds.
    for length in [0, 1, 4_000, 16_384, 100_003, 20_000_011] {
        site.add_pattern(&format!("{length}.bin"), length);
    }
    let fixture = Fixture::start(site);
    for transport in Transport::ALL {
        for length in [0u64, 1, 4_000, 16_384, 100_003, 20_000_011] {
            for flags in [&[][..], &["--close"], &["--tls", "1.2"], &["--tls", "1.2", "--close"]] {
                let requests: u64 = if length > 1_000_000 { 6 } else { 60 };
                let (url, count) = (fixture.url(transport, &format!("{length}.bin")), requests.to_string());
                let mut words = vec![url.as_str(), "-n", &count, "-c", "3", "--discard"];
                match transport {
                    Transport::Tls => words.extend([flags, &["--insecure"]].concat()),
                    Transport::Plain if flags.contains(&"--tls") => continue,
                    Transport::Plain => words.extend(flags),
                }
                let metric = || fixture.server.metric("linerate_http_response_bytes_total", "");
                let before = metric();
                let report = flawless(&words);
                assert_eq!(number(&report, "/totals/responses"), requests as f64, "{words:?}");
                assert_eq!(number(&report, "/totals/body_bytes"), (requests * length) as f64, "{words:?}");
                assert_eq!(report["discarded"], true);
                // Heads are in the server's count or are not: either way it is within 2 % for bodies of some size.
                let served = metric() - before;
                if length > 50_000 {
                    let ratio = number(&report, "/totals/body_bytes") / served;
                    assert!((ratio - 1.0).abs() < 0.02, "{ratio}: {words:?}");
                }
            }
        }
    }
}

#[test]
fn a_run_by_the_clock_counts_what_was_under_way() {
    let site = Site::empty();
    site.add_pattern("large.bin", 200_000_000);
    let fixture = Fixture::start(site);
    for flags in [&[][..], &["--close"]] {
        let url = fixture.url(Transport::Tls, "large.bin");
        let report =
            flawless(&[&[url.as_str(), "-c", "2", "-d", "1s", "--discard", "--insecure"], flags].concat());
        let (body, wire) = (number(&report, "/totals/body_bytes"), number(&report, "/totals/received_bytes"));
        // Records of 2^14 bytes take 22 more; heads and handshakes are next to nothing.
        let ratio = wire / body;
        assert!((1.0..1.02).contains(&ratio), "{ratio}: {report:#}");
    }
}
