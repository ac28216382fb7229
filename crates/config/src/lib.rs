//! What the operator said: a TOML file and flags become one validated [`Settings`] value.
//!
//! [`Source`] says where to read: a configuration file, [`Flags`], or both. [`Source::load`] parses, applies the
//! flags over the file, checks what can be checked without touching the files named in it, and reports *every*
//! fault with its place (`FILE:LINE:COLUMN`, or the flag). [`Settings::verify_files`] then looks at the file
//! system. Whether a key matches its certificate is not known here; [`CertificateFiles::origin`] keeps the place
//! for the message about one that does not.
//!
//! The file's keys are documented in one table, [`KEYS`]; the reader refuses a key that is not in it, and the tests
//! hold every key's documented default against the code's.
//!
//! # How values are written
//! Durations and sizes are strings that carry their unit: `"75s"`, `"500ms"`, `"10m"`, `"1h"`, `"365d"`; `"512KiB"`,
//! `"1GiB"`, `"4096B"`. Counts are integers. Paths are relative to the folder of the file that holds them; paths in
//! flags are relative to the current folder.
//!
//! # Flags over file
//! * A flag that names one value (`--workers`, `--engine`, `--admin`, ...) replaces the file's.
//! * `--listen`, `--ciphers` and `--groups` replace the file's whole list; they never add to it.
//! * DIR and `--cert`/`--key` concern the default site: the one without `names`, else the only site there is. DIR
//!   makes a default site where there is none. `--cert`/`--key` replace all of that site's certificates.
//! * `--no-listing`, `--dotfiles`, `--symlinks` and `--hsts` concern every site.
//!
//! # What is listened on when nothing says so
//! For sites `localhost:8443` (127.0.0.1 and ::1) without certificates, because a development certificate is good for
//! nothing else; `*:8443` (0.0.0.0 and ::) with certificates. The port is the same, and never a privileged one. For exports
//! port 2049, by the same rule; `*` also where no export has TLS.

// What the network sends must not end a thread: a fault is a value (INV-PEER-1).
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::todo)
)]

mod choice;
mod cpu_list;
mod document;
mod error;
mod export;
mod file;
mod flags;
mod header;
mod keys;
mod listen;
mod network;
mod path_glob;
mod quantity;
mod rules;
mod settings;
mod site;
mod site_name;
mod source;
mod tls_names;
mod verify;

pub use choice::{EngineChoice, ExportIdentity, ExportTls, LogFormat, Symlinks};
pub use cpu_list::{CpuList, cpu_ranges};
pub use error::{Error, Fault, Origin, Position};
pub use export::{AuthorityFile, Export, ExportArgument, ExportPolicy, Nfs};
pub use flags::{Flags, NfsFlags};
pub use header::Hsts;
pub use keys::{KEYS, Key, Section};
pub use listen::{AdminAddress, ListenAddress, Listener, ListenerKind};
pub use network::Network;
pub use path_glob::PathGlob;
pub use quantity::{duration_text, parse_duration_ms, parse_size_bytes, size_text};
pub use settings::{
    AccessLog, CalibrationFile, KernelEngine, Limits, LogTarget, Placement, Settings, Timeouts, Tls,
    UserEngine,
};
pub use site::{CacheControlRule, CertificateFiles, HeaderRule, Site, SitePolicy};
pub use source::Source;
pub use tls_names::{CipherSuites, Groups, VERSION_NAMES, parse_version};
