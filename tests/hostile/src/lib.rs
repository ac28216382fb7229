//! Fault programs against a file server, and what each server did.
//!
//! * An [`Arena`] has a [`Launcher`], which starts linerate or nginx or names a server that runs already, and the files that
//!   are served. [`programs::ALL`] are the faults; each is a function from an arena to [`Findings`].
//! * [`Visitor`] is a client that says exactly how a response ended; [`probe`] a well-behaved one beside the fault; [`load`]
//!   the project's load client, which compares every byte.
//! * [`SlowDisk`] is a disk that is slow, fails or hangs. [`cleanup`] takes away what a program made, whatever happens.

pub mod arena;
pub mod cleanup;
mod disk;
mod disk_files;
pub mod findings;
pub mod linerate;
pub mod load;
pub mod nginx;
pub mod probe;
pub mod programs;
pub mod server;
pub mod table;
pub mod visitor;

pub use arena::{Arena, Family, Form};
pub use disk::{Fault, SlowDisk};
pub use findings::{Findings, Outcome, Row, Verdict};
pub use server::{Launcher, Server, Wishes};
pub use visitor::{Ending, Visitor};
