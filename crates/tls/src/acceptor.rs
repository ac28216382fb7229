//! What all handshakes share: one reading of policy and certificates, replaced as a whole at a reload.

use crate::{
    Certificate, CertificateFiles, CertificateWarning, CipherSuite, SiteCertificates, Tickets, TlsError,
    TlsPolicy,
    clients::ClientAuthorities,
    first_bytes::ClientHint,
    handshake::EARLY_DATA_LIMIT_BYTES,
    policy::{chacha20_first, versions},
    site::{CertificateChoice, Sites},
    tickets::{TICKETS_ON_REQUEST_LIMIT, TICKETS_PER_HANDSHAKE},
};
use linerate_record::Version;
use rustls::{ServerConfig, crypto::CryptoProvider, server::NoServerSessionStorage};
use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

/// What is spoken inside TLS.
#[derive(Clone, Debug)]
enum Purpose {
    Http,
    /// RPC-with-TLS; the file names the authorities whose word about clients is taken.
    Rpc {
        clients: Option<PathBuf>,
    },
}

impl Purpose {
    /// The application protocols spoken (RFC 7301), the preferred first. A client that offers only others is refused with
    /// `no_application_protocol`; one that offers none is served.
    fn application_protocols(&self) -> &'static [&'static str] {
        match self {
            Self::Http => &["http/1.1", "http/1.0"],
            Self::Rpc { .. } => &["sunrpc"],
        }
    }

    fn clients(&self) -> Option<&Path> {
        match self {
            Self::Http => None,
            Self::Rpc { clients } => clients.as_deref(),
        }
    }
}

/// How to make an [`Acceptor`].
#[derive(Clone, Debug)]
pub struct AcceptorBuilder {
    policy: TlsPolicy,
    sites: Vec<SiteCertificates>,
    tickets: Option<Tickets>,
    purpose: Purpose,
}

impl AcceptorBuilder {
    /// HTTP for these sites. The default site is the first without names, else the first.
    #[must_use]
    pub fn new(policy: TlsPolicy, sites: Vec<SiteCertificates>) -> Self {
        Self { policy, sites, tickets: None, purpose: Purpose::Http }
    }

    /// RPC-with-TLS (RFC 9289) with these certificates: TLS 1.3 alone, the application protocol `sunrpc` or none (Linux'
    /// tlshd offers none), and no tickets, because nobody resumes by them and some kernels do not expect them. If
    /// `clients` names a file of authorities (PEM), each client is asked for a certificate, and
    /// [`Established::client`](crate::Established::client) says what it is worth.
    #[must_use]
    pub fn rpc(policy: TlsPolicy, certificates: Vec<CertificateFiles>, clients: Option<PathBuf>) -> Self {
        let policy = TlsPolicy { minimum_version: Version::Tls13, session_tickets: false, ..policy };
        let sites = vec![SiteCertificates { names: Vec::new(), certificates }];
        Self { policy, sites, tickets: None, purpose: Purpose::Rpc { clients } }
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
        let clients = self.load_clients(&provider, &mut errors, None);
        if !errors.is_empty() {
            return Err(errors);
        }
        let tickets = match &self.tickets {
            Some(tickets) => tickets.clone(),
            None => Tickets::new().map_err(|error| vec![error])?,
        };
        self.assemble(&suites, sites, tickets, clients).map_err(|error| vec![error])
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
        let clients = self.load_clients(&provider, &mut errors, old.clients.as_ref());
        if clients.is_none() && self.purpose.clients().is_some() {
            // Without authorities nobody would be asked any more.
            return (Arc::clone(old), errors);
        }
        match self.assemble(&suites, sites, old.tickets.clone(), clients) {
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
        pairs
            .flat_map(|files| [files.certificate.as_path(), files.key.as_path()])
            .chain(self.purpose.clients())
    }

    /// The authorities for clients; `known` ones where theirs do not load.
    fn load_clients(
        &self,
        provider: &CryptoProvider,
        errors: &mut Vec<TlsError>,
        known: Option<&Arc<ClientAuthorities>>,
    ) -> Option<Arc<ClientAuthorities>> {
        ClientAuthorities::load(self.purpose.clients()?, provider)
            .map_err(|error| errors.push(error))
            .ok()
            .or_else(|| known.cloned())
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
        clients: Option<Arc<ClientAuthorities>>,
    ) -> Result<Acceptor, TlsError> {
        let sites = Arc::new(Sites::new(&self.sites, certificates)?);
        let speaks_tls13 = versions(suites).contains(&&rustls::version::TLS13);
        let chacha20_first = chacha20_first(suites);
        let config = |hint: ClientHint| {
            let suites = if hint.prefers_chacha20 { &chacha20_first } else { suites };
            let is_tls12 = hint.is_tls12_only || !speaks_tls13;
            let choice = CertificateChoice { sites: Arc::clone(&sites), is_tls12 };
            self.config(suites, Arc::new(choice), &tickets, clients.as_ref())
        };
        let [first, second, third, fourth] = ClientHint::ALL.map(config);
        let configs = [first?, second?, third?, fourth?];
        let application_protocols = self.purpose.application_protocols();
        Ok(Acceptor { configs, sites, tickets, clients, application_protocols })
    }

    fn config(
        &self,
        suites: &[CipherSuite],
        choice: Arc<CertificateChoice>,
        tickets: &Tickets,
        clients: Option<&Arc<ClientAuthorities>>,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(self.policy.provider(suites));
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(suites))
            .map_err(|error| TlsError::PolicyUnusable(error.to_string()))?;
        let builder = match clients {
            Some(clients) => builder.with_client_cert_verifier(Arc::clone(clients) as _),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(choice);
        let protocols = self.purpose.application_protocols();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
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
    clients: Option<Arc<ClientAuthorities>>,
    application_protocols: &'static [&'static str],
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

    /// The authorities that a client's certificate is judged by; `None` where none is asked for.
    pub(crate) fn clients(&self) -> Option<&ClientAuthorities> {
        self.clients.as_deref()
    }

    /// The application protocols spoken.
    pub(crate) fn application_protocols(&self) -> &'static [&'static str] {
        self.application_protocols
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
