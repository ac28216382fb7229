//! What the bench measures, held against what independent programs saw: `ss` of the connection, `ip` of the interface.

mod link;
mod throughput;
