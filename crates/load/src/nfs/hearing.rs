//! A conversation without a socket: what the client makes of a server's bytes, for the fuzzer, which cuts them differently.

use super::{
    call::Caller,
    conversation::{Conversation, Event, Read, Subject},
};

/// READs of a hearing. A server that answers all of them is not asked for more.
const READS_LIMIT: u64 = 32;
/// How much each asks for.
const BLOCK_BYTES: u32 = 1000;

/// What a client made of a server's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// A file was found.
    pub is_ready: bool,
    /// Where in it READs' bytes stand, and what came of them.
    pub reads: Vec<(u64, Vec<u8>)>,
    /// READs that are over.
    pub ended: u64,
    /// READs that the server refused, by its status.
    pub refused: Vec<u32>,
    /// What ended the conversation, if anything did.
    pub fault: Option<String>,
}

/// Has a client that asks for a file in the clear take `stream`, in pieces of so many bytes.
#[must_use]
pub fn hear(stream: &[u8], piece_bytes: usize) -> Heard {
    let mut conversation = Conversation::new(Subject {
        caller: Caller { minor_version: 2, user: 0, group: 0 },
        owner: "hearing".to_owned(),
        verifier: 1,
        path: vec!["file".to_owned()],
        block_bytes: BLOCK_BYTES,
        depth: 2,
    });
    let (mut heard, mut outgoing, mut asked) = (Heard::default(), Vec::new(), 0);
    conversation.begin(&mut outgoing);
    for piece in stream.chunks(piece_bytes.max(1)) {
        if let Err(fault) = take(&mut conversation, piece, &mut heard, &mut outgoing, &mut asked) {
            heard.fault = Some(fault);
            break;
        }
        outgoing.clear();
    }
    heard
}

fn take(
    conversation: &mut Conversation<()>,
    mut piece: &[u8],
    heard: &mut Heard,
    outgoing: &mut Vec<u8>,
    asked: &mut u64,
) -> Result<(), String> {
    loop {
        let (taken, event) = conversation.take(piece, outgoing).map_err(|fault| fault.kind())?;
        piece = &piece[taken..];
        match event {
            Event::Nothing | Event::StartTls => return Ok(()),
            Event::Ready => heard.is_ready = true,
            Event::Begins(read) => heard.reads.push((read.offset, Vec::new())),
            Event::Bytes { bytes, .. } => {
                if let Some((_, content)) = heard.reads.last_mut() {
                    content.extend_from_slice(bytes);
                }
            }
            Event::Ends { .. } => heard.ended += 1,
            Event::Refused { status, .. } => heard.refused.push(status),
        }
        while conversation.has_room() && *asked < READS_LIMIT {
            let offset = *asked * u64::from(BLOCK_BYTES);
            conversation.read(Read { offset, count: BLOCK_BYTES, tag: () }, outgoing);
            *asked += 1;
        }
    }
}
