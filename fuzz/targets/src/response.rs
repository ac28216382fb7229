//! Responses, as the load client reads them: what arrives in one piece or in many must be the same response, or a server
//! could have bytes counted that it never sent, or have them taken for the next response.

use crate::Verdict;
use linerate_load::response::{Head, Piece, Response, ResponseFault};

/// The bytes are what a server sends: a response, and what stands behind it.
///
/// # Panics
/// If head, body or end differ when the bytes arrive one by one.
pub fn response(data: &[u8]) -> Verdict {
    let whole = read(data, data.len().max(1));
    let bytewise = read(data, 1);
    match (&whole, &bytewise) {
        (Ok(whole), Ok(bytewise)) => assert_eq!(whole, bytewise),
        (Err(_), Err(_)) => {}
        // The beginning of a line is not judged before its end has come.
        (Err(_), Ok(unjudged)) | (Ok(unjudged), Err(_)) => assert!(!unjudged.done, "{whole:?} {bytewise:?}"),
    }
    let Ok(found) = whole else { return Verdict::Refused };
    assert!(found.consumed <= data.len() && found.body.len() <= found.consumed);
    assert!(found.body.is_empty() || found.head.is_some(), "a body without a head");
    match found.head {
        Some(head) => {
            assert!(!(100..200).contains(&head.status), "an interim response is not the answer");
            Verdict::Taken
        }
        None => Verdict::Refused,
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Found {
    head: Option<Head>,
    body: Vec<u8>,
    consumed: usize,
    done: bool,
}

fn read(data: &[u8], piece_bytes: usize) -> Result<Found, ResponseFault> {
    let mut response = Response::new();
    let mut found = Found { head: None, body: Vec::new(), consumed: 0, done: false };
    for piece in data.chunks(piece_bytes) {
        let mut rest = piece;
        loop {
            let (taken, what) = response.next(rest)?;
            assert!(taken <= rest.len());
            match what {
                Piece::More => assert_eq!(taken, rest.len(), "it asks for more and leaves some"),
                Piece::Body(bytes) => found.body.extend_from_slice(bytes),
                Piece::Head | Piece::Done => {}
            }
            found.consumed += taken;
            rest = &rest[taken..];
            match what {
                Piece::More => break,
                Piece::Done => {
                    return Ok(Found { head: response.head().copied(), done: true, ..found });
                }
                Piece::Head | Piece::Body(_) => {}
            }
        }
    }
    found.head = response.head().copied();
    Ok(found)
}
