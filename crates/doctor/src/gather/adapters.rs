//! Network interfaces: what their drivers say, where their interrupts go, what went wrong on them.

use std::collections::BTreeMap;

use linerate_environment::{Files, INTERFACES_FOLDER, Interfaces, Reading};
use linerate_os::adapter;

use crate::facts::{Adapter, Interrupt};

/// More interrupts than this no adapter has.
const INTERRUPTS_LIMIT: usize = 1024;
/// Counters of what went wrong, of those that all interfaces have.
const COUNTERS: [&str; 7] = [
    "rx_dropped",
    "rx_errors",
    "rx_missed_errors",
    "rx_over_errors",
    "tx_carrier_errors",
    "tx_dropped",
    "tx_errors",
];

/// Asks for all but loopback.
pub(super) fn gather(files: &Files<'_>, interfaces: &Interfaces) -> Vec<Adapter> {
    let names = interfaces.names.iter().filter(|name| *name != "lo");
    names.map(|name| of_interface(files, name.clone(), interfaces.in_sys.as_ref().err())).collect()
}

/// `elsewhere` is why /sys is not asked.
fn of_interface(files: &Files<'_>, name: String, elsewhere: Option<&String>) -> Adapter {
    let folder = &format!("{INTERFACES_FOLDER}/{name}");
    let told = |file: &str| match elsewhere {
        None => files.text(&format!("{folder}/{file}")),
        Some(reason) => Reading::NotAvailable(reason.clone()),
    };
    let refused =
        |what: &'static str| move |error: std::io::Error| format!("the driver tells no {what}: {error}");
    Adapter {
        // Devices that cannot know say "unknown".
        up: told("operstate").value().is_none_or(|state| state != "down"),
        is_device: elsewhere.is_none() && files.path(&format!("{folder}/device")).exists(),
        lower: match elsewhere {
            None => files
                .names(folder)
                .iter()
                .filter_map(|name| name.strip_prefix("lower_"))
                .map(str::to_owned)
                .collect(),
            Some(_) => Vec::new(),
        },
        beneath: match elsewhere {
            None => adapter::beneath(&files.path(INTERFACES_FOLDER), &name).unwrap_or_else(|_| alone(&name)),
            Some(_) => alone(&name),
        },
        driver: reading(adapter::driver(&name).map_err(refused("name"))),
        features: reading(adapter::feature_states(&name).map_err(refused("features"))),
        channels: reading(adapter::channels(&name).map_err(refused("number of queues"))),
        mtu_bytes: match told("mtu") {
            Reading::Value(text) => reading(text.parse().map_err(|_| format!("\"{text}\" is no MTU"))),
            Reading::NotAvailable(reason) => Reading::NotAvailable(reason),
        },
        node: match told("device/numa_node") {
            Reading::Value(node) => reading(node.parse().map_err(|_| "it belongs to no node".to_owned())),
            Reading::NotAvailable(_) => Reading::NotAvailable("it is no device on a bus".to_owned()),
        },
        interrupts: match elsewhere {
            None => interrupts(files, folder),
            Some(reason) => Reading::NotAvailable(reason.clone()),
        },
        tls_counters: reading(adapter::statistics(&name).map_err(refused("counters")))
            .map(|counters| counters.into_iter().filter(|(counter, _)| counter.contains("tls")).collect()),
        errors: COUNTERS
            .iter()
            .filter_map(|counter| {
                let count = told(&format!("statistics/{counter}"));
                let count = count.value()?.parse().ok().filter(|&count: &u64| count > 0)?;
                Some(((*counter).to_owned(), count))
            })
            .collect::<BTreeMap<_, _>>(),
        name,
    }
}

fn alone(name: &str) -> adapter::Beneath {
    adapter::Beneath { ports: vec![name.to_owned()], ..adapter::Beneath::default() }
}

fn reading<T>(result: Result<T, String>) -> Reading<T> {
    result.map_or_else(Reading::NotAvailable, Reading::Value)
}

/// Those that the device asked for (message-signalled ones), or, on virtio, the device that it is on.
fn interrupts(files: &Files<'_>, folder: &str) -> Reading<Vec<Interrupt>> {
    let places = [format!("{folder}/device/msi_irqs"), format!("{folder}/device/../msi_irqs")];
    let numbers: Vec<u32> = places
        .iter()
        .map(|place| files.names(place))
        .find(|names| !names.is_empty())
        .unwrap_or_default()
        .iter()
        .filter_map(|name| name.parse().ok())
        .take(INTERRUPTS_LIMIT)
        .collect();
    if numbers.is_empty() {
        return Reading::NotAvailable(format!("there is no {folder}/device/msi_irqs"));
    }
    let found: Vec<Interrupt> = numbers
        .into_iter()
        .filter_map(|number| {
            let effective = files.text(&format!("/proc/irq/{number}/effective_affinity_list"));
            let asked = || files.text(&format!("/proc/irq/{number}/smp_affinity_list"));
            let list = effective.value().cloned().or_else(|| asked().value().cloned())?;
            Some(Interrupt { number, cpus: cpu_list(&list) })
        })
        .collect();
    if found.is_empty() {
        return Reading::NotAvailable("/proc/irq does not tell which CPUs get its interrupts".to_owned());
    }
    Reading::Value(found)
}

/// The most CPUs that Linux can be built for on x86-64.
const CPUS_LIMIT: usize = 8192;

/// `0-3,8` as numbers.
pub(crate) fn cpu_list(text: &str) -> Vec<usize> {
    text.split(',')
        .filter_map(|part| {
            let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
            let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
            (first <= last && last < CPUS_LIMIT).then_some(first..=last)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpu_list("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(cpu_list("5"), [5]);
        assert_eq!(cpu_list(""), [] as [usize; 0]);
        assert_eq!(cpu_list("3-1,0-99999999,x"), [] as [usize; 0]);
    }

    #[test]
    fn an_adapter_is_read_from_its_files() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        let device = "sys/class/net/linerate-none0/device";
        for (path, text) in [
            ("sys/class/net/linerate-none0/mtu", "9000"),
            ("sys/class/net/linerate-none0/operstate", "down"),
            (&format!("{device}/numa_node"), "1"),
            (&format!("{device}/msi_irqs/41"), "msix"),
            (&format!("{device}/msi_irqs/42"), "msix"),
            ("proc/irq/41/effective_affinity_list", "2-3"),
            ("proc/irq/42/smp_affinity_list", "8"),
            ("sys/class/net/linerate-none0/statistics/tx_dropped", "7"),
            ("sys/class/net/linerate-none0/statistics/tx_errors", "0"),
            ("sys/class/net/linerate-none0/lower_eth7/x", ""),
            ("sys/class/net/eth7/mtu", "9000"),
        ] {
            write(path, text);
        }
        let names = ["eth7", "lo", "linerate-none0"].map(str::to_owned).to_vec();
        let mut interfaces = Interfaces { names, in_sys: Ok(()) };
        let adapters = gather(&Files::below(root.path()), &interfaces);
        let [_, adapter] = &adapters[..] else { panic!("{adapters:?}") };
        assert_eq!(adapter.name, "linerate-none0");
        assert!(adapter.is_device && !adapter.up);
        assert_eq!(adapter.lower, ["eth7"]);
        assert_eq!(adapter.beneath.ports, ["eth7"]);
        assert!(matches!(&adapter.beneath.obstacle, Some(adapter::Obstacle::NoBond { .. })));
        assert_eq!((&adapter.mtu_bytes, &adapter.node), (&Reading::Value(9000), &Reading::Value(1)));
        let interrupts =
            vec![Interrupt { number: 41, cpus: vec![2, 3] }, Interrupt { number: 42, cpus: vec![8] }];
        assert_eq!(adapter.interrupts, Reading::Value(interrupts));
        assert_eq!(adapter.errors, BTreeMap::from([("tx_dropped".to_owned(), 7)]));
        // The machine that runs the test has no such interface: its driver cannot be asked.
        assert!(adapter.driver.value().is_none() && adapter.features.value().is_none());

        // In another namespace /sys tells of interfaces that are not ours, even under the same name.
        interfaces.in_sys = Err("another namespace".to_owned());
        let adapters = gather(&Files::below(root.path()), &interfaces);
        assert_eq!(adapters.len(), 2);
        for adapter in &adapters {
            assert_eq!(adapter.mtu_bytes, Reading::NotAvailable("another namespace".to_owned()));
            assert!(adapter.errors.is_empty() && adapter.interrupts.value().is_none());
            assert!(adapter.lower.is_empty() && !adapter.is_device);
        }
    }
}
