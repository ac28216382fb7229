//! Predicts what a described machine does with a described workload, by engine.
//!
//! Pure: no I/O. The model and how far it can be trusted: docs/PLAN.md.
//!
//! - [`Machine`], [`Workload`]: descriptions, from TOML; [`presets`] has some.
//! - [`Constants`]: what the model knows, each with its source.
//! - [`Prediction`]: a steady state and its bottleneck.

#![forbid(unsafe_code)]

mod capacity;
mod changed;
mod constants;
mod cost;
mod engine;
mod error;
mod fit;
mod fixed;
mod machine;
mod plan;
pub mod presets;
mod published;
mod report;
mod sensitivity;
mod simulation;
pub mod text;
mod words;
mod workload;

pub use capacity::{Bottleneck, Prediction};
pub use constants::{Constant, Constants, Kind};
pub use engine::Sender;
pub use error::{Error, Result};
pub use fit::fitted;
pub use machine::{CipherImplementation, Machine, Stack};
pub use plan::{NIC_GBIT, Placement, ReasonShare, Row, plan};
pub use published::{Outcome, Point, Published, Quantity, Role, check, points};
pub use report::{CheckedPoint, Report, SCHEMA};
pub use sensitivity::{EXPLAINED_MISSES, Sensitivity, sensitivities, worst_error};
pub use words::{CipherName, VersionName};
pub use workload::{Handshake, Size, Workload};
