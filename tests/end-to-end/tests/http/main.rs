//! HTTP as clients see it: each test starts the server and compares what arrives with what is on disk, over TLS and in
//! the clear alike.

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod conditions;
mod connections;
mod content;
mod curl;
mod headers;
mod hosts;
mod limits;
mod listings;
mod names;
mod precompressed;
mod ranges;
mod sites;
mod ten_thousand;
