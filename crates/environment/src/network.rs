//! The network stack: the settings that decide how much is in flight, and whether kernel TLS is there.

use std::path::Path;

use crate::{
    Group, Reading,
    facts::{Facts, missing},
};

/// Below /proc/sys.
const SETTINGS: [&str; 18] = [
    "net/core/busy_poll",
    "net/core/default_qdisc",
    "net/core/netdev_max_backlog",
    "net/core/optmem_max",
    "net/core/rmem_max",
    "net/core/somaxconn",
    "net/core/wmem_max",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_limit_output_bytes",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_mem",
    "net/ipv4/tcp_notsent_lowat",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_wmem",
];

pub(crate) fn facts(root: &Path) -> Group {
    let mut facts = Facts::below(root);
    for setting in SETTINGS {
        facts.file(&setting.replace('/', "."), &format!("/proc/sys/{setting}"));
    }
    let module = module_tls(&facts);
    facts.note("kernel TLS", module);
    facts.finish()
}

fn module_tls(facts: &Facts<'_>) -> Reading<String> {
    let there = |text: &str| Reading::Value(text.to_owned());
    // The statistics are there as soon as the code is, as a module or built in.
    if facts.path("/proc/net/tls_stat").exists() || facts.path("/sys/module/tls").exists() {
        return there("the module tls is loaded");
    }
    let Reading::Value(release) = facts.text("/proc/sys/kernel/osrelease") else {
        return missing("neither /proc/net/tls_stat nor the kernel's release can be read");
    };
    let index = facts.text(&format!("/lib/modules/{release}/modules.dep"));
    match index {
        Reading::Value(modules) if modules.contains("/net/tls/tls.ko") => {
            there("the module tls is installed, but not loaded (modprobe tls)")
        }
        Reading::Value(_) => there("none: this kernel has no module tls"),
        Reading::NotAvailable(_) => {
            there("not loaded, and no modules of this kernel are installed to load it from")
        }
    }
}
