//! `--verify`: nothing is found where nothing is wrong, and a single wrong byte is.

use super::program::{flawless, load, number, report};
use crate::support::{Fixture, Transport};
use linerate_end_to_end::{ODD_LENGTHS, Site};
use std::fs;

#[test]
fn every_length_and_any_range_agrees_with_its_file() {
    let fixture = Fixture::start(Site::of_odd_lengths());
    let folder = fixture.site.path().to_str().unwrap().to_owned();
    let ca = fixture.pair.certificate.to_str().unwrap().to_owned();
    for transport in Transport::ALL {
        let urls: Vec<String> = ODD_LENGTHS
            .iter()
            .filter(|&&length| length > 0)
            .map(|&length| fixture.url(transport, &Site::name_for(length)))
            .collect();
        let mut words: Vec<&str> = urls.iter().map(String::as_str).collect();
        words.extend(["-n", "300", "-c", "5", "-t", "2", "--verify", &folder]);
        if transport == Transport::Tls {
            words.extend(["--ca", &ca]);
        }
        let report = flawless(&words);
        assert_eq!((number(&report, "/totals/responses"), &report["verified"]), (300.0, &true.into()));
        for range in ["random:1", "random:777", "0-0", "5-100000000"] {
            let ranged: Vec<&str> = [words.as_slice(), &["--range", range]].concat();
            // Of the shortest files some ranges lie beyond the end; those are answered by 416.
            let largest = fixture.url(transport, &Site::name_for(*ODD_LENGTHS.iter().max().unwrap()));
            let ranged: Vec<&str> =
                std::iter::once(largest.as_str()).chain(ranged[urls.len()..].iter().copied()).collect();
            assert_eq!(number(&flawless(&ranged), "/statuses/206"), 300.0, "{range}");
        }
    }
}

#[test]
fn one_wrong_byte_is_found_and_named() {
    let site = Site::empty();
    let bytes = site.add_pattern("f.bin", 3_000_017);
    let fixture = Fixture::start(site);
    let sources = tempfile::tempdir().unwrap();
    let source = sources.path().join("source");
    for (transport, offset) in
        [(Transport::Tls, 0), (Transport::Plain, 2_999_999), (Transport::Tls, 3_000_016)]
    {
        let mut wrong = bytes.clone();
        wrong[offset] ^= 0x10;
        fs::write(&source, &wrong).unwrap();
        let url = fixture.url(transport, "f.bin");
        let mut words = vec![url.as_str(), "-n", "4", "-c", "2", "--verify", source.to_str().unwrap()];
        if transport == Transport::Tls {
            words.push("--insecure");
        }
        let finished = load(&words).run();
        let found = report(&finished);
        assert_eq!(finished.status.code(), Some(1));
        assert_eq!(number(&found, "/errors/verify: a byte differs"), 4.0, "{found:#}");
        let mismatch = &found["mismatches"][0];
        assert_eq!(mismatch["offset"], offset);
        assert_eq!(mismatch["received"], bytes[offset]);
        assert_eq!(mismatch["wanted"], wrong[offset]);
        assert_eq!(mismatch["file"], source.to_str().unwrap());
    }
}
