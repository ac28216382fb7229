//! The client's side of a handshake, without I/O: bytes in, bytes out, and at the end the secrets.

use crate::{
    Chain, ClientKeySchedule, Connected, HANDSHAKE_LIMIT_BYTES,
    connector::{ConnectFailure, Connector},
    driver::{Agreement, Driver, Fault},
};
use rustls::{client::UnbufferedClientConnection, pki_types::ServerName};
use std::{fmt, sync::Arc};

/// Where a client's handshake stands.
#[derive(Debug)]
pub enum ConnectStep {
    /// Send what is in `outgoing`, then read more.
    NeedInput,
    /// It is over; what is in `outgoing` is still to be sent, before anything else.
    Connected(Box<Connected>),
}

/// One connection's handshake, on the client's side.
pub struct ClientHandshake {
    driver: Option<Driver<UnbufferedClientConnection>>,
    keeps_tickets: bool,
    protocol: &'static str,
}

impl ClientHandshake {
    /// A handshake with the server of this name (a host name, sent as SNI, or an IP address, which is not). Appends the
    /// ClientHello to `outgoing`.
    ///
    /// # Errors
    /// The name is none, or rustls cannot begin.
    pub fn start(
        connector: &Connector,
        server_name: &str,
        outgoing: &mut Vec<u8>,
    ) -> Result<Self, ConnectFailure> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| ConnectFailure::new("server name", format!("\"{server_name}\" is no host name")))?;
        let connection = UnbufferedClientConnection::new(Arc::clone(connector.config()), name)?;
        let mut driver = Driver::new(connection);
        driver.offer(&mut [], outgoing)?;
        Ok(Self { driver: Some(driver), keeps_tickets: connector.resumes(), protocol: connector.protocol() })
    }

    /// Takes whole records from the front of `incoming` and appends to `outgoing` what is to be sent.
    ///
    /// What it can't use yet stays in `incoming`: append to it, don't change it. When the handshake is established,
    /// everything that is left belongs to the record layer.
    ///
    /// # Errors
    /// The handshake failed. `outgoing` then ends with the alert, if one can be sent.
    pub fn advance(
        &mut self,
        incoming: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<ConnectStep, ConnectFailure> {
        let driver = self.driver.as_mut().ok_or_else(over)?;
        match driver.advance(incoming, outgoing, |_, _| false) {
            Ok(false) => Ok(ConnectStep::NeedInput),
            Ok(true) => self.finish().map(|connected| ConnectStep::Connected(Box::new(connected))),
            Err(fault) => {
                driver.write_alert(outgoing);
                self.driver = None;
                Err(fault.into())
            }
        }
    }

    /// Adds what only a client knows of the agreement.
    fn finish(&mut self) -> Result<Connected, ConnectFailure> {
        let driver = self.driver.take().ok_or_else(over)?;
        if driver.common().alpn_protocol().is_some_and(|agreed| agreed != self.protocol.as_bytes()) {
            let chosen = format!("the server chose another protocol than {}", self.protocol);
            return Err(ConnectFailure::new("protocol", chosen));
        }
        let server_certificates = Chain::shown(driver.common().peer_certificates().unwrap_or_default());
        let Agreement { version, cipher_suite, group, resumed, send, receive, next_keys } =
            driver.finish()?;
        Ok(Connected {
            version,
            cipher_suite,
            group,
            resumed,
            server_certificates,
            send,
            receive,
            key_schedule: ClientKeySchedule { next_keys, keeps_tickets: self.keeps_tickets },
        })
    }
}

fn over() -> ConnectFailure {
    ConnectFailure::new("internal", "the handshake is already over")
}

impl From<Fault> for ConnectFailure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotTls => {
                Self::new("not TLS", "the server's answer is not TLS: is this a plain http port?")
            }
            Fault::TooLong => Self::new("malformed", "the server sent a record that is too long"),
            Fault::TooLarge => {
                Self::new("too large", format!("the server sent more than {HANDSHAKE_LIMIT_BYTES} bytes"))
            }
            Fault::PeerClosed => Self::new("closed", "the server closed during the handshake"),
            Fault::Refused(error) => error.into(),
            Fault::Internal(what) => Self::new("internal", what),
        }
    }
}

impl fmt::Debug for ClientHandshake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientHandshake").finish_non_exhaustive()
    }
}
