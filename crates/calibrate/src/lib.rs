//! Measures, in seconds, what each engine costs on this machine, as the file that `linerate serve` places connections by.
//!
//! Everything is measured in rounds, all things in each round, so that a disturbance meets all of them; medians count, and
//! their spread is told ([`Figures`]). What a round measures:
//!
//! - [`ciphers`]: sealing records, out of place and in place, at two sizes.
//! - [`calls`]: a system call, and copies into a socket.
//! - [`engines`]: the user engine and kernel TLS over loopback, long transfers and small responses; kernel TLS' set-up.
//! - [`adapter`]: setting connections up in an adapter that encrypts, if another host or namespace takes them.
//!
//! Times are CPU time of the sending thread, pinned to a core of its own: TCP's work is in it, for every engine alike.
//! [`costs`] makes of it the terms of the cost model, [`report`] says what they mean.

#![forbid(unsafe_code)]

mod adapter;
mod calls;
mod ciphers;
mod costs;
mod engines;
mod figures;
mod loopback;
mod quiet;
mod report;
mod sink;

use std::{
    fmt, io,
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use linerate_http::ImfFixdate;
use linerate_os::processor;
use linerate_placement::{CALIBRATION_SCHEMA, Calibration, Machine};

pub use figures::Figures;
pub use report::report;
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
    doing: &'static str,
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
pub(crate) fn while_doing(doing: &'static str) -> impl Fn(io::Error) -> CalibrateError {
    move |source| CalibrateError { doing, source }
}

/// Measures. `progress` is told of each round before it begins: its number from 1, and how many there are.
///
/// # Errors
/// The system refuses what no machine should: sockets over loopback, memory, a thread.
pub fn calibrate(
    options: &Options,
    mut progress: impl FnMut(u32, u32) + Send,
) -> Result<Outcome, CalibrateError> {
    let cpus = processor::allowed().map_err(while_doing("asking which CPUs may be used"))?;
    // The first CPU has the interrupts of most machines: the sender takes the last.
    let (receiving, sending) = (cpus.first().copied().unwrap_or(0), cpus.last().copied().unwrap_or(0));
    let mut notes = Vec::new();
    if receiving == sending {
        notes.push("one CPU for both ends: waiting for each other is in the figures".to_owned());
    }
    let bench = loopback::Bench::new(receiving).map_err(while_doing("making content in memory"))?;
    let rounds = options.rounds.max(1);
    let watch = quiet::Watch::begin();
    // A thread of its own: pinning it leaves the caller where it was, and its CPU time is nobody else's.
    let measured = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            processor::pin_current_thread(sending).map_err(while_doing("pinning a thread"))?;
            let mut figures = Figures::default();
            let mut lacks = Vec::new();
            for round in 1..=rounds {
                progress(round, rounds);
                ciphers::measure(&mut figures).map_err(while_doing("sealing records"))?;
                calls::measure(&bench, &mut figures).map_err(while_doing("calling the kernel"))?;
                engines::measure(&bench, &mut figures, &mut lacks)
                    .map_err(while_doing("sending over loopback"))?;
            }
            let adapter = adapter::measure(options, &bench, &mut figures);
            Ok::<_, CalibrateError>((figures, lacks, adapter))
        });
        thread
            .join()
            .unwrap_or_else(|_| Err(while_doing("measuring")(io::Error::other("the thread ended early"))))
    });
    let (figures, lacks, adapter) = measured?;
    notes.extend(lacks);
    notes.extend(watch.end());
    notes.extend(figures.unsteady());
    let nic = adapter.unwrap_or_else(|why| {
        notes.push(format!("adapters were not measured: {why}"));
        None
    });
    if nic.is_some() {
        notes.push("the size of the adapter's flow table was not measured: it is the default's".to_owned());
    }
    let (kernel, cpu) = linerate_environment::kernel_and_processor();
    let calibration = Calibration {
        schema: CALIBRATION_SCHEMA.to_owned(),
        measured_at: now(),
        measured_by: format!("linerate {}", env!("CARGO_PKG_VERSION")),
        machine: Machine { kernel, cpu },
        measured: figures.medians(),
        notes,
        engines: costs::engines(&figures, bench.batch_bytes()),
        nic,
    };
    Ok(Outcome { calibration, figures })
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
        let text = outcome.calibration.to_text().expect("sound figures");
        let read = Calibration::parse(&text).expect("its own form");
        assert_eq!(read.machine, outcome.calibration.machine);
        let costs = linerate_placement::Costs::from(&read);
        for cipher in linerate_placement::Cipher::ALL {
            let user = costs.of(linerate_placement::Engine::User, cipher);
            let slope = user.slope_ns_per_byte();
            // From 100 GB/s to 20 MB/s.
            assert!((0.01..50.0).contains(&slope), "{cipher}: {slope} ns a byte");
            assert!(user.cost_ns(1 << 20) > user.cost_ns(1 << 10));
        }
        assert!(report(&outcome).contains("AES-128-GCM"));
    }
}
