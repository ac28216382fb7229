//! A certificate for localhost, for the first minutes with linerate: made once, kept, renewed when it runs out.

use crate::{Certificate, CertificateFiles, TlsError, TlsPolicy};
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    date_time_ymd,
};
use std::{
    ffi::OsString,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use zeroize::Zeroizing;

/// Browsers and macOS refuse leaf certificates of more than 398 days.
const VALIDITY: Duration = Duration::from_secs(397 * 86_400);

/// It is made anew when less than this is left of it.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 86_400);

/// Clocks are not all right: it is valid from a day before it was made.
const CLOCK_ALLOWANCE: Duration = Duration::from_secs(86_400);

/// What it is for. Not `*.localhost`: verifiers (OpenSSL, webpki, browsers) take no wildcard right under a top-level
/// name.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A certificate for `localhost`, `127.0.0.1` and `::1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevelopmentCertificate {
    /// Where it and its key are. The certificate is its own root: `curl --cacert` takes it.
    pub files: CertificateFiles,
    /// SHA-256 over the certificate, as colon-separated upper-case hexadecimal.
    pub sha256_fingerprint: String,
    /// The end of its validity.
    pub not_after: SystemTime,
    /// Whether it was made by this call.
    pub is_new: bool,
}

/// Where linerate keeps what it makes: systemd's `STATE_DIRECTORY`, else `linerate` under `XDG_STATE_HOME`, else under
/// `~/.local/state`; `/var/lib/linerate` for root without a home.
///
/// # Errors
/// [`TlsError::NoStateDirectory`] if none of the variables is set and the user is not root.
pub fn state_directory() -> Result<PathBuf, TlsError> {
    state_directory_of(|name| std::env::var_os(name), linerate_os::process::is_root)
}

fn state_directory_of(
    variable: impl Fn(&str) -> Option<OsString>,
    is_root: impl Fn() -> bool,
) -> Result<PathBuf, TlsError> {
    // The XDG specification: a relative path is to be ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(directory) = absolute("STATE_DIRECTORY") {
        return Ok(directory);
    }
    if let Some(directory) = absolute("XDG_STATE_HOME") {
        return Ok(directory.join("linerate"));
    }
    if let Some(home) = absolute("HOME") {
        return Ok(home.join(".local/state/linerate"));
    }
    if is_root() { Ok(PathBuf::from("/var/lib/linerate")) } else { Err(TlsError::NoStateDirectory) }
}

/// The development certificate kept in `directory`; made, or made anew, if there is none, it is damaged or it runs out
/// within 30 days. The directory is created, for this user alone.
///
/// # Errors
/// [`TlsError::StateUnwritable`] if it cannot be kept there.
pub fn development_certificate(directory: &Path) -> Result<DevelopmentCertificate, TlsError> {
    development_certificate_at(directory, SystemTime::now())
}

fn development_certificate_at(directory: &Path, now: SystemTime) -> Result<DevelopmentCertificate, TlsError> {
    let files = CertificateFiles {
        certificate: directory.join("localhost-cert.pem"),
        key: directory.join("localhost-key.pem"),
    };
    if let Some(kept) = load_if_good(&files, now) {
        return Ok(described(&files, &kept, false));
    }
    create_private_directory(directory)
        .map_err(|source| TlsError::StateUnwritable { file: directory.to_owned(), source })?;
    let key = kept_or_new_key(&files.key)?;
    let certificate = self_signed(&key, now).map_err(|error| TlsError::Crypto(error.to_string()))?;
    write_atomically(&files.certificate, certificate.as_bytes(), 0o644)?;
    let certificate = Certificate::load(&files, &TlsPolicy::default().provider(&[]))?;
    Ok(described(&files, &certificate, true))
}

fn described(files: &CertificateFiles, certificate: &Certificate, is_new: bool) -> DevelopmentCertificate {
    DevelopmentCertificate {
        files: files.clone(),
        sha256_fingerprint: certificate.sha256_fingerprint(),
        not_after: certificate.not_after(),
        is_new,
    }
}

fn load_if_good(files: &CertificateFiles, now: SystemTime) -> Option<Certificate> {
    let certificate = Certificate::load(files, &TlsPolicy::default().provider(&[])).ok()?;
    let is_good = certificate.warnings(now).is_empty()
        && certificate.not_after() > now + RENEW_BEFORE
        && HOSTS.iter().all(|host| certificate.covers(host));
    is_good.then_some(certificate)
}

/// The key in `file`, or a new one written there. Two processes that start together end up with the same key: the
/// file is linked into place, which fails for the second, so that each certificate they write fits.
fn kept_or_new_key(file: &Path) -> Result<KeyPair, TlsError> {
    if let Some(key) = read_key(file) {
        return Ok(key);
    }
    let unwritable = |source| TlsError::StateUnwritable { file: file.to_owned(), source };
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritable(error)),
        _ => {}
    }
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
        .map_err(|error| TlsError::Crypto(error.to_string()))?;
    let temporary = temporary_name(file);
    let pem = Zeroizing::new(key.serialize_pem());
    write_new(&temporary, pem.as_bytes(), 0o600).map_err(unwritable)?;
    let linked = fs::hard_link(&temporary, file);
    let removed = fs::remove_file(&temporary);
    match linked {
        Ok(()) => {
            removed.map_err(unwritable)?;
            Ok(key)
        }
        Err(error) => read_key(file).ok_or_else(|| unwritable(error)),
    }
}

fn read_key(file: &Path) -> Option<KeyPair> {
    let pem = Zeroizing::new(fs::read_to_string(file).ok()?);
    KeyPair::from_pem(&pem).ok()
}

/// As PEM. No CA: it vouches for itself alone.
fn self_signed(key: &KeyPair, now: SystemTime) -> Result<String, rcgen::Error> {
    // rcgen tells addresses from names.
    let mut params = CertificateParams::new(HOSTS.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, "localhost (linerate development)");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    // Whole seconds: X.509 has no others.
    let now = date_time_ymd(1970, 1, 1) + Duration::from_secs(now.as_secs());
    params.not_before = now - CLOCK_ALLOWANCE;
    params.not_after = now + (VALIDITY - CLOCK_ALLOWANCE);
    Ok(params.self_signed(key)?.pem())
}

fn create_private_directory(directory: &Path) -> io::Result<()> {
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        other => other,
    }
}

fn write_atomically(file: &Path, contents: &[u8], mode: u32) -> Result<(), TlsError> {
    let temporary = temporary_name(file);
    write_new(&temporary, contents, mode)
        .and_then(|()| fs::rename(&temporary, file))
        .map_err(|source| TlsError::StateUnwritable { file: file.to_owned(), source })
}

/// Beside the file, so that it can be renamed, and this process's own.
fn temporary_name(file: &Path) -> PathBuf {
    file.with_extension(format!("{}.tmp", std::process::id()))
}

fn write_new(file: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    let mut opened = options.open(file)?;
    opened.write_all(contents)?;
    opened.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_made_once_and_kept_private() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("state/linerate");
        let made = development_certificate(&directory).unwrap();
        assert!(made.is_new);
        assert_eq!(made.sha256_fingerprint.len(), 32 * 3 - 1);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&made.files.key), 0o600);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2, "nothing else is left behind");
        let again = development_certificate(&directory).unwrap();
        assert_eq!(again, DevelopmentCertificate { is_new: false, ..made });
    }

    #[test]
    fn it_covers_localhost_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let made = development_certificate(directory.path()).unwrap();
        let certificate = Certificate::load(&made.files, &TlsPolicy::default().provider(&[])).unwrap();
        for host in HOSTS.into_iter().chain(["[::1]", "LOCALHOST", "localhost."]) {
            assert!(certificate.covers(host), "{host}");
        }
        for host in
            ["example.org", "127.0.0.2", "a.b.localhost", "localhost.example.org", "", "[", "a b", "::2"]
        {
            assert!(!certificate.covers(host), "{host}");
        }
        assert_eq!(certificate.warnings(SystemTime::now()), []);
    }

    #[test]
    fn it_is_renewed_in_its_last_month_under_the_same_key() {
        let directory = tempfile::tempdir().unwrap();
        let made = development_certificate(directory.path()).unwrap();
        let key = fs::read(&made.files.key).unwrap();
        let before = made.not_after - RENEW_BEFORE - Duration::from_secs(5);
        assert!(!development_certificate_at(directory.path(), before).unwrap().is_new);
        let renewed = development_certificate_at(directory.path(), made.not_after - RENEW_BEFORE).unwrap();
        assert!(renewed.is_new && renewed.not_after > made.not_after);
        assert_eq!(fs::read(&made.files.key).unwrap(), key);
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        for spoil in [
            |files: &CertificateFiles| fs::write(&files.key, "no key").unwrap(),
            |files: &CertificateFiles| fs::write(&files.certificate, "no certificate").unwrap(),
            |files: &CertificateFiles| fs::remove_file(&files.key).unwrap(),
            |files: &CertificateFiles| fs::remove_file(&files.certificate).unwrap(),
        ] {
            let directory = tempfile::tempdir().unwrap();
            spoil(&development_certificate(directory.path()).unwrap().files);
            assert!(development_certificate(directory.path()).unwrap().is_new);
            assert!(!development_certificate(directory.path()).unwrap().is_new);
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let message = development_certificate(&file).unwrap_err().to_string();
        assert!(message.contains("file") && message.contains("written"), "{message}");
    }

    #[test]
    fn the_state_directory_follows_the_environment() {
        let of = |set: &[(&str, &str)], is_root: bool| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            };
            state_directory_of(variable, || is_root)
        };
        let home = ("HOME", "/home/ada");
        assert_eq!(of(&[home], false).unwrap(), Path::new("/home/ada/.local/state/linerate"));
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "/s")], false).unwrap(), Path::new("/s/linerate"));
        assert_eq!(
            of(&[home, ("XDG_STATE_HOME", "s")], false).unwrap(),
            Path::new("/home/ada/.local/state/linerate")
        );
        assert_eq!(of(&[home, ("STATE_DIRECTORY", "/var/lib/l")], true).unwrap(), Path::new("/var/lib/l"));
        assert_eq!(of(&[], true).unwrap(), Path::new("/var/lib/linerate"));
        assert!(matches!(of(&[], false), Err(TlsError::NoStateDirectory)));
    }
}
