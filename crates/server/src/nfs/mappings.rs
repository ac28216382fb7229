//! Mappings of the files that READs are of: records are sealed from where the file lies in memory, without a copy.

use super::source::Mapped;
use crate::workplace::Workplace;
use linerate_export::OpenFile;
use linerate_os::file::Stamp;
use std::{cell::RefCell, collections::VecDeque, rc::Rc, sync::Arc};

/// Files that a worker keeps mapped. The one that was not asked for longest makes room.
const FILES_LIMIT: usize = 64;
/// Files that changed this lately are read, not mapped: they may be about to change again.
const QUIET_SECONDS: i64 = 10;

/// A worker's.
#[derive(Default)]
pub(crate) struct Mappings(RefCell<VecDeque<(Arc<OpenFile>, Rc<Mapped>)>>);

impl Mappings {
    /// The mapping of `file`, which has the stamp `now`; made if the file is large enough, at rest, and there is room for it.
    /// `None` means: read it.
    pub(super) fn of(&self, file: &Arc<OpenFile>, now: &Stamp, workplace: &Workplace) -> Option<Rc<Mapped>> {
        let mut kept = self.0.borrow_mut();
        if let Some(place) = kept.iter().position(|(known, _)| Arc::ptr_eq(known, file))
            && let Some((file, mapped)) = kept.remove(place)
            // What was cut short or has grown is mapped anew, once it is at rest.
            && mapped.length_bytes() == now.length_bytes
            && !mapped.mapping().is_broken()
        {
            kept.push_front((file, Rc::clone(&mapped)));
            return Some(mapped);
        }
        let is_small = now.length_bytes < workplace.tuning.get().map_threshold_bytes;
        if is_small || now.length_bytes > workplace.mapped_bytes.limit_bytes() || is_young(now) {
            return None;
        }
        let share = loop {
            match workplace.mapped_bytes.take(now.length_bytes) {
                Some(share) => break share,
                // Others of this cache make room; replies under way keep theirs.
                None => drop(kept.pop_back()?),
            }
        };
        let mapped = Rc::new(Mapped::new(file.file(), now.length_bytes, share).ok()?);
        kept.truncate(FILES_LIMIT - 1);
        kept.push_front((Arc::clone(file), Rc::clone(&mapped)));
        Some(mapped)
    }
}

/// A clock or a file from the future counts as young: reading is always right.
fn is_young(stamp: &Stamp) -> bool {
    let now = i64::try_from(Workplace::unix_seconds()).unwrap_or(i64::MAX);
    now.saturating_sub(stamp.modified_unix_s) < QUIET_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        nfs::outgoing::tests::file,
        placement::{Basis, PlacementPlan},
    };
    use linerate_config::{Flags, Settings};
    use linerate_placement::Costs;
    use std::{
        fs::{File, FileTimes, OpenOptions},
        os::fd::AsRawFd,
        path::Path,
        time::{Duration, SystemTime},
    };

    fn workplace(limit_bytes: u64) -> Workplace {
        let settings = Settings::from_toml(Path::new("f"), b"[[site]]\nroot = \"r\"\n", &Flags::default());
        let plan = PlacementPlan::new(&settings.unwrap(), (Basis::Defaults, Costs::defaults()), 1);
        let workplace = Workplace::of_test(plan, 1000, 0);
        let tuning = workplace.tuning.get();
        workplace.tuning.set(crate::workplace::Tuning { map_threshold_bytes: 65_536, ..tuning });
        workplace.mapped_bytes.set_limit(limit_bytes);
        workplace
    }

    fn is_mapped(mappings: &Mappings, file: &Arc<OpenFile>, workplace: &Workplace) -> bool {
        mappings.of(file, &Stamp::of(file.file()).unwrap(), workplace).is_some()
    }

    fn rest(file: &File) {
        let hour = Duration::from_secs(3600);
        file.set_times(FileTimes::new().set_modified(SystemTime::now() - hour)).unwrap();
    }

    #[test]
    fn a_file_at_rest_is_mapped_and_mapped_anew_when_its_length_changes() {
        let (mappings, workplace) = (Mappings::default(), workplace(1 << 30));
        let (large, small) = (file(100_000), file(1000));
        assert!(!is_mapped(&mappings, &large, &workplace), "it has just been written");
        rest(large.file());
        rest(small.file());
        assert!(is_mapped(&mappings, &large, &workplace) && !is_mapped(&mappings, &small, &workplace));
        let now = Stamp::of(large.file()).unwrap();
        let first = mappings.of(&large, &now, &workplace).unwrap();
        assert!(Rc::ptr_eq(&first, &mappings.of(&large, &now, &workplace).unwrap()));
        // The file has no name any more.
        let path = format!("/proc/self/fd/{}", large.file().as_raw_fd());
        OpenOptions::new().write(true).open(path).unwrap().set_len(200_000).unwrap();
        assert!(!is_mapped(&mappings, &large, &workplace), "it was written to");
        rest(large.file());
        let anew = mappings.of(&large, &Stamp::of(large.file()).unwrap(), &workplace).unwrap();
        assert_eq!((first.length_bytes(), anew.length_bytes()), (100_000, 200_000));
        // A range beyond what is mapped is read.
        let source = |end| {
            let from = Some((&mappings, &workplace));
            crate::nfs::source::ReadSource::of(Arc::clone(&large), end, from).unwrap()
        };
        use linerate_engine::source::Source as _;
        assert!(source(200_000).mapping().is_some() && source(200_001).mapping().is_none());
    }

    #[test]
    fn what_was_not_asked_for_longest_makes_room() {
        let (mappings, workplace) = (Mappings::default(), workplace(300_000));
        let files = [(); 4].map(|()| file(100_000));
        files.iter().for_each(|file| rest(file.file()));
        assert!(files.iter().all(|file| is_mapped(&mappings, file, &workplace)));
        let kept = |mappings: &Mappings| -> Vec<usize> {
            let kept = mappings.0.borrow();
            kept.iter().map(|(of, _)| files.iter().position(|file| Arc::ptr_eq(file, of)).unwrap()).collect()
        };
        assert_eq!(kept(&mappings), [3, 2, 1]);
        assert!(is_mapped(&mappings, &files[1], &workplace));
        assert_eq!(kept(&mappings), [1, 3, 2]);
        // More than there is room for at all is read, and takes no room from others.
        let whole = file(300_001);
        rest(whole.file());
        assert!(!is_mapped(&mappings, &whole, &workplace));
        assert_eq!(kept(&mappings), [1, 3, 2]);
    }
}
