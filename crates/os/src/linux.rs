//! What Linux has of its own. The room of another system has the same names.

pub(crate) mod adapter;
pub(crate) mod beneath;
pub(crate) mod clock;
pub(crate) mod entries;
pub(crate) mod facility;
pub(crate) mod facts;
pub(crate) mod file;
pub(crate) mod kernel_tls;
pub(crate) mod mapping;
mod netlink;
pub(crate) mod object;
pub(crate) mod perf;
pub(crate) mod process;
pub(crate) mod processor;
pub(crate) mod receive_mapping;
pub(crate) mod residency;
pub(crate) mod socket;
pub(crate) mod tcp_info;
pub(crate) mod zero_copy;
