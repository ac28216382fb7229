//! Streams over loopback, within this process.

mod hostile;
mod runs;
mod schema;
mod support;
mod zero_copy;
