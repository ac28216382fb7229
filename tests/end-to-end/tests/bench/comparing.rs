//! A planted slow-down is found by `compare`, and an unchanged server is not.

use linerate_end_to_end::{is_installed, runs_all, skip};

use crate::{Bench, bench};

/// A process of the server that burns a part of a core for as long as the server lives, which adds to what every
/// gigabyte costs.
#[derive(Clone, Copy)]
enum Planted {
    /// A tenth of a core: every gigabyte costs 11 % more.
    Tenth,
    /// Half of one: no machine is so busy that it hides that.
    Half,
}

impl Planted {
    fn command(self) -> String {
        let cpu_seconds_a_turn = match self {
            Self::Tenth => 0.0111,
            Self::Half => 0.1,
        };
        format!(
            "perl -e '$n = 0; while (getppid() != 1) {{ $n++; while (1) {{ ($u, $s) = times; last if $u + $s >= $n * \
             {cpu_seconds_a_turn}; }} select(undef, undef, undef, 0.1); }}' & "
        )
    }
}

fn experiment(burn: &str) -> String {
    format!(
        r#"
servers = ["steady", "changed"]
load.connections = 4
sweep.file_bytes = [50_000_000]
time = {{ warmup_s = 0.3, measured_s = 1, rounds = 9 }}

[[server]]
name = "steady"
plaintext = true
command = ["{{linerate}}", "serve", "{{root}}", "--listen", "http://{{address}}:{{port}}", "--workers", "1"]

[[server]]
name = "changed"
plaintext = true
command = ["sh", "-c", "{burn}exec {{linerate}} serve {{root}} --listen http://{{address}}:{{port}} --workers 1"]
"#
    )
}

/// A machine that does other things can hide a slow-down: so often it is measured anew.
const ATTEMPTS: usize = 3;

#[test]
fn a_planted_half_is_found_and_nothing_is_not() {
    measure("a_planted_half_is_found_and_nothing_is_not", Planted::Half);
}

/// It needs a machine that does nothing else meanwhile.
#[test]
fn a_planted_tenth_is_found_and_nothing_is_not() {
    const NAME: &str = "a_planted_tenth_is_found_and_nothing_is_not";
    if !runs_all() {
        return skip(NAME, "a busy machine can hide a tenth; make test-all runs it");
    }
    measure(NAME, Planted::Tenth);
}

fn measure(name: &str, planted: Planted) {
    let _alone = Bench::alone();
    if !is_installed("perl") {
        return skip(name, "perl, which burns the processor, is not installed");
    }
    let told: Vec<String> = (0..ATTEMPTS).map_while(|_| attempt(planted).err()).collect();
    assert!(told.len() < ATTEMPTS, "{}", told.join("\n\n"));
}

/// Measures twice without and once with the slow-down. What was said instead of the truth, if it was.
fn attempt(planted: Planted) -> Result<(), String> {
    let bare = Bench::new(&experiment(""));
    let _ = bare.run("before", &[]).run().success();
    let _ = bare.run("again", &[]).run().success();
    let slower = Bench::new(&experiment(&planted.command()));
    let _ = slower.run("after", &[]).run().success();
    let before = bare.path("before");
    let compare = |after: std::path::PathBuf| {
        let relative = ["--relative-to", "steady", "--fail-on-slower", "4"];
        bench(&[&["compare", before.to_str().unwrap(), after.to_str().unwrap()][..], &relative[..]].concat())
    };
    let unchanged = compare(bare.path("again"));
    let changed = compare(slower.path("after"));
    assert!(slower.path("after/comparison.html").is_file());
    if !unchanged.status.success() {
        return Err(format!("the unchanged server: {}", unchanged.text()));
    }
    // What both runs quote as one figure is the same to within 5 %; where rounds differ too much neither quotes any.
    if let Some((_, apart)) = unchanged.text().split_once(" as one figure, at most ") {
        let apart_percent: f64 = apart.split(' ').next().unwrap_or_default().parse().unwrap();
        if apart_percent >= 5.0 {
            return Err(format!("two runs of the same: {}", unchanged.text()));
        }
    }
    let found = changed.text().contains("changed, file_bytes 50000000: dearer by ");
    if changed.status.code() != Some(1) || !found {
        return Err(format!("the planted slow-down: {}", changed.text()));
    }
    Ok(())
}
