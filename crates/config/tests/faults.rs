//! Bad configuration files, and exactly what is said about them.

use std::path::Path;

use linerate_config::{Error, Flags, Settings};

/// What is said about `text` in a file called `f`.
fn said(text: impl AsRef<[u8]>) -> String {
    Settings::from_toml(Path::new("f"), text.as_ref(), &Flags::default()).unwrap_err().to_string()
}

/// What is said about `text`, followed by a site that is fine.
fn said_before_site(text: &str) -> String {
    said(format!("{text}\n[[site]]\nroot = \"r\"\n"))
}

/// What is said about `text` as the body of a site, whose first line is the file's second.
fn said_in_site(text: &str) -> String {
    said(format!("[[site]]\n{text}\n"))
}

#[test]
fn keys_that_do_not_exist() {
    for (text, message) in [
        ("lisen = []", "f:1:1: unknown key \"lisen\"; did you mean \"listen\"?"),
        ("\n  Listen = []", "f:2:3: unknown key \"Listen\"; did you mean \"listen\"?"),
        ("[tsl]", "f:1:2: unknown key \"tsl\"; did you mean \"tls\"?"),
        ("[limits]\nconection = 1", "f:2:1: unknown key \"conection\"; did you mean \"connections\"?"),
        ("minimum_version = \"1.3\"", "f:1:1: unknown key \"minimum_version\" here; it belongs in [tls]"),
        ("[timeouts]\nroot = \"x\"", "f:2:1: unknown key \"root\" here; it belongs in [[site]]"),
        (
            "[timeouts]\nzebra = 1",
            "f:2:1: unknown key \"zebra\" (allowed here: idle, header, write_progress, handshake, drain)",
        ),
        (
            "tls.sesion_tickets = true",
            "f:1:5: unknown key \"sesion_tickets\"; did you mean \"session_tickets\"?",
        ),
        ("[site_defaults]\nroot = \"x\"", "f:2:1: unknown key \"root\" here; it belongs in [[site]]"),
    ] {
        assert_eq!(said_before_site(text), message, "{text}");
    }
}

#[test]
fn values_of_the_wrong_type() {
    for (text, message) in [
        ("listen = \"*:443\"", "f:1:10: listen: a list in [ ] is needed, this is a string"),
        ("listen = [443]", "f:1:11: listen: a string is needed, this is an integer"),
        ("workers = \"4\"", "f:1:11: workers: an integer from 1 to 1024 is needed, this is a string"),
        ("workers = 1.5", "f:1:11: workers: an integer from 1 to 1024 is needed, this is a fraction"),
        ("cpus = 3", "f:1:8: cpus: a string is needed, this is an integer"),
        ("tls = 1979-05-27", "f:1:7: tls: a table is needed, this is a date or time"),
        (
            "[tls]\nsession_tickets = \"yes\"",
            "f:2:19: tls.session_tickets: true or false is needed, this is a string",
        ),
        (
            "[timeouts]\nidle = 75",
            "f:2:8: timeouts.idle: a duration with its unit, like \"75s\", is needed, this is an integer",
        ),
        (
            "[limits]\nhead = 32768",
            "f:2:8: limits.head: a size with its unit, like \"512KiB\", is needed, this is an integer",
        ),
    ] {
        assert_eq!(said_before_site(text), message, "{text}");
    }
    assert_eq!(
        said("[site]\nroot = \"r\""),
        "f:1:1: site: [[site]], with two brackets, is needed, this is a table"
    );
}

#[test]
fn values_that_are_not_allowed() {
    for (text, message) in [
        ("listen = []", "f:1:10: listen: the list is empty: name an address, or leave the key away"),
        ("workers = 0", "f:1:11: workers: 0 is out of range: an integer from 1 to 1024 is needed"),
        ("workers = -1", "f:1:11: workers: -1 is out of range: an integer from 1 to 1024 is needed"),
        ("workers = 0x401", "f:1:11: workers: 0x401 is out of range: an integer from 1 to 1024 is needed"),
        (
            "workers = 99999999999999999999999",
            "f:1:11: workers: 99999999999999999999999 is out of range: an integer from 1 to 1024 is needed",
        ),
        (
            "cpus = \"0-3,5-4\"",
            "f:1:8: cpus: \"5-4\" in \"0-3,5-4\" is no CPU or range of CPUs: write them as taskset -c does, like \
             0-3,8,10-14:2, up to 8191",
        ),
        (
            "engine = \"kernal\"",
            "f:1:10: engine: unknown engine \"kernal\"; did you mean \"kernel\"? (allowed: auto, user, kernel, nic)",
        ),
        (
            "access_log = \"\"",
            "f:1:14: access_log: the log's file has no name: write FILE, or - for standard output",
        ),
        (
            "[tls]\nminimum_version = \"1.1\"",
            "f:2:19: tls.minimum_version: unknown TLS version \"1.1\" (allowed: 1.2, 1.3; TLS 1.1 and older are \
             not spoken, because RFC 8996 forbids them)",
        ),
        ("[tls]\ngroups = [\"X25519\",\n  \"x25519\"]", "f:2:10: tls.groups: X25519 is there twice"),
        (
            "[tls]\ncipher_suites = []",
            "f:2:17: tls.cipher_suites: the list is empty: name at least one cipher suite",
        ),
        (
            "[tls]\nrecords_per_key = 3",
            "f:2:19: tls.records_per_key: 3 is out of range: an integer from 4 to 16777216 is needed",
        ),
        (
            "[timeouts]\nidle = \"75\"",
            "f:2:8: timeouts.idle: \"75\" is no duration: write a number and ms, s, m, h or d, like \"75s\"",
        ),
        ("[timeouts]\nidle = \"25h\"", "f:2:8: timeouts.idle: 25h is out of range: 1s to 1d is allowed"),
        (
            "[limits]\nhead = \"4KiB\"",
            "f:2:8: limits.head: request_line (8KiB) cannot be larger than head (4KiB)",
        ),
        (
            "[limits]\nheader_count = 129",
            "f:2:16: limits.header_count: 129 is out of range: an integer from 1 to 128 is needed",
        ),
        (
            "[limits]\nranges_per_request = 129",
            "f:2:22: limits.ranges_per_request: 129 is out of range: an integer from 1 to 128 is needed",
        ),
        (
            "[user_engine]\nquantum = \"128KiB\"",
            "f:2:11: user_engine.quantum: quantum (128KiB) cannot be smaller than batch (256KiB)",
        ),
    ] {
        assert_eq!(said_before_site(text), message, "{text}");
    }
}

#[test]
fn sites_that_are_wrong() {
    for (text, message) in [
        ("", "f:1:1: site.root is missing: the folder to serve"),
        ("root = \"\"", "f:2:8: site.root: a path is needed, this one is empty or contains a NUL"),
        (
            "names = [\"a.org\", \"b.org:443\"]",
            "f:2:19: site.names: site name \"b.org:443\" is no host name: write it without scheme, port and final dot, \
             like media.example.org",
        ),
        ("index = [\"a/b\"]", "f:2:10: site.index: a file name without / is needed"),
        (
            "charset = \"utf 8\"",
            "f:2:11: site.charset: a charset's name is needed, like \"utf-8\", or \"\" for none",
        ),
        ("certificates = [{ certificate = \"c\" }]", "f:2:17: certificates.key is missing"),
        ("certificates = [{ cert = \"c\", key = \"k\" }]", "f:2:17: certificates.certificate is missing"),
        (
            "media_types = { \".m4s\" = \"video/iso.segment\" }",
            "f:2:17: site.media_types: extensions are written in lower case and without dots, like m4s",
        ),
        (
            "media_types = { m4s = \"video\" }",
            "f:2:23: site.media_types: a media type is needed, like \"video/mp4\"",
        ),
        ("hsts = {}", "f:2:8: hsts.max_age is missing"),
        (
            "hsts = { max_age = 365 }",
            "f:2:20: hsts.max_age: a duration with its unit, like \"365d\", is needed, this is an integer",
        ),
        (
            "hsts = { max_age = \"30d\", preload = true }",
            "f:2:8: site.hsts: preload needs a max_age of 365d at least, and include_subdomains",
        ),
        ("headers = [{ path = \"/**\" }]", "f:2:12: headers.set is missing"),
        (
            "headers = [{ path = \"a/b\", set = {} }]",
            "f:2:21: headers.path: pattern \"a/b\" has to begin with /, or contain none to be about file names, like *.m4s",
        ),
        (
            "headers = [{ path = \"/**\", set = { X-A = \"1\", Date = \"2\" } }]",
            "f:2:47: headers.set: Date is written by the server itself",
        ),
        (
            "headers = [{ path = \"/**\", set = { server = \"x\" } }]",
            "f:2:36: headers.set: Server is written by the server itself",
        ),
        (
            "headers = [{ path = \"/**\", set = { ALLOW = \"x\" } }]",
            "f:2:36: headers.set: Allow is written by the server itself",
        ),
        (
            "headers = [{ path = \"/**\", set = { Proxy-Connection = \"x\" } }]",
            "f:2:36: headers.set: Proxy-Connection is written by the server itself",
        ),
        (
            "headers = [{ path = \"/**\", set = { Cache-control = \"x\" } }]",
            "f:2:36: headers.set: Cache-Control is written by the server itself: use cache_control",
        ),
        (
            "headers = [{ path = \"/**\", set = { X-A = \"1\", x-a = \"2\" } }]",
            "f:2:47: headers.set: x-a is set twice",
        ),
        (
            "headers = [{ path = \"/**\", unset = [\"X-A\", \"server\"] }]",
            "f:2:44: headers.unset: Server is written by the server itself",
        ),
        (
            "headers = [{ path = \"/**\", unset = [\"X A\"] }]",
            "f:2:37: headers.unset: \"X A\" is no header name: letters, digits and - are allowed",
        ),
        (
            "headers = [{ path = \"/**\", set = { X-A = \" 1\" } }]",
            "f:2:42: headers.set: header value \" 1\" has space at its ends",
        ),
        (
            "media_types = { aaaaaaaaaaaaaaaaa = \"a/b\" }",
            "f:2:37: site.media_types: \"aaaaaaaaaaaaaaaaa\" is not a file name extension: write it as in \"mp4\"",
        ),
        (
            "media_types = { m4s = \"a/b;\\tc\" }",
            "f:2:23: site.media_types: \"a/b;\\tc\", given for \"m4s\", is not a media type: write it as in \"video/mp4\"",
        ),
        (
            "headers = [{ path = \"/**\", set = { X-A = \"1\\r\\nX-B: 2\" } }]",
            "f:2:42: headers.set: header value \"1\\r\\nX-B: 2\" contains characters outside of visible ASCII and space",
        ),
        (
            "cache_control = [{ path = \"/**\", value = \"\" }]",
            "f:2:42: cache_control.value: directives are needed, like \"max-age=3600\"",
        ),
    ] {
        let said = said_in_site(text);
        assert!(said.lines().any(|line| line == message), "{text}\nwanted {message}\nsaid   {said}");
    }
}

#[test]
fn values_that_contradict_each_other() {
    for (text, message) in [
        (
            "workers = 1",
            "f:1:1: nothing to serve: give DIR, or a [[site]] with a root, or an [[export]] with a directory",
        ),
        (
            "cpus = \"0-1\"\nworkers = 3\n[[site]]\nroot = \"r\"",
            "f:2:11: 3 workers cannot each have a CPU of their own: cpus (0-1) lists 2",
        ),
        (
            "listen = [\"http://*:80\", \"redirect://0.0.0.0:80\", \"*:443\"]\n[[site]]\nroot = \"r\"",
            "f:1:26: 0.0.0.0:80 is listened on already, by http://0.0.0.0:80",
        ),
        (
            "listen = [\"redirect://127.0.0.1:80\"]\n[[site]]\nroot = \"r\"",
            "f:1:11: redirect://127.0.0.1:80 has nowhere to lead: add a TLS listener",
        ),
        (
            "listen = [\"127.0.0.1:443\"]\nadmin = \"443\"\n[[site]]\nroot = \"r\"",
            "f:2:9: the admin address is that of the listener https://127.0.0.1:443",
        ),
        (
            "[tls]\nminimum_version = \"1.3\"\ncipher_suites = [\"ECDHE-RSA-AES128-GCM-SHA256\"]\n[[site]]\nroot = \"r\"",
            "f:3:17: none of the cipher suites belongs to TLS 1.3, the oldest version to be spoken: add one, like \
             TLS_AES_256_GCM_SHA384",
        ),
        (
            "[[site]]\nroot = \"a\"\n[[site]]\nroot = \"b\"",
            "f:3:1: this site has no names, like the one at f:1:1: only one can be the default",
        ),
        (
            "[[site]]\nnames = [\"a.org\"]\nroot = \"a\"\n[[site]]\nnames = [\"b.org\", \"A.org\"]\nroot = \"b\"",
            "f:5:19: the name a.org is taken already, at f:2:10",
        ),
        (
            "[[site]]\nroot = \"a\"\ncertificates = [{ certificate = \"c\", key = \"k\" }]\n[[site]]\nnames = [\"b.org\"]\nroot = \"b\"",
            "f:4:1: this site has no certificates, but others have: add certificates here or in [site_defaults]",
        ),
        (
            "[[export]]\ndirectory = \"a\"\n[[export]]\nname = \"b\"\ndirectory = \"b\"",
            "f:1:1: this export has no name, which makes it the root of all that clients see: give it a name, or make it \
             the only one",
        ),
        (
            "[[export]]\nname = \"b\"\ndirectory = \"a\"\n[[export]]\nname = \"b\"\ndirectory = \"b\"",
            "f:5:8: the export b is there already, at f:2:8",
        ),
        ("[[export]]\nname = \"b\"", "f:1:1: export.directory is missing: the folder to export"),
        (
            "[[export]]\ndirectory = \"a\"\nclients = [\"a.example\"]",
            "f:1:1: this export wants client certificates, but nobody says whose: set client_authorities in [nfs]",
        ),
        (
            "[nfs]\nclient_authorities = \"a\"\n[[export]]\ndirectory = \"a\"\ncertificate = true\ntls = \"off\"",
            "f:3:1: this export wants client certificates, but has no TLS to show them in",
        ),
        (
            "[nfs]\nclient_authorities = \"a\"\n[[export]]\ndirectory = \"a\"\ncertificate = false\nclients = [\"a\"]",
            "f:3:1: this export names clients, and says that they need no certificate to show a name in",
        ),
        (
            "listen = [\"nfs://*:2049\"]\n[[site]]\nroot = \"r\"",
            "f:1:11: nfs://0.0.0.0:2049 has nothing to serve: add an [[export]]\n\
             f:2:1: no listener serves sites: add one, like https://*:443",
        ),
        (
            "listen = [\"*:443\"]\n[[export]]\ndirectory = \"d\"",
            "f:1:11: https://0.0.0.0:443 has nothing to serve: add a [[site]]\n\
             f:2:1: no listener serves exports: add one, like nfs://*:2049",
        ),
    ] {
        assert_eq!(said(text), message, "{text}");
    }
}

/// The parser takes all that follows for part of the list, and finds something wrong with every line of it.
#[test]
fn what_is_never_closed_is_told_where_it_begins() {
    for (text, message) in [
        (
            "listen = [\"a:1\", \"b:2\"\nadmin = \"1\"\n[[site]]\nroot = \"r\"\nlisting = true\n",
            "f:1:10: this [ is never closed: ] is missing, and what follows was read as part of it",
        ),
        (
            "listen = [\"a:1]\nadmin = \"1\"\n",
            "f:1:11: the string that begins here does not end: \" is missing",
        ),
        (
            "[timeouts\nidle = \"1m\"\n",
            "f:1:1: this [ is never closed: ] is missing, and what follows was read as part of it",
        ),
    ] {
        assert_eq!(said(text), message, "{text}");
    }
}

#[test]
fn syntax_errors_have_places() {
    for (text, place) in [
        ("listen = [\"*:443\"", "f:1:"),
        ("workers = \n", "f:1:"),
        ("workers = 1\nworkers = 2", "f:2:1: "),
        ("[tls]\n[tls]", "f:2:"),
        ("# ä\nx = \u{1}", "f:2:"),
        ("= 1", "f:1:1: "),
    ] {
        let said = said(text);
        assert!(said.lines().all(|line| line.starts_with(place)), "{text}\n{said}");
    }
    assert_eq!(said(b"# fine\n# \xff"), "f:2:3: this byte is not UTF-8");
}

#[test]
fn all_faults_are_told_in_the_files_order() {
    let said = said(
        "workers = 0\nlisten = [\"x\"]\nzebra = 1\n[[site]]\nroot = 1\n[tls]\ngroups = [\"a\", \"b\"]\n",
    );
    let places: Vec<&str> = said.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["f:1:11", "f:2:11", "f:3:1", "f:5:8", "f:7:11", "f:7:16"]);
}

#[test]
fn columns_count_characters() {
    assert_eq!(
        said("[[site]]\nroot = \"r\"\nmedia_types = { \"ä\" = \"ö\", b = 1 }").lines().last().unwrap(),
        "f:3:32: site.media_types: a string is needed, this is an integer"
    );
}

#[test]
fn a_file_full_of_faults_is_told_in_part() {
    let text: String = (0..2000).map(|number| format!("unknown{number} = 1\n")).collect();
    assert_eq!(said(text).lines().count(), 50);
}

#[test]
fn no_input_panics() {
    for text in [
        "[",
        "[[",
        "[[site",
        "a.b.c.d = 1",
        "site = [1]",
        "site = [[]]",
        "site = [{}]",
        "\u{feff}",
        "\0",
        "\"\" = 1",
    ] {
        assert!(Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).is_err(), "{text:?}");
    }
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(said(deep).starts_with("f:1:"));
}

#[test]
fn faults_can_be_told_apart_by_machine() {
    let Err(Error::Invalid { faults }) =
        Settings::from_toml(Path::new("f"), b"workers = 0", &Flags::default())
    else {
        panic!("the file is invalid");
    };
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].origin.to_string(), "f:1:11");
}

#[test]
fn damaged_files_never_panic() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/linerate.toml.example");
    let example = std::fs::read(example).unwrap();
    // A linear congruential generator (Knuth's constants): the same damage in every run.
    let mut state: u64 = 1;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut refused = 0;
    for _ in 0..3000 {
        let mut text = example.clone();
        for _ in 0..=random(4) {
            if text.is_empty() {
                break;
            }
            let place = random(text.len());
            match random(4) {
                0 => text[place] = random(256) as u8,
                1 => text.insert(place, b"\"[]{}=#.\n\\*:-0"[random(14)]),
                2 => drop(text.drain(place..(place + random(40)).min(text.len()))),
                _ => text.truncate(place.max(1)),
            }
        }
        refused += usize::from(Settings::from_toml(Path::new("f"), &text, &Flags::default()).is_err());
    }
    assert!(refused > 500, "the damage was felt {refused} times");
}
