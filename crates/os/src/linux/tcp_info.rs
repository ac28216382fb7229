//! What TCP says of a connection's path (`TCP_INFO`, include/uapi/linux/tcp.h).

use super::socket;
use crate::tcp_info::TcpPath;
use std::os::fd::AsFd;

/// What TCP says of this connection; `None` where it does not tell.
#[must_use]
pub fn of(socket: &impl AsFd) -> Option<TcpPath> {
    // Eight fields of one byte, then fields of four: these are their places among those.
    const SEGMENT: usize = 2;
    const ROUND_TRIP: usize = 15;
    const DEVIATION: usize = 16;
    const WINDOW: usize = 18;
    const RETRANSMITTED: usize = 23;
    const WORDS: usize = 2 + RETRANSMITTED / 2;
    let info = socket::tcp_info::<WORDS>(socket)?;
    let field = |place: usize| {
        let [a, b, c, d, e, f, g, h] = info[1 + place / 2].to_ne_bytes();
        u32::from_ne_bytes(if place.is_multiple_of(2) { [a, b, c, d] } else { [e, f, g, h] })
    };
    Some(TcpPath {
        segment_bytes: field(SEGMENT),
        round_trip_us: field(ROUND_TRIP),
        round_trip_deviation_us: field(DEVIATION),
        congestion_window_segments: field(WINDOW),
        retransmitted_segments: field(RETRANSMITTED),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Follows, connected_pair, segment_bytes, send};

    #[test]
    fn a_path_is_told_and_a_file_has_none() {
        let (ours, _theirs) = connected_pair(None).expect("loopback");
        send(&ours, b"something to measure a round trip with", Follows::Nothing).expect("room");
        let path = of(&ours).expect("Linux tells");
        assert_eq!(path.segment_bytes as usize, segment_bytes(&ours).expect("Linux tells"));
        assert!(path.congestion_window_segments >= 2, "{path:?}");
        assert_eq!(path.retransmitted_segments, 0);
        assert_eq!(of(&std::io::stdin()), None);
    }
}
