//! A client that reads responses as slowly as it is told and says exactly how they ended.

use std::{
    fmt, io,
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use linerate_end_to_end::ClientSetup;
use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, Socket, Type};

/// How long anything may take that a well-behaved client waits for.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A client, and the server that it asks.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// The server.
    pub address: SocketAddr,
    /// TLS; in the clear without it.
    pub tls: Option<ClientSetup>,
    /// Where it comes from; wherever the kernel says without it.
    pub source: Option<IpAddr>,
    /// The most that the kernel keeps unread, roughly.
    pub receive_buffer_bytes: Option<usize>,
    /// How long it waits for anything.
    pub patience: Duration,
    /// What stands before the names of files.
    pub prefix: String,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// All bytes that its head announced have come.
    Whole,
    /// The connection ended before.
    Cut,
    /// A reset came before.
    Reset,
    /// Nothing came for too long.
    Silent,
    /// There was no connection: refused.
    Refused,
    /// There was a connection, and the handshake failed.
    NoHandshake,
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Whole => "whole",
            Self::Cut => "cut",
            Self::Reset => "reset",
            Self::Silent => "silent",
            Self::Refused => "refused",
            Self::NoHandshake => "no handshake",
        })
    }
}

/// A response, as far as it came.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// How it ended.
    pub ending: Ending,
    /// Its status; 0 where no head came.
    pub status: u16,
    /// The body as far as it came.
    pub body: Vec<u8>,
    /// From the call to the end.
    pub took: Duration,
}

impl Fetched {
    /// Whether it is a whole 200 with these bytes.
    #[must_use]
    pub fn is(&self, bytes: &[u8]) -> bool {
        self.ending == Ending::Whole && self.status == 200 && self.body == bytes
    }

    /// Whether all that came of it is right. An answer that is an error has no wrong bytes.
    #[must_use]
    pub fn is_right_as_far_as_it_came(&self, bytes: &[u8]) -> bool {
        self.status != 200 || bytes.starts_with(&self.body)
    }

    fn failed(ending: Ending, since: Instant) -> Self {
        Self { ending, status: 0, body: Vec::new(), took: since.elapsed() }
    }
}

/// What failed, as an ending.
pub(crate) fn ending_of(error: &io::Error) -> Ending {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ending::Silent,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Ending::Reset,
        io::ErrorKind::ConnectionRefused | io::ErrorKind::AddrNotAvailable => Ending::Refused,
        _ => Ending::Cut,
    }
}

/// A byte stream with or without TLS.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection that can be asked for one file after the other.
pub struct Visit {
    stream: Box<dyn Stream>,
    /// What came behind what was asked for.
    unread: Vec<u8>,
    prefix: String,
    host: String,
}

/// A response under way.
pub struct Transfer<'a> {
    visit: &'a mut Visit,
    /// Its status.
    pub status: u16,
    length_bytes: usize,
    body: Vec<u8>,
    began: Instant,
}

impl Visitor {
    /// One for this server with nothing special about it.
    #[must_use]
    pub fn new(address: SocketAddr, tls: Option<ClientSetup>, prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        Self { address, tls, source: None, receive_buffer_bytes: None, patience: PATIENCE, prefix }
    }

    /// A TCP connection.
    ///
    /// # Errors
    /// There is none.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(self.address), Type::STREAM, None)?;
        if let Some(bytes) = self.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(source) = self.source {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        socket.connect_timeout(&self.address.into(), self.patience)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        Ok(stream)
    }

    /// A connection with its handshake done.
    ///
    /// # Errors
    /// How it failed.
    pub fn visit(&self) -> Result<Visit, Ending> {
        let stream = self.connect().map_err(|error| ending_of(&error))?;
        self.visit_over(stream)
    }

    /// The same over a stream that is connected already.
    ///
    /// # Errors
    /// How the handshake failed.
    pub fn visit_over<T: Read + Write + Send + 'static>(&self, mut stream: T) -> Result<Visit, Ending> {
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(stream),
            Some(setup) => {
                let mut connection: ClientConnection = setup.connection();
                while connection.is_handshaking() {
                    if let Err(error) = connection.complete_io(&mut stream) {
                        return Err(match ending_of(&error) {
                            Ending::Cut => Ending::NoHandshake,
                            other => other,
                        });
                    }
                }
                Box::new(StreamOwned::new(connection, stream))
            }
        };
        let host = self.address.to_string();
        Ok(Visit { stream, unread: Vec::new(), prefix: self.prefix.clone(), host })
    }

    /// Asks for a file on a connection of its own.
    #[must_use]
    pub fn fetch(&self, name: &str) -> Fetched {
        let began = Instant::now();
        match self.visit() {
            Ok(mut visit) => Fetched { took: began.elapsed(), ..visit.fetch(name) },
            Err(ending) => Fetched::failed(ending, began),
        }
    }
}

impl Visit {
    /// Asks for a file and reads the whole response.
    pub fn fetch(&mut self, name: &str) -> Fetched {
        let began = Instant::now();
        match self.begin(name) {
            Ok(transfer) => transfer.finish(),
            Err(ending) => Fetched::failed(ending, began),
        }
    }

    /// Asks for a file without waiting for anything.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn ask(&mut self, name: &str) -> io::Result<()> {
        let request = format!("GET /{}{name} HTTP/1.1\r\nHost: {}\r\n\r\n", self.prefix, self.host);
        self.stream.write_all(request.as_bytes())?;
        self.stream.flush()
    }

    /// Asks for a file and reads the head of the response.
    ///
    /// # Errors
    /// How that failed.
    pub fn begin(&mut self, name: &str) -> Result<Transfer<'_>, Ending> {
        // A server that refuses may have answered and closed before it was asked: its answer is still read.
        let asked = self.ask(name);
        self.head().map_err(|ending| asked.err().map_or(ending, |error| ending_of(&error)))
    }

    /// Reads the head of the response to what was asked before.
    ///
    /// # Errors
    /// How that failed.
    pub fn head(&mut self) -> Result<Transfer<'_>, Ending> {
        let began = Instant::now();
        let head_bytes = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more()?;
        };
        let body = self.unread.split_off(head_bytes);
        let head = String::from_utf8_lossy(&std::mem::take(&mut self.unread)).into_owned();
        let status = head.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        Ok(Transfer { visit: self, status, length_bytes: length.unwrap_or(0), body, began })
    }

    fn read_more(&mut self) -> Result<(), Ending> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(Ending::Cut),
            Ok(bytes) => {
                self.unread.extend_from_slice(&buffer[..bytes]);
                Ok(())
            }
            Err(error) => Err(ending_of(&error)),
        }
    }
}

impl Transfer<'_> {
    /// Reads until so many bytes of the body are there.
    ///
    /// # Errors
    /// The response ended before.
    pub fn read_to(&mut self, body_bytes: usize) -> Result<(), Ending> {
        while self.body.len() < body_bytes.min(self.length_bytes) {
            self.visit.read_more()?;
            self.body.append(&mut self.visit.unread);
        }
        Ok(())
    }

    /// Reads the rest.
    #[must_use]
    pub fn finish(mut self) -> Fetched {
        let ended = self.read_to(usize::MAX);
        if self.body.len() > self.length_bytes {
            self.visit.unread = self.body.split_off(self.length_bytes);
        }
        let ending = ended.err().unwrap_or(Ending::Whole);
        Fetched { ending, status: self.status, body: self.body, took: self.began.elapsed() }
    }
}
