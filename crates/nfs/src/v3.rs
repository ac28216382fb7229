//! NFS version 3 (RFC 1813), for old clients. There are no sessions: each call stands alone.

mod attributes;
mod listing;
mod mount;
mod procedures;
mod status;

pub(crate) use mount::{MountProcedure, mount};
pub(crate) use procedures::{Procedure, call};
pub(crate) use status::Stop;
