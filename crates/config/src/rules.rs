//! From what was said to [`Settings`]: the defaults that depend on each other, and the rules between values.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::settings::{AccessLog, KernelEngine, Limits, Placement, Settings, Timeouts, Tls, UserEngine};
use crate::site::{CertificateFiles, Site, SitePolicy};
use crate::{
    CpuList, EngineChoice, Export, ExportPolicy, ExportTls, Fault, ListenAddress, Listener, ListenerKind,
    LogFormat, LogTarget, Nfs, Origin,
};

/// The port that is listened on when nothing says so.
const DEFAULT_PORT: u16 = 8443;
/// The same for NFS: the port that clients ask if nothing says so.
const DEFAULT_NFS_PORT: u16 = 2049;

/// A value and where it was said.
#[derive(Clone, Debug)]
pub(crate) struct Said<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// A site of which some things may not have been said yet.
#[derive(Clone, Debug)]
pub(crate) struct SiteDraft {
    pub(crate) origin: Origin,
    pub(crate) names: Vec<Said<String>>,
    pub(crate) root: Option<Said<PathBuf>>,
    pub(crate) certificates: Vec<CertificateFiles>,
    pub(crate) policy: SitePolicy,
}

impl SiteDraft {
    pub(crate) fn new(origin: Origin, policy: SitePolicy, certificates: Vec<CertificateFiles>) -> Self {
        SiteDraft { origin, names: Vec::new(), root: None, certificates, policy }
    }
}

/// An export of which some things may not have been said yet.
#[derive(Clone, Debug)]
pub(crate) struct ExportDraft {
    pub(crate) origin: Origin,
    pub(crate) name: Option<Said<String>>,
    pub(crate) directory: Option<Said<PathBuf>>,
    pub(crate) policy: ExportPolicy,
}

/// What was said by file and flags.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// Where to point when something is missing altogether.
    pub(crate) origin: Origin,
    pub(crate) listeners: Option<Vec<Listener>>,
    pub(crate) admin: Option<Said<SocketAddr>>,
    pub(crate) workers: Option<Said<NonZeroUsize>>,
    pub(crate) cpus: Option<Said<CpuList>>,
    pub(crate) engine: EngineChoice,
    pub(crate) tls: Tls,
    pub(crate) cipher_suites_origin: Option<Origin>,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) access_log: Option<Said<LogTarget>>,
    pub(crate) log_format: LogFormat,
    pub(crate) user_engine: UserEngine,
    pub(crate) kernel_engine: KernelEngine,
    pub(crate) placement: Placement,
    pub(crate) default_policy: SitePolicy,
    pub(crate) default_certificates: Vec<CertificateFiles>,
    pub(crate) sites: Vec<SiteDraft>,
    pub(crate) nfs: Nfs,
    pub(crate) exports: Vec<ExportDraft>,
}

impl Draft {
    /// Nothing said yet.
    pub(crate) fn new(origin: Origin) -> Self {
        Draft {
            origin,
            listeners: None,
            admin: None,
            workers: None,
            cpus: None,
            engine: EngineChoice::default(),
            tls: Tls::default(),
            cipher_suites_origin: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            access_log: None,
            log_format: LogFormat::default(),
            user_engine: UserEngine::default(),
            kernel_engine: KernelEngine::default(),
            placement: Placement::default(),
            default_policy: SitePolicy::default(),
            default_certificates: Vec::new(),
            sites: Vec::new(),
            nfs: Nfs::default(),
            exports: Vec::new(),
        }
    }

    /// The settings, if nothing that was said contradicts anything else.
    pub(crate) fn finished(mut self) -> Result<Settings, Vec<Fault>> {
        let listeners = self.listeners.take().unwrap_or_else(|| self.default_listeners());
        let mut faults = Vec::new();
        self.check_listeners(&listeners, &mut faults);
        self.check_workers(&mut faults);
        self.check_cipher_suites(&mut faults);
        self.check_names(&mut faults);
        self.check_certificates(&listeners, &mut faults);
        self.check_that_each_serves(&listeners, &mut faults);
        self.check_exports(&mut faults);
        let sites = self.finished_sites(&mut faults);
        let exports = self.finished_exports(&mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Settings {
            listeners,
            admin: self.admin.map(|admin| admin.value),
            workers: self.workers.map(|workers| workers.value),
            cpus_origin: self.cpus.as_ref().map_or(Origin::Default, |cpus| cpus.origin.clone()),
            cpus: self.cpus.map(|cpus| cpus.value),
            engine: self.engine,
            tls: self.tls,
            sites,
            nfs: self.nfs,
            exports,
            limits: self.limits,
            timeouts: self.timeouts,
            access_log: self.access_log.map(|log| AccessLog {
                target: log.value,
                format: self.log_format,
                origin: log.origin,
            }),
            user_engine: self.user_engine,
            kernel_engine: self.kernel_engine,
            placement: self.placement,
        })
    }

    /// A development certificate is good for this machine only; a real one is meant to be seen from elsewhere.
    fn default_listeners(&self) -> Vec<Listener> {
        let address = |is_public, port| {
            if is_public { ListenAddress::any(port) } else { ListenAddress::localhost(port) }
        };
        let mut addresses = Vec::new();
        if !self.sites.is_empty() || self.exports.is_empty() {
            let is_public = self.sites.iter().any(|site| !site.certificates.is_empty());
            addresses.push(address(is_public, DEFAULT_PORT));
        }
        if !self.exports.is_empty() {
            let has_tls = self.exports.iter().any(|export| export.policy.tls != ExportTls::Off);
            let is_public = !self.nfs.certificates.is_empty() || !has_tls;
            addresses.push(address(is_public, DEFAULT_NFS_PORT).for_nfs());
        }
        addresses.iter().flat_map(|address| address.listeners(&Origin::Default)).collect()
    }

    fn check_listeners(&self, listeners: &[Listener], faults: &mut Vec<Fault>) {
        let mut seen: HashMap<SocketAddr, &Listener> = HashMap::new();
        for listener in listeners.iter().filter(|listener| listener.address.port() != 0) {
            if let Some(first) = seen.get(&listener.address) {
                let message = format!("{} is listened on already, by {first}", listener.address);
                push(faults, &listener.origin, message);
            } else {
                seen.insert(listener.address, listener);
            }
        }
        if let Some(admin) = &self.admin
            && let Some(listener) = seen.get(&admin.value)
        {
            push(faults, &admin.origin, format!("the admin address is that of the listener {listener}"));
        }
        let serves_tls = listeners.iter().any(|listener| listener.kind == ListenerKind::Tls);
        let redirect = listeners.iter().find(|listener| listener.kind == ListenerKind::Redirect);
        if let (false, Some(redirect)) = (serves_tls, redirect) {
            push(faults, &redirect.origin, format!("{redirect} has nowhere to lead: add a TLS listener"));
        }
    }

    fn check_workers(&self, faults: &mut Vec<Fault>) {
        let (Some(workers), Some(cpus)) = (&self.workers, &self.cpus) else { return };
        let cpu_count = cpus.value.as_slice().len();
        if workers.value.get() > cpu_count {
            let message = format!(
                "{} workers cannot each have a CPU of their own: cpus ({}) lists {cpu_count}",
                workers.value, cpus.value
            );
            push(faults, &workers.origin, message);
        }
    }

    fn check_cipher_suites(&self, faults: &mut Vec<Fault>) {
        let Some(suites) = &self.tls.cipher_suites else { return };
        let minimum_version = self.tls.minimum_version;
        let usable = suites.as_slice().iter().any(|suite| suite.version() >= minimum_version);
        if !usable {
            let origin = self.cipher_suites_origin.as_ref().unwrap_or(&self.origin);
            let message = format!(
                "none of the cipher suites belongs to {minimum_version}, the oldest version to be spoken: add one, \
                 like TLS_AES_256_GCM_SHA384"
            );
            push(faults, origin, message);
        }
    }

    fn check_names(&self, faults: &mut Vec<Fault>) {
        let mut default_sites = self.sites.iter().filter(|site| site.names.is_empty());
        if let Some(first) = default_sites.next() {
            for other in default_sites {
                let message = format!(
                    "this site has no names, like the one at {}: only one can be the default",
                    first.origin
                );
                push(faults, &other.origin, message);
            }
        }
        let mut seen: HashMap<&str, &Origin> = HashMap::new();
        for name in self.sites.iter().flat_map(|site| &site.names) {
            if let Some(first) = seen.get(name.value.as_str()) {
                push(faults, &name.origin, format!("the name {} is taken already, at {first}", name.value));
            } else {
                seen.insert(&name.value, &name.origin);
            }
        }
    }

    fn check_certificates(&self, listeners: &[Listener], faults: &mut Vec<Fault>) {
        let serves_tls = listeners.iter().any(|listener| listener.kind == ListenerKind::Tls);
        if !serves_tls || self.sites.iter().all(|site| site.certificates.is_empty()) {
            return;
        }
        for site in self.sites.iter().filter(|site| site.certificates.is_empty()) {
            let message =
                "this site has no certificates, but others have: add certificates here or in [site_defaults]";
            push(faults, &site.origin, message);
        }
    }

    /// Every listener has something to serve, and everything a listener.
    fn check_that_each_serves(&self, listeners: &[Listener], faults: &mut Vec<Fault>) {
        let is_nfs = |listener: &&Listener| listener.kind == ListenerKind::Nfs;
        if let (true, Some(listener)) = (self.exports.is_empty(), listeners.iter().find(is_nfs)) {
            push(faults, &listener.origin, format!("{listener} has nothing to serve: add an [[export]]"));
        }
        if let (true, false, Some(listener)) = (
            self.sites.is_empty(),
            self.exports.is_empty(),
            listeners.iter().find(|listener| !is_nfs(listener)),
        ) {
            push(faults, &listener.origin, format!("{listener} has nothing to serve: add a [[site]]"));
        }
        if let (Some(export), None) = (self.exports.first(), listeners.iter().find(is_nfs)) {
            let message = "no listener serves exports: add one, like nfs://*:2049";
            push(faults, &export.origin, message);
        }
        if let (Some(site), true) = (self.sites.first(), listeners.iter().all(|listener| is_nfs(&listener))) {
            push(faults, &site.origin, "no listener serves sites: add one, like https://*:443");
        }
    }

    fn check_exports(&self, faults: &mut Vec<Fault>) {
        let mut seen: HashMap<&str, &Origin> = HashMap::new();
        for export in &self.exports {
            let Some(name) = &export.name else {
                if self.exports.len() > 1 {
                    let message = "this export has no name, which makes it the root of all that clients see: give it a name, or \
                                   make it the only one";
                    push(faults, &export.origin, message);
                }
                continue;
            };
            if let Some(first) = seen.get(name.value.as_str()) {
                push(faults, &name.origin, format!("the export {} is there already, at {first}", name.value));
            } else {
                seen.insert(&name.value, &name.origin);
            }
        }
        for ExportDraft { origin, policy, .. } in &self.exports {
            let wants_certificate = policy.certificate == Some(true) || !policy.clients.is_empty();
            if wants_certificate && self.nfs.client_authorities.is_none() {
                let message = "this export wants client certificates, but nobody says whose: set client_authorities in [nfs]";
                push(faults, origin, message);
            }
            if wants_certificate && policy.tls == ExportTls::Off {
                push(faults, origin, "this export wants client certificates, but has no TLS to show them in");
            }
            if policy.certificate == Some(false) && !policy.clients.is_empty() {
                push(
                    faults,
                    origin,
                    "this export names clients, and says that they need no certificate to show a name in",
                );
            }
        }
    }

    fn finished_exports(&mut self, faults: &mut Vec<Fault>) -> Vec<Export> {
        let mut exports = Vec::with_capacity(self.exports.len());
        for export in self.exports.drain(..) {
            let Some(directory) = export.directory else {
                push(faults, &export.origin, "export.directory is missing: the folder to export");
                continue;
            };
            exports.push(Export {
                name: export.name.map(|name| name.value).unwrap_or_default(),
                directory: directory.value,
                directory_origin: directory.origin,
                policy: export.policy,
            });
        }
        exports
    }

    fn finished_sites(&mut self, faults: &mut Vec<Fault>) -> Vec<Site> {
        if self.sites.is_empty() && self.exports.is_empty() {
            let message =
                "nothing to serve: give DIR, or a [[site]] with a root, or an [[export]] with a directory";
            push(faults, &self.origin, message);
        }
        let mut sites = Vec::with_capacity(self.sites.len());
        for site in self.sites.drain(..) {
            let Some(root) = site.root else {
                push(faults, &site.origin, "site.root is missing: the folder to serve");
                continue;
            };
            sites.push(Site {
                names: site.names.into_iter().map(|name| name.value).collect(),
                root: root.value,
                root_origin: root.origin,
                certificates: site.certificates,
                policy: site.policy,
            });
        }
        sites
    }
}

fn push(faults: &mut Vec<Fault>, origin: &Origin, message: impl Into<String>) {
    faults.push(Fault { origin: origin.clone(), message: message.into() });
}
