//! What flags say, laid over what the file says.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use linerate_suite::Version;

use crate::rules::{Draft, ExportDraft, Said, SiteDraft};
use crate::settings::CalibrationFile;
use crate::site::CertificateFiles;
use crate::{
    AuthorityFile, CipherSuites, CpuList, EngineChoice, ExportArgument, ExportPolicy, ExportTls, Fault,
    Groups, Hsts, ListenAddress, LogFormat, LogTarget, Origin, Symlinks,
};

/// What the command line said, already parsed. Paths are relative to the current folder. The rules by which flags
/// win over the file are in the documentation of the crate.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// DIR: the default site's root.
    pub directory: Option<PathBuf>,
    /// `--listen`: instead of the file's list.
    pub listen: Vec<ListenAddress>,
    /// `--cert` and `--key` in pairs: instead of the default site's certificates.
    pub certificates: Vec<(PathBuf, PathBuf)>,
    /// `--admin`
    pub admin: Option<SocketAddr>,
    /// `--workers`
    pub workers: Option<NonZeroUsize>,
    /// `--cpus`
    pub cpus: Option<CpuList>,
    /// `--engine`
    pub engine: Option<EngineChoice>,
    /// `--calibration`
    pub calibration: Option<PathBuf>,
    /// `--access-log`
    pub access_log: Option<LogTarget>,
    /// `--log-format`
    pub log_format: Option<LogFormat>,
    /// `--tls-min`
    pub minimum_version: Option<Version>,
    /// `--ciphers`: instead of the file's list.
    pub cipher_suites: Option<CipherSuites>,
    /// `--groups`: instead of the file's list.
    pub groups: Option<Groups>,
    /// `--no-listing`: no site lists folders.
    pub no_listing: bool,
    /// `--dotfiles`: every site serves dotfiles.
    pub dotfiles: bool,
    /// `--symlinks`, for every site.
    pub symlinks: Option<Symlinks>,
    /// `--hsts`, for every site.
    pub hsts: Option<Hsts>,
    /// Those of `linerate nfs`; `None` for all other commands.
    pub nfs: Option<NfsFlags>,
}

/// What the command line of `linerate nfs` said beside. [`Flags::certificates`] are shown to NFS clients then, and
/// [`Flags::listen`] is about NFS where it says nothing else.
#[derive(Clone, Debug, Default)]
pub struct NfsFlags {
    /// DIR: the only export.
    pub directory: Option<PathBuf>,
    /// `--export`: instead of the file's exports.
    pub exports: Vec<ExportArgument>,
    /// `--clients`
    pub client_authorities: Option<PathBuf>,
    /// `--tls`, for the exports that say nothing of it.
    pub tls: Option<ExportTls>,
}

impl Flags {
    /// Lays the flags over the draft.
    pub(crate) fn apply(&self, draft: &mut Draft) -> Result<(), Fault> {
        if !self.listen.is_empty() {
            let origin = Origin::Flag("--listen");
            let addresses = self.listen.iter().map(|address| match self.nfs {
                Some(_) => address.for_nfs(),
                None => *address,
            });
            draft.listeners = Some(addresses.flat_map(|address| address.listeners(&origin)).collect());
        }
        replace(&mut draft.admin, self.admin, "--admin");
        replace(&mut draft.workers, self.workers, "--workers");
        replace(&mut draft.cpus, self.cpus.clone(), "--cpus");
        draft.engine = self.engine.unwrap_or(draft.engine);
        if let Some(path) = &self.calibration {
            let origin = Origin::Flag("--calibration");
            draft.placement.calibration = Some(CalibrationFile { path: path.clone(), origin });
        }
        replace(&mut draft.access_log, self.access_log.clone(), "--access-log");
        draft.log_format = self.log_format.unwrap_or(draft.log_format);
        draft.tls.minimum_version = self.minimum_version.unwrap_or(draft.tls.minimum_version);
        if let Some(suites) = &self.cipher_suites {
            draft.tls.cipher_suites = Some(suites.clone());
            draft.cipher_suites_origin = Some(Origin::Flag("--ciphers"));
        }
        draft.tls.groups = self.groups.clone().or_else(|| draft.tls.groups.take());
        match &self.nfs {
            Some(nfs) => nfs.apply(draft, &self.certificate_files()),
            None => self.apply_to_default_site(draft)?,
        }
        draft.sites.iter_mut().for_each(|site| self.apply_to_site(site));
        Ok(())
    }

    fn apply_to_default_site(&self, draft: &mut Draft) -> Result<(), Fault> {
        if self.directory.is_none() && self.certificates.is_empty() {
            return Ok(());
        }
        let Some(site) = self.default_site(draft) else {
            let message = "the flag is about the default site, but of several sites none is without names: name the \
                           certificates in the file";
            return Err(Fault { origin: Origin::Flag("--cert"), message: message.to_owned() });
        };
        if let Some(directory) = &self.directory {
            site.root = Some(Said { value: directory.clone(), origin: Origin::Flag("DIR") });
        }
        if !self.certificates.is_empty() {
            site.certificates = self.certificate_files();
        }
        Ok(())
    }

    fn certificate_files(&self) -> Vec<CertificateFiles> {
        let pairs = self.certificates.iter().map(|(certificate, key)| CertificateFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            origin: Origin::Flag("--cert"),
            key_origin: Origin::Flag("--key"),
        });
        pairs.collect()
    }

    /// The site without names, else the only one; else a new one if there is a DIR for it or no other.
    fn default_site<'a>(&self, draft: &'a mut Draft) -> Option<&'a mut SiteDraft> {
        let unnamed = draft.sites.iter().position(|site| site.names.is_empty());
        let index = match unnamed.or((draft.sites.len() == 1).then_some(0)) {
            Some(index) => index,
            None if self.directory.is_some() || draft.sites.is_empty() => {
                let certificates = draft.default_certificates.clone();
                draft.sites.push(SiteDraft::new(
                    Origin::Flag("DIR"),
                    draft.default_policy.clone(),
                    certificates,
                ));
                draft.sites.len() - 1
            }
            None => return None,
        };
        draft.sites.get_mut(index)
    }

    fn apply_to_site(&self, site: &mut SiteDraft) {
        site.policy.listing &= !self.no_listing;
        site.policy.dotfiles |= self.dotfiles;
        site.policy.symlinks = self.symlinks.unwrap_or(site.policy.symlinks);
        site.policy.hsts = self.hsts.or(site.policy.hsts);
    }
}

impl NfsFlags {
    fn apply(&self, draft: &mut Draft, certificates: &[CertificateFiles]) {
        if !certificates.is_empty() {
            draft.nfs.certificates = certificates.to_vec();
        }
        if let Some(path) = &self.client_authorities {
            let origin = Origin::Flag("--clients");
            draft.nfs.client_authorities = Some(AuthorityFile { path: path.clone(), origin });
        }
        let of_directory = self.directory.iter().map(|directory| {
            let policy = ExportPolicy { tls: self.tls.unwrap_or_default(), ..ExportPolicy::default() };
            export(None, directory, policy, Origin::Flag("DIR"))
        });
        let named = self.exports.iter().map(|argument| {
            let tls = argument.tls.or(self.tls).unwrap_or_default();
            let policy = ExportPolicy { tls, ..argument.policy.clone() };
            export(Some(&argument.name), &argument.directory, policy, Origin::Flag("--export"))
        });
        let said: Vec<ExportDraft> = of_directory.chain(named).collect();
        if !said.is_empty() {
            draft.exports = said;
        } else if let Some(tls) = self.tls {
            draft.exports.iter_mut().for_each(|export| export.policy.tls = tls);
        }
    }
}

fn export(name: Option<&String>, directory: &Path, policy: ExportPolicy, origin: Origin) -> ExportDraft {
    ExportDraft {
        name: name.map(|name| Said { value: name.clone(), origin: origin.clone() }),
        directory: Some(Said { value: directory.to_owned(), origin: origin.clone() }),
        origin,
        policy,
    }
}

fn replace<T>(target: &mut Option<Said<T>>, flag: Option<T>, name: &'static str) {
    if let Some(value) = flag {
        *target = Some(Said { value, origin: Origin::Flag(name) });
    }
}
