//! Opening exports, at the start and at a reload.

use super::{configuration::renewed, start::certificate_faults};
use crate::{
    nfs::{NODES_LIMIT, NfsService},
    tls_setup,
};
use linerate_config::{self as config, ExportIdentity, ExportTls, Settings};
use linerate_export::{ClientRule, Export, ExportOptions, Exports, HandleKey, IdentityRule, TlsRule};
use linerate_tls::{Acceptor, DevelopmentCertificate, state_directory};
use std::sync::Arc;

/// Opens what is exported. Clients, handles and certificates that do not load are those of `old`, if there is one. `None` if
/// nothing is exported.
///
/// # Errors
/// All that is wrong, each with its place.
pub(super) fn open(
    settings: &Settings,
    development: Option<&DevelopmentCertificate>,
    old: Option<&Arc<NfsService>>,
) -> Result<Option<Arc<NfsService>>, Vec<String>> {
    if settings.exports.is_empty() {
        return Ok(None);
    }
    let exports = open_directories(settings)?;
    let acceptor = acceptor(settings, development, old.and_then(|old| old.acceptor.as_ref()))?;
    let said = |error: &dyn std::fmt::Display| vec![error.to_string()];
    let exports = match old {
        Some(old) => old.exports.renewed(exports, NODES_LIMIT),
        None => {
            let directory = state_directory().map_err(|error| said(&error))?;
            let key = HandleKey::kept_in(&directory).map_err(|error| said(&error))?;
            Exports::new(exports, key, NODES_LIMIT)
        }
    };
    let exports = Arc::new(exports.map_err(|error| said(&error))?);
    let service = match old {
        Some(old) => NfsService { exports, acceptor, ..NfsService::clone(old) },
        None => NfsService::new(exports, acceptor).map_err(|error| said(&error))?,
    };
    Ok(Some(Arc::new(service)))
}

/// Opens the directories, and looks at nothing else.
///
/// # Errors
/// Every fault, with its place.
pub(super) fn open_directories(settings: &Settings) -> Result<Vec<Arc<Export>>, Vec<String>> {
    let mut faults = Vec::new();
    let mut exports = Vec::new();
    for export in &settings.exports {
        match Export::open(options(export, settings)) {
            Ok(opened) => exports.push(opened),
            Err(error) => faults.push(format!("{}: {error}", export.directory_origin)),
        }
    }
    if faults.is_empty() { Ok(exports) } else { Err(faults) }
}

fn options(export: &config::Export, settings: &Settings) -> ExportOptions {
    let policy = &export.policy;
    ExportOptions {
        name: export.name.clone(),
        directory: export.directory.clone(),
        clients: ClientRule {
            tls: match policy.tls {
                ExportTls::Require => TlsRule::Require,
                ExportTls::Offer => TlsRule::Offer,
                ExportTls::Off => TlsRule::Off,
            },
            networks: policy.networks.clone(),
            needs_certificate: policy.needs_certificate(&settings.nfs),
            names: policy.clients.clone(),
        },
        identity: match policy.identity {
            ExportIdentity::Server => IdentityRule::Server,
            ExportIdentity::Client => IdentityRule::Client,
        },
    }
}

/// The acceptor for exports with TLS; `None` if none has it.
///
/// # Errors
/// What cannot be used, if there is no `old` one that has it.
pub(super) fn acceptor(
    settings: &Settings,
    development: Option<&DevelopmentCertificate>,
    old: Option<&Arc<Acceptor>>,
) -> Result<Option<Arc<Acceptor>>, Vec<String>> {
    let builder = tls_setup::nfs_builder(settings, development.map(|made| made.files.clone()));
    let Some(builder) = builder else { return Ok(None) };
    match old {
        Some(old) => renewed(&builder, settings, old).map(Some),
        None => builder
            .build()
            .map(|acceptor| Some(Arc::new(acceptor)))
            .map_err(|errors| certificate_faults(settings, &errors)),
    }
}
