//! A TLS client on rustls that reads responses byte for byte.

use crate::{CertificatePair, PATIENCE_SECONDS};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, KeyLog, NamedGroup, RootCertStore, Stream,
    SupportedProtocolVersion, client::Resumption, crypto::aws_lc_rs, version::TLS13,
};
use rustls_pki_types::ServerName;
use socket2::{Domain, Socket, Type};
use std::{
    fmt::Write as _,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

/// What a client offers. Clients of one set-up share its memory of sessions.
#[derive(Clone, Debug)]
pub struct ClientSetup {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl ClientSetup {
    /// One that trusts these certificates and offers all that rustls knows, without ALPN and without resumption, to
    /// `localhost`.
    #[must_use]
    pub fn new<'a>(trusted: impl IntoIterator<Item = &'a CertificatePair>) -> Self {
        let mut roots = RootCertStore::empty();
        for pair in trusted {
            roots.add(pair.der.clone()).expect("a certificate that can be a trust anchor");
        }
        Self::with(roots, aws_lc_rs::default_provider(), rustls::ALL_VERSIONS)
    }

    /// One that offers a single version, cipher suite and key exchange group.
    ///
    /// # Panics
    /// For a suite or group that rustls does not know.
    #[must_use]
    pub fn offering(
        trusted: &CertificatePair,
        version: &'static SupportedProtocolVersion,
        suite: CipherSuite,
        group: NamedGroup,
    ) -> Self {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites.retain(|known| known.suite() == suite);
        provider.kx_groups = aws_lc_rs::ALL_KX_GROUPS.to_vec();
        provider.kx_groups.retain(|known| known.name() == group);
        assert!(!provider.cipher_suites.is_empty() && !provider.kx_groups.is_empty(), "{suite:?} {group:?}");
        let mut roots = RootCertStore::empty();
        roots.add(trusted.der.clone()).expect("a certificate that can be a trust anchor");
        Self::with(roots, provider, &[version])
    }

    /// One that offers a single version.
    #[must_use]
    pub fn of_version(trusted: &CertificatePair, version: &'static SupportedProtocolVersion) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.der.clone()).expect("a certificate that can be a trust anchor");
        Self::with(roots, aws_lc_rs::default_provider(), &[version])
    }

    fn with(
        roots: RootCertStore,
        provider: rustls::crypto::CryptoProvider,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions)
            .expect("suites and groups that go with the versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        config.enable_secret_extraction = true;
        Self { config: Arc::new(config), name: ServerName::try_from("localhost").expect("a valid name") }
    }

    fn configure(mut self, change: impl FnOnce(&mut ClientConfig)) -> Self {
        change(Arc::make_mut(&mut self.config));
        self
    }

    /// Asks for this name, by SNI if it is none of an address, and expects a certificate for it.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = ServerName::try_from(name.to_owned()).expect("a valid name");
        self
    }

    /// Offers these protocols by ALPN.
    #[must_use]
    pub fn protocols(self, protocols: &[&str]) -> Self {
        self.configure(|config| {
            config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        })
    }

    /// Keeps sessions and resumes them.
    #[must_use]
    pub fn resuming(self) -> Self {
        self.configure(|config| config.resumption = Resumption::in_memory_sessions(64))
    }

    /// Has every secret of its connections noted.
    #[must_use]
    pub fn logging_secrets(self, log: &Arc<SecretLog>) -> Self {
        let log: Arc<dyn KeyLog> = Arc::<SecretLog>::clone(log);
        self.configure(|config| config.key_log = log)
    }

    /// Connects, and does the handshake.
    ///
    /// # Errors
    /// The connection or the handshake fails. An alert from the server is in the message.
    pub fn try_connect(&self, address: SocketAddr) -> io::Result<Client> {
        self.connect_over(connect(address)?)
    }

    /// As [`ClientSetup::connect`], over a socket that takes little more than so many bytes that nobody reads: the
    /// client is slow at once.
    ///
    /// # Panics
    /// If that fails.
    #[track_caller]
    #[must_use]
    pub fn connect_with_receive_buffer(&self, address: SocketAddr, buffer_bytes: usize) -> Client {
        let socket = unconnected_socket();
        // Before it is connected: the window that is offered follows from it.
        socket.set_recv_buffer_size(buffer_bytes).expect("a receive buffer of that size");
        socket.connect(&address.into()).expect("the server listens");
        let stream = TcpStream::from(socket);
        be_patient(&stream).expect("options of every socket");
        self.connect_over(stream).expect("a TLS connection")
    }

    fn connect_over(&self, mut stream: TcpStream) -> io::Result<Client> {
        let mut connection =
            ClientConnection::new(Arc::clone(&self.config), self.name.clone()).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(Client { stream, connection, unread: Vec::new() })
    }

    /// As [`ClientSetup::try_connect`].
    ///
    /// # Panics
    /// If that fails.
    #[track_caller]
    #[must_use]
    pub fn connect(&self, address: SocketAddr) -> Client {
        match self.try_connect(address) {
            Ok(client) => client,
            Err(error) => panic!("no TLS connection: {error}"),
        }
    }

    /// As [`ClientSetup::connect`], but sends the handshake in pieces of so many bytes, each in a segment of its own.
    ///
    /// # Panics
    /// If that fails.
    #[track_caller]
    #[must_use]
    pub fn connect_in_pieces(&self, address: SocketAddr, piece_bytes: usize) -> Client {
        let mut stream = connect(address).expect("the server listens");
        let mut connection =
            ClientConnection::new(Arc::clone(&self.config), self.name.clone()).expect("a valid set-up");
        while connection.is_handshaking() || connection.wants_write() {
            let mut flight = Vec::new();
            while connection.wants_write() {
                connection.write_tls(&mut flight).expect("a Vec takes all");
            }
            for piece in flight.chunks(piece_bytes) {
                stream.write_all(piece).expect("the server takes the handshake");
            }
            if connection.is_handshaking() {
                assert_ne!(
                    connection.read_tls(&mut stream).expect("the server answers"),
                    0,
                    "the server closed"
                );
                connection.process_new_packets().expect("the server keeps to the protocol");
            }
        }
        Client { stream, connection, unread: Vec::new() }
    }

    /// A connection of rustls that has not begun, for a client that moves the bytes itself.
    #[must_use]
    pub fn connection(&self) -> ClientConnection {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone()).expect("a valid set-up")
    }

    /// The bytes of a ClientHello.
    #[must_use]
    pub fn client_hello(&self) -> Vec<u8> {
        let mut connection = self.connection();
        let mut hello = Vec::new();
        connection.write_tls(&mut hello).expect("a Vec takes all");
        hello
    }

    pub(crate) fn parts(&self) -> (Arc<ClientConfig>, ServerName<'static>) {
        (Arc::clone(&self.config), self.name.clone())
    }
}

/// A TCP connection that does not wait for ever.
///
/// # Errors
/// Nobody listens.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    be_patient(&stream)?;
    Ok(stream)
}

fn be_patient(stream: &TcpStream) -> io::Result<()> {
    let patience = Some(Duration::from_secs(PATIENCE_SECONDS));
    stream.set_nodelay(true)?;
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)
}

/// Closes a connection with a reset: what it has received and not read is thrown away.
pub fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))
        .expect("a socket can be told not to linger");
    drop(stream);
}

/// A connection whose handshake is over.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    connection: ClientConnection,
    /// Plaintext that was received behind what was asked for.
    unread: Vec<u8>,
}

/// A whole response.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// Its status code.
    pub status: u16,
    /// Its head as it came, without the empty line.
    pub head: String,
    /// Its body, as long as Content-Length says.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// The value of a header, if it is there.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header_of(&self.head, name)
    }
}

fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// A GET request for `target` of `localhost`.
pub(crate) fn get_request(target: &str) -> String {
    format!("GET /{target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

impl Client {
    /// What was agreed.
    #[must_use]
    pub fn connection(&self) -> &ClientConnection {
        &self.connection
    }

    /// Asks for a file and returns the whole response.
    ///
    /// # Panics
    /// If it does not come as a whole.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> HttpResponse {
        self.request(target);
        match self.read_response() {
            Ok(response) => response,
            Err(error) => panic!("no whole response for {target}: {error}"),
        }
    }

    /// Asks for a file, and does not wait for the response.
    ///
    /// # Panics
    /// If that cannot be sent.
    #[track_caller]
    pub fn request(&mut self, target: &str) {
        self.send(get_request(target).as_bytes()).expect("a request can be sent");
    }

    /// Sends plaintext.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&mut self, plaintext: &[u8]) -> io::Result<()> {
        let mut stream = Stream::new(&mut self.connection, &mut self.stream);
        stream.write_all(plaintext)?;
        stream.flush()
    }

    /// Reads one response.
    ///
    /// # Errors
    /// The connection ends before the response does: [`io::ErrorKind::ConnectionAborted`] after `close_notify`,
    /// [`io::ErrorKind::UnexpectedEof`] without.
    pub fn read_response(&mut self) -> io::Result<HttpResponse> {
        let head_bytes = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more()?;
        };
        let head: Vec<u8> = self.unread.drain(..head_bytes).collect();
        let head = String::from_utf8_lossy(&head[..head_bytes - 4]).into_owned();
        let status = head.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let length_bytes = header_of(&head, "content-length").and_then(|value| value.parse().ok());
        let body = self.read_exactly(length_bytes.unwrap_or(0))?;
        Ok(HttpResponse { status, head, body })
    }

    /// Reads exactly so many bytes of plaintext.
    ///
    /// # Errors
    /// As [`Client::read_response`].
    pub fn read_exactly(&mut self, length_bytes: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < length_bytes {
            self.read_more()?;
        }
        let rest = self.unread.split_off(length_bytes);
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    /// Reads to the end of the stream, and says whether it ended with `close_notify`.
    ///
    /// # Errors
    /// A reset, or an alert other than `close_notify`.
    pub fn read_to_end(&mut self) -> io::Result<(Vec<u8>, bool)> {
        loop {
            match self.read_more() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                    return Ok((std::mem::take(&mut self.unread), true));
                }
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok((std::mem::take(&mut self.unread), false));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 32 * 1024];
        let bytes = Stream::new(&mut self.connection, &mut self.stream).read(&mut buffer)?;
        if bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server sent close_notify"));
        }
        self.unread.extend_from_slice(&buffer[..bytes]);
        Ok(())
    }

    /// Takes new sending keys and asks the server for new ones (KeyUpdate, `update_requested`).
    ///
    /// # Panics
    /// On TLS 1.2, which has no such thing.
    pub fn refresh_keys(&mut self) {
        self.connection.refresh_traffic_keys().expect("keys can be refreshed in TLS 1.3");
        self.flush();
    }

    /// Sends `close_notify`; what the server still sends can be read.
    pub fn close_notify(&mut self) {
        self.connection.send_close_notify();
        self.flush();
    }

    fn flush(&mut self) {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.stream).expect("the server takes records");
        }
    }

    /// Sends FIN without `close_notify`.
    pub fn shut_down_sending(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("the connection is open");
    }

    /// Closes with a reset instead of a FIN.
    pub fn reset(self) {
        reset(self.stream);
    }

    /// Whether TLS 1.3 was agreed.
    #[must_use]
    pub fn is_tls13(&self) -> bool {
        self.connection.protocol_version() == Some(TLS13.version)
    }
}

/// Notes the secrets of connections in hexadecimal, as rustls hands them out for debugging.
#[derive(Debug, Default)]
pub struct SecretLog(Mutex<Vec<(String, String)>>);

impl SecretLog {
    /// Label and value of every secret so far.
    #[must_use]
    pub fn secrets(&self) -> Vec<(String, String)> {
        self.0.lock().expect("no test panics while it holds this").clone()
    }
}

impl KeyLog for SecretLog {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        let hex = secret.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a String takes all");
            hex
        });
        self.0.lock().expect("no test panics while it holds this").push((label.to_owned(), hex));
    }
}

/// A TCP socket over IPv4 that is not connected. No server that another test starts inherits it (`SOCK_CLOEXEC`): a
/// socket that another process holds is not closed when its test drops it.
///
/// # Panics
/// If the machine has none.
#[must_use]
pub fn unconnected_socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket")
}
