//! The guest's end: its virtio adapter, what that can do, and what it was given to send.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use linerate_bench::accounting::Meter;
use linerate_bench::network::{Network, VETH_SERVER};
use linerate_bench::result::{NetworkUsed, Reading};
use serde::{Deserialize, Serialize};

use super::output_of;

/// The default of Linux, whatever this kernel's is.
const CONGESTION_CONTROL: &str = "cubic";

/// What the adapter is to do in the sender's place, as ethtool calls it.
const OFFLOADS: [&str; 3] = ["scatter-gather", "tx-checksumming", "tcp-segmentation-offload"];

/// An adapter that is up.
#[derive(Debug)]
pub(in crate::guest) struct Adapter {
    interface: String,
}

/// How it sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::guest) struct Facts {
    /// The address, congestion control and queue discipline.
    pub(in crate::guest) network: NetworkUsed,
    /// MTU in bytes.
    pub(in crate::guest) mtu_bytes: u32,
    /// "on" or "off" for each of what it can do in the sender's place.
    pub(in crate::guest) offloads: BTreeMap<String, String>,
}

impl Facts {
    /// In words.
    pub(in crate::guest) fn words(&self) -> String {
        let known =
            |reading: &Reading<String>| reading.value().map_or("not known", String::as_str).to_owned();
        let offloads: Vec<String> =
            self.offloads.iter().map(|(name, state)| format!("{name} {state}")).collect();
        format!(
            "{}, MTU {} bytes; {}; congestion control {}, queue discipline {}",
            self.network.path,
            self.mtu_bytes,
            offloads.join(", "),
            known(&self.network.congestion_control),
            known(&self.network.queue_discipline),
        )
    }
}

/// What was sent during a transfer, control lines included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::guest) struct Sent {
    /// What the adapter was handed: with TSO, bursts of up to 64 KB.
    pub(in crate::guest) frames: u64,
    /// Bytes of these, with Ethernet's header.
    pub(in crate::guest) bytes: u64,
    /// What came in: acknowledgements, nearly all.
    pub(in crate::guest) received_frames: u64,
    /// TCP segments that were sent again.
    pub(in crate::guest) retransmitted_segments: u64,
}

impl Adapter {
    /// Loads the driver, and gives the adapter the server's address, and this MTU.
    pub(in crate::guest) fn bring_up(mtu_bytes: u32) -> Result<Self> {
        output_of("modprobe", &["virtio_net"])?;
        let interface = find()?;
        output_of("ip", &["link", "set", &interface, "addrgenmode", "none"])?;
        output_of("ip", &["address", "add", &format!("{VETH_SERVER}/30"), "dev", &interface])?;
        output_of("ip", &["link", "set", &interface, "mtu", &mtu_bytes.to_string(), "up"])?;
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", CONGESTION_CONTROL)
            .with_context(|| format!("cannot choose {CONGESTION_CONTROL}"))?;
        Ok(Self { interface })
    }

    /// The network that servers are on.
    pub(in crate::guest) fn network(&self) -> Network {
        Network::host(VETH_SERVER.into(), Some(self.interface.clone()))
    }

    /// How it sends; an error if it cuts no segments, because the count would be of something else.
    pub(in crate::guest) fn facts(&self) -> Result<Facts> {
        let offloads = offloads(&output_of("ethtool", &["-k", &self.interface])?);
        if OFFLOADS.iter().any(|&name| offloads.get(name).is_none_or(|state| state != "on")) {
            bail!("{} does not do all of {}: {offloads:?}", self.interface, OFFLOADS.join(", "));
        }
        let mtu = fs::read_to_string(format!("/sys/class/net/{}/mtu", self.interface))?;
        Ok(Facts { network: self.network().used(), mtu_bytes: mtu.trim().parse()?, offloads })
    }

    /// Its name.
    pub(in crate::guest) fn interface(&self) -> &str {
        &self.interface
    }

    /// Notes the counters.
    pub(in crate::guest) fn begin(&self) -> Result<Meter> {
        Ok(Meter::begin(&[std::process::id()], &[], Some(&self.interface))?)
    }
}

impl Sent {
    /// What came between two readings of counters.
    pub(in crate::guest) fn after(self, before: &Self) -> Self {
        Self {
            frames: self.frames - before.frames,
            bytes: self.bytes - before.bytes,
            received_frames: self.received_frames - before.received_frames,
            retransmitted_segments: self.retransmitted_segments - before.retransmitted_segments,
        }
    }

    /// Since `before`.
    pub(in crate::guest) fn since(before: Meter) -> Result<Self> {
        let network = before.end()?.network;
        let interface = network.interface.value().context("the adapter's counters cannot be read")?;
        let retransmitted = network.retransmitted_segments.value();
        Ok(Self {
            frames: interface.sent_frames,
            bytes: interface.sent_bytes,
            received_frames: interface.received_frames,
            retransmitted_segments: *retransmitted.context("TCP's counters cannot be read")?,
        })
    }
}

/// The interface of the driver virtio_net.
fn find() -> Result<String> {
    for entry in fs::read_dir("/sys/class/net")? {
        let entry = entry?;
        let driver = fs::read_link(entry.path().join("device/driver")).unwrap_or_default();
        if driver.ends_with(Path::new("virtio_net")) {
            return Ok(entry.file_name().to_string_lossy().into_owned());
        }
    }
    bail!("the guest has no virtio adapter: guest/run is to be called with --tap")
}

/// Of `ethtool -k`: `tcp-segmentation-offload: on`, `tx-checksumming: on [fixed]`.
fn offloads(shown: &str) -> BTreeMap<String, String> {
    let features = shown.lines().filter_map(|line| line.trim().split_once(": "));
    let ours = features.filter(|(name, _)| OFFLOADS.contains(name));
    ours.map(|(name, state)| (name.to_owned(), state.split(' ').next().unwrap_or(state).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_are_those_that_a_sender_has() {
        let shown = "Features for eth0:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\
                     \ttx-checksum-ip-generic: on\nscatter-gather: on [fixed]\ntcp-segmentation-offload: off\n";
        let expected =
            [("scatter-gather", "on"), ("tcp-segmentation-offload", "off"), ("tx-checksumming", "on")];
        let expected = expected.map(|(name, state)| (name.to_owned(), state.to_owned()));
        assert_eq!(offloads(shown), BTreeMap::from(expected));
    }
}
