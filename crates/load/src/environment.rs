//! What a run took place on, as far as it bears on the load client.

use std::{collections::BTreeMap, fs};

/// Facts by name. What the system does not tell is left out.
pub(crate) fn capture(open_files: u64) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.insert(name.to_owned(), value);
        }
    };
    let system = rustix::system::uname();
    add("version", Some(env!("CARGO_PKG_VERSION").to_owned()));
    let parts = [system.sysname(), system.release(), system.machine()];
    add("kernel", Some(parts.map(|part| part.to_string_lossy()).join(" ")));
    add("cpu", fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| cpu_model(&text)));
    let cpus = linerate_os::processor::allowed().ok();
    add("cpus", cpus.map(|cpus| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")));
    add("open_files", Some(open_files.to_string()));
    add("local_ports", fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok().map(one_line));
    add(
        "congestion_control",
        fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok().map(one_line),
    );
    facts
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn one_line(text: String) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_told_in_one_line_each() {
        let facts = capture(1024);
        assert_eq!(facts["open_files"], "1024");
        assert!(facts.contains_key("kernel") && facts.contains_key("version"));
        assert!(facts.values().all(|value| !value.contains('\n') && !value.is_empty()), "{facts:?}");
        assert_eq!(cpu_model("x: y\nmodel name\t: A B\n"), Some("A B".to_owned()));
    }
}
