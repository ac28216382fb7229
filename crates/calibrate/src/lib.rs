//! Measures, in seconds, what each engine costs on this machine, as the file that `linerate serve` places connections by.
//!
//! Everything is measured in rounds, all things in each round, so that a disturbance meets all of them; medians count, and
//! their spread is told ([`Figures`]). What a round measures:
//!
//! - [`ciphers`]: sealing records, out of place and in place, at two sizes.
//! - [`calls`]: a system call, and copies into a socket.
//! - [`engines`]: the user engine and kernel TLS over loopback, long transfers and small responses; kernel TLS' set-up.
//! - [`adapter`]: an adapter that encrypts, and the user engine on the same path, if another host or namespace is at the
//!   other end.
//!
//! Times are CPU time of the sending thread, pinned to a core of its own: TCP's work is in it, for every engine alike.
//! Each thing has its time in a round ([`stretch`]): slow machines send less, and take no longer.
//! [`costs`] makes of it the terms of the cost model, [`report`] says what they mean.
//!
//! [`seal_and_copy`] is measured by itself, for `linerate bench`: the part of a floor that every server has in common.

#![forbid(unsafe_code)]

mod adapter;
mod calls;
mod ciphers;
mod content;
mod costs;
mod engines;
mod figures;
mod quiet;
mod report;
mod seal_and_copy;
mod send_path;
mod sink;
mod stretch;

use std::{
    fmt, io,
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use linerate_http::ImfFixdate;
use linerate_os::processor;
use linerate_placement::{CALIBRATION_SCHEMA, Calibration, Machine};
use linerate_record::Cipher;

use adapter::Adapter;
use content::Content;
use send_path::SendPath;

pub use figures::Figures;
pub use report::report;
pub use seal_and_copy::{SealAndCopy, seal_and_copy};
pub use sink::sink;

/// How it is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rounds; the median of an odd number is one that was measured.
    pub rounds: u32,
    /// Where another host or namespace takes connections and throws away what comes ([`sink`]), to be reached through
    /// the adapter.
    pub peer: Option<SocketAddr>,
}

/// Rounds if not said.
pub const ROUNDS: u32 = 9;
/// Rounds in a hurry.
pub const QUICK_ROUNDS: u32 = 3;

/// What was found out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The file.
    pub calibration: Calibration,
    /// All that was measured, round by round.
    pub figures: Figures,
}

/// Why nothing could be measured.
#[derive(Debug)]
pub struct CalibrateError {
    doing: String,
    source: io::Error,
}

impl fmt::Display for CalibrateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "calibrating: {}: {}", self.doing, self.source)
    }
}

impl std::error::Error for CalibrateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// For `map_err`: what was being done.
fn while_doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> CalibrateError {
    |source| CalibrateError { doing: doing.into(), source }
}

/// Measures. `progress` is told of each round before it begins: its number from 1, and how many there are.
///
/// # Errors
/// The system refuses what no machine should: sockets over loopback, memory, a thread. Nobody answers at the peer.
pub fn calibrate(
    options: &Options,
    mut progress: impl FnMut(u32, u32) + Send,
) -> Result<Outcome, CalibrateError> {
    let cpus = processor::allowed().map_err(while_doing("asking which CPUs may be used"))?;
    // The first CPU has the interrupts of most machines: the sender takes the last.
    let (receiving, sending) = (cpus.first().copied().unwrap_or(0), cpus.last().copied().unwrap_or(0));
    let mut notes = Vec::new();
    if receiving == sending {
        notes.push("both ends had one CPU: what taking turns costs is in the figures".to_owned());
    }
    notes.extend(stretch::coarseness());
    let mut bench = Bench {
        loopback: SendPath::over_loopback(receiving).map_err(while_doing("connecting over loopback"))?,
        adapter: adapter_of(options.peer)?,
        figures: Figures::default(),
        lacks: Cipher::ALL.map(|_| None),
    };
    let rounds = options.rounds.max(1);
    let watch = quiet::Watch::begin();
    // A thread of its own: pinning it leaves the caller where it was, and its CPU time is nobody else's.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            processor::pin_current_thread(sending).map_err(while_doing("pinning a thread"))?;
            let content = Content::new().map_err(while_doing("making content in memory"))?;
            (1..=rounds).try_for_each(|round| {
                progress(round, rounds);
                bench.round(&content)
            })
        });
        thread
            .join()
            .unwrap_or_else(|_| Err(while_doing("measuring")(io::Error::other("the thread ended early"))))
    })?;
    notes.extend(bench.lacks_in_words());
    notes.extend(watch.end());
    notes.extend(bench.figures.unsteady());
    Ok(bench.outcome(notes))
}

/// The adapter that leads to the peer, if there is one; or why none is measured, in words.
fn adapter_of(peer: Option<SocketAddr>) -> Result<Result<Adapter, String>, CalibrateError> {
    let Some(peer) = peer else { return Ok(Err(adapter::nobody_there())) };
    let path = SendPath::to(peer).map_err(while_doing(format!(
        "connecting to {peer} (`linerate calibrate --sink {peer}` is to run there)"
    )))?;
    Ok(Adapter::on(path, peer))
}

/// What is measured with, and what was measured.
struct Bench {
    loopback: SendPath,
    /// The adapter, or why none is measured (any more).
    adapter: Result<Adapter, String>,
    figures: Figures,
    /// Why kernel TLS was not measured, in words, in the order of [`Cipher::ALL`].
    lacks: [Option<String>; Cipher::ALL.len()],
}

impl Bench {
    fn round(&mut self, content: &Content) -> Result<(), CalibrateError> {
        let Self { loopback, adapter, figures, lacks } = self;
        ciphers::measure(figures).map_err(while_doing("sealing records"))?;
        calls::measure(loopback, figures).map_err(while_doing("calling the kernel"))?;
        for (cipher, lack) in Cipher::ALL.into_iter().zip(lacks) {
            engines::user(engines::USER, content, loopback, cipher, figures)
                .map_err(while_doing("sending over loopback"))?;
            if lack.is_none() {
                let measured = engines::kernel(content, loopback, cipher, figures);
                *lack = measured.err().map(|refusal| refusal.to_string());
            }
        }
        if let Ok(found) = adapter
            && let Err(why) = found.measure(content, figures)
        {
            *adapter = Err(why);
        }
        Ok(())
    }

    /// Why kernel TLS was not measured: once, if it is the same for all ciphers.
    fn lacks_in_words(&self) -> Vec<String> {
        let of = |index: usize| self.lacks[index].as_deref();
        match of(0) {
            Some(why) if (1..self.lacks.len()).all(|index| of(index) == Some(why)) => {
                vec![format!("kernel TLS was not measured: {why}")]
            }
            _ => Cipher::ALL
                .into_iter()
                .zip(&self.lacks)
                .filter_map(|(cipher, lack)| {
                    let why = lack.as_ref()?;
                    Some(format!("kernel TLS with {} was not measured: {why}", cipher.name()))
                })
                .collect(),
        }
    }

    fn outcome(self, mut notes: Vec<String>) -> Outcome {
        let figures = self.figures;
        let mut batch_bytes = self.loopback.batch_bytes();
        let nic = match &self.adapter {
            Ok(adapter) => {
                notes.extend(adapter.notes());
                batch_bytes = adapter.batch_bytes();
                adapter.found(&figures)
            }
            Err(why) => {
                notes.push(format!("adapters were not measured: {why}"));
                None
            }
        };
        let (kernel, cpu) = linerate_environment::kernel_and_processor();
        let calibration = Calibration {
            schema: CALIBRATION_SCHEMA.to_owned(),
            measured_at: now(),
            measured_by: format!("linerate {}", env!("CARGO_PKG_VERSION")),
            machine: Machine { kernel, cpu },
            measured: figures.medians(),
            notes,
            engines: costs::engines(&figures, batch_bytes),
            nic,
        };
        Outcome { calibration, figures }
    }
}

/// The time as RFC 3339 has it, by way of the form of HTTP, which knows the calendar: `Sat, 21 Nov 2026 15:58:20 GMT`.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn rfc3339(unix_s: i64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let date = ImfFixdate::at(unix_s);
    let text = String::from_utf8_lossy(date.as_bytes());
    let words: Vec<&str> = text.split(' ').collect();
    let [_, day, month, year, time, _] = words[..] else { return text.into_owned() };
    let month = MONTHS.iter().position(|name| *name == month).unwrap_or(0) + 1;
    format!("{year}-{month:02}-{day}T{time}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_files_have_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_795_277_871), "2026-11-21T16:17:51Z");
    }

    /// A whole calibration in a second or two: what comes out is what the placement reads, with figures that physics
    /// allows.
    #[test]
    fn what_is_measured_can_be_read_and_makes_sense() {
        let options = Options { rounds: 1, peer: None };
        let mut rounds = Vec::new();
        let outcome = calibrate(&options, |round, of| rounds.push((round, of))).expect("loopback is there");
        assert_eq!(rounds, [(1, 1)]);
        // Two of the ciphers' notes are one: what all lack is said once.
        let lacks = outcome.calibration.notes.iter().filter(|note| note.starts_with("kernel TLS"));
        assert!(lacks.count() < 3, "{:?}", outcome.calibration.notes);
        let text = outcome.calibration.to_text().expect("sound figures");
        let read = Calibration::parse(&text).expect("its own form");
        assert_eq!(read.machine, outcome.calibration.machine);
        let costs = linerate_placement::Costs::from(&read);
        for cipher in linerate_placement::Cipher::ALL {
            let user = costs.of(linerate_placement::Engine::User, cipher);
            let slope = user.slope_ns_per_byte();
            // Not below 100 GB/s; how slow an emulated machine among busy ones is, nobody knows: 0.5 MB/s was seen.
            assert!((0.01..100_000.0).contains(&slope), "{cipher}: {slope} ns a byte");
            assert!(user.cost_ns(1 << 20) > user.cost_ns(1 << 10));
        }
        assert!(report(&outcome).contains("AES-128-GCM"));
    }

    #[test]
    fn a_peer_that_does_not_answer_is_told_before_anything_is_measured() {
        let closed =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
        let options = Options { rounds: 1, peer: Some(closed) };
        let fault =
            calibrate(&options, |_, _| panic!("it measures")).expect_err("nobody listens there").to_string();
        let begins = format!(
            "calibrating: connecting to {closed} (`linerate calibrate --sink {closed}` is to run there): "
        );
        assert!(fault.starts_with(&begins), "{fault}");
    }
}
