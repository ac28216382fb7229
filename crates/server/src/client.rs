//! What is known of a connection's client.

use linerate_tls::Certificate;
use std::{net::SocketAddr, sync::Arc};

/// The connection's own facts.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<TlsFacts>,
    /// Every request is answered with a redirect to HTTPS.
    pub(crate) redirect: bool,
}

/// What TLS told about a connection, for the log and for the choice of site.
#[derive(Clone, Debug)]
pub(crate) struct TlsFacts {
    pub(crate) version: &'static str,
    pub(crate) cipher: &'static str,
    pub(crate) server_name: Option<Box<str>>,
    /// What the client was shown.
    pub(crate) certificate: Arc<Certificate>,
    pub(crate) resumed: bool,
}
