//! Accepts connections, and reads of each what it takes to recognise it.
//!
//! Nobody is known here yet, so everything has a bound: connections that have said too little, control connections that are
//! still being greeted, and their time. Where a bound is reached the oldest goes: a newcomer is safe until as many others
//! have come.

use super::{House, session};
use crate::{
    control::preamble::{Beginning, MARK, PREAMBLE_BYTES, recognise},
    wait,
};
use linerate_os::{limits, socket};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Connections that have said too little to be recognised.
const UNRECOGNISED_LIMIT: usize = 512;
/// How long a connection may take to say it.
const RECOGNITION_TIME: Duration = Duration::from_secs(5);
/// Control connections whose client has not proved anything yet.
const GREETINGS_LIMIT: usize = 64;
/// The pause where the system has no descriptor left.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(50);

/// A connection that has said too little.
struct Newcomer {
    socket: TcpStream,
    first: [u8; PREAMBLE_BYTES],
    first_bytes: usize,
    since: Instant,
}

/// The listening socket, and connections that are not recognised yet.
pub(super) struct Door {
    socket: TcpListener,
    house: Arc<House>,
    newcomers: VecDeque<Newcomer>,
    greetings: Arc<Greetings>,
}

impl Door {
    pub(super) fn new(socket: TcpListener, house: Arc<House>) -> Self {
        Self { socket, house, newcomers: VecDeque::new(), greetings: Arc::default() }
    }

    /// Serves until the listening socket fails.
    pub(super) fn open(mut self) -> io::Result<Infallible> {
        loop {
            self.wait()?;
            self.accept()?;
            self.look();
        }
    }

    /// Waits for a connection, for bytes, or until somebody's time is over.
    fn wait(&self) -> io::Result<()> {
        let time = self.newcomers.front().map(|oldest| {
            wait::timespec((oldest.since + RECOGNITION_TIME).saturating_duration_since(Instant::now()))
        });
        let mut sockets = vec![PollFd::new(&self.socket, PollFlags::IN)];
        sockets.extend(self.newcomers.iter().map(|newcomer| PollFd::new(&newcomer.socket, PollFlags::IN)));
        match poll(&mut sockets, time.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Accepts all connections that wait.
    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.socket.accept() {
                Ok((socket, _)) => {
                    if socket.set_nonblocking(true).is_err() {
                        continue;
                    }
                    if self.newcomers.len() >= UNRECOGNISED_LIMIT {
                        self.newcomers.pop_front();
                    }
                    let (first, since) = ([0; PREAMBLE_BYTES], Instant::now());
                    self.newcomers.push_back(Newcomer { socket, first, first_bytes: 0, since });
                    if self.newcomers.len().is_multiple_of(64) {
                        // Connections that can be recognised make room before one has to be closed.
                        self.look();
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(()),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ if limits::is_shortage(&error) => {
                        self.newcomers.pop_front();
                        thread::sleep(SHORTAGE_PAUSE);
                        return Ok(());
                    }
                    // Linux hands errors of the network to accept(2): they are of the connection, not of the listener.
                    io::ErrorKind::InvalidInput => return Err(error),
                    _ => {}
                },
            }
        }
    }

    /// Looks what newcomers have said.
    fn look(&mut self) {
        let now = Instant::now();
        for _ in 0..self.newcomers.len() {
            let Some(mut newcomer) = self.newcomers.pop_front() else { return };
            match newcomer.read() {
                Beginning::Unknown if now.saturating_duration_since(newcomer.since) < RECOGNITION_TIME => {
                    self.newcomers.push_back(newcomer);
                }
                Beginning::Unknown | Beginning::Strange => {}
                Beginning::Stream(token) => self.house.registry.arrived(&token, newcomer.socket),
                Beginning::Control => self.greet(newcomer.socket),
            }
        }
    }

    /// Gives a control connection its thread.
    fn greet(&self, socket: TcpStream) {
        let Some(place) = self.greetings.enter(&socket) else { return };
        let house = Arc::clone(&self.house);
        // Where there is no thread to be had, the client finds the connection closed.
        let _ = thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || session::conduct(socket, &house, place));
    }
}

impl Newcomer {
    /// Reads no more than what it takes: what follows is the handshake's, or the stream's.
    fn read(&mut self) -> Beginning {
        if self.first_bytes == 0 {
            let mut first = [0];
            match self.socket.peek(&mut first) {
                Ok(0) => return Beginning::Strange,
                Ok(_) if first != MARK[..1] => return recognise(&first),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Beginning::Unknown,
                Err(_) => return Beginning::Strange,
            }
        }
        match socket::receive(&self.socket, &mut self.first[self.first_bytes..]) {
            Ok(0) => Beginning::Strange,
            Ok(bytes) => {
                self.first_bytes += bytes;
                recognise(&self.first[..self.first_bytes])
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Beginning::Unknown,
            Err(_) => Beginning::Strange,
        }
    }
}

/// Control connections that are being greeted.
#[derive(Debug, Default)]
pub(super) struct Greetings(Mutex<Greeted>);

#[derive(Debug, Default)]
struct Greeted {
    /// With a handle of each, to end it by.
    under_way: VecDeque<(u64, TcpStream)>,
    last: u64,
}

/// The place of one of them.
pub(super) struct Greeting {
    greetings: Arc<Greetings>,
    number: u64,
}

impl Greetings {
    /// A place for another. The oldest goes where there is none.
    fn enter(self: &Arc<Self>, socket: &TcpStream) -> Option<Greeting> {
        let handle = socket.try_clone().ok()?;
        let mut greeted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if greeted.under_way.len() >= GREETINGS_LIMIT
            && let Some((_, oldest)) = greeted.under_way.pop_front()
        {
            // One that is gone already needs no ending.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        greeted.last += 1;
        let number = greeted.last;
        greeted.under_way.push_back((number, handle));
        Some(Greeting { greetings: Arc::clone(self), number })
    }
}

impl Drop for Greeting {
    fn drop(&mut self) {
        let mut greeted = self.greetings.0.lock().unwrap_or_else(PoisonError::into_inner);
        greeted.under_way.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_os::socket::connected_pair;

    #[test]
    fn the_oldest_of_too_many_greetings_goes() {
        let greetings = Arc::new(Greetings::default());
        let pairs: Vec<_> = (0..=GREETINGS_LIMIT).map(|_| connected_pair(None).unwrap()).collect();
        let places: Vec<_> = pairs.iter().map(|(ours, _)| greetings.enter(ours).unwrap()).collect();
        let is_ended = |theirs: &TcpStream| matches!(socket::receive(theirs, &mut [0]), Ok(0));
        assert!(is_ended(&pairs[0].1) && !is_ended(&pairs[1].1));
        drop(places);
        assert!(greetings.0.lock().unwrap().under_way.is_empty());
        let _place = greetings.enter(&pairs[1].0);
        assert!(!is_ended(&pairs[1].1));
    }
}
