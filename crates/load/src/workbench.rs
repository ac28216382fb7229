//! What a thread's connections share: the run's facts, buffers, and the tally. Lent to one connection at a time.

use std::time::{Duration, Instant};

use linerate_os::socket::SocketShape;
use linerate_tls::{ClientHandshake, Connected, Connector};

use crate::{
    LoadError,
    plan::{BodyUse, LoadPlan},
    request::{Random, RequestForm},
    resolve,
    tally::Tally,
    verify::Source,
};

/// Received with one `recv`: large enough that system calls cost little, and well within a second-level cache.
pub(crate) const RECEIVE_BYTES: usize = 256 * 1024;
/// Thrown away with one `recv`. Never written to on Linux, so that its pages are not even allocated.
const DISCARD_BYTES: usize = 1 << 20;

/// A request that is made again and again, and what its response is compared with.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) url: String,
    pub(crate) request: RequestForm,
    pub(crate) source: Option<Source>,
}

/// A server's address, and what is asked for there.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) host: String,
    pub(crate) address: std::net::SocketAddr,
    /// Of an https origin.
    pub(crate) connector: Option<Connector>,
    pub(crate) forms: Vec<Form>,
}

/// What is the same for all threads, and does not change.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) origins: Vec<Origin>,
    /// Bodies are thrown away.
    pub(crate) discards: bool,
    /// Each connection serves one request.
    pub(crate) closes: bool,
    /// Each connection asks once and is kept.
    pub(crate) once: bool,
    /// What connections ask of their sockets.
    pub(crate) shape: SocketShape,
}

impl Run {
    /// Resolves names, opens sources, prepares TLS.
    ///
    /// # Errors
    /// Any of that failed.
    pub(crate) fn prepare(plan: &LoadPlan) -> Result<Self, LoadError> {
        let mut origins: Vec<Origin> = Vec::new();
        let mut keys: Vec<(bool, String, u16)> = Vec::new();
        for target in &plan.targets {
            let key = (target.tls, target.host.to_ascii_lowercase(), target.port);
            let at = match keys.iter().position(|known| *known == key) {
                Some(at) => at,
                None => {
                    let connector = match target.tls {
                        true => {
                            let connector = Connector::new(&plan.tls_policy(), &plan.trust)?;
                            Some(connector.showing(plan.identity.as_ref())?)
                        }
                        false => None,
                    };
                    let address = resolve::address(&target.host, target.port)?;
                    origins.push(Origin { host: target.host.clone(), address, connector, forms: Vec::new() });
                    keys.push(key);
                    origins.len() - 1
                }
            };
            let source = match &plan.body {
                BodyUse::Verify(place) => Some(Source::open(place, target)?),
                BodyUse::Read | BodyUse::Discard => None,
            };
            let request = RequestForm::new(target, &plan.headers, plan.range, plan.close);
            origins[at].forms.push(Form { url: target.to_string(), request, source });
        }
        Ok(Self {
            origins,
            discards: plan.body == BodyUse::Discard,
            closes: plan.close,
            once: plan.once,
            shape: plan.shape,
        })
    }
}

impl Run {
    /// Has the cryptographic library gather what it needs for each thread that makes keys, which takes it up to a tenth of
    /// a second: the first connections would pay for it.
    pub(crate) fn prepare_thread(&self) {
        for origin in &self.origins {
            if let Some(connector) = &origin.connector {
                // What is wrong with the name will be said by the first connection.
                let _ = ClientHandshake::start(connector, &origin.host, &mut Vec::new());
            }
        }
    }
}

/// A thread's buffers and counts.
pub(crate) struct Workbench<'run> {
    pub(crate) run: &'run Run,
    pub(crate) tally: Tally,
    pub(crate) random: Random,
    /// What is received, and opened in place.
    pub(crate) buffer: Vec<u8>,
    /// Stands for the memory that discarded bytes would go to.
    pub(crate) scratch: Vec<u8>,
    /// A request before it is sealed.
    pub(crate) request: Vec<u8>,
    /// A part of a source.
    pub(crate) compared: Vec<u8>,
    began: Instant,
    turn: usize,
}

impl<'run> Workbench<'run> {
    pub(crate) fn new(run: &'run Run, thread: u32) -> Self {
        Self {
            run,
            tally: Tally::default(),
            random: Random::new(u64::from(thread) + 1),
            buffer: vec![0; RECEIVE_BYTES],
            scratch: if run.discards { vec![0; DISCARD_BYTES] } else { Vec::new() },
            request: Vec::new(),
            compared: Vec::new(),
            began: Instant::now(),
            turn: thread as usize,
        }
    }

    /// Which of an origin's requests is next: they are taken in turn.
    pub(crate) fn next_form(&mut self, origin: &Origin) -> usize {
        self.turn = self.turn.wrapping_add(1);
        self.turn % origin.forms.len()
    }

    /// Milliseconds since the thread began.
    pub(crate) fn elapsed_ms(&self, now: Instant) -> u64 {
        let elapsed: Duration = now.saturating_duration_since(self.began);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }

    /// Counts a handshake.
    pub(crate) fn agreed(&mut self, connected: &Connected) {
        match connected.resumed {
            true => self.tally.totals.resumed_handshakes += 1,
            false => self.tally.totals.full_handshakes += 1,
        }
        let group = connected.group.map(linerate_tls::Group::iana_name);
        let agreement = (connected.version, connected.cipher_suite.iana_name(), group);
        *self.tally.negotiated.entry(agreement).or_default() += 1;
    }
}
