//! Sending without a copy, as Linux has it: `MSG_ZEROCOPY`, and `io_uring`.

mod notices;
mod uring;

pub use notices::Notices;
pub use uring::Submissions;
