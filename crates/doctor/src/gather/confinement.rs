//! What this process is kept in: namespaces, capabilities, seccomp, a container.

use linerate_environment::{Files, Reading, value};
use linerate_os::facility;

use crate::facts::Confinement;

/// Asks.
pub(super) fn gather(files: &Files<'_>) -> Confinement {
    let status = files.text("/proc/self/status");
    let of_status = |key: &str| match &status {
        Reading::Value(text) => match value(text, ':', key) {
            Some(value) => Reading::Value(value.to_owned()),
            None => Reading::NotAvailable(format!("/proc/self/status has no {key}")),
        },
        Reading::NotAvailable(reason) => Reading::NotAvailable(reason.clone()),
    };
    Confinement {
        own_network: own_network(files),
        first_user: first_user(files),
        container: container(files),
        capabilities: parsed(of_status("CapEff"), |text| u64::from_str_radix(text, 16).ok()),
        seccomp: parsed(of_status("Seccomp"), |mode| match mode {
            "0" => Some("none".to_owned()),
            "1" => Some("strict".to_owned()),
            "2" => Some("filters".to_owned()),
            _ => None,
        }),
        first_open_port: parsed(files.text("/proc/sys/net/ipv4/ip_unprivileged_port_start"), |text| {
            text.parse().ok()
        }),
        io_uring: facility::io_uring().map_err(|error| error.to_string()),
    }
}

/// What a text says, or that it says nothing that is known.
fn parsed<T>(text: Reading<String>, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
    match text {
        Reading::Value(text) => match parse(&text) {
            Some(value) => Reading::Value(value),
            None => Reading::NotAvailable(format!("\"{text}\" is not understood")),
        },
        Reading::NotAvailable(reason) => Reading::NotAvailable(reason),
    }
}

/// The table of settings that only the machine's first network namespace has (net/core/sysctl_net_core.c,
/// `net_core_table`) is told apart from the one that all have (`netns_core_table`); /proc/sys/net shows those of the
/// reader's own.
fn own_network(files: &Files<'_>) -> Reading<bool> {
    let has = |name: &str| files.path(&format!("/proc/sys/net/core/{name}")).exists();
    if !has("somaxconn") {
        return Reading::NotAvailable("there is no /proc/sys/net/core/somaxconn".to_owned());
    }
    Reading::Value(!has("netdev_max_backlog"))
}

/// In the first user namespace every user is itself.
fn first_user(files: &Files<'_>) -> Reading<bool> {
    files.text("/proc/self/uid_map").map(|map| {
        let mut numbers = map.split_ascii_whitespace();
        [numbers.next(), numbers.next(), numbers.next()] == [Some("0"), Some("0"), Some("4294967295")]
    })
}

/// The marks of containers, believed only where processes are numbered apart from the machine's: images of containers
/// are also what small virtual machines are made of.
fn container(files: &Files<'_>) -> Option<String> {
    /// The number of the first PID namespace (include/linux/proc_ns.h, `PROC_PID_INIT_INO`).
    const FIRST: &str = "pid:[4026531836]";
    let namespace = std::fs::read_link(files.path("/proc/self/ns/pid"));
    if namespace.is_ok_and(|name| name.as_os_str() == FIRST) {
        return None;
    }
    if let Reading::Value(name) = files.text("/run/systemd/container") {
        return Some(name);
    }
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman"), ("/dev/lxd/sock", "lxd")];
    if let Some((_, name)) = marks.iter().find(|(path, _)| files.path(path).exists()) {
        return Some((*name).to_owned());
    }
    files.path("/var/run/secrets/kubernetes.io").exists().then(|| "kubernetes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(content: &[(&str, &str)]) -> Confinement {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in content {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        gather(&Files::below(root.path()))
    }

    #[test]
    fn a_container_is_told_from_a_machine() {
        let machine = |backlog: &[(&str, &str)]| {
            let mut content = vec![
                ("proc/sys/net/core/somaxconn", "4096"),
                ("proc/self/status", "CapEff:\t00000000a80425fb\nSeccomp:\t2\n"),
                ("proc/self/uid_map", "         0          0 4294967295\n"),
            ];
            content.extend_from_slice(backlog);
            machine(&content)
        };
        let confined = machine(&[(".dockerenv", "")]);
        assert_eq!(confined.own_network, Reading::Value(true));
        assert_eq!(confined.container.as_deref(), Some("docker"));
        assert_eq!(confined.seccomp, Reading::Value("filters".to_owned()));
        assert_eq!((confined.has(crate::facts::NET_ADMIN), confined.has(0)), (Some(false), Some(true)));
        assert_eq!(confined.first_user, Reading::Value(true));
        let machine_of_an_image = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(machine_of_an_image.path().join("proc/self/ns")).expect("made");
        fs::write(machine_of_an_image.path().join(".dockerenv"), "").expect("written");
        std::os::unix::fs::symlink("pid:[4026531836]", machine_of_an_image.path().join("proc/self/ns/pid"))
            .expect("made");
        assert_eq!(container(&Files::below(machine_of_an_image.path())), None);
        let free = machine(&[("proc/sys/net/core/netdev_max_backlog", "1000")]);
        assert_eq!(free.own_network, Reading::Value(false));
        assert_eq!(free.container, None);
    }

    #[test]
    fn what_is_missing_has_a_reason() {
        let nothing = machine(&[]);
        assert!(nothing.own_network.value().is_none());
        assert!(nothing.capabilities.value().is_none() && nothing.has(12).is_none());
        assert!(nothing.first_user.value().is_none() && nothing.seccomp.value().is_none());
        let rootless = machine(&[("proc/self/uid_map", "0 1000 1\n"), ("proc/self/status", "CapEff: zz\n")]);
        assert_eq!(rootless.first_user, Reading::Value(false));
        assert!(matches!(rootless.capabilities, Reading::NotAvailable(reason) if reason.contains("\"zz\"")));
    }
}
