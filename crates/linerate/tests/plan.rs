//! `linerate plan` as a person or script calls it.

use std::fs;
use std::process::{Command, Output};

fn plan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("plan")
        .args(arguments)
        .env("COLUMNS", "100")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = plan(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn refused(status: i32, arguments: &[&str]) -> String {
    let output = plan(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

#[test]
fn a_plan_has_every_engine_and_the_reasons_of_auto() {
    let printed =
        printed(&["--machine", "connectx6-thread", "--workload", "thread-10kb", "--nic-gbit", "50"]);
    for engine in ["plaintext", "classic", "user", "kernel", "nic", "auto"] {
        let line = printed.lines().find(|line| line.contains(&format!("  {engine} ")));
        assert!(line.is_some_and(|line| line.contains(" % ")), "{engine}: {printed}");
    }
    // The thread's 8.7 MB/s, and what placement does instead.
    assert!(printed.contains("the adapter's set-ups"), "{printed}");
    assert!(
        printed.contains("100 % of responses: below_break_even (user: 10 kB response, break-even"),
        "{printed}"
    );
}

#[test]
fn the_same_command_gives_the_same_plan() {
    let arguments = ["--machine", "media-server", "--workload", "mirror", "--nic-gbit", "100", "--json"];
    assert_eq!(printed(&arguments), printed(&arguments));
    assert!(printed(&arguments).contains("\"schema\": \"linerate-plan/1\""));
}

#[test]
fn a_printed_description_can_be_planned_with() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, flags: &[&str]| {
        let file = folder.path().join(name);
        fs::write(&file, printed(flags)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let machine = file("machine.toml", &["--print-machine"]);
    let workload = file("workload.toml", &["--workload", "mirror", "--print-workload"]);
    let planned = printed(&["--machine", &machine, "--workload", &workload, "--nic-gbit", "10,40"]);
    assert!(planned.contains("This machine: ") && planned.contains("auto at 10 to 40 Gb/s"), "{planned}");
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, printed(&["--machine", "homelab", "--print-machine"]).replace("cores", "coers"))
        .unwrap();
    let name = file.to_str().unwrap();
    let error = refused(1, &["--machine", name]);
    assert!(error.starts_with(&format!("{name}:4:1: unknown field `coers`")), "{error}");
    assert!(error.contains("did you mean \"cores\"?"), "{error}");
    assert!(refused(1, &["--machine", "homelb"]).contains("did you mean homelab?"));
    assert!(refused(1, &["--workload", "webb"]).contains("did you mean web?"));
    let missing = folder.path().join("none.toml");
    assert!(
        refused(1, &["--machine", missing.to_str().unwrap()]).starts_with("cannot read the description ")
    );
    assert!(
        refused(2, &["--nic-gbit", "0"]).contains("--nic-gbit takes up to 100 rates from 0.001 to 100000")
    );
    assert!(refused(2, &["--nic-gbit", "ten"]).contains("invalid value 'ten'"));
    assert!(refused(2, &["--check", "--machine", "homelab"]).contains("cannot be used with"));
}

#[test]
fn the_check_prints_points_and_constants() {
    let printed = printed(&["--check"]);
    assert!(printed.contains("| netflix-kernel-isa-l ") && printed.contains("| held out |"), "{printed}");
    assert!(printed.contains("| miss_ns_per_byte "), "{printed}");
    assert!(self::printed(&["--list"]).contains("  this  "));
}
