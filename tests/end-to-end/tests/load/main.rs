//! `linerate load`, the program, against `linerate serve` and nginx.

#[path = "../support/mod.rs"]
mod support;

mod discard;
mod interrupt;
mod many;
mod nginx;
mod program;
mod tls;
mod verify;
