//! What a load is: every variable that an experiment can fix or sweep, with its meaning and its bounds.

use std::fmt::Display;
use std::str::FromStr;

use linerate_faults::nearest;
use linerate_suite::Version;

use crate::network::{NetworkKind, Sending};
use crate::result::Variable;

/// Everything that determines one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Connections at a time.
    pub connections: u32,
    /// The size of each file, in bytes.
    pub file_bytes: u64,
    /// How many different files of that size.
    pub files: u32,
    /// Each request is for so many bytes at a random place in a file, instead of the whole.
    pub range_bytes: Option<u64>,
    /// Each request has a connection of its own.
    pub close: bool,
    /// The client throws bodies away unread, so that it is the server that is measured.
    pub discard: bool,
    /// What connections begin with.
    pub handshake: Handshake,
    /// The version of TLS.
    pub tls: Version,
    /// The cipher suite; the client's first choice where there is none.
    pub cipher: Option<String>,
    /// The key exchange group; the client's first choice where there is none.
    pub group: Option<String>,
    /// The kind of the server's certificate.
    pub certificate: CertificateKind,
    /// The most plaintext in a record; the server's own choice where there is none.
    pub record_bytes: Option<u32>,
    /// Whether files are in the page cache.
    pub cache: CacheState,
    /// Requests that each connection makes in a second, like a video player; as many as it can where there is none.
    pub requests_per_connection_s: Option<f64>,
    /// The server is started anew for each round.
    pub fresh_server: bool,
    /// Each connection asks once, and is idle for the rest of the round.
    pub idle: bool,
    /// The program that makes the load.
    pub client: LoadProgram,
    /// The client asks the kernel again and again instead of sleeping: nobody has to wake it.
    pub spin: bool,
    /// The receive buffer of each connection of the client; the kernel's choice where there is none.
    pub receive_buffer_bytes: Option<u32>,
    /// The largest segment that the server may send; the path's where there is none.
    pub segment_bytes: Option<u32>,
    /// The network between server and client.
    pub network: NetworkKind,
    /// How the server's end sends; as the machine does where there is none.
    pub sending: Option<Sending>,
    /// Bytes that each READ of NFS asks for.
    pub read_bytes: u32,
    /// Which bytes requests ask for; NFS: sequential, HTTP: the whole file, where there is none.
    pub order: Option<ReadOrder>,
    /// READs under way on each connection.
    pub depth: u32,
}

/// Which bytes requests ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOrder {
    /// The file from end to end.
    Sequential,
    /// Blocks of it at random.
    Random,
}

/// What connections begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// A full handshake.
    Full,
    /// A resumed session, where there was one before.
    Resumed,
}

/// The kind of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CertificateKind {
    /// ECDSA with P-256.
    Ecdsa,
    /// RSA with 2048 bits.
    Rsa,
}

/// The program that makes the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadProgram {
    /// `linerate load`.
    Linerate,
    /// wrk: OpenSSL's client, which reads and decrypts everything.
    Wrk,
    /// fio, through a mount by the kernel's NFS client.
    Fio,
}

/// Whether files are in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// All of them: they were read just before.
    Hot,
    /// None of them when the round begins: they were dropped, and the server is a fresh one.
    Cold,
}

/// A variable, for the reader.
#[derive(Clone, Copy, Debug)]
pub struct VariableDocument {
    /// Its name in `[load]`, `[sweep]` and results.
    pub name: &'static str,
    /// Plaintext has no such thing.
    pub is_of_tls: bool,
    /// What it may be, and what it means.
    pub meaning: &'static str,
}

const fn variable(name: &'static str, is_of_tls: bool, meaning: &'static str) -> VariableDocument {
    VariableDocument { name, is_of_tls, meaning }
}

/// Every variable.
pub const VARIABLES: &[VariableDocument] = &[
    variable("connections", false, "connections at a time [8]"),
    variable("file_bytes", false, "size of each file, in bytes [1_000_000_000]"),
    variable("files", false, "how many different files of that size [1]"),
    variable("range_bytes", false, "each request is for so many bytes at a random place [the whole file]"),
    variable("close", false, "true: each request has a connection of its own [false]"),
    variable("discard", false, "true: the client throws bodies away unread, the server is measured [true]"),
    variable("handshake", true, "\"full\" or \"resumed\" [\"full\"]"),
    variable("tls", true, "\"1.2\" or \"1.3\" [\"1.3\"]"),
    variable("cipher", true, "cipher suite, by OpenSSL's or IANA's name [the client's first choice]"),
    variable(
        "group",
        true,
        "key exchange group: \"X25519\", \"X25519MLKEM768\", … [the client's first choice]",
    ),
    variable("certificate", true, "\"ecdsa\" (P-256) or \"rsa\" (2048) [\"ecdsa\"]"),
    variable(
        "record_bytes",
        true,
        "most plaintext in a record, where the server lets it be said [its own choice]",
    ),
    variable(
        "cache",
        false,
        "\"hot\": files are in the page cache, \"cold\": they were dropped from it [\"hot\"]",
    ),
    variable(
        "requests_per_connection_s",
        false,
        "requests of each connection in a second [as many as it can]",
    ),
    variable("fresh_server", false, "true: the server is started anew for each round [false]"),
    variable("idle", false, "true: each connection asks once, and is then kept open and idle [false]"),
    variable(
        "client",
        false,
        "the program that makes the load: \"linerate\", \"wrk\" (HTTP) or \"fio\" (NFS, through a mount of this \
         machine's kernel) [\"linerate\"]",
    ),
    variable("spin", false, "true: the client never sleeps, so that nobody has to wake it [false]"),
    variable(
        "receive_buffer_bytes",
        false,
        "receive buffer of each of the client's connections [the kernel's]",
    ),
    variable("segment_bytes", false, "the largest segment that the server may send [the path's]"),
    variable(
        "network",
        false,
        "\"host\": the machine's own, \"loopback\": that of a namespace, \"veth\": a pair between two, MTU 1500, or \
         \"veth-MTU\" (all but the first as root) [\"host\"]",
    ),
    variable(
        "congestion_control",
        false,
        "TCP's, and the queue discipline after a plus: \"cubic\", \"bbr\", \"bbr+fq\"; in a namespace, as root [the \
         machine's]",
    ),
    variable("read_bytes", false, "bytes of each READ of NFS, up to 1 MiB [1_048_576]"),
    variable(
        "order",
        false,
        "of READs: \"sequential\", the file from end to end, or \"random\"; of HTTP \"random\" alone, ranges of read_bytes \
         [NFS: sequential]",
    ),
    variable("depth", false, "NFS: READs under way on each connection, up to 1024 [1]"),
];

impl Default for Workload {
    fn default() -> Self {
        Self {
            connections: 8,
            file_bytes: 1_000_000_000,
            files: 1,
            range_bytes: None,
            close: false,
            discard: true,
            handshake: Handshake::Full,
            tls: Version::Tls13,
            cipher: None,
            group: None,
            certificate: CertificateKind::Ecdsa,
            record_bytes: None,
            cache: CacheState::Hot,
            requests_per_connection_s: None,
            fresh_server: false,
            idle: false,
            client: LoadProgram::Linerate,
            spin: false,
            receive_buffer_bytes: None,
            segment_bytes: None,
            network: NetworkKind::Host,
            sending: None,
            read_bytes: 1 << 20,
            order: None,
            depth: 1,
        }
    }
}

impl Workload {
    /// Sets the variable `name`.
    ///
    /// # Errors
    /// In words, where there is no such variable or it cannot have such a value.
    pub fn set(&mut self, name: &str, value: &Variable) -> Result<(), String> {
        let at = |reason: String| format!("{name}: {reason}");
        match name {
            "connections" => self.connections = whole(value, 1, 1_000_000).map_err(at)?,
            "file_bytes" => self.file_bytes = whole(value, 1, 1_000_000_000_000).map_err(at)?,
            "files" => self.files = whole(value, 1, 10_000).map_err(at)?,
            "range_bytes" => self.range_bytes = Some(whole(value, 1, 1_000_000_000_000).map_err(at)?),
            "close" => self.close = one_of(value, &[("false", false), ("true", true)]).map_err(at)?,
            "discard" => self.discard = one_of(value, &[("false", false), ("true", true)]).map_err(at)?,
            "handshake" => {
                let words = [("full", Handshake::Full), ("resumed", Handshake::Resumed)];
                self.handshake = one_of(value, &words).map_err(at)?;
            }
            "tls" => {
                let words = [Version::Tls12, Version::Tls13].map(|version| (version.number(), version));
                self.tls = one_of(value, &words).map_err(at)?;
            }
            "cipher" => self.cipher = Some(word(value).map_err(at)?),
            "group" => self.group = Some(word(value).map_err(at)?),
            "certificate" => {
                let words = [("ecdsa", CertificateKind::Ecdsa), ("rsa", CertificateKind::Rsa)];
                self.certificate = one_of(value, &words).map_err(at)?;
            }
            "record_bytes" => self.record_bytes = Some(whole(value, 512, 16_384).map_err(at)?),
            "cache" => {
                let words = [("hot", CacheState::Hot), ("cold", CacheState::Cold)];
                self.cache = one_of(value, &words).map_err(at)?;
            }
            "requests_per_connection_s" => {
                self.requests_per_connection_s = Some(positive(value).map_err(at)?);
            }
            "fresh_server" => {
                self.fresh_server = one_of(value, &[("false", false), ("true", true)]).map_err(at)?;
            }
            "idle" => self.idle = one_of(value, &[("false", false), ("true", true)]).map_err(at)?,
            "client" => {
                let words = [
                    ("linerate", LoadProgram::Linerate),
                    ("wrk", LoadProgram::Wrk),
                    ("fio", LoadProgram::Fio),
                ];
                self.client = one_of(value, &words).map_err(at)?;
            }
            "spin" => self.spin = one_of(value, &[("false", false), ("true", true)]).map_err(at)?,
            "receive_buffer_bytes" => {
                self.receive_buffer_bytes = Some(whole(value, 1024, 1 << 30).map_err(at)?);
            }
            "segment_bytes" => self.segment_bytes = Some(whole(value, 88, 65_483).map_err(at)?),
            "network" => {
                let word = value.to_string();
                self.network = NetworkKind::parse(&word).ok_or_else(|| {
                    let hint = nearest(&word, ["host", "loopback", "veth"]);
                    let hint = hint.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
                    at(format!("\"{word}\" is none of host, loopback, veth and veth-MTU (68 to 65535){hint}"))
                })?;
            }
            "read_bytes" => self.read_bytes = whole(value, 1, 1 << 20).map_err(at)?,
            "order" => {
                let words = [("sequential", ReadOrder::Sequential), ("random", ReadOrder::Random)];
                self.order = Some(one_of(value, &words).map_err(at)?);
            }
            "depth" => self.depth = whole(value, 1, 1024).map_err(at)?,
            "congestion_control" => self.sending = Some(sending(value).map_err(at)?),
            unknown => return Err(unknown_variable(unknown)),
        }
        Ok(())
    }

    /// Bytes of all the files together.
    #[must_use]
    pub(crate) fn set_bytes(&self) -> u64 {
        self.file_bytes.saturating_mul(u64::from(self.files))
    }
}

fn unknown_variable(name: &str) -> String {
    let names = || VARIABLES.iter().map(|variable| variable.name);
    let hint = nearest(name, names()).map(|near| format!("; did you mean \"{near}\"?"));
    let all = || format!(" (there are: {})", names().collect::<Vec<_>>().join(", "));
    format!("unknown variable \"{name}\"{}", hint.unwrap_or_else(all))
}

/// Whether plaintext has no such variable.
pub(crate) fn is_of_tls(name: &str) -> bool {
    VARIABLES.iter().any(|variable| variable.name == name && variable.is_of_tls)
}

fn whole<T: TryFrom<u64> + Display>(value: &Variable, least: u64, most: u64) -> Result<T, String> {
    let found = match value {
        Variable::Number(number) if number.fract() == 0.0 && *number >= 0.0 => Some(*number as u64),
        _ => None,
    };
    found
        .filter(|found| (least..=most).contains(found))
        .and_then(|found| T::try_from(found).ok())
        .ok_or_else(|| format!("an integer from {least} to {most} is needed"))
}

fn positive(value: &Variable) -> Result<f64, String> {
    match value {
        Variable::Number(number) if *number > 0.0 && number.is_finite() => Ok(*number),
        _ => Err("a number above 0 is needed".to_owned()),
    }
}

fn word(value: &Variable) -> Result<String, String> {
    match value {
        Variable::Word(word) if !word.is_empty() && !word.starts_with('-') => Ok(word.clone()),
        _ => Err("a name in quotes is needed".to_owned()),
    }
}

fn sending(value: &Variable) -> Result<Sending, String> {
    let wanted =
        || "the name of a congestion control is needed, with a queue discipline after a plus if it matters";
    Sending::parse(&word(value)?).ok_or_else(|| wanted().to_owned())
}

fn one_of<T: Copy>(value: &Variable, words: &[(&str, T)]) -> Result<T, String> {
    let written = value.to_string();
    let found = words.iter().find(|(word, _)| *word == written).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let hint = nearest(&written, all.iter().copied()).map(|near| format!("; did you mean \"{near}\"?"));
        format!("\"{written}\" is none of {}{}", all.join(", "), hint.unwrap_or_default())
    })
}

impl FromStr for Variable {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::Word(text.to_owned()), Self::Number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_variable_can_be_set_and_no_other() {
        for variable in VARIABLES {
            let tried = [Variable::Number(1024.0), "true".parse().unwrap(), "full".parse().unwrap()]
                .into_iter()
                .chain(
                    ["1.3", "hot", "ecdsa", "veth", "wrk", "random"]
                        .map(|word| Variable::Word(word.to_owned())),
                );
            let mut set = 0;
            for value in tried {
                set += usize::from(Workload::default().set(variable.name, &value).is_ok());
            }
            assert!(set > 0, "{} takes none of the values", variable.name);
        }
        let error = Workload::default().set("conections", &Variable::Number(1.0)).unwrap_err();
        assert_eq!(error, "unknown variable \"conections\"; did you mean \"connections\"?");
        let error = Workload::default().set("colour", &Variable::Number(1.0)).unwrap_err();
        assert!(
            error.starts_with("unknown variable \"colour\" (there are: connections, file_bytes"),
            "{error}"
        );
    }

    #[test]
    fn values_out_of_bounds_say_what_is_needed() {
        let mut workload = Workload::default();
        for (name, value, wanted) in [
            ("connections", Variable::Number(0.0), "connections: an integer from 1 to 1000000 is needed"),
            ("connections", Variable::Number(1.5), "connections: an integer from 1 to 1000000 is needed"),
            ("files", Variable::Word("many".to_owned()), "files: an integer from 1 to 10000 is needed"),
            ("tls", Variable::Number(1.4), "tls: \"1.4\" is none of 1.2, 1.3; did you mean \"1.2\"?"),
            (
                "cache",
                Variable::Word("cld".to_owned()),
                "cache: \"cld\" is none of hot, cold; did you mean \"cold\"?",
            ),
            (
                "requests_per_connection_s",
                Variable::Number(0.0),
                "requests_per_connection_s: a number above 0 is needed",
            ),
            ("cipher", Variable::Word("--insecure".to_owned()), "cipher: a name in quotes is needed"),
            (
                "network",
                Variable::Word("vth".to_owned()),
                "network: \"vth\" is none of host, loopback, veth and veth-MTU (68 to 65535); did you mean \"veth\"?",
            ),
            (
                "congestion_control",
                Variable::Word("bbr fq".to_owned()),
                "congestion_control: the name of a congestion control is needed, with a queue discipline after a plus if it \
                 matters",
            ),
        ] {
            assert_eq!(workload.set(name, &value).unwrap_err(), wanted);
        }
        assert_eq!(workload, Workload::default());
    }
}
