//! This process and others: whose they are, what they hold, where they live.

pub use crate::system::process::{enter_network, limit_open_files_of, resident_bytes};

/// Whether this process acts as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_touched_is_resident() {
        let before = resident_bytes().expect("told");
        let touched = vec![1_u8; 64 << 20];
        let after = resident_bytes().expect("told");
        assert!(after - before > 48 << 20, "{before} {after} {}", touched.len());
    }
}
