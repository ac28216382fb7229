//! wrk as the load client: OpenSSL's TLS, told by a configuration file which suite and group to offer, and everything read.
//!
//! A script around it says when the measured time begins and ends, as `linerate load` does, and wrk's own Lua hook writes
//! the report in the same form. wrk runs for whole seconds. Its warm-up is a run by itself: the measured one opens its
//! connections anew, and what is on the way when it ends cost the server but does not count, at most a response a
//! connection.

use std::fs;
use std::path::Path;

use linerate_suite::Version;

use super::{Aim, ClientCommand, Clients, Order, Printed};
use crate::definition::{Handshake, LoadProgram, Workload};
use crate::files::Files;
use crate::servers::{find_program, not_installed};

/// wrk's process was running for more than this share of its cores' time: it had nothing left to give.
const LIMITED_SHARE: f64 = 0.95;

/// `BODY_BYTES` is the length of a file; percentiles are in µs, as everywhere.
const REPORT: &str = r#"
function done(summary, latency, requests)
  local e = summary.errors
  local body = tonumber(os.getenv("BODY_BYTES"))
  local none = '{"count":0,"mean_us":0,"deviation_us":0,"min_us":0,"p50_us":0,"p75_us":0,"p90_us":0,"p99_us":0,' ..
    '"p999_us":0,"p9999_us":0,"max_us":0}'
  local errors, separator = "", ""
  for _, kind in ipairs({ "connect", "read", "write", "status", "timeout" }) do
    if e[kind] > 0 then
      errors = errors .. separator .. string.format('"wrk: %s":%d', kind, e[kind])
      separator = ","
    end
  end
  local function at(percent) return math.floor(latency:percentile(percent)) end
  io.stderr:write("measured\n")
  local file = io.open(os.getenv("REPORT"), "w")
  file:write(string.format('{"schema":"linerate-load/1","command":["wrk"],"started_unix_s":0,"environment":{},' ..
    '"measured_s":%.6f,"totals":{"requests":%d,"responses":%d,"unanswered":0,"oldest_unanswered_us":0,' ..
    '"body_bytes":%.0f,"received_bytes":%.0f,"sent_bytes":0,"connections":%s,"full_handshakes":0,' ..
    '"resumed_handshakes":0},', summary.duration / 1e6, summary.requests, summary.requests,
    summary.requests * body, summary.bytes, os.getenv("CONNECTIONS")))
  file:write(string.format('"latency":{"count":%d,"mean_us":%.1f,"deviation_us":%.1f,"min_us":%d,"p50_us":%d,' ..
    '"p75_us":%d,"p90_us":%d,"p99_us":%d,"p999_us":%d,"p9999_us":%d,"max_us":%d},', summary.requests, latency.mean,
    latency.stdev, latency.min, at(50), at(75), at(90), at(99), at(99.9), at(99.99), latency.max))
  for _, name in ipairs({ "first_byte", "transfer", "connect", "handshake" }) do
    file:write(string.format('"%s":%s,', name, none))
  end
  file:write(string.format('"errors":{%s},"statuses":{},"mismatches":[],"rate_per_s":null,"client":{"user_s":0,' ..
    '"system_s":0,"threads":%s,"busiest_running":0,"busiest_waiting":null},"negotiated":{},"discarded":false,' ..
    '"verified":false,"client_limited":null,"interrupted":false}\n', errors, os.getenv("THREADS")))
  file:close()
end
"#;

/// Warms up, says when it measures, and prints the report.
const SCRIPT: &str = r#"
[ "$WARM_UP" = 0 ] || wrk -t"$THREADS" -c"$CONNECTIONS" -d"$WARM_UP"s "$URL" >&2 || exit
echo measuring >&2
wrk -t"$THREADS" -c"$CONNECTIONS" -d"$MEASURED"s -s "$FOLDER/wrk.lua" "$URL" >&2 || exit
cat "$REPORT"
"#;

/// Why wrk cannot make this load, if it cannot.
pub(crate) fn refusal(workload: &Workload, clients: &Clients) -> Option<String> {
    let cannot = |what: &str| Some(format!("client wrk: {what}"));
    match clients {
        _ if workload.client != LoadProgram::Wrk => None,
        Clients::Hosts { .. } => cannot("its files are on this machine, and the clients are others"),
        Clients::Here { .. } if find_program("wrk").is_none() => cannot(&not_installed("wrk")),
        // It keeps its SSL objects, with which OpenSSL resumes the last session of each.
        _ if workload.close => cannot("it has no way to make a full handshake for each request"),
        _ if workload.handshake == Handshake::Resumed || workload.idle => cannot("it only keeps asking"),
        _ if workload.range_bytes.is_some() || workload.files > 1 => cannot("it asks for one whole file"),
        _ if workload.requests_per_connection_s.is_some() => cannot("it asks as fast as it can"),
        _ if workload.receive_buffer_bytes.is_some() || workload.segment_bytes.is_some() || workload.spin => {
            cannot("its sockets cannot be changed, and it sleeps")
        }
        _ => None,
    }
}

/// The command that makes `order`. Its files go to `folder`.
///
/// # Errors
/// Where they cannot be written.
pub(crate) fn command(order: &Order<'_>, cores: usize, folder: &Path) -> std::io::Result<ClientCommand> {
    let Workload { connections, file_bytes, .. } = *order.workload;
    fs::write(folder.join("wrk.lua"), REPORT)?;
    fs::write(folder.join("wrk-openssl.cnf"), openssl_configuration(order.workload))?;
    let (warmup_s, measured_s) = match order.aim {
        Aim::Measure { warmup_s, measured_s } => (warmup_s, measured_s),
        Aim::Touch | Aim::Verify(_) => (0.0, 1.0),
    };
    let scheme = if order.ca.is_some() { "https" } else { "http" };
    let name = Files::names(order.workload).into_iter().next().unwrap_or_default();
    let threads = cores.clamp(1, connections as usize);
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let settings = [
        ("URL", format!("{scheme}://{}/{name}", order.address)),
        ("THREADS", threads.to_string()),
        ("CONNECTIONS", connections.to_string()),
        ("WARM_UP", warmup_s.ceil().to_string()),
        ("MEASURED", measured_s.ceil().to_string()),
        ("BODY_BYTES", file_bytes.to_string()),
        ("FOLDER", folder.to_string_lossy().into_owned()),
        ("REPORT", path("wrk.json")),
        ("OPENSSL_CONF", path("wrk-openssl.cnf")),
    ];
    let mut words = vec!["env".to_owned()];
    words.extend(settings.map(|(name, value)| format!("{name}={value}")));
    words.extend(["sh", "-c", SCRIPT.trim()].map(str::to_owned));
    Ok(ClientCommand { words, input: None, name: "wrk".to_owned(), printed: Printed::Report })
}

/// What OpenSSL's clients are to offer.
fn openssl_configuration(workload: &Workload) -> String {
    let version = workload.tls.label();
    let suites = if workload.tls == Version::Tls12 { "CipherString" } else { "Ciphersuites" };
    let suites = workload.cipher.as_ref().map(|suite| format!("{suites} = {suite}\n")).unwrap_or_default();
    let groups = workload.group.as_ref().map(|group| format!("Groups = {group}\n")).unwrap_or_default();
    format!(
        "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = client\n[client]\n\
         MinProtocol = {version}\nMaxProtocol = {version}\n{suites}{groups}"
    )
}

/// Why wrk was the limit, if it was: it does not tell, but its CPU time does.
pub(crate) fn limit(client_cpu_s: f64, elapsed_s: f64, threads: u32) -> Option<String> {
    let share = client_cpu_s / (elapsed_s * f64::from(threads.max(1)));
    (share > LIMITED_SHARE).then(|| format!("wrk was running {:.0} % of the time", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Protocol;

    fn asking(workload: &Workload) -> Order<'_> {
        let aim = Aim::Measure { warmup_s: 0.2, measured_s: 1.5 };
        let (address, ca) = (([127, 0, 0, 1], 4433).into(), Some(Path::new("/ca.pem")));
        Order { workload, protocol: Protocol::Http, address, ca, identity: None, aim }
    }

    #[test]
    fn whole_seconds_one_file_and_what_openssl_is_to_offer() {
        let folder = tempfile::tempdir().unwrap();
        let workload = Workload {
            client: LoadProgram::Wrk,
            connections: 64,
            file_bytes: 1000,
            cipher: Some("TLS_AES_256_GCM_SHA384".to_owned()),
            group: Some("X25519".to_owned()),
            ..Workload::default()
        };
        let words = command(&asking(&workload), 2, folder.path()).unwrap().words.join(" ");
        for wanted in [
            "URL=https://127.0.0.1:4433/1000-0.bin",
            "THREADS=2",
            "CONNECTIONS=64",
            "WARM_UP=1",
            "MEASURED=2",
        ] {
            assert!(words.contains(wanted), "{wanted}: {words}");
        }
        let configuration = fs::read_to_string(folder.path().join("wrk-openssl.cnf")).unwrap();
        assert!(
            configuration.ends_with(
                "MinProtocol = TLSv1.3\nMaxProtocol = TLSv1.3\nCiphersuites = TLS_AES_256_GCM_SHA384\nGroups = X25519\n"
            ),
            "{configuration}"
        );
    }

    #[test]
    fn what_wrk_cannot_do_is_said() {
        let here = Clients::Here { program: "/bin/linerate".into(), cores: vec![1] };
        assert_eq!(refusal(&Workload { close: true, ..Workload::default() }, &here), None);
        if find_program("wrk").is_none() {
            eprintln!("SKIPPED: what_wrk_cannot_do_is_said: {}", not_installed("wrk"));
            return;
        }
        let by_wrk = Workload { client: LoadProgram::Wrk, ..Workload::default() };
        assert_eq!(refusal(&by_wrk, &here), None);
        for cannot in [
            Workload { close: true, ..by_wrk.clone() },
            Workload { idle: true, ..by_wrk.clone() },
            Workload { range_bytes: Some(7), ..by_wrk.clone() },
            Workload { spin: true, ..by_wrk.clone() },
        ] {
            assert!(refusal(&cannot, &here).unwrap().starts_with("client wrk: it"), "{cannot:?}");
        }
    }

    #[test]
    fn a_wrk_without_rest_is_the_limit() {
        assert_eq!(limit(1.8, 2.0, 1), None);
        assert_eq!(limit(1.96, 2.0, 1).unwrap(), "wrk was running 98 % of the time");
        assert_eq!(limit(1.96, 2.0, 2), None);
    }
}
