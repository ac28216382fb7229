//! A client's end of a connection, in the clear or over TLS, that sends exactly the bytes it is given.

use super::Response;
use linerate_end_to_end::{CertificatePair, PATIENCE_SECONDS, unconnected_socket};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::aws_lc_rs};
use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

/// How the peer ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should: close_notify under TLS, the end of the stream without.
    Closed,
    /// In the middle: reset, or no close_notify.
    Cut,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A client's end of a connection.
pub(crate) struct Connection {
    stream: Stream,
    /// Received, and not yet part of a response.
    received: Vec<u8>,
}

impl Connection {
    /// In the clear.
    #[track_caller]
    pub(crate) fn plain(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).expect("the server takes connections"), None)
    }

    /// Over TLS; `name` goes into SNI if it is no address. The handshake is over when this returns.
    #[track_caller]
    pub(crate) fn tls(address: SocketAddr, pair: &CertificatePair, name: &str) -> Self {
        Self::try_tls(address, &client_config(pair), name).expect("the handshake succeeds")
    }

    /// The same, where failing is an answer, too. The configuration can be shared by many.
    pub(crate) fn try_tls(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> io::Result<Self> {
        let name = name.to_owned().try_into().map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(PATIENCE_SECONDS)))?;
        let mut connection = Self::over(stream, Some(session));
        if let Stream::Tls(stream) = &mut connection.stream {
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock)?;
            }
        }
        Ok(connection)
    }

    /// A stream that is connected already; the handshake, if there is one, happens with the first bytes.
    pub(crate) fn over(stream: TcpStream, session: Option<ClientConnection>) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(PATIENCE_SECONDS))).expect("a time limit");
        stream.set_nodelay(true).expect("an option of every TCP socket");
        let stream = match session {
            None => Stream::Plain(stream),
            Some(session) => Stream::Tls(Box::new(StreamOwned::new(session, stream))),
        };
        Self { stream, received: Vec::new() }
    }

    /// The socket itself.
    pub(crate) fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => &stream.sock,
        }
    }

    /// Sends these bytes, all at once.
    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes.as_ref()).expect("the server reads");
    }

    /// The same, where failing is an answer, too.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Receives some bytes; 0 at a proper end.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.received.is_empty() {
            let count = buffer.len().min(self.received.len());
            buffer[..count].copy_from_slice(&self.received[..count]);
            self.received.drain(..count);
            return Ok(count);
        }
        match &mut self.stream {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }

    /// Gives back what was received, as the first that is received next.
    pub(crate) fn unread(&mut self, bytes: &[u8]) {
        self.received.splice(..0, bytes.iter().copied());
    }

    /// Receives more into what waits; false at the end, proper or not.
    fn receive_more(&mut self) -> Result<bool, End> {
        let mut buffer = [0; 32 * 1024];
        let received = match &mut self.stream {
            Stream::Plain(stream) => stream.read(&mut buffer),
            Stream::Tls(stream) => stream.read(&mut buffer),
        };
        match received {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                panic!("the server has sent nothing for {PATIENCE_SECONDS} s")
            }
            Err(_) => Err(End::Cut),
        }
    }

    /// Reads the next response; `to_head` if it answers HEAD and has no body.
    ///
    /// A connection that ends before the head is whole fails the test; one that ends within the body gives a response
    /// that is not complete.
    #[track_caller]
    pub(crate) fn response_to(&mut self, to_head: bool) -> Response {
        let head_bytes = loop {
            if let Some(at) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            let more = self.receive_more();
            assert_eq!(more, Ok(true), "no response: {:?}", String::from_utf8_lossy(&self.received));
        };
        let head: Vec<u8> = self.received.drain(..head_bytes).collect();
        let mut response = Response::parse(&head);
        let wanted = if to_head { 0 } else { response.body_bytes() };
        while self.received.len() < wanted && self.receive_more() == Ok(true) {}
        let have = wanted.min(self.received.len());
        response.body = self.received.drain(..have).collect();
        response.complete = have == wanted;
        response
    }

    /// Reads the next response to anything but HEAD.
    #[track_caller]
    pub(crate) fn response(&mut self) -> Response {
        self.response_to(false)
    }

    /// Reads until the server ends the connection: what it still sent, and how it ended.
    #[track_caller]
    pub(crate) fn end(&mut self) -> (Vec<u8>, End) {
        loop {
            match self.receive_more() {
                Ok(true) => {}
                Ok(false) => return (std::mem::take(&mut self.received), End::Closed),
                Err(end) => return (std::mem::take(&mut self.received), end),
            }
        }
    }

    /// Asks for a file and reads the answer.
    #[track_caller]
    pub(crate) fn get(&mut self, target: &str, headers: &str) -> Response {
        self.send(super::get(target, headers));
        self.response()
    }

    /// The TLS side, for what only it knows.
    pub(crate) fn session(&self) -> Option<&ClientConnection> {
        match &self.stream {
            Stream::Plain(_) => None,
            Stream::Tls(stream) => Some(&stream.conn),
        }
    }

    /// Ends our side; the other may go on.
    pub(crate) fn finish_sending(&mut self) {
        if let Stream::Tls(stream) = &mut self.stream {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
        let _ = self.socket().shutdown(Shutdown::Write);
    }
}

/// What clients trust: this certificate and no other.
pub(crate) fn client_config(pair: &CertificatePair) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(pair.der.clone()).expect("a certificate made for tests");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// A connection from one of this machine's addresses.
pub(crate) fn from_address(source: std::net::Ipv4Addr, address: SocketAddr) -> TcpStream {
    let socket = unconnected_socket();
    socket.bind(&SocketAddr::from((source, 0)).into()).expect("an address of the loopback interface");
    socket.connect(&address.into()).expect("the server takes connections");
    TcpStream::from(socket)
}

/// A connection whose kernel takes few bytes that nobody reads: a slow client is slow at once.
/// `segment_bytes`: the most that it takes in a segment, if not what the interface allows.
pub(crate) fn with_small_window(
    address: SocketAddr,
    receive_buffer_bytes: usize,
    segment_bytes: Option<u32>,
) -> TcpStream {
    let socket = unconnected_socket();
    socket.set_recv_buffer_size(receive_buffer_bytes).expect("a receive buffer of that size");
    if let Some(bytes) = segment_bytes {
        socket.set_tcp_mss(bytes).expect("segments of that size");
    }
    socket.connect(&address.into()).expect("the server takes connections");
    TcpStream::from(socket)
}
