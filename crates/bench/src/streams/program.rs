//! The programs that make streams: how both ends are called.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::definition::{StreamLoad, Way};
use crate::network::NetworkKind;

/// A program, with the engine that carries what it sends.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// As results have it: "linerate user".
    pub(super) name: String,
    /// What it says of itself.
    pub(super) version: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Linerate { program: PathBuf, engine: &'static str },
    Iperf3,
}

impl Sender {
    /// The one of this name, if it can be run here.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) fn find(name: &str, linerate: &Path) -> Result<Self, String> {
        let (kind, program) = match name.strip_prefix("linerate ") {
            Some(engine) => {
                let engine = match engine {
                    "plaintext" => "plain",
                    "user" => "user",
                    "kernel" => "kernel",
                    "nic" => "nic",
                    _ => return Err(format!("{name}: there is no such engine")),
                };
                (Kind::Linerate { program: linerate.to_path_buf(), engine }, linerate.to_path_buf())
            }
            None => (Kind::Iperf3, PathBuf::from("iperf3")),
        };
        let said = Command::new(&program)
            .arg("--version")
            .output()
            .map_err(|error| format!("{name}: {} cannot be run: {error}", program.display()))?;
        let said = String::from_utf8_lossy(&said.stdout);
        let version = said.lines().next().unwrap_or_default().to_owned();
        Ok(Self { name: name.to_owned(), version, kind })
    }

    pub(super) fn is_plaintext(&self) -> bool {
        self.name.ends_with("plaintext")
    }

    /// Why it cannot make this load.
    pub(super) fn refusal(&self, load: &StreamLoad) -> Option<String> {
        match &self.kind {
            _ if !load.zero_copy => None,
            Kind::Iperf3 => Some(format!("{}: its --zerocopy is sendfile", self.name)),
            Kind::Linerate { engine: "kernel" | "nic", .. } => {
                Some(format!("{}: kernel TLS takes no memory that is lent to it", self.name))
            }
            Kind::Linerate { .. } => None,
        }
    }

    /// The end that listens.
    pub(super) fn listener(&self, address: SocketAddr, secret: &Path) -> Vec<String> {
        let words: Vec<String> = match &self.kind {
            Kind::Linerate { program, .. } => vec![
                program.to_string_lossy().into_owned(),
                "stream".to_owned(),
                "--listen".to_owned(),
                address.to_string(),
                "--secret".to_owned(),
                secret.to_string_lossy().into_owned(),
            ],
            Kind::Iperf3 => vec![
                "iperf3".to_owned(),
                "-s".to_owned(),
                "-1".to_owned(),
                "--forceflush".to_owned(),
                "-B".to_owned(),
                address.ip().to_string(),
                "-p".to_owned(),
                address.port().to_string(),
            ],
        };
        words
    }

    /// What the end that listens says once it does.
    pub(super) fn listening_words(&self) -> &'static str {
        match self.kind {
            Kind::Linerate { .. } => "listening on",
            Kind::Iperf3 => "Server listening on",
        }
    }

    /// The other end. `program` is linerate on its machine, `secret` the file there.
    pub(super) fn client(
        &self,
        load: &StreamLoad,
        address: SocketAddr,
        measured_s: f64,
        program: &str,
        secret: &str,
    ) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |given: &[&str]| words.extend(given.iter().map(|word| (*word).to_owned()));
        let (streams, io) = (load.streams.to_string(), load.io_bytes.to_string());
        match &self.kind {
            Kind::Linerate { engine, .. } => {
                add(&[program, "stream", &address.to_string(), "--secret", secret, "--engine", engine]);
                let milliseconds = format!("{}ms", (measured_s * 1000.0).round());
                add(&["-t", &milliseconds, "-i", "0", "--json", "-P", &streams, "-l", &io]);
                if let Some(bytes) = load.socket_buffer_bytes {
                    add(&["-w", &bytes.to_string()]);
                }
                if let Some(cipher) = load.cipher.as_ref().filter(|_| !self.is_plaintext()) {
                    add(&["--cipher", cipher]);
                }
                if load.zero_copy {
                    add(&["--zero-copy-send"]);
                    if self.is_plaintext() {
                        add(&["--zero-copy-receive"]);
                    }
                }
                match load.direction {
                    Way::Send => {}
                    Way::Receive => add(&["--receive"]),
                    Way::Both => add(&["--both"]),
                }
            }
            Kind::Iperf3 => {
                add(&["iperf3", "-c", &address.ip().to_string(), "-p", &address.port().to_string()]);
                // It takes whole seconds.
                let seconds = measured_s.ceil().to_string();
                add(&["-t", &seconds, "-i", "0", "-J", "-P", &streams, "-l", &io]);
                if let Some(bytes) = load.socket_buffer_bytes {
                    add(&["-w", &bytes.to_string()]);
                }
                match load.direction {
                    Way::Send => {}
                    Way::Receive => add(&["-R"]),
                    Way::Both => add(&["--bidir"]),
                }
            }
        }
        // In a namespace it is the namespace's, from the first packet on and at both ends.
        if let (Some(sending), NetworkKind::Host) = (&load.sending, load.network) {
            add(&["-C", &sending.congestion_control]);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Sending;

    fn sender(name: &str) -> Sender {
        let kind = match name.strip_prefix("linerate ") {
            Some("user") => Kind::Linerate { program: "/bin/linerate".into(), engine: "user" },
            Some("kernel") => Kind::Linerate { program: "/bin/linerate".into(), engine: "kernel" },
            Some(_) => Kind::Linerate { program: "/bin/linerate".into(), engine: "plain" },
            None => Kind::Iperf3,
        };
        Sender { name: name.to_owned(), version: String::new(), kind }
    }

    #[test]
    fn a_load_becomes_flags() {
        let load = StreamLoad {
            streams: 8,
            io_bytes: 1024,
            socket_buffer_bytes: Some(524_288),
            direction: Way::Both,
            cipher: Some("AES-128-GCM".to_owned()),
            sending: Sending::parse("cubic"),
            ..StreamLoad::default()
        };
        let address = ([127, 0, 0, 1], 5201).into();
        let words = |name: &str, load: &StreamLoad| {
            sender(name).client(load, address, 1.5, "/bin/linerate", "/run/secret").join(" ")
        };
        assert_eq!(
            words("linerate user", &load),
            "/bin/linerate stream 127.0.0.1:5201 --secret /run/secret --engine user -t 1500ms -i 0 --json -P 8 -l 1024 -w \
             524288 --cipher AES-128-GCM --both -C cubic"
        );
        assert_eq!(
            words("iperf3 plaintext", &load),
            "iperf3 -c 127.0.0.1 -p 5201 -t 2 -i 0 -J -P 8 -l 1024 -w 524288 --bidir -C cubic"
        );
        let apart = StreamLoad { network: NetworkKind::VETH, ..load.clone() };
        assert!(!words("iperf3 plaintext", &apart).contains("-C"));
        let lent = StreamLoad { zero_copy: true, ..StreamLoad::default() };
        assert!(words("linerate plaintext", &lent).contains("--zero-copy-send --zero-copy-receive"));
        assert!(!words("linerate user", &lent).contains("--zero-copy-receive"));
        assert!(sender("linerate kernel").refusal(&lent).is_some());
        assert!(sender("iperf3 plaintext").refusal(&lent).is_some());
        assert!(sender("linerate user").refusal(&lent).is_none());
    }
}
