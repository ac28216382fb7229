//! The load client: asks servers for files and says what they gave, how fast, how late and at what price.
//!
//! [`report`] is what a run found out, and the form of `linerate load --json`.

#![forbid(unsafe_code)]

pub mod report;
