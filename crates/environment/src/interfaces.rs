//! Which interfaces are this process' own, and whether `/sys` tells of them.

use std::io;

use linerate_os::adapter;

use crate::Files;

/// Where `/sys` has interfaces.
pub const FOLDER: &str = "/sys/class/net";

/// More interfaces than this are containers' and bridges' of a busy host; the first ones by name are looked at.
const INTERFACES_LIMIT: usize = 64;

/// The interfaces of a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interfaces {
    /// Their names, in order.
    pub names: Vec<String>,
    /// Whether [`FOLDER`] shows them, or why it is not to be asked: it shows those of the namespace that `/sys` was mounted
    /// in, under names that may well be the same.
    pub in_sys: Result<(), String>,
}

impl Interfaces {
    /// Those of this process' network namespace, as the kernel tells of them.
    #[must_use]
    pub fn own(files: &Files<'_>) -> Self {
        Self::told(files, adapter::interfaces())
    }

    /// Those that the kernel told of. Where it refuses to tell, those of /proc/net/dev: they are of the right namespace, and
    /// nobody knows of which are those in /sys.
    pub(crate) fn told(files: &Files<'_>, told: io::Result<Vec<adapter::Interface>>) -> Self {
        let (names, in_sys) = match told {
            Ok(interfaces) => {
                let is_ours = adapter::shows(&files.path(FOLDER), &interfaces);
                let names = interfaces.into_iter().map(|interface| interface.name).collect();
                (names, if is_ours { Ok(()) } else { Err("/sys shows another network namespace".to_owned()) })
            }
            Err(error) => (listed(files), Err(unknown(&error))),
        };
        Self { names: first(names), in_sys }
    }

    /// Those of another machine, whose files were recorded.
    #[must_use]
    pub fn recorded(files: &Files<'_>) -> Self {
        let names = files.names(FOLDER).into_iter();
        // Beside interfaces there are files: bonding_masters.
        let names = names.filter(|name| files.path(&format!("{FOLDER}/{name}")).is_dir()).collect();
        Self { names: first(names), in_sys: Ok(()) }
    }
}

fn first(mut names: Vec<String>) -> Vec<String> {
    names.truncate(INTERFACES_LIMIT);
    names
}

fn unknown(error: &io::Error) -> String {
    format!("of which network namespace /sys tells is not known: the kernel names no interfaces: {error}")
}

/// The interfaces of /proc/net/dev in order: a line each, after two of headings, the name before a colon.
fn listed(files: &Files<'_>) -> Vec<String> {
    let table = files.text("/proc/net/dev");
    let lines = table.value().map(|table| table.lines().skip(2)).into_iter().flatten();
    let mut names: Vec<String> =
        lines.filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn sys_is_asked_where_it_shows_the_same_interfaces() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("sys/class/net/eth0/ifindex", "2\n");
        write("sys/class/net/eth0/address", "52:54:00:00:00:01\n");
        write("proc/net/dev", "Inter-|   Receive\n face |bytes\n  tun7: 1 2\n  eth0: 3 4\n");
        let files = Files::below(root.path());
        let eth0 = |last| adapter::Interface {
            name: "eth0".to_owned(),
            index: 2,
            address: vec![0x52, 0x54, 0, 0, 0, last],
        };
        let names = vec!["eth0".to_owned()];
        let found = Interfaces { names: names.clone(), in_sys: Ok(()) };
        assert_eq!(Interfaces::told(&files, Ok(vec![eth0(1)])), found);
        assert_eq!(Interfaces::recorded(&files), found);
        let other = Interfaces::told(&files, Ok(vec![eth0(2)]));
        assert_eq!(
            (other.names, other.in_sys.unwrap_err().as_str()),
            (names, "/sys shows another network namespace")
        );
        let refused = Interfaces::told(&files, Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused.names, ["eth0", "tun7"]);
        assert!(refused.in_sys.unwrap_err().contains("the kernel names no interfaces"));
    }
}
