//! A blocking HTTP connection, plain or TLS, that counts the bytes on its socket.
//!
//! TLS is rustls with one suite, X25519 and no resumption, so that every connection is a full handshake of the
//! same kind with every server.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Order, TlsOrder, Version};
use crate::peers::options::Cipher;

/// No answer for so long is a failure of the server.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Connections from one loopback address before the next is taken: well below the 28,000 ephemeral ports.
const CONNECTIONS_PER_SOURCE: usize = 5_000;

/// Opens connections to one server.
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    server: SocketAddr,
    config: Option<Arc<ClientConfig>>,
}

/// What a connection asks of its socket beyond the defaults.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// Receive buffer in bytes (as given to SO_RCVBUF; the kernel doubles it).
    pub(crate) receive_buffer_bytes: Option<usize>,
    /// The largest segment to be sent to us.
    pub(crate) segment_bytes: Option<u32>,
}

/// A socket that counts what it receives.
#[derive(Debug)]
pub(crate) struct CountingStream {
    /// The socket.
    pub(crate) socket: TcpStream,
    /// Bytes received.
    pub(crate) received: u64,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Channel {
    /// The socket.
    pub(crate) stream: CountingStream,
    /// The TLS session on it.
    pub(crate) tls: Option<Box<ClientConnection>>,
}

impl Dialer {
    /// Prepares the TLS configuration of `order`.
    pub(crate) fn new(order: &Order) -> Result<Self> {
        let config = order.tls.as_ref().map(client_config).transpose()?;
        Ok(Self { server: order.server, config: config.map(Arc::new) })
    }

    /// The server's address as a Host header has it.
    pub(crate) fn host(&self) -> String {
        self.server.to_string()
    }

    /// Connects, and completes the handshake.
    pub(crate) fn connect(&self) -> Result<Channel> {
        self.connect_nth(0, Shape::default())
    }

    /// The same, for one connection of very many: on loopback they are spread over source addresses.
    pub(crate) fn connect_nth(&self, index: usize, shape: Shape) -> Result<Channel> {
        let socket = self.open_socket(index, shape).with_context(|| format!("connection {index}"))?;
        let mut stream = CountingStream { socket, received: 0 };
        let mut tls = match &self.config {
            Some(config) => Some(Box::new(ClientConnection::new(config.clone(), self.server.ip().into())?)),
            None => None,
        };
        if let Some(session) = &mut tls {
            while session.is_handshaking() {
                session.complete_io(&mut stream).context("the handshake failed")?;
            }
        }
        Ok(Channel { stream, tls })
    }

    fn open_socket(&self, index: usize, shape: Shape) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(self.server), Type::STREAM, Some(Protocol::TCP))?;
        if self.server.ip() == Ipv4Addr::LOCALHOST {
            let last_byte = (index / CONNECTIONS_PER_SOURCE % 250) as u8 + 1;
            let source = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last_byte), 0));
            if last_byte > 1 {
                socket.bind(&source.into())?;
            }
        }
        if let Some(bytes) = shape.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = shape.segment_bytes {
            socket.set_tcp_mss(bytes)?;
        }
        socket.set_tcp_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.connect_timeout(&self.server.into(), PATIENCE)?;
        Ok(socket.into())
    }
}

impl Channel {
    /// Sends all of `bytes`.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(session) => {
                let mut stream = rustls::Stream::new(session.as_mut(), &mut self.stream);
                stream.write_all(bytes)?;
                stream.flush()
            }
            None => self.stream.socket.write_all(bytes),
        }
    }

    /// Version, suite and group, as agreed on.
    pub(crate) fn agreed(&self) -> String {
        let Some(session) = &self.tls else { return "plain HTTP".to_string() };
        let version = session.protocol_version().and_then(|version| version.as_str()).unwrap_or("?");
        let suite = session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).unwrap_or("?");
        let group = session.negotiated_key_exchange_group().and_then(|group| group.name().as_str());
        format!("{version} {suite} {}", group.unwrap_or("?"))
    }
}

impl Read for Channel {
    /// The end of a TLS stream without close_notify is [`io::ErrorKind::UnexpectedEof`].
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(session) => rustls::Stream::new(session.as_mut(), &mut self.stream).read(bytes),
            None => self.stream.read(bytes),
        }
    }
}

impl Read for CountingStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let received = self.socket.read(bytes)?;
        self.received += received as u64;
        Ok(received)
    }
}

impl Write for CountingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn client_config(order: &TlsOrder) -> Result<ClientConfig> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = match (order.version, order.cipher) {
        (Version::Tls13, Cipher::Aes256Gcm) => vec![cipher_suite::TLS13_AES_256_GCM_SHA384],
        (Version::Tls13, Cipher::Aes128Gcm) => vec![cipher_suite::TLS13_AES_128_GCM_SHA256],
        // For either kind of certificate.
        (Version::Tls12, Cipher::Aes256Gcm) => vec![
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        ],
        (Version::Tls12, Cipher::Aes128Gcm) => vec![
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ],
    };
    provider.kx_groups = vec![kx_group::X25519];
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(&order.certificate)
        .with_context(|| format!("cannot read {}", order.certificate.display()))?;
    roots.add(certificate).context("the certificate cannot be trusted")?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[match order.version {
            Version::Tls12 => &rustls::version::TLS12,
            Version::Tls13 => &rustls::version::TLS13,
        }])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
