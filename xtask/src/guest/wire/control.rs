//! The control connection: the guest sends one [`Step`] a line, the host answers each when it is carried out.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::guest::client::steps::Step;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Answer {
    Done,
    /// The last answer.
    Failed(String),
}

/// The guest's end.
#[derive(Debug)]
pub(in crate::guest) struct ControlConnection {
    lines: BufReader<TcpStream>,
}

impl ControlConnection {
    /// Connects to the host.
    pub(in crate::guest) fn open(host: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(host).with_context(|| format!("cannot reach the host at {host}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { lines: BufReader::new(stream) })
    }

    /// Has the host carry out a step; returns when that is done.
    pub(in crate::guest) fn carry_out(&mut self, step: &Step) -> Result<()> {
        say(self.lines.get_mut(), step)?;
        let mut line = String::new();
        self.lines.read_line(&mut line).context("the host does not answer")?;
        match serde_json::from_str(&line).with_context(|| format!("the host said {line:?}"))? {
            Answer::Done => Ok(()),
            Answer::Failed(reason) => bail!("on the host: {reason}"),
        }
    }
}

/// The host's end: accepts one guest, and carries out its steps until it closes or one fails.
pub(in crate::guest) fn serve(
    listener: &TcpListener,
    mut carry_out: impl FnMut(&Step) -> Result<()>,
) -> Result<()> {
    let (mut stream, _) = listener.accept().context("no guest came")?;
    stream.set_nodelay(true)?;
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line.context("the guest has gone")?;
        let step = serde_json::from_str(&line).with_context(|| format!("the guest said {line:?}"));
        let done = step.and_then(|step| carry_out(&step));
        let answer =
            done.as_ref().map_or_else(|error| Answer::Failed(format!("{error:#}")), |()| Answer::Done);
        say(&mut stream, &answer)?;
        done?;
    }
    Ok(())
}

/// A line in one segment.
fn say(stream: &mut TcpStream, value: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(value)? + "\n";
    stream.write_all(line.as_bytes()).context("the other end has gone")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::guest::client::steps::Served;

    #[test]
    fn every_step_is_answered_until_one_fails() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let host = thread::spawn(move || {
            let mut steps = Vec::new();
            let served = serve(&listener, |step| {
                steps.push(step.clone());
                if *step == Step::Fetch { bail!("half of\nit came") } else { Ok(()) }
            });
            (steps, served.unwrap_err().to_string())
        });
        let served = Served {
            address,
            certificate: Some("/a folder/chain.pem".into()),
            file: "/a folder/file.bin".into(),
        };
        let steps = [Step::Verify(served), Step::Connect, Step::Nothing, Step::Fetch];
        let mut guest = ControlConnection::open(address).unwrap();
        for step in &steps[..3] {
            guest.carry_out(step).unwrap();
        }
        let error = guest.carry_out(&Step::Fetch).unwrap_err().to_string();
        assert_eq!(error, "on the host: half of\nit came");
        assert!(guest.carry_out(&Step::Nothing).is_err(), "the host has ended");
        assert_eq!(host.join().unwrap(), (steps.to_vec(), "half of\nit came".to_owned()));
    }

    #[test]
    fn a_line_that_is_no_step_ends_the_conversation() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut guest = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        guest.write_all(b"\"Explode\"\n").unwrap();
        let error = serve(&listener, |_| Ok(())).unwrap_err().to_string();
        assert_eq!(error, "the guest said \"\\\"Explode\\\"\"");
    }
}
