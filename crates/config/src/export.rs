//! Directories that NFS clients see.

use std::path::PathBuf;
use std::str::FromStr;

use crate::choice::shortened;
use crate::site::CertificateFiles;
use crate::{Error, ExportIdentity, ExportTls, Network, Origin};

/// What all exports share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nfs {
    /// Certificates that NFS clients are shown; without any a development certificate is.
    pub certificates: Vec<CertificateFiles>,
    /// The authorities whose word about clients is taken. Where it is set every client is asked for a certificate.
    pub client_authorities: Option<AuthorityFile>,
}

/// Certificates of authorities, a PEM file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityFile {
    /// Its path.
    pub path: PathBuf,
    /// Where it was named.
    pub origin: Origin,
}

/// A directory that NFS clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What clients call it, `/NAME`; empty is the root of all that they see, and then it is the only one.
    pub name: String,
    /// The directory.
    pub directory: PathBuf,
    /// Where the directory was named.
    pub directory_origin: Origin,
    /// How it is exported.
    pub policy: ExportPolicy,
}

/// How a directory is exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportPolicy {
    /// Whether connections must have TLS.
    pub tls: ExportTls,
    /// Where clients may be; empty is anywhere.
    pub networks: Vec<Network>,
    /// Whether a client must show a certificate of an authority; `None` is wherever authorities are named and TLS is required.
    pub certificate: Option<bool>,
    /// The names of which a client's certificate must have one; empty is any.
    pub clients: Vec<String>,
    /// By whom permission is judged.
    pub identity: ExportIdentity,
}

impl ExportPolicy {
    /// Whether a client must show a certificate.
    #[must_use]
    pub fn needs_certificate(&self, nfs: &Nfs) -> bool {
        let by_default = nfs.client_authorities.is_some() && self.tls == ExportTls::Require;
        self.certificate.unwrap_or(by_default) || !self.clients.is_empty()
    }
}

/// An export as a flag writes it: `NAME=DIR[,tls=require][,networks=NET+NET][,clients=NAME+NAME][,identity=client]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportArgument {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    /// What is not said is as for the others.
    pub(crate) tls: Option<ExportTls>,
    pub(crate) policy: ExportPolicy,
}

impl FromStr for ExportArgument {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        const FORM: &str = "write NAME=DIR, and behind it ,tls=RULE ,networks=NETWORK+NETWORK ,clients=NAME+NAME or \
                            ,identity=RULE";
        let mut parts = text.split(',');
        let first = parts.next().unwrap_or_default();
        let (name, directory) = first
            .split_once('=')
            .filter(|(_, directory)| !directory.is_empty())
            .ok_or_else(|| Error::value(format!("\"{}\" is no export: {FORM}", shortened(first))))?;
        let mut argument = Self {
            name: parse_name(name)?,
            directory: directory.into(),
            tls: None,
            policy: ExportPolicy::default(),
        };
        for part in parts {
            match part.split_once('=') {
                Some(("tls", rule)) => argument.tls = Some(rule.parse()?),
                Some(("networks", networks)) => {
                    argument.policy.networks =
                        networks.split('+').map(str::parse).collect::<Result<_, _>>()?;
                }
                Some(("clients", names)) => {
                    argument.policy.clients = names.split('+').map(parse_client).collect::<Result<_, _>>()?;
                }
                Some(("identity", rule)) => argument.policy.identity = rule.parse()?,
                _ => {
                    return Err(Error::value(format!(
                        "\"{}\" belongs to no export: {FORM}",
                        shortened(part)
                    )));
                }
            }
        }
        Ok(argument)
    }
}

/// Checks what clients are to call an export.
pub(crate) fn parse_name(text: &str) -> Result<String, Error> {
    let is_name = !matches!(text, "" | "." | "..")
        && text.len() <= 255
        && !text.contains(['/', ','])
        && !text.contains(char::is_control);
    if is_name {
        return Ok(text.to_owned());
    }
    Err(Error::value(format!(
        "\"{}\" cannot be an export's name: one name without / and comma is needed, like media, which clients mount as \
         SERVER:/media",
        shortened(text)
    )))
}

/// Checks a name that clients' certificates may have.
pub(crate) fn parse_client(text: &str) -> Result<String, Error> {
    if text.is_empty() || text.contains(char::is_control) || text.trim_start_matches("*.").contains('*') {
        return Err(Error::value(format!(
            "\"{}\" cannot be a name in a client's certificate: write nas.example.org, or *.example.org for one more \
             label",
            shortened(text)
        )));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_in_one_word() {
        let whole = "media=/srv/media,tls=offer,networks=10.0.0.0/8+::1,clients=a.example+*.b.example,identity=client"
            .parse::<ExportArgument>()
            .unwrap();
        assert_eq!((whole.name.as_str(), whole.directory), ("media", PathBuf::from("/srv/media")));
        assert_eq!((whole.tls, whole.policy.identity), (Some(ExportTls::Offer), ExportIdentity::Client));
        assert_eq!(whole.policy.networks.len(), 2);
        assert_eq!(whole.policy.clients, ["a.example", "*.b.example"]);
        assert_eq!("a=b=c".parse::<ExportArgument>().unwrap().directory, PathBuf::from("b=c"));
        for (text, words) in [
            ("/srv/media", "is no export: write NAME=DIR"),
            ("media=", "is no export"),
            ("a/b=/srv", "cannot be an export's name"),
            ("..=/srv", "cannot be an export's name"),
            ("a=/srv,ro", "\"ro\" belongs to no export"),
            ("a=/srv,tls=on", "unknown TLS rule \"on\""),
            ("a=/srv,networks=10", "is no address or network"),
            ("a=/srv,clients=a*", "cannot be a name in a client's certificate"),
        ] {
            let message = text.parse::<ExportArgument>().unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
