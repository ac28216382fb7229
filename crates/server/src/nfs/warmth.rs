//! Whether what a reply sends is in memory. What is not is fetched beside the connection, so that other replies go on
//! (INV-COLD-1).

use super::call::Pieces;
use crate::workplace::FETCH_BYTES;
use linerate_engine::plain;
use linerate_export::OpenFile;
use linerate_nfs::Piece;
use std::{ops::Range, sync::Arc};

/// What to ask the disk for if a range of a file in `reply` is not in memory: from the first byte that is missing, and more
/// than the reply wants where the file is read in order.
pub(super) fn first_cold(reply: &Pieces) -> Option<(Arc<OpenFile>, Range<u64>)> {
    files(reply).find_map(|(file, range)| {
        // An error is found again, and told, where the bytes are read.
        let start = plain::first_cold(file.file(), range).ok().flatten()?;
        let asked = file.reading_order().missing(start..range.end, FETCH_BYTES);
        Some((Arc::clone(file), asked))
    })
}

/// What to ask the disk for behind `reply`, all of which is in memory.
pub(super) fn next_ahead(reply: &Pieces) -> Option<(Arc<OpenFile>, Range<u64>)> {
    files(reply).find_map(|(file, range)| {
        let next = file.reading_order().present(range, FETCH_BYTES)?;
        Some((Arc::clone(file), next))
    })
}

fn files(reply: &Pieces) -> impl Iterator<Item = (&Arc<OpenFile>, &Range<u64>)> {
    reply.iter().filter_map(|piece| match piece {
        Piece::File { file, range } => Some((file, range)),
        Piece::Bytes(_) => None,
    })
}
