//! What this machine can do with bulk encryption, why not more, and what to change.
//!
//! Two steps that know nothing of each other: [`gather()`] asks the machine and makes [`Facts`]; [`judge()`] is a pure
//! function from those to [`Finding`]s, so that every rule is tested with made facts. [`text()`] and [`json()`] show both.
//!
//! Nothing is guessed: what cannot be told is a [`Reading::NotAvailable`](linerate_environment::Reading) with its reason.

#![forbid(unsafe_code)]

pub mod facts;
mod finding;
mod gather;
mod json;
mod judge;
mod self_test;
mod text;

pub use facts::Facts;
pub use finding::{Finding, Group, Use, Verdict, changes};
pub use gather::{Questions, gather};
pub use json::{SCHEMA, json};
pub use judge::judge;
pub use self_test::self_test;
pub use text::{Style, text};
