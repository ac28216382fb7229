//! PEM files: a certificate chain out of one, a private key out of the other, and what to say when it isn't there.

use crate::TlsError;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject, SectionKind},
};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};
use zeroize::Zeroizing;

/// No chain or key comes near this size; a file that does is something else.
const FILE_LIMIT_BYTES: u64 = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The certificates in `file`, in their order; at least one. Other blocks (a key, parameters) are passed over.
pub(crate) fn read_chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(file)?;
    let chain = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| not_pem(file, &error))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate {
            file: file.to_owned(),
            holds: holds(file, &text, Wanted::Certificate),
        });
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
        let (kind, der) = section.map_err(|error| not_pem(file, &error))?;
        if let Some(key) = PrivateKeyDer::from_pem(kind, der) {
            return Ok(key);
        }
    }
    Err(TlsError::NoKey { file: file.to_owned(), holds: holds(file, &text, Wanted::Key) })
}

/// Where the reader stumbled.
fn not_pem(file: &Path, error: &pem::Error) -> TlsError {
    let text = |line: &[u8]| String::from_utf8_lossy(line).trim().to_owned();
    let reason = match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            format!("it is cut off: the line -----END {}----- is missing", text(end_marker))
        }
        pem::Error::IllegalSectionStart { line } => format!("the line \"{}\" begins no block", text(line)),
        pem::Error::Base64Decode(_) => {
            "what stands between -----BEGIN and -----END is not base64: it is damaged".to_owned()
        }
        other => other.to_string(),
    };
    TlsError::NotPem { file: file.to_owned(), reason }
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
    // Editors on Windows put a byte order mark in front, which would hide the first block.
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes[..BYTE_ORDER_MARK.len()].fill(b'\n');
    }
    Ok(bytes)
}

/// The labels of the PEM blocks in `text`.
fn labels(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| line.trim().strip_prefix("-----BEGIN ")?.strip_suffix("-----").map(str::to_owned))
        .collect()
}

/// What a file was read for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Certificate,
    Key,
}

/// What the file holds instead, and what to do, as the end of an error message.
fn holds(file: &Path, text: &[u8], wanted: Wanted) -> String {
    if text.is_empty() {
        return "it is empty".to_owned();
    }
    let labels = labels(text);
    let Some(first) = labels.first() else { return format!("it {}", without_blocks(file, text, wanted)) };
    let count = labels.iter().filter(|label| *label == first).count();
    let blocks = match count {
        1 if first.starts_with(['E', 'O']) => format!("an {first} block"),
        1 => format!("a {first} block"),
        _ => format!("{count} {first} blocks"),
    };
    let advice = match (wanted, first.as_str()) {
        (_, "CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST") => {
            ": that is what an authority is asked for a certificate by, and its answer is needed"
        }
        (_, "OPENSSH PRIVATE KEY") => ": convert a copy of it with `ssh-keygen -p -m PEM -f COPY`",
        (Wanted::Certificate, label) if label.contains("KEY") => SWAPPED,
        (Wanted::Key, label) if label.contains("CERTIFICATE") => SWAPPED,
        _ => "",
    };
    format!("it holds {blocks}{advice}")
}

const SWAPPED: &str = ": did you swap the certificate's file and the key's?";

/// What a file without any PEM block is.
fn without_blocks(file: &Path, text: &[u8], wanted: Wanted) -> String {
    const SEQUENCE: u8 = 0x30;
    /// A long SEQUENCE that begins with version 3, as no certificate and no key does (RFC 7292 4).
    const PKCS12: [u8; 3] = [0x02, 0x01, 0x03];
    let name = file.display();
    match (text, wanted) {
        ([SEQUENCE, 0x82, _, _, version @ ..], _) if version.starts_with(&PKCS12) => {
            format!("is PKCS#12; make PEM of it with `openssl pkcs12 -in {name} -nodes -out {name}.pem`")
        }
        ([SEQUENCE, ..], Wanted::Certificate) => {
            format!("is DER; make PEM of it with `openssl x509 -inform DER -in {name} -out {name}.pem`")
        }
        ([SEQUENCE, ..], Wanted::Key) => {
            format!("is DER; make PEM of it with `openssl pkey -inform DER -in {name} -out {name}.pem`")
        }
        ([0xFF, 0xFE, ..] | [0xFE, 0xFF, ..], _) => "is UTF-16: save it as plain text (ASCII)".to_owned(),
        _ => "holds no PEM block, which would begin with -----BEGIN".to_owned(),
    }
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
    fn what_is_not_pem_is_told_apart() {
        let certificate_message = |text: &[u8]| {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("file");
            std::fs::write(&file, text).unwrap();
            read_chain(&file).unwrap_err().to_string()
        };
        for (text, words) in [
            (
                &[0x30, 0x82, 1, 0, 0x30, 0x81][..],
                "it is DER; make PEM of it with `openssl x509 -inform DER -in ",
            ),
            (&[0x30, 0x82, 1, 0, 2, 1, 3, 0x30], "it is PKCS#12; make PEM of it with `openssl pkcs12 -in "),
            (b"\xFF\xFE-\0-\0", "it is UTF-16: save it as plain text"),
            (
                b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
                "its answer is needed",
            ),
        ] {
            let message = certificate_message(text);
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn a_byte_order_mark_and_carriage_returns_are_no_fault() {
        let (_directory, file) = written(&format!("\u{FEFF}{}", BLOCK.replace('\n', "\r\n")));
        assert_eq!(read_chain(&file).unwrap().len(), 1);
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
        let message = read_chain(&file).unwrap_err().to_string();
        assert!(
            message.contains("it is cut off: the line -----END CERTIFICATE----- is missing"),
            "{message}"
        );
        std::fs::write(&file, BLOCK.replace("AAAA", "A!A")).unwrap();
        let message = read_chain(&file).unwrap_err().to_string();
        assert!(message.contains("is not base64"), "{message}");
        assert!(matches!(read_chain(&directory.path().join("none")), Err(TlsError::Unreadable { .. })));
        assert!(read_chain(directory.path()).unwrap_err().to_string().contains("not a regular file"));
        std::fs::write(&file, vec![b'\n'; FILE_LIMIT_BYTES as usize + 1]).unwrap();
        assert!(read_chain(&file).unwrap_err().to_string().contains("1 MiB"));
    }
}
