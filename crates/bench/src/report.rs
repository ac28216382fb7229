//! The report of runs: one HTML file that needs nothing else, its figures as SVG beside it, and a table for the terminal.
//!
//! ```text
//! ExperimentRun ── panel: which variable is the axis, which make panels of their own
//!                    ├── figures ── plot ── SVG
//!                    ├── summary: sentences that the data bear out
//!                    └── page: HTML of all that, tables, environment, commands
//! ```
//! Everything that a user or a server may have named is escaped by the templates ([`maud`]), and the page forbids the
//! browser to load anything or to run a script.

mod comparison;
mod conditions;
mod figures;
pub(crate) mod number;
mod page;
mod palette;
mod panel;
mod plot;
mod scale;
mod summary;
mod targets;
mod text;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use crate::{compare::Comparison, result::ExperimentRun};
use figures::Figure;
use panel::Sweep;

/// The page's name.
pub const PAGE: &str = "report.html";
/// The name of the page that sets two runs side by side.
pub(crate) const COMPARISON_PAGE: &str = "comparison.html";

/// What kept a report from being written.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReportError {
    /// A file or the directory could not be written.
    NotWritten {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for ReportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWritten { path, source } => write!(
                formatter,
                "the report cannot be written to {}: {source}. The results are kept; `linerate bench report` writes \
                 the report again",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotWritten { source, .. } => Some(source),
        }
    }
}

/// Writes the page about `runs` ([`PAGE`]) and a file for each figure into `directory`, which is made where it is
/// missing. Returns the page's path.
///
/// # Errors
/// [`ReportError::NotWritten`], with the path that failed.
pub fn write(runs: &[ExperimentRun], directory: &Path) -> Result<PathBuf, ReportError> {
    let sweeps: Vec<Sweep<'_>> = runs.iter().map(Sweep::of).collect();
    let of_sweep = |sweep: &Sweep<'_>| -> Vec<Vec<Figure>> {
        let panels = sweep.panels.iter().enumerate();
        panels.map(|(number, panel)| figures::figures(sweep, panel, number)).collect()
    };
    let figures: Vec<Vec<Vec<Figure>>> = sweeps.iter().map(of_sweep).collect();
    make(directory)?;
    for figure in figures.iter().flatten().flatten() {
        write_file(&directory.join(&figure.file), &figure.plot.file(&figure.context, &figure.conditions))?;
    }
    let page = directory.join(PAGE);
    write_file(&page, &page::page(&sweeps, &figures))?;
    Ok(page)
}

/// Writes the page (`comparison.html`) about what was found of two runs into `directory`. Returns its path.
///
/// # Errors
/// [`ReportError::NotWritten`], with the path that failed.
pub fn write_comparison(
    before: &ExperimentRun,
    after: &ExperimentRun,
    comparison: &Comparison,
    directory: &Path,
) -> Result<PathBuf, ReportError> {
    make(directory)?;
    let page = directory.join(COMPARISON_PAGE);
    write_file(&page, &comparison::page(before, after, comparison))?;
    Ok(page)
}

/// A run as a table for the terminal, its findings before it.
#[must_use]
pub fn text(run: &ExperimentRun) -> String {
    text::text(&Sweep::of(run))
}

fn make(directory: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(directory)
        .map_err(|source| ReportError::NotWritten { path: directory.to_owned(), source })
}

/// Under another name first: a disk that is full must not leave half a page in place of a whole one.
fn write_file(path: &Path, text: &str) -> Result<(), ReportError> {
    let unfinished = path.with_extension("unfinished");
    let written = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&unfinished);
        ReportError::NotWritten { path: path.to_owned(), source }
    })
}
