//! Replies in a stream of bytes. Of a READ's the file's bytes are handed on as they come; every other reply is gathered.
//!
//! ```text
//! +------+--------+-----------+----------+-------+------------------+---------+
//! | mark | RPC    | COMPOUND  | SEQUENCE | PUTFH | READ: eof, count | bytes,  |
//! |      | 24     | 12        | 44       | 8     | 16               | padding |
//! +------+--------+-----------+----------+-------+------------------+---------+
//! ```
//! The mark is the header of a fragment (RFC 5531 section 11), and may stand in between, too.

use linerate_rpc::xdr::Reader;

use super::{call, status::OK};
use crate::response_fault::ResponseFault;

/// What precedes a file's bytes in the reply to a READ that succeeded, without the mark.
const READ_HEAD_BYTES: usize = 24 + 12 + 44 + 8 + 16;
/// The longest reply that is gathered.
const GATHERED_LIMIT_BYTES: usize = 64 << 10;
/// A fragment's header, and its bit for the last one.
const MARK_BYTES: usize = 4;
const LAST_FRAGMENT: u32 = 1 << 31;

/// What the head of a READ's reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadHead {
    pub(super) transaction: u32,
    pub(super) is_end: bool,
    pub(super) length_bytes: u32,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// More bytes are needed.
    Nothing,
    /// The reply to a READ begins: its bytes follow.
    ReadBegins(ReadHead),
    /// So many more of them.
    Bytes(&'a [u8]),
    /// All have come.
    ReadEnds,
    /// A whole reply of another kind, from the transaction's number on: [`Replies::gathered`].
    Reply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A reply's beginning, or all of it.
    Gathering,
    /// A file's bytes.
    Reading { left_bytes: u32, padding_bytes: u32 },
    /// What fills a file's bytes up to a multiple of four.
    Padding { left_bytes: u32 },
}

/// Finds replies.
#[derive(Debug)]
pub(super) struct Replies {
    state: State,
    mark: Vec<u8>,
    fragment_left_bytes: usize,
    is_last_fragment: bool,
    gathered: Vec<u8>,
    is_whole: bool,
}

impl Default for Replies {
    fn default() -> Self {
        Self {
            state: State::Gathering,
            mark: Vec::new(),
            fragment_left_bytes: 0,
            is_last_fragment: false,
            gathered: Vec::new(),
            is_whole: false,
        }
    }
}

impl Replies {
    /// The reply that was found whole last.
    pub(super) fn gathered(&self) -> &[u8] {
        &self.gathered
    }

    /// Takes from `bytes`: how many are done with, and what was found in them. To be called until it finds nothing.
    ///
    /// # Errors
    /// It is no reply.
    pub(super) fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Found<'a>), ResponseFault> {
        let mut consumed = 0;
        loop {
            if std::mem::take(&mut self.is_whole) {
                self.gathered.clear();
            }
            if let Some(found) = self.ended()? {
                return Ok((consumed, found));
            }
            let rest = &bytes[consumed..];
            if rest.is_empty() {
                return Ok((consumed, Found::Nothing));
            }
            if self.fragment_left_bytes == 0 {
                let wanted = rest.len().min(MARK_BYTES - self.mark.len());
                self.mark.extend_from_slice(&rest[..wanted]);
                consumed += wanted;
                if let Some(mark) = self.mark.first_chunk() {
                    let mark = u32::from_be_bytes(*mark);
                    self.mark.clear();
                    self.fragment_left_bytes = (mark & !LAST_FRAGMENT) as usize;
                    self.is_last_fragment = mark & LAST_FRAGMENT != 0;
                    if self.fragment_left_bytes == 0 && self.is_last_fragment {
                        return Err(ResponseFault("a reply of RPC without bytes"));
                    }
                }
                continue;
            }
            let room = match self.state {
                State::Gathering => match READ_HEAD_BYTES.saturating_sub(self.gathered.len()) {
                    0 => GATHERED_LIMIT_BYTES.saturating_sub(self.gathered.len()),
                    head => head,
                },
                State::Reading { left_bytes, .. } | State::Padding { left_bytes } => left_bytes as usize,
            };
            if room == 0 {
                return Err(ResponseFault("a reply of RPC is longer than its content"));
            }
            let taken = &rest[..rest.len().min(room).min(self.fragment_left_bytes)];
            consumed += taken.len();
            self.fragment_left_bytes -= taken.len();
            if let Some(found) = self.took(taken) {
                return Ok((consumed, found));
            }
        }
    }

    /// What is over with the bytes that have come.
    fn ended(&mut self) -> Result<Option<Found<'static>>, ResponseFault> {
        let is_record_over = self.fragment_left_bytes == 0 && self.is_last_fragment && self.mark.is_empty();
        match self.state {
            State::Reading { left_bytes: 0, padding_bytes } => {
                self.state = State::Padding { left_bytes: padding_bytes };
                self.ended()
            }
            State::Padding { left_bytes: 0 } if is_record_over => {
                self.state = State::Gathering;
                self.is_last_fragment = false;
                Ok(Some(Found::ReadEnds))
            }
            State::Reading { .. } | State::Padding { .. } if is_record_over => {
                Err(ResponseFault("a READ is shorter than it says"))
            }
            State::Gathering if is_record_over => {
                self.is_whole = true;
                self.is_last_fragment = false;
                Ok(Some(Found::Reply))
            }
            _ => Ok(None),
        }
    }

    fn took<'a>(&mut self, taken: &'a [u8]) -> Option<Found<'a>> {
        // At most what was left, which are 32 bits.
        let taken_bytes = taken.len() as u32;
        match &mut self.state {
            State::Gathering => {
                self.gathered.extend_from_slice(taken);
                if self.gathered.len() != READ_HEAD_BYTES {
                    return None;
                }
                let head = read_head(&self.gathered)?;
                self.gathered.clear();
                let padding_bytes = head.length_bytes.wrapping_neg() % 4;
                self.state = State::Reading { left_bytes: head.length_bytes, padding_bytes };
                Some(Found::ReadBegins(head))
            }
            State::Reading { left_bytes, .. } => {
                *left_bytes -= taken_bytes;
                Some(Found::Bytes(taken))
            }
            State::Padding { left_bytes } => {
                *left_bytes -= taken_bytes;
                None
            }
        }
    }
}

/// The head of the reply to a READ that succeeded, if that is what `bytes` are.
fn read_head(bytes: &[u8]) -> Option<ReadHead> {
    let mut reader = Reader::new(bytes);
    let transaction = reader.u32().ok()?;
    // A reply, accepted, with the verifier AUTH_NONE, and carried out; the compound succeeded, has no tag and three results.
    for expected in [1, 0, 0, 0, 0, OK, 0, 3, call::SEQUENCE, OK] {
        (reader.u32().ok()? == expected).then_some(())?;
    }
    // The session, and what it says of its slots.
    let _: [u8; 36] = reader.array().ok()?;
    for expected in [call::PUTFH, OK, call::READ, OK] {
        (reader.u32().ok()? == expected).then_some(())?;
    }
    Some(ReadHead { transaction, is_end: reader.boolean().ok()?, length_bytes: reader.u32().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    /// A READ's reply with this content, without a mark.
    fn read_reply(transaction: u32, is_end: bool, content: &[u8]) -> Vec<u8> {
        let mut reply = numbers(&[transaction, 1, 0, 0, 0, 0, 0, 0, 3, call::SEQUENCE, 0]);
        reply.extend([5; 36]);
        reply.extend(numbers(&[call::PUTFH, 0, call::READ, 0, is_end.into(), content.len() as u32]));
        reply.extend(content);
        reply.resize(reply.len().next_multiple_of(4), 0);
        reply
    }

    /// In fragments of so many bytes.
    fn record(payload: &[u8], fragment_bytes: usize) -> Vec<u8> {
        let mut record = Vec::new();
        let mut fragments = payload.chunks(fragment_bytes).peekable();
        while let Some(fragment) = fragments.next() {
            let last = if fragments.peek().is_none() { LAST_FRAGMENT } else { 0 };
            record.extend((fragment.len() as u32 | last).to_be_bytes());
            record.extend(fragment);
        }
        record
    }

    #[derive(Debug, PartialEq, Eq)]
    enum Seen {
        Read(ReadHead, Vec<u8>),
        Reply(Vec<u8>),
    }

    fn all(stream: &[u8], piece_bytes: usize) -> Result<Vec<Seen>, ResponseFault> {
        let (mut replies, mut seen, mut open) = (Replies::default(), Vec::new(), None);
        for mut piece in stream.chunks(piece_bytes) {
            loop {
                let (consumed, found) = replies.take(piece)?;
                piece = &piece[consumed..];
                match found {
                    Found::Nothing => break,
                    Found::ReadBegins(head) => open = Some((head, Vec::new())),
                    Found::Bytes(bytes) => open.as_mut().unwrap().1.extend_from_slice(bytes),
                    Found::ReadEnds => {
                        let (head, bytes) = open.take().unwrap();
                        seen.push(Seen::Read(head, bytes));
                    }
                    Found::Reply => seen.push(Seen::Reply(replies.gathered().to_vec())),
                }
            }
        }
        Ok(seen)
    }

    #[test]
    fn replies_are_the_same_however_they_are_cut() {
        let content: Vec<u8> = (0..301).map(|number| number as u8).collect();
        let other = numbers(&[77, 1, 0, 0, 0, 0, 10008, 0, 1, call::SEQUENCE, 10008]);
        let long = [numbers(&[78, 1, 0, 0, 0, 0, 0, 0, 5]), vec![3; 400]].concat();
        for fragment_bytes in [1, 3, 104, 105, 1000] {
            let stream: Vec<u8> = [
                read_reply(1, false, &content),
                other.clone(),
                read_reply(2, true, b""),
                long.clone(),
                read_reply(3, true, b"abcd"),
            ]
            .iter()
            .flat_map(|reply| record(reply, fragment_bytes))
            .collect();
            for piece_bytes in [1, 2, 7, 104, 500, stream.len()] {
                let head = |transaction, is_end, length_bytes| ReadHead { transaction, is_end, length_bytes };
                let expected = vec![
                    Seen::Read(head(1, false, 301), content.clone()),
                    Seen::Reply(other.clone()),
                    Seen::Read(head(2, true, 0), Vec::new()),
                    Seen::Reply(long.clone()),
                    Seen::Read(head(3, true, 4), b"abcd".to_vec()),
                ];
                assert_eq!(all(&stream, piece_bytes), Ok(expected), "{fragment_bytes} in {piece_bytes}");
            }
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        let read = read_reply(1, true, b"abcde");
        let cut = &read[..read.len() - 4];
        let extended = [read.clone(), vec![0; 4]].concat();
        for wrong in [
            record(cut, 1000),
            record(&extended, 1000),
            LAST_FRAGMENT.to_be_bytes().to_vec(),
            record(&vec![9; GATHERED_LIMIT_BYTES + 1], 1 << 20),
        ] {
            for piece_bytes in [3, wrong.len()] {
                assert!(all(&wrong, piece_bytes).is_err(), "{} bytes in {piece_bytes}", wrong.len());
            }
        }
    }
}
