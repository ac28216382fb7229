//! The experiment `nfs` of `linerate bench`: the kernel's server and ESP, which machines that build linerate seldom have.

use linerate_end_to_end::{linerate_binary, runs_all, skip};
use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Programs of another system in a folder: each is run by that system's loader, with its libraries.
fn wrap(programs: &[&str], tree: &Path, folder: &Path) {
    for program in programs {
        let script = folder.join(program);
        let tree = tree.display();
        fs::write(
            &script,
            format!(
                "#!/bin/sh\nexec {tree}/lib64/ld-linux-x86-64.so.2 --library-path {tree}/usr/lib/x86_64-linux-gnu \
                 {tree}/usr/sbin/{program} \"$@\"\n"
            ),
        )
        .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Those that a short test has.
const SERVERS: [&str; 1] = ["knfsd plaintext"];

/// The kernel's server over a veth pair, by our client; what it serves was compared byte for byte before. All servers of the experiment,
/// and fio through a mount, with `make test-all`.
#[test]
fn servers_of_the_experiment_are_measured() {
    const TEST: &str = "servers_of_the_experiment_are_measured";
    let Some(tree) = env::var_os("LINERATE_NFS_TREE").map(PathBuf::from) else {
        skip(TEST, "the kernel's NFS server has no programs here (guest/nfs-tree unpacks them)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    wrap(&["rpc.nfsd", "rpc.mountd", "exportfs", "tlshd", "mount.nfs"], &tree, &programs);
    fs::create_dir_all("/var/lib/nfs").unwrap();
    let modules = ["nfsd", "nfs", "nfsv4", "tls", "veth", "esp4", "xfrm_user", "seqiv", "gcm"];
    assert!(Command::new("modprobe").arg("-a").args(modules).status().unwrap().success());
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    let result = folder.path().join("result");
    let mut command = Command::new(linerate_binary());
    if !runs_all() {
        command.args(["bench", "run", "nfs", "--set", "client=linerate"]);
        command.args(SERVERS.iter().flat_map(|server| ["--server", server]));
    } else {
        command.args(["bench", "run", "nfs"]);
    }
    // An emulated processor takes seconds for a handshake of knfsd's.
    let warm_up = if runs_all() { "warmup_s=10" } else { "warmup_s=0.1" };
    let output = command
        .args(["--rounds", "1", "--server-cpus", "0", "--client-cpus", "0"])
        .args(["--set", "read_bytes=65536", "--set", "order=random", "--set", "connections=2"])
        .args(["--set", "file_bytes=1000001", "--set", "measured_s=3", "--set", warm_up])
        .args(["--set", "network=veth"])
        .arg("--cache")
        .arg(folder.path().join("cache"))
        .arg("--output")
        .arg(&result)
        .env("PATH", path)
        .env("XDG_STATE_HOME", folder.path())
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let result = fs::read_to_string(result.join("result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    let skipped: Vec<&str> =
        result["skipped"].as_array().unwrap().iter().filter_map(|reason| reason.as_str()).collect();
    // What fio takes may be missing; it is no part of the short test.
    for reason in &skipped {
        skip(TEST, &format!("a part of it: {reason}"));
    }
    for server in SERVERS {
        assert!(!skipped.iter().any(|reason| reason.starts_with(server)), "{server}: {skipped:?}");
    }
    let points = result["points"].as_array().unwrap();
    assert!(points.len() >= SERVERS.len(), "{said}");
    let mut failed = Vec::new();
    for point in points {
        let name = format!("{} by {}", point["server"], point["variables"]["client"]);
        for round in point["rounds"].as_array().unwrap() {
            let measured = &round["measured"];
            if !measured.is_object() {
                failed.push(format!("{name}: {round}"));
                continue;
            }
            let cost = &measured["server_s_per_gb"]["value"];
            assert!(cost.as_f64().is_some_and(|cost| cost > 0.0), "{name}: {measured}");
        }
        let path = point["network"]["path"].as_str().unwrap();
        assert_eq!(path.contains("ESP"), name.contains("esp-"), "{name}: {path}");
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
