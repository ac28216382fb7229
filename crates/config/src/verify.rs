//! Looks at the files that the settings name.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::{
    AccessLog, AuthorityFile, CalibrationFile, CertificateFiles, Error, Fault, LogTarget, Origin, Settings,
};

impl Settings {
    /// Checks that every root is a folder that can be read, every certificate and key and the calibration a file that can
    /// be read, and the access log's folder is there. What is in the files is not looked at.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every fault, each with the place that names the file.
    pub fn verify_files(&self) -> Result<(), Error> {
        let mut faults = Vec::new();
        for site in &self.sites {
            verify_folder(&site.root, &site.root_origin, "served", &mut faults);
            for pair in &site.certificates {
                verify_pair(pair, &mut faults);
            }
        }
        for export in &self.exports {
            verify_folder(&export.directory, &export.directory_origin, "exported", &mut faults);
        }
        for pair in &self.nfs.certificates {
            verify_pair(pair, &mut faults);
        }
        if let Some(AuthorityFile { path, origin }) = &self.nfs.client_authorities
            && let Err(reason) = readable_file(path)
        {
            push(&mut faults, origin, format!("the authorities {} cannot be read: {reason}", path.display()));
        }
        if let Some(CalibrationFile { path, origin }) = &self.placement.calibration
            && let Err(reason) = readable_file(path)
        {
            let message = format!(
                "the calibration {} cannot be read: {reason}; `linerate calibrate` makes one",
                path.display()
            );
            push(&mut faults, origin, message);
        }
        if let Some(AccessLog { target: LogTarget::File(file), origin, .. }) = &self.access_log {
            verify_log(file, origin, &mut faults);
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::Invalid { faults }) }
    }
}

fn verify_folder(folder: &Path, origin: &Origin, what: &str, faults: &mut Vec<Fault>) {
    let reason = match fs::metadata(folder) {
        Ok(metadata) if !metadata.is_dir() => Some("it is no folder".to_owned()),
        Ok(_) => fs::read_dir(folder).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(reason) = reason {
        push(faults, origin, format!("the folder {} cannot be {what}: {reason}", folder.display()));
    }
}

fn verify_pair(pair: &CertificateFiles, faults: &mut Vec<Fault>) {
    let files = [("certificate", &pair.certificate, &pair.origin), ("key", &pair.key, &pair.key_origin)];
    for (what, path, origin) in files {
        if let Err(reason) = readable_file(path) {
            push(faults, origin, format!("the {what} {} cannot be read: {reason}", path.display()));
        }
    }
}

/// Opens the file, unless that could block.
fn readable_file(path: &Path) -> io::Result<()> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    File::open(path).map(drop)
}

fn verify_log(file: &Path, origin: &Origin, faults: &mut Vec<Fault>) {
    let folder = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let reason = match fs::metadata(folder) {
        Ok(metadata) if !metadata.is_dir() => Some(format!("{} is no folder", folder.display())),
        Ok(_) => file.is_dir().then(|| "it is a folder".to_owned()),
        Err(error) => Some(format!("{}: {error}", folder.display())),
    };
    if let Some(reason) = reason {
        push(faults, origin, format!("the access log {} cannot be written: {reason}", file.display()));
    }
}

fn push(faults: &mut Vec<Fault>, origin: &Origin, message: String) {
    let fault = Fault { origin: origin.clone(), message };
    // What [site_defaults] names is looked at once for each site, but wrong once.
    if !faults.contains(&fault) {
        faults.push(fault);
    }
}
