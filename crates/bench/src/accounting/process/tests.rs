use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::*;

fn stat_of(parent: u32, group: u32, session: u32) -> ProcessStat {
    ProcessStat {
        state: 'S',
        parent,
        group,
        session,
        children_user_ticks: 0,
        children_system_ticks: 0,
        started_ticks: 1,
    }
}

fn named(pids: &[u32]) -> Roots {
    Roots { named: pids.to_vec(), not: Vec::new() }
}

fn identity(pid: u32) -> Identity {
    Identity { pid, started_ticks: 1 }
}

fn used_of(parent: u32, run_ms: u64, user_ms: u64, children_ms: u64) -> Used {
    Used {
        parent,
        clocks: ProcessClocks {
            run: Duration::from_millis(run_ms),
            sampled_user: Duration::from_millis(user_ms),
            sampled: Duration::from_millis(run_ms),
        },
        children_user: Duration::from_millis(children_ms),
        children_system: Duration::ZERO,
        disk_read_bytes: Some(0),
    }
}

fn moment(processes: &[(u32, Used)]) -> Moment {
    Moment {
        processes: processes.iter().map(|&(pid, used)| (identity(pid), used)).collect(),
        switches: BTreeMap::new(),
    }
}

fn total_s(used: &ProcessUse) -> f64 {
    used.user_s + used.system_s
}

#[test]
fn a_group_is_descendants_and_who_shares_what_a_root_leads() {
    let all = [
        (1, stat_of(0, 1, 1)),
        (10, stat_of(1, 10, 10)),
        (11, stat_of(10, 10, 10)),
        (12, stat_of(11, 12, 12)),
        (13, stat_of(1, 77, 10)),
        (14, stat_of(1, 10, 1)),
        (20, stat_of(1, 20, 1)),
    ];
    let mut group = group(&named(&[10]), &all);
    group.sort_unstable();
    assert_eq!(group, [10, 11, 12, 13, 14]);
    // A root that leads nothing does not bring its neighbours: a client in the session of the shell that measures.
    assert_eq!(super::group(&named(&[11]), &all), [11, 12]);
    // A client that has started the server.
    let client = Roots { named: vec![10], not: vec![11] };
    assert_eq!(super::group(&client, &all), [10, 13, 14]);
}

#[test]
fn time_of_a_child_that_ended_is_with_its_parent_and_counted_once() {
    let before = moment(&[(1, used_of(0, 1000, 400, 0)), (2, used_of(1, 300, 100, 0))]);
    let after = moment(&[(1, used_of(0, 1500, 600, 700))]);
    let used = after.since(&before).expect("accounted for");
    // 500 ms of its own, and 400 of the child's 700: the first 300 lay before.
    assert!((total_s(&used) - 0.9).abs() < 1e-9, "{used:?}");
}

#[test]
fn a_process_that_came_and_went_counts_by_its_parent_and_one_that_stayed_by_itself() {
    let before = moment(&[(1, used_of(0, 100, 0, 0))]);
    let after = moment(&[(1, used_of(0, 100, 0, 50)), (3, used_of(1, 250, 250, 0))]);
    let used = after.since(&before).expect("accounted for");
    assert!((total_s(&used) - 0.3).abs() < 1e-9, "{used:?}");
}

#[test]
fn time_that_went_with_its_process_is_an_error() {
    // Not waited for by anybody in the group.
    let before = moment(&[(1, used_of(0, 100, 0, 0)), (5, used_of(99, 300, 0, 0))]);
    let after = moment(&[(1, used_of(0, 200, 0, 0))]);
    assert!(matches!(after.since(&before), Err(Error::Lost { pid: 5 })));
    // Its parent is there, and got nothing.
    let before = moment(&[(1, used_of(0, 100, 0, 40)), (5, used_of(1, 300, 0, 0))]);
    let after = moment(&[(1, used_of(0, 200, 0, 40))]);
    assert!(matches!(after.since(&before), Err(Error::Lost { pid: 5 })));
    // A parent that is its own, as no process is, ends the search.
    let before = moment(&[(5, used_of(5, 300, 0, 0))]);
    assert!(matches!(moment(&[]).since(&before), Err(Error::Lost { pid: 5 })));
}

#[test]
fn user_and_system_divide_as_the_samples_of_the_span_do() {
    let before = moment(&[(1, used_of(0, 1000, 1000, 0))]);
    let after = moment(&[(1, used_of(0, 2000, 1250, 0))]);
    let used = after.since(&before).expect("accounted for");
    assert!((used.user_s - 0.25).abs() < 1e-9 && (used.system_s - 0.75).abs() < 1e-9, "{used:?}");
}

#[test]
fn clocks_that_go_backwards_give_nothing_and_no_panic() {
    let before = moment(&[(1, used_of(0, 2000, 1500, 70))]);
    let after = moment(&[(1, used_of(0, 1000, 100, 10))]);
    let used = after.since(&before).expect("accounted for");
    assert!(used.user_s >= 0.0 && used.system_s >= 0.0 && total_s(&used) == 0.0, "{used:?}");
}

#[test]
fn switches_of_a_thread_that_ended_are_not_made_up() {
    let with = |switches: &[(u32, (u64, u64))]| Moment {
        processes: BTreeMap::new(),
        switches: switches.iter().copied().collect(),
    };
    let before = with(&[(1, (10, 5)), (2, (7, 7))]);
    let [voluntary, involuntary] = with(&[(1, (15, 4)), (2, (8, 9)), (3, (100, 1))]).switches_since(&before);
    assert_eq!((voluntary, involuntary), (Reading::Value(5 + 1 + 100), Reading::Value(2 + 1)));
    let [voluntary, _] = with(&[(1, (15, 6))]).switches_since(&before);
    assert_eq!(voluntary.value(), None);
}

/// A shell that does something, and the end of it.
struct Shell(Child);

impl Shell {
    fn run(script: &str) -> Self {
        let child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Self(child.expect("a shell"))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Fails only where it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the group of `root` has used `run_s` since `before`.
fn used_since(before: &Moment, root: u32, run_s: f64) -> ProcessUse {
    let begin = Instant::now();
    loop {
        let used = Moment::take(&named(&[root])).expect("alive").since(before).expect("accounted for");
        if total_s(&used) >= run_s {
            return used;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{used:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn children_of_a_real_process_are_followed_and_not_lost_when_they_end() {
    // A child works until the shell is told to end it. Then the shell, which has waited for it, waits for its input to close.
    let mut shell = Shell::run("( while :; do :; done ) & read _; kill $!; wait; read _");
    let root = shell.0.id();
    let nothing = Moment::default();
    let used = used_since(&nothing, root, 0.02);
    // While the child is there it is a member; then its time is with the shell: the sum never falls.
    let mut earlier = total_s(&used);
    let mut looks = 0;
    while members(&named(&[root])).expect("readable").len() > 1 {
        let now =
            total_s(&Moment::take(&named(&[root])).expect("alive").since(&nothing).expect("accounted for"));
        // Two times are cut to a tick when the child's are handed on.
        assert!(now >= earlier - 0.021, "{now} after {earlier}");
        earlier = earlier.max(now);
        looks += 1;
        if looks == 100 {
            shell.0.stdin.as_mut().expect("piped").write_all(b"\n").expect("the shell reads");
        }
        assert!(looks < 1_000_000, "the child does not end");
    }
    let end = Moment::take(&named(&[root])).expect("alive");
    let used = end.since(&nothing).expect("accounted for");
    assert!(total_s(&used) >= earlier - 0.021, "{used:?} after {earlier}");
    assert!(used.voluntary_switches.value().is_some_and(|&switches| switches > 0), "{used:?}");
}

#[test]
fn a_named_process_that_has_ended_is_an_error_also_before_it_is_waited_for() {
    let mut shell = Shell::run("exit 0");
    let pid = shell.0.id();
    let begin = Instant::now();
    while Moment::take(&named(&[pid])).is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(20), "a zombie counts as alive");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(matches!(Moment::take(&named(&[pid])), Err(Error::Ended { pid: named }) if named == pid));
    shell.0.wait().expect("ended");
    assert!(matches!(Moment::take(&named(&[pid])), Err(Error::Ended { .. })));
}

#[test]
fn resident_memory_is_not_that_of_mapped_files() {
    let own = std::process::id();
    let Reading::Value(bytes) = resident_bytes(&[own]) else { panic!("readable") };
    assert!(bytes > 0);
    assert!(matches!(resident_bytes(&[u32::MAX]), Reading::NotAvailable(_)));
    let twice = resident_bytes(&[own, own]);
    assert!(twice.value().is_some_and(|&twice| twice > bytes));
}
