//! The user engine: plaintext from the page cache or a mapping is sealed record by record into a batch that fits the
//! cache, and the batch leaves with one `send`.
//!
//! With `pread` the plaintext is read straight into its place in the batch and sealed there. From a kept mapping it is
//! sealed out of place: one copy less. Figures: docs/MEASUREMENTS.md.

use crate::{
    Fault, FileRange, Queue,
    queue::Part,
    source::{Change, Moment, Read, in_memory, read},
};
use linerate_os::{mapping::Mapping, pages::Pages};
use linerate_record::{Channel, ContentType, KeySource, Layout, MAX_PLAINTEXT_BYTES, Sealer};
use std::{io::IoSliceMut, ops::Range};

/// What became of an attempt to fill a batch.
#[derive(Debug)]
pub enum Sealed {
    /// The batch holds records: send them.
    Records,
    /// These bytes of a file are not in memory: fetch them where waiting is allowed, then try again.
    Cold(FileRange),
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
    bytes: Pages,
    /// Bytes of it that are used: the rest fills the last page.
    room_bytes: usize,
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
        let layout = Layout::new(linerate_record::Version::Tls12, linerate_record::Cipher::Aes128Gcm);
        let room = CONTROL_BYTES + records * layout.record_bytes(MAX_PLAINTEXT_BYTES);
        Self {
            bytes: Pages::allocated(room),
            room_bytes: room,
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

    /// The memory that [`sealed`](Self::sealed) is the beginning of.
    pub(crate) fn memory(&self) -> &Pages {
        &self.bytes
    }

    /// The sealed records in order: where each ends in [`sealed`](Self::sealed), and the plaintext bytes that it carries. A
    /// key update in front of them carries none.
    pub fn records(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let sealed = self.records.iter().filter(|record| record.place < self.filled_bytes);
        let ends = sealed.clone().skip(1).map(|next| next.place).chain([self.filled_bytes]);
        sealed.zip(ends).map(|(record, end)| (end, record.plaintext_bytes as u64))
    }

    /// Seals what comes next in `queue`, as much as `sizing` and the key's limit allow, and strikes it off. A key update
    /// that is due goes first.
    ///
    /// # Errors
    /// The connection cannot go on; nothing of the batch may leave, and it is empty.
    pub fn seal<K: KeySource>(
        &mut self,
        channel: &mut Channel<K>,
        queue: &mut Queue,
        sizing: Sizing,
    ) -> Result<Sealed, Fault> {
        self.filled_bytes = 0;
        self.control.clear();
        channel.prepare_sending(&mut self.control)?;
        self.bytes[..self.control.len()].copy_from_slice(&self.control);
        let control_bytes = self.control.len();

        let sealer = channel.sealer()?;
        let planned_bytes = self.plan(sealer, control_bytes, queue, sizing);
        let prefix_bytes = sealer.layout().prefix_bytes();
        match self.fill(prefix_bytes, queue, planned_bytes)? {
            Filled::Plaintext(bytes) => {
                self.cut_to(bytes);
                self.seal_records(sealer, queue)?;
                // What was sealed may be zeros where there was data, or of two files: then nothing of it may leave.
                queue.check_files(bytes)?;
                queue.advance(bytes);
                self.filled_bytes = self.records.last().map_or(control_bytes, |last| {
                    last.place + sealer.layout().record_bytes(last.plaintext_bytes)
                });
            }
            Filled::Cold(range) if control_bytes == 0 => return Ok(Sealed::Cold(range)),
            // A key update alone is worth sending; the file's bytes come with the next batch.
            Filled::Cold(_) => {
                self.records.clear();
                self.filled_bytes = control_bytes;
            }
        }
        Ok(Sealed::Records)
    }

    /// Lays out the records of this batch, behind `control_bytes`. Returns the plaintext bytes they will carry.
    fn plan(&mut self, sealer: &Sealer, control_bytes: usize, queue: &Queue, sizing: Sizing) -> u64 {
        let available_bytes = queue.remaining_bytes();
        let first_record_bytes = first_record_bytes(queue);
        self.records.clear();
        let layout = sealer.layout();
        let record_bytes = sizing.record_bytes.clamp(1, MAX_PLAINTEXT_BYTES);
        let mut left = available_bytes;
        let mut place = control_bytes;
        let batch_end = sizing.batch_bytes.min(self.room_bytes);
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

    /// Puts the plaintext into its places, but for what is sealed straight from a mapping. The bytes of a mapping are in memory
    /// when they are touched (INV-COLD-1).
    fn fill(&mut self, prefix_bytes: usize, queue: &Queue, planned_bytes: u64) -> Result<Filled, Fault> {
        let mut position = 0;
        for part in queue.upcoming(planned_bytes) {
            let length_bytes = part.length_bytes();
            let part = match part {
                Part::Bytes(bytes) => {
                    self.copy_in_what_shares_a_record(prefix_bytes, position, length_bytes, |range| {
                        // A part of what is in memory: offsets fit.
                        Ok(&bytes[in_memory(&range)])
                    })?;
                    position += length_bytes;
                    continue;
                }
                Part::Pattern { pattern, range } => {
                    let mut offset = range.start;
                    for place in &mut self.places(prefix_bytes, position, length_bytes) {
                        pattern.fill(offset, place);
                        offset += place.len() as u64;
                    }
                    position += length_bytes;
                    continue;
                }
                Part::File(part) => part,
            };
            let there_bytes = if let Some(mapping) = part.source.mapping() {
                let range = in_memory(&part.range);
                let resident = mapping.is_resident(part.source.file(), range, &mut self.residency);
                if resident.map_err(Fault::Unreadable)? {
                    let start = part.range.start;
                    self.copy_in_what_shares_a_record(prefix_bytes, position, length_bytes, |range| {
                        mapped(mapping, start + range.start..start + range.end)
                    })?;
                    length_bytes
                } else {
                    // Pages that a truncation took away never become resident: waiting for them would not end.
                    let change = part.source.change(Moment::Midway).map_err(Fault::Unreadable)?;
                    change.map_or(Ok(0), |change| Err(Fault::Changed(change)))?
                }
            } else {
                let mut places = self.places(prefix_bytes, position, length_bytes);
                match read(part.source.file(), &mut places, part.range.start).map_err(Fault::Unreadable)? {
                    Read::Whole => length_bytes,
                    Read::Until(bytes) => bytes as u64,
                    Read::Truncated(bytes) => {
                        return Err(Change::CutShort(part.range.start + bytes as u64).into());
                    }
                }
            };
            position += there_bytes;
            if there_bytes < length_bytes {
                if position == 0 {
                    return Ok(Filled::Cold(part.behind(0)));
                }
                break;
            }
        }
        Ok(Filled::Plaintext(position))
    }

    /// Of a piece in memory, of `length_bytes` at `position` of the batch, copies what does not fill a record of its own.
    /// `bytes` gives a range of the piece.
    fn copy_in_what_shares_a_record<'a>(
        &mut self,
        prefix_bytes: usize,
        position: u64,
        length_bytes: u64,
        bytes: impl Fn(Range<u64>) -> Result<&'a [u8], Fault>,
    ) -> Result<(), Fault> {
        let end = position + length_bytes;
        let mut record_start = 0;
        for index in 0..self.records.len() {
            let record_end = record_start + self.records[index].plaintext_bytes as u64;
            let (from, to) = (position.max(record_start), end.min(record_end));
            let is_whole = position <= record_start && record_end <= end;
            if from < to && !is_whole {
                self.copy_in(prefix_bytes, from, bytes(from - position..to - position)?);
            }
            record_start = record_end;
        }
        Ok(())
    }

    /// Seals the records: from where the plaintext lies in memory, if one piece of it (bytes, a mapped file) fills the
    /// record; in its place elsewhere.
    fn seal_records(&mut self, sealer: &mut Sealer, queue: &Queue) -> Result<(), Fault> {
        let mut parts = queue.upcoming(u64::MAX).peekable();
        // Where the first of `parts` and the next record begin in the batch's plaintext.
        let (mut part_start, mut start) = (0, 0);
        for index in 0..self.records.len() {
            let record = self.record(sealer.layout(), index);
            let end = start + self.records[index].plaintext_bytes as u64;
            while let Some(part) = parts.next_if(|part| part_start + part.length_bytes() <= start) {
                part_start += part.length_bytes();
            }
            let filling = parts.peek().filter(|part| end <= part_start + part.length_bytes());
            let within = start.saturating_sub(part_start)..end.saturating_sub(part_start);
            let source = match filling {
                Some(Part::Bytes(bytes)) => Some(&bytes[in_memory(&within)]),
                Some(Part::File(part)) => match part.source.mapping() {
                    Some(mapping) => {
                        let offset = part.range.start;
                        Some(mapped(mapping, offset + within.start..offset + within.end)?)
                    }
                    None => None,
                },
                Some(Part::Pattern { .. }) | None => None,
            };
            let place = &mut self.bytes[record];
            match source {
                Some(plaintext) => sealer.seal_from(ContentType::ApplicationData, plaintext, place)?,
                None => sealer.seal_in_place(ContentType::ApplicationData, place)?,
            }
            start = end;
        }
        Ok(())
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

enum Filled {
    /// So many bytes of plaintext are there.
    Plaintext(u64),
    /// None is: these bytes of a file are not in memory.
    Cold(FileRange),
}

/// A range of a mapping, whole.
fn mapped(mapping: &Mapping, range: Range<u64>) -> Result<&[u8], Fault> {
    let bytes = mapping.bytes(in_memory(&range));
    if bytes.len() as u64 == range.end - range.start {
        Ok(bytes)
    } else {
        Err(Change::CutShort(range.start + bytes.len() as u64).into())
    }
}

/// How much the first record may carry. From a mapping full records are sealed where they lie. A head would push the
/// file's bytes out of step with the records, so that each first one had to be put together by a copy: it gets a record of
/// its own, which also lets the client read it before the rest has come.
fn first_record_bytes(queue: &Queue) -> usize {
    let mut parts = queue.upcoming(u64::MAX);
    match (parts.next(), parts.next()) {
        (Some(Part::Bytes(head)), Some(Part::File(part)))
            if part.source.mapping().is_some() && queue.remaining_bytes() > MAX_PLAINTEXT_BYTES as u64 =>
        {
            head.len()
        }
        _ => MAX_PLAINTEXT_BYTES,
    }
}

#[cfg(test)]
mod tests;
