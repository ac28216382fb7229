//! The kernel's own counts of what its `tls` module did: `/proc/net/tls_stat`.
//!
//! They belong to the network namespace of the reading process: a server whose sockets were made in
//! another namespace reads zeros, and two servers in one namespace read each other's.

use crate::kernel_tls::Statistic;
use std::{fs, io};

/// Reads `/proc/net/tls_stat`.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] while the `tls` module is not loaded; the kernel's.
pub fn statistics() -> io::Result<Vec<Statistic>> {
    fs::read_to_string("/proc/net/tls_stat").map(|text| parse(&text))
}

/// Lines that are no name and number are left out: what a later kernel may write there is not ours to guess.
fn parse(text: &str) -> Vec<Statistic> {
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(char::is_whitespace)?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
            Some(Statistic { name: name.to_owned(), value: value.trim().parse().ok()? }).filter(|_| is_name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_and_numbers() {
        let text =
            "TlsCurrTxSw                     \t2\nTlsTxSw                         \t17\nodd\nx\"y 3\n a 4\n";
        let read: Vec<(String, u64)> = parse(text).into_iter().map(|line| (line.name, line.value)).collect();
        assert_eq!(read, [("TlsCurrTxSw".to_owned(), 2), ("TlsTxSw".to_owned(), 17)]);
    }
}
