//! Starting: everything is opened and checked before the first connection is taken.

use super::{
    Listening, ServeError, Server, configuration::Readings, exports, kernel, listen_faults, new_admin_state,
    notices::Notices, reload::CertificateWatch, roots::RootWatch, start_workers, worker_cpus,
};
use crate::{
    access_log::AccessLog,
    descriptors::{Budget, Reserve},
    listeners::Binder,
    listeners::WorkerListener,
    placement::{self, Basis, PlacementPlan},
    report,
    sites::Sites,
    snapshot::{Found, Served, Snapshot, not_sent_low_water_bytes},
    tls_setup,
};
use arc_swap::ArcSwap;
use linerate_config::{ExportTls, ListenerKind, Settings, Source};
use linerate_content::Resolver;
use linerate_os::{limits, processor, socket};
use linerate_tls::{Acceptor, DevelopmentCertificate, TlsError, development_certificate, state_directory};
use std::{net::SocketAddr, sync::Arc, time::SystemTime};

/// The development certificate, if no site brings one of its own; made if need be.
pub(super) fn development(settings: &Settings) -> Result<Option<DevelopmentCertificate>, TlsError> {
    settings
        .needs_development_certificate()
        .then(|| state_directory().and_then(|directory| development_certificate(&directory)))
        .transpose()
}

/// The lines for certificates that cannot be used.
pub(super) fn certificate_faults(settings: &Settings, errors: &[TlsError]) -> Vec<String> {
    errors.iter().map(|error| certificate_fault(settings, error)).collect()
}

/// The line for a certificate that cannot be used: where it was configured, and why.
fn certificate_fault(settings: &Settings, error: &TlsError) -> String {
    let of_sites = settings.sites.iter().flat_map(|site| &site.certificates);
    let mut pairs = of_sites.chain(&settings.nfs.certificates);
    let file = match error {
        // A key may be named with several certificates: the pair is meant.
        TlsError::KeyMismatch { certificate, key } => {
            let pair = pairs.find(|pair| *certificate == pair.certificate && *key == pair.key);
            return pair.map_or(error.to_string(), |pair| format!("{}: {error}", pair.key_origin));
        }
        TlsError::Unreadable { file, .. }
        | TlsError::NotPem { file, .. }
        | TlsError::NoCertificate { file, .. }
        | TlsError::NoKey { file, .. }
        | TlsError::KeyEncrypted { file }
        | TlsError::CertificateUnusable { file, .. }
        | TlsError::KeyTooShort { file, .. }
        | TlsError::KeyUnusable { file, .. } => Some(file),
        _ => None,
    };
    // The same file may be both, which only the fault tells apart.
    let is_the_keys = matches!(
        error,
        TlsError::NoKey { .. }
            | TlsError::KeyEncrypted { .. }
            | TlsError::KeyTooShort { .. }
            | TlsError::KeyUnusable { .. }
    );
    let origin = file.and_then(|file| {
        pairs.find_map(|pair| {
            if *file == pair.certificate && !is_the_keys {
                Some(&pair.origin)
            } else {
                (*file == pair.key).then_some(&pair.key_origin)
            }
        })
    });
    let authorities = settings.nfs.client_authorities.as_ref();
    let of_authorities = || authorities.filter(|known| Some(&known.path) == file).map(|known| &known.origin);
    match origin.or_else(of_authorities) {
        Some(origin) => format!("{origin}: {error}"),
        None => error.to_string(),
    }
}

impl Server {
    /// Reads the settings, opens everything and starts the workers.
    pub(super) fn start(source: Source) -> Result<Self, ServeError> {
        // Before anything else is opened: a limit that is lowered later leaves only low numbers.
        let admin_reserve = Arc::new(Reserve::new());
        let open_files = limits::raise_open_files();
        let settings = source.load().map_err(|error| ServeError::Settings(error.to_string()))?;
        settings.verify_files().map_err(|error| ServeError::Settings(error.to_string()))?;
        let cpus = worker_cpus(&settings)?;
        let costs = placement::load(&settings).map_err(ServeError::Calibration)?;
        warn_about_calibration(&costs.0);
        let wants_tls = tls_setup::is_wanted(&settings);
        let sites = Sites::open(&settings).map_err(ServeError::Sites)?;
        let development =
            development(&settings).map_err(|error| ServeError::Certificates(vec![error.to_string()]))?;
        let changes = CertificateWatch::start(&settings, development.as_ref());
        let acceptor = wants_tls.then(|| first_acceptor(&settings, development.as_ref())).transpose()?;
        let nfs = exports::open(&settings, development.as_ref(), None).map_err(ServeError::Exports)?;
        for acceptor in [acceptor.as_ref(), nfs.as_ref().and_then(|nfs| nfs.acceptor.as_ref())] {
            acceptor.into_iter().for_each(|acceptor| warn_about_certificates(acceptor));
        }
        let mut binder = Binder::new(cpus.len());
        let (listening, listeners) = bind_all(&settings, &mut binder, cpus.len())?;
        let https_port = listening
            .iter()
            .find(|listener| listener.kind == ListenerKind::Tls)
            .map(|found| found.bound.port());
        let admin_socket = settings.admin.map(|address| socket::listen(address, false)).transpose();
        let admin_socket = admin_socket.map_err(|error| {
            ServeError::Listen(vec![format!("--admin: cannot listen on {:?}: {error}", settings.admin)])
        })?;
        let log = settings.access_log.as_ref().map(|log| {
            AccessLog::start(&log.target).map_err(|error| ServeError::AccessLog {
                origin: log.origin.to_string(),
                target: log.target.clone(),
                error,
            })
        });
        let log = log.transpose()?;

        let budget = Budget { open_files, workers: cpus.len() as u64 };
        let shares = budget.divide(&settings);
        warn_about(&settings, &sites, &binder, budget);
        let plan = PlacementPlan::new(&settings, costs, cpus.len());
        let found = kernel::find(&settings, &plan, &Found::default());
        let snapshot = Snapshot::new(
            0,
            (&settings, shares.connections),
            Served { sites, acceptor, nfs },
            https_port,
            found.clone(),
            plan.clone(),
        );
        let placement = snapshot.plan.at_start();
        let snapshots = Arc::new(ArcSwap::from_pointee(snapshot));
        let worker_ended = Arc::default();
        let limits = (&worker_ended, shares.files_cached);
        let workers = start_workers(&cpus, listeners, &snapshots, log.as_ref(), &settings, limits)?;
        let admin = admin_socket.as_ref().and_then(|socket| socket.local_addr().ok());
        announce(&settings, &listening, admin, &cpus, development.as_ref(), &placement);
        let admin_state = Arc::new(new_admin_state(&workers, log.as_ref(), &snapshots));
        Ok(Self {
            source,
            settings,
            readings: Readings::default(),
            roots: RootWatch::start(&snapshots),
            notices: Notices::new(),
            snapshots,
            found,
            plan,
            budget,
            search: kernel::Search::default(),
            development,
            changes,
            binder,
            listening,
            retiring: Vec::new(),
            workers,
            worker_ended,
            log,
            admin_state,
            admin_socket,
            admin_reserve,
        })
    }
}

/// What [`start`](Server::start) would find wrong with sites and certificates, without listening or writing anything:
/// all but what belongs to this machine's state, such as addresses in use and CPUs. Returns what clients will not like
/// about the certificates, and a calibration that would not be used.
///
/// # Errors
/// [`ServeError::Sites`], [`ServeError::Exports`], [`ServeError::Certificates`] and [`ServeError::Calibration`], each fault with
/// its place.
pub fn check(settings: &Settings) -> Result<Vec<String>, ServeError> {
    let wants_tls = tls_setup::is_wanted(settings);
    Sites::open(settings).map_err(ServeError::Sites)?;
    exports::open_directories(settings).map_err(ServeError::Exports)?;
    let (basis, _) = placement::load(settings).map_err(ServeError::Calibration)?;
    let mut warnings = Vec::new();
    // The development certificate would be made now, which is no part of a check.
    if wants_tls && !settings.sites_need_development_certificate() {
        warnings.extend(certificate_warnings(&*first_acceptor(settings, None)?));
    }
    if !settings.exports_need_development_certificate() {
        let acceptor = exports::acceptor(settings, None, None).map_err(ServeError::Certificates)?;
        warnings.extend(acceptor.iter().flat_map(|acceptor| certificate_warnings(acceptor)));
    }
    warnings.extend(basis.misfit());
    Ok(warnings)
}

/// What [`EngineChoice::Auto`](linerate_config::EngineChoice) would decide by: where the costs are from, then a line for each
/// cipher, from which size of response on another engine pays. Whether this machine has that engine is not looked at.
///
/// # Errors
/// [`ServeError::Calibration`].
pub fn break_evens(settings: &Settings) -> Result<Vec<String>, ServeError> {
    let costs = placement::load(settings).map_err(ServeError::Calibration)?;
    let workers = settings.workers.map_or(1, std::num::NonZero::get);
    Ok(PlacementPlan::new(settings, costs, workers).break_evens())
}

/// At start every certificate must be usable.
fn first_acceptor(
    settings: &Settings,
    development: Option<&DevelopmentCertificate>,
) -> Result<Arc<Acceptor>, ServeError> {
    let builder = tls_setup::builder(settings, development.map(|made| made.files.clone()));
    let acceptor =
        builder.build().map_err(|errors| ServeError::Certificates(certificate_faults(settings, &errors)))?;
    Ok(Arc::new(acceptor))
}

/// What clients will not like about the certificates, one line each.
fn certificate_warnings(acceptor: &Acceptor) -> impl Iterator<Item = String> {
    let told = acceptor.warnings(SystemTime::now()).into_iter();
    told.map(|(certificate, warning)| format!("{}: {warning}", certificate.files().certificate.display()))
}

/// Tells the operator of them.
pub(super) fn warn_about_certificates(acceptor: &Acceptor) {
    certificate_warnings(acceptor).for_each(|warning| report::warn(&warning));
}

/// One list of sockets for each worker.
type WorkerListeners = Vec<Vec<WorkerListener>>;

fn bind_all(
    settings: &Settings,
    binder: &mut Binder,
    workers: usize,
) -> Result<(Vec<Listening>, WorkerListeners), ServeError> {
    let mut listening = Vec::new();
    let mut listeners: WorkerListeners = (0..workers).map(|_| Vec::new()).collect();
    let mut faults = Vec::new();
    for listener in &settings.listeners {
        match binder.bind(listener, not_sent_low_water_bytes(settings)) {
            Ok(Some(bound)) => {
                listening.push(Listening {
                    configured: listener.address,
                    bound: bound.address,
                    kind: bound.kind,
                });
                for (own, listener) in listeners.iter_mut().zip(bound.listeners) {
                    own.push(listener);
                }
            }
            Ok(None) => {
                report::note(&format!("{listener}: left out, this machine does not have that address family"))
            }
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok((listening, listeners)) } else { Err(listen_faults(&faults)) }
}

fn warn_about(settings: &Settings, sites: &Sites, binder: &Binder, budget: Budget) {
    for address in binder.unused() {
        report::warn(&format!(
            "the service manager passed a socket for {address}, which no listener asks for"
        ));
    }
    if sites.iter().any(|site| site.root.resolver() == Resolver::ByHand) {
        report::warn("this system has no openat2: paths are resolved step by step, which is safe but slower");
    }
    if let Some(shortage) = budget.shortage(settings) {
        report::warn(&shortage);
    }
}

/// A calibration that is about another machine is no fault of this one.
pub(super) fn warn_about_calibration(basis: &Basis) {
    if let Some(warning) = basis.misfit() {
        report::warn(&warning);
    }
}

/// One line a listener: what is served there, and how.
fn announce(
    settings: &Settings,
    listening: &[Listening],
    admin: Option<SocketAddr>,
    cpus: &[Option<usize>],
    development: Option<&DevelopmentCertificate>,
    placement: &[String],
) {
    let workers = describe_workers(cpus);
    for listener in listening {
        let line = match listener.kind {
            ListenerKind::Tls => format!(
                "https://{}/  {workers}, {} to TLSv1.3",
                host_and_port(listener),
                settings.tls.minimum_version.label()
            ),
            ListenerKind::Plaintext => {
                format!("http://{}/  no TLS, engine plain (sendfile), {workers}", host_and_port(listener))
            }
            ListenerKind::Redirect => {
                format!("http://{}/  redirects to https, {workers}", host_and_port(listener))
            }
            ListenerKind::Nfs => format!("nfs://{}/  {workers}, {}", listener.bound, exported(settings)),
        };
        report::note(&line);
    }
    let serves_tls =
        settings.serves_nfs_over_tls() || listening.iter().any(|listener| listener.kind == ListenerKind::Tls);
    if serves_tls {
        placement.iter().for_each(|line| report::note(line));
    }
    if let Some(admin) = admin {
        report::note(&format!("http://{admin}/  admin: /healthz, /metrics, /placement"));
    }
    let Some(made) = development else { return };
    report::note(&format!("development certificate for localhost, SHA-256 {}", made.sha256_fingerprint));
    if let Some(listener) = listening.iter().find(|listener| listener.kind == ListenerKind::Tls) {
        report::note(&format!(
            "try: curl --cacert {} https://localhost:{}/",
            made.files.certificate.display(),
            listener.bound.port()
        ));
    }
}

/// `/media (TLS required), /open`.
fn exported(settings: &Settings) -> String {
    let each = settings.exports.iter().map(|export| {
        let tls = match export.policy.tls {
            ExportTls::Require => " (TLSv1.3 required)",
            ExportTls::Offer => " (TLSv1.3 offered)",
            ExportTls::Off => " (no TLS)",
        };
        format!("/{}{tls}", export.name)
    });
    each.collect::<Vec<_>>().join(", ")
}

fn host_and_port(listener: &Listening) -> String {
    match listener.bound.port() {
        443 if listener.kind == ListenerKind::Tls => match listener.bound.ip() {
            std::net::IpAddr::V4(address) => address.to_string(),
            std::net::IpAddr::V6(address) => format!("[{address}]"),
        },
        _ => listener.bound.to_string(),
    }
}

/// `2 workers on CPUs 0, 1 (node 0)`.
fn describe_workers(cpus: &[Option<usize>]) -> String {
    let plural = if cpus.len() == 1 { "worker" } else { "workers" };
    let pinned: Vec<usize> = cpus.iter().flatten().copied().collect();
    if pinned.is_empty() {
        return format!("{} {plural}, not pinned", cpus.len());
    }
    let list: Vec<String> = pinned
        .iter()
        .map(|cpu| match processor::node_of(*cpu) {
            Some(node) => format!("{cpu} (node {node})"),
            None => cpu.to_string(),
        })
        .collect();
    format!("{} {plural} on CPU {}", cpus.len(), list.join(", "))
}
