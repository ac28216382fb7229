//! A blocking HTTP connection, plain or TLS, that counts the bytes on its socket.
//!
//! TLS is rustls with one suite, X25519 and no resumption, so that every connection is a full handshake of the
//! same kind with every server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::{TlsOrder, Version};

/// No answer for so long is a failure of the server.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens connections to one server.
#[derive(Debug, Clone)]
pub(in crate::guest) struct Dialer {
    server: SocketAddr,
    config: Option<Arc<ClientConfig>>,
}

/// A socket that counts what it receives.
#[derive(Debug)]
pub(in crate::guest) struct CountingStream {
    /// The socket.
    pub(in crate::guest) socket: TcpStream,
    /// Bytes received.
    pub(in crate::guest) received: u64,
}

/// An open connection.
#[derive(Debug)]
pub(in crate::guest) struct Channel {
    /// The socket.
    pub(in crate::guest) stream: CountingStream,
    /// The TLS session on it.
    pub(in crate::guest) tls: Option<Box<ClientConnection>>,
}

impl Dialer {
    /// Prepares connections to `server`, over TLS if that is ordered.
    pub(in crate::guest) fn new(server: SocketAddr, tls: Option<&TlsOrder>) -> Result<Self> {
        let config = tls.map(client_config).transpose()?;
        Ok(Self { server, config: config.map(Arc::new) })
    }

    /// The server's address as a Host header has it.
    pub(in crate::guest) fn host(&self) -> String {
        self.server.to_string()
    }

    /// Connects, and completes the handshake.
    pub(in crate::guest) fn connect(&self) -> Result<Channel> {
        let mut stream = CountingStream { socket: self.open_socket()?, received: 0 };
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

    fn open_socket(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect_timeout(&self.server, PATIENCE)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(socket)
    }
}

impl Channel {
    /// Sends all of `bytes`.
    pub(in crate::guest) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(session) => {
                let mut stream = rustls::Stream::new(session.as_mut(), &mut self.stream);
                stream.write_all(bytes)?;
                stream.flush()
            }
            None => self.stream.socket.write_all(bytes),
        }
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
        loop {
            match self.socket.read(bytes) {
                // A thread that submits to io_uring is interrupted when the kernel has completed something.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(received) => {
                    self.received += received as u64;
                    return Ok(received);
                }
            }
        }
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
    provider.cipher_suites = match order.version {
        Version::Tls13 => vec![cipher_suite::TLS13_AES_256_GCM_SHA384],
        // For either kind of certificate.
        Version::Tls12 => vec![
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
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
