//! PEM files: a certificate chain out of one, a private key out of the other, and what to say when it isn't there.

use crate::TlsError;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{PemObject, SectionKind},
};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};
use zeroize::Zeroizing;

/// No chain or key comes near this size; a file that does is something else.
const FILE_LIMIT_BYTES: u64 = 1 << 20;

/// The certificates in `file`, in their order; at least one. Other blocks (a key, parameters) are passed over.
pub(crate) fn read_chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(file)?;
    let chain = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::NotPem { file: file.to_owned(), reason: error.to_string() })?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { file: file.to_owned(), holds: holds(&text, "KEY") });
    }
    Ok(chain)
}

/// The first private key in `file`: PKCS#8, SEC 1 or PKCS#1.
pub(crate) fn read_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(file)?;
    if is_encrypted(&text) {
        return Err(TlsError::KeyEncrypted { file: file.to_owned() });
    }
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(&text) {
        let (kind, der) =
            section.map_err(|error| TlsError::NotPem { file: file.to_owned(), reason: error.to_string() })?;
        if let Some(key) = PrivateKeyDer::from_pem(kind, der) {
            return Ok(key);
        }
    }
    Err(TlsError::NoKey { file: file.to_owned(), holds: holds(&text, "CERTIFICATE") })
}

/// Whether a pass phrase protects the key: as PKCS#8 says it, or as OpenSSL did before.
fn is_encrypted(text: &[u8]) -> bool {
    String::from_utf8_lossy(text).lines().any(|line| {
        ["-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"].contains(&line.trim())
    })
}

/// The file's bytes, wiped after use. A FIFO or device is refused: opening one could block for ever.
fn read(file: &Path) -> Result<Zeroizing<Vec<u8>>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { file: file.to_owned(), source };
    let metadata = std::fs::metadata(file).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
    }
    if metadata.len() > FILE_LIMIT_BYTES {
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidData, "it is larger than 1 MiB")));
    }
    // Room for all of it at once: a buffer that grew would leave copies of the key behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(FILE_LIMIT_BYTES.min(metadata.len() + 1) as usize));
    File::open(file)
        .and_then(|opened| opened.take(metadata.len()).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    Ok(bytes)
}

/// The labels of the PEM blocks in `text`.
fn labels(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| line.trim().strip_prefix("-----BEGIN ")?.strip_suffix("-----").map(str::to_owned))
        .collect()
}

/// What the file holds, as the end of an error message; `swapped` in a label suggests that the files were.
fn holds(text: &[u8], swapped: &str) -> String {
    let labels = labels(text);
    if text.is_empty() {
        return "it is empty".to_owned();
    }
    let Some(first) = labels.first() else {
        return "it holds no PEM block (is it DER? convert it with openssl)".to_owned();
    };
    let count = labels.iter().filter(|label| *label == first).count();
    let blocks = if count == 1 { format!("a {first} block") } else { format!("{count} {first} blocks") };
    let question =
        if first.contains(swapped) { ": did you swap the certificate's file and the key's?" } else { "" };
    format!("it holds {blocks}{question}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file.pem");
        std::fs::write(&file, text).unwrap();
        (directory, file)
    }

    const BLOCK: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

    #[test]
    fn a_key_file_without_a_key_says_what_it_holds() {
        for (text, words) in [
            (String::new(), "it is empty"),
            ("hello\n".to_owned(), "it holds no PEM block"),
            (BLOCK.to_owned(), "it holds a CERTIFICATE block: did you swap"),
            (BLOCK.repeat(2), "it holds 2 CERTIFICATE blocks: did you swap"),
            (BLOCK.replace("CERTIFICATE", "DH PARAMETERS"), "it holds a DH PARAMETERS block"),
        ] {
            let (_directory, file) = written(&text);
            let message = read_key(&file).unwrap_err().to_string();
            assert!(
                message.contains("file.pem: no private key found; ") && message.contains(words),
                "{message}"
            );
        }
    }

    #[test]
    fn a_certificate_file_without_a_certificate_says_what_it_holds() {
        let (_directory, file) = written(&BLOCK.replace("CERTIFICATE", "PRIVATE KEY"));
        let message = read_chain(&file).unwrap_err().to_string();
        assert!(message.contains("it holds a PRIVATE KEY block: did you swap"), "{message}");
    }

    #[test]
    fn an_encrypted_key_is_recognised() {
        for text in [
            BLOCK.replace("CERTIFICATE", "ENCRYPTED PRIVATE KEY"),
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"
                .to_owned(),
        ] {
            let (_directory, file) = written(&text);
            let error = read_key(&file).unwrap_err();
            assert!(matches!(error, TlsError::KeyEncrypted { .. }), "{error}");
            assert!(error.to_string().contains("openssl pkey -in"));
        }
    }

    #[test]
    fn what_cannot_be_a_pem_file_is_refused() {
        let (directory, file) = written("-----BEGIN CERTIFICATE-----\nAAAA\n");
        assert!(matches!(read_chain(&file), Err(TlsError::NotPem { .. })));
        assert!(matches!(read_chain(&directory.path().join("none")), Err(TlsError::Unreadable { .. })));
        assert!(read_chain(directory.path()).unwrap_err().to_string().contains("not a regular file"));
        std::fs::write(&file, vec![b'\n'; FILE_LIMIT_BYTES as usize + 1]).unwrap();
        assert!(read_chain(&file).unwrap_err().to_string().contains("1 MiB"));
    }
}
