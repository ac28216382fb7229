//! Wire bandwidth: what the bodies' bytes became on an Ethernet, by an interface's counters or by arithmetic.
//!
//! What an Ethernet carries for a frame is more than its driver counts: preamble (8 bytes), checksum (4) and the gap
//! before the next one (12). It is added, so that the figure can be held against the speed of the line.

use linerate_load::report::LoadReport;

use super::{Costs, network::InterfaceUse};
use crate::result::Reading;

/// Preamble, checksum and gap of a frame.
const FRAME_OVERHEAD_BYTES: f64 = 24.0;

/// Headers of Ethernet (14), IPv4 (20) and TCP with time stamps (32), as Linux uses them.
const HEADERS_BYTES: f64 = 66.0;

/// The greatest TCP segment on Ethernet with an MTU of 1500, IPv4 and time stamps.
const SEGMENT_BYTES: f64 = 1448.0;

/// Bits per second from the server, and how they are known.
pub(super) fn bandwidth(costs: &Costs, load: &[LoadReport]) -> (Reading<f64>, String) {
    match &costs.network.interface {
        Reading::Value(interface) => {
            let (bytes, source) = counted(interface, &costs.network.sent_segments);
            (per_second(bytes, costs.elapsed_s), source)
        }
        Reading::NotAvailable(reason) => {
            let gbit_s = load.iter().map(computed_gbit_s).sum::<Option<f64>>();
            let reading = gbit_s.map_or_else(
                || Reading::NotAvailable("the load client reported no bytes received".to_owned()),
                Reading::Value,
            );
            let source = format!(
                "computed for MSS {SEGMENT_BYTES} (Ethernet, MTU 1500, IPv4) from what the client received; {reason}"
            );
            (reading, source)
        }
    }
}

/// Bytes that an interface's counters stand for.
fn counted(interface: &InterfaceUse, sent_segments: &Reading<u64>) -> (f64, String) {
    let name = &interface.name;
    let (bytes, frames) = (interface.sent_bytes as f64, interface.sent_frames as f64);
    let plain = (
        bytes + frames * FRAME_OVERHEAD_BYTES,
        format!(
            "interface counters of {name}, and {FRAME_OVERHEAD_BYTES} bytes of preamble, checksum and gap for each frame"
        ),
    );
    // Virtual interfaces count a burst that they have not cut up as one frame. TCP counts what it would be cut into,
    // but for the whole namespace: usable where all of its traffic went this way.
    let Reading::Value(segments) = sent_segments else { return plain };
    let uncounted = *segments as f64 - frames;
    if uncounted <= 0.0 {
        return plain;
    }
    if interface.others_sent_bytes as f64 > bytes / 100.0 {
        let source = format!("{}; headers of segments in one burst may be counted once only", plain.1);
        return (plain.0, source);
    }
    let bytes = bytes + uncounted * HEADERS_BYTES + *segments as f64 * FRAME_OVERHEAD_BYTES;
    let source = format!(
        "interface counters of {name}, which counted {} frames for {segments} TCP segments: the other headers, and \
         {FRAME_OVERHEAD_BYTES} bytes of preamble, checksum and gap for each, are added",
        interface.sent_frames
    );
    (bytes, source)
}

fn computed_gbit_s(load: &LoadReport) -> Option<f64> {
    let payload = load.totals.received_bytes as f64;
    let bytes = payload + (payload / SEGMENT_BYTES).ceil() * (HEADERS_BYTES + FRAME_OVERHEAD_BYTES);
    (payload > 0.0 && load.measured_s > 0.0).then(|| bytes * 8.0 / 1e9 / load.measured_s)
}

fn per_second(bytes: f64, elapsed_s: f64) -> Reading<f64> {
    if elapsed_s > 0.0 {
        Reading::Value(bytes * 8.0 / 1e9 / elapsed_s)
    } else {
        Reading::NotAvailable("no time passed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(sent_bytes: u64, sent_frames: u64, others_sent_bytes: u64) -> InterfaceUse {
        InterfaceUse {
            name: "veth0".to_owned(),
            sent_bytes,
            sent_frames,
            received_bytes: 0,
            received_frames: 0,
            others_sent_bytes,
        }
    }

    #[test]
    fn a_driver_that_counts_frames_is_taken_at_its_word() {
        let (bytes, source) = counted(&interface(151_400, 100, 0), &Reading::Value(100));
        assert_eq!(bytes, 153_800.0);
        assert!(source.starts_with("interface counters of veth0"), "{source}");
        // Frames that are not TCP's.
        assert_eq!(counted(&interface(151_400, 100, 0), &Reading::Value(90)).0, 153_800.0);
    }

    #[test]
    fn bursts_get_the_headers_that_they_become() {
        // Two bursts of 44 segments, each counted with one header.
        let payload = 2 * 44 * 1448;
        let (bytes, source) = counted(&interface(payload + 2 * 66, 2, 0), &Reading::Value(88));
        assert_eq!(bytes, (payload + 88 * (66 + 24)) as f64);
        assert!(source.contains("2 frames for 88 TCP segments"), "{source}");
    }

    #[test]
    fn tcp_of_other_interfaces_is_not_charged_to_this_one() {
        let (bytes, source) = counted(&interface(151_400, 100, 5_000_000), &Reading::Value(4_000));
        assert_eq!(bytes, 153_800.0);
        assert!(source.contains("may be counted once"), "{source}");
        let unknown = Reading::NotAvailable("no".to_owned());
        assert_eq!(counted(&interface(151_400, 100, 0), &unknown).0, 153_800.0);
    }
}
