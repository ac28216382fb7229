//! Two network namespaces and a veth pair between them: a network that nobody else uses.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use linerate_end_to_end::{Server, ServerSetup};
use linerate_os::process::enter_network;

/// The server's address on the link.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 213, 78, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 213, 78, 2);

/// The interface at both ends.
pub(crate) const INTERFACE: &str = "veth0";

/// A link that is up; taken down when dropped.
#[derive(Debug)]
pub(crate) struct Link {
    server: String,
    client: String,
}

/// What `ip` says of the server's interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
}

/// What `ss` says of the server's connections, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledged {
    pub(crate) bytes: u64,
    /// Bytes that were sent, those that were sent again among them.
    pub(crate) sent_bytes: u64,
    /// Segments that they went in, and those without any.
    pub(crate) segments: u64,
    /// Segments that were sent again.
    pub(crate) retransmitted: u64,
    pub(crate) connections: u64,
}

impl Link {
    /// Makes one, or says why that is not possible here. With `bursts`, the interface takes many segments at a time, as
    /// adapters do that cut them up themselves; without, the kernel does that.
    pub(crate) fn up(bursts: bool) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            return Err("only root may make network namespaces".to_owned());
        }
        let name = format!("linerate-e2e-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        // Made before the first command, so that a failure half-way is cleaned up as well.
        let link = Self { server: format!("{name}-server"), client: format!("{name}-client") };
        ip(&format!("netns add {}", link.server))?;
        ip(&format!("netns add {}", link.client))?;
        let segments = if bursts { "" } else { "gso_max_segs 1" };
        ip(&format!(
            "link add {INTERFACE} netns {} mtu 1500 {segments} type veth peer name {INTERFACE} mtu 1500 netns {}",
            link.server, link.client
        ))?;
        for (namespace, address) in [(&link.server, SERVER), (&link.client, CLIENT)] {
            ip(&format!("-n {namespace} address add {address}/24 dev {INTERFACE}"))?;
            ip(&format!("-n {namespace} link set {INTERFACE} up"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        Ok(link)
    }

    /// Starts a server at its end.
    pub(crate) fn start(&self, setup: ServerSetup) -> Server {
        // A child is in the namespace of the thread that starts it.
        within(&self.server, || setup.start())
    }

    /// Runs `work` at the client's end: sockets that it makes belong there, wherever they are used later.
    pub(crate) fn at_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(&self.client, work)
    }

    /// The server's interface, as `ip` sees it.
    pub(crate) fn sent(&self) -> Sent {
        let output = ip(&format!("-n {} -json -statistics link show {INTERFACE}", self.server)).expect("ip");
        let links: serde_json::Value = serde_json::from_str(&output).expect("JSON");
        let count = |name: &str| links[0]["stats64"]["tx"][name].as_u64().expect("a count");
        Sent { bytes: count("bytes"), frames: count("packets") }
    }

    /// The server's connections on `address`, as `ss` sees them.
    pub(crate) fn acknowledged(&self, address: SocketAddr) -> Acknowledged {
        let port = format!("sport = :{}", address.port());
        let output = Command::new("ip")
            .args(["netns", "exec", &self.server, "ss", "-tinHO", "state", "established", &port])
            .output()
            .expect("ss can be run");
        assert!(output.status.success(), "ss: {}", String::from_utf8_lossy(&output.stderr));
        let mut sum = Acknowledged::default();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let value = |name: &str| line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name));
            let number =
                |name: &str| value(name).map_or(0, |number| number.parse::<u64>().expect("a number"));
            sum.bytes += number("bytes_acked:");
            sum.sent_bytes += number("bytes_sent:");
            sum.segments += number("segs_out:");
            // "retrans:0/7": on their way, and all.
            let retransmitted = value("retrans:").and_then(|pair| pair.split_once('/'));
            sum.retransmitted += retransmitted.map_or(0, |(_, all)| all.parse().expect("a number"));
            sum.connections += 1;
        }
        sum
    }

    /// Breaks the link at the client's end, or mends it.
    pub(crate) fn set_up(&self, up: bool) {
        let state = if up { "up" } else { "down" };
        ip(&format!("-n {} link set {INTERFACE} {state}", self.client)).expect("ip");
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for namespace in [&self.server, &self.client] {
            // Fails only for one that was not made.
            let _ = ip(&format!("netns delete {namespace}"));
        }
    }
}

fn within<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let moved = scope.spawn(|| {
            let file = File::open(format!("/run/netns/{namespace}")).expect("the namespace is there");
            enter_network(file).expect("permitted");
            work()
        });
        moved.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `ip` and gives its output.
fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip")
        .args(arguments.split_ascii_whitespace())
        .output()
        .map_err(|error| format!("ip (iproute2) cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
