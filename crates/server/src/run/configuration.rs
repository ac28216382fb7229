//! Reading a configuration and what it names, beside the control thread: a disk may hang, and neither signals nor the admin page
//! wait for it (INV-RELOAD-3).

use super::{
    exports,
    reload::CertificateWatch,
    start::{certificate_faults, development, warn_about_certificates},
};
use crate::{
    placement::{self, Basis},
    report,
    sites::Sites,
    snapshot::Served,
    tls_setup,
};
use linerate_config::{Settings, Source};
use linerate_placement::Costs;
use linerate_tls::{Acceptor, AcceptorBuilder, DevelopmentCertificate};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};

/// Longer than any disk takes that is not hanging.
const PATIENCE: Duration = Duration::from_secs(3);
/// Threads that may hang, each in a reading that another has taken the place of.
const HANGING_LIMIT: usize = 4;

/// What is read anew. All is more than the certificates alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Certificates,
    All,
}

/// A configuration, and what was opened of what it names.
pub(super) struct Configuration {
    pub(super) settings: Settings,
    pub(super) served: Served,
    pub(super) development: Option<DevelopmentCertificate>,
    pub(super) watch: CertificateWatch,
    pub(super) costs: (Basis, Costs),
}

impl Configuration {
    /// Reads and opens. `old` is what is served now.
    pub(super) fn read(source: &Source, old: &Served) -> Result<Self, Vec<String>> {
        let settings = source.load().map_err(|error| vec![error.to_string()])?;
        settings.verify_files().map_err(|error| vec![error.to_string()])?;
        let sites = Sites::open(&settings)
            .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let development = development(&settings).map_err(|error| vec![error.to_string()])?;
        let watch = CertificateWatch::start(&settings, development.as_ref());
        let acceptor = tls_setup::is_wanted(&settings)
            .then(|| renewed_acceptor(&settings, development.as_ref(), old.acceptor.as_ref()))
            .transpose()?;
        let nfs = exports::open(&settings, development.as_ref(), old.nfs.as_ref())?;
        let costs = placement::load(&settings).map_err(|fault| vec![fault])?;
        Ok(Self { settings, served: Served { sites, acceptor, nfs }, development, watch, costs })
    }
}

/// Certificates that were read anew; `None` where there is no TLS.
pub(super) struct Acceptors {
    pub(super) sites: Option<Arc<Acceptor>>,
    pub(super) exports: Option<Arc<Acceptor>>,
}

impl Acceptors {
    /// Reads them. `old` is what is served now.
    pub(super) fn read(
        settings: &Settings,
        development: Option<&DevelopmentCertificate>,
        old: &Served,
    ) -> Result<Self, Vec<String>> {
        let sites = tls_setup::is_wanted(settings)
            .then(|| renewed_acceptor(settings, development, old.acceptor.as_ref()))
            .transpose()?;
        let known = old.nfs.as_ref().and_then(|nfs| nfs.acceptor.as_ref());
        Ok(Self { sites, exports: exports::acceptor(settings, development, known)? })
    }
}

/// A new acceptor; certificates that do not load are kept from the old one, and reported. Where there is no old one to keep,
/// it is refused.
pub(super) fn renewed_acceptor(
    settings: &Settings,
    development: Option<&DevelopmentCertificate>,
    old: Option<&Arc<Acceptor>>,
) -> Result<Arc<Acceptor>, Vec<String>> {
    let builder = tls_setup::builder(settings, development.map(|made| made.files.clone()));
    match old {
        Some(old) => renewed(&builder, settings, old),
        None => builder.build().map(Arc::new).map_err(|errors| certificate_faults(settings, &errors)),
    }
}

/// The same, where there is an old one.
pub(super) fn renewed(
    builder: &AcceptorBuilder,
    settings: &Settings,
    old: &Arc<Acceptor>,
) -> Result<Arc<Acceptor>, Vec<String>> {
    let (acceptor, errors) = builder.reload(old);
    if Arc::ptr_eq(&acceptor, old) {
        return Err(certificate_faults(settings, &errors));
    }
    for fault in certificate_faults(settings, &errors) {
        report::warn(&format!("{fault}; the old certificate keeps serving"));
    }
    warn_about_certificates(&acceptor);
    Ok(acceptor)
}

/// What came of a reading.
pub(super) enum Outcome {
    All(Result<Box<Configuration>, Vec<String>>),
    Certificates(Result<Acceptors, Vec<String>>),
    /// Nothing yet, and that was said. It may still come.
    Late(What),
}

struct Reading {
    what: What,
    task: JoinHandle<Outcome>,
    /// `None` once it is late.
    late_at: Option<Instant>,
}

/// At most one reading counts at a time.
#[derive(Default)]
pub(super) struct Readings {
    current: Option<Reading>,
    /// Asked for while another was under way.
    waiting: Option<What>,
    /// What they read is not wanted any more.
    hanging: Vec<JoinHandle<Outcome>>,
}

impl Readings {
    /// What is to be read now that `what` is asked for; `None` while another is under way, which this then follows. A
    /// reading that is late is left behind: the operator who asks again may have repaired what it hangs on.
    pub(super) fn ask(&mut self, what: What) -> Option<What> {
        let what = self.waiting.take().map_or(what, |waiting| waiting.max(what));
        let Some(current) = self.current.take() else { return Some(what) };
        self.hanging.retain(|task| !task.is_finished());
        if current.late_at.is_none() && self.hanging.len() < HANGING_LIMIT {
            self.hanging.push(current.task);
            return Some(current.what.max(what));
        }
        self.current = Some(current);
        self.waiting = Some(what);
        None
    }

    /// Begins what [`Readings::ask`] said.
    pub(super) fn begin(&mut self, what: What, read: impl FnOnce() -> Outcome + Send + 'static) {
        let late_at = Some(Instant::now() + PATIENCE);
        self.current = Some(Reading { what, task: tokio::task::spawn_blocking(read), late_at });
    }

    /// What follows the reading that has just ended.
    pub(super) fn next(&mut self) -> Option<What> {
        self.waiting.take()
    }

    /// What came of the reading under way, and once that it is late; never, while nothing is read.
    pub(super) async fn outcome(&mut self) -> Outcome {
        let Some(Reading { what, task, late_at }) = &mut self.current else {
            return std::future::pending().await;
        };
        let what = *what;
        let read = match *late_at {
            Some(due) => match tokio::time::timeout_at(due, task).await {
                Ok(read) => read,
                Err(_) => {
                    *late_at = None;
                    return Outcome::Late(what);
                }
            },
            None => task.await,
        };
        self.current = None;
        read.unwrap_or_else(|error| {
            let reasons = vec![format!("reading the configuration: {error}")];
            match what {
                What::All => Outcome::All(Err(reasons)),
                What::Certificates => Outcome::Certificates(Err(reasons)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(outcome: Outcome) -> String {
        match outcome {
            Outcome::All(Err(reasons)) | Outcome::Certificates(Err(reasons)) => reasons.concat(),
            Outcome::Late(what) => format!("{what:?} late"),
            _ => panic!("nothing was to be read"),
        }
    }

    #[tokio::test]
    async fn one_reading_follows_the_other_and_one_that_hangs_is_left_behind() {
        let failing = |name: &'static str| move || Outcome::All(Err(vec![name.to_owned()]));
        let mut readings = Readings::default();
        assert_eq!(readings.ask(What::Certificates), Some(What::Certificates));
        readings.begin(What::All, failing("first"));
        assert_eq!((readings.ask(What::All), readings.ask(What::Certificates)), (None, None));
        assert_eq!(reason(readings.outcome().await), "first");
        assert_eq!((readings.next(), readings.next()), (Some(What::All), None), "one for both");

        let (give, wait) = std::sync::mpsc::channel::<()>();
        readings.begin(What::All, move || {
            let _ = wait.recv();
            Outcome::All(Err(vec!["much later".to_owned()]))
        });
        assert_eq!(reason(readings.outcome().await), "All late");
        assert_eq!(readings.ask(What::Certificates), Some(What::All), "the other never came to it");
        readings.begin(What::All, failing("second"));
        assert_eq!(reason(readings.outcome().await), "second");
        drop(give);
        readings.begin(What::All, || panic!("a fault of ours"));
        assert!(reason(readings.outcome().await).contains("panic"));
    }
}
