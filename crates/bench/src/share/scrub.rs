//! Texts without what must not leave the machine: names are learnt from all texts first, and then taken out of all.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::word::{self, Secret};

/// A word that a result is made of is no secret, whoever has it for a name: a machine called "nginx".
const WORDS_OF_RESULTS: [&str; 27] = [
    "adapter",
    "core",
    "cpu",
    "cubic",
    "debian",
    "floor",
    "github",
    "host",
    "kernel",
    "limits",
    "linerate",
    "linux",
    "localhost",
    "loopback",
    "memory",
    "net",
    "network",
    "nobody",
    "plaintext",
    "root",
    "server",
    "software",
    "tls",
    "ubuntu",
    "user",
    "users",
    "www-data",
];

/// Something that was taken out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Removed {
    /// What it was.
    pub secret: Secret,
    /// What stands in its place.
    pub placeholder: String,
    /// What stood there.
    pub text: String,
}

/// Takes secrets out of texts. The same secret has the same placeholder everywhere.
#[derive(Debug)]
pub(super) struct Scrubber {
    /// Words that stay, in small letters.
    words: BTreeSet<String>,
    /// Names of machines and accounts, in small letters.
    names: BTreeMap<String, Secret>,
    /// Names that are words of results, too, and stay.
    kept: BTreeSet<String>,
    placeholders: BTreeMap<(Secret, String), String>,
}

impl Scrubber {
    /// One that leaves these words alone, whatever they name.
    pub(super) fn new<'a>(vocabulary: impl Iterator<Item = &'a str>) -> Self {
        let of = |text: &'a str| text.split(|letter: char| !is_of_name(letter)).map(str::to_ascii_lowercase);
        let words = vocabulary.flat_map(of).chain(WORDS_OF_RESULTS.map(str::to_owned)).collect();
        Self { words, names: BTreeMap::new(), kept: BTreeSet::new(), placeholders: BTreeMap::new() }
    }

    /// What was taken out so far.
    pub(super) fn removed(&self) -> Vec<Removed> {
        let removed = self.placeholders.iter().map(|((secret, text), placeholder)| Removed {
            secret: *secret,
            placeholder: placeholder.clone(),
            text: text.clone(),
        });
        removed.collect()
    }

    /// Names that stayed because results are made of these words.
    pub(super) fn kept(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().map(String::as_str)
    }

    /// A name of a machine or account, to be taken out wherever it stands.
    pub(super) fn learn_name(&mut self, secret: Secret, name: &str) {
        let name = name.trim().to_ascii_lowercase();
        if name.len() < 2 || is_numeric_address(&name) || name.bytes().all(|byte| byte.is_ascii_digit()) {
            return;
        }
        if self.words.contains(&name) {
            if name != "root" && name != "localhost" {
                self.kept.insert(name);
            }
            return;
        }
        self.names.entry(name).or_insert(secret);
    }

    /// `HOST`, or `USER@HOST`, as ssh takes them; a full name's first label is a name, too.
    pub(super) fn learn_login(&mut self, login: &str) {
        let host = match login.rsplit_once('@') {
            Some((user, host)) => {
                self.learn_name(Secret::User, user);
                host
            }
            None => login,
        };
        self.learn_name(Secret::Host, host);
        if let Some((first, _)) = host.split_once('.')
            && !is_numeric_address(host)
        {
            self.learn_name(Secret::Host, first);
        }
    }

    /// Learns the names that a text gives away.
    pub(super) fn learn(&mut self, text: &str) {
        for home in word::HOMES {
            for (at, _) in text.match_indices(home) {
                let rest = &text[at + home.len()..];
                let name = rest.split(|letter| letter == '/' || word::is_delimiter(letter)).next();
                self.learn_name(Secret::User, name.unwrap_or_default());
            }
        }
        for word in text.split(word::is_delimiter) {
            let (authority, _) = authority(word).unwrap_or((trimmed(word), ""));
            let host = without_port(authority);
            if host.contains('@') || word.contains("://") || word::is_host(host) {
                self.learn_login(host.split(['/', ':']).next().unwrap_or_default());
            }
        }
    }

    /// A text without secrets.
    pub(super) fn scrub(&mut self, text: &str) -> String {
        let mut scrubbed = String::with_capacity(text.len());
        let mut rest = text;
        let mut is_serial = false;
        while let Some(first) = rest.chars().next() {
            if let Some(quoted) = quoted_path(rest) {
                scrubbed.push_str(&format!("\"{}\"", self.path(quoted)));
                rest = &rest[quoted.len() + 2..];
                continue;
            }
            if word::is_delimiter(first) {
                scrubbed.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let (word, after) = rest.split_at(rest.find(word::is_delimiter).unwrap_or(rest.len()));
            scrubbed.push_str(&self.word(word, &mut is_serial));
            rest = after;
        }
        self.without_names(&scrubbed)
    }

    /// A word of a command line, which is one thing whatever it holds: an option's value may be a path with spaces.
    pub(super) fn scrub_argument(&mut self, argument: &str) -> String {
        let is_local = |text: &str| {
            !text.contains("://")
                && (word::is_path(text) || text.starts_with("./") || text.starts_with("../"))
        };
        match argument.split_once('=') {
            _ if is_local(argument) => self.path(argument),
            Some((option, value)) if is_local(value) => {
                format!("{}={}", self.scrub(option), self.path(value))
            }
            _ if argument.contains('/') && !argument.contains("://") && !argument.contains([':', '=']) => {
                self.path(argument)
            }
            _ => self.scrub(argument),
        }
    }

    /// `is_serial`: the words before say that a serial number follows.
    fn word(&mut self, word: &str, is_serial: &mut bool) -> String {
        let core = trimmed(word);
        let Some(at) = word.find(core) else { return word.to_owned() };
        let (before, after) = (&word[..at], &word[at + core.len()..]);
        let announced = std::mem::replace(is_serial, announces_serial(core, *is_serial));
        if announced && core.bytes().any(|byte| byte.is_ascii_digit()) {
            return format!("{before}{}{after}", self.placeholder(Secret::Serial, core));
        }
        if let Some((label, number)) = core.split_once([':', '#'])
            && announces_serial(label, false)
            && !number.is_empty()
        {
            return format!("{before}{label}:{}{after}", self.placeholder(Secret::Serial, number));
        }
        format!("{before}{}{after}", self.core(core))
    }

    /// A word without the punctuation around it.
    fn core(&mut self, core: &str) -> String {
        if let Some((authority, path)) = authority(core) {
            let scheme = &core[..core.len() - authority.len() - path.len()];
            let path = if path.len() < 2 || word::is_made_by_the_bench(path) {
                path.to_owned()
            } else {
                self.path(path)
            };
            return format!("{scheme}{}{path}", self.core(authority));
        }
        if word::is_path(core) {
            return self.path(core);
        }
        if let Some((login, rest)) = core.split_once('@')
            && !login.is_empty()
            && !rest.is_empty()
        {
            return format!("{}@{}", self.placeholder(Secret::User, login), self.core(rest));
        }
        // "pid:/home/alice", "scp host:/srv"
        if let Some(at) = core.find(":/").or_else(|| core.find(":~")) {
            let (before, path) = core.split_at(at + 1);
            return format!("{}:{}", self.core(before.trim_end_matches(':')), self.path(path));
        }
        for (is, secret) in [
            (word::is_hardware_address as fn(&str) -> bool, Secret::HardwareAddress),
            (word::is_identifier, Secret::Serial),
            (word::is_address, Secret::Address),
            (word::is_host, Secret::Host),
        ] {
            if is(core) {
                return self.placeholder(secret, core);
            }
            let host = without_port(core);
            if host.len() < core.len() && is(host) {
                return format!("{}{}", self.placeholder(secret, host), &core[host.len()..]);
            }
        }
        // "192.0.2.0/24", "192.0.2.7/films"
        if let Some((first, rest)) = core.split_once('/')
            && (word::is_address(without_port(first)) || word::is_host(without_port(first)))
        {
            let rest = if rest.bytes().all(|byte| byte.is_ascii_digit()) { rest } else { "…" };
            return format!("{}/{rest}", self.core(first));
        }
        self.inner_addresses(core)
    }

    /// "listen_192.0.2.7_443": an address in the midst of a word.
    fn inner_addresses(&mut self, word: &str) -> String {
        let mut scrubbed = String::new();
        let mut rest = word;
        while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
            let (before, from) = rest.split_at(at);
            let end =
                from.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(from.len());
            let (number, after) = from.split_at(end);
            scrubbed.push_str(before);
            if word::is_address(number) {
                scrubbed.push_str(&self.placeholder(Secret::Address, number));
            } else {
                scrubbed.push_str(number);
            }
            rest = after;
        }
        scrubbed + rest
    }

    fn path(&mut self, path: &str) -> String {
        if word::is_of_the_system(path) && self.without_names(path) == path {
            return path.to_owned();
        }
        self.placeholders.insert((Secret::Path, path.to_owned()), "/…".to_owned());
        "/…".to_owned()
    }

    /// `text` without the names that were learnt, wherever they stand as words of their own.
    fn without_names(&mut self, text: &str) -> String {
        let mut scrubbed = text.to_owned();
        for (name, secret) in self.names.clone() {
            // Letters of other alphabets may have another length in small letters: they are no part of such names.
            while let Some(at) = position_of_name(&scrubbed.to_ascii_lowercase(), &name) {
                let placeholder = self.placeholder(secret, &name);
                scrubbed.replace_range(at..at + name.len(), &placeholder);
            }
        }
        scrubbed
    }

    fn placeholder(&mut self, secret: Secret, text: &str) -> String {
        let text = text.to_ascii_lowercase();
        let number = 1 + self.placeholders.keys().filter(|(other, _)| *other == secret).count();
        let word = match secret {
            Secret::Host => "HOST",
            Secret::User => "USER",
            Secret::Address => "ADDRESS",
            Secret::HardwareAddress => "HARDWARE-ADDRESS",
            Secret::Serial => "SERIAL",
            Secret::Path => "/…",
        };
        self.placeholders.entry((secret, text)).or_insert_with(|| format!("{word}.{number}")).clone()
    }
}

/// Addresses are known by their form, and some of them stay.
fn is_numeric_address(word: &str) -> bool {
    word.parse::<IpAddr>().is_ok()
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}

/// Where `name` stands in `text` with neither letter nor digit beside it.
fn position_of_name(text: &str, name: &str) -> Option<usize> {
    text.match_indices(name).map(|(at, _)| at).find(|at| {
        let is_part = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        !is_part(text[..*at].chars().next_back()) && !is_part(text[at + name.len()..].chars().next())
    })
}

/// A word without what a sentence puts around it.
fn trimmed(word: &str) -> &str {
    word.trim_matches(|letter: char| ".,:;!?".contains(letter))
}

/// The authority of a URL, and its path with all that follows.
fn authority(word: &str) -> Option<(&str, &str)> {
    let (_, rest) = word.split_once("://")?;
    Some(rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())))
}

/// "media.example.org:443" without the port.
fn without_port(word: &str) -> &str {
    match word.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => word,
    }
}

/// Whether a serial number comes after this word.
fn announces_serial(word: &str, before: bool) -> bool {
    let word = word.to_ascii_lowercase();
    ["serial", "s/n", "sn", "serialnumber", "serial_number", "serial-number"].contains(&word.as_str())
        || (before && ["number", "no", "nr", "is", "#", ""].contains(&word.as_str()))
}

/// The path that a text begins with in quotation marks: it may have spaces.
fn quoted_path(text: &str) -> Option<&str> {
    let (quoted, _) = text.strip_prefix('"')?.split_once('"')?;
    let is_one = word::is_path(quoted) || quoted.starts_with("./") || quoted.starts_with("../");
    (is_one && !quoted.contains('\n')).then_some(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(text: &str) -> String {
        let mut scrubber = Scrubber::new(["nginx plaintext", "film"].into_iter());
        scrubber.learn_name(Secret::User, "alice");
        scrubber.learn_login("bob@build-07.corp.example.com");
        scrubber.learn(text);
        scrubber.scrub(text)
    }

    #[test]
    fn what_every_machine_has_stays_as_it_is() {
        for text in [
            "nginx/1.26.3, OpenSSL 3.5.1 1 Jul 2025",
            "/usr/sbin/nginx -c nginx.conf",
            "https://127.0.0.1:8443/2000000000-0.bin",
            "net.ipv4.tcp_wmem = 4096 16384 4194304",
            "0.261 s/GB, 1.5 µs/KB, 20:07:10 UTC",
            "listen = [\"https://127.0.0.1:45605\", \"http://*:80\"]",
            "computed for MSS 1448 (Ethernet, MTU 1500, IPv4)",
            "linerate 0.1.0 (41aa357)",
            "a serial of things, malice and alicebob",
        ] {
            assert_eq!(scrubbed(text), text);
        }
    }

    #[test]
    fn what_tells_of_a_machine_goes() {
        for (text, wanted) in [
            ("ssh bob@build-07 as alice", "ssh USER.1@HOST.1 as USER.2"),
            ("Build-07.corp.example.com: refused", "HOST.1: refused"),
            ("https://192.0.2.7:8443/films/a.mkv", "https://ADDRESS.1:8443/…"),
            ("[2001:db8::7]:443 and 192.0.2.0/24", "[ADDRESS.1]:443 and ADDRESS.2/24"),
            ("root = \"/home/carol/My films\"; carol", "root = \"/…\"; USER.1"),
            ("cannot read /srv/media/film: gone", "cannot read /…: gone"),
            ("listen_192.0.2.7_443", "listen_ADDRESS.1_443"),
            ("52:54:00:12:34:56 on enx525400123456", "HARDWARE-ADDRESS.1 on HARDWARE-ADDRESS.2"),
            ("serial number 5CG1234XYZ, S/N:AB12", "serial number SERIAL.1, S/N:SERIAL.2"),
            ("01234567-89ab-cdef-0123-456789abcdef", "SERIAL.1"),
            ("scp build-07:/srv/x ~dave/y", "scp HOST.1:/… /…"),
        ] {
            assert_eq!(scrubbed(text), wanted, "{text}");
        }
    }

    #[test]
    fn an_argument_is_one_thing() {
        let mut scrubber = Scrubber::new([].into_iter());
        for (argument, wanted) in [
            ("/home/alice/My films", "/…"),
            ("--root=/home/alice/My films", "--root=/…"),
            ("results/of alice", "/…"),
            ("./linerate", "/…"),
            ("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
            ("random:32000000", "random:32000000"),
            ("http://127.0.0.1:80/1000-0.bin", "http://127.0.0.1:80/1000-0.bin"),
        ] {
            assert_eq!(scrubber.scrub_argument(argument), wanted, "{argument}");
        }
    }

    #[test]
    fn a_name_that_is_a_word_of_results_stays_and_is_told() {
        let mut scrubber = Scrubber::new(["nginx plaintext"].into_iter());
        scrubber.learn_name(Secret::Host, "nginx");
        assert_eq!(scrubber.scrub("nginx plaintext"), "nginx plaintext");
        assert_eq!(scrubber.kept().collect::<Vec<_>>(), ["nginx"]);
    }
}
