//! Energy of the processor packages, by RAPL (`/sys/class/powercap`): Intel's, and AMD's under the same name.
//!
//! It is all that the package used, for every process; what it uses when idle is a part of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::result::Reading;

/// Where the kernel shows the counters.
pub(super) const POWERCAP: &str = "/sys/class/powercap";

/// More than a package ever draws, in watts: by this a counter that went round more than once is suspected.
const GREATEST_POWER_W: f64 = 1000.0;

/// The counters of all packages at one moment.
#[derive(Clone, Debug)]
pub(super) struct Moment(Reading<Vec<Package>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Package {
    folder: PathBuf,
    energy_uj: u64,
    /// Where the counter begins again at 0.
    range_uj: u64,
}

impl Moment {
    /// Reads the counters below `powercap`.
    pub(super) fn take(powercap: &Path) -> Self {
        Self(packages(powercap))
    }

    /// Joules used since `before`.
    pub(super) fn since(&self, before: &Self, elapsed_s: f64) -> Reading<f64> {
        let (now, earlier) = match (&self.0, &before.0) {
            (Reading::Value(now), Reading::Value(earlier)) => (now, earlier),
            (Reading::NotAvailable(reason), _) | (_, Reading::NotAvailable(reason)) => {
                return Reading::NotAvailable(reason.clone());
            }
        };
        let mut sum_j = 0.0;
        for package in now {
            let Some(earlier) = earlier.iter().find(|earlier| earlier.folder == package.folder) else {
                return Reading::NotAvailable(format!("{} was not there before", package.folder.display()));
            };
            if elapsed_s * GREATEST_POWER_W * 1e6 > package.range_uj as f64 {
                let range_j = package.range_uj / 1_000_000;
                return Reading::NotAvailable(format!(
                    "the counter begins again after {range_j} J, which may have happened more than once"
                ));
            }
            sum_j += package.since(earlier) as f64 / 1e6;
        }
        Reading::Value(sum_j)
    }
}

impl Package {
    fn since(&self, earlier: &Self) -> u64 {
        match self.energy_uj.checked_sub(earlier.energy_uj) {
            Some(used) => used,
            None => self.range_uj.saturating_sub(earlier.energy_uj).saturating_add(self.energy_uj),
        }
    }
}

fn packages(powercap: &Path) -> Reading<Vec<Package>> {
    let Ok(entries) = fs::read_dir(powercap) else {
        let reason = "no RAPL counters: virtual machines are given none, and bare metal needs the module \
                      intel_rapl_msr (also on AMD)";
        return Reading::NotAvailable(reason.to_owned());
    };
    let mut packages = Vec::new();
    for entry in entries.flatten() {
        let folder = entry.path();
        // Below packages there are domains (core, uncore, dram) that are parts of them, or beside them. psys is the
        // whole platform, and intel-rapl-mmio the same packages by another way.
        let is_package = entry.file_name().to_str().is_some_and(|name| name.starts_with("intel-rapl:"))
            && fs::read_to_string(folder.join("name")).is_ok_and(|name| name.starts_with("package-"));
        if !is_package {
            continue;
        }
        let number = |file: &str| {
            let path = folder.join(file);
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            text.trim().parse::<u64>().map_err(|_| format!("{} holds no number", path.display()))
        };
        match (number("energy_uj"), number("max_energy_range_uj")) {
            (Ok(energy_uj), Ok(range_uj)) => packages.push(Package { folder, energy_uj, range_uj }),
            // The kernel lets only root read it since 2020: power tells about keys (CVE-2020-8694).
            (Err(reason), _) | (_, Err(reason)) => return Reading::NotAvailable(reason),
        }
    }
    if packages.is_empty() {
        let reason = format!("{} shows no processor package", powercap.display());
        return Reading::NotAvailable(reason);
    }
    Reading::Value(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As two sockets of EPYC show it: a package each, and the domain "core" below it.
    fn powercap(energies_uj: [u64; 2]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let domain = |path: &str, name: &str, energy_uj: u64| {
            let folder = root.path().join(path);
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join("name"), format!("{name}\n")).expect("written");
            fs::write(folder.join("energy_uj"), format!("{energy_uj}\n")).expect("written");
            fs::write(folder.join("max_energy_range_uj"), "65532610987\n").expect("written");
        };
        domain("intel-rapl:0", "package-0", energies_uj[0]);
        domain("intel-rapl:0:0", "core", 12_345);
        domain("intel-rapl:1", "package-1", energies_uj[1]);
        domain("intel-rapl:2", "psys", 99_999_999);
        domain("intel-rapl-mmio:0", "package-0", energies_uj[0]);
        fs::create_dir(root.path().join("intel-rapl")).expect("made");
        root
    }

    fn used(before: [u64; 2], after: [u64; 2], elapsed_s: f64) -> Reading<f64> {
        let root = powercap(before);
        let before = Moment::take(root.path());
        for (package, energy_uj) in after.iter().enumerate() {
            let file = root.path().join(format!("intel-rapl:{package}/energy_uj"));
            fs::write(file, format!("{energy_uj}\n")).expect("written");
        }
        Moment::take(root.path()).since(&before, elapsed_s)
    }

    #[test]
    fn packages_are_summed_and_nothing_else() {
        assert_eq!(used([1_000_000, 0], [3_500_000, 500_000], 1.0), Reading::Value(3.0));
    }

    #[test]
    fn a_counter_that_begins_again_is_followed() {
        assert_eq!(used([65_532_610_987 - 1_000_000, 0], [2_000_000, 0], 1.0), Reading::Value(3.0));
    }

    #[test]
    fn a_span_in_which_it_may_have_begun_again_twice_is_refused() {
        let Reading::NotAvailable(reason) = used([0, 0], [5, 5], 66.0) else { panic!("refused") };
        assert!(reason.contains("65532 J"), "{reason}");
    }

    #[test]
    fn without_counters_there_is_a_reason() {
        let nothing = Moment::take(Path::new("/nowhere"));
        let Reading::NotAvailable(reason) = nothing.since(&nothing, 1.0) else { panic!("none there") };
        assert!(reason.contains("RAPL"), "{reason}");
        let empty = tempfile::tempdir().expect("a directory");
        let nothing = Moment::take(empty.path());
        assert!(nothing.since(&nothing, 1.0).value().is_none());
        let root = powercap([1, 2]);
        fs::write(root.path().join("intel-rapl:1/energy_uj"), "secret").expect("written");
        let damaged = Moment::take(root.path());
        let Reading::NotAvailable(reason) = damaged.since(&damaged, 1.0) else { panic!("not understood") };
        assert!(reason.contains("energy_uj"), "{reason}");
    }
}
