//! Every key of the configuration file: its type, its default and what it means.
//!
//! The reader knows no key that is not here, and the documentation is made from here.

/// A part of the file, with keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Before the first `[section]`.
    Top,
    /// `[tls]`
    Tls,
    /// `[limits]`
    Limits,
    /// `[timeouts]`
    Timeouts,
    /// `[user_engine]`
    UserEngine,
    /// `[kernel_engine]`
    KernelEngine,
    /// `[placement]`
    Placement,
    /// `[[site]]`
    Site,
    /// `[site_defaults]`, which has the keys of `[[site]]` but `names` and `root`
    SiteDefaults,
    /// `[nfs]`
    Nfs,
    /// `[[export]]`
    Export,
    /// An entry of `certificates`
    Certificates,
    /// `hsts`
    Hsts,
    /// An entry of `headers`
    Headers,
    /// An entry of `cache_control`
    CacheControl,
}

impl Section {
    /// The sections that are tables at the top of the file.
    pub(crate) const AT_TOP: [(&'static str, Section); 10] = [
        ("tls", Section::Tls),
        ("limits", Section::Limits),
        ("timeouts", Section::Timeouts),
        ("user_engine", Section::UserEngine),
        ("kernel_engine", Section::KernelEngine),
        ("placement", Section::Placement),
        ("site_defaults", Section::SiteDefaults),
        ("site", Section::Site),
        ("nfs", Section::Nfs),
        ("export", Section::Export),
    ];

    /// How the file writes it, and what it is about.
    #[must_use]
    pub fn heading(self) -> (&'static str, &'static str) {
        match self {
            Section::Top => ("top of the file", "What listens, and how it runs."),
            Section::Tls => ("[tls]", "How TLS is spoken."),
            Section::Limits => ("[limits]", "Bounds on what clients can take."),
            Section::Timeouts => ("[timeouts]", "How long things may take."),
            Section::UserEngine => ("[user_engine]", "How the user engine works."),
            Section::KernelEngine => (
                "[kernel_engine]",
                "When a connection moves to kernel TLS or an adapter, for good. It has an effect with engine = \"kernel\" and \
                 \"nic\" only.",
            ),
            Section::Placement => {
                ("[placement]", "What engine = \"auto\" decides by; see also the admin page /placement.")
            }
            Section::Site => {
                ("[[site]]", "What is served; one block a site. Without names it is the default site.")
            }
            Section::SiteDefaults => (
                "[site_defaults]",
                "The keys of [[site]] but names and root, for every site that does not have the key itself.",
            ),
            Section::Nfs => ("[nfs]", "What all exports share."),
            Section::Export => {
                ("[[export]]", "A directory that NFS clients see, read-only; one block an export.")
            }
            Section::Certificates => {
                ("certificates = [{ ... }]", "A pair of PEM files; several for several algorithms.")
            }
            Section::Hsts => ("hsts = { ... }", "Strict-Transport-Security."),
            Section::Headers => (
                "headers = [{ ... }]",
                "Headers of every response, errors as well, by path: every rule that covers the path adds its own; a later \
                 rule wins. X-Content-Type-Options: nosniff is there without being asked for; unset takes it away. Pages \
                 that the server makes have a Content-Security-Policy of their own where no rule sets one.",
            ),
            Section::CacheControl => (
                "cache_control = [{ ... }]",
                "Cache-Control by path, on all responses but errors: the last rule that covers the path wins.",
            ),
        }
    }

    /// What stands before the section's keys in messages.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Section::Top => "",
            Section::Tls => "tls.",
            Section::Limits => "limits.",
            Section::Timeouts => "timeouts.",
            Section::UserEngine => "user_engine.",
            Section::KernelEngine => "kernel_engine.",
            Section::Placement => "placement.",
            Section::Site => "site.",
            Section::SiteDefaults => "site_defaults.",
            Section::Nfs => "nfs.",
            Section::Export => "export.",
            Section::Certificates => "certificates.",
            Section::Hsts => "hsts.",
            Section::Headers => "headers.",
            Section::CacheControl => "cache_control.",
        }
    }

    /// The keys of the section, as documented.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> {
        KEYS.iter().filter(move |key| match self {
            Section::SiteDefaults => key.section == Section::Site && !["names", "root"].contains(&key.name),
            _ => key.section == self,
        })
    }

    /// Every name that may stand in the section, those of sections at the top among them.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        let sections = if self == Section::Top { &Section::AT_TOP[..] } else { &[] };
        self.keys().map(|key| key.name).chain(sections.iter().map(|(name, _)| *name))
    }
}

/// A key of the configuration file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Where it stands.
    pub section: Section,
    /// Its name.
    pub name: &'static str,
    /// What it takes, in words.
    pub takes: &'static str,
    /// What holds without it: as the file would write it, or words in parentheses.
    pub default: &'static str,
    /// Another value than the default, as the file writes it.
    pub example: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

const fn key(
    section: Section,
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    example: &'static str,
    meaning: &'static str,
) -> Key {
    Key { section, name, takes, default, example, meaning }
}

const BOOLEAN: &str = "true or false";

/// Every key, section by section.
pub const KEYS: &[Key] = &[
    key(
        Section::Top,
        "listen",
        "list of [https://|http://|redirect://|nfs://]HOST:PORT",
        "(for sites localhost:8443 without certificates, *:8443 with; for exports port 2049 likewise)",
        r#"["*:443", "redirect://*:80"]"#,
        "Where to listen. HOST is an IP address, localhost or * (both of IPv4 and IPv6). Without scheme it is TLS; \
         http:// serves in the clear, redirect:// sends clients to the first TLS listener's port, nfs:// serves exports.",
    ),
    key(
        Section::Top,
        "admin",
        "PORT or ADDRESS:PORT",
        "(off)",
        r#""127.0.0.1:9443""#,
        "Where /healthz and /metrics are served, in the clear. PORT alone is on 127.0.0.1.",
    ),
    key(
        Section::Top,
        "workers",
        "integer, 1 to 1024",
        "(one for each CPU)",
        "2",
        "Worker threads, each pinned to a CPU. Never more than cpus lists.",
    ),
    key(
        Section::Top,
        "cpus",
        "CPU list as taskset -c writes it",
        "(all that the process may use)",
        r#""0-3,8,10-14:2""#,
        "The CPUs that workers are pinned to, from the lowest.",
    ),
    key(
        Section::Top,
        "engine",
        "\"auto\", \"user\", \"kernel\" or \"nic\"",
        r#""auto""#,
        r#""user""#,
        "What encrypts the bulk of each connection: user is the batched record engine in user space, kernel is Linux \
         kernel TLS for large responses (user where the kernel cannot), nic is an adapter that encrypts what it sends \
         (user where none does), auto decides for each connection by cost ([placement]).",
    ),
    key(
        Section::Top,
        "access_log",
        "path, or \"-\"",
        "(none)",
        r#""access.log""#,
        "Where requests are logged; - is standard output. USR1 opens the file anew.",
    ),
    key(
        Section::Top,
        "log_format",
        "\"combined\" or \"json\"",
        r#""combined""#,
        r#""json""#,
        "How requests are logged.",
    ),
    key(
        Section::Tls,
        "minimum_version",
        "\"1.2\" or \"1.3\"",
        r#""1.2""#,
        r#""1.3""#,
        "The oldest version of TLS that is spoken.",
    ),
    key(
        Section::Tls,
        "cipher_suites",
        "list of names",
        "(all, by the TLS library's preference)",
        r#"["TLS_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"]"#,
        "The cipher suites that are spoken, most preferred first, by OpenSSL's or IANA's names. What is not listed is \
         not spoken, whichever version of TLS it belongs to.",
    ),
    key(
        Section::Tls,
        "groups",
        "list of names",
        "(all, by the TLS library's preference)",
        r#"["X25519", "P-256"]"#,
        "The key exchange groups that are spoken, most preferred first: X25519MLKEM768, X25519, P-256, P-384.",
    ),
    key(
        Section::Tls,
        "session_tickets",
        BOOLEAN,
        "true",
        "false",
        "Whether clients may resume sessions by ticket.",
    ),
    key(
        Section::Tls,
        "handshakes_in_flight",
        "integer, 1 to 1000000",
        "4096",
        "256",
        "Handshakes under way at once in the whole server. For one more a handshake is ended that has been stuck for a \
         second, or else the oldest.",
    ),
    key(
        Section::Tls,
        "handshakes_per_address",
        "integer, 0 to 1000000",
        "0",
        "256",
        "Handshakes under way at once from one address (an IPv6 network of 64 bits counts as one); those beyond are refused; \
         0 is no limit. Behind a load balancer all clients have its address: see limits.exempt_addresses.",
    ),
    key(
        Section::Tls,
        "records_per_key",
        "integer, 4 to 16777216",
        "(the cipher's own limit)",
        "1000000",
        "Records sealed under one key before the key is updated; a TLS 1.2 connection is closed instead. Never beyond \
         the cipher's own limit.",
    ),
    key(
        Section::Tls,
        "key_updates_per_second",
        "integer, 1 to 100000",
        "100",
        "10",
        "KeyUpdates taken from one client in a second; a client that sends more is cut.",
    ),
    key(
        Section::Limits,
        "connections",
        "integer, 1 to 10000000",
        "65536",
        "1000",
        "Connections open at once in the whole server, or what the limit of open files leaves room for. For one more the one \
         that has been idle for longest is closed; where none is idle it is refused.",
    ),
    key(
        Section::Limits,
        "connections_per_address",
        "integer, 0 to 10000000",
        "0",
        "1000",
        "Connections open at once from one address (an IPv6 network of 64 bits counts as one); those beyond are refused; 0 is \
         no limit. Many people can share an address.",
    ),
    key(
        Section::Limits,
        "exempt_addresses",
        "list of addresses and networks",
        "[]",
        r#"["10.0.0.0/8", "2001:db8:7::/48"]"#,
        "Addresses and networks that connections_per_address and tls.handshakes_per_address do not apply to: load \
         balancers, monitoring, an office.",
    ),
    key(
        Section::Limits,
        "head",
        "size, 1KiB to 1MiB",
        r#""32KiB""#,
        r#""16KiB""#,
        "A request's head, request line and headers together.",
    ),
    key(
        Section::Limits,
        "request_line",
        "size, 256B to 64KiB, head at most",
        r#""8KiB""#,
        r#""4KiB""#,
        "The request line.",
    ),
    key(Section::Limits, "header_count", "integer, 1 to 128", "100", "50", "Headers of a request."),
    key(
        Section::Limits,
        "ranges_per_request",
        "integer, 1 to 128",
        "16",
        "1",
        "Ranges that one request may ask for; more are answered with the whole file.",
    ),
    key(
        Section::Limits,
        "listing_entries",
        "integer, 1 to 1000000",
        "10000",
        "500",
        "Entries shown of a folder.",
    ),
    key(
        Section::Limits,
        "open_files_cached",
        "integer, 0 to 1000000",
        "1024",
        "0",
        "Open files that each worker keeps for the next request.",
    ),
    key(
        Section::Limits,
        "mapped",
        "size, 0B to 64TiB",
        r#""4GiB""#,
        r#""0B""#,
        "Bytes of files that each worker keeps mapped; 0B maps none.",
    ),
    key(
        Section::Limits,
        "least_rate",
        "size a second, 0B to 1MiB",
        r#""1KiB""#,
        r#""0B""#,
        "What a client must take of a response in the mean over each timeouts.write_progress, or it is cut; 0B: nothing.",
    ),
    key(
        Section::Timeouts,
        "idle",
        "duration, 1s to 1d",
        r#""75s""#,
        r#""5s""#,
        "A connection waits for its next request.",
    ),
    key(
        Section::Timeouts,
        "header",
        "duration, 100ms to 1h",
        r#""15s""#,
        r#""5s""#,
        "A request's head arrives, from its first byte to its last.",
    ),
    key(
        Section::Timeouts,
        "write_progress",
        "duration, 100ms to 1h",
        r#""30s""#,
        r#""60s""#,
        "A client takes nothing of a response; then it is cut.",
    ),
    key(Section::Timeouts, "handshake", "duration, 100ms to 1h", r#""10s""#, r#""3s""#, "A TLS handshake."),
    key(
        Section::Timeouts,
        "drain",
        "duration, 0s to 1d",
        r#""30s""#,
        r#""10m""#,
        "Open responses are finished after QUIT; then they are cut.",
    ),
    key(
        Section::UserEngine,
        "batch",
        "size, 16KiB to 16MiB",
        r#""256KiB""#,
        r#""128KiB""#,
        "What is sealed for one send at most; a connection that the kernel paces (BBR) sends less.",
    ),
    key(
        Section::UserEngine,
        "map_threshold",
        "size, 0B to 64TiB",
        r#""64KiB""#,
        r#""64MiB""#,
        "Files of this size and more are sealed from mappings, smaller ones are read.",
    ),
    key(
        Section::UserEngine,
        "quantum",
        "size, 16KiB to 64MiB, batch at least",
        r#""1MiB""#,
        r#""2MiB""#,
        "The most that one connection sends before others have their turn.",
    ),
    key(
        Section::UserEngine,
        "not_sent_low_water",
        "size, 1KiB to 64MiB",
        r#""16KiB""#,
        r#""128KiB""#,
        "Unsent bytes in a socket above which it counts as full (TCP_NOTSENT_LOWAT).",
    ),
    key(
        Section::KernelEngine,
        "from",
        "size, 0B to 64TiB",
        r#""64KiB""#,
        r#""1MiB""#,
        "The first response of this size or more, its head included, moves its connection into the kernel.",
    ),
    key(
        Section::KernelEngine,
        "after",
        "size, 0B to 64TiB",
        r#""0B""#,
        r#""4MiB""#,
        "Bytes that a connection sends by the user engine before it may move; it then moves in the middle of a response.",
    ),
    key(
        Section::Placement,
        "calibration",
        "path",
        "(calibration.toml in the state directory; without it published figures, by which software kernel TLS never pays)",
        r#""/var/lib/linerate/calibration.toml""#,
        "What each engine costs on this machine, as linerate calibrate measured it. A file that was measured on another \
         kernel or processor is not used, with a warning.",
    ),
    key(
        Section::Placement,
        "nic_set_ups_per_second",
        "integer, 0 to 10000000",
        "(all that the adapter can do)",
        "400",
        "Connections that an adapter is asked to set up in a second at most, by all workers together; 0 asks for none. Where \
         set-ups queue at the adapter it is asked for fewer. Scarce set-ups go to the largest \
         savings.",
    ),
    key(
        Section::Placement,
        "max_retransmitted_percent",
        "integer, 0 to 100",
        "1",
        "5",
        "A connection of whose bytes more were sent again stays off the adapter.",
    ),
    key(
        Section::Placement,
        "learning",
        "true or false",
        "true",
        "false",
        "Whether what transfers really cost corrects what was calibrated. It corrects only what was tried.",
    ),
    key(
        Section::Placement,
        "trial_every",
        "integer, 0 to 1000000000",
        "0",
        "1000",
        "One of so many large responses moves to kernel TLS although that is not expected to pay, to learn whether it \
         does; 0 tries none.",
    ),
    key(
        Section::Site,
        "names",
        "list of host names",
        "[]",
        r#"["media.example.org", "*.media.example.org"]"#,
        "The names the site answers to, by SNI and Host; * for the whole first label. The site without names is the \
         default site: it answers to all others.",
    ),
    key(Section::Site, "root", "path", "(required)", r#""media""#, "The folder that is served."),
    key(
        Section::Site,
        "certificates",
        "list of { certificate, key }",
        "(a development certificate for localhost)",
        r#"[{ certificate = "cert.pem", key = "key.pem" }]"#,
        "The site's certificates. Either every site has some or none has.",
    ),
    key(
        Section::Site,
        "index",
        "list of file names",
        r#"["index.html"]"#,
        r#"["index.html", "index.htm"]"#,
        "Files served for a folder: the first that exists.",
    ),
    key(Section::Site, "listing", BOOLEAN, "true", "false", "Whether a folder without index file is listed."),
    key(
        Section::Site,
        "dotfiles",
        BOOLEAN,
        "false",
        "true",
        "Whether names that begin with a dot are served and listed.",
    ),
    key(
        Section::Site,
        "symlinks",
        "\"within\", \"refused\" or \"anywhere\"",
        r#""within""#,
        r#""refused""#,
        "Symbolic links are followed within the root, never, or wherever they lead.",
    ),
    key(
        Section::Site,
        "precompressed",
        BOOLEAN,
        "true",
        "false",
        "Whether FILE.br, FILE.zst and FILE.gz are served for FILE to clients that accept them.",
    ),
    key(
        Section::Site,
        "immutable",
        BOOLEAN,
        "false",
        "true",
        "Whether no file is ever changed in place (new ones take its name instead): then kernel TLS in a network \
         adapter may read it while it is sent, without a copy (TLS_TX_ZEROCOPY_RO). A change would break transfers.",
    ),
    key(
        Section::Site,
        "charset",
        "name, or \"\" for none",
        r#""utf-8""#,
        r#""iso-8859-1""#,
        "The charset said with text types.",
    ),
    key(
        Section::Site,
        "media_types",
        "table of EXTENSION = \"TYPE/SUBTYPE\"",
        "{}",
        r#"{ m4s = "video/iso.segment" }"#,
        "Media types by extension, before the built-in ones.",
    ),
    key(
        Section::Site,
        "hsts",
        "{ max_age, include_subdomains, preload }",
        "(off)",
        r#"{ max_age = "365d" }"#,
        "Strict-Transport-Security: asks browsers to come back over TLS only.",
    ),
    key(
        Section::Site,
        "headers",
        "list of { path, set, unset }",
        "[]",
        r#"[{ path = "/**", set = { Referrer-Policy = "same-origin" } }]"#,
        "Response headers by path.",
    ),
    key(
        Section::Site,
        "cache_control",
        "list of { path, value }",
        "[]",
        r#"[{ path = "*.m4s", value = "public, max-age=31536000, immutable" }]"#,
        "The Cache-Control header by path.",
    ),
    key(
        Section::Nfs,
        "certificates",
        "list of { certificate, key }",
        "(a development certificate)",
        r#"[{ certificate = "nfs.pem", key = "nfs-key.pem" }]"#,
        "Certificates that NFS clients are shown; several for several algorithms.",
    ),
    key(
        Section::Nfs,
        "client_authorities",
        "path",
        "(none)",
        r#""clients-ca.pem""#,
        "The authorities (PEM) whose word about clients is taken. Every NFS client with TLS is asked for a certificate then.",
    ),
    key(
        Section::Export,
        "name",
        "string",
        "(none)",
        r#""media""#,
        "What clients mount, SERVER:/NAME; without a name it is SERVER:/, and no other export may be beside it. Clients keep \
         their files over a restart as long as the name stays.",
    ),
    key(
        Section::Export,
        "directory",
        "path",
        "(required)",
        r#""/srv/media""#,
        "The folder. Mount points and subvolumes beneath it are not shown; symbolic links are the client's to follow.",
    ),
    key(
        Section::Export,
        "tls",
        "\"require\", \"offer\" or \"off\"",
        r#""require""#,
        r#""offer""#,
        "Whether connections must have TLS, may, or must not.",
    ),
    key(
        Section::Export,
        "networks",
        "list of addresses and networks",
        "[]",
        r#"["10.0.0.0/8"]"#,
        "Where clients may be; none is anywhere.",
    ),
    key(
        Section::Export,
        "certificate",
        BOOLEAN,
        "(true where client_authorities is set and tls is \"require\")",
        "false",
        "Whether a client must show a certificate of client_authorities.",
    ),
    key(
        Section::Export,
        "clients",
        "list of names",
        "[]",
        r#"["*.lab.example.org"]"#,
        "The names of which a client's certificate must have one: in its subjectAltName, or its common name where it has none. \
         * stands for one label.",
    ),
    key(
        Section::Export,
        "identity",
        "\"server\" or \"client\"",
        r#""server""#,
        r#""client""#,
        "By whom permission is judged: server lets every client read what the server's own user may; client also asks the \
         permission bits about the user that the client states (root counts as nobody). Nobody but the client vouches for that.",
    ),
    key(
        Section::Certificates,
        "certificate",
        "path",
        "(required)",
        r#""cert.pem""#,
        "The certificate chain, the server's own first.",
    ),
    key(Section::Certificates, "key", "path", "(required)", r#""key.pem""#, "The private key."),
    key(
        Section::Hsts,
        "max_age",
        "duration, 0s to 3650d",
        "(required)",
        r#""365d""#,
        "How long browsers remember; 0s asks them to forget.",
    ),
    key(
        Section::Hsts,
        "include_subdomains",
        BOOLEAN,
        "false",
        "true",
        "Whether it holds for the names below.",
    ),
    key(
        Section::Hsts,
        "preload",
        BOOLEAN,
        "false",
        "true",
        "Whether browsers may build the name in; needs 365d and include_subdomains.",
    ),
    key(
        Section::Headers,
        "path",
        "pattern",
        "(required)",
        r#""/static/**""#,
        "The decoded paths it covers, those of folders with / at the end: ? is one character, * any within a segment, \
         ** any; without / it is about file names.",
    ),
    key(
        Section::Headers,
        "set",
        "table of NAME = \"VALUE\"",
        "(required)",
        r#"{ Access-Control-Allow-Origin = "*" }"#,
        "The headers; not needed beside unset.",
    ),
    key(
        Section::Headers,
        "unset",
        "list of strings",
        "[]",
        r#"["X-Content-Type-Options"]"#,
        "Headers that are not sent, whichever earlier rule sets them.",
    ),
    key(
        Section::CacheControl,
        "path",
        "pattern",
        "(required)",
        r#""*.m4s""#,
        "The paths it covers, as for headers.",
    ),
    key(
        Section::CacheControl,
        "value",
        "string",
        "(required)",
        r#""public, max-age=3600""#,
        "The header's value.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_there_twice() {
        for (index, key) in KEYS.iter().enumerate() {
            let twin =
                KEYS[..index].iter().find(|other| other.section == key.section && other.name == key.name);
            assert!(twin.is_none(), "{}{}", key.section.prefix(), key.name);
        }
    }

    #[test]
    fn meanings_are_sentences() {
        for key in KEYS {
            assert!(key.meaning.ends_with('.') && !key.meaning.contains("  "), "{}", key.name);
        }
    }
}
