//! Setting connections up in an adapter that encrypts: only with another host or namespace at the other end, as no
//! connection of a machine to itself passes an adapter.

use std::{
    fs, io,
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use linerate_os::{
    adapter,
    kernel_tls::{self, Version},
};
use linerate_placement::{NicFigures, NicLimits};
use linerate_record::Aead;

use crate::{
    Figures, Options,
    engines::{self, move_to_kernel},
    loopback::{Bench, CONTENT_BYTES, Connection, cpu_ns},
};

/// What a set-up keeps a worker waiting without computing.
pub(crate) const WAIT: &str = "nic_set_up_wait_ns";
/// Connections that are set up in a round.
const SET_UPS: usize = 32;
const TIME_LIMIT: Duration = Duration::from_secs(3);
/// The feature by which an adapter encrypts.
const FEATURE: &str = "tls-hw-tx-offload";
/// What adapters have under stock kernels: TLS 1.2 (docs/ARCHITECTURE.md).
const CIPHERS: [Aead; 2] = [Aead::Aes128Gcm, Aead::Aes256Gcm];

/// Measures. The error is why nothing could be, in words.
pub(crate) fn measure(
    options: &Options,
    bench: &Bench,
    figures: &mut Figures,
) -> Result<Option<NicFigures>, String> {
    let Some(peer) = options.peer else {
        let encrypting = those_that_encrypt()?;
        return Err(format!(
            "only another host can be at the other end of {}: `linerate calibrate --sink ADDRESS:PORT` there, \
             `--peer ADDRESS:PORT` here",
            encrypting.join(", ")
        ));
    };
    let device = on_the_way(peer)?;
    let mut walls_ns = Vec::new();
    for _ in 0..options.rounds.max(1) {
        walls_ns.push(set_ups(peer, figures)?);
    }
    for aead in CIPHERS {
        // A cipher that the adapter does not have is one that is not measured.
        let Ok(connection) = offloaded(peer, aead) else { continue };
        for _ in 0..options.rounds.max(1) {
            let began = cpu_ns();
            connection
                .send_file(&bench.content, 0, CONTENT_BYTES as u64, engines::KERNEL_CALL_BYTES)
                .map_err(|error| format!("sending to {peer}: {error}"))?;
            figures.add(engines::per_byte("nic", aead), (cpu_ns() - began) / CONTENT_BYTES as f64);
        }
    }
    walls_ns.sort_by(f64::total_cmp);
    let driver = adapter::driver(&device).map(|driver| driver.name).unwrap_or_default();
    Ok(Some(NicFigures {
        device,
        driver,
        set_ups_per_s: (1e9 / walls_ns[walls_ns.len() / 2]).round(),
        flow_table_flows: NicLimits::DEFAULT.flow_table_flows,
    }))
}

/// The interfaces whose feature is on.
fn those_that_encrypt() -> Result<Vec<String>, String> {
    let table = fs::read_to_string("/proc/net/dev").map_err(|error| format!("/proc/net/dev: {error}"))?;
    let names = table.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    let encrypts = |name: &String| {
        adapter::features(name).is_ok_and(|features| features.get(FEATURE).copied().unwrap_or(false))
    };
    let found: Vec<String> = names.filter(encrypts).collect();
    if found.is_empty() { Err(format!("none here encrypts ({FEATURE} is on nowhere)")) } else { Ok(found) }
}

/// The adapter that leads to the peer.
fn on_the_way(peer: SocketAddr) -> Result<String, String> {
    let failed = |error: io::Error| format!("{peer}: {error}");
    let socket = TcpStream::connect_timeout(&peer, TIME_LIMIT).map_err(failed)?;
    adapter::towards(socket.local_addr().map_err(failed)?.ip(), peer.ip()).map_err(failed)
}

/// Sets connections up, one after the other: the wall time of one in nanoseconds.
fn set_ups(peer: SocketAddr, figures: &mut Figures) -> Result<f64, String> {
    let connections: Vec<Connection> = (0..SET_UPS).map(|_| connect(peer)).collect::<Result<_, _>>()?;
    let before = in_adapters()?;
    let (began, began_ns) = (Instant::now(), cpu_ns());
    for connection in &connections {
        move_to_kernel(connection, Version::Tls12, CIPHERS[0])
            .map_err(|error| format!("a connection to {peer} could not be set up: {error}"))?;
    }
    let (wall_ns, computed_ns) = (began.elapsed().as_nanos() as f64, cpu_ns() - began_ns);
    let moved = in_adapters()?.saturating_sub(before);
    if moved < SET_UPS as u64 {
        return Err(format!(
            "of {SET_UPS} connections to {peer} {moved} went to an adapter, as TlsTxDevice of /proc/net/tls_stat says"
        ));
    }
    let each = |total_ns: f64| total_ns / SET_UPS as f64;
    for aead in CIPHERS {
        figures.add(engines::set_up("nic", aead), each(computed_ns));
    }
    figures.add(WAIT, each((wall_ns - computed_ns).max(0.0)));
    Ok(each(wall_ns))
}

/// A connection that an adapter encrypts.
fn offloaded(peer: SocketAddr, aead: Aead) -> Result<Connection, String> {
    let connection = connect(peer)?;
    let before = in_adapters()?;
    move_to_kernel(&connection, Version::Tls12, aead).map_err(|error| error.to_string())?;
    if in_adapters()? > before { Ok(connection) } else { Err("it stayed in software".to_owned()) }
}

fn connect(peer: SocketAddr) -> Result<Connection, String> {
    let prepared = || -> io::Result<TcpStream> {
        let socket = TcpStream::connect_timeout(&peer, TIME_LIMIT)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    prepared().map(Connection::to).map_err(|error| format!("{peer}: {error}"))
}

/// How many connections adapters have taken so far.
fn in_adapters() -> Result<u64, String> {
    let statistics = kernel_tls::statistics().map_err(|error| format!("/proc/net/tls_stat: {error}"))?;
    Ok(statistics.iter().find(|line| line.name == "TlsTxDevice").map_or(0, |line| line.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_another_host_it_says_what_to_do() {
        let bench = Bench::new(0).unwrap();
        let options = Options { rounds: 1, peer: None };
        let why = measure(&options, &bench, &mut Figures::default()).unwrap_err();
        assert!(why.contains("--sink ADDRESS:PORT") || why.contains("none here encrypts"), "{why}");
    }

    #[test]
    fn a_peer_that_no_adapter_leads_to_is_told() {
        const NAME: &str = "a_peer_that_no_adapter_leads_to_is_told";
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        std::thread::spawn(move || crate::sink(&listener));
        let bench = Bench::new(0).unwrap();
        let options = Options { rounds: 1, peer: Some(peer) };
        let why = measure(&options, &bench, &mut Figures::default()).unwrap_err();
        if why.contains("tls_stat") && !why.contains("TlsTxDevice") {
            eprintln!("SKIPPED the rest of {NAME}: no tls module here");
            return;
        }
        assert!(why.contains("0 went to an adapter"), "{why}");
    }
}
