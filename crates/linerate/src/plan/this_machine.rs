//! A description of this machine, from what /proc and /sys tell, for `linerate plan` and to be corrected by hand.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

/// What a core can pull from memory where nobody has measured: the bandwidth of a machine is guessed by its cores.
const MEMORY_GB_PER_S_A_CORE: f64 = 8.0;
/// The rate assumed for an adapter if its driver does not know it.
const NIC_GBIT: f64 = 10.0;

/// What was read of an adapter.
#[derive(Debug, Default)]
struct Adapter {
    name: String,
    mbit: Option<f64>,
    mtu_bytes: Option<u32>,
    encrypts: bool,
    driver: Option<String>,
}

/// This machine as TOML, each guess with a comment.
pub(super) fn describe() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let adapter = default_interface(&read("/proc/net/route")).map(|name| {
        let of = |file: &str| read(&format!("/sys/class/net/{name}/{file}"));
        let features = linerate_os::adapter::features(&name).unwrap_or_default();
        Adapter {
            mbit: of("speed").trim().parse().ok().filter(|mbit| *mbit > 0.0),
            mtu_bytes: of("mtu").trim().parse().ok(),
            encrypts: features.get("tls-hw-tx-offload").copied().unwrap_or_default(),
            driver: linerate_os::adapter::driver(&name).ok().map(|driver| driver.name),
            name,
        }
    });
    let release = read("/proc/sys/kernel/osrelease");
    description(&read("/proc/cpuinfo"), release.trim(), adapter.as_ref())
}

/// The interface of the default route, of /proc/net/route.
fn default_interface(route: &str) -> Option<String> {
    route.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?;
        (fields.next()? == "00000000").then(|| name.to_owned())
    })
}

fn description(cpuinfo: &str, release: &str, adapter: Option<&Adapter>) -> String {
    let (cores, cores_note) = cores(cpuinfo);
    let (clock_ghz, clock_note) = clock_ghz(cpuinfo);
    let vaes = has(cpuinfo, "vaes") && has(cpuinfo, "avx512f");
    let user_aead = if vaes { "vaes" } else { "aes-ni" };
    // The kernel's AES-GCM has VAES since Linux 6.10.
    let kernel_aead = if vaes && version(release) >= (6, 10) { "vaes" } else { "aes-ni" };
    let model = field(cpuinfo, "model name").unwrap_or("a processor that gives no name");
    let mut text = format!(
        "title = {}\nsource = \"/proc and /sys of this machine; what was guessed is marked\"\n",
        quoted(&format!("This machine: {cores} cores of {model}"))
    );
    // Writing to a text cannot fail.
    let _ =
        writeln!(text, "stack = \"linux\"\ncores = {cores}{cores_note}\nclock_ghz = {clock_ghz}{clock_note}");
    let memory = f64::from(cores) * MEMORY_GB_PER_S_A_CORE;
    let _ = writeln!(
        text,
        "# Guessed: {MEMORY_GB_PER_S_A_CORE} GB/s a core. Five sixths of what the memory's data sheet promises is better.\n\
         memory_gb_per_s = {memory}"
    );
    let _ = writeln!(text, "user_aead = \"{user_aead}\"\nkernel_aead = \"{kernel_aead}\"");
    let _ = writeln!(text, "kernel_release = {}", quoted(if release.is_empty() { "6.12" } else { release }));
    describe_adapter(&mut text, adapter);
    text
}

fn describe_adapter(text: &mut String, adapter: Option<&Adapter>) {
    let gbit = adapter.and_then(|adapter| adapter.mbit).map(|mbit| mbit / 1000.0);
    let _ = match (adapter, gbit) {
        (Some(adapter), Some(gbit)) => writeln!(text, "# {}\nnic_gbit = {gbit}", adapter.name),
        (Some(adapter), None) => {
            writeln!(text, "# Guessed: {} does not tell its rate.\nnic_gbit = {NIC_GBIT}", adapter.name)
        }
        (None, _) => writeln!(text, "# Guessed: there is no default route.\nnic_gbit = {NIC_GBIT}"),
    };
    let Some(adapter) = adapter else { return };
    if let Some(mtu_bytes) = adapter.mtu_bytes.filter(|mtu| (576..=65_535).contains(mtu)) {
        let _ = writeln!(text, "mtu_bytes = {mtu_bytes}");
    }
    if adapter.encrypts {
        let driver = quoted(adapter.driver.as_deref().unwrap_or("the driver"));
        let _ = writeln!(
            text,
            "# Guessed: a ConnectX-6 Dx with the drivers of 2024. `linerate calibrate` measures it.\n\
             nic_set_ups_per_s = 850\nnic_flows = 20000\nnic_zero_copy = false\nnic_tls_versions = [\"1.2\"]\n\
             nic_driver = {driver}"
        );
    }
}

/// Physical cores, and a comment where they are processors instead.
fn cores(cpuinfo: &str) -> (u32, &'static str) {
    let (mut different, mut package, mut processors) = (BTreeSet::new(), "", 0u32);
    for (name, value) in cpuinfo.lines().filter_map(|line| line.split_once(':')) {
        match name.trim() {
            "processor" => processors += 1,
            "physical id" => package = value.trim(),
            "core id" => {
                different.insert((package, value.trim()));
            }
            _ => {}
        }
    }
    match u32::try_from(different.len()) {
        Ok(cores @ 1..=4096) => (cores, ""),
        _ => (processors.clamp(1, 4096), " # processors: /proc/cpuinfo tells no cores"),
    }
}

/// The nominal clock: that of the model's name, else the present one.
fn clock_ghz(cpuinfo: &str) -> (f64, &'static str) {
    let sound = |ghz: &f64| (0.1..=20.0).contains(ghz);
    let of_name = field(cpuinfo, "model name").and_then(|model| {
        let (_, ghz) = model.rsplit_once('@')?;
        ghz.trim().strip_suffix("GHz")?.trim().parse().ok().filter(sound)
    });
    if let Some(ghz) = of_name {
        return (ghz, "");
    }
    let present = field(cpuinfo, "cpu MHz").and_then(|mhz| mhz.parse::<f64>().ok()).map(|mhz| mhz / 1000.0);
    match present.filter(sound) {
        Some(ghz) => ((ghz * 100.0).round() / 100.0, " # the clock of this moment"),
        None => (3.0, " # guessed"),
    }
}

fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(known, _)| known.trim() == name)
        .map(|(_, value)| value.trim())
}

fn has(cpuinfo: &str, flag: &str) -> bool {
    field(cpuinfo, "flags").is_some_and(|flags| flags.split_whitespace().any(|known| known == flag))
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers =
        release.split(|character: char| !character.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// As a TOML string.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|character| !character.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use linerate_plan::{CipherImplementation, Machine};

    use super::*;

    const CPUINFO: &str = "processor\t: 0\nmodel name\t: Xeon \"X\" CPU @ 2.30GHz\ncpu MHz\t\t: 800.0\nphysical id\t: 0\ncore id\t\t: 0\nflags\t\t: fpu aes avx512f vaes\n\nprocessor\t: 1\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor\t: 2\nphysical id\t: 1\ncore id\t\t: 0\n";

    fn machine(cpuinfo: &str, release: &str, adapter: Option<&Adapter>) -> Machine {
        Machine::parse("this", &description(cpuinfo, release, adapter)).unwrap()
    }

    #[test]
    fn this_machine_can_be_described() {
        Machine::parse("this", &describe()).unwrap();
    }

    #[test]
    fn siblings_are_one_core_and_the_clock_is_nominal() {
        let adapter = Adapter {
            name: "eth0".to_owned(),
            mbit: Some(25_000.0),
            mtu_bytes: Some(9000),
            encrypts: true,
            driver: Some("mlx5_core".to_owned()),
        };
        let machine = machine(CPUINFO, "6.12.41+deb13-amd64", Some(&adapter));
        assert_eq!((machine.cores, machine.clock_ghz), (2, 2.3));
        assert_eq!((machine.nic_gbit, machine.mtu_bytes), (25.0, 9000));
        assert_eq!(
            (machine.user_aead, machine.kernel_aead),
            (CipherImplementation::Vaes, CipherImplementation::Vaes)
        );
        assert!(machine.nic_encrypts() && !machine.nic_zero_copy);
        assert_eq!(machine.nic_driver, "mlx5_core");
    }

    #[test]
    fn what_is_not_told_is_guessed_and_marked() {
        let text = description("", "5.10.0", None);
        assert!(
            text.contains("# guessed") && text.contains("# Guessed: there is no default route."),
            "{text}"
        );
        let machine = machine("", "5.10.0", None);
        assert_eq!((machine.cores, machine.kernel_aead), (1, CipherImplementation::AesNi));
        assert!(!machine.nic_encrypts());
    }

    #[test]
    fn the_default_route_tells_the_interface() {
        let route = "Iface\tDestination\tGateway\nveth1\t0002A8C0\t00000000\neth0\t00000000\t0102A8C0\n";
        assert_eq!(default_interface(route).as_deref(), Some("eth0"));
        assert_eq!(default_interface("Iface\tDestination\n"), None);
    }
}
