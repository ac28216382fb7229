//! Handshakes with a client that knows the rules, whose records are damaged, cut, repeated, left out and mixed with others
//! on their way.

use crate::{
    Verdict,
    client_hello::{acceptor, check_records},
};
use linerate_tls::{ClientHandshake, ConnectStep, Connector, FailureKind, Handshake, Step, TlsPolicy, Trust};
use std::sync::OnceLock;

/// More than any handshake needs.
const FLIGHTS: usize = 6;
const HEADER_BYTES: usize = 5;

/// The first byte: bit 0 is TLS 1.2, the rest how many bytes arrive at a time (zero: all at once). Then commands of five
/// bytes, each for a record that the client sends: what is done, the record's number, a place in two bytes, a value.
///
/// # Panics
/// If a handshake without damage fails, a failure is called one of ours, a failed handshake goes on, or something that is no
/// record is answered.
pub fn handshake(data: &[u8]) -> Verdict {
    let Some((&settings, commands)) = data.split_first() else { return Verdict::Refused };
    let (commands, _) = commands.as_chunks::<5>();
    let mut sent = 0;
    let mut to_server = Vec::new();
    let mut client = client(settings & 1 == 1, &mut to_server);
    let mut server = Handshake::new(acceptor());
    let (mut at_server, mut at_client) = (Vec::new(), Vec::new());
    for _ in 0..FLIGHTS {
        let flight = damaged(&to_server, &mut sent, commands);
        to_server.clear();
        let piece_bytes = if settings < 2 { flight.len().max(1) } else { usize::from(settings >> 1) };
        let mut to_client = Vec::new();
        for piece in flight.chunks(piece_bytes) {
            at_server.extend_from_slice(piece);
            match server.advance(&mut at_server, &mut to_client) {
                Ok(Step::NeedInput) => {}
                Ok(Step::Established(_)) => return Verdict::Taken,
                Err(failure) => {
                    assert!(!commands.is_empty(), "without damage: {failure}");
                    assert_ne!(
                        failure.kind(),
                        FailureKind::Internal,
                        "the peer caused a fault of ours: {failure}"
                    );
                    assert!(
                        server.advance(&mut at_server, &mut to_client).is_err(),
                        "it went on after {failure}"
                    );
                    check_records(&to_client);
                    return Verdict::Refused;
                }
            }
        }
        check_records(&to_client);
        at_client.extend_from_slice(&to_client);
        if to_client.is_empty() || !goes_on(&mut client, &mut at_client, &mut to_server) {
            break;
        }
    }
    assert!(!commands.is_empty(), "a handshake without damage has an end");
    Verdict::Refused
}

/// Lets the client answer. False where it has failed.
fn goes_on(client: &mut Option<ClientHandshake>, incoming: &mut Vec<u8>, outgoing: &mut Vec<u8>) -> bool {
    let Some(handshake) = client else { return false };
    match handshake.advance(incoming, outgoing) {
        Ok(ConnectStep::NeedInput) => true,
        // What it sends last is still to come to the server.
        Ok(ConnectStep::Connected(_)) => {
            *client = None;
            true
        }
        Err(_) => !outgoing.is_empty(),
    }
}

/// The records of a flight after the commands that are for them. `sent` counts records from the connection's first on.
fn damaged(flight: &[u8], sent: &mut u8, commands: &[[u8; 5]]) -> Vec<u8> {
    let (mut rest, mut damaged) = (flight, Vec::new());
    while let Some(&[_, _, _, high, low]) = rest.first_chunk() {
        let record_bytes = (HEADER_BYTES + usize::from(u16::from_be_bytes([high, low]))).min(rest.len());
        let (record, following) = rest.split_at(record_bytes);
        rest = following;
        let mut pieces = vec![record.to_vec()];
        for &[what, number, high, low, value] in commands {
            if number == *sent {
                command(&mut pieces, what % 6, u16::from_be_bytes([high, low]).into(), value);
            }
        }
        damaged.extend(pieces.concat());
        *sent = sent.wrapping_add(1);
    }
    damaged
}

/// Does one thing to a record; the last of `pieces` is the record or its rest.
fn command(pieces: &mut Vec<Vec<u8>>, what: u8, place: usize, value: u8) {
    let Some(last) = pieces.last_mut() else { return };
    let payload_bytes = last.len().saturating_sub(HEADER_BYTES);
    match what {
        0 if !last.is_empty() => {
            let at = place % last.len();
            last[at] ^= value;
        }
        1 if payload_bytes > 1 => {
            let rest = last.split_off(HEADER_BYTES + 1 + place % (payload_bytes - 1));
            let first = record(last[0], &last[HEADER_BYTES..]);
            let second = record(last[0], &rest);
            pieces.pop();
            pieces.extend([first, second]);
        }
        2 => {
            let at = pieces.len() - 1;
            pieces.insert(at, record(20 + value % 5, &vec![value; place % ((1 << 14) + 300)]));
        }
        3 => pieces.push(record(20 + value % 5, &vec![value; place % ((1 << 14) + 300)])),
        4 => drop(pieces.pop()),
        5 => {
            let again = last.clone();
            pieces.push(again);
        }
        _ => {}
    }
}

fn record(content_type: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    [&[content_type, 3, 3, high, low], payload].concat()
}

/// A client of one version, whose first flight is appended.
fn client(is_tls12: bool, outgoing: &mut Vec<u8>) -> Option<ClientHandshake> {
    static CONNECTORS: OnceLock<[Connector; 2]> = OnceLock::new();
    let connectors = CONNECTORS.get_or_init(|| {
        [false, true].map(|is_tls12| {
            let mut policy = TlsPolicy::default();
            policy
                .cipher_suites
                .retain(|suite| (suite.version() == linerate_record::Version::Tls12) == is_tls12);
            Connector::new(&policy, &Trust::Anyone).expect("a client")
        })
    });
    Some(
        ClientHandshake::start(&connectors[usize::from(is_tls12)], "localhost", outgoing)
            .expect("a first flight"),
    )
}
