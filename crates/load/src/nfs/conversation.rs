//! What a connection asks, and what it is told: from the first call to one READ after the other. No I/O.

use linerate_rpc::xdr::{Reader, XdrError};

use super::{
    call::{self, Caller, Sequence},
    replies::{Found, Replies},
    status,
};
use crate::{fault::Fault, response_fault::ResponseFault};

/// The longest file handle (`NFS4_FHSIZE`).
const HANDLE_LIMIT_BYTES: usize = 128;
/// The longest name of a server, or of its scope (`NFS4_OPAQUE_LIMIT`).
const OPAQUE_LIMIT_BYTES: usize = 1024;
/// `NF4REG`
const REGULAR_FILE: u32 = 1;

/// What a conversation is about.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) caller: Caller,
    /// Another one for each client that the server is to tell from others.
    pub(super) owner: String,
    /// Another one for each start of that client.
    pub(super) verifier: u64,
    /// Names from the server's root to the file.
    pub(super) path: Vec<String>,
    /// The most that a READ asks for.
    pub(super) block_bytes: u32,
    /// READs under way at a time.
    pub(super) depth: u32,
}

/// The file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundFile {
    handle: Vec<u8>,
    pub(super) length_bytes: u64,
}

/// A READ that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read<Tag> {
    pub(super) offset: u64,
    pub(super) count: u32,
    pub(super) tag: Tag,
}

/// What came.
#[derive(Debug)]
pub(super) enum Event<'a, Tag> {
    /// More bytes are needed.
    Nothing,
    /// The handshake may begin. What follows in the stream is its.
    StartTls,
    /// READs may be sent.
    Ready,
    /// The reply to a READ begins.
    Begins(Read<Tag>),
    /// Bytes of the READ that began last, and where in the file they stand.
    Bytes { offset: u64, bytes: &'a [u8] },
    /// That READ is over; whether it ended where the file does.
    Ends { read: Read<Tag>, length_bytes: u32, is_end: bool },
    /// The server gave no bytes, and why, by its number.
    Refused { read: Read<Tag>, status: u32 },
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was asked yet.
    Silent,
    AsksForTls,
    AsksForClient,
    AsksForSession,
    Reclaims,
    LooksUp,
    Reads(FoundFile),
}

/// A place of the session.
#[derive(Debug)]
struct Slot<Tag> {
    number: u32,
    read: Option<Read<Tag>>,
}

/// A conversation. READs carry a `Tag` of the program's.
#[derive(Debug)]
pub(super) struct Conversation<Tag> {
    subject: Subject,
    stage: Stage,
    session: [u8; 16],
    replies: Replies,
    slots: Vec<Slot<Tag>>,
    idle: Vec<u32>,
    current: Option<Current>,
}

/// The READ whose bytes are coming.
#[derive(Clone, Copy, Debug)]
struct Current {
    slot: u32,
    come_bytes: u32,
    length_bytes: u32,
    is_end: bool,
}

/// What the setting up got, for which there is no word in the report.
fn odd(_: XdrError) -> Fault {
    Fault::Response(ResponseFault("a reply that cannot be read"))
}

impl<Tag: Copy> Conversation<Tag> {
    pub(super) fn new(subject: Subject) -> Self {
        Self {
            subject,
            stage: Stage::Silent,
            session: [0; 16],
            replies: Replies::default(),
            slots: Vec::new(),
            idle: Vec::new(),
            current: None,
        }
    }

    /// The file, once it is found.
    pub(super) fn file(&self) -> Option<&FoundFile> {
        match &self.stage {
            Stage::Reads(file) => Some(file),
            _ => None,
        }
    }

    /// What is waited for, in a word.
    pub(super) fn stage(&self) -> &'static str {
        match self.stage {
            Stage::Silent | Stage::AsksForTls => "STARTTLS",
            Stage::AsksForClient => "EXCHANGE_ID",
            Stage::AsksForSession => "CREATE_SESSION",
            Stage::Reclaims => "RECLAIM_COMPLETE",
            Stage::LooksUp => "look-up",
            Stage::Reads(_) => "READ",
        }
    }

    /// READs under way.
    pub(super) fn under_way(&self) -> impl Iterator<Item = &Read<Tag>> {
        self.slots.iter().filter_map(|slot| slot.read.as_ref())
    }

    /// Bytes that are certain to come: the rest of the READ that is coming.
    pub(super) fn certain_bytes(&self) -> usize {
        self.current.map_or(0, |current| (current.length_bytes - current.come_bytes) as usize)
    }

    /// Asks for TLS; else, and when the handshake is over, [`Self::begin`] is what is said first.
    pub(super) fn ask_for_tls(&mut self, outgoing: &mut Vec<u8>) {
        self.stage = Stage::AsksForTls;
        call::ask_for_tls(self.setup_transaction(), outgoing);
    }

    pub(super) fn begin(&mut self, outgoing: &mut Vec<u8>) {
        self.stage = Stage::AsksForClient;
        let (verifier, owner) = (self.subject.verifier, self.subject.owner.as_str());
        call::exchange_id(self.setup_transaction(), &self.subject.caller, (verifier, owner), outgoing);
    }

    /// Transactions of READs are slots and numbers; those before have numbers that no slot has.
    fn setup_transaction(&self) -> u32 {
        u32::MAX
            - match self.stage {
                Stage::Silent | Stage::AsksForTls => 0,
                Stage::AsksForClient => 1,
                Stage::AsksForSession => 2,
                Stage::Reclaims => 3,
                Stage::LooksUp | Stage::Reads(_) => 4,
            }
    }

    /// Asks for bytes, if fewer READs are under way than may be.
    pub(super) fn read(&mut self, read: Read<Tag>, outgoing: &mut Vec<u8>) -> bool {
        let Stage::Reads(file) = &self.stage else { return false };
        let Some(slot) = self.idle.pop() else { return false };
        let highest_slot = self.slots.len() as u32 - 1;
        let place = &mut self.slots[slot as usize];
        place.number += 1;
        place.read = Some(read);
        let sequence = Sequence { session: self.session, slot, number: place.number, highest_slot };
        let arguments = (file.handle.as_slice(), read.offset, read.count);
        call::read(slot, &self.subject.caller, &sequence, arguments, outgoing);
        true
    }

    /// Whether another READ may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.file().is_some() && !self.idle.is_empty()
    }

    /// Takes what has come: how many of `bytes` are done with, and what they meant. To be called until that is nothing, or
    /// the handshake begins. What is to be sent is appended to `outgoing`.
    ///
    /// # Errors
    /// The server refused, or spoke no RPC.
    pub(super) fn take<'a>(
        &mut self,
        bytes: &'a [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(usize, Event<'a, Tag>), Fault> {
        let mut consumed = 0;
        loop {
            let (taken, found) = self.replies.take(&bytes[consumed..]).map_err(Fault::Response)?;
            consumed += taken;
            let event = match found {
                Found::Nothing => Event::Nothing,
                Found::ReadBegins(head) => {
                    let read = self.read_of(head.transaction)?;
                    if head.length_bytes > read.count {
                        return Err(Fault::Response(ResponseFault("more bytes than were asked for")));
                    }
                    self.current = Some(Current {
                        slot: head.transaction,
                        come_bytes: 0,
                        length_bytes: head.length_bytes,
                        is_end: head.is_end,
                    });
                    Event::Begins(read)
                }
                Found::Bytes(bytes) => {
                    let Some(current) = &mut self.current else { continue };
                    let (slot, before) = (current.slot, current.come_bytes);
                    current.come_bytes += bytes.len() as u32;
                    Event::Bytes { offset: self.read_of(slot)?.offset + u64::from(before), bytes }
                }
                Found::ReadEnds => {
                    let Some(Current { slot, length_bytes, is_end, .. }) = self.current.take() else {
                        continue;
                    };
                    Event::Ends { read: self.finish(slot)?, length_bytes, is_end }
                }
                Found::Reply => match self.take_reply(outgoing)? {
                    Some(event) => event,
                    None => continue,
                },
            };
            return Ok((consumed, event));
        }
    }

    fn read_of(&self, slot: u32) -> Result<Read<Tag>, Fault> {
        let read = self.slots.get(slot as usize).and_then(|slot| slot.read);
        read.ok_or(Fault::Response(ResponseFault("a reply that nobody waits for")))
    }

    fn finish(&mut self, slot: u32) -> Result<Read<Tag>, Fault> {
        let read = self.read_of(slot)?;
        self.slots[slot as usize].read = None;
        self.idle.push(slot);
        Ok(read)
    }

    /// A reply that is no file's bytes.
    fn take_reply(&mut self, outgoing: &mut Vec<u8>) -> Result<Option<Event<'static, Tag>>, Fault> {
        let reply = self.replies.gathered().to_vec();
        let mut reader = Reader::new(&reply);
        let transaction = reader.u32().map_err(odd)?;
        let (verifier, mut results) = accepted(reader)?;
        if self.stage == Stage::AsksForTls {
            return match verifier {
                b"STARTTLS" => Ok(Some(Event::StartTls)),
                _ => Err(Fault::Nfs("the server has no TLS: ask it in the clear".to_owned())),
            };
        }
        let status = results.u32().map_err(odd)?;
        results.opaque(OPAQUE_LIMIT_BYTES).map_err(odd)?;
        results.u32().map_err(odd)?;
        if matches!(self.stage, Stage::Reads(_)) {
            let read = self.finish(transaction)?;
            return match status {
                status::OK => Err(Fault::Response(ResponseFault("a READ that cannot be read"))),
                status => Ok(Some(Event::Refused { read, status })),
            };
        }
        if status != status::OK {
            return Err(Fault::Nfs(format!("{}: {}", self.stage(), status::name(status))));
        }
        self.go_on(results, outgoing)
    }

    /// What was asked before a READ can be sent has succeeded.
    fn go_on(
        &mut self,
        mut results: Reader<'_>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Option<Event<'static, Tag>>, Fault> {
        let caller = self.subject.caller;
        match self.stage {
            Stage::Silent | Stage::AsksForTls | Stage::Reads(_) => Ok(None),
            Stage::AsksForClient => {
                // The operation and its status.
                let _: [u8; 8] = results.array().map_err(odd)?;
                let client = (results.u64().map_err(odd)?, results.u32().map_err(odd)?);
                self.stage = Stage::AsksForSession;
                let room = (self.subject.block_bytes, self.subject.depth);
                call::create_session(self.setup_transaction(), &caller, client, room, outgoing);
                Ok(None)
            }
            Stage::AsksForSession => {
                let granted = created(&mut results).map_err(odd)?;
                self.session = granted.session;
                if granted.reply_bytes < self.subject.block_bytes.saturating_add(128) {
                    return Err(Fault::Nfs(format!(
                        "the server's replies have at most {} bytes: ask for smaller blocks",
                        granted.reply_bytes
                    )));
                }
                let slots = granted.slots.min(self.subject.depth);
                self.slots = (0..slots).map(|_| Slot { number: 0, read: None }).collect();
                self.idle = (1..slots).rev().collect();
                self.stage = Stage::Reclaims;
                let sequence = self.first_slot();
                call::reclaim_complete(self.setup_transaction(), &caller, &sequence, outgoing);
                Ok(None)
            }
            Stage::Reclaims => {
                self.stage = Stage::LooksUp;
                let sequence = self.first_slot();
                let transaction = self.setup_transaction();
                call::look_up(transaction, &caller, &sequence, &self.subject.path, outgoing);
                Ok(None)
            }
            Stage::LooksUp => {
                let (kind, file) = looked_up(results, self.subject.path.len()).map_err(odd)?;
                if kind != REGULAR_FILE {
                    return Err(Fault::Nfs("look-up: it is no regular file".to_owned()));
                }
                if file.length_bytes == 0 {
                    return Err(Fault::Nfs("look-up: the file is empty".to_owned()));
                }
                self.stage = Stage::Reads(file);
                self.idle.push(0);
                Ok(Some(Event::Ready))
            }
        }
    }

    /// The next call's place, while nothing else is under way.
    fn first_slot(&mut self) -> Sequence {
        let number = self.slots.first_mut().map_or(1, |slot| {
            slot.number += 1;
            slot.number
        });
        Sequence { session: self.session, slot: 0, number, highest_slot: 0 }
    }
}

/// The verifier and the results of a reply to a call that was carried out.
fn accepted(mut reader: Reader<'_>) -> Result<(&[u8], Reader<'_>), Fault> {
    let denied = |why: &str| Err(Fault::Nfs(format!("the call is denied: {why}")));
    if reader.u32().map_err(odd)? != 1 {
        return Err(Fault::Response(ResponseFault("no reply of RPC")));
    }
    if reader.u32().map_err(odd)? != 0 {
        let is_about_authentication = reader.u32().map_err(odd)? == 1;
        return match reader.u32().map_err(odd)? {
            5 if is_about_authentication => denied("AUTH_TOOWEAK: it needs TLS, or a client certificate"),
            number if is_about_authentication => denied(&format!("authentication error {number}")),
            _ => denied("another version of RPC"),
        };
    }
    reader.u32().map_err(odd)?;
    let verifier = reader.opaque(400).map_err(odd)?;
    match reader.u32().map_err(odd)? {
        0 => Ok((verifier, reader)),
        1 | 2 => denied("there is no NFS of version 4"),
        number => denied(&format!("accept_stat {number}")),
    }
}

/// What a session was given.
struct Granted {
    session: [u8; 16],
    reply_bytes: u32,
    slots: u32,
}

fn created(results: &mut Reader<'_>) -> Result<Granted, XdrError> {
    let _: [u8; 8] = results.array()?;
    let session = results.array()?;
    let (_sequence, _flags, _padding, _call_bytes) =
        (results.u32()?, results.u32()?, results.u32()?, results.u32()?);
    let (reply_bytes, _cached_bytes, _operations) = (results.u32()?, results.u32()?, results.u32()?);
    Ok(Granted { session, reply_bytes, slots: results.u32()?.max(1) })
}

/// The type of what was found at the end of so many look-ups, and the file.
fn looked_up(mut results: Reader<'_>, steps: usize) -> Result<(u32, FoundFile), XdrError> {
    // SEQUENCE's result; PUTROOTFH's and those of LOOKUP are an operation and a status each.
    let _: [u8; 44] = results.array()?;
    for _ in 0..=steps {
        let _: [u8; 8] = results.array()?;
    }
    let _: [u8; 8] = results.array()?;
    let handle = results.opaque(HANDLE_LIMIT_BYTES)?.to_vec();
    let _: [u8; 8] = results.array()?;
    for _ in 0..results.count(8)? {
        results.u32()?;
    }
    let mut values = Reader::new(results.opaque(64)?);
    Ok((values.u32()?, FoundFile { handle, length_bytes: values.u64()? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation() -> Conversation<()> {
        Conversation::new(Subject {
            caller: Caller { minor_version: 2, user: 0, group: 0 },
            owner: "test".to_owned(),
            verifier: 1,
            path: vec!["f".to_owned()],
            block_bytes: 4096,
            depth: 2,
        })
    }

    fn record(numbers: &[u32]) -> Vec<u8> {
        let mark = (numbers.len() as u32 * 4) | 1 << 31;
        std::iter::once(&mark).chain(numbers).flat_map(|number| number.to_be_bytes()).collect()
    }

    fn refused(begin: impl FnOnce(&mut Conversation<()>, &mut Vec<u8>), reply: &[u32]) -> String {
        let (mut conversation, mut outgoing) = (conversation(), Vec::new());
        begin(&mut conversation, &mut outgoing);
        assert!(!outgoing.is_empty());
        conversation.take(&record(reply), &mut outgoing).unwrap_err().kind()
    }

    #[test]
    fn what_a_server_refuses_is_said_in_words() {
        let asks = Conversation::<()>::begin;
        for (reply, words) in [
            (&[1, 1, 1, 1, 5][..], "AUTH_TOOWEAK"),
            (&[1, 1, 1, 0, 2, 2], "another version of RPC"),
            (&[1, 1, 0, 0, 0, 1], "no NFS of version 4"),
            (&[1, 1, 0, 0, 0, 0, 10021, 0, 0], "EXCHANGE_ID: NFS4ERR_MINOR_VERS_MISMATCH"),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0], "no reply of RPC"),
            (&[1, 1, 0, 0], "cannot be read"),
        ] {
            let kind = refused(asks, reply);
            assert!(kind.contains(words), "{reply:?}: {kind}");
        }
        let kind = refused(Conversation::<()>::ask_for_tls, &[1, 1, 0, 0, 0, 0]);
        assert!(kind.contains("no TLS"), "{kind}");
    }

    #[test]
    fn a_read_that_nobody_asked_for_is_a_fault() {
        let mut reply = vec![7, 1, 0, 0, 0, 0, 0, 0, 3, call::SEQUENCE, 0];
        reply.extend([0; 9]);
        reply.extend([call::PUTFH, 0, call::READ, 0, 1, 4, 0]);
        let mut conversation = conversation();
        let fault = conversation.take(&record(&reply), &mut Vec::new()).unwrap_err();
        assert!(fault.kind().contains("nobody waits for"), "{fault:?}");
    }
}
