//! Load clients that run: started together, watched, their reports read, and the moments between which costs count.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_load::report::{LINE_MEASURED, LINE_MEASURING, LoadReport};
use rustix::process::{Pid, Signal};

use super::{ClientCommand, Printed, fio};
use crate::cores::spawn_on;
use crate::servers::process::RunningServer;

const PAUSE: Duration = Duration::from_millis(20);

/// The most of a client's output that is kept, in bytes.
const MOST_OUTPUT_BYTES: u64 = 64 << 20;

/// Lines kept of what a client complains.
const COMPLAINT_LINES: usize = 8;

/// Why a load has no result.
#[derive(Debug)]
pub(crate) enum LoadFailure {
    /// We were told to stop.
    Interrupted,
    /// What happened.
    Failed(String),
}

/// What runs beside the load, and may end it.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    /// The server; when it ends, so does the load.
    pub(crate) server: &'a mut RunningServer,
    /// Set when we are to stop.
    pub(crate) interrupted: &'a AtomicBool,
    /// The longest that the load may take.
    pub(crate) limit: Duration,
}

/// Reads costs at the two moments between which they count.
pub(crate) trait Meter {
    /// All clients, whose process ids on this machine these are, have begun to measure.
    fn begin(&mut self, client_pids: &[u32]);
    /// The first of them has ended.
    fn end(&mut self);
}

/// For a load that is not measured.
#[derive(Debug)]
pub(crate) struct NoMeter;

impl Meter for NoMeter {
    fn begin(&mut self, _client_pids: &[u32]) {}
    fn end(&mut self) {}
}

/// Runs all of `commands` at once, on `cores` (anywhere if none), and returns their reports.
///
/// # Errors
/// Why there are none. All clients have ended then as well.
pub(crate) fn run(
    commands: &[ClientCommand],
    cores: &[usize],
    mut beside: Beside<'_>,
    meter: &mut dyn Meter,
) -> Result<Vec<LoadReport>, LoadFailure> {
    let (sender, events) = channel();
    let mut clients = Vec::with_capacity(commands.len());
    for (index, command) in commands.iter().enumerate() {
        clients.push(RunningClient::start(index, command, cores, &sender)?);
    }
    drop(sender);
    follow(&mut clients, &events, &mut beside, meter)?;
    clients.into_iter().map(RunningClient::report).collect()
}

enum Event {
    Measuring(usize),
    Measured,
    Ended,
}

/// Until all clients have ended.
fn follow(
    clients: &mut [RunningClient<'_>],
    events: &Receiver<Event>,
    beside: &mut Beside<'_>,
    meter: &mut dyn Meter,
) -> Result<(), LoadFailure> {
    let started = Instant::now();
    let pids: Vec<u32> = clients.iter().map(|client| client.child.id()).collect();
    let mut measuring = vec![false; clients.len()];
    let (mut ended, mut begun, mut over) = (0, false, false);
    while ended < clients.len() {
        match events.recv_timeout(PAUSE) {
            Ok(Event::Measuring(client)) => {
                measuring[client] = true;
                if !begun && measuring.iter().all(|measuring| *measuring) {
                    begun = true;
                    meter.begin(&pids);
                }
            }
            Ok(Event::Measured) if begun && !over => {
                over = true;
                meter.end();
            }
            Ok(Event::Ended) => ended += 1,
            Ok(Event::Measured) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if beside.interrupted.load(Ordering::Relaxed) {
            return Err(LoadFailure::Interrupted);
        }
        if let Some(death) = beside.server.death() {
            return Err(LoadFailure::Failed(death));
        }
        if started.elapsed() > beside.limit {
            let limit_s = beside.limit.as_secs();
            return Err(LoadFailure::Failed(format!("the load client has not ended after {limit_s} s")));
        }
    }
    Ok(())
}

/// One client. Dropped, it is ended.
struct RunningClient<'a> {
    command: &'a ClientCommand,
    child: Child,
    output: Option<JoinHandle<Vec<u8>>>,
    complaints: Option<JoinHandle<Vec<String>>>,
}

impl<'a> RunningClient<'a> {
    fn start(
        index: usize,
        command: &'a ClientCommand,
        cores: &[usize],
        events: &Sender<Event>,
    ) -> Result<Self, LoadFailure> {
        let failed = |error: std::io::Error| {
            LoadFailure::Failed(format!(
                "cannot start {} ({}): {error}",
                command.name,
                command.words.join(" ")
            ))
        };
        let (program, arguments) = command
            .words
            .split_first()
            .ok_or_else(|| LoadFailure::Failed("there is no command".to_owned()))?;
        let input = match &command.input {
            Some(path) => Stdio::from(File::open(path).map_err(failed)?),
            None => Stdio::null(),
        };
        let mut process = Command::new(program);
        process.args(arguments).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        // An interrupt typed at the terminal is for this process, which then ends the child.
        process.process_group(0);
        let mut child = spawn_on(cores, &mut process).map_err(failed)?;
        let output = child.stdout.take().map(|output| std::thread::spawn(move || read_all(output)));
        let errors = child.stderr.take();
        let events = events.clone();
        let complaints = errors.map(|errors| std::thread::spawn(move || read_lines(errors, index, &events)));
        Ok(Self { command, child, output, complaints })
    }

    /// Waits for its end and reads what it found.
    fn report(mut self) -> Result<LoadReport, LoadFailure> {
        let name = &self.command.name;
        let status = self.child.wait().map_err(|error| LoadFailure::Failed(format!("{name}: {error}")))?;
        let output = self.output.take().and_then(|reading| reading.join().ok()).unwrap_or_default();
        let complaints = self.complaints.take().and_then(|reading| reading.join().ok()).unwrap_or_default();
        let report = match self.command.printed {
            Printed::Report => serde_json::from_slice(&output).map_err(|error| error.to_string()),
            Printed::Fio => fio::report(&output, &self.command.words),
        };
        report.map_err(|error| {
            let said = complaints.join("; ");
            let said = if said.is_empty() { format!("nothing ({error})") } else { said };
            LoadFailure::Failed(format!("{name} ended with {status} and said: {said}"))
        })
    }
}

impl Drop for RunningClient<'_> {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

fn read_all(output: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What cannot be read is no report, and said to be none.
    let _ = output.take(MOST_OUTPUT_BYTES).read_to_end(&mut bytes);
    bytes
}

/// Reads a client's standard error to its end, passes the moments on, and keeps the last of the rest.
fn read_lines(errors: impl Read, client: usize, events: &Sender<Event>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut lines = BufReader::new(errors.take(MOST_OUTPUT_BYTES));
    let mut line = Vec::new();
    loop {
        line.clear();
        if !matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        // Nobody may be listening any more: then nothing is lost.
        match text {
            LINE_MEASURING => drop(events.send(Event::Measuring(client))),
            LINE_MEASURED => drop(events.send(Event::Measured)),
            "" => {}
            _ => complaints.push(text.to_owned()),
        }
        if complaints.len() > COMPLAINT_LINES {
            complaints.remove(0);
        }
    }
    let _ = events.send(Event::Ended);
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Launch;
    use std::net::TcpListener;

    /// Notes the moments in files that the clients' scripts wait for.
    #[derive(Debug)]
    struct Moments(std::path::PathBuf);

    impl Meter for Moments {
        fn begin(&mut self, client_pids: &[u32]) {
            assert_eq!(client_pids.len(), 2);
            assert!(self.0.join("late").exists(), "not all of them measured");
            File::create_new(self.0.join("begun")).unwrap();
        }
        fn end(&mut self) {
            assert!(!self.0.join("early").exists(), "the first end was not the end");
            File::create_new(self.0.join("ended")).unwrap();
        }
    }

    fn client(script: &str) -> ClientCommand {
        ClientCommand {
            words: ["sh", "-c", script].map(str::to_owned).to_vec(),
            input: None,
            name: "the load client".to_owned(),
            printed: Printed::Report,
        }
    }

    /// Something that stays, at an address that listens.
    fn with_server<T>(script: &str, limit: Duration, test: impl FnOnce(Beside<'_>) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let launch = Launch {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            configuration: None,
            kernel_threads: None,
        };
        let mut server =
            RunningServer::start(&launch, listener.local_addr().unwrap(), &[], folder.path()).unwrap();
        let interrupted = AtomicBool::new(false);
        test(Beside { server: &mut server, interrupted: &interrupted, limit })
    }

    #[test]
    fn costs_count_from_the_last_beginning_to_the_first_end() {
        let json = serde_json::to_string(&crate::sample::load_report()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let script = |before: &str, until: &str, after: &str| {
            client(&format!(
                "cd {}; echo 0 % >&2; {before}; echo measuring >&2; until [ -e {until} ]; do sleep 0.01; done; \
                 {after}; echo measured >&2; echo '{json}'",
                folder.path().display()
            ))
        };
        let first = script("true", "begun", "true");
        let second = script("sleep 0.2; touch late", "ended", "touch early");
        let mut moments = Moments(folder.path().to_path_buf());
        let reports = with_server("sleep 60", Duration::from_secs(20), |beside| {
            run(&[first, second], &[], beside, &mut moments)
        });
        assert_eq!(reports.unwrap().len(), 2);
        assert!(folder.path().join("ended").exists());
    }

    #[test]
    fn what_a_client_complains_is_passed_on() {
        let failure = with_server("sleep 60", Duration::from_secs(20), |beside| {
            run(&[client("echo certificate not trusted >&2; exit 1")], &[], beside, &mut NoMeter)
        });
        let LoadFailure::Failed(reason) = failure.unwrap_err() else { panic!("interrupted") };
        assert_eq!(reason, "the load client ended with exit status: 1 and said: certificate not trusted");
    }

    #[test]
    fn a_server_that_dies_ends_the_load() {
        let started = Instant::now();
        let failure = with_server("sleep 0.5; exit 9", Duration::from_secs(60), |beside| {
            run(&[client("sleep 30")], &[], beside, &mut NoMeter)
        });
        let LoadFailure::Failed(reason) = failure.unwrap_err() else { panic!("interrupted") };
        assert_eq!(reason, "the server ended with exit status: 9");
        assert!(started.elapsed() < Duration::from_secs(15), "the client was waited for");
    }

    #[test]
    fn a_client_that_does_not_end_is_ended() {
        let failure = with_server("sleep 60", Duration::from_millis(300), |beside| {
            run(&[client("sleep 30 & wait")], &[], beside, &mut NoMeter)
        });
        assert!(matches!(failure, Err(LoadFailure::Failed(reason)) if reason.contains("has not ended")));
    }
}
