//! Clients that break the rules, by mistake or on purpose, and what the others notice of it: nothing.

mod closing;
mod fixture;
mod handshakes;
mod illegal;
mod legal;
mod records;
