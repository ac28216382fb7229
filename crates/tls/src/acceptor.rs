//! What all handshakes share: one reading of policy and certificates, replaced as a whole at a reload.

use crate::{
    Certificate, CertificateFiles, CertificateWarning, CipherSuite, SiteCertificates, Tickets, TlsError,
    TlsPolicy,
    first_bytes::ClientHint,
    handshake::EARLY_DATA_LIMIT_BYTES,
    policy::{chacha20_first, versions},
    site::{CertificateChoice, Sites},
    tickets::{TICKETS_ON_REQUEST_LIMIT, TICKETS_PER_HANDSHAKE},
};
use rustls::{ServerConfig, crypto::CryptoProvider, server::NoServerSessionStorage};
use std::{collections::HashMap, fmt, path::Path, sync::Arc, time::SystemTime};

/// The application protocols spoken (RFC 7301), the preferred first. A client that offers only others is refused with
/// `no_application_protocol`; one that offers none is served.
pub(crate) const APPLICATION_PROTOCOLS: [&str; 2] = ["http/1.1", "http/1.0"];

/// How to make an [`Acceptor`].
#[derive(Clone, Debug)]
pub struct AcceptorBuilder {
    policy: TlsPolicy,
    sites: Vec<SiteCertificates>,
    tickets: Option<Tickets>,
}

impl AcceptorBuilder {
    /// For these sites. The default site is the first without names, else the first.
    #[must_use]
    pub fn new(policy: TlsPolicy, sites: Vec<SiteCertificates>) -> Self {
        Self { policy, sites, tickets: None }
    }

    /// Recognises and seals tickets with these keys (of another acceptor) instead of new ones.
    #[must_use]
    pub fn tickets(mut self, tickets: Tickets) -> Self {
        self.tickets = Some(tickets);
        self
    }

    /// Reads every certificate; all of them must load.
    ///
    /// # Errors
    /// All that is wrong, not just the first.
    pub fn build(&self) -> Result<Acceptor, Vec<TlsError>> {
        let suites = self.policy.usable_suites().map_err(|error| vec![error])?;
        let provider = self.policy.provider(&suites);
        let mut errors = Vec::new();
        let sites = self.load(&provider, &mut errors, |_| None);
        if !errors.is_empty() {
            return Err(errors);
        }
        let tickets = match &self.tickets {
            Some(tickets) => tickets.clone(),
            None => Tickets::new().map_err(|error| vec![error])?,
        };
        self.assemble(&suites, sites, tickets).map_err(|error| vec![error])
    }

    /// Reads every certificate again. One that does not load is replaced by what `old` has from the same files, and
    /// reported; the tickets are those of `old`. If that leaves a site without a certificate, or the policy is not
    /// usable, `old` itself is the answer.
    #[must_use = "the new acceptor must be installed"]
    pub fn reload(&self, old: &Arc<Acceptor>) -> (Arc<Acceptor>, Vec<TlsError>) {
        let suites = match self.policy.usable_suites() {
            Ok(suites) => suites,
            Err(error) => return (Arc::clone(old), vec![error]),
        };
        let provider = self.policy.provider(&suites);
        let loaded: HashMap<_, _> = old.certificates().map(|known| (known.files(), known)).collect();
        let mut errors = Vec::new();
        let sites =
            self.load(&provider, &mut errors, |files| loaded.get(files).map(|known| Arc::clone(known)));
        match self.assemble(&suites, sites, old.tickets.clone()) {
            Ok(acceptor) => (Arc::new(acceptor), errors),
            Err(error) => {
                errors.push(error);
                (Arc::clone(old), errors)
            }
        }
    }

    /// Every file that certificates and keys are read from.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let pairs = self.sites.iter().flat_map(|site| &site.certificates);
        pairs.flat_map(|files| [files.certificate.as_path(), files.key.as_path()])
    }

    /// The certificates of each site. Files that several sites name are read once.
    fn load(
        &self,
        provider: &CryptoProvider,
        errors: &mut Vec<TlsError>,
        known: impl Fn(&CertificateFiles) -> Option<Arc<Certificate>>,
    ) -> Vec<Vec<Arc<Certificate>>> {
        let mut loaded: HashMap<&CertificateFiles, Option<Arc<Certificate>>> = HashMap::new();
        let mut sites = Vec::with_capacity(self.sites.len());
        for site in &self.sites {
            let certificates = site.certificates.iter().filter_map(|files| {
                let load = || match Certificate::load(files, provider) {
                    Ok(certificate) => Some(Arc::new(certificate)),
                    Err(error) => {
                        errors.push(error);
                        known(files)
                    }
                };
                loaded.entry(files).or_insert_with(load).clone()
            });
            sites.push(certificates.collect());
        }
        sites
    }

    fn assemble(
        &self,
        suites: &[CipherSuite],
        certificates: Vec<Vec<Arc<Certificate>>>,
        tickets: Tickets,
    ) -> Result<Acceptor, TlsError> {
        let sites = Arc::new(Sites::new(&self.sites, certificates)?);
        let speaks_tls13 = versions(suites).contains(&&rustls::version::TLS13);
        let chacha20_first = chacha20_first(suites);
        let config = |hint: ClientHint| {
            let suites = if hint.prefers_chacha20 { &chacha20_first } else { suites };
            let is_tls12 = hint.is_tls12_only || !speaks_tls13;
            let choice = CertificateChoice { sites: Arc::clone(&sites), is_tls12 };
            self.config(suites, Arc::new(choice), &tickets)
        };
        let [first, second, third, fourth] = ClientHint::ALL.map(config);
        let configs = [first?, second?, third?, fourth?];
        Ok(Acceptor { configs, sites, tickets })
    }

    fn config(
        &self,
        suites: &[CipherSuite],
        choice: Arc<CertificateChoice>,
        tickets: &Tickets,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(self.policy.provider(suites));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(suites))
            .map_err(|error| TlsError::PolicyUnusable(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(choice);
        config.alpn_protocols = APPLICATION_PROTOCOLS.map(|protocol| protocol.as_bytes().to_vec()).into();
        config.ignore_client_order = true;
        config.enable_secret_extraction = true;
        // What rustls skips of early data. It accepts none whatever this says: only sessions from a store could, and there
        // is none; tickets do not promise any.
        config.max_early_data_size = EARLY_DATA_LIMIT_BYTES;
        // Session IDs of TLS 1.2 would need a store behind a lock, shared by all workers; tickets need none.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        if self.policy.session_tickets {
            config.ticketer = tickets.producer();
            config.send_tls13_tickets = TICKETS_PER_HANDSHAKE;
            config.max_tls13_tickets = TICKETS_ON_REQUEST_LIMIT;
        }
        Ok(Arc::new(config))
    }
}

/// What all handshakes share. Immutable: a reload makes another.
pub struct Acceptor {
    /// One for each of [`ClientHint::ALL`], in that order.
    configs: [Arc<ServerConfig>; 4],
    sites: Arc<Sites>,
    tickets: Tickets,
}

impl Acceptor {
    /// The keys that seal tickets, for [`AcceptorBuilder::tickets`].
    #[must_use]
    pub fn tickets(&self) -> &Tickets {
        &self.tickets
    }

    /// Every certificate that is served.
    pub fn certificates(&self) -> impl Iterator<Item = &Arc<Certificate>> {
        self.sites.certificates()
    }

    /// What clients will not like about the certificates.
    #[must_use]
    pub fn warnings(&self, now: SystemTime) -> Vec<(Arc<Certificate>, CertificateWarning)> {
        let warn = |certificate: &Arc<Certificate>| {
            let warnings = certificate.warnings(now).into_iter();
            warnings.map(|warning| (Arc::clone(certificate), warning)).collect::<Vec<_>>()
        };
        self.certificates().flat_map(warn).collect()
    }

    /// The site (its index in the order given to the builder) that answers to `host`, a name in lower case: by name,
    /// by wildcard, else the default.
    #[must_use]
    pub fn site_for(&self, host: &str) -> usize {
        self.sites.find(Some(host))
    }

    /// The configuration for a client. What rustls leaves to its user only as a setting of all connections, or does not
    /// show, is chosen by choosing among several.
    pub(crate) fn config(&self, hint: ClientHint) -> &Arc<ServerConfig> {
        &self.configs[hint.index()]
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Acceptor").field("sites", &self.sites).finish_non_exhaustive()
    }
}
