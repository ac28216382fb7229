//! The built binary, as a person or script calls it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn linerate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(arguments)
        .env("COLUMNS", "100")
        // The calibration of the user who runs the tests is not used: there is no such folder.
        .env("XDG_STATE_HOME", concat!(env!("CARGO_MANIFEST_DIR"), "/no-state"))
        .env_remove("STATE_DIRECTORY")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Standard output of a call that has to succeed.
fn printed(arguments: &[&str]) -> String {
    let output = linerate(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout)
}

/// Standard error of a call that has to fail with `status`.
fn refused(status: i32, arguments: &[&str]) -> String {
    let output = linerate(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr)
}

/// Every long flag in the help of `command`.
fn flags_of(command: &str) -> Vec<String> {
    let help = printed(&[command, "-h"]);
    let flags = help.lines().filter_map(|line| {
        let flag = line.trim_start().split("--").nth(1)?;
        let is_definition = line.trim_start().starts_with('-');
        is_definition.then(|| format!("--{}", flag.split([' ', ',', '[']).next().unwrap_or_default()))
    });
    flags.collect()
}

#[test]
fn wrong_flags_are_usage_errors_with_advice() {
    for (arguments, words) in [
        (&["serve", ".", "--enigne", "user"][..], "a similar argument exists: '--engine'"),
        (&["serve", ".", "--engine", "usr"], "did you mean \"user\"? (allowed: auto, user, kernel, nic)"),
        (&["serve", ".", "--tls-min", "1.1"], "(allowed: 1.2, 1.3; TLS 1.1 and older are not spoken"),
        (&["serve", ".", "--listen", "8443"], "(the host is missing): write HOST:PORT"),
        (&["serve", ".", "--cpus", "3-1"], "write them as taskset -c does"),
        (&["serve", ".", "--workers", "0"], "an integer from 1 to 1024 is needed"),
        (&["serve", ".", "--workers", "-1"], "an integer from 1 to 1024 is needed"),
        (&["serve", ".", "--cpus", "x"], "\"x\" is no CPU or range of CPUs"),
        (&["serve", ".", "--listen", "example.org:443"], "(names other than localhost are not looked up)"),
        (&["serve", ".", "--listen", "*:https"], "(the port is no number)"),
        (&["serve", ".", "--ciphers", "RC4"], "(allowed: TLS_AES_128_GCM_SHA256, "),
        (&["serve", ".", "--groups", "X25591"], "did you mean \"X25519\"?"),
        (&["serve", ".", "--admin", "host:1"], "write PORT (on 127.0.0.1) or ADDRESS:PORT"),
        (&["serve", ".", "--hsts", "1y"], "is no duration"),
        (&["serve", ".", "--cert", "a", "--cert", "b", "--key", "c"], "there are 2 --cert and 1 --key"),
        (&["check", ".", "--key", "c"], "there are 0 --cert and 1 --key"),
        (&["serve"], "give DIR, the folder to serve, or --config FILE"),
        (&["check"], "give DIR, the folder to serve, or --config FILE"),
        (&["serve", ".", "--listen", "*:65536"], "the port is out of range: 0 to 65535 are possible"),
        (&["serve", ".", "--admin", "99999"], "the port is out of range"),
        (&["doctor", "--admin", "9443"], "<ADDR>"),
        (&["doctor", "host:1", "--admin", "host:1"], "write PORT (on 127.0.0.1) or ADDRESS:PORT"),
        (&["completions", "tcsh"], "possible values: bash, elvish, fish, powershell, zsh"),
        (&["sevre"], "'serve'"),
        (&["check", "--keys", "."], "cannot be used with"),
        (&["load"], "<URL>"),
        (&["load", "localhost:8443/x"], "write it with its scheme, like https://localhost:8443/file"),
        (&["load", "https://h/", "-d", "1s", "-n", "5"], "'--duration <DURATION>' cannot be used with"),
        (&["load", "https://h/", "-d", "0"], "a run of no length measures nothing"),
        (&["load", "https://h/", "-d", "1y"], "is no duration"),
        (&["load", "https://h/", "-n", "0"], "0 is not in 1.."),
        (
            &["load", "https://h/", "-c", "2", "-t", "3"],
            "give each at least one (-c 3), or use fewer threads",
        ),
        (&["load", "https://h/", "-c", "0"], "connections: 1 to 1000000 are possible"),
        (&["load", "https://h/", "-R", "0"], "the rate has to be above 0"),
        (&["load", "https://h/", "-R", "nan"], "the rate has to be above 0"),
        (&["load", "https://h/", "--discard", "--verify", "."], "cannot be used with"),
        (&["load", "https://h/", "--insecure", "--ca", "f"], "cannot be used with"),
        (&["load", "https://h/", "--json", "--csv"], "cannot be used with"),
        (&["load", "https://h/", "--resume", "--no-resume"], "cannot be used with"),
        (&["load", "https://h/", "--resume"], "--resume without --close"),
        (&["load", "http://h/", "--insecure"], "no URL is https, so nothing about TLS can be chosen"),
        (&["load", "http://h/", "--tls", "1.3"], "no URL is https"),
        (&["load", "https://h/", "--tls", "1.1"], "(allowed: 1.2, 1.3; TLS 1.1 and older"),
        (&["load", "https://h/", "--cipher", "RC4"], "(allowed: TLS_AES_128_GCM_SHA256, "),
        (
            &["load", "https://h/", "--tls", "1.2", "--cipher", "TLS_AES_128_GCM_SHA256"],
            "none of the cipher suites is one of TLSv1.2",
        ),
        (
            &["load", "https://h/", "--tls", "1.2", "--group", "X25519MLKEM768"],
            "TLS 1.2 has no group X25519MLKEM768",
        ),
        (&["load", "https://h/", "--group", "X25591"], "did you mean \"X25519\"?"),
        (&["load", "https://h/", "-H", "no colon"], "write it as 'Name: value'"),
        (&["load", "https://h/", "-H", "a b: c"], "is no name of a header"),
        (&["load", "https://h/", "-H", "Range: bytes=0-1", "--range", "0-1"], "exclude each other"),
        (&["load", "https://h/", "-H", "Content-Length: 1"], "the requests have no body"),
        (&["load", "https://h/", "--range", "9-1"], "the range 9-1 ends before it begins"),
        (&["load", "https://h/", "--range", "random:0"], "a range of no bytes"),
        (&["load", "https://h/", "--range", "random:1k"], "is no size"),
        (&["load", "https://h/", "--range", "all"], "write random:SIZE, like random:64KiB, or FIRST-LAST"),
        (&["load", "https://h/", "--cpus", "x"], "write them as taskset -c does"),
        (&["stream"], "<HOST:PORT>"),
        (&["stream", "h"], "write it as HOST:PORT, like 192.0.2.2:5201 or [2001:db8::2]:5201"),
        (&["stream", "::1:5201"], "write it as HOST:PORT"),
        (&["stream", "h:0"], "write it as HOST:PORT"),
        (&["stream", "h:1", "--listen", "127.0.0.1:1"], "cannot be used with"),
        (&["stream", "--listen", "5201"], "write it as ADDRESS:PORT, like 127.0.0.1:5201"),
        (&["stream", "h:1", "--max-streams", "5"], "--max-streams is a limit of the other end"),
        (&["stream", "h:1", "-P", "0"], "streams (-P): 1 to 10000 are possible"),
        (&["stream", "h:1", "-l", "0"], "is not from 1 to 67108864 bytes"),
        (&["stream", "h:1", "-l", "1Q"], "is no size: write a number with K, M, G or T behind it"),
        (&["stream", "h:1", "-b", "-5"], "unexpected argument '-5' found"),
        (&["stream", "h:1", "-b", "fast"], "is no rate"),
        (&["stream", "h:1", "-t", "0"], "is out of range"),
        (&["stream", "h:1", "-t", "5", "-n", "5"], "cannot be used with"),
        (&["stream", "h:1", "-n", "3", "-P", "4"], "3 bytes (-n) are too few for 4 streams (-P)"),
        (&["stream", "h:1", "-i", "10ms"], "is shorter than 100ms"),
        (&["stream", "h:1", "-R", "--both"], "cannot be used with"),
        (&["stream", "h:1", "--engine", "magic"], "unknown engine \"magic\" (allowed: plain, user"),
        (&["stream", "h:1", "--engine", "plain", "--tls", "1.3"], "leave --tls and --cipher out"),
        (&["stream", "h:1", "--cipher", "RC4"], "unknown cipher \"RC4\" (allowed: AES-128-GCM, "),
        (&["stream", "h:1", "--tls", "1.1"], "(allowed: 1.2, 1.3; TLS 1.1 and older"),
        (&["stream", "h:1", "--sendfile", "f", "-R"], "it goes with --send alone"),
        (&["stream", "h:1", "--sendfile", "f", "--verify"], "--verify knows no file's bytes"),
        (&["stream", "h:1", "--cpus", "x"], "write them as taskset -c does"),
    ] {
        let said = refused(2, arguments);
        assert!(said.contains(words), "{arguments:?}\n{said}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for command in ["serve", "check", "load", "stream", "doctor", "completions", "man"] {
        assert!(printed(&[command, "--help"]).contains("Examples:"), "{command}");
    }
    assert_eq!(printed(&["--version"]), format!("linerate {}\n", env!("CARGO_PKG_VERSION")));
    assert!(flags_of("serve").len() > 15);
    assert!(flags_of("load").len() > 20);
    assert!(flags_of("stream").len() > 20);
}

#[test]
fn where_stream_cannot_run_it_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let short = folder.path().join("short");
    fs::write(&short, "secret\n").unwrap();
    let (short, missing) = (short.to_str().unwrap(), folder.path().join("missing"));
    let missing = missing.to_str().unwrap();
    for (arguments, words) in [
        (&["stream", "no.such.host.invalid:1"][..], "no.such.host.invalid: no address: "),
        (&["stream", "127.0.0.1:9"], "(the other end is `linerate stream --listen`)"),
        (&["stream", "127.0.0.1:9", "--secret", missing], "missing: no secret: No such file"),
        (&["stream", "127.0.0.1:9", "--secret", short], "it has 6 bytes, and at least 16 are needed"),
        (&["stream", "127.0.0.1:9", "--sendfile", missing], "missing: cannot be sent: "),
        (&["stream", "127.0.0.1:9", "--sendfile", "/"], "/: cannot be sent: it is no regular file"),
    ] {
        let said = refused(1, arguments);
        assert!(said.contains(words), "{arguments:?}\n{said}");
    }
    let said = refused(2, &["stream", "127.0.0.1:9", "--cpus", "8191"]);
    assert!(said.contains("CPU 8191: no thread can be pinned to it"), "{said}");
    let listening = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["stream", "--listen", "0.0.0.0:0"])
        .env("XDG_STATE_HOME", folder.path())
        .env_remove("STATE_DIRECTORY")
        .output()
        .unwrap();
    let said = text(&listening.stderr);
    assert!(said.contains("a listener outside loopback needs --secret FILE"), "{said}");
    assert_eq!(listening.status.code(), Some(1));
}

#[test]
fn where_load_cannot_run_it_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").display().to_string();
    for (arguments, words) in [
        (&["load", "http://no.such.host.invalid/"][..], "no.such.host.invalid: no address: "),
        (&["load", "http://127.0.0.1:9/", "--verify", &missing], "missing: cannot be compared with: "),
        (&["load", "https://127.0.0.1:9/", "--ca", &missing], "missing: cannot be read: "),
        (&["load", "http://127.0.0.1:9/", "--cpus", "8191"], "a thread cannot be pinned to CPU 8191: "),
    ] {
        let said = refused(1, arguments);
        assert!(said.contains(words), "{arguments:?}\n{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn check_says_what_would_run() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let said = printed(&["check", root]);
    for line in [
        "listen         https://127.0.0.1:8443 (default)",
        "  certificate  made for development, good for localhost only",
        "TLS versions   1.2, 1.3",
        &format!("  root         {root}"),
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
    let said = printed(&[
        "check",
        root,
        "--listen",
        "*:443",
        "--listen",
        "redirect://*:80",
        "--tls-min",
        "1.3",
        "--cpus",
        "0-3",
        "--workers",
        "2",
        "--no-listing",
        "--hsts",
        "30d",
        "--admin",
        "0.0.0.0:9443",
        "--access-log",
        "-",
        "--log-format",
        "json",
        "--groups",
        "P-256:X25519",
        "--engine",
        "user",
        "--dotfiles",
        "--symlinks",
        "refused",
    ]);
    for line in [
        "listen         https://0.0.0.0:443",
        "listen         redirect://[::]:80 to https on port 443 (where there is IPv6)",
        "TLS versions   1.3",
        "workers        2, on CPUs 0-3",
        "engine         user",
        "groups         P-256, X25519",
        "admin          http://0.0.0.0:9443 (other machines can reach it)",
        "access log     standard output, json",
        "  serving      listing off, dotfiles on, precompressed on, symlinks refused",
        "  HSTS         30d",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
}

#[test]
fn check_tells_what_auto_would_decide_by() {
    let folder = tempfile::tempdir().unwrap();
    let said = printed(&["check", folder.path().to_str().unwrap(), "--engine", "auto"]);
    for words in [
        "placement      adapter's set-ups all that it can do, retransmitted at most 1 %, learning on, trials none",
        "costs          published figures; `linerate calibrate` measures this machine",
        "placement      AES-256-GCM: kernel never, nic from ",
    ] {
        assert!(said.lines().any(|line| line.starts_with(words)), "{words}\n{said}");
    }
}

#[test]
fn check_tells_every_fault_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("linerate.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "lisen = []\n[timeouts]\nidle = 75\n").unwrap();
    let expected = format!(
        "{path}:1:1: unknown key \"lisen\"; did you mean \"listen\"?\n\
         {path}:3:8: timeouts.idle: a duration with its unit, like \"75s\", is needed, this is an integer\n"
    );
    assert_eq!(refused(1, &["check", "--config", path]), expected);
    assert_eq!(refused(1, &["serve", "--config", path]), expected);

    fs::write(&file, "[[site]]\nroot = \"none\"\n").unwrap();
    let said = refused(1, &["check", "--config", path]);
    assert!(said.starts_with(&format!("{path}:2:8: the folder ")), "{said}");
    let said = refused(1, &["check", "/nowhere", "--cert", "/nowhere/c", "--key", "/nowhere/k"]);
    let places: Vec<&str> = said.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(places, ["DIR", "--cert", "--key"]);
}

#[test]
fn a_missing_configuration_is_named() {
    let said = refused(1, &["serve", "--config", "/nowhere/linerate.toml"]);
    assert_eq!(
        said,
        "/nowhere/linerate.toml: cannot read the configuration: No such file or directory (os error 2)\n"
    );
}

#[test]
fn the_list_of_keys_names_every_key() {
    let said = printed(&["check", "--keys"]);
    for key in linerate_config::KEYS {
        assert!(said.contains(&format!("\n  {} = ", key.name)), "{}", key.name);
    }
    assert!(said.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn completions_know_every_flag_and_value() {
    let flags = [flags_of("serve"), flags_of("load"), flags_of("stream")].concat();
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell]);
        for flag in flags.iter().chain(&["--keys".to_owned()]) {
            // fish writes `-l flag`.
            let wanted =
                if shell == "fish" { format!("-l {}", flag.trim_start_matches('-')) } else { flag.clone() };
            assert!(script.contains(&wanted), "{shell} {flag}");
        }
        for value in ["combined", "within"] {
            assert!(script.contains(value), "{shell} {value}");
        }
    }
}

#[test]
fn the_bash_completion_is_a_script_that_bash_reads() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("completion");
    fs::write(&script, printed(&["completions", "bash"])).unwrap();
    let complete = format!(
        "source {}; COMP_WORDS=(linerate serve --log-format js); COMP_CWORD=3; _linerate linerate js --log-format; \
         echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    match Command::new("bash").args(["-c", &complete]).output() {
        Ok(output) => assert_eq!(text(&output.stdout).trim(), "json", "{}", text(&output.stderr)),
        Err(error) => eprintln!("SKIPPED the_bash_completion_is_a_script_that_bash_reads: no bash: {error}"),
    }
}

#[test]
fn the_manual_page_tells_every_flag_and_key() {
    let page = printed(&["man"]);
    for section in ["NAME", "SYNOPSIS", "\"CONFIGURATION FILE\"", "SIGNALS", "\"EXIT STATUS\"", "EXAMPLES"] {
        assert!(page.contains(&format!("\n.SH {section}\n")), "{section}");
    }
    for command in ["SERVE", "CHECK", "LOAD", "STREAM", "COMPLETIONS", "MAN"] {
        assert!(page.contains(&format!("\n.SH \"LINERATE {command}\"\n")), "{command}");
    }
    for (command, next) in [("serve", "CHECK"), ("load", "STREAM"), ("stream", "DOCTOR")] {
        let begin = page.find(&format!("\n.SH \"LINERATE {}\"\n", command.to_uppercase())).unwrap();
        let section = &page[begin..];
        let section =
            &section[..section.find(&format!("\n.SH \"LINERATE {next}\"\n")).unwrap_or(section.len())];
        for flag in flags_of(command).iter().filter(|flag| *flag != "--help") {
            assert!(section.contains(&format!("\\fB{}\\fR", flag.replace('-', "\\-"))), "{command} {flag}");
        }
    }
    for key in linerate_config::KEYS {
        assert!(page.contains(&format!("\\fB{}\\fR = ", key.name)), "{}", key.name);
    }
}

#[test]
fn the_manual_page_renders_without_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("linerate.1");
    fs::write(&page, printed(&["man"])).unwrap();
    let output = Command::new("man")
        .args(["--warnings=w", "-l"])
        .arg(&page)
        .env("LC_ALL", "C.UTF-8")
        .env("MANWIDTH", "100")
        .output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", text(&output.stderr));
            assert_eq!(text(&output.stderr), "");
            let said = text(&output.stdout);
            assert!(said.contains("linerate serve [OPTIONS] [DIR]"), "{said}");
        }
        Err(error) => eprintln!("SKIPPED the_manual_page_renders_without_warnings: no man: {error}"),
    }
}

#[test]
fn output_cut_short_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = Command::new(env!("CARGO_BIN_EXE_linerate")).arg("man").stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

/// `STEM.pem` and `STEM-key.pem`: a certificate for `names`, signed by its own key.
fn certificate(folder: &Path, stem: &str, names: &[&str], algorithm: &'static rcgen::SignatureAlgorithm) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let key = rcgen::KeyPair::generate_for(algorithm).unwrap();
    let made = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    fs::write(folder.join(format!("{stem}.pem")), made.pem()).unwrap();
    fs::write(folder.join(format!("{stem}-key.pem")), key.serialize_pem()).unwrap();
}

#[test]
fn check_loads_the_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for stem in ["one", "two"] {
        certificate(folder.path(), stem, &["a.example"], &rcgen::PKCS_ECDSA_P256_SHA256);
    }
    fs::write(folder.path().join("empty.pem"), "no PEM").unwrap();
    let configuration = path("linerate.toml");
    let check = |[certificate, key]: [&str; 2], listen: &str| {
        let pairs = format!(
            "{{ certificate = \"one.pem\", key = \"one-key.pem\" }}, {{ certificate = {certificate:?}, key = {key:?} }}"
        );
        let site = format!("listen = [{listen:?}]\n[[site]]\nroot = \".\"\ncertificates = [{pairs}]\n");
        fs::write(&configuration, site).unwrap();
        linerate(&["check", "--config", &configuration])
    };
    for (pair, reason, faulty) in [
        (["two.pem", "one-key.pem"], "two.pem", "key"),
        (["empty.pem", "two-key.pem"], "empty.pem", "certificate"),
        (["two.pem", "empty.pem"], "empty.pem", "key"),
        (["two.pem", "two.pem"], "two.pem", "key"),
    ] {
        let output = check(pair, "127.0.0.1:8443");
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""), "{said}");
        // The second pair is the one to mend: its certificate or its key.
        let site = fs::read_to_string(&configuration).unwrap();
        let before = site.lines().nth(3).unwrap().rfind(&format!("{faulty} = ")).unwrap();
        let place = format!("{configuration}:4:{}: ", before + faulty.len() + " = ".len() + 1);
        assert!(said.starts_with(&place) && said.contains(&path(reason)), "{place} {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        // Without a TLS listener nobody loads them.
        assert!(check(pair, "http://127.0.0.1:8080").status.success());
    }
    let output = check(["two.pem", "two-key.pem"], "127.0.0.1:8443");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn check_makes_no_development_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("check")
        .arg(folder.path())
        .env("HOME", folder.path())
        .env_remove("XDG_STATE_HOME")
        .env_remove("STATE_DIRECTORY")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The example of `deploy/`, its absolute paths moved into `folder`, and the files it names.
fn example_in(folder: &Path) -> String {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/linerate.toml.example");
    let example = fs::read_to_string(example).unwrap();
    let prefix = folder.to_str().unwrap();
    for path in ["srv/www", "srv/media", "var/log/linerate", "etc/linerate"] {
        fs::create_dir_all(folder.join(path)).unwrap();
    }
    let keys = folder.join("etc/linerate");
    let media = ["media.example.org", "*.media.example.org"];
    for (stem, names, algorithm) in [
        ("www.example.org", &["www.example.org"][..], &rcgen::PKCS_ECDSA_P256_SHA256),
        ("media-ecdsa", &media, &rcgen::PKCS_ECDSA_P256_SHA256),
        ("media-rsa", &media, &rcgen::PKCS_RSA_SHA256),
        ("clients-ca", &media, &rcgen::PKCS_ECDSA_P256_SHA256),
    ] {
        certificate(&keys, stem, names, algorithm);
    }
    ["/srv/", "/var/", "/etc/"]
        .iter()
        .fold(example, |example, root| example.replace(&format!("\"{root}"), &format!("\"{prefix}{root}")))
}

#[test]
fn the_example_passes_check_as_it_is_and_with_every_key_in() {
    let folder = tempfile::tempdir().unwrap();
    let example = example_in(folder.path());
    let file = folder.path().join("linerate.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, &example).unwrap();
    let said = printed(&["check", "--config", path]);
    assert!(said.contains("media.example.org, *.media.example.org"), "{said}");
    assert!(said.contains("drain 10m"), "{said}");

    let all_in: Vec<&str> = example
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(key) if key.starts_with(|first: char| first.is_ascii_lowercase() || first == '[') => key,
            _ => line,
        })
        .collect();
    let (listen, with_exports) = ("\"redirect://*:80\"]", "\"redirect://*:80\", \"nfs://localhost:2049\"]");
    fs::write(&file, all_in.join("\n").replace(listen, with_exports)).unwrap();
    // Of another machine: noted, and not used.
    let calibration = "schema = \"linerate-calibration-1\"\nmeasured_at = \"\"\nmeasured_by = \"\"\n\
                       [machine]\nkernel = \"none\"\ncpu = \"none\"\n\
                       [[engine]]\nengine = \"user\"\ncipher = \"AES-128-GCM\"\nper_byte_ns = 1.0\n";
    fs::create_dir_all(folder.path().join("var/lib/linerate")).unwrap();
    fs::write(folder.path().join("var/lib/linerate/calibration.toml"), calibration).unwrap();
    let said = printed(&["check", "--config", path]);
    assert!(said.contains("it was measured on another processor (none;"), "{said}");
    assert!(said.contains("workers        4, on CPUs 0-3"), "{said}");
    assert!(said.contains("export         /media"), "{said}");
    for key in linerate_config::KEYS {
        assert!(all_in.iter().any(|line| line.contains(&format!("{} = ", key.name))), "{}", key.name);
    }
}

#[test]
fn what_the_example_comments_out_are_the_defaults() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/linerate.toml.example");
    let mut compared = 0;
    for line in fs::read_to_string(example).unwrap().lines() {
        let Some((name, value)) = line.strip_prefix('#').and_then(|line| line.split_once(" = ")) else {
            continue;
        };
        let defaults =
            linerate_config::KEYS.iter().filter(|key| key.name == name && !key.default.starts_with('('));
        for key in defaults {
            assert_eq!(value, key.default, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 15);
}
