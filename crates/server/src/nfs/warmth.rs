//! Whether what a reply sends is in memory. What is not is fetched beside the connection, so that other replies go on
//! (INV-COLD-1).

use super::call::Pieces;
use linerate_engine::plain;
use linerate_export::OpenFile;
use linerate_nfs::Piece;
use std::{ops::Range, sync::Arc};

/// The first range of a file in `reply` that is not in memory as a whole, from its first byte that is not.
pub(super) fn first_cold(reply: &Pieces) -> Option<(Arc<OpenFile>, Range<u64>)> {
    reply.iter().find_map(|piece| match piece {
        Piece::File { file, range } => {
            // An error is found again, and told, where the bytes are read.
            let start = plain::first_cold(file.file(), range).ok().flatten()?;
            Some((Arc::clone(file), start..range.end))
        }
        Piece::Bytes(_) => None,
    })
}
