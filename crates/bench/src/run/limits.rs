//! What this machine allows: open files, and memory for files that are to be cached.

use rustix::process::{Resource, Rlimit};

/// What we wish for: 40,000 connections and the files that they are served from, and room.
const WISHED_FILES: u64 = 200_000;

/// Descriptors that processes hold beside connections.
const SPARE_FILES: u64 = 600;

/// The share of available memory that files may take.
const MOST_OF_MEMORY: f64 = 0.8;

/// As many descriptors as we wish for, or may have; servers and clients inherit it.
pub(super) fn raise_file_limit() {
    let now = rustix::process::getrlimit(Resource::Nofile);
    let hard = now.maximum.unwrap_or(u64::MAX);
    let wish = hard.max(WISHED_FILES);
    if rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(wish), maximum: Some(wish) })
        .is_err()
    {
        // Only root may raise the hard limit; what it comes to is checked by `too_many_connections`.
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(hard), ..now });
    }
}

/// Why so many connections cannot be served here, if they cannot. nginx holds a file for each, too.
pub(super) fn too_many_connections(connections: u32) -> Option<String> {
    let limit = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let needed = 2 * u64::from(connections) + SPARE_FILES;
    (limit < needed).then(|| {
        format!("{needed} open files are needed, and the limit is {limit} (raise it with `ulimit -Hn`)")
    })
}

/// Why files of so many bytes cannot all be in the page cache, if they cannot.
pub(super) fn too_large_for_memory(bytes: u64) -> Option<String> {
    let available_bytes = available_bytes(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    (bytes as f64 > MOST_OF_MEMORY * available_bytes as f64).then(|| {
        format!(
            "files of {bytes} bytes do not fit into memory, of which {available_bytes} bytes are available"
        )
    })
}

/// `MemAvailable:   22000000 kB`
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_said_with_what_is_needed() {
        assert_eq!(too_many_connections(1), None);
        let reason = too_many_connections(u32::MAX).unwrap();
        assert!(reason.starts_with("8589935190 open files are needed"), "{reason}");
        assert_eq!(too_large_for_memory(1000), None);
        assert!(too_large_for_memory(1 << 60).unwrap().contains("do not fit into memory"));
        assert_eq!(available_bytes("MemFree: 1 kB\nMemAvailable:  2000 kB\n"), Some(2_048_000));
    }
}
