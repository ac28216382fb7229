//! What TCP says of a connection's path (`TCP_INFO`).

pub use crate::system::tcp_info::of;

/// A connection as its TCP sees it at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpPath {
    /// The most payload of a segment that is sent, in bytes.
    pub segment_bytes: u32,
    /// The smoothed round trip time, in µs.
    pub round_trip_us: u32,
    /// Its mean deviation, in µs.
    pub round_trip_deviation_us: u32,
    /// The congestion window, in segments.
    pub congestion_window_segments: u32,
    /// Segments that were sent again, ever.
    pub retransmitted_segments: u32,
}
