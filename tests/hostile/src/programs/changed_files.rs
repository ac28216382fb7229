//! Files that are changed while they are sent.
//!
//! What must not happen is a response that ends as announced and has bytes which the file never had in that version: the
//! client keeps it for good. A response that is cut is asked for again.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::FileExt,
    path::Path,
    thread,
    time::Duration,
};

use anyhow::Result;

use crate::{Arena, Ending, Findings, Row, Visitor, Wishes, visitor::Fetched};

const LENGTH_BYTES: usize = 12_000_007;
/// What the client has read when the file changes.
const BEGINNING_BYTES: usize = 64 * 1024 + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Truncate,
    Overwrite,
    Regrow,
    Replace,
    Delete,
}

impl Change {
    const ALL: [Self; 5] = [Self::Truncate, Self::Overwrite, Self::Regrow, Self::Replace, Self::Delete];

    fn label(self) -> &'static str {
        match self {
            Self::Truncate => "truncated",
            Self::Overwrite => "overwritten in place",
            Self::Regrow => "truncated and written anew",
            Self::Replace => "replaced by renaming another over it",
            Self::Delete => "deleted",
        }
    }

    /// Whether the bytes that are served stay as they were.
    fn leaves_bytes(self) -> bool {
        matches!(self, Self::Replace | Self::Delete)
    }

    fn make(self, path: &Path, other: &[u8]) -> std::io::Result<()> {
        let open = || OpenOptions::new().write(true).open(path);
        match self {
            Self::Truncate => open()?.set_len(LENGTH_BYTES as u64 / 3),
            Self::Overwrite => open()?.write_all_at(other, 0),
            Self::Regrow => File::create(path)?.write_all(other),
            Self::Replace => {
                let new = path.with_extension("new");
                fs::write(&new, other)?;
                fs::rename(new, path)
            }
            Self::Delete => fs::remove_file(path),
        }
    }
}

#[derive(Default)]
struct Counts {
    whole: usize,
    cut: usize,
    wrong_whole: usize,
    wrong_cut: usize,
}

impl Counts {
    fn add(&mut self, fetched: &Fetched, bytes: &[u8]) {
        let is_right = fetched.is_right_as_far_as_it_came(bytes);
        match (fetched.ending == Ending::Whole, is_right) {
            (true, true) => self.whole += 1,
            (true, false) => self.wrong_whole += 1,
            (false, true) => self.cut += 1,
            (false, false) => self.wrong_cut += 1,
        }
    }

    fn say(&self) -> String {
        format!(
            "{} whole and right, {} cut, {} cut with other bytes before the cut, {} with wrong bytes and a clean end",
            self.whole, self.cut, self.wrong_cut, self.wrong_whole
        )
    }
}

pub(super) fn run(arena: &Arena) -> Result<Findings> {
    let mut findings = Findings::default();
    let rounds = arena.form.pick(3, 21);
    let server = arena.start(&Wishes::default())?;
    let other = linerate_end_to_end::pattern("other", LENGTH_BYTES);
    for (way, visitor) in [("over TLS", server.visitor()), ("in the clear", server.plain_visitor())] {
        // Little is on the way when the file changes: the rest is still to be read by the server.
        let visitor = Visitor { receive_buffer_bytes: Some(32 * 1024), ..visitor };
        for change in Change::ALL {
            let mut counts = Counts::default();
            for round in 0..rounds {
                let name = format!("changed-{}-{change:?}-{round}.bin", way.len());
                let path = arena.content.folder.join(&name);
                let bytes = arena.content.add(&name, LENGTH_BYTES)?;
                // Further than the coarsest clock of a file system that is in use: a change has another time.
                thread::sleep(Duration::from_millis(15));
                let fetched = changed(&visitor, &name, || change.make(&path, &other))?;
                counts.add(&fetched, &bytes);
                let _ = fs::remove_file(&path);
            }
            let (expected, holds) = if change.leaves_bytes() {
                ("all whole and right", counts.whole == rounds)
            } else {
                ("no wrong bytes with a clean end", counts.wrong_whole == 0)
            };
            findings.row(
                Row::new(
                    format!("a file is {} under {rounds} transfers, {way}", change.label()),
                    counts.say(),
                )
                .expects(expected, holds)
                .figure("whole", counts.whole)
                .figure("cut", counts.cut + counts.wrong_cut)
                .figure("wrong_with_clean_end", counts.wrong_whole),
            );
        }
    }
    Ok(findings)
}

/// Asks for the file, changes it in the middle, and reads the rest.
fn changed(visitor: &Visitor, name: &str, change: impl FnOnce() -> std::io::Result<()>) -> Result<Fetched> {
    let lost = |ending| Fetched { ending, status: 0, body: Vec::new(), took: Duration::ZERO };
    let mut visit = match visitor.visit() {
        Ok(visit) => visit,
        Err(ending) => return Ok(lost(ending)),
    };
    let mut transfer = match visit.begin(name) {
        Ok(transfer) => transfer,
        Err(ending) => return Ok(lost(ending)),
    };
    let begun = transfer.read_to(BEGINNING_BYTES);
    change()?;
    Ok(match begun {
        Ok(()) => transfer.finish(),
        Err(ending) => lost(ending),
    })
}
