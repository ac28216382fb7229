//! What the fuzzers call: one function for each thing that the network or the operator can reach, which takes any bytes
//! and panics if a promise is broken.
//!
//! The same functions run under libFuzzer (`make fuzz`, `fuzz/libfuzzer`) and, on damaged seeds, in every `make test`
//! (`tests/fuzz_smoke.rs`). What the bytes of a target mean is said at the target.

mod access_log;
mod body;
mod client_hello;
mod configuration;
mod handle;
mod handshake;
mod listing;
mod nfs;
mod nfs_replies;
mod path;
mod range;
mod record_open;
mod request;
mod response;
mod rpc;
mod sealed;
mod stream_control;
mod ticket;

pub use access_log::access_log;
pub use body::body;
pub use client_hello::client_hello;
pub use configuration::configuration;
pub use handle::handle;
pub use handshake::handshake;
pub use listing::listing;
pub use nfs::nfs;
pub use nfs_replies::nfs_replies;
pub use path::path;
pub use range::range;
pub use record_open::record_open;
pub use request::request;
pub use response::response;
pub use rpc::rpc;
pub use stream_control::stream_control;
pub use ticket::ticket;

/// How far the bytes came. A fuzzer does not care; the smoke run makes sure with it that both happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They were sound, or sound as far as they went.
    Taken,
    /// They were refused.
    Refused,
}

/// `bytes` after what `commands` do to them: three bytes each, a place in two and a value that changes what stands there.
/// `bytes` must not be empty.
fn damaged(bytes: &[u8], commands: &[u8]) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    let (commands, _) = commands.as_chunks::<3>();
    for &[high, low, value] in commands {
        let place = usize::from(u16::from_be_bytes([high, low])) % damaged.len();
        damaged[place] ^= value;
    }
    damaged
}

/// A target by its name, which is also that of its folder of seeds.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// As on the command line of `make fuzz TARGET=...`.
    pub name: &'static str,
    /// Panics if a promise is broken.
    pub run: fn(&[u8]) -> Verdict,
}

/// Every target.
pub const TARGETS: [Target; 17] = [
    Target { name: "access_log", run: access_log },
    Target { name: "body", run: body },
    Target { name: "client_hello", run: client_hello },
    Target { name: "configuration", run: configuration },
    Target { name: "handle", run: handle },
    Target { name: "handshake", run: handshake },
    Target { name: "listing", run: listing },
    Target { name: "nfs", run: nfs },
    Target { name: "nfs_replies", run: nfs_replies },
    Target { name: "path", run: path },
    Target { name: "range", run: range },
    Target { name: "record_open", run: record_open },
    Target { name: "request", run: request },
    Target { name: "response", run: response },
    Target { name: "rpc", run: rpc },
    Target { name: "stream_control", run: stream_control },
    Target { name: "ticket", run: ticket },
];
