//! Decides which engine encrypts a connection, by what it costs, and says why.
//!
//! Pure: no I/O, and no clock of its own (times are passed in). The server asks it for every response, `linerate plan`
//! runs it against described machines, `linerate calibrate` writes the costs that it reads.
//!
//! - [`EngineCosts`], [`Costs`]: what each engine costs; [`Costs::break_even_bytes`].
//! - [`Calibration`]: those costs as measured on one machine, as a file.
//! - [`Capabilities`], [`Lack`]: which engines can carry a connection, and why others cannot.
//! - [`Placer`]: from those and the signals of connection and machine to a [`Decision`] with its [`Reason`].
//!
//! # The rule
//! A connection begins on the user engine. Moving it costs a set-up, once; each byte after that is cheaper. How much is
//! still to come is known for the response under way, and not for what follows. So it moves when
//!
//! > what the response under way still saves, and what the responses before it would have saved, together pay the set-up.
//!
//! Bytes sent predict bytes to come. It is the ski-rental rule, given what is known of the future: never more than twice
//! the excess of the best choice in hindsight (`Placer` has the proof, `tests/never_lose.rs` tries it). On Linux there is
//! no way back from the kernel or the adapter, so the rule asks once, before the move.

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

mod budget;
mod calibration;
mod capability;
mod cost;
mod costs;
mod engine;
mod labels;
mod learning;
mod pace;
mod placer;
mod policy;
mod reason;
mod signals;
mod worth;

pub use budget::SetUpBudget;
pub use calibration::{
    Calibration, CalibrationError, EngineFigures, Machine, Misfit, NicFigures, SCHEMA as CALIBRATION_SCHEMA,
};
pub use capability::{Capabilities, Carried, Lack, Name, Release, Verdict};
pub use cost::EngineCosts;
pub use costs::{Costs, NicLimits};
pub use engine::{Engine, NicMode};
pub use learning::{Learner, Observed};
pub use linerate_suite::{Cipher, Combination, Version};
pub use placer::Placer;
pub use policy::{Mode, Policy};
pub use reason::{Again, Decision, Reason};
pub use signals::{ConnectionSignals, MachineSignals};
