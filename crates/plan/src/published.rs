//! The published points: what was measured elsewhere, and what the model says of it.

use serde::{Deserialize, Serialize};

use crate::capacity::Prediction;
use crate::cost::Costing;
use crate::error::{Error, Result};
use crate::{Constants, Machine, Sender, Size, Workload, presets};

/// What a point may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A constant is computed from it.
    Fitted,
    /// It tests the model.
    HeldOut,
}

/// What a point gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Gigabits a second.
    GbitS,
    /// Megabytes a second.
    MbyteS,
    /// The part of the CPU that was busy.
    CpuShare,
    /// How many times as much the same machine sent in plaintext.
    PlaintextOverThis,
    /// From which size of file on this beats a classic server.
    UsefulFromMbyte,
    /// From which I/O size on a stream has the rate that large I/Os have, in KiB.
    LineRateFromIoKib,
}

/// A figure or a range.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Published {
    /// One figure.
    Value(f64),
    /// From, to.
    Range([f64; 2]),
}

impl Published {
    /// How far a prediction is off, as a part of what was published; 0 within a range.
    #[must_use]
    pub(crate) fn error_of(self, predicted: f64) -> f64 {
        match self {
            Self::Value(value) => predicted / value - 1.0,
            Self::Range([least, _]) if predicted < least => predicted / least - 1.0,
            Self::Range([_, most]) if predicted > most => predicted / most - 1.0,
            Self::Range(_) => 0.0,
        }
    }
}

/// A published point.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Its name.
    pub name: String,
    /// Who published it.
    pub source: String,
    /// The machine, a preset.
    pub machine: String,
    /// The workload, a preset.
    pub workload: String,
    /// The sender.
    pub engine: Sender,
    /// What is given.
    pub quantity: Quantity,
    /// The figure.
    pub published: Published,
    /// The part of the CPU that was used.
    pub cpu_share: f64,
    /// Keys of the machine that are different.
    #[serde(default)]
    pub changes: toml::Table,
    /// Keys of the workload that are different.
    #[serde(default)]
    pub workload_changes: toml::Table,
    /// What it may be used for.
    pub role: Role,
    /// The constant that it sets, if it is fitted.
    #[serde(default)]
    pub sets: Option<String>,
    /// Why it is fitted.
    #[serde(default)]
    pub why: Option<String>,
}

/// A point, and what the model says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The point.
    pub point: Point,
    /// The model's figure.
    pub predicted: f64,
    /// How far it is off, as a part of what was published.
    pub error: f64,
    /// What the model says keeps that machine from more.
    pub bottleneck: &'static str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    point: Vec<Point>,
}

/// All points, in the order of the file.
///
/// # Errors
/// The file that is built in is wrong.
pub fn points() -> Result<Vec<Point>> {
    const FILE: &str = include_str!("../published.toml");
    let file: File = toml::from_str(FILE)
        .map_err(|error| Error::new(linerate_faults::toml_fault("published.toml", FILE, &error)))?;
    Ok(file.point)
}

/// What the model says of every point.
///
/// # Errors
/// A built-in file is wrong.
pub fn check(constants: &Constants) -> Result<Vec<Outcome>> {
    points()?.into_iter().map(|point| point.outcome(constants)).collect()
}

impl Point {
    /// What the model says of it with these constants.
    ///
    /// # Errors
    /// A built-in file is wrong.
    pub fn outcome(self, constants: &Constants) -> Result<Outcome> {
        let mut machine =
            Machine::changed(&self.machine, presets::machine_text(&self.machine)?, &self.changes)?;
        machine.cpu_share = self.cpu_share;
        let workload = Workload::changed(
            &self.workload,
            presets::workload_text(&self.workload)?,
            &self.workload_changes,
        )?;
        let predict = |sender: Sender, workload: &Workload| {
            Costing { machine: &machine, workload, constants }.predict_fixed(sender).0
        };
        let found: Prediction = predict(self.engine, &workload);
        let predicted = match self.quantity {
            Quantity::GbitS => found.gbit_s,
            Quantity::MbyteS => found.gbit_s * 125.0,
            Quantity::CpuShare => found.cpu_share,
            Quantity::PlaintextOverThis => predict(Sender::Plaintext, &workload).gbit_s / found.gbit_s,
            Quantity::UsefulFromMbyte => useful_from_mbyte(|bytes| {
                let workload = Workload { sizes: vec![Size { bytes, share: 1.0 }], ..workload.clone() };
                predict(self.engine, &workload).gbit_s / predict(Sender::Classic, &workload).gbit_s
            }),
            Quantity::LineRateFromIoKib => line_rate_from_io_kib(|io_bytes| {
                predict(self.engine, &Workload { io_bytes: Some(io_bytes), ..workload.clone() }).gbit_s
            }),
        };
        Ok(Outcome {
            predicted,
            error: self.published.error_of(predicted),
            bottleneck: found.bottleneck.words(),
            point: self,
        })
    }
}

/// The smallest of sizes, twelve to a factor of ten, from which on the ratio of rates says that it is no slower: 98 % or
/// more, as both fill the port in the end.
fn useful_from_mbyte(ratio: impl Fn(u64) -> f64) -> f64 {
    let sizes = (0..84).map(|step| 10f64.powf(3.0 + f64::from(step) / 12.0));
    sizes.into_iter().find(|&bytes| ratio(bytes as u64) >= 0.98).unwrap_or(f64::INFINITY) / 1e6
}

/// The smallest of I/O sizes, eight to a factor of two, whose rate is 98 % or more of that of the largest.
fn line_rate_from_io_kib(rate: impl Fn(u64) -> f64) -> f64 {
    let line_rate = rate(256 << 10);
    let sizes = (0..=104).map(|step| 32.0 * 2f64.powf(f64::from(step) / 8.0));
    sizes.into_iter().find(|&bytes| rate(bytes as u64) >= 0.98 * line_rate).unwrap_or(f64::INFINITY) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_name_of_its_own_and_a_reason_if_it_is_fitted() {
        let points = points().unwrap();
        for point in &points {
            assert_eq!(points.iter().filter(|other| other.name == point.name).count(), 1);
            let fitted = point.role == Role::Fitted;
            assert_eq!((point.sets.is_some(), point.why.is_some()), (fitted, fitted), "{}", point.name);
        }
        let held_out = points.iter().filter(|point| point.role == Role::HeldOut).count();
        assert!(held_out >= points.len() - held_out);
    }

    #[test]
    fn a_range_has_no_error_inside() {
        let range = Published::Range([2.0, 4.0]);
        assert_eq!(range.error_of(3.0), 0.0);
        assert_eq!(range.error_of(1.0), -0.5);
        assert_eq!(range.error_of(5.0), 0.25);
        assert_eq!(Published::Value(4.0).error_of(5.0), 0.25);
    }
}
