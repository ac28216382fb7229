//! The handshake, as far as bytes that somebody made up can lead it.

use crate::Verdict;
use linerate_tls::{
    Acceptor, AcceptorBuilder, CertificateFiles, FailureKind, HANDSHAKE_LIMIT_BYTES, Handshake,
    SiteCertificates, Step, TlsPolicy,
};
use std::sync::{Arc, OnceLock};

/// The most that is read ahead, as the server does.
const READ_AHEAD_BYTES: usize = 18 * 1024;

/// The first byte is how many bytes arrive at a time (zero: all at once); what follows is what the client sends.
///
/// # Panics
/// If the outcome depends on how the bytes arrive, something that is no record is answered, or a failed handshake goes
/// on.
pub fn client_hello(data: &[u8]) -> Verdict {
    let Some((&piece_bytes, stream)) = data.split_first() else { return Verdict::Refused };
    let outcome = outcome(stream, READ_AHEAD_BYTES);
    if piece_bytes > 0 {
        assert_eq!(outcome, self::outcome(stream, piece_bytes.into()), "in pieces of {piece_bytes}");
    }
    match outcome {
        Outcome::Waiting { answered: true } | Outcome::Established => Verdict::Taken,
        Outcome::Waiting { answered: false } | Outcome::Failed(_) => Verdict::Refused,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// `answered`: the ClientHello was good enough for an answer.
    Waiting {
        answered: bool,
    },
    Established,
    Failed(FailureKind),
}

fn outcome(stream: &[u8], piece_bytes: usize) -> Outcome {
    let mut handshake = Handshake::new(acceptor());
    let (mut incoming, mut outgoing) = (Vec::new(), Vec::new());
    for piece in stream.chunks(piece_bytes) {
        incoming.extend_from_slice(piece);
        let step = handshake.advance(&mut incoming, &mut outgoing);
        check_records(&outgoing);
        assert!(incoming.len() <= HANDSHAKE_LIMIT_BYTES + READ_AHEAD_BYTES);
        match step {
            Ok(Step::NeedInput) => {}
            Ok(Step::Established(_)) => return Outcome::Established,
            Err(failure) => {
                assert!(
                    handshake.advance(&mut incoming, &mut outgoing).is_err(),
                    "it went on after {failure}"
                );
                assert_ne!(
                    failure.kind(),
                    FailureKind::Internal,
                    "the peer caused a fault of ours: {failure}"
                );
                if failure.kind() == FailureKind::PlainHttp {
                    assert!(outgoing.is_empty(), "records for one who speaks HTTP");
                }
                return Outcome::Failed(failure.kind());
            }
        }
    }
    Outcome::Waiting { answered: !outgoing.is_empty() }
}

/// Everything that is sent is whole records of legal size.
pub(crate) fn check_records(mut outgoing: &[u8]) {
    while !outgoing.is_empty() {
        let Some((&[content_type, 3, _, high, low], rest)) = outgoing.split_first_chunk() else {
            panic!("no record: {outgoing:?}");
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        assert!((20..=23).contains(&content_type) && (1..=(1 << 14) + 256).contains(&length));
        assert!(length <= rest.len(), "half a record");
        outgoing = &rest[length..];
    }
}

/// One for the whole process: making a certificate takes longer than refusing a handshake.
pub(crate) fn acceptor() -> &'static Arc<Acceptor> {
    static ACCEPTOR: OnceLock<Arc<Acceptor>> = OnceLock::new();
    ACCEPTOR.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = CertificateFiles {
            certificate: directory.path().join("certificate.pem"),
            key: directory.path().join("key.pem"),
        };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        std::fs::write(&files.certificate, made.cert.pem()).expect("the certificate is written");
        std::fs::write(&files.key, made.signing_key.serialize_pem()).expect("the key is written");
        let site = SiteCertificates { names: vec!["localhost".to_owned()], certificates: vec![files] };
        Arc::new(AcceptorBuilder::new(TlsPolicy::default(), vec![site]).build().expect("an acceptor"))
    })
}
