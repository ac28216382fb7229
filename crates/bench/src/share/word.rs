//! What a word of a text is: an address, a host, a path. A word is what stands between spaces, quotes and brackets.

use std::net::IpAddr;

use crate::network::{VETH_CLIENT, VETH_SERVER};

/// What must not leave the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Secret {
    /// A machine's name.
    Host,
    /// An account's name.
    User,
    /// An IP address, but for loopback's and those that the bench gives to its namespaces.
    Address,
    /// The address of an adapter.
    HardwareAddress,
    /// A serial number, a machine's or a file system's identifier.
    Serial,
    /// A path that is not the system's own.
    Path,
}

/// Folders whose files are the same on many machines.
const OF_THE_SYSTEM: [&str; 9] =
    ["/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/boot/", "/proc/", "/sys/", "/dev/"];

/// Homes below one of these.
const HOMES_OF_THE_SYSTEM: [&str; 1] = ["/usr/home/"];

/// Folders whose first component is an account's name.
pub(super) const HOMES: [&str; 5] = ["/home/", "/Users/", "/usr/home/", "/export/home/", "/var/home/"];

/// The last label of names of machines, beside all that have two letters.
const TOP_LEVELS: [&str; 32] = [
    "com",
    "net",
    "org",
    "edu",
    "gov",
    "mil",
    "int",
    "arpa",
    "info",
    "biz",
    "cloud",
    "app",
    "dev",
    "tech",
    "online",
    "site",
    "local",
    "lan",
    "home",
    "internal",
    "intranet",
    "corp",
    "private",
    "localdomain",
    "test",
    "example",
    "invalid",
    "systems",
    "network",
    "host",
    "services",
    "digital",
];

/// Two letters that end the names of files.
const ENDINGS: [&str; 13] = ["rs", "so", "sh", "md", "py", "gz", "xz", "js", "ko", "db", "bz", "rb", "cc"];

/// Whether this character ends a word.
pub(super) fn is_delimiter(letter: char) -> bool {
    letter.is_whitespace() || "\"'`,;()<>[]{}|=".contains(letter)
}

/// An address that tells something about a machine.
pub(super) fn is_address(word: &str) -> bool {
    word.parse().is_ok_and(|address: IpAddr| {
        let ours = [VETH_SERVER, VETH_CLIENT].map(IpAddr::V4);
        !(address.is_loopback() || address.is_unspecified() || ours.contains(&address))
    })
}

/// `52:54:00:12:34:56`, `52-54-00-12-34-56`, `5254.0012.3456`, and the name of an interface that is made of one.
pub(super) fn is_hardware_address(word: &str) -> bool {
    let grouped = |separator: char, groups: usize, digits: usize| {
        let mut parts = word.split(separator);
        parts.clone().count() == groups && parts.all(|part| part.len() == digits && is_hexadecimal(part))
    };
    let of_interface =
        || word.strip_prefix("enx").is_some_and(|rest| rest.len() == 12 && is_hexadecimal(rest));
    // Infiniband's have 20 bytes.
    let long = [6, 8, 20].into_iter().any(|groups| grouped(':', groups, 2) || grouped('-', groups, 2));
    long || grouped('.', 3, 4) || of_interface()
}

/// A UUID, or a machine's identifier: 32 digits.
pub(super) fn is_identifier(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    let digits = word.chars().filter(|letter| *letter != '-').count();
    word.split('-').all(is_hexadecimal) && digits == 32 && (lengths == [32] || lengths == [8, 4, 4, 4, 12])
}

fn is_hexadecimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A machine's full name: `media.example.org`.
pub(super) fn is_host(word: &str) -> bool {
    let labels: Vec<&str> = word.trim_end_matches('.').split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let Some(last) = labels.last().map(|last| last.to_ascii_lowercase()) else { return false };
    let is_country = last.len() == 2 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    labels.len() > 1
        && labels.iter().all(is_label)
        && ((is_country && !ENDINGS.contains(&last.as_str())) || TOP_LEVELS.contains(&last.as_str()))
}

/// Whether this is a path from the root or from a home.
pub(super) fn is_path(word: &str) -> bool {
    word.starts_with('/') && word.len() > 1 || word.starts_with("~/") || is_named_home(word)
}

/// `~alice`, `~alice/films`.
fn is_named_home(word: &str) -> bool {
    word.strip_prefix('~').is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
}

/// Whether a path says nothing about the machine that it is on.
pub(super) fn is_of_the_system(path: &str) -> bool {
    let below = |folders: &[&str]| {
        folders.iter().any(|folder| path.starts_with(folder) || folder.strip_suffix('/') == Some(path))
    };
    below(&OF_THE_SYSTEM) && !below(&HOMES_OF_THE_SYSTEM)
}

/// A file that the bench makes: `/2000000000-0.bin`.
pub(super) fn is_made_by_the_bench(path: &str) -> bool {
    let name = path.trim_start_matches('/');
    name.strip_suffix(".bin").and_then(|stem| stem.split_once('-')).is_some_and(|(bytes, index)| {
        [bytes, index].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_from_settings_versions_and_files() {
        for host in ["media.example.org", "db1.lan", "a-b.corp.example.com", "peer.example.de", "x.internal"]
        {
            assert!(is_host(host), "{host}");
        }
        for other in [
            "net.ipv4.tcp_wmem",
            "sweep.connections",
            "linerate.toml",
            "nginx.conf",
            "1.26.3",
            "6.18.44-amd64",
            "libssl.so.3",
            "report.rs",
            "s.",
            "wmem",
        ] {
            assert!(!is_host(other), "{other}");
        }
    }

    #[test]
    fn addresses_of_every_machine_are_no_secret() {
        for secret in ["192.0.2.7", "2001:db8::7", "fe80::1", "10.0.0.1"] {
            assert!(is_address(secret), "{secret}");
        }
        for other in ["127.0.0.1", "::1", "0.0.0.0", "10.213.77.1", "1.22.1", "12:34:56", "std::io"] {
            assert!(!is_address(other), "{other}");
        }
    }

    #[test]
    fn numbers_of_hardware_are_known_by_their_form() {
        for secret in ["52:54:00:12:34:56", "52-54-00-12-34-56", "5254.0012.3456", "enx525400123456"] {
            assert!(is_hardware_address(secret), "{secret}");
        }
        assert!(!is_hardware_address("12:34:56") && !is_hardware_address("eth0"));
        assert!(is_identifier("0123456789abcdef0123456789abcdef"));
        assert!(is_identifier("01234567-89ab-cdef-0123-456789abcdef"));
        assert!(!is_identifier("7f0f96241aac") && !is_identifier("--------"));
    }

    #[test]
    fn paths_of_the_system_stay() {
        assert!(is_of_the_system("/usr/sbin/nginx") && is_of_the_system("/proc/net/tls_stat"));
        assert!(is_of_the_system("/boot") && !is_of_the_system("/boots") && !is_of_the_system("/usr/home"));
        assert!(!is_of_the_system("/usr/home/alice/x") && !is_of_the_system("/srv/media"));
        assert!(is_path("/srv") && is_path("~/x") && is_path("~alice") && !is_path("s/GB") && !is_path("/"));
        assert!(is_made_by_the_bench("/2000000000-0.bin") && !is_made_by_the_bench("/alice-0.bin"));
    }
}
