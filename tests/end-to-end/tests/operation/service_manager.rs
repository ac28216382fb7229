//! Under a service manager: sockets that are handed over, and what the server tells (`Type=notify-reload`).

use crate::support::{Connection, certificate_folder};
use linerate_end_to_end::{CertificatePair, Signal, Site, is_installed, linerate_binary, skip, wait_until};
use rustix::process::{Pid, kill_process};
use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// A process that is ended with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a manager hears.
struct Manager {
    socket: UnixDatagram,
    folder: TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { socket, folder }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("notify")
    }

    fn hears(&self) -> String {
        let mut buffer = [0; 4096];
        let count = self.socket.recv(&mut buffer).expect("a notice");
        String::from_utf8_lossy(&buffer[..count]).trim_end().to_owned()
    }
}

struct Scene {
    site: Site,
    pair: CertificatePair,
    manager: Manager,
    _keys: TempDir,
}

impl Scene {
    fn new() -> Self {
        let (keys, pair) = certificate_folder();
        let site = Site::empty();
        site.add("small", b"small");
        Self { site, pair, manager: Manager::new(), _keys: keys }
    }

    fn arguments(&self, listen: SocketAddr) -> Vec<std::ffi::OsString> {
        let mut arguments: Vec<std::ffi::OsString> = vec!["serve".into(), self.site.path().into()];
        for (flag, value) in [("--cert", &self.pair.certificate), ("--key", &self.pair.key)] {
            arguments.extend([flag.into(), value.into()]);
        }
        arguments.extend(["--workers".into(), "2".into(), "--listen".into(), listen.to_string().into()]);
        arguments
    }

    /// Started with `socket` as descriptor 3, as a service manager does it.
    fn activated(&self, socket: TcpListener, listen: SocketAddr, stderr: &Path) -> Running {
        self.activated_with(socket, self.arguments(listen), stderr)
    }

    fn activated_with(
        &self,
        socket: TcpListener,
        arguments: Vec<std::ffi::OsString>,
        stderr: &Path,
    ) -> Running {
        // The shell's own process identifier is the server's once it has become it.
        let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\"";
        let child = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(linerate_binary())
            .args(arguments)
            .env("NOTIFY_SOCKET", self.manager.path())
            .env("XDG_STATE_HOME", self.manager.folder.path())
            .stdin(OwnedFd::from(socket))
            .stderr(std::fs::File::create(stderr).unwrap())
            .spawn()
            .unwrap();
        Running(child)
    }

    fn is_served(&self, address: SocketAddr) {
        let mut connection = Connection::tls(address, &self.pair, "localhost");
        connection.get("/small", "").assert_is(200, b"small");
    }
}

#[test]
fn a_socket_that_is_handed_over_is_served_and_outlives_the_server() {
    let scene = Scene::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // A client that connects before the server runs waits in the socket.
    let early = TcpStream::connect(address).unwrap();
    let stderr = scene.manager.folder.path().join("stderr");
    let mut running = scene.activated(socket.try_clone().unwrap(), address, &stderr);
    assert_eq!(scene.manager.hears(), "READY=1");
    for _ in 0..20 {
        scene.is_served(address);
    }
    let said = std::fs::read_to_string(&stderr).unwrap();
    assert!(said.contains(&format!("https://{address}/")) && !said.contains("no listener"), "{said}");
    drop(early);
    running.signal(Signal::TERM);
    assert!(running.0.wait().unwrap().success());
    // A connection made between two servers is served by the second: that is what activation is for.
    let waiting = TcpStream::connect(address).unwrap();
    let second = scene.activated(socket, address, &stderr);
    let config = crate::support::client_config(&scene.pair);
    let session = rustls::ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    Connection::over(waiting, Some(session)).get("/small", "").assert_is(200, b"small");
    drop(second);
}

#[test]
fn a_socket_that_no_listener_asks_for_is_reported() {
    let scene = Scene::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let stderr = scene.manager.folder.path().join("stderr");
    let _running = scene.activated(socket, "127.0.0.1:0".parse().unwrap(), &stderr);
    assert_eq!(scene.manager.hears(), "READY=1");
    let said = std::fs::read_to_string(&stderr).unwrap();
    assert!(said.contains(&format!("passed a socket for {address}, which no listener asks for")), "{said}");
}

/// A reload that fails after it took the socket must leave it for the next: as long as the manager has it, no other can
/// be bound to its address.
#[test]
fn a_socket_that_was_handed_over_outlives_a_reload_that_fails() {
    let scene = Scene::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = scene.manager.folder.path();
    let (stderr, config) = (folder.join("stderr"), folder.join("linerate.toml"));
    let listen_on = |addresses: &[SocketAddr]| {
        let list: Vec<_> = addresses.iter().map(|address| format!("\"{address}\"")).collect();
        let toml = format!(
            "listen = [{}]\nworkers = 2\n[[site]]\nroot = {:?}\n\
             certificates = [{{ certificate = {:?}, key = {:?} }}]\n",
            list.join(", "),
            scene.site.path(),
            scene.pair.certificate,
            scene.pair.key
        );
        std::fs::write(&config, toml).unwrap();
    };
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    listen_on(&[elsewhere]);
    let arguments = vec!["serve".into(), "--config".into(), config.clone().into_os_string()];
    let running = scene.activated_with(socket.try_clone().unwrap(), arguments, &stderr);
    assert_eq!(scene.manager.hears(), "READY=1");
    let reload = |addresses: &[SocketAddr]| {
        listen_on(addresses);
        running.signal(Signal::HUP);
        assert!(scene.manager.hears().starts_with("RELOADING=1"));
        assert_eq!(scene.manager.hears(), "READY=1");
        std::fs::read_to_string(&stderr).unwrap()
    };
    let said = reload(&[address, taken.local_addr().unwrap()]);
    assert!(said.contains("not reloaded") && said.contains("another program listens there"), "{said}");
    // Once more after it was served for a while and then left out.
    for _ in 0..2 {
        let said = reload(&[elsewhere, address]);
        assert!(said.ends_with("reloaded\n"), "{said}");
        scene.is_served(address);
        reload(&[elsewhere]);
        scene.is_served(elsewhere);
    }
}

#[test]
fn systemd_itself_can_hand_the_socket_over() {
    if !is_installed("systemd-socket-activate") {
        return skip("systemd_itself_can_hand_the_socket_over", "systemd-socket-activate is not installed");
    }
    let scene = Scene::new();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let child = Command::new("systemd-socket-activate")
        .args(["-l", &address.to_string(), "-E", "XDG_STATE_HOME"])
        .env("XDG_STATE_HOME", scene.manager.folder.path())
        .arg(linerate_binary())
        .args(scene.arguments(address))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _running = Running(child);
    wait_until("systemd-socket-activate listens", || TcpStream::connect(address).is_ok());
    scene.is_served(address);
}

#[test]
fn the_manager_is_told_of_start_reload_and_end() {
    let scene = Scene::new();
    let child = Command::new(linerate_binary())
        .args(scene.arguments("127.0.0.1:0".parse().unwrap()))
        .env("NOTIFY_SOCKET", scene.manager.path())
        .env("XDG_STATE_HOME", scene.manager.folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    assert_eq!(scene.manager.hears(), "READY=1");
    for _ in 0..2 {
        running.signal(Signal::HUP);
        let told = scene.manager.hears();
        let microseconds = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&told);
        let said_s = microseconds.parse::<f64>().expect("a number") / 1e6;
        // The time since boot: the monotonic clock's, unless the machine slept.
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime_s: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        assert!(said_s <= uptime_s + 1.0 && said_s > 0.0, "{said_s} s, {uptime_s} s after boot");
        assert_eq!(scene.manager.hears(), "READY=1");
    }
    running.signal(Signal::QUIT);
    assert_eq!(scene.manager.hears(), "STOPPING=1");
    assert!(running.0.wait().unwrap().success());
}
