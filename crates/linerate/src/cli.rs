//! The command line: every command, flag and help text. Man page and completions are made from it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use linerate_config::{
    AdminAddress, CipherSuites, CpuList, EngineChoice, Flags, Groups, Hsts, ListenAddress, LogFormat,
    LogTarget, Source, Symlinks, VERSION_NAMES, parse_version,
};
use linerate_suite::Version;

use crate::one_of::one_of;
use crate::usage_error::UsageError;

const EXAMPLES: &str = "\
Examples:
  linerate serve .                                this folder, on https://localhost:8443
  linerate serve /srv/media --listen '*:443' --cert cert.pem --key key.pem
  linerate serve --config /etc/linerate/linerate.toml
  linerate nfs /srv/media --listen '*:2049' --cert cert.pem --key key.pem
  linerate check --config /etc/linerate/linerate.toml
  linerate load https://localhost:8443/film.mp4 -c 100 -d 30s --insecure
  linerate bench run engines --quick
  linerate plan --machine media-server --workload mirror";

const SERVE_EXAMPLES: &str = "\
Examples:
  linerate serve .
      This folder on https://localhost:8443, with a certificate made for development.
  linerate serve /srv/media --listen '*:443' --listen 'redirect://*:80' \\
      --cert cert.pem --key key.pem
      A media server; what comes over HTTP is sent to HTTPS.
  linerate serve --config /etc/linerate/linerate.toml --workers 4 --cpus 0-3
      What the file says, on four cores.

Signals: HUP reloads configuration and certificates, QUIT drains and ends, TERM and INT end,
USR1 reopens the logs.";

const CHECK_EXAMPLES: &str = "\
It takes the flags of `linerate serve`. What is wrong is said as FILE:LINE:COLUMN: REASON.

Examples:
  linerate check --config /etc/linerate/linerate.toml
  linerate check --keys | less";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  linerate completions bash > ~/.local/share/bash-completion/completions/linerate
  linerate completions zsh > ~/.zfunc/_linerate
  linerate completions fish > ~/.config/fish/completions/linerate.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  linerate man | man -l -
  linerate man > /usr/local/share/man/man1/linerate.1";

/// Serves files over TLS, encrypted where that costs least
#[derive(Debug, Parser)]
#[command(name = "linerate", version, arg_required_else_help = true, after_help = EXAMPLES)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a folder, or what a configuration file says
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArguments>),
    /// Export folders to NFS clients, read-only, over TLS
    #[command(after_help = crate::nfs::EXAMPLES)]
    Nfs(Box<crate::nfs::NfsArguments>),
    /// Validate a configuration and print what would run
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Box<CheckArguments>),
    /// Ask a server for files, and say how fast, how late and at what price they came
    #[command(after_help = crate::load::EXAMPLES)]
    Load(Box<crate::load::LoadArguments>),
    /// Send streams to another host, or receive them, and say how fast they were and what both ends paid
    #[command(after_help = crate::stream::EXAMPLES)]
    Stream(Box<crate::stream::StreamArguments>),
    /// Say what this machine can do, why not more, and what to change
    #[command(after_help = crate::doctor::EXAMPLES)]
    Doctor(crate::doctor::DoctorArguments),
    /// Measure what each engine costs on this machine, for `serve` to place connections by
    #[command(after_help = crate::calibrate::EXAMPLES)]
    Calibrate(crate::calibrate::CalibrateArguments),
    /// Run the experiments of published papers here, and compare what they find
    #[command(after_help = crate::bench::EXAMPLES)]
    Bench(crate::bench::BenchArguments),
    /// Predict what a machine does with a workload, by engine and rate of the adapter
    #[command(after_help = crate::plan::EXAMPLES)]
    Plan(Box<crate::plan::PlanArguments>),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    #[command(after_help = MAN_EXAMPLES)]
    Man,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) serve: ServeArguments,

    /// Print every key of the configuration file, with its default and meaning
    #[arg(long, exclusive = true)]
    pub(crate) keys: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// Folder to serve; the root of the configuration's default site
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: Option<PathBuf>,

    /// Configuration file (TOML); flags win over it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// Serve names that begin with a dot, too
    #[arg(long)]
    dotfiles: bool,

    /// Do not list folders that have no index file
    #[arg(long)]
    no_listing: bool,

    /// Follow symbolic links within DIR (the default), never, or anywhere
    #[arg(long, value_name = "RULE", value_parser = one_of(Symlinks::NAMES, Symlinks::from_str))]
    symlinks: Option<Symlinks>,

    /// Where to listen: ADDRESS:PORT, http://ADDRESS:PORT or redirect://ADDRESS:PORT
    ///
    /// Without scheme it is TLS; http:// serves in the clear; redirect:// sends clients to the first TLS listener's
    /// port; nfs:// serves the file's exports. ADDRESS is an IP address ([..] around IPv6), localhost, or * for every address. Can be repeated; replaces
    /// the file's list. Without any, and none in the file, it is localhost:8443 with the development certificate and
    /// *:8443 with certificates of yours.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Network")]
    listen: Vec<ListenAddress>,

    /// Where to serve /healthz and /metrics in the clear: PORT (on 127.0.0.1) or ADDRESS:PORT
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Network")]
    admin: Option<AdminAddress>,

    /// Certificate chain (PEM), once for each --key
    ///
    /// Pairs with the --key of the same position; several pairs are for several algorithms. They replace the
    /// certificates of the default site. Without any, and none in the file, a development certificate for localhost is
    /// made and kept.
    #[arg(long, value_name = "FILE", help_heading = "TLS", value_hint = clap::ValueHint::FilePath)]
    cert: Vec<PathBuf>,

    /// Private key (PEM), once for each --cert
    #[arg(long, value_name = "FILE", help_heading = "TLS", value_hint = clap::ValueHint::FilePath)]
    key: Vec<PathBuf>,

    /// Oldest TLS version to speak
    #[arg(long, value_name = "VERSION", help_heading = "TLS", value_parser = one_of(VERSION_NAMES, parse_version))]
    tls_min: Option<Version>,

    /// Cipher suites to speak, most preferred first, by OpenSSL's or IANA's names
    ///
    /// Separated by , or :, like TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256. Suites of TLS 1.3 and of 1.2 are in
    /// one list, and none that is not listed is spoken.
    #[arg(long, value_name = "LIST", help_heading = "TLS")]
    ciphers: Option<CipherSuites>,

    /// Key exchange groups to speak, most preferred first
    ///
    /// Separated by , or :, out of X25519MLKEM768, X25519, P-256 and P-384.
    #[arg(long, value_name = "LIST", help_heading = "TLS")]
    groups: Option<Groups>,

    /// Ask browsers to come over TLS only: DURATION[,include-subdomains][,preload], like 365d
    #[arg(long, value_name = "DURATION", help_heading = "TLS")]
    hsts: Option<Hsts>,

    #[command(flatten)]
    workers: WorkerFlags,

    /// Log requests to FILE, or to standard output with -
    #[arg(long, value_name = "FILE", help_heading = "Log", value_hint = clap::ValueHint::FilePath)]
    access_log: Option<LogTarget>,

    /// How requests are logged
    #[arg(long, value_name = "FORMAT", help_heading = "Log", value_parser = one_of(LogFormat::NAMES, LogFormat::from_str))]
    log_format: Option<LogFormat>,
}

impl ServeArguments {
    /// Where the settings come from, of the arguments of `command`.
    ///
    /// # Errors
    /// A usage error where there is nothing to serve, or certificates and keys do not pair.
    pub(crate) fn source(&self, command: &'static str) -> Result<Source, UsageError> {
        let certificates = pairs(command, &self.cert, &self.key)?;
        if self.directory.is_none() && self.config.is_none() {
            let message = "give DIR, the folder to serve, or --config FILE, or both";
            return Err(UsageError::new(command, message));
        }
        let flags = Flags {
            directory: self.directory.clone(),
            listen: self.listen.clone(),
            certificates,
            admin: self.admin.map(|admin| admin.0),
            access_log: self.access_log.clone(),
            log_format: self.log_format,
            minimum_version: self.tls_min,
            cipher_suites: self.ciphers.clone(),
            groups: self.groups.clone(),
            no_listing: self.no_listing,
            dotfiles: self.dotfiles,
            symlinks: self.symlinks,
            hsts: self.hsts,
            ..self.workers.flags()
        };
        Ok(Source { file: self.config.clone(), flags })
    }
}

/// What says how many workers there are, where they run and what they encrypt with.
#[derive(Debug, Args)]
pub(crate) struct WorkerFlags {
    /// Number of workers [default: one for each CPU]
    #[arg(long, value_name = "N", help_heading = "Workers", value_parser = worker_count, allow_negative_numbers = true)]
    workers: Option<NonZeroUsize>,

    /// CPUs to pin workers to, as taskset -c writes them: 0-3,8,10-14:2
    #[arg(long, value_name = "LIST", help_heading = "Workers")]
    cpus: Option<CpuList>,

    /// What encrypts the bulk of a connection
    #[arg(long, value_name = "ENGINE", help_heading = "Workers", value_parser = one_of(EngineChoice::NAMES, EngineChoice::from_str))]
    engine: Option<EngineChoice>,

    /// What engines cost on this machine, as `linerate calibrate` measured it: what --engine auto decides by
    #[arg(long, value_name = "FILE", help_heading = "Workers", value_hint = clap::ValueHint::FilePath)]
    calibration: Option<PathBuf>,
}

impl WorkerFlags {
    /// These flags, and no others.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            workers: self.workers,
            cpus: self.cpus.clone(),
            engine: self.engine,
            calibration: self.calibration.clone(),
            ..Flags::default()
        }
    }
}

/// The certificates and keys of `command`, in pairs.
///
/// # Errors
/// There are not as many of the ones as of the others.
pub(crate) fn pairs(
    command: &'static str,
    certificates: &[PathBuf],
    keys: &[PathBuf],
) -> Result<Vec<(PathBuf, PathBuf)>, UsageError> {
    if certificates.len() != keys.len() {
        let message = format!(
            "--cert and --key come in pairs, but there are {} --cert and {} --key",
            certificates.len(),
            keys.len()
        );
        return Err(UsageError::new(command, message));
    }
    Ok(certificates.iter().cloned().zip(keys.iter().cloned()).collect())
}

fn worker_count(text: &str) -> Result<NonZeroUsize, String> {
    match text.parse::<NonZeroUsize>() {
        Ok(count) if count.get() <= 1024 => Ok(count),
        _ => Err("an integer from 1 to 1024 is needed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_fits_a_terminal() {
        let mut root = Cli::command().term_width(100);
        root.build();
        fits(&mut root);
    }

    fn fits(command: &mut clap::Command) {
        for line in command.render_help().to_string().lines() {
            assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
        }
        command.get_subcommands_mut().for_each(fits);
    }
}
