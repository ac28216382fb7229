//! Calls, byte by byte as RFC 5531 has them, and damaged.

use fastrand::Rng;
use linerate_rpc::{
    Call, Credential, GROUPS_LIMIT, NoCall, SystemCredential,
    reply::{AuthenticationError, Denial},
};

/// xid, CALL, RPC version 2, program 100003 version 4, procedure 1.
const HEADER: &[u8] = b"\xaa\xbb\xcc\xdd\0\0\0\0\0\0\0\x02\0\x01\x86\xa3\0\0\0\x04\0\0\0\x01";
const NONE: &[u8] = b"\0\0\0\0\0\0\0\0";
/// AUTH_SYS, 40 bytes: stamp 1, machine "box.a", user 1000, group 100, groups 4 and 24.
const SYSTEM: &[u8] = b"\0\0\0\x01\0\0\0\x24\0\0\0\x01\0\0\0\x05box.a\0\0\0\0\0\x03\xe8\0\0\0\x64\0\0\0\x02\0\0\0\x04\0\0\0\x18";

fn record(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn denied(denial: Denial) -> NoCall {
    NoCall::Denied { transaction: 0xaabb_ccdd, denial }
}

const BAD_CREDENTIAL: Denial = Denial::Authentication(AuthenticationError::BadCredential);
const BAD_VERIFIER: Denial = Denial::Authentication(AuthenticationError::BadVerifier);

#[test]
fn a_call_is_read_as_the_rfc_has_it() {
    let bytes = record(&[HEADER, SYSTEM, NONE, b"arguments..."]);
    let call = Call::parse(&bytes).unwrap();
    assert_eq!((call.transaction, call.program, call.version, call.procedure), (0xaabb_ccdd, 100_003, 4, 1));
    let credential =
        SystemCredential { stamp: 1, machine: b"box.a", user: 1000, group: 100, groups: vec![4, 24] };
    assert_eq!(call.credential, Credential::System(credential));
    assert_eq!(call.arguments.rest(), b"arguments...");

    let bytes = record(&[HEADER, NONE, NONE]);
    assert_eq!(Call::parse(&bytes).unwrap().credential, Credential::None);
    // RFC 9289 section 4.1: flavour 7, no body, verifier AUTH_NONE.
    let bytes = record(&[HEADER, b"\0\0\0\x07\0\0\0\0", NONE]);
    assert_eq!(Call::parse(&bytes).unwrap().credential, Credential::Tls);
}

#[test]
fn what_is_refused_is_refused_with_its_reason() {
    let mut other_version = HEADER.to_vec();
    other_version[11] = 3;
    let mut a_reply = HEADER.to_vec();
    a_reply[7] = 1;
    for (bytes, expected) in [
        (record(&[&other_version, NONE, NONE]), denied(Denial::RpcVersion)),
        (record(&[&other_version]), denied(Denial::RpcVersion)),
        (record(&[&a_reply, NONE, NONE]), NoCall::Malformed),
        // RPCSEC_GSS, AUTH_SHORT, and none of RPC's.
        (record(&[HEADER, b"\0\0\0\x06\0\0\0\0", NONE]), denied(BAD_CREDENTIAL)),
        (record(&[HEADER, b"\0\0\0\x02\0\0\0\x04abcd", NONE]), denied(BAD_CREDENTIAL)),
        (record(&[HEADER, b"\xff\xff\xff\xff\0\0\0\0", NONE]), denied(BAD_CREDENTIAL)),
        // AUTH_TLS with a body, and with a verifier.
        (record(&[HEADER, b"\0\0\0\x07\0\0\0\x01a\0\0\0", NONE]), denied(BAD_CREDENTIAL)),
        (record(&[HEADER, b"\0\0\0\x07\0\0\0\0", b"\0\0\0\x07\0\0\0\0"]), denied(BAD_VERIFIER)),
        (record(&[HEADER, SYSTEM, b"\0\0\0\x01\0\0\0\0"]), denied(BAD_VERIFIER)),
        (record(&[HEADER, SYSTEM, b"\0\0\0\0\0\0\0\x04abcd"]), denied(BAD_VERIFIER)),
        // AUTH_SYS that is cut short, that goes on, and whose machine reaches over its end.
        (record(&[HEADER, b"\0\0\0\x01\0\0\0\x04\0\0\0\x01", NONE]), denied(BAD_CREDENTIAL)),
        (record(&[HEADER, b"\0\0\0\x01\0\0\0\x18", &[0; 20], b"more", NONE]), denied(BAD_CREDENTIAL)),
        (
            record(&[HEADER, b"\0\0\0\x01\0\0\0\x14\0\0\0\x01\0\0\0\x09box.\0\0\0\0\0\0\0\0", NONE]),
            denied(BAD_CREDENTIAL),
        ),
        // A credential of more than 400 bytes.
        (record(&[HEADER, b"\0\0\0\0\0\0\x01\x91", &[0; 404], NONE]), NoCall::Malformed),
    ] {
        assert_eq!(Call::parse(&bytes).unwrap_err(), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn no_more_groups_than_the_rfc_has() {
    for (groups, taken) in [(0, true), (GROUPS_LIMIT, true), (GROUPS_LIMIT + 1, false)] {
        let length = (20 + 4 * groups) as u32;
        let count = (groups as u32).to_be_bytes();
        let body = record(&[&length.to_be_bytes(), &[0; 16], &count, &vec![0; 4 * groups]]);
        let bytes = record(&[HEADER, b"\0\0\0\x01", &body, NONE]);
        match Call::parse(&bytes) {
            Ok(call) => {
                let Credential::System(system) = call.credential else { panic!("it is AUTH_SYS") };
                assert!(taken && system.groups.len() == groups);
            }
            Err(error) => assert!(!taken && error == denied(BAD_CREDENTIAL)),
        }
    }
}

#[test]
fn a_call_that_is_cut_short_is_none() {
    let whole = record(&[HEADER, SYSTEM, NONE]);
    for length in 0..whole.len() {
        assert_eq!(Call::parse(&whole[..length]).unwrap_err(), NoCall::Malformed, "{length}");
    }
}

#[test]
fn damage_is_an_error_or_another_call() {
    let whole = record(&[HEADER, SYSTEM, NONE, b"arguments..."]);
    for seed in 0..20_000 {
        let mut rng = Rng::with_seed(seed);
        let mut bytes = whole.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..3) {
                0 => bytes[at] ^= 1 << rng.u8(..8),
                1 => bytes.truncate(at.max(1)),
                _ => bytes[at] = 0xff,
            }
        }
        if let Ok(call) = Call::parse(&bytes) {
            assert!(bytes.ends_with(call.arguments.rest()), "{seed}");
        }
    }
}
