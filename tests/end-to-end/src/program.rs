//! Clients that are programs of their own, run with a time limit.

use crate::PATIENCE_SECONDS;
use std::{
    ffi::OsStr,
    io::{Read, Write},
    process::{Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A program to run.
#[derive(Debug)]
pub struct Program {
    command: Command,
    name: String,
    input: Vec<(Duration, Vec<u8>)>,
    holds_input_open: bool,
    limit: Duration,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error, as text.
    pub stderr: String,
    description: String,
}

impl Program {
    /// `name` with these arguments.
    pub fn new<Argument: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = Argument>) -> Self {
        let mut command = Command::new(name);
        command.args(arguments);
        let limit = Duration::from_secs(2 * PATIENCE_SECONDS);
        Self { command, name: name.to_owned(), input: Vec::new(), holds_input_open: false, limit }
    }

    /// Types this, `after` a while. What was typed before comes first.
    #[must_use]
    pub fn types(mut self, after: Duration, text: &[u8]) -> Self {
        self.input.push((after, text.to_vec()));
        self
    }

    /// Keeps its standard input open until it ends, instead of closing it after the last that was typed.
    #[must_use]
    pub fn holds_input_open(mut self) -> Self {
        self.holds_input_open = true;
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<Argument: AsRef<OsStr>>(
        mut self,
        arguments: impl IntoIterator<Item = Argument>,
    ) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Ends it by force after so long. 40 seconds if not said.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end. After the last input was typed its standard input is closed, unless it is held open.
    ///
    /// # Panics
    /// Where it cannot be started, or takes too long.
    #[track_caller]
    pub fn run(mut self) -> Finished {
        let description = format!("{:?}", self.command);
        let spawned =
            self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{} cannot be started: {error}", self.name));
        let mut stdin = child.stdin.take().expect("standard input is piped");
        let mut output = child.stdout.take().expect("standard output is piped");
        let mut errors = child.stderr.take().expect("standard error is piped");
        let (input, holds_input_open) = (std::mem::take(&mut self.input), self.holds_input_open);
        let typing = thread::spawn(move || {
            for (after, text) in input {
                thread::sleep(after);
                // A program that has ended reads no more; the test sees that in what it printed.
                let _ = stdin.write_all(&text).and_then(|()| stdin.flush());
            }
            holds_input_open.then_some(stdin)
        });
        let reading = thread::spawn(move || {
            let mut bytes = Vec::new();
            output.read_to_end(&mut bytes).map(|_| bytes)
        });
        let listening = thread::spawn(move || {
            let mut bytes = Vec::new();
            errors.read_to_end(&mut bytes).map(|_| bytes)
        });
        let give_up = Instant::now() + self.limit;
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child can be waited for") {
                break Some(status);
            }
            if Instant::now() >= give_up {
                child.kill().expect("a child can be ended");
                child.wait().expect("a child can be waited for");
                break None;
            }
            thread::sleep(Duration::from_millis(2));
        };
        drop(typing.join().expect("typing does not panic"));
        let stdout = reading.join().expect("reading does not panic").expect("standard output can be read");
        let stderr = listening.join().expect("reading does not panic").expect("standard error can be read");
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let status =
            status.unwrap_or_else(|| panic!("{description} took more than {:?}\n{stderr}", self.limit));
        Finished { status, stdout, stderr, description }
    }
}

impl Finished {
    /// Standard output of a program that must succeed.
    ///
    /// # Panics
    /// If it failed.
    #[track_caller]
    #[must_use]
    pub fn success(self) -> Vec<u8> {
        assert!(self.status.success(), "{}: {}\n{}", self.description, self.status, self.stderr);
        self.stdout
    }

    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// curl, silent but for errors.
pub fn curl<Argument: AsRef<OsStr>>(arguments: impl IntoIterator<Item = Argument>) -> Program {
    let mut program = Program::new("curl", ["--silent", "--show-error", "--noproxy", "*"]);
    program.command.args(arguments);
    program
}

/// openssl with these arguments.
pub fn openssl<Argument: AsRef<OsStr>>(arguments: impl IntoIterator<Item = Argument>) -> Program {
    Program::new("openssl", arguments)
}

/// Whether a program is there to be run.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}
