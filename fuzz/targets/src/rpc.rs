//! Records and calls of RPC: how the bytes arrive must not matter, and what is taken out of a call was in it.

use crate::Verdict;
use linerate_rpc::{Call, Credential, GROUPS_LIMIT, MACHINE_LIMIT_BYTES, Records};

/// Less than a fuzzer's input, so that the limit is met.
const LIMIT_BYTES: usize = 1 << 10;

/// The first byte is how many bytes arrive at a time (zero: all at once); what follows is what the client sends.
///
/// # Panics
/// If records depend on how the bytes arrive, or a call holds what its record does not.
pub fn rpc(data: &[u8]) -> Verdict {
    let Some((&piece_bytes, stream)) = data.split_first() else { return Verdict::Refused };
    let whole = records(stream, stream.len().max(1));
    let piece_bytes = usize::from(piece_bytes);
    if piece_bytes > 0 {
        assert_eq!(whole, records(stream, piece_bytes), "in pieces of {piece_bytes}");
    }
    let (found, sound) = whole;
    let calls = found.iter().filter(|record| check(record)).count();
    if sound && calls > 0 { Verdict::Taken } else { Verdict::Refused }
}

/// Whether it is a call.
fn check(record: &[u8]) -> bool {
    assert!(record.len() <= LIMIT_BYTES);
    let Ok(call) = Call::parse(record) else { return false };
    assert!(record.ends_with(call.arguments.rest()));
    if let Credential::System(system) = call.credential {
        assert!(system.groups.len() <= GROUPS_LIMIT && system.machine.len() <= MACHINE_LIMIT_BYTES);
    }
    true
}

/// The records of a stream, and whether it could be followed to its end.
fn records(stream: &[u8], piece_bytes: usize) -> (Vec<Vec<u8>>, bool) {
    let mut records = Records::new(LIMIT_BYTES);
    let mut found = Vec::new();
    for mut piece in stream.chunks(piece_bytes) {
        while !piece.is_empty() {
            let Ok(taken) = records.take(piece) else { return (found, false) };
            assert!(taken.consumed_bytes > 0 && taken.consumed_bytes <= piece.len());
            assert!(taken.record.is_some() || taken.consumed_bytes == piece.len());
            found.extend(taken.record.map(<[u8]>::to_vec));
            piece = piece.get(taken.consumed_bytes..).unwrap_or_default();
        }
    }
    (found, true)
}
