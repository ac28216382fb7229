//! CPU time as the accounting has it, held against what others count: a control group's `cpu.stat`, and the `times`
//! that a shell prints of itself.

use std::{
    fs,
    io::{BufRead, BufReader, Lines, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use linerate_bench::accounting::{Costs, Meter};
use linerate_bench::result::Reading;

/// A shell that is told what to do, line by line.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Shell {
    fn start() -> Self {
        let mut child = Command::new("sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("every Linux has a shell");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, input, output }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs `script` to its end and gives the lines that it printed.
    fn run(&mut self, script: &str) -> Vec<String> {
        writeln!(self.input, "{script}\necho --done--").expect("the shell reads");
        self.output.by_ref().map(|line| line.expect("text")).take_while(|line| line != "--done--").collect()
    }

    fn times_s(&mut self) -> [f64; 4] {
        let lines = self.run("times");
        let times: Vec<f64> = lines.iter().flat_map(|line| line.split(' ').map(seconds)).collect();
        times.try_into().expect("own user and system time, children's user and system time")
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Fails only where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// "0m1.270000s" as POSIX has `times` print it.
fn seconds(time: &str) -> f64 {
    let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("minutes and seconds");
    60.0 * minutes.parse::<f64>().expect("a number") + seconds.parse::<f64>().expect("a number")
}

fn total_s(costs: &Costs) -> f64 {
    costs.server.process.user_s + costs.server.process.system_s
}

fn assert_within(measured_s: f64, reference_s: f64, share: f64, what: &str) {
    let difference = (measured_s - reference_s).abs() / reference_s;
    eprintln!(
        "{what}: measured {measured_s:.4} s, reference {reference_s:.4} s, {:.2} % apart",
        100.0 * difference
    );
    assert!(difference < share, "{what}: {measured_s} s against {reference_s} s");
}

/// A control group (version 2) of its own, removed when dropped.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Or why there is none to be had.
    fn make() -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
        let root = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .find(|fields| fields.get(2) == Some(&"cgroup2"))
            .and_then(|fields| fields.get(1).copied())
            .ok_or("no cgroup version 2 is mounted")?;
        // Beneath its own group, where a container has no other.
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let folder = Path::new(root).join(own).join(format!("linerate-accounting-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(Self(folder))
    }

    fn add(&self, pid: u32) -> Result<(), String> {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
            .map_err(|error| format!("cannot move a process into {}: {error}", self.0.display()))
    }

    fn usage_s(&self) -> f64 {
        let stat = fs::read_to_string(self.0.join("cpu.stat")).expect("readable");
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        usage.expect("a line of it").trim().parse::<f64>().expect("a number") / 1e6
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Held by processes that are just ending, for a moment.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// A quarter of a second, and some ten on an emulated machine: the shell itself, ten children that come and go, and one that works
/// in the kernel.
const WORK: &str = "i=0; while [ $i -lt 75000 ]; do i=$((i+1)); done
    j=0; while [ $j -lt 10 ]; do (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); j=$((j+1)); done
    dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null";

#[test]
fn cpu_time_is_within_two_percent_of_a_control_group_s() {
    const NAME: &str = "cpu_time_is_within_two_percent_of_a_control_group_s";
    let skip = |reason: String| eprintln!("SKIPPED {NAME}: {reason}");
    // Made first, so that it goes last: a group that holds a process cannot be removed.
    let group = match ControlGroup::make() {
        Ok(group) => group,
        Err(reason) => return skip(reason),
    };
    let mut shell = Shell::start();
    if let Err(reason) = group.add(shell.pid()) {
        return skip(reason);
    }
    shell.run(":");
    let before_s = group.usage_s();
    let meter = Meter::begin(&[shell.pid()], &[], None).expect("a meter");
    let (mut rounds, mut reference_s) = (0, 0.0);
    // Enough of it that ticks of 10 ms do not matter, on fast machines too.
    while reference_s < 1.5 {
        shell.run(WORK);
        reference_s = group.usage_s() - before_s;
        rounds += 1;
        assert!(rounds < 200, "{reference_s} s after {rounds} rounds of work");
    }
    let costs = meter.end().expect("costs");
    assert_within(total_s(&costs), reference_s, 0.02, "against cpu.stat");
}

#[test]
fn user_and_system_time_are_as_the_shell_has_them() {
    let mut shell = Shell::start();
    let idle = Shell::start();
    let before = shell.times_s();
    let meter = Meter::begin(&[shell.pid()], &[idle.pid()], None).expect("a meter");
    let mut used = [0.0; 4];
    let mut rounds = 0;
    while used.iter().sum::<f64>() < 1.5 {
        shell.run(WORK);
        let now = shell.times_s();
        used = std::array::from_fn(|index| now[index] - before[index]);
        rounds += 1;
        assert!(rounds < 200, "{used:?}");
    }
    let costs = meter.end().expect("costs");
    let [own_user_s, own_system_s, children_user_s, children_system_s] = used;
    let total = own_user_s + own_system_s + children_user_s + children_system_s;
    assert_within(total_s(&costs), total, 0.03, "against times");
    // The division is sampled, here and there: by ticks that need not fall on the same side.
    let (user_s, system_s) = (costs.server.process.user_s, costs.server.process.system_s);
    assert!((user_s - own_user_s - children_user_s).abs() < 0.1 * total, "{user_s} s user of {used:?}");
    assert!(
        (system_s - own_system_s - children_system_s).abs() < 0.1 * total,
        "{system_s} s system of {used:?}"
    );
    let Reading::Value(client) = &costs.client else { panic!("alive: {:?}", costs.client) };
    let client_s = client.process.user_s + client.process.system_s;
    assert!(client_s < 0.02, "a shell that waits uses nothing: {client_s} s");
}

#[test]
fn the_machine_was_busy_at_least_as_long_as_one_of_its_processes() {
    let mut shell = Shell::start();
    let meter = Meter::begin(&[shell.pid()], &[], None).expect("a meter");
    shell.run(WORK);
    shell.run(WORK);
    let costs = meter.end().expect("costs");
    let busy_s = linerate_bench::accounting::busy_s(&costs.machine, costs.elapsed_s);
    let cores = costs.machine.cores.len() as f64;
    let steal_s = costs.machine.total.steal_s;
    // A stolen core looks as if it ran to the process that is on it.
    assert!(busy_s + steal_s > 0.95 * total_s(&costs) - 0.02 * cores, "{costs:?}");
    assert!(busy_s <= cores * costs.elapsed_s + 1e-9, "{costs:?}");
    let total = &costs.machine.total;
    let all_s =
        total.user_s + total.system_s + total.interrupt_s + total.softirq_s + total.steal_s + total.idle_s;
    eprintln!("cores account for {all_s:.3} s of {:.3} s", cores * costs.elapsed_s);
}

#[test]
fn a_server_that_ends_is_an_error_and_a_client_that_ends_is_not() {
    let server = Shell::start();
    let client = Shell::start();
    let meter = Meter::begin(&[server.pid()], &[client.pid()], None).expect("a meter");
    drop(client);
    let costs = meter.end().expect("the server is there");
    assert!(
        matches!(&costs.client, Reading::NotAvailable(why) if why.contains("has ended")),
        "{:?}",
        costs.client
    );
    let meter = Meter::begin(&[server.pid()], &[], None).expect("a meter");
    drop(server);
    let error = meter.end().expect_err("the server is gone").to_string();
    assert!(error.contains("has ended"), "{error}");
    assert!(Meter::begin(&[], &[], None).is_err(), "nothing to account for");
}
