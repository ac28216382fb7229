//! A client for one question: a handshake, a request, the beginning of a response, over sockets that wait.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use linerate_record::{AlertDescription, Channel, ContentType, Event, KeyUpdateRate, RecordHeader};
use linerate_tls::{ClientHandshake, ClientKeySchedule, ConnectStep, Connected, Connector};

/// How long a server may take for each of its answers.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The most of a response that is read.
const RESPONSE_LIMIT_BYTES: usize = 4 << 20;
const KEY_UPDATES_LIMIT: u32 = 100;

/// Why there was no agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The server's certificate is not trusted: why.
    Trust(String),
    /// Anything else.
    Other(String),
}

impl Refused {
    pub(super) fn into_words(self) -> String {
        match self {
            Self::Trust(words) | Self::Other(words) => words,
        }
    }
}

/// A connection after its handshake, before its first byte of application data.
pub(super) struct Open {
    socket: TcpStream,
    pub(super) connected: Connected,
    arrived: Vec<u8>,
}

/// Connects, and agrees on keys.
pub(super) fn connect(address: SocketAddr, name: &str, connector: &Connector) -> Result<Open, Refused> {
    let other = |error: std::io::Error| Refused::Other(error.to_string());
    let mut socket = TcpStream::connect_timeout(&address, TIME_LIMIT).map_err(other)?;
    socket.set_read_timeout(Some(TIME_LIMIT)).map_err(other)?;
    socket.set_write_timeout(Some(TIME_LIMIT)).map_err(other)?;
    let failed = |failure: linerate_tls::ConnectFailure| match failure.is_about_trust() {
        true => Refused::Trust(failure.to_string()),
        false => Refused::Other(failure.to_string()),
    };
    let (mut outgoing, mut arrived) = (Vec::new(), Vec::new());
    let mut handshake = ClientHandshake::start(connector, name, &mut outgoing).map_err(failed)?;
    let deadline = Instant::now() + 2 * TIME_LIMIT;
    loop {
        socket.write_all(&outgoing).map_err(other)?;
        outgoing.clear();
        if Instant::now() > deadline {
            return Err(Refused::Other("the handshake took too long".to_owned()));
        }
        receive(&mut socket, &mut arrived).map_err(Refused::Other)?;
        match handshake.advance(&mut arrived, &mut outgoing) {
            Ok(ConnectStep::NeedInput) => {}
            Ok(ConnectStep::Connected(connected)) => {
                socket.write_all(&outgoing).map_err(other)?;
                return Ok(Open { socket, connected: *connected, arrived });
            }
            Err(failure) => {
                // The alert is a courtesy.
                let _ = socket.write_all(&outgoing);
                return Err(failed(failure));
            }
        }
    }
}

/// Appends what comes. An end is an error: the caller waits for something.
fn receive(socket: &mut TcpStream, arrived: &mut Vec<u8>) -> Result<(), String> {
    let before = arrived.len();
    arrived.resize(before + 64 * 1024, 0);
    let received = socket.read(&mut arrived[before..]);
    arrived.truncate(before + received.as_ref().copied().unwrap_or(0));
    match received {
        Ok(0) => Err("the server closed the connection".to_owned()),
        Ok(_) => Ok(()),
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
            Err(format!("the server said nothing for {} s", TIME_LIMIT.as_secs()))
        }
        Err(error) => Err(error.to_string()),
    }
}

impl Open {
    /// Sends a request and reads until the server has said all, or 4 MiB: the response as it came, its head first.
    pub(super) fn ask(self, request: &[u8]) -> Result<Vec<u8>, String> {
        let Self { mut socket, connected, mut arrived } = self;
        let mut channel = connected
            .into_channel(KeyUpdateRate::new(KEY_UPDATES_LIMIT))
            .map_err(|fault| fault.to_string())?;
        let mut outgoing = Vec::new();
        channel
            .sealer()
            .and_then(|sealer| sealer.seal_append(ContentType::ApplicationData, request, &mut outgoing))
            .map_err(|fault| fault.to_string())?;
        socket.write_all(&outgoing).map_err(|error| error.to_string())?;
        let mut response = Vec::new();
        let deadline = Instant::now() + 2 * TIME_LIMIT;
        while response.len() < RESPONSE_LIMIT_BYTES && Instant::now() < deadline {
            if open_records(&mut channel, &mut arrived, &mut response)? {
                break;
            }
            match receive(&mut socket, &mut arrived) {
                Ok(()) => {}
                // Many servers end without close_notify; what came stands for itself.
                Err(reason) if response.is_empty() => return Err(reason),
                Err(_) => break,
            }
        }
        outgoing.clear();
        // A courtesy, too.
        let _ =
            channel.alert(AlertDescription::CloseNotify, &mut outgoing).map(|_| socket.write_all(&outgoing));
        Ok(response)
    }
}

/// Opens the whole records at the front of `arrived`. True once the server has said that no more comes.
fn open_records(
    channel: &mut Channel<ClientKeySchedule>,
    arrived: &mut Vec<u8>,
    response: &mut Vec<u8>,
) -> Result<bool, String> {
    let mut done_bytes = 0;
    let mut closed = false;
    while !closed {
        let header = RecordHeader::parse(&arrived[done_bytes..], channel.incoming_layout());
        let Some(header) = header.map_err(|fault| fault.to_string())? else { break };
        let end = done_bytes + header.record_bytes();
        if end > arrived.len() {
            break;
        }
        let record = &mut arrived[done_bytes..end];
        match channel.receive(record, 0).map_err(|fault| fault.to_string())? {
            Event::Data(range) => response.extend_from_slice(&record[range]),
            Event::CloseNotify => closed = true,
            _ => {}
        }
        done_bytes = end;
    }
    arrived.drain(..done_bytes);
    Ok(closed)
}
