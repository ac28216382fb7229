//! `linerate calibrate`: what it writes is what a server decides by, and whatever is wrong with it is said.

use crate::support::{Fixture, add_at_rest, certificate_folder};
use linerate_end_to_end::{
    Finished, Program, ServerSetup, Site, calibration, calibration_with_nic, curl, linerate_binary,
    wait_until,
};
use linerate_placement::{Calibration, Cipher, Costs, Engine, EngineCosts, NicFigures};
use std::{
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
};

/// `linerate calibrate`, with its state in this folder.
fn calibrate<Argument: AsRef<OsStr>>(state: &Path, arguments: impl IntoIterator<Item = Argument>) -> Program {
    Program::new(linerate_binary().to_str().unwrap(), ["calibrate"])
        .arguments(arguments)
        .env("XDG_STATE_HOME", state)
        // One that is not absolute is ignored.
        .env("STATE_DIRECTORY", "")
}

fn site() -> Site {
    let site = Site::empty();
    add_at_rest(&site, "small", 1000);
    site
}

/// Whether the kernel has TLS now; its module may be loaded by being asked for.
fn has_kernel_tls() -> bool {
    let protocols = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp").unwrap_or_default();
    protocols.split_whitespace().any(|protocol| protocol == "tls")
}

#[test]
fn what_is_measured_is_told_written_and_used() {
    let state = tempfile::tempdir().unwrap();
    let run = calibrate(state.path(), ["--quick"]).run();
    let said = run.text();
    let path = state.path().join("linerate/calibration.toml");
    let last = format!("written to {}: `linerate serve` finds it there\n", path.display());
    assert!(run.status.success() && said.ends_with(&last), "{said}{}", run.stderr);
    assert_eq!(run.stderr, "", "progress is for terminals");

    let measured = Calibration::parse(&fs::read_to_string(&path).unwrap()).unwrap();
    let costs = Costs::from(&measured);
    for cipher in Cipher::ALL {
        assert!(said.lines().any(|line| line.starts_with(cipher.name()) && line.contains(" s/GB")), "{said}");
        let of = |engine: Engine| {
            let is_it = |figures: &&linerate_placement::EngineFigures| {
                figures.engine == engine.name() && figures.cipher == cipher.name()
            };
            measured.engines.iter().find(is_it).map(|figures| figures.costs())
        };
        let user = of(Engine::User).expect("the user engine is everywhere");
        assert!((0.01..50.0).contains(&user.slope_ns_per_byte()), "{cipher}: {user:?}");
        assert_eq!(of(Engine::Kernel).is_some(), has_kernel_tls(), "{said}");
        if of(Engine::Kernel).is_some() {
            let pays = costs.break_even_bytes(Engine::User, Engine::Kernel, cipher).is_some();
            let words =
                if pays { "a move to kernel TLS pays from" } else { "no response pays a move to kernel TLS" };
            assert!(said.contains(&format!("{cipher}: {words}")), "{said}");
        }
    }
    if !has_kernel_tls() {
        let note = "note: kernel TLS was not measured: the tls module is not loaded (modprobe tls)\n";
        assert!(said.contains(note), "{said}");
        assert!(
            said.contains("Only the user engine was measured: there is nothing to break even with."),
            "{said}"
        );
    }
    assert!(said.contains("note: adapters were not measured: "), "{said}");

    let fixture = Fixture::start_with(site(), |setup| {
        setup.env("XDG_STATE_HOME", state.path()).flags(["--engine", "auto"])
    });
    let basis = format!("costs: {}, measured at {}\n", path.display(), measured.measured_at);
    let stderr = fixture.server.stderr();
    assert!(
        stderr.contains(&format!("linerate: {basis}")) && !stderr.contains("the calibration"),
        "{stderr}"
    );
    let page = curl([&format!("http://{}/placement", fixture.server.admin())]).run().text();
    assert!(page.contains(&basis), "{page}");
}

#[test]
fn it_is_written_where_it_is_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folder/here.toml");
    let run = calibrate(folder.path(), ["--quick", "--output"]).arguments([&path]).run();
    let last = format!(
        "written to {path}: `linerate serve --calibration {path}` places connections by it\n",
        path = path.display()
    );
    assert!(run.text().ends_with(&last), "{}{}", run.text(), run.stderr);
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside it: {left:?}");
    let site = site();
    let server = ServerSetup::new()
        .flag(site.path())
        .flags(["--listen", "localhost:0", "--calibration"])
        .flag(&path)
        .start();
    assert!(
        server.stderr().contains(&format!("costs: {}, measured at ", path.display())),
        "{}",
        server.stderr()
    );

    let printed = calibrate(folder.path(), ["--quick", "--output", "-"]).run().success();
    let printed = Calibration::parse(&String::from_utf8(printed).unwrap()).unwrap();
    assert_eq!(printed.machine, Calibration::parse(&fs::read_to_string(&path).unwrap()).unwrap().machine);
    assert!(!folder.path().join("linerate").exists(), "the state directory is left alone");
}

#[track_caller]
fn fails(run: &Finished, words: &str) {
    assert_eq!(run.status.code(), Some(1), "{}{}", run.text(), run.stderr);
    assert!(run.stderr.contains(words), "{words:?} is missing in {:?}", run.stderr);
    assert_eq!(run.text(), "", "nothing was measured");
}

#[test]
fn what_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for (output, why) in
        [(folder.path().to_owned(), "is a directory"), (file.join("below"), "Not a directory")]
    {
        let run = calibrate(folder.path(), ["--output"]).arguments([&output]).run();
        fails(&run, &format!("{}: cannot be written: {why}", output.display()));
        fails(&run, "; --output names another place");
    }
    // As an unprivileged user, also if root runs the tests: root may write everywhere.
    let (binary, closed) = (folder.path().join("linerate"), folder.path().join("closed"));
    fs::copy(linerate_binary(), &binary).unwrap();
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o555)).unwrap();
    let mut command = Command::new(&binary);
    command.arg("calibrate").env("XDG_STATE_HOME", &closed).env_remove("STATE_DIRECTORY");
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let begins = format!(
        "{}: cannot be written: Permission denied",
        closed.join("linerate/calibration.toml").display()
    );
    assert!(
        stderr.contains(&begins) && output.status.code() == Some(1) && output.stdout.is_empty(),
        "{stderr}"
    );
}

/// A `linerate calibrate --sink`, and where it listens.
struct Sink(Child, String);

impl Sink {
    fn start() -> Self {
        use std::io::{BufRead, BufReader};
        let mut child = Command::new(linerate_binary())
            .args(["calibrate", "--sink", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("throws away what comes to ").map(|rest| rest.trim().to_owned());
        Self(child, address.unwrap_or_else(|| panic!("{line:?}")))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_peer_that_is_not_there_ends_it_and_one_without_adapter_is_noted() {
    let state = tempfile::tempdir().unwrap();
    let sink = Sink::start();
    let peer = sink.1.clone();
    let said = calibrate(state.path(), ["--quick", "--peer", &peer]).run().text();
    let note =
        format!("note: adapters were not measured: lo leads to {peer}, and has no tls-hw-tx-offload\n");
    assert!(said.contains(&note), "{said}");
    drop(sink);
    let run = calibrate(state.path(), ["--peer", &peer]).run();
    fails(&run, &format!("connecting to {peer} (`linerate calibrate --sink {peer}` is to run there): "));
}

/// Every fault: where it was named it keeps the server from starting; where it lies in the state directory, unasked for,
/// it is warned of, and not used.
#[test]
fn a_file_with_a_fault_is_told_with_its_place() {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("linerate");
    fs::create_dir(&folder).unwrap();
    let path = calibration(&folder, 0.5, 10_000.0);
    let text = fs::read_to_string(&path).unwrap();
    let half = &text[..text.len() / 2];
    let (site, (_keys, pair)) = (site(), certificate_folder());
    for (damaged, fault) in [
        (text.replace("[machine]", "[machine"), ": line 7: unclosed table"),
        (text.replace("cpu = ", "gpu = "), ": line 9: unknown field `gpu`, expected `kernel` or `cpu`"),
        (
            text.replace("calibration-1", "calibration-2"),
            ": line 3: it has schema \"linerate-calibration-2\", and this linerate reads \"linerate-calibration-1\"",
        ),
        (half.to_owned(), ": "),
        (String::new(), ": it has no schema, and this linerate reads"),
        ("\0\u{1}".to_owned(), ": line 1: "),
    ] {
        fs::write(&path, damaged).unwrap();
        let serve = || ServerSetup::tls(&site, &pair).env("XDG_STATE_HOME", state.path());
        let (status, stderr) = match serve().flag("--calibration").flag(&path).try_start() {
            Ok(_) => panic!("it started; {fault:?} was expected"),
            Err(ended) => ended,
        };
        let begins = format!("--calibration: the calibration {}{fault}", path.display());
        assert!(status.code() == Some(1) && stderr.contains(&begins), "{begins:?} is missing in {stderr}");
        assert!(stderr.contains("; `linerate calibrate` writes a new file"), "{stderr}");

        let server = serve().start();
        let warning = format!("the calibration {}{fault}", path.display());
        assert!(server.stderr().contains(&warning), "{warning:?} is missing in {}", server.stderr());
        assert!(!server.stderr().contains("costs: "), "{}", server.stderr());
    }
    fs::remove_file(&path).unwrap();
    let server = ServerSetup::tls(&site, &pair).env("XDG_STATE_HOME", state.path()).start();
    let said = "costs: published figures; `linerate calibrate` measures this machine\n";
    assert!(server.stderr().contains(said), "{}", server.stderr());
}

#[test]
fn what_was_measured_of_another_adapter_is_noted_and_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let figures = NicFigures {
        device: "none0".to_owned(),
        driver: "mlx5_core".to_owned(),
        set_ups_per_s: 7777.0,
        flow_table_flows: 20_000,
    };
    let path = calibration_with_nic(folder.path(), 0.5, 10_000.0, Some((EngineCosts::FREE, figures)));
    let fixture = Fixture::start_with(site(), |setup| setup.flag("--calibration").flag(&path));
    let stderr = fixture.server.stderr();
    for words in [
        format!(
            "the calibration {}: it was measured with the adapter none0 (mlx5_core), which is not here",
            path.display()
        ),
        format!(
            "costs: {}, measured at 2026-11-21T12:00:00Z; of adapters published figures\n",
            path.display()
        ),
    ] {
        assert!(stderr.contains(&words), "{words:?} is missing in {stderr}");
    }
    let page = || curl([&format!("http://{}/placement", fixture.server.admin())]).run().text();
    // 100 µs for half a nanosecond a byte: what it says of the kernel is used.
    wait_until("the worker's heartbeat", || page().contains("20 kB"));
    assert!(page().contains("(it can do 850)"), "{}", page());
}
