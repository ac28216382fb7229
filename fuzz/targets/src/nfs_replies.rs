//! What an NFS server answers the load client: it means the same however it is cut.

use crate::Verdict;
use linerate_load::nfs::hear;

/// The first byte says in pieces of how many bytes the server's stream, which follows, is taken the second time.
///
/// # Panics
/// If it makes a difference, or a READ brings more than was asked for.
pub fn nfs_replies(data: &[u8]) -> Verdict {
    let Some((&piece_bytes, stream)) = data.split_first() else { return Verdict::Refused };
    let whole = hear(stream, stream.len());
    assert_eq!(whole, hear(stream, usize::from(piece_bytes)), "in pieces of {piece_bytes}");
    assert!(whole.reads.iter().all(|(offset, content)| offset % 1000 == 0 && content.len() <= 1000));
    assert!(whole.is_ready || whole.reads.is_empty() && whole.refused.is_empty());
    if whole.is_ready && whole.fault.is_none() { Verdict::Taken } else { Verdict::Refused }
}
