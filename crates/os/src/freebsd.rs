//! What FreeBSD (14 and later) has of its own. The room of another system has the same names. Its kernel TLS is compiled
//! everywhere: on Linux a model of the kernel drives it in tests.

#[cfg(target_os = "freebsd")]
pub(crate) mod adapter;
#[cfg(target_os = "freebsd")]
pub(crate) mod beneath;
#[cfg(target_os = "freebsd")]
pub(crate) mod clock;
#[cfg(target_os = "freebsd")]
pub(crate) mod entries;
#[cfg(target_os = "freebsd")]
pub(crate) mod facility;
#[cfg(target_os = "freebsd")]
pub(crate) mod facts;
#[cfg(target_os = "freebsd")]
pub(crate) mod file;
pub mod kernel_tls;
#[cfg(target_os = "freebsd")]
pub(crate) mod mapping;
#[cfg(target_os = "freebsd")]
pub(crate) mod object;
#[cfg(target_os = "freebsd")]
pub(crate) mod perf;
#[cfg(target_os = "freebsd")]
pub(crate) mod process;
#[cfg(target_os = "freebsd")]
pub(crate) mod processor;
#[cfg(target_os = "freebsd")]
pub(crate) mod receive_mapping;
#[cfg(target_os = "freebsd")]
pub(crate) mod residency;
#[cfg(target_os = "freebsd")]
pub(crate) mod socket;
#[cfg(target_os = "freebsd")]
mod sysctl;
#[cfg(target_os = "freebsd")]
pub(crate) mod tcp_info;
#[cfg(target_os = "freebsd")]
pub(crate) mod zero_copy;
