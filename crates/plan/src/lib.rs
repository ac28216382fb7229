//! Predicts what a described machine does with a described workload, by engine.
//!
//! So far: the published points that the model will be held against (`published.toml`), and which of them may set a
//! constant of it.

/// The published points, as TOML. Which of them are held out was written down before there was a model.
pub const PUBLISHED: &str = include_str!("../published.toml");
