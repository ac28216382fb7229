//! NFS version 4, minor versions 1 and 2 (RFC 8881, RFC 7862).

pub(crate) mod attributes;
mod compound;
mod establish;
mod evaluate;
mod objects;
mod open;
mod operation;
mod read;
mod set;
mod state;
mod status;

pub(crate) use compound::{Arrival, Circumstances, Header, Sequenced, arrive, keep};
pub(crate) use evaluate::{Compound, Memory, evaluate};
pub use operation::Operations;
pub use state::Sizes;
pub(crate) use state::{Principal, State};

/// The procedure's name in the RFC.
pub(crate) const COMPOUND_LABEL: &str = "COMPOUND";
