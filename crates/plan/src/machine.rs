//! A machine, as far as the model looks at it, and its file.

use linerate_faults::toml_fault;
use linerate_placement::{Cipher, Version};
use serde::{Deserialize, Serialize};

use crate::changed::changed;
use crate::error::{Error, Result};
use crate::words::{CipherName, VersionName, within};

/// The operating system's path from file to adapter, by what a published point says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    /// Linux, large writes over few connections.
    Linux,
    /// Netflix' FreeBSD of 2015: asynchronous sendfile, and before most of what came after it.
    #[serde(rename = "freebsd-2015")]
    FreeBsd2015,
    /// Netflix' FreeBSD of 2021, many connections, files from NVMe.
    #[serde(rename = "freebsd-2021")]
    FreeBsd2021,
}

/// How fast a library's AES-GCM is on a processor: the generation of instructions that both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CipherImplementation {
    /// AES-NI as of Sandy and Ivy Bridge: the carry-less multiplication is the slow part.
    #[serde(rename = "aes-ni-2012")]
    AesNi2012,
    /// AES-NI, 128 bits at a time: kernels before Linux 6.10, OpenSSL before 3.2 with AVX-512, anything without VAES.
    AesNi,
    /// Intel's ISA-L with AES-NI, as FreeBSD's kernel TLS can have it; writes past the caches.
    IsaL,
    /// VAES with AVX-512: aws-lc, OpenSSL 3.2 and later, Linux 6.10 and later.
    Vaes,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What it is, in a line.
    pub title: String,
    /// Where its figures are from.
    #[serde(default)]
    pub source: String,
    /// The operating system's path.
    pub stack: Stack,
    /// Physical cores.
    pub cores: u32,
    /// Their nominal clock. Constants are in cycles of the nominal clock, as published figures name no other.
    pub clock_ghz: f64,
    /// The part of the CPU that may be used.
    #[serde(default = "whole")]
    pub cpu_share: f64,
    /// What the memory really moves, reads and writes together.
    pub memory_gb_per_s: f64,
    /// The cipher in user space.
    pub user_aead: CipherImplementation,
    /// The cipher in the kernel.
    pub kernel_aead: CipherImplementation,
    /// All ports that are used, together.
    pub nic_gbit: f64,
    /// Bytes of a packet.
    #[serde(default = "ethernet")]
    pub mtu_bytes: u32,
    /// Whether the adapter makes the segments (TSO).
    #[serde(default = "yes")]
    pub segmentation_offload: bool,
    /// Connections that the adapter can take over in a second; 0: it does not encrypt.
    #[serde(default)]
    pub nic_set_ups_per_s: f64,
    /// Connections that it keeps.
    #[serde(default = "many")]
    pub nic_flows: u64,
    /// What it encrypts at most, on the wire, if that is less than its ports.
    #[serde(default)]
    pub nic_tls_gbit: Option<f64>,
    /// Whether file pages go to it without a copy: `TLS_TX_ZEROCOPY_RO`; FreeBSD always.
    #[serde(default = "yes")]
    pub nic_zero_copy: bool,
    /// Versions of TLS that driver and kernel offload.
    #[serde(default = "both_versions")]
    pub nic_tls_versions: Vec<VersionName>,
    /// Ciphers that it has.
    #[serde(default = "aes")]
    pub nic_ciphers: Vec<CipherName>,
    /// Its driver, for messages.
    #[serde(default = "a_driver")]
    pub nic_driver: String,
    /// The kernel, for messages.
    #[serde(default = "a_release")]
    pub kernel_release: String,
}

fn whole() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

fn ethernet() -> u32 {
    1500
}

fn many() -> u64 {
    20_000
}

fn both_versions() -> Vec<VersionName> {
    vec![VersionName(Version::Tls12), VersionName(Version::Tls13)]
}

fn aes() -> Vec<CipherName> {
    vec![CipherName(Cipher::Aes128Gcm), CipherName(Cipher::Aes256Gcm)]
}

fn a_driver() -> String {
    "the driver".to_owned()
}

fn a_release() -> String {
    "6.12".to_owned()
}

impl Machine {
    /// Reads a machine's file. `file` is its name, for errors.
    ///
    /// # Errors
    /// `FILE:LINE:COLUMN: REASON`, with the nearest key where one is unknown; or which value cannot be.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let machine: Self =
            toml::from_str(text).map_err(|error| Error::new(toml_fault(file, text, &error)))?;
        machine.check().map_err(|reason| Error::new(format!("{file}: {reason}")))?;
        Ok(machine)
    }

    /// The machine of this text with some of its keys changed.
    ///
    /// # Errors
    /// As [`Machine::parse`], without a place.
    pub(crate) fn changed(file: &str, text: &str, changes: &toml::Table) -> Result<Self> {
        let machine: Self = changed(file, text, changes)?;
        machine.check().map_err(|reason| Error::new(format!("{file}: {reason}")))?;
        Ok(machine)
    }

    /// Whether all of it can be calculated with.
    ///
    /// # Errors
    /// Which value cannot be, and what can.
    pub fn check(&self) -> std::result::Result<(), String> {
        within("cores", f64::from(self.cores), 1.0, 4096.0)?;
        within("clock_ghz", self.clock_ghz, 0.1, 20.0)?;
        within("cpu_share", self.cpu_share, 0.01, 1.0)?;
        within("memory_gb_per_s", self.memory_gb_per_s, 0.1, 100_000.0)?;
        within("nic_gbit", self.nic_gbit, 0.001, 100_000.0)?;
        within("mtu_bytes", f64::from(self.mtu_bytes), 576.0, 65_535.0)?;
        within("nic_set_ups_per_s", self.nic_set_ups_per_s, 0.0, 1e9)?;
        within("nic_flows", self.nic_flows as f64, 0.0, 1e12)?;
        if let Some(gbit) = self.nic_tls_gbit {
            within("nic_tls_gbit", gbit, 0.001, 100_000.0)?;
        }
        Ok(())
    }

    /// Whether the adapter encrypts at all.
    #[must_use]
    pub fn nic_encrypts(&self) -> bool {
        self.nic_set_ups_per_s > 0.0
    }

    /// Whether it runs Linux.
    #[must_use]
    pub(crate) fn is_linux(&self) -> bool {
        self.stack == Stack::Linux
    }

    /// CPU seconds a second that may be used.
    #[must_use]
    pub fn cpus(&self) -> f64 {
        f64::from(self.cores) * self.cpu_share
    }

    /// Bytes of TCP's payload in a full packet: IPv4 and TCP with timestamps take 52.
    #[must_use]
    pub fn segment_bytes(&self) -> f64 {
        f64::from(self.mtu_bytes) - 52.0
    }

    /// The part of the wire's bits that is TCP's payload: a frame has 38 bytes (header, check sequence, preamble, gap)
    /// around the packet.
    #[must_use]
    pub(crate) fn payload_share(&self) -> f64 {
        self.segment_bytes() / (f64::from(self.mtu_bytes) + 38.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    fn text() -> &'static str {
        presets::machine_text("homelab").unwrap()
    }

    #[test]
    fn an_unknown_key_is_told_with_its_place_and_the_nearest() {
        let wrong = text().replace("cores", "coers");
        let error = Machine::parse("mine.toml", &wrong).unwrap_err().to_string();
        assert!(error.starts_with("mine.toml:"), "{error}");
        assert!(error.ends_with("did you mean \"cores\"?"), "{error}");
    }

    #[test]
    fn a_value_that_cannot_be_is_told_by_name() {
        let mut machine = Machine::parse("homelab", text()).unwrap();
        machine.clock_ghz = f64::NAN;
        assert!(machine.check().unwrap_err().starts_with("clock_ghz"));
        let mut machine = Machine::parse("homelab", text()).unwrap();
        machine.cores = 0;
        assert_eq!(machine.check().unwrap_err(), "cores = 0 is not possible: 1 to 4096");
    }

    #[test]
    fn changes_win_over_the_file() {
        let changes: toml::Table = toml::from_str("nic_gbit = 7").unwrap();
        assert_eq!(Machine::changed("homelab", text(), &changes).unwrap().nic_gbit, 7.0);
        let changes: toml::Table = toml::from_str("nic_gbits = 7").unwrap();
        assert!(Machine::changed("homelab", text(), &changes).unwrap_err().to_string().contains("nic_gbits"));
    }

    #[test]
    fn ethernet_carries_94_percent() {
        let machine = Machine::parse("homelab", text()).unwrap();
        assert!((machine.payload_share() - 1448.0 / 1538.0).abs() < 1e-12);
    }
}
