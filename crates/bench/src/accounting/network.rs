//! What the kernel's network counters saw: an interface, TCP, and TLS.
//!
//! All are counters of a network namespace: they are read below `/proc/PID/net`, so as the server's process sees them,
//! and count for every process in that namespace.

use std::collections::BTreeMap;

use super::{
    Error,
    procfs::{self, InterfaceCounts},
    read,
};
use crate::result::Reading;

/// What was counted in a span.
#[derive(Clone, Debug)]
pub struct NetworkUse {
    /// The interface that was named, or why there is nothing to say of it.
    pub interface: Reading<InterfaceUse>,
    /// TCP segments that were sent, those sent again included; a burst that the adapter cuts up counts as what it
    /// becomes.
    pub sent_segments: Reading<u64>,
    /// TCP segments that were sent again.
    pub retransmitted_segments: Reading<u64>,
    /// What changed in `/proc/net/tls_stat`, counters that did not included.
    pub tls_stat: Reading<BTreeMap<String, u64>>,
}

/// What an interface sent and received, as its driver counts: with Ethernet's header, without its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceUse {
    /// Its name.
    pub name: String,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Frames sent; a driver of virtual interfaces counts a burst of up to 64 KB as one.
    pub sent_frames: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames received.
    pub received_frames: u64,
    /// Bytes that all other interfaces of the namespace sent.
    pub others_sent_bytes: u64,
}

/// The counters at one moment.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    interfaces: BTreeMap<String, InterfaceCounts>,
    sent_segments: Option<u64>,
    retransmitted_segments: Option<u64>,
    tls: Option<BTreeMap<String, u64>>,
}

impl Moment {
    /// Reads the counters of the namespace that the process `pid` is in.
    pub(super) fn take(pid: u32) -> Result<Self, Error> {
        let snmp = read(format!("/proc/{pid}/net/snmp"))?;
        Ok(Self {
            interfaces: procfs::interfaces(&read(format!("/proc/{pid}/net/dev"))?),
            sent_segments: procfs::protocol_counter(&snmp, "Tcp", "OutSegs"),
            retransmitted_segments: procfs::protocol_counter(&snmp, "Tcp", "RetransSegs"),
            tls: read(format!("/proc/{pid}/net/tls_stat")).ok().map(|text| procfs::tls_counters(&text)),
        })
    }

    /// What was counted since `before`.
    pub(super) fn since(&self, before: &Self, interface: Option<&str>) -> NetworkUse {
        let missing = |name: &str| Reading::NotAvailable(format!("/proc/net/snmp does not tell {name}"));
        let difference = |now: Option<u64>, earlier: Option<u64>| Some(now?.saturating_sub(earlier?));
        NetworkUse {
            interface: self.interface_since(before, interface),
            sent_segments: difference(self.sent_segments, before.sent_segments)
                .map_or_else(|| missing("OutSegs"), Reading::Value),
            retransmitted_segments: difference(self.retransmitted_segments, before.retransmitted_segments)
                .map_or_else(|| missing("RetransSegs"), Reading::Value),
            tls_stat: self.tls_since(before),
        }
    }

    fn interface_since(&self, before: &Self, name: Option<&str>) -> Reading<InterfaceUse> {
        let Some(name) = name else {
            return Reading::NotAvailable("no interface was named".to_owned());
        };
        if name == "lo" {
            let reason = "the loopback interface counts each packet as sent and as received, without Ethernet's \
                          header, and everybody's";
            return Reading::NotAvailable(reason.to_owned());
        }
        let (Some(now), Some(earlier)) = (self.interfaces.get(name), before.interfaces.get(name)) else {
            let known: Vec<&str> = self.interfaces.keys().map(String::as_str).collect();
            let reason = format!("the server's network has no interface {name}, but {}", known.join(", "));
            return Reading::NotAvailable(reason);
        };
        let others = |moment: &Self| -> u64 {
            moment
                .interfaces
                .iter()
                .filter(|(other, _)| *other != name)
                .map(|(_, counts)| counts.sent_bytes)
                .sum()
        };
        Reading::Value(InterfaceUse {
            name: name.to_owned(),
            sent_bytes: now.sent_bytes.saturating_sub(earlier.sent_bytes),
            sent_frames: now.sent_frames.saturating_sub(earlier.sent_frames),
            received_bytes: now.received_bytes.saturating_sub(earlier.received_bytes),
            received_frames: now.received_frames.saturating_sub(earlier.received_frames),
            others_sent_bytes: others(self).saturating_sub(others(before)),
        })
    }

    fn tls_since(&self, before: &Self) -> Reading<BTreeMap<String, u64>> {
        let Some(now) = &self.tls else {
            let reason =
                "no /proc/net/tls_stat: the kernel's module tls is not loaded, so no connection used it";
            return Reading::NotAvailable(reason.to_owned());
        };
        // The module may have been loaded meanwhile; its counters began at 0.
        let earlier = |name| before.tls.as_ref().and_then(|tls| tls.get(name)).copied().unwrap_or(0);
        let changes = now.iter().map(|(name, count)| (name.clone(), count.saturating_sub(earlier(name))));
        Reading::Value(changes.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sent_bytes: u64, sent_frames: u64) -> InterfaceCounts {
        InterfaceCounts { received_bytes: 1, received_frames: 1, sent_bytes, sent_frames }
    }

    fn moment(factor: u64) -> Moment {
        let interfaces = [("eth0", counts(1000 * factor, 10 * factor)), ("lo", counts(7 * factor, factor))];
        Moment {
            interfaces: interfaces.map(|(name, counts)| (name.to_owned(), counts)).into(),
            sent_segments: Some(100 * factor),
            retransmitted_segments: None,
            tls: Some(BTreeMap::from([("TlsTxSw".to_owned(), factor)])),
        }
    }

    #[test]
    fn differences_are_taken_and_what_is_missing_has_a_reason() {
        let used = moment(3).since(&moment(1), Some("eth0"));
        let Reading::Value(interface) = &used.interface else { panic!("there") };
        assert_eq!(
            (interface.sent_bytes, interface.sent_frames, interface.others_sent_bytes),
            (2000, 20, 14)
        );
        assert_eq!(used.sent_segments, Reading::Value(200));
        assert!(
            matches!(&used.retransmitted_segments, Reading::NotAvailable(why) if why.contains("RetransSegs"))
        );
        assert_eq!(used.tls_stat, Reading::Value(BTreeMap::from([("TlsTxSw".to_owned(), 2)])));
    }

    #[test]
    fn counters_that_go_backwards_give_zero() {
        // An interface that was made anew under the same name.
        let used = moment(1).since(&moment(3), Some("eth0"));
        let Reading::Value(interface) = &used.interface else { panic!("there") };
        assert_eq!((interface.sent_bytes, interface.others_sent_bytes), (0, 0));
        assert_eq!(used.sent_segments, Reading::Value(0));
    }

    #[test]
    fn loopback_and_unknown_interfaces_are_refused_in_words() {
        let reason = |interface| match moment(2).since(&moment(1), interface).interface {
            Reading::NotAvailable(reason) => reason,
            Reading::Value(interface) => panic!("{interface:?}"),
        };
        assert!(reason(Some("lo")).contains("loopback"));
        assert!(reason(Some("eth7")).contains("no interface eth7, but eth0, lo"));
        assert!(reason(None).contains("no interface was named"));
    }

    #[test]
    fn a_module_that_is_not_loaded_is_no_row_of_zeros() {
        let without = Moment { tls: None, ..moment(2) };
        assert!(
            matches!(without.since(&without, None).tls_stat, Reading::NotAvailable(why) if why.contains("tls"))
        );
        let loaded_meanwhile = moment(2).since(&without, None).tls_stat;
        assert_eq!(loaded_meanwhile, Reading::Value(BTreeMap::from([("TlsTxSw".to_owned(), 2)])));
    }

    #[test]
    fn this_machine_is_read() {
        let moment = Moment::take(std::process::id()).expect("Linux");
        assert!(moment.interfaces.contains_key("lo"));
        assert!(moment.sent_segments.is_some() && moment.retransmitted_segments.is_some());
    }
}
