//! Whether what a reply sends is in memory. What is not is fetched beside the connection, so that other replies go on
//! (INV-COLD-1).

use super::call::Pieces;
use linerate_export::OpenFile;
use linerate_nfs::Piece;
use linerate_os::file::{ResidentRead, read_resident};
use std::{io::IoSliceMut, ops::Range, sync::Arc};

/// Pages are probed this far apart: the kernel reads ahead in runs at least as long.
const PROBE_STEP_BYTES: u64 = 128 * 1024;

/// The first range of a file in `reply` that is not in memory as a whole, from its first byte that is not.
pub(super) fn first_cold(reply: &Pieces) -> Option<(Arc<OpenFile>, Range<u64>)> {
    reply.iter().find_map(|piece| match piece {
        Piece::File { file, range } => {
            let start = first_missing(file, range)?;
            Some((Arc::clone(file), start..range.end))
        }
        Piece::Bytes(_) => None,
    })
}

fn first_missing(file: &OpenFile, range: &Range<u64>) -> Option<u64> {
    let mut position = range.start;
    while position < range.end {
        let mut probe = [0];
        let found = read_resident(file.file(), &mut [IoSliceMut::new(&mut probe)], position);
        // An error is found again, and told, where the bytes are read.
        if matches!(found, Ok(ResidentRead::WouldWait)) {
            return Some(position);
        }
        position = (position / PROBE_STEP_BYTES + 1) * PROBE_STEP_BYTES;
    }
    None
}
