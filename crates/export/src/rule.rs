//! Which clients may use an export.

use crate::Refusal;
use linerate_config::Network;
use linerate_nfs::Client;

/// Whether an export is for connections with TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsRule {
    /// For those alone.
    #[default]
    Require,
    /// For those and others.
    Offer,
    /// For others alone.
    Off,
}

/// Which clients may use an export. All parts of it must agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRule {
    /// Whether the connection must have TLS.
    pub tls: TlsRule,
    /// Where clients may be; empty is anywhere.
    pub networks: Vec<Network>,
    /// Whether a client must show a certificate that counts.
    pub needs_certificate: bool,
    /// The names of which that certificate must have one, `*.example.org` standing for one more label; empty is any name.
    pub names: Vec<String>,
}

impl ClientRule {
    /// Whether `client` may use the export.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&self, client: &Client) -> Result<(), Refusal> {
        let address = client.address.ip();
        if !self.networks.is_empty() && !self.networks.iter().any(|network| network.contains(address)) {
            return Err(Refusal::Network);
        }
        match (self.tls, &client.tls) {
            (TlsRule::Require, None) => return Err(Refusal::NoTls),
            (TlsRule::Off, Some(_)) => return Err(Refusal::Tls),
            _ => {}
        }
        if !self.needs_certificate && self.names.is_empty() {
            return Ok(());
        }
        let certificate = client.tls.as_ref().and_then(|tls| tls.certificate.as_ref());
        let shown = certificate.ok_or(Refusal::NoCertificate)?;
        let is_named = |name: &String| shown.names.iter().any(|shown| name_matches(name, shown));
        if self.names.is_empty() || self.names.iter().any(is_named) {
            Ok(())
        } else {
            Err(Refusal::CertificateName)
        }
    }
}

/// Whether `shown` is `name`, or one label below it where that begins with `*.`.
fn name_matches(name: &str, shown: &str) -> bool {
    match name.strip_prefix("*.") {
        None => name.eq_ignore_ascii_case(shown),
        Some(parent) => shown
            .split_once('.')
            .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(parent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_nfs::{Certificate, Tls};

    fn client(address: &str, tls: Option<Option<&[&str]>>) -> Client {
        let certificate =
            |names: &[&str]| Certificate { names: names.iter().map(|name| (*name).to_owned()).collect() };
        Client {
            address: format!("{address}:700").parse().unwrap(),
            tls: tls.map(|shown| Tls { certificate: shown.map(certificate) }),
        }
    }

    #[test]
    fn every_part_of_a_rule_must_agree() {
        let rule = ClientRule {
            tls: TlsRule::Require,
            networks: vec!["10.0.0.0/8".parse().unwrap()],
            needs_certificate: true,
            names: vec!["nas.example".to_owned(), "*.lab.example".to_owned()],
        };
        for (client, expected) in [
            (client("10.1.2.3", Some(Some(&["NAS.example"]))), Ok(())),
            (client("10.1.2.3", Some(Some(&["x", "a.lab.example"]))), Ok(())),
            (client("11.1.2.3", Some(Some(&["nas.example"]))), Err(Refusal::Network)),
            (client("10.1.2.3", None), Err(Refusal::NoTls)),
            (client("10.1.2.3", Some(None)), Err(Refusal::NoCertificate)),
            (
                client("10.1.2.3", Some(Some(&["lab.example", "a.b.lab.example"]))),
                Err(Refusal::CertificateName),
            ),
            (client("10.1.2.3", Some(Some(&[]))), Err(Refusal::CertificateName)),
        ] {
            assert_eq!(rule.admit(&client), expected, "{client:?}");
        }
        let any_name = ClientRule { names: Vec::new(), ..rule };
        assert_eq!(any_name.admit(&client("10.1.2.3", Some(Some(&[])))), Ok(()));
        assert_eq!(any_name.admit(&client("10.1.2.3", Some(None))), Err(Refusal::NoCertificate));
    }

    #[test]
    fn tls_is_required_offered_or_off() {
        let clear = client("192.0.2.1", None);
        let secured = client("192.0.2.1", Some(None));
        for (tls, expected) in [
            (TlsRule::Require, [Err(Refusal::NoTls), Ok(())]),
            (TlsRule::Offer, [Ok(()), Ok(())]),
            (TlsRule::Off, [Ok(()), Err(Refusal::Tls)]),
        ] {
            let rule = ClientRule { tls, ..ClientRule::default() };
            assert_eq!([&clear, &secured].map(|client| rule.admit(client)), expected, "{tls:?}");
        }
    }
}
