//! An adapter that encrypts: how many connections it sets up in a second, and what it costs to send through it. Only with
//! another host or namespace at the other end, as no connection of a machine to itself passes an adapter.
//!
//! Times are CPU time of the sending thread, as everywhere here: what an adapter's own processor does is not in them. A
//! software adapter (`nic/`) has none of its own, so there it is.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use linerate_engine::{
    kernel::{self, Prepared, Refusal},
    nic::{self, Adapters, Proof, Witness},
};
use linerate_os::{
    adapter::{self, Beneath},
    kernel_tls::System,
};
use linerate_placement::{Lack, NicFigures, NicLimits, Reason};
use linerate_record::{Cipher, Version};

use crate::{
    Figures,
    content::Content,
    engines::{self, NIC, Sender, USER_TO_PEER},
    send_path::SendPath,
    stretch::cpu_ns,
};

/// What a set-up keeps a worker waiting without computing.
pub(crate) const WAIT: &str = "nic_set_up_wait_ns";
/// Set-ups that the adapter does, one after the other.
pub(crate) const RATE: &str = "nic_set_ups_per_s";
/// Connections that are set up in a round: fewer than a sink takes at once, or a listener's queue holds.
const SET_UPS: usize = 64;
/// Set-ups that are under way at once, so that the adapter never waits for us: as many as a worker of the server has.
const AT_ONCE: usize = 4;
/// So long at most, in a round.
const SET_UPS_TIME: Duration = Duration::from_millis(500);
/// The feature by which an adapter encrypts.
const FEATURE: &str = "tls-hw-tx-offload";
/// What adapters have under stock kernels: TLS 1.2 (docs/ARCHITECTURE.md).
const CIPHERS: [Cipher; 2] = [Cipher::Aes128Gcm, Cipher::Aes256Gcm];
/// The driver whose hardware is software: `nic/`.
const SOFTWARE: &str = "linerate_nic";

/// The adapter that leads to the peer.
pub(crate) struct Adapter {
    path: SendPath,
    peer: SocketAddr,
    /// Its interface; by a bond, that of a port.
    device: String,
    driver: String,
    /// The paths to it, and the proof of what it has.
    adapters: Adapters,
    /// Ciphers that it left to the kernel.
    refused: Vec<Cipher>,
}

impl Adapter {
    /// The one on this path. The error is why there is none, in words.
    pub(crate) fn on(path: SendPath, peer: SocketAddr) -> Result<Self, String> {
        let interface =
            interface(&path, peer).map_err(|error| format!("which one leads to {peer}: {error}"))?;
        let beneath = beneath(&interface);
        let state = |port: &String| adapter::feature_states(port).ok()?.get(FEATURE).copied();
        let states: Vec<_> = beneath.ports.iter().filter_map(|port| Some((port, state(port)?))).collect();
        if let Some((device, _)) = states.iter().find(|(_, state)| state.on) {
            if beneath.obstacle.is_some() {
                return Err(format!(
                    "{interface} leads to {peer}, and hands no connections to {device} (`linerate doctor` says why)"
                ));
            }
            let driver = adapter::driver(device).map(|driver| driver.name).unwrap_or_default();
            return Ok(Self {
                path,
                peer,
                device: (*device).clone(),
                driver,
                adapters: Adapters::find(&Adapters::default()),
                refused: Vec::new(),
            });
        }
        Err(match states.iter().find(|(_, state)| state.changeable) {
            Some((port, _)) => format!(
                "{interface} leads to {peer}, and {FEATURE} is off (`sudo ethtool -K {port} {FEATURE} on`)"
            ),
            None => format!("{interface} leads to {peer}, and has no {FEATURE}"),
        })
    }

    /// Measures a round. The error is why it cannot be measured, in words.
    pub(crate) fn measure(&mut self, content: &Content, figures: &mut Figures) -> Result<(), String> {
        let peer = self.peer;
        self.set_ups(figures)?;
        for cipher in Cipher::ALL {
            engines::user(USER_TO_PEER, content, &self.path, cipher, figures)
                .map_err(|error| format!("sending to {peer}: {error}"))?;
        }
        for cipher in CIPHERS {
            if self.refused.contains(&cipher) {
                continue;
            }
            let (Some(mut long), Some(mut small)) = (self.offloaded(cipher)?, self.offloaded(cipher)?) else {
                self.refused.push(cipher);
                continue;
            };
            engines::by_sendfile(NIC, content, [&mut long, &mut small], cipher, figures)
                .map_err(|error| format!("sending to {peer}: {error}"))?;
        }
        Ok(())
    }

    /// Sets connections up as a worker of the server does, on threads that may wait, and has each torn down again while
    /// others are set up, as in a server whose connections come and go: adapters do both with the same firmware.
    fn set_ups(&self, figures: &mut Figures) -> Result<(), String> {
        let mut waiting: Vec<Sender> =
            (0..SET_UPS).map(|_| self.sender(CIPHERS[0])).collect::<Result<_, _>>()?;
        let began = Instant::now();
        let done = thread::scope(|scope| -> Result<Done, Refusal> {
            let (jobs, taken) = mpsc::channel::<Job>();
            let (finished, results) = mpsc::channel();
            let taken = Arc::new(Mutex::new(taken));
            let pool: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    let (taken, finished) = (Arc::clone(&taken), finished.clone());
                    let witness = &self.adapters.witness;
                    scope.spawn(move || set_up_what_comes(&taken, &finished, witness))
                })
                .collect();
            let began_ns = cpu_ns();
            let (mut done, mut under_way) = (Done::default(), HashMap::new());
            loop {
                while under_way.len() < AT_ONCE
                    && began.elapsed() < SET_UPS_TIME
                    && let Some(mut sender) = waiting.pop()
                {
                    let socket = sender.connection.socket.as_fd();
                    let _way = self.adapters.towards(&System, socket);
                    let prepared = kernel::prepare(&System, socket, &mut sender.channel, false, 0)?;
                    let socket = socket.try_clone_to_owned()?;
                    let number = waiting.len();
                    under_way.insert(number, sender);
                    // Its receiver is here until this ends.
                    let _ = jobs.send(Job { number, socket, prepared });
                }
                let Some((job, proof)) = (!under_way.is_empty()).then(|| results.recv().ok()).flatten()
                else {
                    break;
                };
                let Some(mut sender) = under_way.remove(&job.number) else { continue };
                done.in_adapters += u64::from(matches!(proof, Ok(Proof::Adapter)));
                kernel::settle(&mut sender.channel, job.prepared, proof.map(|_| false))?;
                done.at.push(Instant::now());
                let closing_ns = cpu_ns();
                drop((sender, job.socket));
                done.closing_ns += cpu_ns() - closing_ns;
            }
            done.computed_ns = cpu_ns() - began_ns;
            drop(jobs);
            for thread in pool {
                done.computed_ns += thread.join().unwrap_or(0.0);
            }
            Ok(done)
        });
        let done = done.map_err(|refusal| match refusal.reason {
            Reason::Lacking(Lack::Module) => refusal.to_string(),
            _ => format!("a connection to {} could not be set up: {refusal}", self.peer),
        })?;
        let (wall_ns, set_ups) = (began.elapsed().as_nanos() as f64, done.at.len() as u64);
        if set_ups == 0 || done.in_adapters < set_ups {
            return Err(format!(
                "of {set_ups} connections to {} {} went to an adapter, as the kernel says",
                self.peer, done.in_adapters
            ));
        }
        let set_ups = set_ups as f64;
        for cipher in CIPHERS {
            figures.add(engines::set_up(NIC, cipher), (done.computed_ns - done.closing_ns) / set_ups);
        }
        let each_ns = between_ns(done.at).unwrap_or(wall_ns / set_ups);
        figures.add(RATE, 1e9 / each_ns);
        // All threads have one CPU: what nobody computed, everybody waited for.
        figures.add(WAIT, (each_ns - done.computed_ns / set_ups).max(0.0));
        Ok(())
    }

    /// A connection that the adapter encrypts; `None` if it leaves it to the kernel.
    fn offloaded(&self, cipher: Cipher) -> Result<Option<Sender>, String> {
        let mut sender = self.sender(cipher)?;
        let proof = self.set_up(&mut sender);
        match proof {
            Ok(proof) => Ok((proof == Proof::Adapter).then_some(sender)),
            Err(Refusal { reason: Reason::Lacking(Lack::NotInKernel(_)), .. }) => Ok(None),
            Err(refusal) => Err(format!("a connection to {} could not be set up: {refusal}", self.peer)),
        }
    }

    fn set_up(&self, sender: &mut Sender) -> Result<Proof, Refusal> {
        let socket = sender.connection.socket.as_fd();
        let prepared = kernel::prepare(&System, socket, &mut sender.channel, false, 0)?;
        let proof = nic::set_up(&System, socket, &prepared, &self.adapters.witness);
        let found = proof.as_ref().ok().copied();
        kernel::settle(&mut sender.channel, prepared, proof.map(|_| false))?;
        Ok(found.unwrap_or(Proof::Unproven))
    }

    fn sender(&self, cipher: Cipher) -> Result<Sender, String> {
        Sender::on(&self.path, Version::Tls12, cipher)
            .map_err(|error| format!("connecting to {}: {error}", self.peer))
    }

    /// Bytes that the user engine hands to the kernel at once, on this path.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.path.batch_bytes()
    }

    /// What was found out of it.
    pub(crate) fn found(&self, figures: &Figures) -> Option<NicFigures> {
        Some(NicFigures {
            device: self.device.clone(),
            driver: self.driver.clone(),
            set_ups_per_s: figures.median(RATE)?.round().max(1.0),
            flow_table_flows: NicLimits::DEFAULT.flow_table_flows,
        })
    }

    /// What to know of it.
    pub(crate) fn notes(&self) -> Vec<String> {
        let device = &self.device;
        let mut notes = vec![format!(
            "the size of {device}'s flow table was not measured: {} flows are the default's",
            NicLimits::DEFAULT.flow_table_flows
        )];
        notes.extend(self.refused.iter().map(|&cipher| {
            format!("{device} left TLS 1.2 with {} to the kernel: not measured there", cipher.name())
        }));
        if self.driver == SOFTWARE {
            notes.push(format!(
                "{device} is the software adapter: what hardware would do is CPU time here, so a byte costs more on it \
                 than on any other"
            ));
        }
        notes
    }
}

/// What has been set up.
#[derive(Clone, Debug, Default)]
struct Done {
    /// When each was done.
    at: Vec<Instant>,
    /// How many the adapter has, as the kernel says.
    in_adapters: u64,
    /// CPU time of all threads, closing included.
    computed_ns: f64,
    /// CPU time of closing.
    closing_ns: f64,
}

/// A connection on its way to the adapter.
struct Job {
    number: usize,
    socket: OwnedFd,
    prepared: Prepared,
}

/// Sets up what comes, until no more does. Returns the CPU time of it.
fn set_up_what_comes(
    taken: &Mutex<mpsc::Receiver<Job>>,
    finished: &mpsc::Sender<(Job, Result<Proof, Refusal>)>,
    witness: &Witness,
) -> f64 {
    let began_ns = cpu_ns();
    let next = || taken.lock().ok().and_then(|taken| taken.recv().ok());
    while let Some(job) = next() {
        let proof = nic::set_up(&System, job.socket.as_fd(), &job.prepared, witness);
        if finished.send((job, proof)).is_err() {
            break;
        }
    }
    cpu_ns() - began_ns
}

/// What lies between two that are done, in nanoseconds. The first few are left out: nothing was torn down meanwhile.
fn between_ns(mut at: Vec<Instant>) -> Option<f64> {
    at.sort();
    let settled = at.get(AT_ONCE - 1..)?;
    let (first, last) = (settled.first()?, settled.last()?);
    (last > first).then(|| (*last - *first).as_nanos() as f64 / (settled.len() - 1) as f64)
}

/// Why no adapter is measured where nobody is at the other end.
pub(crate) fn nobody_there() -> String {
    let own = match adapter::interfaces() {
        Ok(own) => own,
        Err(error) => return format!("the kernel does not tell which there are: {error}"),
    };
    let encrypts = |name: &str| {
        adapter::features(name).is_ok_and(|features| features.get(FEATURE).copied().unwrap_or(false))
    };
    let encrypting: Vec<&str> =
        own.iter().map(|own| own.name.as_str()).filter(|name| encrypts(name)).collect();
    if encrypting.is_empty() {
        return format!("none here encrypts ({FEATURE} is on nowhere)");
    }
    format!(
        "only another host can be at the other end of {}: `linerate calibrate --sink ADDRESS:PORT` there, \
         `--peer ADDRESS:PORT` here",
        encrypting.join(", ")
    )
}

/// By which interface it goes there.
fn interface(path: &SendPath, peer: SocketAddr) -> io::Result<String> {
    let connection = path.connect()?;
    adapter::towards(&connection.socket, connection.socket.local_addr()?.ip(), peer.ip())
}

/// What stands beneath an interface. `/sys` alone tells, and may show another namespace: then it stands alone.
fn beneath(interface: &str) -> Beneath {
    let folder = Path::new("/sys/class/net");
    let is_ours = adapter::interfaces().is_ok_and(|own| adapter::shows(folder, &own));
    let alone = || Beneath { ports: vec![interface.to_owned()], ..Beneath::default() };
    is_ours.then(|| adapter::beneath(folder, interface).ok()).flatten().unwrap_or_else(alone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_rate_is_that_of_a_queue_that_has_settled() {
        let began = Instant::now();
        let at = |ms: &[u64]| ms.iter().map(|&ms| began + Duration::from_millis(ms)).collect();
        assert_eq!(between_ns(at(&[80, 15, 30, 45, 60, 100, 120])), Some(20e6));
        assert_eq!((between_ns(at(&[15, 30, 45, 60])), between_ns(at(&[]))), (None, None));
    }

    #[test]
    fn without_another_host_it_says_what_to_do() {
        let why = nobody_there();
        assert!(why.contains("--sink ADDRESS:PORT") || why.contains("none here encrypts"), "{why}");
    }

    #[test]
    fn a_peer_that_no_adapter_leads_to_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        std::thread::spawn(move || crate::sink(&listener));
        let path = SendPath::to(peer).unwrap();
        let why = Adapter::on(path, peer).err().expect("loopback encrypts nothing");
        assert_eq!(why, format!("lo leads to {peer}, and has no {FEATURE}"));
    }
}
