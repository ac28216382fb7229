//! The command line of `linerate nfs`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use linerate_config::{AdminAddress, ExportArgument, ExportTls, Flags, ListenAddress, NfsFlags, Source};

use crate::cli::{WorkerFlags, pairs};
use crate::one_of::one_of;
use crate::usage_error::UsageError;

pub(crate) const EXAMPLES: &str = "\
Examples:
  linerate nfs /srv/media --listen '*:2049' --cert cert.pem --key key.pem
      On a client: mount -t nfs -o ro,xprtsec=tls server:/ /mnt
  linerate nfs --export media=/srv/media --export home=/home,networks=10.0.0.0/8,tls=offer \\
      --listen '*:2049' --cert cert.pem --key key.pem
      On a client: mount -t nfs -o ro,xprtsec=tls server:/media /mnt
  linerate nfs /srv/media --tls off
      In the clear, on port 2049 of every address.

NFS 4.2, 4.1 and 3, read-only. [[export]] in a configuration file says the same, beside sites; `linerate check`
looks at it. Signals as those of `linerate serve`.";

#[derive(Args, Debug)]
pub(crate) struct NfsArguments {
    /// Folder that clients mount as SERVER:/
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: Option<PathBuf>,

    /// Configuration file (TOML); flags win over it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// Folder that clients mount as SERVER:/NAME
    ///
    /// Behind it, each after a comma: tls=RULE, networks=NETWORK+NETWORK (where clients may be), clients=NAME+NAME (the
    /// names of which a client's certificate must have one) and identity=RULE (server: every client may read what the
    /// server's own user may; client: the user that the client states must be permitted to). Can be repeated; replaces
    /// the file's exports.
    #[arg(long, value_name = "NAME=DIR")]
    export: Vec<ExportArgument>,

    /// Where to listen [default: *:2049, localhost:2049 with the development certificate]
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Network")]
    listen: Vec<ListenAddress>,

    /// Where to serve /healthz and /metrics in the clear: PORT (on 127.0.0.1) or ADDRESS:PORT
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Network")]
    admin: Option<AdminAddress>,

    /// Whether connections must have TLS [default: require]
    ///
    /// For exports that do not say it themselves.
    #[arg(long, value_name = "RULE", help_heading = "TLS", value_parser = one_of(ExportTls::NAMES, ExportTls::from_str))]
    tls: Option<ExportTls>,

    /// Certificate chain (PEM), once for each --key
    #[arg(long, value_name = "FILE", help_heading = "TLS", value_hint = clap::ValueHint::FilePath)]
    cert: Vec<PathBuf>,

    /// Private key (PEM), once for each --cert
    #[arg(long, value_name = "FILE", help_heading = "TLS", value_hint = clap::ValueHint::FilePath)]
    key: Vec<PathBuf>,

    /// Authorities (PEM) of which clients must show a certificate
    #[arg(long, value_name = "FILE", help_heading = "TLS", value_hint = clap::ValueHint::FilePath)]
    clients: Option<PathBuf>,

    #[command(flatten)]
    workers: WorkerFlags,
}

impl NfsArguments {
    /// Where the settings come from.
    ///
    /// # Errors
    /// A usage error where there is nothing to export, or certificates and keys do not pair.
    pub(crate) fn source(&self) -> Result<Source, UsageError> {
        if self.directory.is_none() && self.export.is_empty() && self.config.is_none() {
            let message = "give DIR, the folder to export, or --export NAME=DIR, or --config FILE";
            return Err(UsageError::new("nfs", message));
        }
        let flags = Flags {
            listen: self.listen.clone(),
            certificates: pairs("nfs", &self.cert, &self.key)?,
            admin: self.admin.map(|admin| admin.0),
            nfs: Some(NfsFlags {
                directory: self.directory.clone(),
                exports: self.export.clone(),
                client_authorities: self.clients.clone(),
                tls: self.tls,
            }),
            ..self.workers.flags()
        };
        Ok(Source { file: self.config.clone(), flags })
    }
}
