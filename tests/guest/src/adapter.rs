//! The software adapter (`nic/`): loaded for a test, with its far end in a network namespace of its own.
//!
//! Servers run on this side, behind `lrnic0`; clients on the far side, behind `lrnic1`, as programs that `ip netns exec`
//! starts there.

use linerate_end_to_end::{Finished, Program, skip, wait_until};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// The network namespace of the far end.
const FAR: &str = "far";

/// Where the parameters of the module can be read and written.
const PARAMETERS: &str = "/sys/module/linerate_nic/parameters";

/// The loaded module. Taken away when dropped.
#[derive(Debug)]
pub struct Adapter {
    /// What the kernel had said before.
    messages: usize,
}

impl Adapter {
    /// This side's device.
    pub const NEAR_DEVICE: &str = "lrnic0";
    /// The other side's.
    pub const FAR_DEVICE: &str = "lrnic1";
    /// This side's addresses.
    pub const NEAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    /// This side's address of version 6.
    pub const NEAR_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 1);

    /// The module for the running kernel, if it was built. Where not, the test is left out loudly.
    #[must_use]
    pub fn module(test: &str) -> Option<PathBuf> {
        let module = std::env::var_os("GUEST_NIC").map(PathBuf::from).filter(|module| module.is_file());
        if module.is_none() {
            skip(
                test,
                "there is no software adapter for this kernel; make guest-test builds it and says why not",
            );
        }
        module
    }

    /// Loads the module with these parameters and connects its two ends. `None`, said loudly, where it was not built.
    ///
    /// # Panics
    /// If that fails.
    #[track_caller]
    #[must_use]
    pub fn load(test: &str, parameters: &[&str]) -> Option<Self> {
        let module = Self::module(test)?;
        let adapter = Self { messages: kernel_messages().len() };
        insert(&module, parameters).unwrap_or_else(|error| panic!("the module does not load: {error}"));
        ip(&["netns", "add", FAR]);
        ip(&["link", "set", Self::FAR_DEVICE, "netns", FAR]);
        for command in [
            "addr add 10.9.0.1/24 dev lrnic0",
            "addr add fd00:9::1/64 dev lrnic0 nodad",
            "link set lrnic0 up",
        ] {
            ip(&command.split(' ').collect::<Vec<_>>());
        }
        for command in [
            "addr add 10.9.0.2/24 dev lrnic1",
            "addr add fd00:9::2/64 dev lrnic1 nodad",
            "link set lrnic1 up",
        ] {
            drop(adapter.far("ip", &command.split(' ').collect::<Vec<_>>()).run().success());
        }
        Some(adapter)
    }

    /// A program of the far side.
    #[must_use]
    pub fn far(&self, program: &str, arguments: &[&str]) -> Program {
        Program::new("ip", ["netns", "exec", FAR, program]).arguments(arguments)
    }

    /// Has the far side's curl fetch `name` from a server of this side, by TLS 1.2 if not said otherwise, and trust
    /// whatever certificate it has: names are not what is tested.
    #[track_caller]
    pub fn fetch(&self, from: IpAddr, port: u16, name: &str, arguments: &[&str]) -> Finished {
        self.fetching(from, port, name, arguments).run()
    }

    /// As [`Adapter::fetch`], not yet run.
    #[must_use]
    pub fn fetching(&self, from: IpAddr, port: u16, name: &str, arguments: &[&str]) -> Program {
        let host = if from.is_ipv6() { format!("[{from}]") } else { from.to_string() };
        let url = format!("https://{host}:{port}/{name}");
        let fixed = ["--silent", "--show-error", "--insecure", "--noproxy", "*", "--max-time", "60"];
        let version: &[&str] = if arguments.contains(&"--tlsv1.3") { &[] } else { &["--tls-max", "1.2"] };
        let program = self.far("curl", &fixed).arguments(version).arguments(arguments).arguments([&url]);
        program.limit(Duration::from_secs(90))
    }

    /// A connection from the far side by TLS 1.2 that asks for nothing. nginx hands it to the kernel all the same, right
    /// after the handshake.
    ///
    /// # Panics
    /// If openssl cannot be run.
    #[must_use]
    pub fn hold_connection(&self, to: IpAddr, port: u16) -> Held {
        let to = SocketAddr::new(to, port).to_string();
        self.hold("openssl", &["s_client", "-tls1_2", "-quiet", "-connect", &to])
    }

    /// A program of the far side that goes on until it is dropped.
    ///
    /// # Panics
    /// If it cannot be run.
    #[must_use]
    pub fn hold(&self, program: &str, arguments: &[&str]) -> Held {
        let started = Command::new("ip")
            .args(["netns", "exec", FAR, program])
            .args(arguments)
            // Held open: it ends when it is told to.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Held(started.unwrap_or_else(|error| panic!("{program} cannot be run: {error}")))
    }

    /// Changes a parameter of the loaded module.
    ///
    /// # Panics
    /// If it has none of that name, or refuses the value.
    #[track_caller]
    pub fn set(&self, parameter: &str, value: &str) {
        fs::write(Path::new(PARAMETERS).join(parameter), value)
            .unwrap_or_else(|error| panic!("{parameter} = {value}: {error}"));
    }

    /// A parameter of the loaded module.
    ///
    /// # Panics
    /// If it has none of that name.
    #[track_caller]
    #[must_use]
    pub fn parameter(&self, name: &str) -> String {
        let value = fs::read_to_string(Path::new(PARAMETERS).join(name));
        value.unwrap_or_else(|error| panic!("{name}: {error}")).trim().to_owned()
    }

    /// A counter of this side's device, by ethtool's name.
    ///
    /// # Panics
    /// If there is none of that name.
    #[track_caller]
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        let shown = Program::new("ethtool", ["-S", Self::NEAR_DEVICE]).run().success();
        let shown = String::from_utf8_lossy(&shown);
        let counted =
            shown.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": ")?.parse().ok());
        counted.unwrap_or_else(|| panic!("no counter {name} in\n{shown}"))
    }

    /// Takes the module away, with whatever it carries at that moment.
    ///
    /// # Panics
    /// If that does not work, or the kernel has said that something is wrong since it was loaded.
    #[track_caller]
    pub fn unload(self) {
        remove();
        self.assert_kernel_is_well();
    }

    /// All that kernel and adapter have counted and said: a test that fails once in many runs is understood from this, or
    /// never.
    fn tell_all(&self) {
        let counted = Program::new("ethtool", ["-S", Self::NEAR_DEVICE]).run();
        let counted: Vec<String> =
            counted.text().lines().filter(|line| !line.ends_with(": 0")).map(str::to_owned).collect();
        eprintln!("the adapter has counted:\n{}", counted.join("\n"));
        eprintln!("/proc/net/tls_stat:\n{}", fs::read_to_string("/proc/net/tls_stat").unwrap_or_default());
        let messages = kernel_messages();
        eprintln!("the kernel has said:\n{}", messages.get(self.messages..).unwrap_or(&messages).join("\n"));
    }

    /// That the kernel has not said that something is wrong since the module was loaded.
    ///
    /// # Panics
    /// If it has.
    #[track_caller]
    pub fn assert_kernel_is_well(&self) {
        let messages = kernel_messages();
        // Fewer than before: the oldest are overwritten, and all that are left may be new.
        assert_well(messages.get(self.messages..).unwrap_or(&messages));
    }
}

/// See [`Adapter::hold`]. Ended when dropped.
#[derive(Debug)]
pub struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell_all();
        }
        if Path::new(PARAMETERS).exists() {
            remove();
        }
        // Its devices have gone, or have come back from there.
        let _ = Command::new("ip").args(["netns", "del", FAR]).status();
        if !std::thread::panicking() {
            self.assert_kernel_is_well();
        }
    }
}

/// Loads the module.
///
/// # Errors
/// What insmod says.
pub fn insert(module: &Path, parameters: &[&str]) -> Result<(), String> {
    let done = Program::new("insmod", [module]).arguments(parameters).run();
    if done.status.success() { Ok(()) } else { Err(done.stderr) }
}

/// Takes the module away.
///
/// # Panics
/// If that does not work.
#[track_caller]
pub fn remove() {
    drop(Program::new("rmmod", ["linerate_nic"]).run().success());
    wait_until("the module has gone", || !Path::new(PARAMETERS).exists());
}

/// Runs `ip` on this side.
///
/// # Panics
/// If that fails.
#[track_caller]
pub fn ip(arguments: &[&str]) {
    drop(Program::new("ip", arguments).run().success());
}

/// What the kernel has said so far.
#[must_use]
pub fn kernel_messages() -> Vec<String> {
    let said = Program::new("dmesg", [] as [&str; 0]).run().success();
    String::from_utf8_lossy(&said).lines().map(str::to_owned).collect()
}

/// That none of these messages is one of something wrong.
///
/// # Panics
/// If one is.
#[track_caller]
pub fn assert_well(messages: &[String]) {
    const WRONG: [&str; 6] =
        ["BUG:", "WARNING:", "Oops", "Call Trace", "unregister_netdevice: waiting", "general protection"];
    let wrong = messages.iter().any(|line| WRONG.iter().any(|sign| line.contains(sign)));
    assert!(!wrong, "the kernel says:\n{}", messages.join("\n"));
}
