//! CPU lists as `taskset -c` writes them: `0-3,8,10-14:2`.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::choice::shortened;

/// The highest CPU number that is accepted: the largest `NR_CPUS` a Linux kernel can be built with is 8192.
const HIGHEST_CPU: usize = 8191;

/// A non-empty set of CPUs in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(Vec<usize>);

impl CpuList {
    /// The CPU numbers, ascending, each once. Never empty.
    #[must_use]
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }
}

impl FromStr for CpuList {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut cpus = Vec::new();
        for item in text.split(',') {
            let (first, last, stride) = parse_item(item).ok_or_else(|| {
                let place = if item == text { String::new() } else { format!(" in \"{}\"", shortened(text)) };
                let item = shortened(item);
                Error::value(format!(
                    "\"{item}\"{place} is no CPU or range of CPUs: write them as taskset -c does, like \
                     0-3,8,10-14:2, up to {HIGHEST_CPU}"
                ))
            })?;
            cpus.extend((first..=last).step_by(stride));
            // Sorting after each item keeps a long list of overlapping ranges from growing without bound.
            cpus.sort_unstable();
            cpus.dedup();
        }
        Ok(CpuList(cpus))
    }
}

/// `N`, `N-M` or `N-M:STRIDE`.
fn parse_item(item: &str) -> Option<(usize, usize, usize)> {
    let (range, stride) = match item.split_once(':') {
        Some((range, stride)) if range.contains('-') => (range, parse_number(stride)?),
        Some(_) => return None,
        None => (item, 1),
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (parse_number(first)?, parse_number(last)?);
    (first <= last && last <= HIGHEST_CPU && stride >= 1).then_some((first, last, stride))
}

/// Plain digits: `str::parse` would also take a sign.
fn parse_number(digits: &str) -> Option<usize> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

impl fmt::Display for CpuList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&cpu_ranges(&self.0))
    }
}

/// Ascending CPU numbers as they are read: `0-3,8`.
#[must_use]
pub fn cpu_ranges(cpus: &[usize]) -> String {
    let ranges = cpus.chunk_by(|one, next| one + 1 == *next).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        [] | [_] => range.iter().map(usize::to_string).collect(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_taskset_reads_them() {
        for (text, cpus, written) in [
            ("0", vec![0], "0"),
            ("0-3", vec![0, 1, 2, 3], "0-3"),
            ("0-3,8,10-14:2", vec![0, 1, 2, 3, 8, 10, 12, 14], "0-3,8,10,12,14"),
            ("5,1,1-2", vec![1, 2, 5], "1-2,5"),
            ("7-7", vec![7], "7"),
            ("0-10:100", vec![0], "0"),
            ("8191", vec![8191], "8191"),
        ] {
            let list: CpuList = text.parse().unwrap();
            assert_eq!(list.as_slice(), cpus, "{text}");
            assert_eq!(list.to_string(), written);
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "",
            ",",
            "0,",
            "a",
            "-",
            "3-",
            "-3",
            "3-1",
            "0-3:0",
            "0-3:",
            "4:2",
            "8192",
            "+1",
            "0 - 3",
            "1-2-3",
            "0-3:1:2",
            "99999999999999999999",
        ] {
            assert!(text.parse::<CpuList>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_faulty_item_is_named() {
        let message = "0-3,x".parse::<CpuList>().unwrap_err().to_string();
        assert!(message.starts_with("\"x\" in \"0-3,x\" is no CPU"), "{message}");
    }
}
