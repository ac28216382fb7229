//! The experiments of the papers, on the reader's own machine: what they cost, side by side with what was published.
//!
//! [`result`] is what a run of an experiment found out and the form of its file; everything else writes or reads that.
//! [`statistics`] says what a difference is, [`report`] shows all of it to people. [`accounting`] reads what a
//! round costs, [`environment`] what it was made on.

#![forbid(unsafe_code)]

pub mod accounting;
pub mod environment;
pub mod report;
pub mod result;
pub mod statistics;
