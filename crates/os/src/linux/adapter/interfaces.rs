//! The interfaces of the network namespace that this process is in.

use crate::adapter::Interface;
use std::{fs, io, path::Path};

/// All interfaces of this process' network namespace, sorted by name.
///
/// # Errors
/// The kernel's: `EAFNOSUPPORT` where a sandbox has no `AF_NETLINK`.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    use crate::linux::netlink;

    // RTM_GETLINK, IFLA_ADDRESS and IFLA_IFNAME of include/uapi/linux.
    const GET_LINK: u16 = 18;
    const ADDRESS: u16 = 1;
    const NAME: u16 = 3;
    /// `struct ifinfomsg`; the index is its third field.
    const MESSAGE_BYTES: usize = 16;

    let interface = |answer: &Vec<u8>| {
        let attributes = answer.get(MESSAGE_BYTES..)?;
        let name = netlink::attribute(attributes, NAME)?;
        let name = name.strip_suffix(&[0]).unwrap_or(name);
        Some(Interface {
            name: String::from_utf8_lossy(name).into_owned(),
            index: netlink::number(answer, 4)?,
            address: netlink::attribute(attributes, ADDRESS).unwrap_or_default().to_vec(),
        })
    };
    let answers = netlink::ask_for_all(GET_LINK, &[0; MESSAGE_BYTES])?;
    let mut interfaces: Vec<Interface> = answers.iter().filter_map(interface).collect();
    interfaces.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(interfaces)
}

/// Whether `folder` (`/sys/class/net`) shows these interfaces, and none of another namespace: it shows those of the namespace
/// that it was mounted in. Names and numbers are often the same in two namespaces (`eth0` is the second in many), and
/// loopback is the same in all; so all of them have to be ours, with their hardware addresses.
#[must_use]
pub fn shows(folder: &Path, interfaces: &[Interface]) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    // Beside interfaces there are files: bonding_masters.
    let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let is_ours = |path: &Path| {
        let told = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let name = path.file_name().unwrap_or_default();
        interfaces.iter().any(|interface| {
            name == interface.name.as_str()
                && told("ifindex").trim() == interface.index.to_string()
                && told("address").trim() == in_words(&interface.address)
        })
    };
    folders.into_iter().all(|path| is_ours(&path))
}

/// As sysfs writes a hardware address.
fn in_words(address: &[u8]) -> String {
    address.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysfs_shows_a_namespace_if_all_in_it_are_of_that() {
        let folder = std::env::temp_dir().join(format!("linerate-interfaces-{}", std::process::id()));
        let write = |name: &str, index: u32, address: &str| {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("ifindex"), format!("{index}\n")).unwrap();
            fs::write(folder.join(name).join("address"), format!("{address}\n")).unwrap();
        };
        let interface = |name: &str, index, address: &[u8]| Interface {
            name: name.to_owned(),
            index,
            address: address.to_vec(),
        };
        let ours = [
            interface("eth0", 2, &[0x52, 0x54, 0, 0x0a, 1, 2]),
            interface("lo", 1, &[0; 6]),
            interface("tun0", 3, &[]),
        ];
        assert!(!shows(&folder, &ours), "there is no such folder");
        write("lo", 1, "00:00:00:00:00:00");
        write("eth0", 2, "52:54:00:0a:01:02");
        write("tun0", 3, "");
        fs::write(folder.join("bonding_masters"), "bond0").unwrap();
        assert!(shows(&folder, &ours));
        assert!(!shows(&folder, &ours[..2]), "one is not ours");
        for (index, address) in [(3, "52:54:00:0a:01:02"), (2, "52:54:00:0a:01:03"), (2, "")] {
            write("eth0", index, address);
            assert!(!shows(&folder, &ours), "{index} {address}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_kernel_tells_of_loopback() {
        let interfaces = interfaces().unwrap();
        let loopback = interfaces.iter().find(|interface| interface.name == "lo").unwrap();
        assert_eq!((loopback.index, &loopback.address[..]), (1, &[0; 6][..]));
        let table = fs::read_to_string("/proc/net/dev").unwrap();
        let mut names: Vec<&str> =
            table.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
        names.sort_unstable();
        assert!(names.into_iter().eq(interfaces.iter().map(|interface| interface.name.as_str())));
    }
}
