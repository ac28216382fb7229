//! What would be served from: memory and disk.

use std::path::PathBuf;

use linerate_environment::Reading;

use crate::{Facts, Finding, Group, Use, facts::RootFacts, judge::counted};

const GROUP: Group = Group::Content;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    findings.push(memory(facts));
    let Some(root) = &facts.content.root else { return };
    let first = findings.len();
    match &root.found {
        Ok(found) => of_root(facts, found, findings),
        Err(reason) => findings.push(Finding::change(
            GROUP,
            "content.root",
            Use::Works,
            format!("it cannot be looked at: {reason}"),
        )),
    }
    for finding in &mut findings[first..] {
        finding.subject = Some(root.path.clone());
    }
}

fn memory(facts: &Facts) -> Finding {
    let told = |reading: &Reading<u64>| match reading {
        Reading::Value(bytes) => size(*bytes),
        Reading::NotAvailable(reason) => format!("an amount that is not known ({reason})"),
    };
    let (available, cached) = (told(&facts.content.available_bytes), told(&facts.content.cached_bytes));
    let text = format!("{available} of memory can be taken, of which files fill {cached} now");
    Finding::ok(GROUP, "content.page_cache", text)
}

fn of_root(facts: &Facts, root: &RootFacts, findings: &mut Vec<Finding>) {
    let more = if root.more { "more than " } else { "" };
    let count = format!("{more}{} in {}", size(root.bytes), counted(root.files as usize, "file"));
    findings.push(match facts.content.available_bytes {
        Reading::Value(available) if root.bytes > available => Finding::note(
            GROUP,
            "content.size",
            format!(
                "{count}, and memory has room for {}: the rest comes from the disk each time",
                size(available)
            ),
        ),
        _ if root.more => Finding::note(GROUP, "content.size", format!("{count}; no more were looked at")),
        _ => Finding::ok(GROUP, "content.size", format!("{count}: memory has room for all of it")),
    });
    let told = |reading: &Reading<String>, what: &str| match reading {
        Reading::Value(text) => text.clone(),
        Reading::NotAvailable(reason) => format!("{what} not known ({reason})"),
    };
    let disk = match (&root.rotational, &root.read_ahead_kib) {
        (Reading::Value(turns), Reading::Value(kib)) => {
            let kind = if *turns { "rotational, as the kernel says" } else { "not rotational" };
            format!("{kind}, {kib} KiB read ahead")
        }
        (Reading::NotAvailable(reason), _) | (_, Reading::NotAvailable(reason)) => {
            format!("the disk beneath is not known ({reason})")
        }
    };
    let system = told(&root.file_system, "file system");
    let options = told(&root.mount_options, "mount options");
    findings.push(Finding::ok(GROUP, "content.disk", format!("{system} ({options}), {disk}")));
    findings.push(match &root.tells_what_is_in_memory {
        Reading::Value(true) => {
            Finding::ok(GROUP, "content.residency", "the file system says what is in memory: no worker waits for the disk")
        }
        Reading::Value(false) => Finding::change(
            GROUP,
            "content.residency",
            Use::Places,
            format!(
                "{system} does not say what is in memory (preadv2 with RWF_NOWAIT): workers wait for it; ext4, XFS and \
                 Btrfs do"
            ),
        ),
        Reading::NotAvailable(reason) => {
            Finding::note(GROUP, "content.residency", format!("whether workers would wait is not known: {reason}"))
        }
    });
    findings.extend(of_exports(root, &system));
    findings.extend(siblings(root));
    if let Reading::Value(options) = &root.mount_options
        && !options.split(',').any(|option| option == "nodev")
    {
        findings.push(Finding::note(
            GROUP,
            "content.nodev",
            "mounted without nodev: a device among the content is opened before it is refused",
        ));
    }
}

/// What matters where the folder is exported (`linerate nfs`).
fn of_exports(root: &RootFacts, system: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.push(match &root.tells_time_of_birth {
        Reading::Value(true) => Finding::ok(
            GROUP,
            "content.handles",
            "the file system says when a file was made: an NFS handle never leads to a later file of the same number",
        ),
        Reading::Value(false) => Finding::note(
            GROUP,
            "content.handles",
            format!(
                "{system} does not say when a file was made (statx, STATX_BTIME): the NFS handle of a deleted file may lead \
                 to a later one of the same number; ext4, XFS and Btrfs do"
            ),
        ),
        Reading::NotAvailable(reason) => {
            Finding::note(GROUP, "content.handles", format!("whether NFS handles are told apart is not known: {reason}"))
        }
    });
    if let Reading::Value(mounts) = &root.mounts_below
        && !mounts.is_empty()
    {
        const NAMED_MOUNTS_LIMIT: usize = 5;
        let named = named(mounts.iter().take(NAMED_MOUNTS_LIMIT), mounts.len());
        let count = counted(mounts.len(), "other file system");
        let text = match mounts.len() {
            1 => format!(
                "{count} is mounted below it: {named}. NFS clients do not see it; give it an [[export]] of its own"
            ),
            _ => format!(
                "{count} are mounted below it: {named}. NFS clients do not see them; give each an [[export]] of its own"
            ),
        };
        findings.push(Finding::note(GROUP, "content.mounts", text));
    }
    findings
}

/// Of precompressed siblings, where there are any.
fn siblings(root: &RootFacts) -> Option<Finding> {
    let all = counted(root.siblings as usize, "precompressed sibling");
    match (root.siblings, root.stale_siblings) {
        (0, _) => None,
        (_, 0) => Some(Finding::ok(GROUP, "content.siblings", format!("{all}, none older than its file"))),
        (_, stale) => {
            let named = named(&root.stale_names, stale as usize);
            let (is, they, them) =
                if stale == 1 { ("is", "it is", "it") } else { ("are", "they are", "them") };
            Some(Finding::change(
                GROUP,
                "content.siblings",
                Use::Works,
                format!(
                    "{all}, of which {stale} {is} older than the file and therefore not served: {named}. Compress again \
                     (brotli, zstd or gzip, with -kf), or touch {them} if {they} right"
                ),
            ))
        }
    }
}

/// Some of `count` paths, and how many more there are.
fn named<'a>(paths: impl IntoIterator<Item = &'a PathBuf>, count: usize) -> String {
    let names: Vec<String> = paths.into_iter().map(|path| format!("{path:?}")).collect();
    match count.saturating_sub(names.len()) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Bytes for people: `23.1 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    linerate_figures::binary_bytes(bytes as f64, 3)
}
