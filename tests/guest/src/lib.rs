//! What tests of kernel TLS stand on, beside `linerate-end-to-end`: whether this kernel has it, what it has counted,
//! nginx as a peer that uses it, the software
//! adapter, and openssl as a client that is talked to in turns.
//!
//! The counters are the network namespace's: tests that read them must run one at a time (`--test-threads=1`), and
//! alone on the machine. `guest/test` sees to both.

mod adapter;
mod nginx;
mod openssl_session;
mod statistics;

pub use adapter::{Adapter, Held, assert_well, insert, ip, kernel_messages, remove};
pub use nginx::Nginx;
pub use openssl_session::OpensslSession;
pub use statistics::{Kernel, TlsStatistics};

/// Whether the kernel knows TLS (`TCP_ULP` of the name `tls`). Where not, the test is left out loudly.
#[must_use]
pub fn has_kernel_tls(test: &str) -> bool {
    // The list names only what is loaded; in the guest that is the case.
    let protocols = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp").unwrap_or_default();
    let known = protocols.split_whitespace().any(|protocol| protocol == "tls");
    if !known {
        linerate_end_to_end::skip(
            test,
            "this kernel has no TLS (module tls); make guest-test boots one that has",
        );
    }
    known
}
