//! What TCP says of a connection's path, and the bytes of `struct tcp_info` (netinet/tcp.h) that say it.

use crate::tcp_info::TcpPath;
use std::os::fd::{AsFd, AsRawFd};

/// Bytes of the structure in FreeBSD 14.
const LENGTH_BYTES: usize = 256;

/// Where its fields lie, all of them of four bytes.
const SEGMENT: usize = 16;
const RECEIVED_SEGMENT: usize = 20;
const ROUND_TRIP: usize = 68;
const DEVIATION: usize = 72;
const WINDOW: usize = 80;
const RETRANSMITTED: usize = 120;
const FIRST_UNACKNOWLEDGED: usize = 176;
const HIGHEST_SENT: usize = 180;

/// `struct tcp_info` of one moment.
pub(super) struct Info([u8; LENGTH_BYTES]);

impl Info {
    /// `None` for what is no TCP connection.
    pub(super) fn of(socket: &impl AsFd) -> Option<Self> {
        let mut info = [0; LENGTH_BYTES];
        let mut length = LENGTH_BYTES as libc::socklen_t;
        // SAFETY: `info` is `length` bytes that the kernel may fill in; it writes no more than `length`, and says in it how much
        // that was (`tcp_default_ctloutput`, netinet/tcp_usrreq.c).
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        (result == 0 && length as usize > HIGHEST_SENT + 4).then_some(Self(info))
    }

    fn field(&self, offset: usize) -> u32 {
        self.0.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    /// Bytes of data in the segments that arrive.
    pub(super) fn received_segment_bytes(&self) -> u32 {
        self.field(RECEIVED_SEGMENT)
    }

    /// Bytes that were sent, and that the peer has not acknowledged.
    pub(super) fn in_flight_bytes(&self) -> u32 {
        self.field(HIGHEST_SENT).wrapping_sub(self.field(FIRST_UNACKNOWLEDGED))
    }
}

/// What TCP says of this connection; `None` where it does not tell.
#[must_use]
pub fn of(socket: &impl AsFd) -> Option<TcpPath> {
    let info = Info::of(socket)?;
    let segment_bytes = info.field(SEGMENT);
    Some(TcpPath {
        segment_bytes,
        round_trip_us: info.field(ROUND_TRIP),
        round_trip_deviation_us: info.field(DEVIATION),
        // FreeBSD has its window in bytes.
        congestion_window_segments: info.field(WINDOW) / segment_bytes.max(1),
        retransmitted_segments: info.field(RETRANSMITTED),
    })
}
