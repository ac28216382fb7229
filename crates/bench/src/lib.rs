//! The experiments of the papers, on the reader's own machine: what they cost, side by side with what was published.
//!
//! [`result`] is what a run of an experiment found out and the form of its file; everything else writes or reads that.
//! [`statistics`] says what a difference is.

#![forbid(unsafe_code)]

pub mod accounting;
pub mod result;
pub mod statistics;
