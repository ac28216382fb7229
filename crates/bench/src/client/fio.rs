//! fio as the load client: reads through a mount by the kernel's NFS client, in the network namespace that the load comes from.
//!
//! A script around it mounts, warms up, says when the measured time begins and ends, as `linerate load` does, and prints fio's own
//! JSON. `ip netns exec` gives it a mount namespace of its own, so that the mount is gone with it. fio reads past the page cache
//! (`direct=1`), so that each of its reads is a READ. Its processes are the client of the measurement; what the kernel's own threads
//! do for the mount is in the machine's cost alone.

use std::fs;
use std::path::Path;

use linerate_load::report::{Distribution, LoadReport, SCHEMA, Totals};
use serde::Deserialize;

use super::{Aim, ClientCommand, Clients, Order, Printed, shell_quoted};
use crate::definition::{LoadProgram, ReadOrder, Workload};
use crate::files::Files;
use crate::network::NetworkKind;
use crate::servers::{find_program, not_installed};
use crate::tlshd::{self, End};

/// The most connections of one mount (`NFS_MAX_CONNECTIONS`, fs/nfs/internal.h).
const MOST_CONNECTIONS: u32 = 16;

/// Why fio cannot make this load, if it cannot.
pub(crate) fn refusal(workload: &Workload, clients: &Clients) -> Option<String> {
    let cannot = |what: &str| Some(format!("client fio: {what}"));
    let lacking = [("fio", "fio"), ("mount.nfs", "nfs-common")]
        .into_iter()
        .find(|(name, _)| find_program(name).is_none());
    match (clients, lacking) {
        _ if workload.client != LoadProgram::Fio => None,
        (Clients::Hosts { .. }, _) => cannot("it mounts on this machine, and the clients are others"),
        (_, Some((_, package))) => cannot(&not_installed(package)),
        _ if !matches!(workload.network, NetworkKind::Veth { .. }) => {
            cannot("it mounts in a network namespace, with a tlshd of its own: --set network=veth")
        }
        _ if !rustix::process::geteuid().is_root() => cannot("only root may mount"),
        _ if workload.connections > MOST_CONNECTIONS => cannot("a mount has at most 16 connections"),
        _ if workload.files > 1 => cannot("it reads one file"),
        _ if workload.receive_buffer_bytes.is_some() || workload.segment_bytes.is_some() || workload.spin => {
            cannot("the kernel's sockets cannot be changed, and it sleeps")
        }
        _ if workload.cipher.is_some() || workload.group.is_some() => {
            cannot("tlshd chooses suite and group by itself")
        }
        _ => None,
    }
}

/// The command that makes `order`. Its files go to `folder`.
///
/// # Errors
/// Where they cannot be written.
pub(crate) fn command(order: &Order<'_>, folder: &Path) -> std::io::Result<ClientCommand> {
    let script = folder.join("fio.sh");
    fs::write(&script, text(order, folder))?;
    let words = vec!["sh".to_owned(), script.to_string_lossy().into_owned()];
    Ok(ClientCommand { words, input: None, name: "fio".to_owned(), printed: Printed::Fio })
}

fn text(order: &Order<'_>, folder: &Path) -> String {
    let workload = order.workload;
    let (warmup_s, measured_s) = match order.aim {
        Aim::Measure { warmup_s, measured_s } => (warmup_s, measured_s),
        Aim::Touch | Aim::Verify(_) => (0.0, 1.0),
    };
    let security = match (order.ca, order.identity) {
        (None, _) => "",
        (Some(_), None) => ",xprtsec=tls",
        (Some(_), Some(_)) => ",xprtsec=mtls",
    };
    let tlshd = order.ca.map_or_else(String::new, |ca| {
        tlshd::script(End::Client, folder, order.address.ip(), ca, order.identity) + "trap \"kill $!\" EXIT\n"
    });
    // The kernel asks tlshd for a handshake, and gives up at once where that is not there yet: ESRCH, and the mount fails.
    let attempts = if order.ca.is_some() { 40 } else { 1 };
    let folder = shell_quoted(&folder.to_string_lossy());
    let name = Files::names(workload).into_iter().next().unwrap_or_default();
    let reads = if workload.order == Some(ReadOrder::Random) { "randread" } else { "read" };
    let engine = if workload.depth > 1 { "libaio" } else { "psync" };
    format!(
        "set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
mkdir -p {folder}/mount
{tlshd}attempts={attempts}
until mount.nfs {address}:/ {folder}/mount -o ro,vers=4.2,proto=tcp,port={port},nconnect={connections}{security} >&2; do
    attempts=$((attempts - 1))
    [ $attempts -gt 0 ] || exit 32
    sleep 0.5
done
read_for() {{
    fio --name=nfs --filename={folder}/mount/{name} --readonly --direct=1 --rw={reads} --bs={read_bytes} --size={file_bytes} \\
        --ioengine={engine} --iodepth={depth} --numjobs={connections} --group_reporting --time_based \\
        --percentile_list=50:75:90:99:99.9:99.99 --output-format=json --runtime=\"$1\"
}}
[ {warmup_s} = 0 ] || read_for {warmup_s} >&2
echo measuring >&2
read_for {measured_s} >{folder}/fio.json
echo measured >&2
umount {folder}/mount
cat {folder}/fio.json
",
        port = order.address.port(),
        address = order.address.ip(),
        connections = workload.connections,
        read_bytes = workload.read_bytes,
        file_bytes = workload.file_bytes,
        depth = workload.depth,
        warmup_s = warmup_s.ceil(),
        measured_s = measured_s.ceil(),
    )
}

#[derive(Debug, Deserialize)]
struct Said {
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
struct Job {
    error: i64,
    read: Reads,
}

#[derive(Debug, Deserialize)]
struct Reads {
    io_bytes: u64,
    total_ios: u64,
    /// In milliseconds.
    runtime: u64,
    clat_ns: Latency,
}

#[derive(Debug, Deserialize)]
struct Latency {
    min: f64,
    max: f64,
    mean: f64,
    stddev: f64,
    #[serde(default)]
    percentile: std::collections::BTreeMap<String, f64>,
}

/// What fio printed, as a report; `command` is how it was called.
///
/// # Errors
/// That it is not what was expected.
pub(super) fn report(printed: &[u8], command: &[String]) -> Result<LoadReport, String> {
    // Notes may stand before the JSON.
    let start = printed.iter().position(|byte| *byte == b'{').unwrap_or_default();
    let said: Said =
        serde_json::from_slice(&printed[start..]).map_err(|error| format!("no report of fio's: {error}"))?;
    let job = said.jobs.into_iter().next().ok_or("a report of fio's without a job")?;
    if job.error != 0 {
        return Err(format!(
            "fio: {}",
            std::io::Error::from_raw_os_error(i32::try_from(job.error).unwrap_or_default())
        ));
    }
    let Reads { io_bytes, total_ios, runtime, clat_ns } = job.read;
    let us = |ns: f64| (ns / 1e3).round() as u64;
    // Their names have six digits behind the point: "99.000000".
    let at = |percent: f64| clat_ns.percentile.get(&format!("{percent:.6}")).copied().map_or(0, us);
    Ok(LoadReport {
        schema: SCHEMA.to_owned(),
        command: command.to_vec(),
        measured_s: runtime as f64 / 1e3,
        totals: Totals {
            requests: total_ios,
            responses: total_ios,
            body_bytes: io_bytes,
            received_bytes: io_bytes,
            ..Totals::default()
        },
        latency: Distribution {
            count: total_ios,
            mean_us: clat_ns.mean / 1e3,
            deviation_us: clat_ns.stddev / 1e3,
            min_us: us(clat_ns.min),
            p50_us: at(50.0),
            p75_us: at(75.0),
            p90_us: at(90.0),
            p99_us: at(99.0),
            p999_us: at(99.9),
            p9999_us: at(99.99),
            max_us: us(clat_ns.max),
        },
        ..LoadReport::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::Certificate;
    use crate::servers::Protocol;

    #[test]
    fn the_script_mounts_and_reads_as_the_load_says() {
        let workload = Workload {
            client: LoadProgram::Fio,
            connections: 4,
            file_bytes: 1_000_000,
            read_bytes: 4096,
            order: Some(ReadOrder::Random),
            ..Workload::default()
        };
        let identity = Certificate { chain: "/run/me.pem".into(), key: "/run/me.key".into() };
        let order = Order {
            workload: &workload,
            protocol: Protocol::Nfs,
            address: ([10, 0, 0, 1], 2050).into(),
            ca: Some(Path::new("/run/ca.pem")),
            identity: Some(&identity),
            aim: Aim::Measure { warmup_s: 0.5, measured_s: 2.0 },
        };
        let script = text(&order, Path::new("/run/it's"));
        for wanted in [
            "mount.nfs 10.0.0.1:/ '/run/it'\\''s'/mount -o ro,vers=4.2,proto=tcp,port=2050,nconnect=4,xprtsec=mtls >&2",
            "--rw=randread --bs=4096 --size=1000000",
            "x509.truststore=/run/ca.pem\nx509.certificate=/run/me.pem\nx509.private_key=/run/me.key\nEND",
            "attempts=40\n",
            "[ 1 = 0 ] || read_for 1 >&2",
            "read_for 2 >",
        ] {
            assert!(script.contains(wanted), "{wanted}: {script}");
        }
        let clear = text(&Order { ca: None, identity: None, ..order }, Path::new("/run"));
        assert!(!clear.contains("tlshd") && !clear.contains("xprtsec"), "{clear}");
        assert!(clear.contains("attempts=1\n"), "{clear}");
    }

    #[test]
    fn what_fio_prints_becomes_a_report() {
        let printed = br#"fio: a note
{"fio version": "fio-3.33", "jobs": [{"error": 0, "read": {"io_bytes": 8192, "total_ios": 2, "runtime": 1500,
 "clat_ns": {"min": 1000, "max": 3000, "mean": 2000.5, "stddev": 10, "percentile": {"50.000000": 2000, "99.000000": 3000}}}}]}"#;
        let report = report(printed, &["fio".to_owned()]).unwrap();
        assert_eq!((report.totals.body_bytes, report.totals.responses), (8192, 2));
        assert!((report.measured_s - 1.5).abs() < 1e-9);
        assert_eq!((report.latency.p50_us, report.latency.p99_us, report.latency.max_us), (2, 3, 3));
        assert!(super::report(b"mount failed", &[]).unwrap_err().contains("no report of fio's"));
        let failed = br#"{"jobs": [{"error": 5, "read": {"io_bytes": 0, "total_ios": 0, "runtime": 0,
 "clat_ns": {"min": 0, "max": 0, "mean": 0, "stddev": 0}}}]}"#;
        assert!(super::report(failed, &[]).unwrap_err().contains("Input/output error"));
    }
}
