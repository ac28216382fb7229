//! The access log: lines are gathered by each worker and written by a thread of their own, so that a slow disk slows
//! no request down. What the thread cannot keep up with is dropped and counted.

mod format;
mod writer;

pub(crate) use format::{Entry, Protection, RequestLine};
pub(crate) use writer::{AccessLog, Sink};
