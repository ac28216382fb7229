//! Reloading: everything new is opened and checked first; what does not work leaves the old serving (INV-RELOAD-1), and
//! what is under way goes on (INV-RELOAD-2).

use super::{
    Listening, Server,
    configuration::{Acceptors, Configuration, Outcome, What},
    roots::Replaced,
    start::warn_about_calibration,
};
use crate::{
    nfs::NfsService,
    placement::PlacementPlan,
    report,
    snapshot::{Found, Served, Snapshot, not_sent_low_water_bytes},
    tls_setup,
    worker::Command,
};
use linerate_config::{ListenerKind, Settings};
use linerate_tls::{DevelopmentCertificate, FileWatch, WatchMethod};
use sd_notify::NotifyState;
use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Tells when a certificate's file may have changed; the watch ends with it.
pub(super) struct CertificateWatch {
    changes: Receiver<()>,
    /// Keeps the channel open, and silent, where there is nothing to watch.
    _sender: Sender<()>,
    _watch: Option<FileWatch>,
}

impl CertificateWatch {
    /// Starts to watch the certificates' files; messages come when one may have changed. To be started before they are
    /// read: what changes in between would go unnoticed otherwise.
    pub(super) fn start(settings: &Settings, development: Option<&DevelopmentCertificate>) -> Self {
        let (sender, changes) = channel(1);
        let made = || development.map(|made| made.files.clone());
        let of_sites = tls_setup::is_wanted(settings).then(|| tls_setup::builder(settings, made()));
        let builders = [of_sites, tls_setup::nfs_builder(settings, made())];
        let mut files: Vec<_> =
            builders.iter().flatten().flat_map(|builder| builder.files().map(Path::to_owned)).collect();
        if files.is_empty() {
            return Self { changes, _sender: sender, _watch: None };
        }
        files.sort();
        files.dedup();
        let watch = FileWatch::start(files, {
            let sender = sender.clone();
            // A message that waits already says the same.
            move || {
                let _ = sender.try_send(());
            }
        });
        match &watch {
            Ok(watch) => {
                if let WatchMethod::Polling { reason } = watch.method() {
                    report::note(&format!("certificates are looked at every few seconds: {reason}"));
                }
            }
            Err(error) => report::warn(&format!("certificates are not watched ({error}); HUP reloads them")),
        }
        Self { changes, _sender: sender, _watch: watch.ok() }
    }

    pub(super) async fn changed(&mut self) {
        // Never closed: this holds a sender itself.
        let _ = self.changes.recv().await;
    }
}

impl Server {
    /// HUP: configuration and certificates anew; or a certificate or key file changed. Reading goes on beside this thread
    /// (INV-RELOAD-3).
    pub(super) fn reload(&mut self, what: What) {
        if what == What::All {
            let mut reloading = vec![NotifyState::Reloading];
            reloading.extend(NotifyState::monotonic_usec_now().ok());
            self.notices.tell(reloading);
        }
        let Some(what) = self.readings.ask(what) else { return };
        let old = self.snapshots.load().served();
        match what {
            What::All => {
                let source = self.source.clone();
                let read = move || Configuration::read(&source, &old).map(Box::new);
                self.readings.begin(what, move || Outcome::All(read()));
            }
            What::Certificates => {
                let (settings, development) = (self.settings.clone(), self.development.clone());
                let read = move || Acceptors::read(&settings, development.as_ref(), &old);
                self.readings.begin(what, move || Outcome::Certificates(read()));
            }
        }
    }

    /// Takes over what was read, if it can be served.
    pub(super) fn adopt_read(&mut self, outcome: Outcome) {
        let (what, result) = match outcome {
            Outcome::All(read) => (What::All, read.and_then(|read| self.adopt_configuration(*read))),
            Outcome::Certificates(read) => {
                (What::Certificates, read.map(|acceptors| self.adopt_certificates(acceptors)))
            }
            Outcome::Late(what) => {
                let read = match what {
                    What::All => "the configuration and what it names are",
                    What::Certificates => "the certificates are",
                };
                report::warn(&format!(
                    "not reloaded yet: {read} still being read (does a disk hang?); the old configuration keeps serving"
                ));
                return self.tell_ready(what);
            }
        };
        match &result {
            Ok(()) if what == What::All => report::note("reloaded"),
            Ok(()) => report::note("certificates reloaded"),
            Err(reasons) => {
                reasons.iter().for_each(|reason| report::warn(reason));
                if what == What::All {
                    report::warn("not reloaded: the old configuration keeps serving");
                }
            }
        }
        self.admin_state.reloads[usize::from(result.is_err())].fetch_add(1, Ordering::Relaxed);
        self.tell_ready(what);
        if let Some(next) = self.readings.next() {
            self.reload(next);
        }
    }

    fn tell_ready(&self, what: What) {
        if what == What::All {
            self.notices.tell(vec![NotifyState::Ready]);
        }
    }

    fn adopt_configuration(&mut self, read: Configuration) -> Result<(), Vec<String>> {
        let Configuration { settings, mut served, development, watch, costs } = read;
        // Connections that have begun on a listener that goes now are still to be served.
        let current = self.snapshots.load();
        if served.acceptor.is_none() && self.retires(&settings, ListenerKind::Tls) {
            served.acceptor = current.acceptor.clone();
        }
        if served.nfs.is_none() && self.retires(&settings, ListenerKind::Nfs) {
            served.nfs = current.nfs.clone();
        }
        drop(current);
        let added = self.bind_added(&settings)?;

        self.warn_about_restarts(&settings);
        warn_about_calibration(&costs.0);
        self.plan = PlacementPlan::new(&settings, costs, self.workers.len());
        self.found = self.search.begin(&settings, &self.plan, &self.found);
        self.settings = settings;
        self.development = development;
        self.changes = watch;
        if let Some(shortage) = self.budget.shortage(&self.settings) {
            report::warn(&shortage);
        }
        let mut changed = self.change_kinds();
        changed.extend(self.take_back());
        self.publish(served, &added);
        for Listening { bound, kind, .. } in changed {
            self.tell_all(|| Command::ChangeKind(bound, kind));
        }
        self.apply_listeners(added);
        Ok(())
    }

    /// The sites stay as they are: a root that is missing at this moment must not keep a new certificate from being served.
    fn adopt_certificates(&self, acceptors: Acceptors) {
        let mut served = self.snapshots.load().served();
        served.acceptor = acceptors.sites.or(served.acceptor);
        if let (Some(nfs), Some(acceptor)) = (&mut served.nfs, acceptors.exports) {
            *nfs = Arc::new(NfsService { acceptor: Some(acceptor), ..NfsService::clone(nfs) });
        }
        self.publish(served, &[]);
    }

    /// What the machine can carry was looked at anew, after a reload.
    pub(super) fn adopt_found(&mut self, found: Found) {
        self.found = found;
        self.publish(self.snapshots.load().served(), &[]);
    }

    /// Roots have become other directories.
    pub(super) fn adopt_roots(&mut self, replaced: Replaced) {
        let current = self.snapshots.load_full();
        // Found before a reload: what it opened is looked at the next time.
        if replaced.generation != current.generation {
            return;
        }
        for (_, root) in &replaced.roots {
            report::note(&format!("{}: another directory now, served from here on", root.path().display()));
        }
        self.publish(Served { sites: current.sites.with_roots(replaced.roots), ..current.served() }, &[]);
    }

    fn publish(&self, served: Served, added: &[crate::listeners::Bound]) {
        let generation = self.snapshots.load().generation + 1;
        let wanted =
            |configured| self.settings.listeners.iter().any(|listener| listener.address == configured);
        let https_port = self
            .listening
            .iter()
            .filter(|listening| wanted(listening.configured))
            .map(|listening| (listening.kind, listening.bound))
            .chain(added.iter().map(|bound| (bound.kind, bound.address)))
            .find(|(kind, _)| *kind == ListenerKind::Tls)
            .map(|(_, address)| address.port());
        self.snapshots.store(Arc::new(Snapshot::new(
            generation,
            (&self.settings, self.budget.divide(&self.settings).connections),
            served,
            https_port,
            self.found.clone(),
            self.plan.clone(),
        )));
    }

    /// Binds what the new settings add. Nothing is kept if one fails.
    fn bind_added(&mut self, settings: &Settings) -> Result<Vec<crate::listeners::Bound>, Vec<String>> {
        let mut added = Vec::new();
        for listener in &settings.listeners {
            let is_bound =
                self.listening.iter().any(|known| known.is(listener) || known.can_become(listener));
            if is_bound || self.can_take_back(listener.address) {
                continue;
            }
            match self.binder.bind(listener, not_sent_low_water_bytes(settings)) {
                Ok(Some(bound)) => added.push((listener.address, bound)),
                Ok(None) => {}
                Err(fault) => return Err(vec![fault.to_string()]),
            }
        }
        for (configured, bound) in &added {
            self.listening.push(Listening {
                configured: *configured,
                bound: bound.address,
                kind: bound.kind,
            });
        }
        Ok(added.into_iter().map(|(_, bound)| bound).collect())
    }

    /// Notes which sockets are to serve in another way: those whose address is configured as before, but with another
    /// scheme. The address is never given up, so nobody is refused, and nobody else can take it. Returns them.
    fn change_kinds(&mut self) -> Vec<Listening> {
        let listeners = &self.settings.listeners;
        let mut changed = Vec::new();
        for known in &mut self.listening {
            if let Some(listener) = listeners.iter().find(|listener| known.can_become(listener)) {
                known.kind = listener.kind;
                changed.push(known.clone());
            }
        }
        changed
    }

    /// Opens the new listeners and closes those that are no longer wanted.
    fn apply_listeners(&mut self, added: Vec<crate::listeners::Bound>) {
        for bound in added {
            for (worker, listener) in self.workers.iter().zip(bound.listeners) {
                let _ = worker.commands.send(Command::Listen(listener));
            }
        }
        let settings = &self.settings;
        let (kept, gone): (Vec<_>, Vec<_>) = self
            .listening
            .drain(..)
            .partition(|known| settings.listeners.iter().any(|listener| known.is(listener)));
        self.listening = kept;
        for listener in gone {
            self.retire(listener);
        }
    }

    /// What is fixed for the life of the process.
    fn warn_about_restarts(&self, new: &Settings) {
        let old = &self.settings;
        let log =
            |settings: &Settings| settings.access_log.as_ref().map(|log| (log.target.clone(), log.format));
        for (changed, what) in [
            (old.workers != new.workers, "workers"),
            (old.cpus != new.cpus, "cpus"),
            (old.admin != new.admin, "admin"),
            (log(old) != log(new), "access_log and log_format"),
            (old.limits.open_files_cached != new.limits.open_files_cached, "limits.open_files_cached"),
        ] {
            if changed {
                report::warn(&format!("{what}: the change takes effect at the next restart"));
            }
        }
    }
}
