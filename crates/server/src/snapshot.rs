//! What the configuration amounts to at the moment: made at start and at each reload, read by all workers, never
//! changed (swapped as a whole).

use crate::{
    client::TlsFacts,
    nfs::NfsService,
    placement::PlacementPlan,
    sites::Sites,
    workplace::{TimeLimits, Tuning},
};
use linerate_config::{Network, Settings};
use linerate_engine::{kernel::Capabilities, nic::Adapters};
use linerate_http::RequestLimits;
use linerate_tls::Acceptor;
use std::{net::IpAddr, sync::Arc};

/// How long a connection may take to close after we closed our side.
const CLOSING_MS: u64 = 5_000;
/// With `pread` a batch that fits the second-level cache beside its source does best; docs/MEASUREMENTS.md.
const READ_BATCH_LIMIT_BYTES: usize = 128 * 1024;

/// Below how many unsent bytes a socket counts as writable; `None` is the system's own mark.
pub(crate) fn not_sent_low_water_bytes(settings: &Settings) -> Option<u32> {
    Some(settings.user_engine.not_sent_low_water_bytes).filter(|&bytes| bytes > 0)
}

/// What was found out about this machine, beside the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// What the kernel carries; tested only if connections may move there.
    pub(crate) kernel: Option<Arc<Capabilities>>,
    /// The adapters that encrypt, or could.
    pub(crate) adapters: Arc<Adapters>,
}

/// What one address may have; `None` is no limit of its own.
#[derive(Debug)]
pub(crate) struct AddressLimits {
    pub(crate) connections: Option<usize>,
    pub(crate) handshakes: Option<usize>,
    /// Addresses that neither limit applies to.
    pub(crate) exempt: Box<[Network]>,
}

/// What is served, as far as files say it.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) sites: Sites,
    /// For sites; present if there is a TLS listener.
    pub(crate) acceptor: Option<Arc<Acceptor>>,
    /// Present if there are exports.
    pub(crate) nfs: Option<Arc<NfsService>>,
}

#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Counts reloads: a worker that sees a new one adopts it.
    pub(crate) generation: u64,
    pub(crate) sites: Sites,
    /// Present if there is a TLS listener.
    pub(crate) acceptor: Option<Arc<Acceptor>>,
    /// Present if there are exports.
    pub(crate) nfs: Option<Arc<NfsService>>,
    /// Where redirects lead.
    pub(crate) https_port: Option<u16>,
    pub(crate) request_limits: RequestLimits,
    /// Ranges that one request may ask for.
    pub(crate) ranges_limit: usize,
    pub(crate) time_limits: TimeLimits,
    pub(crate) tuning: Tuning,
    pub(crate) mapped_bytes_limit: u64,
    pub(crate) not_sent_low_water_bytes: Option<u32>,
    /// As configured, or what descriptors suffice for.
    pub(crate) connections_limit: usize,
    pub(crate) handshakes_limit: usize,
    pub(crate) address_limits: AddressLimits,
    /// Records per key before a key update or a close; the cipher's own limit bounds it.
    pub(crate) records_per_key_limit: Option<u64>,
    pub(crate) key_updates_per_second_limit: u32,
    /// What the kernel carries, tested, if connections may move there.
    pub(crate) kernel: Option<Arc<Capabilities>>,
    /// What decides which engine carries a connection.
    pub(crate) plan: Arc<PlacementPlan>,
    /// The adapters that encrypt, or could; none where nobody asks for more than the user engine.
    pub(crate) adapters: Arc<Adapters>,
}

impl Snapshot {
    /// With as many connections as `connections_limit` says: descriptors may not suffice for what is configured.
    pub(crate) fn new(
        generation: u64,
        (settings, connections_limit): (&Settings, usize),
        Served { sites, acceptor, nfs }: Served,
        https_port: Option<u16>,
        Found { kernel, adapters }: Found,
        plan: PlacementPlan,
    ) -> Self {
        let (limits, timeouts, engine) = (&settings.limits, &settings.timeouts, &settings.user_engine);
        Self {
            generation,
            sites,
            acceptor,
            nfs,
            https_port,
            request_limits: RequestLimits {
                head_bytes: limits.head_bytes,
                header_count: limits.header_count,
                request_line_bytes: limits.request_line_bytes,
            },
            ranges_limit: limits.ranges_per_request,
            time_limits: TimeLimits {
                handshake_ms: timeouts.handshake_ms,
                idle_ms: timeouts.idle_ms,
                head_ms: timeouts.header_ms,
                write_progress_ms: timeouts.write_progress_ms,
                closing_ms: CLOSING_MS,
                least_rate_bytes_per_s: limits.least_rate_bytes_per_s,
            },
            tuning: Tuning {
                read_batch_bytes: engine.batch_bytes.min(READ_BATCH_LIMIT_BYTES),
                map_batch_bytes: engine.batch_bytes,
                map_threshold_bytes: engine.map_threshold_bytes,
                quantum_bytes: engine.quantum_bytes as u64,
            },
            mapped_bytes_limit: limits.mapped_bytes,
            not_sent_low_water_bytes: not_sent_low_water_bytes(settings),
            connections_limit,
            handshakes_limit: settings.tls.handshakes_in_flight_limit,
            address_limits: AddressLimits {
                connections: Some(limits.connections_per_address).filter(|&limit| limit > 0),
                handshakes: Some(settings.tls.handshakes_per_address_limit).filter(|&limit| limit > 0),
                exempt: limits.exempt_addresses.as_slice().into(),
            },
            records_per_key_limit: settings.tls.records_per_key_limit,
            key_updates_per_second_limit: settings.tls.key_updates_per_second_limit,
            plan: Arc::new(plan.with_found(kernel.as_deref(), adapters.any_on())),
            // What was not tested carries nobody.
            kernel: kernel.filter(|kernel| kernel.tested()),
            adapters,
        }
    }

    /// What is served.
    pub(crate) fn served(&self) -> Served {
        Served { sites: self.sites.clone(), acceptor: self.acceptor.clone(), nfs: self.nfs.clone() }
    }

    /// Whether a request for `host` may be answered on this connection (INV-HOST-1; RFC 9110 15.5.20).
    ///
    /// Without TLS always. With TLS: the name that the client asked for in its ClientHello, or one that the certificate
    /// it was shown covers; an address where it asked for none, because SNI knows no addresses.
    pub(crate) fn may_answer_for(tls: Option<&TlsFacts>, host: &str) -> bool {
        let Some(tls) = tls else { return true };
        let asked_for = tls.server_name.as_deref();
        let bare = host.strip_suffix('.').unwrap_or(host);
        match asked_for {
            Some(name) if name.eq_ignore_ascii_case(bare) => true,
            None if host.is_empty() || is_address(bare) => true,
            _ => tls.certificate.covers(bare),
        }
    }
}

fn is_address(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<IpAddr>().is_ok()
}
