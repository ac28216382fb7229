//! An experiment of streams as its file has it, and every variable that it can fix or sweep.

use linerate_faults::nearest;
use serde::Deserialize;

use crate::definition::{
    ExperimentFile,
    written::{File, OF_STREAMS},
};
use crate::error::{Error, Result};
use crate::network::{NetworkKind, Sending};
use crate::quantity;
use crate::result::Variable;
use crate::run::networks::NetworkSetting;

/// The programs that make streams, by the names that results have.
pub(crate) const SENDERS: &[&str] =
    &["iperf3 plaintext", "linerate plaintext", "linerate user", "linerate kernel", "linerate nic"];

/// The most points of an experiment.
const MOST_POINTS: usize = 2000;

/// An experiment.
pub type StreamDefinition = ExperimentFile<StreamTime>;

/// How long, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamTime {
    /// The time of each round, in seconds.
    pub measured_s: f64,
    /// Rounds of each point.
    pub rounds: u32,
}

/// What one run of streams is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamLoad {
    pub(crate) streams: u32,
    pub(crate) io_bytes: u64,
    pub(crate) socket_buffer_bytes: Option<u64>,
    pub(crate) direction: Way,
    pub(crate) network: NetworkKind,
    pub(crate) zero_copy: bool,
    pub(crate) cipher: Option<String>,
    /// How both ends send; as the machine does where there is none.
    pub(crate) sending: Option<Sending>,
}

/// Which way the bytes go, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Send,
    Receive,
    Both,
}

impl Default for StreamLoad {
    fn default() -> Self {
        Self {
            streams: 1,
            io_bytes: 131_072,
            socket_buffer_bytes: None,
            direction: Way::Send,
            network: NetworkKind::Host,
            zero_copy: false,
            cipher: None,
            sending: None,
        }
    }
}

/// Every variable, with what it may be.
pub const VARIABLES: &[(&str, &str)] = &[
    ("streams", "streams each way [1]"),
    ("io_bytes", "bytes that are handed to the system at once [131_072]"),
    ("socket_buffer_bytes", "both socket buffers of both ends [the kernel's]"),
    ("direction", "\"send\", \"receive\" or \"both\", as the client sees it [\"send\"]"),
    (
        "network",
        "\"host\", \"loopback\" in a namespace, or \"veth-MTU\" between two, like \"veth-9000\" [\"host\"]",
    ),
    ("zero_copy", "\"off\" or \"on\": memory is lent, in the clear pages are mapped, too [\"off\"]"),
    ("cipher", "\"AES-128-GCM\", \"AES-256-GCM\" or \"ChaCha20-Poly1305\" [what is best on the machine]"),
    (
        "congestion_control",
        "of both ends, and the queue discipline after a plus: \"cubic\", \"bbr+fq\" [the machine's]",
    ),
];

impl StreamLoad {
    /// What it asks of its network.
    pub(super) fn setting(&self) -> NetworkSetting {
        // Streams choose the congestion control by themselves where no namespace does it for them.
        let is_the_networks =
            |sending: &Sending| self.network != NetworkKind::Host || sending.queue_discipline.is_some();
        let sending = self.sending.clone().filter(is_the_networks);
        NetworkSetting { kind: self.network, sending, ..NetworkSetting::default() }
    }

    /// Gives a variable a value.
    ///
    /// # Errors
    /// What the variable may be.
    pub(crate) fn set(&mut self, name: &str, value: &Variable) -> std::result::Result<(), String> {
        let whole = |least: f64, most: f64| match value {
            Variable::Number(number) if number.fract() == 0.0 && (least..=most).contains(number) => {
                Ok(*number)
            }
            _ => Err(format!("{name}: {value}: a whole number from {least} to {most} is needed")),
        };
        let word = |words: &[&str]| match value {
            Variable::Word(word) if words.contains(&word.as_str()) => Ok(word.clone()),
            _ => Err(format!("{name}: {value}: one of {} is needed", words.join(", "))),
        };
        match name {
            "streams" => self.streams = whole(1.0, 10_000.0)? as u32,
            "io_bytes" => self.io_bytes = whole(1.0, f64::from(64 << 20))? as u64,
            "socket_buffer_bytes" => {
                self.socket_buffer_bytes = Some(whole(1.0, f64::from(1 << 30))? as u64);
            }
            "direction" => {
                self.direction = match word(&["send", "receive", "both"])?.as_str() {
                    "send" => Way::Send,
                    "receive" => Way::Receive,
                    _ => Way::Both,
                };
            }
            "network" => {
                self.network = NetworkKind::parse(&value.to_string()).ok_or_else(|| {
                    format!("network: {value}: host, loopback or veth-MTU (68 to 65535) is needed")
                })?
            }
            "zero_copy" => self.zero_copy = word(&["off", "on"])? == "on",
            "cipher" => {
                self.cipher = Some(word(&["AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305"])?);
            }
            "congestion_control" => {
                let sending = Sending::parse(&value.to_string()).ok_or_else(|| {
                    format!("congestion_control: {value}: a name like cubic is needed, or bbr+fq with a queue discipline")
                })?;
                self.sending = Some(sending);
            }
            _ => {
                let names = || VARIABLES.iter().map(|(name, _)| *name);
                let hint = nearest(name, names()).map(|near| format!("; did you mean {near}?"));
                return Err(format!("streams have no variable {name}{}", hint.unwrap_or_default()));
            }
        }
        Ok(())
    }
}

/// Whether a file is an experiment of streams.
pub(crate) fn is_of_streams(text: &str) -> bool {
    text.lines().any(|line| line.split('#').next().unwrap_or("").replace(' ', "") == "kind=\"streams\"")
}

impl StreamDefinition {
    /// Reads the text of the file `file`, for a quick run if `quick`.
    ///
    /// # Errors
    /// What is wrong, with its place where it is known.
    pub fn parse(file: &str, text: &str, quick: bool) -> Result<Self> {
        let wrong = |reason: String| Error::Definition(format!("{file}: {reason}"));
        let definition = Self::of(File::read(file, text, quick)?, text).map_err(wrong)?;
        definition.check().map_err(wrong)?;
        Ok(definition)
    }

    fn of(written: File<StreamTime>, text: &str) -> std::result::Result<Self, String> {
        if written.kind.as_deref() != Some(OF_STREAMS) {
            let kind = written.kind.unwrap_or_default();
            return Err(format!("kind: \"{kind}\": an experiment of streams has \"{OF_STREAMS}\""));
        }
        if let Some(own) = written.own_servers.first() {
            return Err(format!("[[server]] \"{}\": streams have no servers of one's own", own.name));
        }
        written.into_definition(text)
    }

    /// Looks for what cannot be.
    ///
    /// # Errors
    /// The first such thing, in words.
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if self.name.is_empty() || !self.name.bytes().all(is_plain) {
            return Err(format!("name: \"{}\": letters, digits and dashes are needed", self.name));
        }
        let quantities = self.quantities.iter().chain(self.published.iter().map(|series| &series.quantity));
        for key in quantities.chain(self.targets.iter().filter_map(|target| target.quantity.as_ref())) {
            if quantity::named(key).is_none() {
                return Err(format!("there is no quantity \"{key}\""));
            }
        }
        for server in &self.servers {
            if !SENDERS.contains(&server.as_str()) {
                return Err(format!("there is no \"{server}\" (there are: {})", SENDERS.join(", ")));
            }
        }
        if self.servers.is_empty() || self.quantities.is_empty() {
            return Err("servers and quantities: at least one of each is needed".to_owned());
        }
        if !self.sweep.contains_key(&self.axis) {
            return Err(format!("axis: {} is not swept", self.axis));
        }
        if !(0.1..=3600.0).contains(&self.time.measured_s) || !(1..=100).contains(&self.time.rounds) {
            return Err("time: 0.1 to 3600 s, and 1 to 100 rounds, are possible".to_owned());
        }
        let points: usize = self.sweep.values().map(Vec::len).product();
        if points == 0 || points * self.servers.len() > MOST_POINTS {
            return Err(format!("sweep: 1 to {MOST_POINTS} points are possible"));
        }
        let swept =
            self.sweep.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        swept.chain(&self.fixed).try_for_each(|(name, value)| StreamLoad::default().set(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::EXPERIMENTS;

    #[test]
    fn the_built_in_ones_are_sound_also_when_quick() {
        for (name, text) in EXPERIMENTS {
            assert!(is_of_streams(text));
            for quick in [false, true] {
                let definition = StreamDefinition::parse(name, text, quick).unwrap();
                assert_eq!(definition.name, *name);
                assert!(definition.targets.iter().all(|target| definition.servers.contains(&target.server)));
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let text = EXPERIMENTS[0].1;
        for (from, to, said) in [
            ("streams = 8", "streams = 0", "from 1 to 10000"),
            ("streams = 8", "streems = 8", "did you mean streams"),
            ("\"veth-9000\"", "\"veth-67\"", "veth-MTU"),
            ("\"both\"]", "\"up\"]", "send, receive, both"),
            ("\"linerate nic\"]", "\"magic\"]", "there is no \"magic\""),
            ("axis = \"io_bytes\"", "axis = \"streams\"", "is not swept"),
            ("rounds = 5", "rounds = 0", "rounds"),
            ("\"cubic\"", "\"cubic+\"", "a name like cubic"),
            ("\"both_ends_s_per_gb\"]", "\"speed\"]", "no quantity \"speed\""),
            ("kind = \"streams\"", "kind = \"files\"", "kind"),
            ("[2048, 37, 40]", "[2048]", "[at, value]"),
        ] {
            assert!(text.contains(from), "{from}");
            let told =
                StreamDefinition::parse("f", &text.replacen(from, to, 1), false).unwrap_err().to_string();
            assert!(told.contains(said), "{told}");
        }
        assert!(!is_of_streams(crate::definition::catalogue::EXPERIMENTS[0].1));
    }
}
