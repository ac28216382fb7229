//! The folder of a run: where it is, and `result.json`, which is whole at every moment.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use linerate_figures::{DateTime, civil};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::result::{ExperimentRun, SCHEMA};

/// The file's name.
pub const RESULT_FILE: &str = "result.json";

/// The name and version of the form of [`SharedRuns`].
pub(crate) const SHARED_SCHEMA: &str = "linerate-bench-share/1";

/// The folder below the current one that holds the runs that were given none.
const RUNS_FOLDER: &str = "linerate-bench";

/// The largest result that is read.
const MOST_BYTES: u64 = 1 << 30;

/// Several runs in one file, without names: what [`crate::share()`] writes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SharedRuns {
    /// [`SHARED_SCHEMA`].
    pub(crate) schema: String,
    /// The runs, each of [`SCHEMA`].
    pub(crate) runs: Vec<ExperimentRun>,
}

/// The folder of one run.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    /// The folder.
    pub(crate) folder: PathBuf,
}

impl Store {
    /// Makes the folder for a new run: `asked`, or one named after the time and the experiment.
    ///
    /// # Errors
    /// Where it has a result already.
    pub(crate) fn create(asked: Option<&Path>, name: &str, now: SystemTime) -> Result<Self> {
        let folder = match asked {
            Some(folder) => folder.to_path_buf(),
            None => Path::new(RUNS_FOLDER).join(format!("{}-{name}", time_text(now))),
        };
        if folder.join(RESULT_FILE).exists() {
            return Err(Error::Asked(format!(
                "{} has a result already; give another folder, or go on with it by --resume {0}",
                folder.display()
            )));
        }
        fs::create_dir_all(&folder).map_err(Error::file("cannot create", &folder))?;
        Ok(Self { folder })
    }

    /// Writes the result beside the old one and then in its place: whatever happens, one of them is there and whole.
    pub(crate) fn save(&self, run: &ExperimentRun) -> Result<()> {
        let path = self.folder.join(RESULT_FILE);
        let unfinished = self.folder.join(format!("{RESULT_FILE}.unfinished"));
        let written = write_whole(&unfinished, run).and_then(|()| fs::rename(&unfinished, &path));
        if written.is_err() {
            // It takes room that is needed, and may not be there.
            let _ = fs::remove_file(&unfinished);
        }
        written.map_err(Error::file("cannot write", &path))
    }

    /// Writes the result to where it can be kept: its folder, else the folder for temporary files, else standard output.
    ///
    /// # Errors
    /// Where it is not in its folder, saying where it is.
    pub(crate) fn save_somewhere(&self, run: &ExperimentRun) -> Result<()> {
        let Err(error) = self.save(run) else { return Ok(()) };
        let name = format!("linerate-bench-{}-{}.json", run.name, std::process::id());
        let elsewhere = std::env::temp_dir().join(name);
        let (Ok(()), place) = (write_whole(&elsewhere, run), elsewhere.display().to_string()) else {
            let mut output = io::stdout().lock();
            let printed = serde_json::to_writer(&mut output, run).is_ok() && output.flush().is_ok();
            let place = if printed { "printed on standard output" } else { "lost" };
            return Err(Error::Machine(format!("{error}; what was measured is {place}")));
        };
        Err(Error::Machine(format!("{error}; what was measured is in {place}")))
    }
}

fn write_whole(path: &Path, run: &ExperimentRun) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(run).map_err(io::Error::other)?;
    let mut file = File::create(path)?;
    file.write_all(&text)?;
    file.sync_data()
}

/// The run in `folder`, or in the result file itself.
///
/// # Errors
/// Where there is none, or it is not one that this program understands.
pub fn load(folder: &Path) -> Result<ExperimentRun> {
    let mut runs = load_all(folder)?;
    match (runs.pop(), runs.is_empty()) {
        (Some(run), true) => Ok(run),
        _ => Err(Error::Asked(format!("{}: it has several runs, or none", folder.display()))),
    }
}

/// The runs in `folder`, in a result file, or in a file that [`crate::share()`] made.
///
/// # Errors
/// As [`load`].
pub fn load_all(folder: &Path) -> Result<Vec<ExperimentRun>> {
    let path = if folder.is_file() { folder.to_path_buf() } else { folder.join(RESULT_FILE) };
    let length = fs::metadata(&path).map_err(Error::file("cannot read", &path))?.len();
    if length > MOST_BYTES {
        return Err(Error::Asked(format!("{}: {length} bytes are too many for a result", path.display())));
    }
    let text = fs::read(&path).map_err(Error::file("cannot read", &path))?;
    let not_one = |reason: String| {
        Error::Asked(format!("{}: not a result of linerate bench: {reason}", path.display()))
    };
    #[derive(Deserialize)]
    struct Form {
        schema: String,
    }
    let unreadable = |error: serde_json::Error| not_one(error.to_string());
    let Form { schema } = serde_json::from_slice(&text).map_err(unreadable)?;
    let runs = match schema.as_str() {
        SCHEMA => vec![serde_json::from_slice(&text).map_err(unreadable)?],
        SHARED_SCHEMA => serde_json::from_slice::<SharedRuns>(&text).map_err(unreadable)?.runs,
        _ => return Err(not_one(format!("its form is \"{schema}\", this program reads \"{SCHEMA}\""))),
    };
    match runs.iter().find(|run| run.schema != SCHEMA) {
        Some(run) => Err(not_one(format!("it has a run of the form \"{}\"", run.schema))),
        None => Ok(runs),
    }
}

/// `2026-11-21T131405`, UTC: sorts by time, and no file system objects to it.
fn time_text(time: SystemTime) -> String {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let DateTime { year, month, day, hour, minute, second } = civil(since_1970 as i64);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{run_of, sample_run};

    #[test]
    fn folders_are_named_by_the_time() {
        let time = UNIX_EPOCH + Duration::from_secs(20_778 * 86_400 + 13 * 3600 + 14 * 60 + 5);
        assert_eq!(time_text(time), "2026-11-21T131405");
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(Some(&folder.path().join("a/b")), "x", SystemTime::now()).unwrap();
        // Numbers that decimal fractions hold exactly.
        let run = run_of(&[("linerate user", &[0.25, 0.5])]);
        store.save(&run).unwrap();
        let read = load(&store.folder).unwrap();
        assert!(serde_json::to_string(&read).unwrap() == serde_json::to_string(&run).unwrap());
        assert_eq!(fs::read_dir(&store.folder).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_with_a_result_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(Some(folder.path()), "x", SystemTime::now()).unwrap();
        store.save(&sample_run()).unwrap();
        let error = Store::create(Some(folder.path()), "x", SystemTime::now()).unwrap_err().to_string();
        assert!(error.contains("has a result already") && error.contains("--resume"), "{error}");
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_result_and_is_kept_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(Some(folder.path()), "x", SystemTime::now()).unwrap();
        store.save(&sample_run()).unwrap();
        // Where the new file would be is a folder: nobody can write there, not even root.
        fs::create_dir(folder.path().join("result.json.unfinished")).unwrap();
        let mut newer = sample_run();
        newer.title = "newer".to_owned();
        let error = store.save_somewhere(&newer).unwrap_err().to_string();
        let (_, place) = error.split_once("; what was measured is in ").unwrap_or_else(|| panic!("{error}"));
        assert_eq!(load(Path::new(place)).unwrap().title, "newer");
        fs::remove_file(place).unwrap();
        assert_eq!(load(folder.path()).unwrap().title, sample_run().title);
    }

    #[test]
    fn what_is_no_result_is_said_to_be_none() {
        let folder = tempfile::tempdir().unwrap();
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("cannot read "), "{error}");
        let mut run = sample_run();
        run.schema = "linerate-bench/9".to_owned();
        fs::write(folder.path().join(RESULT_FILE), serde_json::to_vec(&run).unwrap()).unwrap();
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("its form is \"linerate-bench/9\""), "{error}");
    }
}
