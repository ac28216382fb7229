//! What FreeBSD tells by `sysctl`, and of its interfaces.

use super::sysctl;
use crate::facts::Fact;

/// By names that measurements have for the same thing on Linux, or else by the setting's own.
const SETTINGS: [(&str, &str, &str); 31] = [
    ("kernel", "version", "kern.version"),
    ("kernel", "clock source", "kern.timecounter.hardware"),
    ("kernel", "ticks a second", "kern.hz"),
    ("cpu", "model", "hw.model"),
    ("cpu", "cores on line", "hw.ncpu"),
    ("cpu", "NUMA nodes", "vm.ndomains"),
    ("memory", "bytes", "hw.physmem"),
    ("memory", "vm.mincore_mapped", "vm.mincore_mapped"),
    ("network", "net.inet.tcp.functions_default", "net.inet.tcp.functions_default"),
    ("network", "net.inet.tcp.cc.algorithm", "net.inet.tcp.cc.algorithm"),
    ("network", "net.inet.tcp.sendspace", "net.inet.tcp.sendspace"),
    ("network", "net.inet.tcp.sendbuf_max", "net.inet.tcp.sendbuf_max"),
    ("network", "net.inet.tcp.recvbuf_max", "net.inet.tcp.recvbuf_max"),
    ("network", "kern.ipc.soacceptqueue", "kern.ipc.soacceptqueue"),
    ("network", "kern.ipc.maxsockbuf", "kern.ipc.maxsockbuf"),
    ("network", "kern.ipc.mb_use_ext_pgs", "kern.ipc.mb_use_ext_pgs"),
    ("network", "kern.ipc.tls.enable", "kern.ipc.tls.enable"),
    ("network", "kern.ipc.tls.maxlen", "kern.ipc.tls.maxlen"),
    ("network", "kern.ipc.tls.bind_threads", "kern.ipc.tls.bind_threads"),
    ("network", "kern.ipc.tls.ifnet.permitted", "kern.ipc.tls.ifnet.permitted"),
    ("network", "kern.ipc.tls.ifnet_max_rexmit_pct", "kern.ipc.tls.ifnet_max_rexmit_pct"),
    ("network", "kern.ipc.tls.stats.offload_total", "kern.ipc.tls.stats.offload_total"),
    ("network", "kern.ipc.tls.stats.switch_to_ifnet", "kern.ipc.tls.stats.switch_to_ifnet"),
    ("network", "kern.ipc.tls.stats.switch_to_sw", "kern.ipc.tls.stats.switch_to_sw"),
    ("network", "kern.ipc.tls.stats.switch_failed", "kern.ipc.tls.stats.switch_failed"),
    ("network", "kern.ipc.tls.stats.threads", "kern.ipc.tls.stats.threads"),
    ("network", "kern.ipc.tls.sw.gcm", "kern.ipc.tls.sw.gcm"),
    ("network", "kern.ipc.tls.ifnet.gcm", "kern.ipc.tls.ifnet.gcm"),
    ("network", "kern.ipc.tls.toe.gcm", "kern.ipc.tls.toe.gcm"),
    ("limits", "kern.maxfilesperproc", "kern.maxfilesperproc"),
    ("limits", "kern.ipc.nmbclusters", "kern.ipc.nmbclusters"),
];

/// What is told in no file.
#[must_use]
pub fn told() -> Vec<Fact> {
    let release = Fact { group: "kernel", name: "release", value: Ok(crate::facts::release()) };
    let settings = SETTINGS.into_iter().map(|(group, name, setting)| {
        let text = || match sysctl::number(setting) {
            Ok(number) => Ok(number.to_string()),
            Err(_) => sysctl::text(setting),
        };
        Fact { group, name, value: text().map_err(|error| format!("sysctl {setting}: {error}")) }
    });
    std::iter::once(release).chain(settings).collect()
}
