//! The load: how `linerate load` is called for a workload, here or on other machines over ssh.

pub(crate) mod child;
pub(crate) mod fio;
pub(crate) mod wrk;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::certificate::Certificate;
use crate::definition::{Handshake, ReadOrder, Workload};
use crate::files::Files;
use crate::servers::Protocol;

/// Where load clients run.
#[derive(Clone, Debug)]
pub(crate) enum Clients {
    /// On this machine: the program, and how many cores it has.
    Here {
        /// `linerate`.
        program: PathBuf,
        /// Its cores.
        cores: Vec<usize>,
    },
    /// On other machines, all at once.
    Hosts {
        /// ssh, with its options.
        ssh: Vec<String>,
        /// As ssh takes them: `name` or `user@name`.
        hosts: Vec<String>,
        /// `linerate` there.
        program: String,
        /// `linerate` here, which compares what is served with the files: they are on this machine.
        here: PathBuf,
    },
}

/// One load to be made.
#[derive(Clone, Debug)]
pub(crate) struct Order<'a> {
    /// What it is.
    pub(crate) workload: &'a Workload,
    /// What the server speaks.
    pub(crate) protocol: Protocol,
    /// The server.
    pub(crate) address: SocketAddr,
    /// The certificate to trust; none for plaintext.
    pub(crate) ca: Option<&'a Path>,
    /// What the client shows, where the server asks for it. It is on this machine.
    pub(crate) identity: Option<&'a Certificate>,
    /// What is asked for and for how long.
    pub(crate) aim: Aim<'a>,
}

/// What a load is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim<'a> {
    /// To be measured.
    Measure {
        /// Load before the measured time, in seconds.
        warmup_s: f64,
        /// The measured time, in seconds.
        measured_s: f64,
    },
    /// To have the server allocate what it keeps however many connections there are.
    Touch,
    /// To compare what is served with the files in this folder, on a few connections.
    Verify(&'a Path),
}

/// A load client to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientCommand {
    /// Program and arguments.
    pub(crate) words: Vec<String>,
    /// A file that it gets as standard input.
    pub(crate) input: Option<PathBuf>,
    /// Where it runs, for messages.
    pub(crate) name: String,
    /// What it prints.
    pub(crate) printed: Printed,
}

/// The form of what a client prints to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// A [`linerate_load::report::LoadReport`] as JSON.
    Report,
    /// What `fio --output-format=json` prints.
    Fio,
}

/// Stands for the certificate's file on another machine, whose name is only known there.
const CA_PLACE: &str = "$ca";

/// Connections that only have a server allocate what it allocates once.
const TOUCHING_CONNECTIONS: u32 = 50;

/// Of files larger than this only a part is compared.
const VERIFIED_BYTES: u64 = 64_000_000;

/// Where the part begins: odd, and in the middle of a record.
const VERIFIED_FROM: u64 = 1_234_567;

/// Of NFS so much is read at a time where it is compared: odd, too.
const VERIFIED_READ_BYTES: u64 = 777_777;

impl Clients {
    /// How many machines there are.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Here { .. } => 1,
            Self::Hosts { hosts, .. } => hosts.len(),
        }
    }

    /// The cores of this machine that they run on.
    pub(crate) fn cores(&self) -> &[usize] {
        match self {
            Self::Here { cores, .. } => cores,
            Self::Hosts { .. } => &[],
        }
    }

    /// The client that compares what is served with the files, which are here: the configured one, if it is here as well;
    /// else a client of this machine's own, on any core.
    pub(crate) fn verifier(&self) -> Self {
        match self {
            here @ Self::Here { .. } => here.clone(),
            Self::Hosts { here, .. } => Self::Here { program: here.clone(), cores: Vec::new() },
        }
    }

    /// The commands that make `order`, one for each machine that gets a connection.
    pub(crate) fn commands(&self, order: &Order<'_>) -> Vec<ClientCommand> {
        let shares = self.shares(order);
        match self {
            Self::Here { program, cores } => shares
                .iter()
                .map(|connections| {
                    let mut words = vec![program.to_string_lossy().into_owned()];
                    words.extend(arguments(order, *connections, Some(cores.len()), order.ca));
                    let name = "the load client".to_owned();
                    ClientCommand { words, input: None, name, printed: Printed::Report }
                })
                .collect(),
            Self::Hosts { ssh, hosts, program, .. } => shares
                .iter()
                .zip(hosts)
                .map(|(connections, host)| remote(ssh, host, program, order, *connections))
                .collect(),
        }
    }

    /// How many connections each machine opens: the same number, or one more.
    fn shares(&self, order: &Order<'_>) -> Vec<u32> {
        let machines = self.count() as u32;
        let connections = match order.aim {
            Aim::Measure { .. } => order.workload.connections,
            Aim::Touch => TOUCHING_CONNECTIONS.min(order.workload.connections),
            // Each machine asks once.
            Aim::Verify(_) => machines,
        };
        let share = |machine: u32| connections / machines + u32::from(machine < connections % machines);
        (0..machines).map(share).filter(|connections| *connections > 0).collect()
    }
}

/// The certificate goes through standard input, into a file that is removed afterwards.
fn remote(ssh: &[String], host: &str, program: &str, order: &Order<'_>, connections: u32) -> ClientCommand {
    let mut load = vec![program.to_owned()];
    load.extend(arguments(order, connections, None, order.ca.map(|_| Path::new(CA_PLACE))));
    let quoted = |word: &String| if word == CA_PLACE { "\"$ca\"".to_owned() } else { shell_quoted(word) };
    let load = load.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let line = if order.ca.is_some() {
        format!("ca=$(mktemp) && cat > \"$ca\" && {load}; status=$?; rm -f \"$ca\"; exit $status")
    } else {
        load
    };
    let mut words = ssh.to_vec();
    words.extend([host.to_owned(), "--".to_owned(), line]);
    ClientCommand {
        words,
        input: order.ca.map(Path::to_path_buf),
        name: format!("the load client on {host}"),
        printed: Printed::Report,
    }
}

pub(crate) fn shell_quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// `linerate load`'s arguments.
fn arguments(order: &Order<'_>, connections: u32, threads: Option<usize>, ca: Option<&Path>) -> Vec<String> {
    let workload = order.workload;
    let scheme = match (order.protocol, ca) {
        (Protocol::Nfs, _) => "nfs",
        (Protocol::Http, Some(_)) => "https",
        (Protocol::Http, None) => "http",
    };
    let mut words = vec!["load".to_owned()];
    words.extend(Files::names(workload).iter().map(|name| format!("{scheme}://{}/{name}", order.address)));
    let mut add = |option: &str, value: Option<String>| {
        words.push(option.to_owned());
        words.extend(value);
    };
    add("-c", Some(connections.to_string()));
    if let Some(threads) = threads {
        add("-t", Some(threads.clamp(1, connections as usize).to_string()));
    }
    match order.aim {
        Aim::Measure { warmup_s, measured_s } => {
            add("-d", Some(seconds_text(measured_s)));
            if warmup_s > 0.0 {
                add("--warmup", Some(seconds_text(warmup_s)));
            }
            if workload.spin {
                add("--spin", None);
            }
            if let Some(bytes) = workload.receive_buffer_bytes {
                add("--receive-buffer", Some(format!("{bytes}B")));
            }
            if let Some(bytes) = workload.segment_bytes {
                add("--mss", Some(bytes.to_string()));
            }
            match order.protocol {
                Protocol::Http => measured_http(workload, connections, &mut add),
                Protocol::Nfs => measured_nfs(workload, &mut add),
            }
        }
        Aim::Touch => add("-n", Some(connections.to_string())),
        Aim::Verify(files) => {
            add("--verify", Some(files.to_string_lossy().into_owned()));
            match order.protocol {
                Protocol::Http => verified_http(workload, connections, &mut add),
                Protocol::Nfs => verified_nfs(workload, &mut add),
            }
        }
    }
    if let Some(ca) = ca {
        add("--ca", Some(ca.to_string_lossy().into_owned()));
        if let Some(identity) = order.identity {
            add("--cert", Some(identity.chain.to_string_lossy().into_owned()));
            add("--key", Some(identity.key.to_string_lossy().into_owned()));
        }
        if let Some(cipher) = &workload.cipher {
            add("--cipher", Some(cipher.clone()));
        }
        if let Some(group) = &workload.group {
            add("--group", Some(group.clone()));
        }
        if order.protocol == Protocol::Http {
            add("--tls", Some(workload.tls.number().to_owned()));
            add(if workload.handshake == Handshake::Resumed { "--resume" } else { "--no-resume" }, None);
        }
    } else if order.protocol == Protocol::Nfs {
        add("--xprtsec", Some("none".to_owned()));
    }
    add("--json", None);
    words
}

fn measured_http(workload: &Workload, connections: u32, add: &mut impl FnMut(&str, Option<String>)) {
    if let Some(each_s) = workload.requests_per_connection_s {
        add("-R", Some((each_s * f64::from(connections)).to_string()));
    }
    let range_bytes = match workload.order {
        Some(ReadOrder::Random) => Some(u64::from(workload.read_bytes)),
        _ => workload.range_bytes,
    };
    if let Some(bytes) = range_bytes.filter(|bytes| *bytes < workload.file_bytes) {
        add("--range", Some(format!("random:{bytes}")));
    }
    for (flag, is_wanted) in
        [("--close", workload.close), ("--once", workload.idle), ("--discard", workload.discard)]
    {
        if is_wanted {
            add(flag, None);
        }
    }
}

fn measured_nfs(workload: &Workload, add: &mut impl FnMut(&str, Option<String>)) {
    add("--block", Some(format!("{}B", workload.read_bytes)));
    add("--depth", Some(workload.depth.to_string()));
    if workload.order == Some(ReadOrder::Random) {
        add("--order", Some("random".to_owned()));
    }
}

/// Every file once; the client takes the addresses in turn.
fn verified_http(workload: &Workload, connections: u32, add: &mut impl FnMut(&str, Option<String>)) {
    add("-n", Some(workload.files.max(connections).to_string()));
    if workload.file_bytes > VERIFIED_BYTES {
        add("--range", Some(format!("{VERIFIED_FROM}-{}", VERIFIED_FROM + VERIFIED_BYTES)));
    }
}

/// As many bytes, of a length that nothing is aligned to, from anywhere.
fn verified_nfs(workload: &Workload, add: &mut impl FnMut(&str, Option<String>)) {
    let read_bytes = VERIFIED_READ_BYTES.min(workload.file_bytes);
    let reads = workload.set_bytes().min(VERIFIED_BYTES).div_ceil(read_bytes);
    add("-n", Some(reads.max(u64::from(workload.files)).to_string()));
    add("--block", Some(format!("{read_bytes}B")));
    add("--order", Some("anywhere".to_owned()));
}

fn seconds_text(seconds: f64) -> String {
    if seconds.fract() == 0.0 { format!("{seconds}s") } else { format!("{}ms", (seconds * 1000.0).round()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(workload: &Workload) -> Order<'_> {
        let address = ([127, 0, 0, 1], 4433).into();
        let aim = Aim::Measure { warmup_s: 0.5, measured_s: 2.0 };
        let ca = Some(Path::new("/run/it's.pem"));
        Order { workload, protocol: Protocol::Http, address, ca, identity: None, aim }
    }

    fn here() -> Clients {
        Clients::Here { program: "/bin/linerate".into(), cores: vec![1, 2] }
    }

    fn hosts(count: usize) -> Clients {
        let hosts = (0..count).map(|host| format!("host{host}")).collect();
        Clients::Hosts {
            ssh: vec!["ssh".to_owned(), "-4".to_owned()],
            hosts,
            program: "linerate".to_owned(),
            here: "/bin/linerate".into(),
        }
    }

    #[test]
    fn a_workload_becomes_flags() {
        let workload = Workload {
            connections: 3,
            files: 2,
            file_bytes: 1000,
            range_bytes: Some(100),
            close: true,
            cipher: Some("TLS_AES_128_GCM_SHA256".to_owned()),
            group: Some("X25519".to_owned()),
            handshake: Handshake::Resumed,
            requests_per_connection_s: Some(0.5),
            idle: true,
            spin: true,
            receive_buffer_bytes: Some(32_768),
            segment_bytes: Some(1448),
            ..Workload::default()
        };
        let commands = here().commands(&order(&workload));
        assert_eq!(commands.len(), 1);
        assert_eq!(
            commands[0].words.join(" "),
            "/bin/linerate load https://127.0.0.1:4433/1000-0.bin https://127.0.0.1:4433/1000-1.bin -c 3 -t 2 -d 2s \
             --warmup 500ms --spin --receive-buffer 32768B --mss 1448 -R 1.5 --range random:100 --close --once --discard --ca /run/it's.pem --cipher \
             TLS_AES_128_GCM_SHA256 --group X25519 --tls 1.3 --resume --json"
        );
    }

    #[test]
    fn a_workload_of_nfs_becomes_flags() {
        let workload = Workload {
            connections: 4,
            file_bytes: 100_000_000,
            read_bytes: 4096,
            order: Some(ReadOrder::Random),
            depth: 8,
            ..Workload::default()
        };
        let identity = Certificate { chain: "/run/me.pem".into(), key: "/run/me.key".into() };
        let tls = Order { protocol: Protocol::Nfs, identity: Some(&identity), ..order(&workload) };
        let words = here().commands(&tls)[0].words.join(" ");
        assert_eq!(
            words,
            "/bin/linerate load nfs://127.0.0.1:4433/100000000-0.bin -c 4 -t 2 -d 2s --warmup 500ms --block 4096B --depth 8 \
             --order random --ca /run/it's.pem --cert /run/me.pem --key /run/me.key --json"
        );
        let clear = Order { ca: None, aim: Aim::Verify(Path::new("/files")), ..tls };
        let words = here().commands(&clear)[0].words.join(" ");
        assert!(
            words.ends_with("--verify /files -n 83 --block 777777B --order anywhere --xprtsec none --json"),
            "{words}"
        );
    }

    #[test]
    fn plaintext_has_nothing_of_tls() {
        let workload = Workload { cipher: Some("X".to_owned()), ..Workload::default() };
        let words = here().commands(&Order { ca: None, ..order(&workload) })[0].words.join(" ");
        assert!(words.contains(" http://127.0.0.1:4433/"), "{words}");
        assert!(!words.contains("--ca") && !words.contains("--tls") && !words.contains("resume"), "{words}");
    }

    #[test]
    fn connections_and_rate_are_shared_out_to_hosts() {
        let workload =
            Workload { connections: 5, requests_per_connection_s: Some(2.0), ..Workload::default() };
        let commands = hosts(2).commands(&order(&workload));
        let lines: Vec<&String> = commands.iter().map(|command| command.words.last().unwrap()).collect();
        assert!(
            lines[0].starts_with("ca=$(mktemp) && cat > \"$ca\" && linerate load https://"),
            "{}",
            lines[0]
        );
        assert!(lines[0].contains(" -c 3 ") && lines[0].contains(" -R 6 "), "{}", lines[0]);
        assert!(lines[1].contains(" -c 2 ") && lines[1].contains(" -R 4 "), "{}", lines[1]);
        assert!(lines[0].contains("--ca \"$ca\" --tls 1.3"), "{}", lines[0]);
        assert_eq!(commands[0].words[..4], ["ssh", "-4", "host0", "--"]);
        assert_eq!(commands[0].input.as_deref(), Some(Path::new("/run/it's.pem")));
        // A machine without a connection has nothing to do.
        assert_eq!(hosts(7).commands(&order(&workload)).len(), 5);
    }

    #[test]
    fn words_for_the_shell_stay_words() {
        assert_eq!(shell_quoted("https://127.0.0.1:4433/1000-0.bin"), "https://127.0.0.1:4433/1000-0.bin");
        assert_eq!(shell_quoted("a b;c"), "'a b;c'");
        assert_eq!(shell_quoted("it's"), "'it'\\''s'");
        assert_eq!(shell_quoted(""), "''");
    }

    #[test]
    fn verifying_asks_for_every_file_and_of_large_ones_for_a_part() {
        let workload =
            Workload { connections: 500, files: 3, file_bytes: 2_000_000_000, ..Workload::default() };
        let aim = Aim::Verify(Path::new("/files"));
        let words = here().commands(&Order { aim, ..order(&workload) })[0].words.join(" ");
        assert!(
            words.contains(" -c 1 ") && words.contains(" --verify /files -n 3 --range 1234567-65234567"),
            "{words}"
        );
        // The files are here, wherever the load comes from.
        let by_hosts = hosts(2).verifier().commands(&Order { aim, ..order(&workload) });
        assert_eq!(by_hosts.len(), 1);
        assert!(by_hosts[0].words.join(" ").starts_with("/bin/linerate load https://"), "{by_hosts:?}");
        assert!(by_hosts[0].words.join(" ").contains(" -c 1 -t 1 --verify /files -n 3 "), "{by_hosts:?}");
    }
}
