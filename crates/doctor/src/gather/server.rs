//! A server that was asked about: what it agrees on, the certificate it shows and, if it is a linerate whose admin
//! listener can be reached, what carried a response.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs},
    time::{Duration, SystemTime},
};

use linerate_environment::Reading;
use linerate_record::Version;
use linerate_tls::{CipherSuite, Connector, TlsPolicy, Trust};

use super::exchange::{Open, Refused, connect};
use crate::facts::{Answer, ResponseFacts, Server};

/// The port that the guide's examples give to the admin listener (docs/guide).
const ADMIN_PORT: u16 = 9443;
const ADMIN_TIME_LIMIT: Duration = Duration::from_secs(2);
/// The most of a page of metrics: ours has about 20 KiB.
const METRICS_LIMIT_BYTES: u64 = 4 << 20;
/// The bytes of a file that are asked for: enough that an engine other than the user's would be considered.
const PROBE_BYTES: u64 = 1 << 20;

/// Asks the server at `HOST:PORT`, or for the file of an `https://` address.
pub(super) fn ask(address: &str, admin: Option<SocketAddr>) -> Server {
    Server { address: address.to_owned(), answer: parse(address).and_then(|target| answer(&target, admin)) }
}

/// What an address names.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    host: String,
    port: u16,
    path: String,
}

fn parse(address: &str) -> Result<Target, String> {
    let rest = match address.split_once("://") {
        Some(("https", rest)) => rest,
        Some((scheme, _)) => {
            return Err(format!("{scheme}:// is not TLS: write HOST:PORT or https://HOST:PORT/FILE"));
        }
        None => address,
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(port))),
        None if authority.matches(':').count() > 1 => {
            return Err(format!("\"{authority}\": an IPv6 address needs brackets, like [::1]:8443"));
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        None => 443,
        Some(port) => port
            .parse::<u16>()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| format!("\"{port}\" is no port: 1 to 65535 are possible"))?,
    };
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if host.is_empty() || !is_plain(host) || !is_plain(path) {
        return Err(format!("\"{address}\" names no server: write HOST:PORT"));
    }
    Ok(Target { host: host.to_owned(), port, path: format!("/{path}") })
}

fn answer(target: &Target, admin: Option<SocketAddr>) -> Result<Answer, String> {
    let address = reachable(target)?;
    let (open, distrust) = match agree(address, target, &TlsPolicy::default(), &Trust::System) {
        Ok(open) => (open, None),
        Err(Refused::Trust(reason)) => {
            let open = agree(address, target, &TlsPolicy::default(), &Trust::Anyone);
            (open.map_err(Refused::into_words)?, Some(reason))
        }
        Err(Refused::Other(reason)) => return Err(format!("{}:{}: {reason}", target.host, target.port)),
    };
    let now = SystemTime::now();
    let connected = &open.connected;
    let (version, suite, group) = (connected.version, connected.cipher_suite, connected.group);
    let certificate = connected.server_certificates.inspect(now);
    let left = certificate.as_ref().ok().and_then(|inspection| inspection.not_after.duration_since(now).ok());
    let admin = admin.or_else(|| {
        let is_here = address.ip().is_loopback();
        is_here.then(|| (Ipv4Addr::LOCALHOST, ADMIN_PORT).into())
    });
    let before = admin.map(counters);
    let response = response(open, target);
    // Behind it: servers that take one connection at a time are free again.
    let speaks = [Version::Tls12, Version::Tls13].map(|version| {
        let agreed = agree(address, target, &only(version), &Trust::Anyone);
        (version, agreed.map(|_| ()).map_err(Refused::into_words))
    });
    let engine = match (&response, before) {
        (Reading::Value(ResponseFacts { server: Some(server), .. }), Some(before))
            if server == "linerate" =>
        {
            before.and_then(|before| moved(admin, &before))
        }
        (Reading::Value(ResponseFacts { server: Some(server), .. }), None) if server == "linerate" => {
            Err("its admin listener is not known: name it with --admin".to_owned())
        }
        _ => Err("only a linerate tells".to_owned()),
    };
    Ok(Answer {
        version,
        cipher_suite: suite.openssl_name().to_owned(),
        cipher: suite.cipher(),
        group: group.map(|group| group.iana_name().to_owned()),
        speaks,
        certificate,
        left,
        distrust,
        response,
        engine: engine.map_or_else(Reading::NotAvailable, Reading::Value),
    })
}

/// The first address of the host that takes a connection.
fn reachable(target: &Target) -> Result<SocketAddr, String> {
    let (host, port) = (&*target.host, target.port);
    let unknown = |error: std::io::Error| format!("{host}: no address: {error}");
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(unknown)?.collect();
    let mut refusal = format!("{host}: the resolver knows no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, Duration::from_secs(3)) {
            Ok(_) => return Ok(address),
            Err(error) => refusal = format!("{address}: {error}"),
        }
    }
    Err(refusal)
}

fn agree(address: SocketAddr, target: &Target, policy: &TlsPolicy, trust: &Trust) -> Result<Open, Refused> {
    let policy = TlsPolicy { session_tickets: false, ..policy.clone() };
    let connector = Connector::new(&policy, trust).map_err(|error| match trust {
        // A system without authorities trusts nobody, which is no reason not to look.
        Trust::System => Refused::Trust(error.to_string()),
        _ => Refused::Other(error.to_string()),
    })?;
    connect(address, &target.host, &connector)
}

/// A client that speaks one version only.
fn only(version: Version) -> TlsPolicy {
    let cipher_suites = CipherSuite::ALL.into_iter().filter(|suite| suite.version() == version).collect();
    TlsPolicy { minimum_version: Version::Tls12, cipher_suites, ..TlsPolicy::default() }
}

fn response(open: Open, target: &Target) -> Reading<ResponseFacts> {
    let host = match target.host.contains(':') {
        true => format!("[{}]", target.host),
        false => target.host.clone(),
    };
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {host}:{}\r\nRange: bytes=0-{}\r\nUser-Agent: linerate-doctor\r\n\
         Connection: close\r\n\r\n",
        target.path,
        target.port,
        PROBE_BYTES - 1
    );
    match open.ask(request.as_bytes()).and_then(|response| head(&response)) {
        Ok(facts) => Reading::Value(facts),
        Err(reason) => Reading::NotAvailable(reason),
    }
}

fn head(response: &[u8]) -> Result<ResponseFacts, String> {
    let text = String::from_utf8_lossy(&response[..response.len().min(16 * 1024)]).into_owned();
    let (head, _) = text.split_once("\r\n\r\n").ok_or("it does not answer with HTTP/1.1")?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok());
    let server = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("server").then(|| value.trim().to_owned())
    });
    Ok(ResponseFacts { status: status.ok_or("it does not answer with HTTP/1.1")?, server })
}

/// What an admin listener counts, by the metric's name with its labels.
fn counters(admin: SocketAddr) -> Result<BTreeMap<String, f64>, String> {
    let failed = |error: std::io::Error| format!("the admin listener at {admin}: {error}");
    let mut socket = TcpStream::connect_timeout(&admin, ADMIN_TIME_LIMIT)
        .map_err(|error| format!("{}; name another with --admin", failed(error)))?;
    socket.set_read_timeout(Some(ADMIN_TIME_LIMIT)).map_err(failed)?;
    socket.set_write_timeout(Some(ADMIN_TIME_LIMIT)).map_err(failed)?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).map_err(failed)?;
    let mut page = Vec::new();
    socket.take(METRICS_LIMIT_BYTES).read_to_end(&mut page).map_err(failed)?;
    let found = samples(&String::from_utf8_lossy(&page));
    if found.contains_key("linerate_start_time_seconds") {
        Ok(found)
    } else {
        Err(format!("what listens at {admin} is no admin listener of a linerate"))
    }
}

fn samples(page: &str) -> BTreeMap<String, f64> {
    page.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, value) = line.trim().rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect()
}

/// The counters that tell how responses were carried and why, of those that moved.
fn moved(admin: Option<SocketAddr>, before: &BTreeMap<String, f64>) -> Result<Vec<String>, String> {
    const TELLING: [&str; 3] =
        ["linerate_http_responses_total", "linerate_kernel_tls_", "linerate_placement"];
    let Some(admin) = admin else { return Err("its admin listener is not known".to_owned()) };
    // A response counts when its last byte has left, which is a moment after we have it.
    for _ in 0..20 {
        let after = counters(admin)?;
        let has_moved = |(name, value): &(&String, &f64)| {
            TELLING.iter().any(|telling| name.starts_with(telling))
                && **value > before.get(*name).copied().unwrap_or(0.0)
        };
        let moved: Vec<String> = after.iter().filter(has_moved).map(|(name, _)| name.clone()).collect();
        if moved.iter().any(|name| name.starts_with(TELLING[0])) {
            return Ok(moved);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("the counters at {admin} do not move: it is another server's"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_people_write_them() {
        let target =
            |host: &str, port, path: &str| Ok(Target { host: host.to_owned(), port, path: path.to_owned() });
        assert_eq!(parse("example.org:8443"), target("example.org", 8443, "/"));
        assert_eq!(parse("example.org"), target("example.org", 443, "/"));
        assert_eq!(parse("https://example.org/a/b.mp4"), target("example.org", 443, "/a/b.mp4"));
        assert_eq!(parse("[::1]:8443"), target("::1", 8443, "/"));
        assert_eq!(parse("[::1]"), target("::1", 443, "/"));
        for (address, words) in [
            ("http://example.org", "is not TLS"),
            ("::1", "needs brackets"),
            ("example.org:65536", "\"65536\" is no port: 1 to 65535 are possible"),
            ("example.org:0", "is no port"),
            (":443", "names no server"),
            ("exam ple.org", "names no server"),
            ("example.org/a\r\nb", "names no server"),
        ] {
            assert!(parse(address).unwrap_err().contains(words), "{address}");
        }
    }

    #[test]
    fn the_head_of_a_response_is_read() {
        let facts = head(b"HTTP/1.1 206 Partial Content\r\nDate: x\r\nserver: linerate\r\n\r\nbody").unwrap();
        assert_eq!(facts, ResponseFacts { status: 206, server: Some("linerate".to_owned()) });
        assert_eq!(head(b"HTTP/1.0 200 OK\r\n\r\n").unwrap().server, None);
        assert!(head(b"SSH-2.0-x\r\n\r\n").is_err() && head(b"HTTP/1.1 200").is_err());
    }

    #[test]
    fn metrics_are_read_with_their_labels() {
        let page = "HTTP/1.1 200 OK\r\n\r\n# HELP a b\na{engine=\"user\"} 3\nb 1.5\nc x\n";
        let found = samples(page);
        assert_eq!(found.get("a{engine=\"user\"}"), Some(&3.0));
        assert_eq!((found.get("b"), found.get("c")), (Some(&1.5), None));
    }
}
