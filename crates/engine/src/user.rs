//! The user engine: plaintext from the page cache or a mapping is sealed record by record into a batch that fits the
//! cache, and the batch leaves with one `send`.
//!
//! With `pread` the plaintext is read straight into its place in the batch and sealed there. From a kept mapping it is
//! sealed out of place: one copy less. Figures: docs/MEASUREMENTS.md.

use crate::{
    Piece, Pieces,
    source::{Change, Moment, Read, Source, in_memory, read},
};
use linerate_os::mapping::Mapping;
use linerate_record::{Channel, ContentType, KeySource, Layout, MAX_PLAINTEXT_BYTES, RecordError, Sealer};
use std::{
    io::{self, IoSliceMut},
    ops::Range,
};

/// Why a batch could not be made.
#[derive(Debug)]
pub enum SealFault {
    /// The file is not what it was when the response began.
    Changed(Change),
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The record layer refused: for a TLS 1.2 connection this is its end ([`RecordError::KeyExhausted`]).
    Record(RecordError),
}

impl From<Change> for SealFault {
    fn from(change: Change) -> Self {
        Self::Changed(change)
    }
}

impl From<RecordError> for SealFault {
    fn from(fault: RecordError) -> Self {
        Self::Record(fault)
    }
}

/// What became of an attempt to fill a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Sealed {
    /// The batch holds records: send them.
    Records,
    /// These bytes of the file are not in memory: fetch them where waiting is allowed, then try again.
    Cold(Range<u64>),
}

/// How large the records and batches of one connection are at the moment.
#[derive(Clone, Copy, Debug)]
pub struct Sizing {
    /// Plaintext bytes of a record, at most [`MAX_PLAINTEXT_BYTES`].
    pub record_bytes: usize,
    /// Bytes of a batch as it is sent, the records' own included.
    pub batch_bytes: usize,
    /// A record ends here, counted like `batch_bytes`, if one would go over it: what leaves in the first round trip can
    /// be opened when it arrives. 0 where there is no such place.
    pub opening_bytes: usize,
}

/// A worker's memory for sealed records. It is never grown while serving, and belongs to no connection.
pub struct Batch {
    bytes: Box<[u8]>,
    filled_bytes: usize,
    records: Vec<RecordPlan>,
    control: Vec<u8>,
    residency: Vec<u8>,
}

/// A record to be: its place in the batch and the plaintext it will carry.
#[derive(Clone, Copy, Debug)]
struct RecordPlan {
    place: usize,
    plaintext_bytes: usize,
}

/// Room for a key update in front of the records.
const CONTROL_BYTES: usize = 64;
/// A record is not cut to less than this for the sake of a batch's end: each costs its 22 or 29 bytes and a call.
const LEAST_CUT_RECORD_BYTES: usize = 1024;

impl Batch {
    /// Room for `batch_bytes` of plaintext in full records.
    pub fn new(batch_bytes: usize) -> Self {
        let records = batch_bytes.div_ceil(MAX_PLAINTEXT_BYTES).max(1) + 1;
        let layout = Layout::new(linerate_record::Version::Tls12, linerate_record::Aead::Aes128Gcm);
        let room = CONTROL_BYTES + records * layout.record_bytes(MAX_PLAINTEXT_BYTES);
        Self {
            bytes: vec![0; room].into_boxed_slice(),
            filled_bytes: 0,
            records: Vec::with_capacity(records),
            control: Vec::with_capacity(CONTROL_BYTES),
            residency: Vec::new(),
        }
    }

    /// The sealed records.
    pub fn sealed(&self) -> &[u8] {
        &self.bytes[..self.filled_bytes]
    }

    /// The sealed records in order: where each ends in [`sealed`](Self::sealed), and the plaintext bytes that it carries. A
    /// key update in front of them carries none.
    pub fn records(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let sealed = self.records.iter().filter(|record| record.place < self.filled_bytes);
        let ends = sealed.clone().skip(1).map(|next| next.place).chain([self.filled_bytes]);
        sealed.zip(ends).map(|(record, end)| (end, record.plaintext_bytes as u64))
    }

    /// Seals the next of `pieces`, as much as `sizing` and the key's limit allow, and strikes it off. A key update
    /// that is due goes first.
    pub fn seal<K: KeySource>(
        &mut self,
        channel: &mut Channel<K>,
        pieces: &mut Pieces<'_>,
        source: Option<Source<'_>>,
        sizing: Sizing,
    ) -> Result<Sealed, SealFault> {
        self.control.clear();
        channel.prepare_sending(&mut self.control)?;
        self.bytes[..self.control.len()].copy_from_slice(&self.control);
        self.filled_bytes = self.control.len();

        let sealer = channel.sealer()?;
        let mapping = source.as_ref().and_then(|source| source.mapping);
        // From a mapping full records are sealed where they lie. A head would push the file's bytes out of step with
        // the records, so that each first one had to be put together by a copy: it gets a record of its own, which
        // also lets the client read it before the rest has come.
        let first_record_bytes = match (mapping, pieces.upcoming(u64::MAX).next()) {
            (Some(_), Some(Piece::Bytes(bytes))) if pieces.remaining_bytes() > MAX_PLAINTEXT_BYTES as u64 => {
                bytes.len()
            }
            _ => MAX_PLAINTEXT_BYTES,
        };
        let planned_bytes = self.plan(sealer, pieces.remaining_bytes(), sizing, first_record_bytes);
        let ready = match (mapping, source) {
            (Some(mapping), Some(source)) => {
                self.take_from_mapping(sealer, pieces, planned_bytes, source, mapping)?
            }
            (_, source) => self.read_and_seal(sealer, pieces, planned_bytes, source)?,
        };
        match ready {
            Ready::Plaintext(bytes) => pieces.advance(bytes),
            // A key update alone is worth sending; the file's bytes come with the next batch.
            Ready::Cold(range) if self.filled_bytes == 0 => return Ok(Sealed::Cold(range)),
            Ready::Cold(_) => {}
        }
        Ok(Sealed::Records)
    }

    /// Lays out the records of this batch. Returns the plaintext bytes they will carry.
    fn plan(
        &mut self,
        sealer: &Sealer,
        available_bytes: u64,
        sizing: Sizing,
        first_record_bytes: usize,
    ) -> u64 {
        self.records.clear();
        let layout = sealer.layout();
        let record_bytes = sizing.record_bytes.clamp(1, MAX_PLAINTEXT_BYTES);
        let mut left = available_bytes;
        let mut place = self.filled_bytes;
        let batch_end = sizing.batch_bytes.min(self.bytes.len());
        let opening_end = sizing.opening_bytes.min(batch_end);
        let mut planned_bytes = 0;
        let mut limit_bytes = record_bytes.min(first_record_bytes.max(1));
        while left > 0 && (self.records.len() as u64) < sealer.remaining_records() {
            let mut plaintext_bytes = limit_bytes.min(usize::try_from(left).unwrap_or(limit_bytes));
            limit_bytes = record_bytes;
            let sealed_end = place + layout.record_bytes(plaintext_bytes);
            let opening_cut_bytes = plaintext_bytes.saturating_sub(sealed_end.saturating_sub(opening_end));
            let excess_bytes = sealed_end.saturating_sub(batch_end);
            if place < opening_end && opening_cut_bytes >= LEAST_CUT_RECORD_BYTES {
                plaintext_bytes = opening_cut_bytes;
            } else if excess_bytes > 0 {
                // The last record is cut so that the batch ends where it should, unless hardly anything were left.
                let cut_bytes = plaintext_bytes.saturating_sub(excess_bytes);
                if cut_bytes < LEAST_CUT_RECORD_BYTES && !self.records.is_empty() {
                    break;
                }
                plaintext_bytes = cut_bytes.max(1);
            }
            let end = place + layout.record_bytes(plaintext_bytes);
            self.records.push(RecordPlan { place, plaintext_bytes });
            place = end;
            left -= plaintext_bytes as u64;
            planned_bytes += plaintext_bytes as u64;
        }
        planned_bytes
    }

    /// Reads the plaintext into its places, then seals it there if the file was not changed meanwhile (INV-FILE-1).
    fn read_and_seal(
        &mut self,
        sealer: &mut Sealer,
        pieces: &Pieces<'_>,
        planned_bytes: u64,
        source: Option<Source<'_>>,
    ) -> Result<Ready, SealFault> {
        let prefix_bytes = sealer.layout().prefix_bytes();
        let (mut position, mut read_from) = (0, None);
        for piece in pieces.upcoming(planned_bytes) {
            match piece {
                Piece::Bytes(bytes) => {
                    self.copy_in(prefix_bytes, position, bytes);
                    position += bytes.len() as u64;
                }
                Piece::File(range) => {
                    let Some(source) = source else {
                        return Err(SealFault::Record(RecordError::Misuse("a file range without a file")));
                    };
                    let length = range.end - range.start;
                    read_from = Some(source);
                    let mut places = self.places(prefix_bytes, position, length);
                    match read(source.file, &mut places, range.start).map_err(SealFault::Unreadable)? {
                        Read::Whole => position += length,
                        Read::Truncated(bytes) => {
                            return Err(Change::CutShort(range.start + bytes as u64).into());
                        }
                        Read::Until(bytes) => {
                            position += bytes as u64;
                            if position == 0 {
                                return Ok(Ready::Cold(range));
                            }
                            break;
                        }
                    }
                }
            }
        }
        let moment = Moment::with_left(pieces.remaining_bytes() - position);
        if let Some(source) = read_from
            && let Some(change) = source.change(moment).map_err(SealFault::Unreadable)?
        {
            return Err(change.into());
        }
        self.cut_to(position);
        for index in 0..self.records.len() {
            let record = self.record(sealer.layout(), index);
            sealer.seal_in_place(ContentType::ApplicationData, &mut self.bytes[record.clone()])?;
            self.filled_bytes = record.end;
        }
        Ok(Ready::Plaintext(position))
    }

    /// Seals straight from the mapping (INV-COLD-1 before, INV-FILE-2 after); a record that also holds other bytes is put
    /// together in its place first.
    fn take_from_mapping(
        &mut self,
        sealer: &mut Sealer,
        pieces: &Pieces<'_>,
        planned_bytes: u64,
        source: Source<'_>,
        mapping: &Mapping,
    ) -> Result<Ready, SealFault> {
        let mut takes_file = false;
        for piece in pieces.upcoming(planned_bytes) {
            if let Piece::File(range) = piece {
                let resident = mapping.is_resident(source.file, in_memory(&range), &mut self.residency);
                if !resident.map_err(SealFault::Unreadable)? {
                    // Pages that a truncation took away never become resident: waiting for them would not end.
                    if let Some(change) = source.change(Moment::Midway).map_err(SealFault::Unreadable)? {
                        return Err(change.into());
                    }
                    return Ok(Ready::Cold(range));
                }
                takes_file = true;
            }
        }
        let layout = sealer.layout();
        let mut upcoming = pieces.upcoming(planned_bytes);
        let mut current = upcoming.next();
        for index in 0..self.records.len() {
            let record = self.record(layout, index);
            let plaintext_bytes = self.records[index].plaintext_bytes;
            if let Some(Piece::File(range)) = &mut current
                && range.end - range.start >= plaintext_bytes as u64
            {
                let end = range.start + plaintext_bytes as u64;
                let plaintext = mapping.bytes(in_memory(&(range.start..end)));
                if plaintext.len() != plaintext_bytes {
                    return Err(Change::CutShort(range.start).into());
                }
                sealer.seal_from(ContentType::ApplicationData, plaintext, &mut self.bytes[record.clone()])?;
                range.start = end;
                if range.start == range.end {
                    current = upcoming.next();
                }
            } else {
                let place = record.start + layout.prefix_bytes();
                assemble(
                    &mut self.bytes[place..place + plaintext_bytes],
                    &mut current,
                    &mut upcoming,
                    mapping,
                );
                sealer.seal_in_place(ContentType::ApplicationData, &mut self.bytes[record.clone()])?;
            }
            self.filled_bytes = record.end;
        }
        let moment = Moment::with_left(pieces.remaining_bytes() - planned_bytes);
        let change = if takes_file { change_beneath(mapping, &source, moment) } else { Ok(None) };
        if let Some(change) = change.map_err(SealFault::Unreadable)? {
            // What was sealed may be zeros where there was data, or of two files: nothing of it may leave.
            self.filled_bytes = 0;
            return Err(change.into());
        }
        Ok(Ready::Plaintext(planned_bytes))
    }

    fn record(&self, layout: Layout, index: usize) -> Range<usize> {
        let RecordPlan { place, plaintext_bytes } = self.records[index];
        place..place + layout.record_bytes(plaintext_bytes)
    }

    /// Copies `bytes` to where position `position` of the batch's plaintext stands.
    fn copy_in(&mut self, prefix_bytes: usize, position: u64, mut bytes: &[u8]) {
        for place in self.places(prefix_bytes, position, bytes.len() as u64).iter_mut() {
            let (now, later) = bytes.split_at(place.len());
            place.copy_from_slice(now);
            bytes = later;
        }
    }

    /// The places in the batch for `length` bytes of plaintext from `position` on.
    fn places(&mut self, prefix_bytes: usize, position: u64, length: u64) -> Vec<IoSliceMut<'_>> {
        let mut places = Vec::with_capacity(self.records.len());
        let mut rest = &mut self.bytes[..];
        let mut cut = 0;
        let mut record_start = 0;
        for record in &self.records {
            let record_end = record_start + record.plaintext_bytes as u64;
            let from = position.max(record_start);
            let to = (position + length).min(record_end);
            if from < to {
                let start = record.place + prefix_bytes + (from - record_start) as usize;
                let (_, behind) = std::mem::take(&mut rest).split_at_mut(start - cut);
                let (place, behind) = behind.split_at_mut((to - from) as usize);
                cut = start + place.len();
                places.push(IoSliceMut::new(place));
                rest = behind;
            }
            record_start = record_end;
        }
        places
    }

    /// Keeps of the planned records what `plaintext_bytes` fill; the last may get shorter.
    fn cut_to(&mut self, plaintext_bytes: u64) {
        let mut left = plaintext_bytes;
        for record in &mut self.records {
            record.plaintext_bytes = record.plaintext_bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
            left -= record.plaintext_bytes as u64;
        }
        self.records.retain(|record| record.plaintext_bytes > 0);
    }
}

enum Ready {
    /// So many bytes of plaintext were sealed.
    Plaintext(u64),
    /// Nothing was sealed: these bytes of the file are not in memory.
    Cold(Range<u64>),
}

/// What has become of a mapped file by the time its bytes were sealed: a page that was truncated away reads as zeros, which
/// the mapping notes; a page that was truncated in its middle does, too, which only the file's length tells (INV-FILE-2).
fn change_beneath(mapping: &Mapping, source: &Source<'_>, moment: Moment) -> io::Result<Option<Change>> {
    let change = source.change(moment)?;
    // It may have got its length back since.
    Ok(change.or(mapping.is_broken().then_some(Change::Overwritten)))
}

/// Fills `place` from the pieces that come next, of which one or more end in it.
fn assemble<'a>(
    mut place: &mut [u8],
    current: &mut Option<Piece<'a>>,
    upcoming: &mut impl Iterator<Item = Piece<'a>>,
    mapping: &Mapping,
) {
    while let Some(piece) = current {
        let bytes = match piece {
            Piece::Bytes(bytes) => bytes,
            Piece::File(range) => mapping.bytes(in_memory(range)),
        };
        let length = bytes.len().min(place.len());
        let (now, later) = std::mem::take(&mut place).split_at_mut(length);
        now.copy_from_slice(&bytes[..now.len()]);
        place = later;
        match piece {
            Piece::Bytes(bytes) => *bytes = &bytes[now.len()..],
            Piece::File(range) => range.start += now.len() as u64,
        }
        if piece.length_bytes() > 0 {
            break;
        }
        *current = upcoming.next();
    }
}

#[cfg(test)]
mod tests;
