//! TLS as real clients speak it: rustls, curl and openssl.

mod certificates;
mod choice;
mod development;
mod fixture;
mod interop;
mod key_updates;
mod record_limit;
mod secrets;
mod tickets;
