//! `linerate bench` as a user runs it: small experiments of the tests' own, from the command line to `result.json`.

mod comparing;
mod failing;
mod interrupted;
mod measuring;
mod networks;
mod peers;
mod remote;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_end_to_end::{Finished, Program, linerate_binary};
use serde_json::Value;
use tempfile::TempDir;

/// What a run of these tests may take at most, on a machine that does other things as well.
const LIMIT: Duration = Duration::from_secs(150);

/// One at a time: they measure, and would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

/// A folder with an experiment's file, its cache and its results.
struct Bench {
    folder: TempDir,
}

impl Bench {
    /// With an experiment `small` whose file ends with `rest`.
    fn new(rest: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "name = \"small\"\ntitle = \"Small files\"\naxis = \"file_bytes\"\n\
             quantities = [\"server_s_per_gb\", \"application_gbit_s\"]\n{rest}"
        );
        std::fs::write(folder.path().join("small.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `linerate bench run small.toml`, with its result in the folder `output`.
    fn run(&self, output: &str, arguments: &[&str]) -> Program {
        let program = linerate_binary().to_str().unwrap();
        Program::new(program, ["bench", "run"])
            .arguments([self.path("small.toml")])
            .arguments([Path::new("--output"), &self.path(output), Path::new("--cache"), &self.path("cache")])
            .arguments(arguments)
            // The calibration of the user who runs the tests is not used.
            .env("XDG_STATE_HOME", self.path("state"))
            .limit(LIMIT)
    }

    /// Held for as long as a test measures.
    fn alone() -> MutexGuard<'static, ()> {
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn result(&self, output: &str) -> Value {
        let text = std::fs::read(self.path(output).join("result.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

/// `linerate bench` with these arguments.
fn bench(arguments: &[&str]) -> Finished {
    let program = linerate_binary().to_str().unwrap();
    Program::new(program, ["bench"]).arguments(arguments).limit(LIMIT).run()
}

/// The rounds of a server, at all points.
fn rounds<'a>(result: &'a Value, server: &str) -> Vec<&'a Value> {
    let points = result["points"].as_array().unwrap().iter();
    points
        .filter(|point| point["server"] == server)
        .flat_map(|point| point["rounds"].as_array().unwrap())
        .collect()
}
