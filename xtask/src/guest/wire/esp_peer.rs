//! The host's end of ESP (RFC 4303 with RFC 4106's AES-GCM), in user space: few hosts that count are allowed to load modules, and
//! many kernels come without it.
//!
//! The kernel's TCP is on a TUN device (`guest/wire/tun.c`). Its packets are sealed here and leave by a raw socket; those that come
//! there are opened, and handed to the device.

use std::fs;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use linerate_bench::network::VETH_SERVER;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recv, send, socket_with,
    socketpair,
};

use super::esp::{Association, ESP_CLIENT, ESP_SERVER, Mode, SPI_TO_CLIENT, SPI_TO_SERVER};
use super::output_of;
use super::tap::TAP;
use crate::linerate::workspace;

/// The device's name.
const TUN: &str = "linerate1";
/// A routing table that ESP's packets have for themselves: in transport mode they go to an address that TCP's packets go to.
const TABLE: &str = "50";
/// How long the device may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest packet.
const PACKET_BYTES: usize = 65_536;
/// Number of the association, of the packet, and the part of the nonce that is sent.
const HEADER_BYTES: usize = 4 + 4 + 8;
const TAG_BYTES: usize = 16;
/// What ESP carries in tunnel mode: IPv4 (IANA's protocol numbers).
const IPV4_IN_IP: u8 = 4;

/// The client's end; with its last process's namespace it is gone.
#[derive(Debug)]
pub(in crate::guest) struct EspPeer {
    keys: Arc<Mutex<Option<Keys>>>,
    process: Child,
}

impl Drop for EspPeer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl EspPeer {
    /// Makes the device, and begins to carry packets, once there are keys.
    pub(in crate::guest) fn start() -> Result<Self> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let process = Command::new(compile()?)
            .arg(TUN)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the TUN device's program")?;
        let peer = Self { keys: Arc::default(), process };
        let device = format!("/proc/sys/net/ipv4/conf/{TUN}");
        let began = Instant::now();
        while !Path::new(&device).exists() {
            if began.elapsed() > PATIENCE {
                bail!("there is no device {TUN}: /dev/net/tun and CAP_NET_ADMIN are needed");
            }
            thread::sleep(Duration::from_millis(20));
        }
        route()?;
        let raw = socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::ESP))
            .context("cannot open a raw socket")?;
        // Address and length are all that a datagram socket of the library knows, and all that is needed of this one.
        let raw = Arc::new(UdpSocket::from(raw));
        rustix::net::sockopt::set_socket_recv_buffer_size(&raw, 16 << 20)?;
        let device = Arc::new(ours);
        let (opening, sealing) = (peer.keys.clone(), peer.keys.clone());
        let (raw_in, device_in) = (raw.clone(), device.clone());
        thread::spawn(move || complain("ESP to the client", receive(&raw_in, &device_in, &opening)));
        thread::spawn(move || complain("ESP to the server", transmit(&device, &raw, &sealing)));
        Ok(peer)
    }

    /// Takes these keys from now on.
    pub(in crate::guest) fn take(&self, association: &Association) -> Result<()> {
        let keys = Keys::new(association)?;
        output_of("ip", &["link", "set", TUN, "mtu", &association.mtu_bytes.to_string()])?;
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys);
        Ok(())
    }
}

fn complain(what: &str, done: Result<()>) {
    if let Err(error) = done {
        eprintln!("{what}: {error:#}");
    }
}

/// The device's program.
fn compile() -> Result<std::path::PathBuf> {
    let workspace = workspace();
    let program = workspace.join("target/guest/tun");
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-o"])
        .arg(&program)
        .arg(workspace.join("guest/wire/tun.c"))
        .status()
        .context("cannot run cc, the compiler")?;
    if !status.success() {
        bail!("guest/wire/tun.c does not compile ({status})");
    }
    Ok(program)
}

fn route() -> Result<()> {
    let (server, client, gateway) = (ESP_SERVER.to_string(), ESP_CLIENT.to_string(), VETH_SERVER.to_string());
    for device in ["all", "default", TUN, TAP] {
        // What comes in by one device is answered by the other.
        fs::write(format!("/proc/sys/net/ipv4/conf/{device}/rp_filter"), "0")
            .with_context(|| format!("cannot set rp_filter of {device}"))?;
    }
    let commands: [&[&str]; 6] = [
        &["link", "set", TUN, "addrgenmode", "none"],
        &["address", "add", &client, "dev", TUN],
        &["link", "set", TUN, "up"],
        &["route", "add", &server, "dev", TUN, "src", &client],
        &["rule", "add", "ipproto", "esp", "lookup", TABLE],
        &["route", "add", &server, "via", &gateway, "dev", TAP, "src", &client, "table", TABLE],
    ];
    for arguments in commands {
        output_of("ip", arguments)?;
    }
    Ok(())
}

/// From the network to the device.
fn receive(raw: &UdpSocket, device: &OwnedFd, keys: &Mutex<Option<Keys>>) -> Result<()> {
    let mut packet = vec![0; PACKET_BYTES];
    loop {
        let bytes = raw.recv(&mut packet)?;
        let keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        // One of an association that is given up is lost, as is one that is not authentic.
        if let Some(opened) = keys.as_ref().and_then(|keys| keys.open(&mut packet[..bytes])) {
            send(device, &opened, SendFlags::NOSIGNAL)?;
        }
    }
}

/// From the device to the network.
fn transmit(device: &OwnedFd, raw: &UdpSocket, keys: &Mutex<Option<Keys>>) -> Result<()> {
    let mut packet = vec![0; PACKET_BYTES];
    loop {
        let (bytes, _) = recv(device, &mut packet, RecvFlags::empty())?;
        if bytes == 0 {
            return Ok(());
        }
        let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(keys) = keys.as_mut() else { continue };
        if let Some(sealed) = keys.seal(&packet[..bytes]) {
            let to = match keys.mode {
                Mode::Transport => ESP_SERVER,
                Mode::Tunnel => VETH_SERVER,
            };
            raw.send_to(&sealed, SocketAddr::V4(SocketAddrV4::new(to, 0)))?;
        }
    }
}

/// Both directions' keys.
#[derive(Debug)]
struct Keys {
    mode: Mode,
    incoming: Key,
    outgoing: Key,
    /// Packets sent.
    sent: u32,
}

#[derive(Debug)]
struct Key {
    spi: [u8; 4],
    key: LessSafeKey,
    salt: [u8; 4],
}

impl Key {
    fn new(spi: u32, material: &[u8]) -> Result<Self> {
        let (key, salt) = material.split_last_chunk().context("a key is too short")?;
        let spi = spi.to_be_bytes();
        Ok(Self { spi, key: UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new)?, salt: *salt })
    }

    fn nonce(&self, explicit: [u8; 8]) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[..4].copy_from_slice(&self.salt);
        nonce[4..].copy_from_slice(&explicit);
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Keys {
    fn new(association: &Association) -> Result<Self> {
        Ok(Self {
            mode: association.mode,
            incoming: Key::new(SPI_TO_CLIENT, &association.to_client)?,
            outgoing: Key::new(SPI_TO_SERVER, &association.to_server)?,
            sent: 0,
        })
    }

    /// The packet that TCP is to have, of one with its header of IP.
    fn open(&self, packet: &mut [u8]) -> Option<Vec<u8>> {
        let header_bytes = usize::from(packet.first()? & 0xf) * 4;
        let (header, esp) = packet.split_at_mut_checked(header_bytes)?;
        let (sent, sealed) = esp.split_first_chunk_mut::<HEADER_BYTES>()?;
        if sent[..4] != self.incoming.spi {
            return None;
        }
        let nonce = self.incoming.nonce(sent[8..].try_into().ok()?);
        let opened = self.incoming.key.open_in_place(nonce, Aad::from(&sent[..8]), sealed).ok()?;
        let (rest, &mut [pad_bytes, next]) = opened.split_last_chunk_mut::<2>()?;
        let carried = rest.get(..rest.len().checked_sub(pad_bytes.into())?)?;
        match self.mode {
            Mode::Tunnel => (next == IPV4_IN_IP).then(|| carried.to_vec()),
            Mode::Transport => {
                let mut whole = header.to_vec();
                whole.extend_from_slice(carried);
                let length = u16::try_from(whole.len()).ok()?;
                whole[2..4].copy_from_slice(&length.to_be_bytes());
                whole[9] = next;
                whole[10..12].fill(0);
                let checksum = internet_checksum(&whole[..header_bytes]);
                whole[10..12].copy_from_slice(&checksum.to_be_bytes());
                Some(whole)
            }
        }
    }

    /// What the raw socket is to send, of a packet of TCP's; the kernel puts the header of IP before it.
    fn seal(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let header_bytes = usize::from(packet.first()? & 0xf) * 4;
        let (carried, next) = match self.mode {
            Mode::Tunnel => (packet, IPV4_IN_IP),
            Mode::Transport => (packet.get(header_bytes..)?, *packet.get(9)?),
        };
        self.sent = self.sent.checked_add(1)?;
        let explicit = u64::from(self.sent).to_be_bytes();
        let mut sealed = Vec::with_capacity(HEADER_BYTES + carried.len() + TAG_BYTES + 6);
        sealed.extend(self.outgoing.spi);
        sealed.extend(self.sent.to_be_bytes());
        sealed.extend(explicit);
        let mut inner = carried.to_vec();
        // To a multiple of four bytes, with 1, 2, 3 (RFC 4303, section 2.4).
        let pad_bytes = (4 - (carried.len() + 2) % 4) % 4;
        inner.extend((1..).take(pad_bytes));
        inner.extend([u8::try_from(pad_bytes).ok()?, next]);
        let nonce = self.outgoing.nonce(explicit);
        self.outgoing.key.seal_in_place_append_tag(nonce, Aad::from(&sealed[..8]), &mut inner).ok()?;
        sealed.extend(inner);
        Some(sealed)
    }
}

/// RFC 1071.
fn internet_checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|word| word.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of 20 bytes of header, protocol TCP, and a payload.
    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 8, 0, 1, 10, 8, 0, 2];
        packet.extend_from_slice(payload);
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        let checksum = internet_checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    #[test]
    fn what_one_end_seals_the_other_opens_in_both_modes() {
        for mode in [Mode::Transport, Mode::Tunnel] {
            let association =
                Association { mode, mtu_bytes: 1500, to_client: vec![1; 36], to_server: vec![2; 36] };
            let mut client = Keys::new(&association).unwrap();
            let Keys { incoming, outgoing, .. } = Keys::new(&association).unwrap();
            let server = Keys { mode, incoming: outgoing, outgoing: incoming, sent: 0 };
            for length in 0..9 {
                let whole = packet(&vec![7; length]);
                let sealed = client.seal(&whole).unwrap();
                assert_eq!((sealed.len() - HEADER_BYTES - TAG_BYTES) % 4, 0);
                let arrived = packet(&sealed);
                assert_eq!(server.open(&mut arrived.clone()), Some(whole), "{mode:?}, {length} bytes");
                assert_eq!(client.open(&mut arrived.clone()), None, "it goes the other way");
                for place in 20..arrived.len() {
                    let mut changed = arrived.clone();
                    changed[place] ^= 1;
                    assert_eq!(server.open(&mut changed), None, "byte {place} is changed");
                    assert_eq!(server.open(&mut arrived[..place].to_vec()), None, "{place} bytes have come");
                }
            }
        }
    }

    #[test]
    fn a_header_s_checksum_is_rfc_1071_s() {
        let header =
            [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(internet_checksum(&header), 0xb861);
    }
}
