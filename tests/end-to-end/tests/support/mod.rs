//! What the tests of HTTP, of operation and of the browser share: connections spoken by hand, and the answers read from
//! them.
#![allow(dead_code, unused_imports, reason = "each test binary uses a part of this")]

mod connection;
mod fixture;
mod response;

pub(crate) use connection::{Connection, End, client_config, from_address};
pub(crate) use fixture::{Fixture, Transport, add_at_rest, age, certificate_folder, get, toml_for};
pub(crate) use response::{Part, Response, parse_multipart};
