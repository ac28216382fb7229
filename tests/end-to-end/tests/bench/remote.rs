//! Load from other machines: two of them, which are this one over a real sshd on loopback.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use linerate_end_to_end::{linerate_binary, skip, wait_until};
use tempfile::TempDir;

use crate::{Bench, rounds};

/// An sshd of the test's own, with its own keys; ended when dropped.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This machine as another one sees it.
struct FarSide {
    /// The command that reaches it.
    ssh: String,
    /// One of its addresses.
    address: String,
    _sshd: Sshd,
    _folder: TempDir,
}

impl FarSide {
    /// `None`, said loudly, where something is missing.
    fn start(test: &str) -> Option<Self> {
        if !Path::new("/usr/sbin/sshd").is_file() {
            skip(test, "sshd is not installed (package openssh-server)");
            return None;
        }
        let Some(address) = own_address() else {
            skip(test, "this machine has no address but loopback's");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let Some((sshd, ssh)) = sshd(folder.path()) else {
            skip(test, "sshd of the test's own cannot be started or reached; what it said is above");
            return None;
        };
        Some(Self { ssh, address, _sshd: sshd, _folder: folder })
    }
}

/// Starts one in `folder`; returns it with the command that reaches it.
fn sshd(folder: &Path) -> Option<(Sshd, String)> {
    let key = |name: &str| {
        let path = folder.join(name);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&path)
            .stdin(Stdio::null())
            .status();
        made.is_ok_and(|status| status.success()).then_some(path)
    };
    let (host_key, user_key) = (key("host")?, key("user")?);
    fs::copy(user_key.with_extension("pub"), folder.join("authorized")).unwrap();
    fs::set_permissions(folder.join("authorized"), fs::Permissions::from_mode(0o600)).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = folder.display();
    let configuration = format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {at}/authorized\nPidFile {at}/pid\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n",
        host_key.display()
    );
    fs::write(folder.join("sshd_config"), configuration).unwrap();
    // Unprivileged ones do without; root's insists on it.
    let _ = fs::create_dir_all("/run/sshd");
    let log = fs::File::create(folder.join("log")).unwrap();
    let child = Command::new("/usr/sbin/sshd")
        .args(["-D", "-e", "-f"])
        .arg(folder.join("sshd_config"))
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .ok()?;
    let sshd = Sshd(child);
    let ssh = format!(
        "ssh -p {port} -i {} -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o \
         UserKnownHostsFile=/dev/null -o LogLevel=ERROR -F none",
        user_key.display()
    );
    wait_until("sshd listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let mut words = ssh.split(' ');
    let reached =
        Command::new(words.next()?).args(words).args(["127.0.0.1", "true"]).stdin(Stdio::null()).status();
    if !reached.is_ok_and(|status| status.success()) {
        eprintln!("{}", fs::read_to_string(folder.join("log")).unwrap_or_default());
        return None;
    }
    Some((sshd, ssh))
}

/// An address of this machine that is not the loopback's, which is refused for clients elsewhere.
fn own_address() -> Option<String> {
    let output =
        Command::new("ip").args(["-oneline", "-4", "address", "show", "scope", "global"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let network = text.lines().next()?.split_ascii_whitespace().nth(3)?;
    network.split('/').next().map(str::to_owned)
}

#[test]
fn load_comes_from_two_hosts_over_ssh_and_adds_up() {
    let _alone = Bench::alone();
    let Some(far) = FarSide::start("load_comes_from_two_hosts_over_ssh_and_adds_up") else { return };
    let small = Bench::new(
        r#"
servers = ["linerate user", "linerate plaintext", "wrong"]
load.connections = 5
sweep.file_bytes = [100_000]
time = { warmup_s = 0.3, measured_s = 0.7, rounds = 1 }

[[server]]
name = "wrong"
plaintext = true
command = ["sh", "-c", "mkdir -p {folder}/other && head -c 100000 /dev/zero > {folder}/other/100000-0.bin && exec {linerate} serve {folder}/other --listen http://{address}:{port}"]
"#,
    );
    let binary = linerate_binary().to_str().unwrap();
    let hosts = [
        "--clients",
        "127.0.0.1,localhost",
        "--client-binary",
        binary,
        "--ssh",
        &far.ssh,
        "--address",
        &far.address,
    ];
    let _ = small.run("out", &hosts).run().success();
    let result = small.result("out");
    assert_eq!(result["setup"]["client_hosts"].as_array().unwrap().len(), 2);
    for server in ["linerate user", "linerate plaintext"] {
        let round = &rounds(&result, server)[0]["measured"];
        let loads = round["load"].as_array().unwrap_or_else(|| panic!("{}", rounds(&result, server)[0]));
        assert_eq!(loads.len(), 2);
        let sum = |name: &str| loads.iter().filter_map(|load| load["totals"][name].as_f64()).sum::<f64>();
        assert!(loads.iter().all(|load| load["totals"]["body_bytes"].as_f64() > Some(0.0)));
        // Both bandwidths, and not one of them twice or alone.
        let gbit_s: f64 = loads
            .iter()
            .map(|load| {
                load["totals"]["body_bytes"].as_f64().unwrap() * 8e-9 / load["measured_s"].as_f64().unwrap()
            })
            .sum();
        assert!((round["application_gbit_s"].as_f64().unwrap() / gbit_s - 1.0).abs() < 0.01);
        assert!(sum("responses") > 0.0);
    }
    // The files are on the server's machine, which compares them itself.
    let wrong = &rounds(&result, "wrong")[0]["failed"]["reason"];
    assert!(wrong.as_str().unwrap().starts_with("it does not serve the files as they are"), "{wrong}");
    let tls = &rounds(&result, "linerate user")[0]["measured"]["load"];
    assert!(!tls[0]["negotiated"].as_object().unwrap().is_empty(), "the certificate has to come through ssh");
}

/// The secret reaches the other machine by ssh's standard input, and is in no command line.
#[test]
fn streams_come_from_a_host_over_ssh() {
    let _alone = Bench::alone();
    let Some(far) = FarSide::start("streams_come_from_a_host_over_ssh") else { return };
    let small = Bench::new("");
    let text = r#"
kind = "streams"
name = "small"
title = "One stream"
axis = "direction"
quantities = ["application_gbit_s"]
servers = ["linerate user"]
sweep.direction = ["send", "receive"]
time = { measured_s = 0.3, rounds = 1 }
"#;
    fs::write(small.path("small.toml"), text).unwrap();
    let binary = linerate_binary().to_str().unwrap();
    let hosts =
        ["--clients", "127.0.0.1", "--client-binary", binary, "--ssh", &far.ssh, "--address", &far.address];
    let _ = small.run("out", &hosts).run().success();
    let result = small.result("out");
    assert_eq!(result["setup"]["client_hosts"], serde_json::json!(["127.0.0.1"]));
    for round in rounds(&result, "linerate user") {
        assert!(round["measured"]["application_gbit_s"].as_f64() > Some(0.0), "{round}");
    }
    assert_eq!(rounds(&result, "linerate user").len(), 2);
    for point in result["points"].as_array().unwrap() {
        let command = point["client_command"].as_array().unwrap().last().unwrap().as_str().unwrap();
        assert!(command.contains(&format!("stream {}:", far.address)), "{command}");
        assert!(command.contains("--secret /dev/stdin"), "{command}");
    }
}

#[test]
fn hosts_cannot_reach_loopback() {
    let small = Bench::new(
        "servers = [\"linerate user\"]\nsweep.file_bytes = [1000]\ntime = { warmup_s = 0, measured_s = 1, rounds = 1 }\n",
    );
    let finished = small.run("out", &["--clients", "peer"]).run();
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stderr.contains("say with --address where it is to listen"), "{}", finished.stderr);
}
