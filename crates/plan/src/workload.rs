//! A workload: what is asked for, how much of it, over which connections; and its file.

use linerate_faults::toml_fault;
use linerate_placement::{Cipher, Combination, Version};
use serde::{Deserialize, Serialize};

use crate::changed::changed;
use crate::error::{Error, Result};
use crate::words::{CipherName, VersionName, within};

/// The largest I/O, as `linerate stream -l` has it.
const MOST_IO_BYTES: f64 = 67_108_864.0;

/// Responses of one size.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Bytes of the body.
    pub bytes: u64,
    /// The part of responses that have it, beside the others' shares.
    #[serde(default = "one")]
    pub share: f64,
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handshake {
    /// In full, with an ECDSA certificate.
    #[default]
    Ecdsa,
    /// In full, with an RSA certificate of 2048 bits.
    Rsa,
    /// Resumed, with a fresh key exchange.
    Resumed,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What it is, in a line.
    pub title: String,
    /// Where its figures are from.
    #[serde(default)]
    pub source: String,
    /// Sizes of responses, with their shares.
    pub sizes: Vec<Size>,
    /// Connections at a time.
    pub connections: u64,
    /// Responses on each of them.
    #[serde(default = "one_request")]
    pub requests_per_connection: u64,
    /// Connections that come in a second; without it, as many as are served.
    #[serde(default)]
    pub arrivals_per_s: Option<f64>,
    /// What one client takes at most; without it, as much as it gets.
    #[serde(default)]
    pub client_mbit: Option<f64>,
    /// The version that is agreed on.
    #[serde(default = "newest")]
    pub tls: VersionName,
    /// The cipher that is agreed on.
    #[serde(default = "first")]
    pub cipher: CipherName,
    /// How connections begin.
    #[serde(default)]
    pub handshake: Handshake,
    /// The part of the bytes that has to come from disk.
    #[serde(default)]
    pub cold_share: f64,
    /// The part of the bytes that is sent again, in the mean over connections.
    #[serde(default)]
    pub retransmitted_share: f64,
    /// Bytes that a program hands to the system at once, from a buffer of its own, as `linerate stream` and iperf do;
    /// without it, files are sent.
    #[serde(default)]
    pub io_bytes: Option<u64>,
    /// Whether the program lends that buffer to the adapter, so that nothing copies it into the socket.
    #[serde(default)]
    pub zero_copy_send: bool,
}

fn one() -> f64 {
    1.0
}

fn one_request() -> u64 {
    1
}

fn newest() -> VersionName {
    VersionName(Version::Tls13)
}

fn first() -> CipherName {
    CipherName(Cipher::Aes128Gcm)
}

impl Workload {
    /// Reads a workload's file. `file` is its name, for errors.
    ///
    /// # Errors
    /// `FILE:LINE:COLUMN: REASON`, with the nearest key where one is unknown; or which value cannot be.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let workload: Self =
            toml::from_str(text).map_err(|error| Error::new(toml_fault(file, text, &error)))?;
        workload.check().map_err(|reason| Error::new(format!("{file}: {reason}")))?;
        Ok(workload)
    }

    /// The workload of this text with some of its keys changed.
    ///
    /// # Errors
    /// As [`Workload::parse`], without a place.
    pub(crate) fn changed(file: &str, text: &str, changes: &toml::Table) -> Result<Self> {
        let workload: Self = changed(file, text, changes)?;
        workload.check().map_err(|reason| Error::new(format!("{file}: {reason}")))?;
        Ok(workload)
    }

    /// Whether all of it can be calculated with.
    ///
    /// # Errors
    /// Which value cannot be, and what can.
    pub fn check(&self) -> std::result::Result<(), String> {
        if self.sizes.is_empty() || self.sizes.len() > 1000 {
            return Err("sizes: 1 to 1000 of them are needed".to_owned());
        }
        for size in &self.sizes {
            within("sizes.bytes", size.bytes as f64, 1.0, 1e15)?;
            within("sizes.share", size.share, 1e-9, 1e9)?;
        }
        within("connections", self.connections as f64, 1.0, 1e9)?;
        within("requests_per_connection", self.requests_per_connection as f64, 1.0, 1e9)?;
        if let Some(arrivals) = self.arrivals_per_s {
            within("arrivals_per_s", arrivals, 1e-6, 1e9)?;
        }
        if let Some(mbit) = self.client_mbit {
            within("client_mbit", mbit, 1e-3, 1e6)?;
        }
        within("cold_share", self.cold_share, 0.0, 1.0)?;
        if let Some(bytes) = self.io_bytes {
            within("io_bytes", bytes as f64, 1.0, MOST_IO_BYTES)?;
            if self.cold_share > 0.0 {
                return Err("cold_share: with io_bytes the bytes come from memory, none from disk".to_owned());
            }
        } else if self.zero_copy_send {
            return Err("zero_copy_send: it is about io_bytes, which is missing".to_owned());
        }
        within("retransmitted_share", self.retransmitted_share, 0.0, 1.0)
    }

    /// Version and cipher.
    #[must_use]
    pub fn combination(&self) -> Combination {
        Combination { version: self.tls.0, cipher: self.cipher.0 }
    }

    /// Bytes of a response, in the mean.
    #[must_use]
    pub fn response_bytes(&self) -> f64 {
        self.mean(|bytes| bytes as f64)
    }

    /// Bytes of a connection, in the mean.
    #[must_use]
    pub(crate) fn connection_bytes(&self) -> f64 {
        self.response_bytes() * self.requests_per_connection as f64
    }

    /// The mean over responses of what is said of their sizes.
    pub(crate) fn mean(&self, of: impl Fn(u64) -> f64) -> f64 {
        let shares: f64 = self.sizes.iter().map(|size| size.share).sum();
        self.sizes.iter().map(|size| size.share * of(size.bytes)).sum::<f64>() / shares
    }

    /// Bytes a second that clients ask for, if that is bounded by them.
    #[must_use]
    pub(crate) fn offered_bytes_per_s(&self) -> Option<f64> {
        let by_arrivals = self.arrivals_per_s.map(|arrivals| arrivals * self.connection_bytes());
        let by_clients = self.client_mbit.map(|mbit| self.connections as f64 * mbit * 1e6 / 8.0);
        match (by_arrivals, by_clients) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str =
        "title = \"t\"\nsizes = [{ bytes = 1000, share = 3 }, { bytes = 9000 }]\nconnections = 10\n";

    #[test]
    fn means_are_over_shares() {
        let workload = Workload::parse("w.toml", SMALL).unwrap();
        assert_eq!(workload.response_bytes(), 3000.0);
        assert_eq!(workload.offered_bytes_per_s(), None);
        let slow = Workload { client_mbit: Some(8.0), arrivals_per_s: Some(10_000.0), ..workload };
        assert_eq!(slow.offered_bytes_per_s(), Some(10e6));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let error = |text: String| Workload::parse("w.toml", &text).unwrap_err().to_string();
        let unknown = error(format!("{SMALL}conections = 3\n"));
        assert!(
            unknown.starts_with("w.toml:4:1: ") && unknown.ends_with("did you mean \"connections\"?"),
            "{unknown}"
        );
        assert_eq!(
            error(format!("{SMALL}cold_share = 2\n")),
            "w.toml: cold_share = 2 is not possible: 0 to 1"
        );
        assert!(error(format!("{SMALL}io_bytes = 0\n")).contains("io_bytes = 0 is not possible"));
        assert!(error(format!("{SMALL}zero_copy_send = true\n")).contains("io_bytes, which is missing"));
        assert!(error(format!("{SMALL}io_bytes = 9\ncold_share = 0.5\n")).contains("none from disk"));
        assert!(
            error(SMALL.replace("sizes = [{ bytes = 1000, share = 3 }, { bytes = 9000 }]", "sizes = []"))
                .contains("sizes:")
        );
    }
}
