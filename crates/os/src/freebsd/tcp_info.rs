//! What TCP says of a connection's path, and the bytes of `struct tcp_info` (netinet/tcp.h) that say it.

use super::kernel_tls::layout::{
    TCP_INFO_BYTES, TCPI_RCV_MSS, TCPI_RTT, TCPI_RTTVAR, TCPI_SND_CWND, TCPI_SND_MAX, TCPI_SND_MSS,
    TCPI_SND_REXMITPACK, TCPI_SND_UNA,
};
use crate::tcp_info::TcpPath;
use std::os::fd::{AsFd, AsRawFd};

/// `struct tcp_info` of one moment.
pub(super) struct Info([u8; TCP_INFO_BYTES]);

impl Info {
    /// `None` for what is no TCP connection.
    pub(super) fn of(socket: &impl AsFd) -> Option<Self> {
        let mut info = [0; TCP_INFO_BYTES];
        let mut length = TCP_INFO_BYTES as libc::socklen_t;
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
        (result == 0 && length as usize > TCPI_SND_MAX + 4).then_some(Self(info))
    }

    fn field(&self, offset: usize) -> u32 {
        self.0.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    /// Bytes of data in the segments that arrive.
    pub(super) fn received_segment_bytes(&self) -> u32 {
        self.field(TCPI_RCV_MSS)
    }

    /// Bytes that were sent, and that the peer has not acknowledged.
    pub(super) fn in_flight_bytes(&self) -> u32 {
        self.field(TCPI_SND_MAX).wrapping_sub(self.field(TCPI_SND_UNA))
    }

    /// The sequence number of the first byte that the peer has not acknowledged.
    pub(super) fn first_unacknowledged(&self) -> u32 {
        self.field(TCPI_SND_UNA)
    }
}

/// What TCP says of this connection; `None` where it does not tell.
#[must_use]
pub fn of(socket: &impl AsFd) -> Option<TcpPath> {
    let info = Info::of(socket)?;
    let segment_bytes = info.field(TCPI_SND_MSS);
    Some(TcpPath {
        segment_bytes,
        round_trip_us: info.field(TCPI_RTT),
        round_trip_deviation_us: info.field(TCPI_RTTVAR),
        // FreeBSD has its window in bytes.
        congestion_window_segments: info.field(TCPI_SND_CWND) / segment_bytes.max(1),
        retransmitted_segments: info.field(TCPI_SND_REXMITPACK),
    })
}
