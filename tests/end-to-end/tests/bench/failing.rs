//! What goes wrong costs the round it goes wrong in, and is said.

use std::net::TcpListener;

use crate::{Bench, bench, rounds};

#[test]
fn a_server_that_dies_fails_its_rounds_and_no_others() {
    let _alone = Bench::alone();
    let small = Bench::new(
        r#"
servers = ["dying", "linerate plaintext"]
load.connections = 2
sweep.file_bytes = [100_000]
time = { warmup_s = 0.1, measured_s = 2, rounds = 2 }

[[server]]
name = "dying"
plaintext = true
configuration = ""
command = ["sh", "-c", "{linerate} serve {root} --listen http://{address}:{port} & sleep 2; echo out of luck >&2; kill $!; exit 7"]
"#,
    );
    let finished = small.run("out", &[]).run();
    let stderr = finished.stderr.clone();
    let _ = finished.success();
    let result = small.result("out");
    let dying = rounds(&result, "dying");
    assert_eq!(dying.len(), 2);
    for round in dying {
        assert_eq!(round["failed"]["reason"], "the server ended with exit status: 7", "{round}");
        let log = round["failed"]["log"].as_array().unwrap();
        assert!(log.iter().any(|line| line == "out of luck"), "{log:?}");
    }
    let others = rounds(&result, "linerate plaintext");
    assert_eq!(others.len(), 2);
    assert!(others.iter().all(|round| round["measured"].is_object()), "{others:?}");
    assert_eq!(result["incomplete"], false);
    assert!(stderr.contains("dying, file_bytes 100000, round 1: failed: the server ended with"), "{stderr}");
}

#[test]
fn a_taken_port_a_strange_certificate_and_wrong_bytes_are_said() {
    let _alone = Bench::alone();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let small = Bench::new(&format!(
        r#"
servers = ["taken", "strange", "wrong"]
load.connections = 1
sweep.file_bytes = [1_000]
time = {{ warmup_s = 0, measured_s = 0.2, rounds = 1 }}

[[server]]
name = "taken"
command = ["sleep", "60"]
port = {port}

[[server]]
name = "strange"
command = ["{{linerate}}", "serve", "{{root}}", "--listen", "{{address}}:{{port}}"]

[[server]]
name = "wrong"
plaintext = true
command = ["sh", "-c", "mkdir -p {{folder}}/other && head -c 1000 /dev/zero > {{folder}}/other/1000-0.bin && exec {{linerate}} serve {{folder}}/other --listen http://{{address}}:{{port}}"]
"#
    ));
    let finished = small.run("out", &[]).run();
    assert_eq!(finished.status.code(), Some(1));
    let result = small.result("out");
    let reason = |server: &str| rounds(&result, server)[0]["failed"]["reason"].as_str().unwrap().to_owned();
    assert!(
        reason("taken").starts_with(&format!("port {port} of 127.0.0.1 is taken")),
        "{}",
        reason("taken")
    );
    assert!(reason("strange").to_lowercase().contains("certificate"), "{}", reason("strange"));
    assert!(reason("wrong").starts_with("it does not serve the files as they are"), "{}", reason("wrong"));
}

#[test]
fn an_unknown_experiment_or_server_is_answered_with_the_nearest() {
    let finished = bench(&["run", "engine", "--quick"]);
    assert_eq!(finished.status.code(), Some(1));
    assert!(
        finished.stderr.starts_with("there is no experiment \"engine\"; did you mean engines?"),
        "{}",
        finished.stderr
    );
    let finished = bench(&["run", "engines", "--server", "nginx tsl"]);
    assert!(finished.stderr.contains("did you mean \"nginx tls\"?"), "{}", finished.stderr);
}
