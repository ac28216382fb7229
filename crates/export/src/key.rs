//! The key that authenticates file handles: made once, kept in the state directory, so that clients keep their files over a
//! restart.

use crate::ExportError;
use aws_lc_rs::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use std::{
    fmt,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

const KEY_BYTES: usize = 32;
/// The name of its file.
const FILE_NAME: &str = "nfs-handle-key";
/// What of an HMAC-SHA-256 a handle has: half, as RFC 2104 section 5 allows.
pub(crate) const AUTHENTICATOR_BYTES: usize = 16;

/// The key.
#[derive(Clone)]
pub struct HandleKey(hmac::Key);

impl HandleKey {
    /// The key in `directory`; made if there is none. The directory is created for this user alone. Of two processes that
    /// start together both get the same.
    ///
    /// # Errors
    /// [`ExportError::Key`] and [`ExportError::NotKey`].
    pub fn kept_in(directory: &Path) -> Result<Self, ExportError> {
        let file = directory.join(FILE_NAME);
        let fault = |source| ExportError::Key { file: file.clone(), source };
        match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(directory, &file).map_err(fault)?;
                Self::of(&fs::read(&file).map_err(fault)?, &file)
            }
            read => Self::of(&read.map_err(fault)?, &file),
        }
    }

    /// A key that no other process has.
    ///
    /// # Errors
    /// [`ExportError::Key`] if there is no randomness.
    pub fn ephemeral() -> Result<Self, ExportError> {
        let bytes: [u8; KEY_BYTES] =
            random().map_err(|source| ExportError::Key { file: FILE_NAME.into(), source })?;
        Self::of(&bytes, Path::new(FILE_NAME))
    }

    fn of(bytes: &[u8], file: &Path) -> Result<Self, ExportError> {
        if bytes.len() != KEY_BYTES {
            return Err(ExportError::NotKey { file: file.to_owned() });
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// The authenticator of `message`.
    pub(crate) fn authenticator(&self, message: &[u8]) -> [u8; AUTHENTICATOR_BYTES] {
        let mut authenticator = [0; AUTHENTICATOR_BYTES];
        for (own, byte) in authenticator.iter_mut().zip(hmac::sign(&self.0, message).as_ref()) {
            *own = *byte;
        }
        authenticator
    }

    /// Whether `authenticator` is that of `message`, in a time that does not tell how much of it is right.
    pub(crate) fn is_authentic(&self, message: &[u8], authenticator: &[u8]) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.authenticator(message), authenticator).is_ok()
    }
}

/// A random number.
pub(crate) fn seed() -> Result<u128, ExportError> {
    let bytes = random().map_err(|source| ExportError::Key { file: FILE_NAME.into(), source })?;
    Ok(u128::from_be_bytes(bytes))
}

fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system gives no randomness"))?;
    Ok(bytes)
}

/// Writes a new key beside its place and links it there: whole or not at all, and never over another's.
fn make(directory: &Path, file: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let draft = directory.join(format!("{FILE_NAME}.{}", std::process::id()));
    let written = (|| {
        let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        new.write_all(&random::<KEY_BYTES>()?)?;
        new.sync_all()?;
        match fs::hard_link(&draft, file) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    })();
    // The key has its own name by now, or there is none.
    let _ = fs::remove_file(&draft);
    written
}

impl fmt::Debug for HandleKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HandleKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_is_its_users_own() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("state/linerate");
        let first = HandleKey::kept_in(&directory).unwrap();
        let again = HandleKey::kept_in(&directory).unwrap();
        assert_eq!(first.authenticator(b"message"), again.authenticator(b"message"));
        assert!(again.is_authentic(b"message", &first.authenticator(b"message")));
        assert!(!again.is_authentic(b"massage", &first.authenticator(b"message")));
        let mode = fs::metadata(directory.join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "no draft is left");
        let other = HandleKey::ephemeral().unwrap();
        assert_ne!(other.authenticator(b"message"), first.authenticator(b"message"));
    }

    #[test]
    fn what_is_no_key_is_not_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE_NAME);
        fs::write(&file, "short").unwrap();
        assert!(matches!(HandleKey::kept_in(directory.path()), Err(ExportError::NotKey { .. })));
        assert_eq!(fs::read(&file).unwrap(), b"short");
        let beneath_a_file = file.join("deeper");
        assert!(matches!(HandleKey::kept_in(&beneath_a_file), Err(ExportError::Key { .. })));
    }
}
