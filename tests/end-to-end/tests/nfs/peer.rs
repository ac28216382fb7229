//! A client of NFS 4.1 that says what it is told to.

use linerate_end_to_end::{CertificatePair, PATIENCE_SECONDS, connect};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{PrivateKeyDer, ServerName, pem::PemObject},
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

pub(crate) const NFS: u32 = 100_003;

/// XDR: words.
pub(crate) fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// XDR: bytes with their length, padded.
pub(crate) fn opaque(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = words(&[bytes.len() as u32]);
    encoded.extend(bytes);
    encoded.resize(encoded.len().next_multiple_of(4), 0);
    encoded
}

/// A reply that is being read.
pub(crate) struct Reader(Vec<u8>, usize);

impl Reader {
    pub(crate) fn word(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let bytes = self.0[self.1..self.1 + count].to_vec();
        self.1 += count;
        bytes
    }

    pub(crate) fn opaque(&mut self) -> Vec<u8> {
        let count = self.word() as usize;
        let bytes = self.bytes(count);
        self.bytes(count.next_multiple_of(4) - count);
        bytes
    }
}

/// What a call was answered with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Results follow.
    Accepted,
    /// MSG_DENIED, AUTH_ERROR and this.
    Denied(u32),
    /// Another `accept_stat`.
    Failed(u32),
}

/// AUTH_TOOWEAK.
pub(crate) const TOO_WEAK: Answer = Answer::Denied(5);
/// AUTH_BADCRED.
pub(crate) const BAD_CREDENTIAL: Answer = Answer::Denied(1);

pub(crate) struct Peer<S> {
    pub(crate) stream: S,
    transaction: u32,
    session: Vec<u8>,
    sequence: u32,
}

pub(crate) type TlsPeer = Peer<StreamOwned<ClientConnection, TcpStream>>;

impl Peer<TcpStream> {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(PATIENCE_SECONDS))).unwrap();
        Self { stream, transaction: 0, session: Vec::new(), sequence: 0 }
    }

    /// Asks whether TLS may begin. The verifier of the answer, if that was yes.
    pub(crate) fn probe(&mut self) -> Result<Vec<u8>, Answer> {
        self.send(NFS, 4, 0, 7, &[], &[]).unwrap();
        let mut reply = self.receive().unwrap();
        match answer_of(&mut reply) {
            (Answer::Accepted, verifier) => Ok(verifier),
            (other, _) => Err(other),
        }
    }

    /// Begins TLS, as `client` if that is somebody.
    pub(crate) fn secured(mut self, server: &CertificatePair, client: Option<&CertificatePair>) -> TlsPeer {
        assert_eq!(self.probe(), Ok(b"STARTTLS".to_vec()));
        let mut roots = RootCertStore::empty();
        roots.add(server.der.clone()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let mut config = match client {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_file(&pair.key).unwrap();
                builder.with_client_auth_cert(vec![pair.der.clone()], key).unwrap()
            }
        };
        config.alpn_protocols = vec![b"sunrpc".to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut self.stream).unwrap();
        }
        assert_eq!(connection.alpn_protocol(), Some(&b"sunrpc"[..]));
        Peer {
            stream: StreamOwned::new(connection, self.stream),
            transaction: self.transaction,
            session: Vec::new(),
            sequence: 0,
        }
    }
}

impl<S: Read + Write> Peer<S> {
    pub(crate) fn send(
        &mut self,
        program: u32,
        version: u32,
        procedure: u32,
        flavour: u32,
        credential: &[u8],
        arguments: &[u8],
    ) -> io::Result<()> {
        self.transaction += 1;
        let mut record = words(&[self.transaction, 0, 2, program, version, procedure, flavour]);
        record.extend(opaque(credential));
        record.extend(words(&[0, 0]));
        record.extend(arguments);
        let mark = 0x8000_0000 | record.len() as u32;
        self.stream.write_all(&[&mark.to_be_bytes()[..], &record].concat())?;
        self.stream.flush()
    }

    /// The next reply.
    pub(crate) fn receive(&mut self) -> io::Result<Reader> {
        let mut mark = [0; 4];
        self.stream.read_exact(&mut mark)?;
        let mark = u32::from_be_bytes(mark);
        assert!(mark & 0x8000_0000 != 0, "replies are one fragment each");
        let mut record = vec![0; (mark & 0x7fff_ffff) as usize];
        self.stream.read_exact(&mut record)?;
        Ok(Reader(record, 0))
    }

    /// NULL of NFS 4.
    pub(crate) fn null(&mut self) -> io::Result<Answer> {
        self.send(NFS, 4, 0, 0, &[], &[])?;
        Ok(answer_of(&mut self.receive()?).0)
    }

    fn send_compound(&mut self, operations: &[Vec<u8>]) -> io::Result<()> {
        // AUTH_SYS: stamp, machine, user, group, no groups.
        let credential = [words(&[1]), opaque(b"client"), words(&[1000, 1000, 0])].concat();
        let count = words(&[operations.len() as u32]);
        let arguments = [opaque(b""), words(&[1]), count, operations.concat()].concat();
        self.send(NFS, 4, 1, 1, &credential, &arguments)
    }

    /// Status and results of a compound, or with what it was refused.
    pub(crate) fn compound(&mut self, operations: &[Vec<u8>]) -> io::Result<Result<(u32, Reader), Answer>> {
        self.send_compound(operations)?;
        let mut reply = self.receive()?;
        Ok(match answer_of(&mut reply).0 {
            Answer::Accepted => {
                let status = reply.word();
                reply.opaque();
                reply.word();
                Ok((status, reply))
            }
            refused => Err(refused),
        })
    }

    /// Introduces itself and gets a session; or is refused.
    pub(crate) fn begin_session(&mut self, owner: &str) -> Result<(), Answer> {
        let exchange = [words(&[42]), b"verifier".to_vec(), opaque(owner.as_bytes()), words(&[0, 0, 0])];
        let (status, mut reply) = self.compound(&[exchange.concat()]).unwrap()?;
        assert_eq!((status, reply.word(), reply.word()), (0, 42, 0));
        let client = reply.bytes(8);
        let sequence = reply.bytes(4);
        let channel = words(&[0, 1_049_600, 1_049_600, 4096, 16, 16, 0]);
        let create = [words(&[43]), client, sequence, words(&[0]), channel.clone(), channel, words(&[0, 0])];
        let (status, mut reply) = self.compound(&[create.concat()]).unwrap()?;
        assert_eq!((status, reply.word(), reply.word()), (0, 43, 0));
        self.session = reply.bytes(16);
        self.sequence = 0;
        Ok(())
    }

    fn sequence(&mut self) -> Vec<u8> {
        self.sequence += 1;
        [words(&[53]), self.session.clone(), words(&[self.sequence, 0, 0, 0])].concat()
    }

    /// A compound in the session: its status, and what follows SEQUENCE's result.
    pub(crate) fn within(&mut self, operations: &[Vec<u8>]) -> io::Result<(u32, Reader)> {
        let all: Vec<_> = std::iter::once(self.sequence()).chain(operations.iter().cloned()).collect();
        let (status, mut reply) = self.compound(&all)?.unwrap();
        if reply.word() == 53 && reply.word() == 0 {
            reply.bytes(36);
        }
        Ok((status, reply))
    }

    /// The handle at `path`; the status where there is none.
    pub(crate) fn look_up(&mut self, path: &[&str]) -> Result<Vec<u8>, u32> {
        let mut operations = vec![words(&[24])];
        operations.extend(path.iter().map(|name| [words(&[15]), opaque(name.as_bytes())].concat()));
        operations.push(words(&[10]));
        let (status, mut reply) = self.within(&operations).unwrap();
        if status != 0 {
            return Err(status);
        }
        reply.bytes(8 * (operations.len() - 1));
        assert_eq!((reply.word(), reply.word()), (10, 0));
        Ok(reply.opaque())
    }

    /// Bytes of a file.
    pub(crate) fn read(
        &mut self,
        handle: &[u8],
        offset: u64,
        count: u32,
    ) -> io::Result<Result<Vec<u8>, u32>> {
        let read = [words(&[25]), vec![0; 16], offset.to_be_bytes().to_vec(), words(&[count])].concat();
        let (status, mut reply) = self.within(&[[words(&[22]), opaque(handle)].concat(), read])?;
        if status != 0 {
            return Ok(Err(status));
        }
        reply.bytes(8);
        assert_eq!((reply.word(), reply.word()), (25, 0));
        reply.word();
        Ok(Ok(reply.opaque()))
    }

    /// All of a file, by reads of `step_bytes`.
    pub(crate) fn read_all(&mut self, handle: &[u8], step_bytes: u32) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let part = self.read(handle, all.len() as u64, step_bytes).unwrap().unwrap();
            if part.is_empty() {
                return all;
            }
            all.extend(part);
        }
    }
}

/// What a reply's header says, and its verifier.
fn answer_of(reply: &mut Reader) -> (Answer, Vec<u8>) {
    reply.word();
    assert_eq!(reply.word(), 1, "a reply");
    if reply.word() == 1 {
        assert_eq!(reply.word(), 1, "AUTH_ERROR");
        return (Answer::Denied(reply.word()), Vec::new());
    }
    reply.word();
    let verifier = reply.opaque();
    match reply.word() {
        0 => (Answer::Accepted, verifier),
        other => (Answer::Failed(other), verifier),
    }
}
