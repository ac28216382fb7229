//! What a stranger can send to `linerate stream --listen`: the first bytes of a connection, and messages.

use crate::Verdict;
use linerate_stream::{
    Secret,
    control::{
        frame::{self, Frames, REQUEST_LIMIT_BYTES},
        greeting::{Greeting, Step},
        message::{Hexadecimal, Message},
        preamble::{Beginning, PREAMBLE_BYTES, preamble, recognise},
        secret::{Bond, Prover},
    },
};

const SECRET: &[u8] = b"what both ends know, as the seeds do";
const CERTIFICATE: &str = "AA:BB";
const LISTENER_NONCE: [u8; 32] = [2; 32];

/// The first byte, by threes: 0: the rest is the beginning of a connection. 1: the rest is messages, in pieces of a size that
/// the first byte gives. 2: the same, said to a listener that greets.
///
/// # Panics
/// If a beginning is recognised as something else when more of it has come, it matters how messages are cut into pieces, a
/// message says something else when it is said again, or a client is welcome without the proof of the secret.
pub fn stream_control(data: &[u8]) -> Verdict {
    let Some((&first, rest)) = data.split_first() else { return Verdict::Refused };
    match first % 3 {
        0 => beginning(rest),
        1 => messages(rest, usize::from(first / 3) + 1),
        _ => greeting(rest),
    }
}

fn beginning(bytes: &[u8]) -> Verdict {
    let mut known = None;
    for length in 0..=bytes.len().min(PREAMBLE_BYTES) {
        let now = recognise(&bytes[..length]);
        if let Some(earlier) = known {
            assert_eq!(now, earlier, "after {length} bytes");
        } else if now != Beginning::Unknown {
            known = Some(now);
        }
    }
    match known {
        Some(Beginning::Stream(token)) => {
            assert_eq!(preamble(&token), bytes[..PREAMBLE_BYTES]);
            Verdict::Taken
        }
        Some(Beginning::Control) => Verdict::Taken,
        Some(Beginning::Strange) => Verdict::Refused,
        Some(Beginning::Unknown) | None => {
            assert!(bytes.len() < PREAMBLE_BYTES, "a whole preamble is something");
            Verdict::Refused
        }
    }
}

/// All messages, and whether it ends in a fault.
fn read(bytes: &[u8], piece_bytes: usize) -> (Vec<Message>, bool) {
    let mut frames = Frames::new(REQUEST_LIMIT_BYTES);
    let mut came = Vec::new();
    for piece in bytes.chunks(piece_bytes.max(1)) {
        frames.take(piece);
        loop {
            match frames.next_message() {
                Ok(Some(message)) => came.push(message),
                Ok(None) => break,
                Err(_) => return (came, true),
            }
        }
    }
    (came, false)
}

fn messages(bytes: &[u8], piece_bytes: usize) -> Verdict {
    let (whole, is_fault) = read(bytes, bytes.len());
    assert_eq!(read(bytes, piece_bytes), (whole.clone(), is_fault));
    let mut said = Vec::new();
    // Results have fractions, which need not be the same to the last bit.
    let exact: Vec<_> = whole.iter().filter(|message| !matches!(message, Message::Result(_))).collect();
    exact.iter().for_each(|message| frame::encode(message, &mut said));
    let (again, is_again_a_fault) = read(&said, said.len());
    assert!(again.iter().eq(exact) && !is_again_a_fault, "{whole:?} was said again as {again:?}");
    if whole.is_empty() || is_fault { Verdict::Refused } else { Verdict::Taken }
}

fn greeting(bytes: &[u8]) -> Verdict {
    let secret = Secret::new(SECRET).expect("it is long enough");
    let mut greeting = Greeting::new(Some(&secret), CERTIFICATE, LISTENER_NONCE);
    let mut client_nonce = None;
    for message in read(bytes, bytes.len()).0 {
        if let (Message::Hello { nonce, .. }, None) = (&message, client_nonce) {
            client_nonce = Some(nonce.0);
        }
        match greeting.take(&message) {
            Step::Say(_) => {}
            Step::Refuse(_) => return Verdict::Refused,
            Step::Welcome(_) => {
                let client_nonce = client_nonce.expect("it has said hello");
                let bond = Bond {
                    client_nonce: &client_nonce,
                    listener_nonce: &LISTENER_NONCE,
                    certificate: CERTIFICATE,
                };
                let proof = Some(Hexadecimal(secret.prove(Prover::Client, bond)));
                assert_eq!(message, Message::Proof { proof });
                return Verdict::Taken;
            }
        }
    }
    Verdict::Refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_stream::{
        control::message::PROTOCOL_VERSION,
        plan::{Amount, Cipher, Direction, Reception, StreamEngine, Version, ZeroCopySend},
    };
    use std::{fs, path::Path};

    fn framed(kind: u8, messages: &[Message]) -> Vec<u8> {
        let mut bytes = vec![kind];
        messages.iter().for_each(|message| frame::encode(message, &mut bytes));
        bytes
    }

    /// The seeds that are made of messages are what this version says. `WRITE_SEEDS=yes` writes them.
    #[test]
    fn the_seeds_are_of_this_version() {
        let nonce = Hexadecimal([1; 32]);
        let hello = Message::Hello { version: PROTOCOL_VERSION, nonce };
        let secret = Secret::new(SECRET).unwrap();
        let bond = Bond { client_nonce: &nonce.0, listener_nonce: &LISTENER_NONCE, certificate: CERTIFICATE };
        let proof = Message::Proof { proof: Some(Hexadecimal(secret.prove(Prover::Client, bond))) };
        let request = linerate_stream::control::message::Request {
            streams: 8,
            direction: Direction::Both,
            engine: StreamEngine::User,
            receive_engine: StreamEngine::Kernel,
            zero_copy_send: Some(ZeroCopySend::MsgZerocopy),
            reception: Reception::Mapped,
            version: Version::Tls13,
            key_records: Some(1000),
            cipher: Some(Cipher::Aes256Gcm),
            io_bytes: 131_072,
            socket_buffer_bytes: Some(65_536),
            amount: Amount::Milliseconds(10_000),
            rate_bits: Some(1_000_000),
            congestion: Some("cubic".to_owned()),
            verify_seed: Some(7),
        };
        let run = Message::Run(request);
        let in_a_run =
            [Message::Start {}, Message::Alive {}, Message::Stop {}, Message::Result(Box::default())];
        let stream = [&[0][..], &preamble(&[9; 16])].concat();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds/stream_control");
        for (name, bytes) in [
            ("stream", stream),
            ("control", vec![0, 22, 3, 1, 0, 5]),
            ("greeting", framed(2, &[hello.clone(), proof.clone()])),
            ("proof-first", framed(2, &[proof.clone(), hello.clone()])),
            ("session", framed(4, &[hello, proof, run.clone()])),
            ("request", framed(1, &[run])),
            ("run", framed(31, &in_a_run)),
        ] {
            if std::env::var_os("WRITE_SEEDS").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join(name), &bytes).unwrap();
            }
            assert_eq!(fs::read(folder.join(name)).unwrap(), bytes, "{name}");
        }
    }
}
