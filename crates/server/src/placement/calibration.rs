//! Where costs are from: a calibration file that fits this machine, or published figures.

use linerate_config::{CalibrationFile, Settings};
use linerate_os::adapter;
use linerate_placement::{Calibration, Costs, Machine, NicFigures};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file larger than this is no calibration.
const LIMIT_BYTES: u64 = 1 << 20;

/// Where costs are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Published figures: nothing was said.
    Defaults,
    /// A file; `without` is why not what it says of adapters.
    Calibrated { path: PathBuf, measured_at: String, without: Option<String> },
    /// Published figures, because the file is about another machine.
    Misfit { path: PathBuf, why: String },
}

impl Basis {
    /// In a few words.
    pub(crate) fn short(&self) -> &'static str {
        match self {
            Self::Calibrated { .. } => "calibration",
            Self::Defaults | Self::Misfit { .. } => "published figures",
        }
    }

    /// In a sentence.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Defaults => "published figures; `linerate calibrate` measures this machine".to_owned(),
            Self::Calibrated { path, measured_at, without } => {
                let but = if without.is_some() { "; of adapters published figures" } else { "" };
                format!("{}, measured at {measured_at}{but}", path.display())
            }
            Self::Misfit { path, why } => format!("published figures; of {}: {why}", path.display()),
        }
    }

    /// Why not all of a file is used, in a sentence.
    pub(crate) fn misfit(&self) -> Option<String> {
        match self {
            Self::Misfit { path, why } | Self::Calibrated { path, without: Some(why), .. } => {
                Some(format!("the calibration {}: {why}", path.display()))
            }
            Self::Defaults | Self::Calibrated { without: None, .. } => None,
        }
    }
}

/// Where `linerate calibrate` writes if nobody says otherwise, and where a server looks that is told of no other file.
/// `None` where no state directory is known.
#[must_use]
pub fn default_calibration() -> Option<PathBuf> {
    Some(linerate_tls::state_directory().ok()?.join("calibration.toml"))
}

/// Reads the calibration that the settings name, else the one in the state directory if there is one. One about another
/// machine is noted and not used.
///
/// # Errors
/// A file that the settings name and that is not there or has a fault, with its place. One that they do not name is noted
/// and not used.
pub(crate) fn load(settings: &Settings) -> Result<(Basis, Costs), String> {
    let (kernel, cpu) = linerate_environment::kernel_and_processor();
    let driver_of = |device: &str| adapter::driver(device).ok().map(|driver| driver.name);
    load_for(
        settings,
        default_calibration(),
        &Here { machine: Machine { kernel, cpu }, driver_of: &driver_of },
    )
}

/// What a file is held against.
struct Here<'a> {
    machine: Machine,
    /// The driver of the interface of this name, if there is one.
    driver_of: &'a dyn Fn(&str) -> Option<String>,
}

fn load_for(
    settings: &Settings,
    default: Option<PathBuf>,
    here: &Here<'_>,
) -> Result<(Basis, Costs), String> {
    if let Some(CalibrationFile { path, origin }) = &settings.placement.calibration {
        return read(path, here)
            .map_err(|fault| format!("{origin}: the calibration {}{fault}", path.display()));
    }
    // One that may be there and cannot be looked at is worth a word.
    let Some(path) = default.filter(|path| !matches!(path.try_exists(), Ok(false))) else {
        return Ok((Basis::Defaults, Costs::defaults()));
    };
    Ok(read(&path, here).unwrap_or_else(|fault| {
        let why = fault.trim_start_matches([':', ' ']).to_owned();
        (Basis::Misfit { path, why }, Costs::defaults())
    }))
}

/// The error continues a sentence that begins with the file.
fn read(path: &Path, here: &Here<'_>) -> Result<(Basis, Costs), String> {
    let unreadable = |why: String| format!(" cannot be read: {why}; `linerate calibrate` makes one");
    let length_bytes = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
    if length_bytes > LIMIT_BYTES {
        return Err(unreadable(format!("it has {length_bytes} bytes, which is no calibration")));
    }
    let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let calibration = Calibration::parse(&text).map_err(|error| format!(": {error}"))?;
    let path = path.to_owned();
    if let Some(misfit) = calibration.misfit(&here.machine) {
        return Ok((Basis::Misfit { path, why: misfit.to_string() }, Costs::defaults()));
    }
    let measured_at = calibration.measured_at.clone();
    let stray = |nic: &NicFigures| nic.misfit((here.driver_of)(&nic.device).as_deref());
    let without = calibration.nic.as_ref().and_then(stray);
    let calibration = if without.is_some() { calibration.without_adapter() } else { calibration };
    Ok((Basis::Calibrated { path, measured_at, without }, Costs::from(&calibration)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_config::Flags;
    use linerate_placement::{CALIBRATION_SCHEMA, Cipher, Engine, EngineFigures};

    /// This machine: it has an adapter, eth0.
    fn here() -> Here<'static> {
        let machine = Machine { kernel: "Linux 6.12".to_owned(), cpu: "a processor".to_owned() };
        Here { machine, driver_of: &|device| (device == "eth0").then(|| "mlx5_core".to_owned()) }
    }

    /// A file by which the kernel engine costs nothing for each byte.
    fn text() -> String {
        text_with(None)
    }

    /// The same, measured with an adapter by which bytes cost nothing either.
    fn text_with(nic: Option<NicFigures>) -> String {
        let costs = Costs::defaults();
        let user =
            EngineFigures::new(Engine::User, Cipher::Aes128Gcm, costs.of(Engine::User, Cipher::Aes128Gcm));
        let kernel = EngineFigures { engine: "kernel".to_owned(), per_byte_ns: 0.0, ..user.clone() };
        let mut engines = vec![user.clone(), kernel];
        if nic.is_some() {
            engines.push(EngineFigures { engine: "nic".to_owned(), per_byte_ns: 0.0, ..user });
        }
        let calibration = Calibration {
            schema: CALIBRATION_SCHEMA.to_owned(),
            measured_at: "2026-11-21T12:00:00Z".to_owned(),
            measured_by: "a test".to_owned(),
            machine: here().machine,
            measured: Default::default(),
            notes: Vec::new(),
            nic,
            engines,
        };
        calibration.to_text().unwrap()
    }

    fn settings(path: &Path) -> Settings {
        let flags = Flags { calibration: Some(path.to_owned()), ..Flags::default() };
        Settings::from_toml(Path::new("f"), b"[[site]]\nroot = \"r\"\n", &flags).unwrap()
    }

    #[test]
    fn a_file_of_this_machine_is_used_and_one_of_another_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.toml");
        fs::write(&path, text()).unwrap();
        let (basis, costs) = load_for(&settings(&path), None, &here()).unwrap();
        assert_eq!(basis.in_words(), format!("{}, measured at 2026-11-21T12:00:00Z", path.display()));
        assert_eq!(costs.of(Engine::Kernel, Cipher::Aes128Gcm).per_byte_ns, 0.0);
        let other = Here { machine: Machine { kernel: "Linux 6.13".to_owned(), ..here().machine }, ..here() };
        let (basis, costs) = load_for(&settings(&path), None, &other).unwrap();
        assert!(
            basis.in_words().contains("it was measured on another kernel (Linux 6.12; this is Linux 6.13)")
        );
        assert_eq!(costs, Costs::defaults());
    }

    #[test]
    fn what_was_measured_of_another_adapter_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.toml");
        for (device, driver, here_too) in
            [("eth0", "mlx5_core", true), ("eth0", "chcr", false), ("eth1", "mlx5_core", false)]
        {
            let (device, driver) = (device.to_owned(), driver.to_owned());
            let nic = NicFigures { device, driver, set_ups_per_s: 7.0, flow_table_flows: 7 };
            fs::write(&path, text_with(Some(nic))).unwrap();
            let (basis, costs) = load_for(&settings(&path), None, &here()).unwrap();
            assert!(matches!(basis, Basis::Calibrated { .. }), "{basis:?}");
            assert_eq!(basis.misfit().is_none(), here_too, "{basis:?}");
            assert_eq!(costs.nic_limits.set_ups_per_s == 7.0, here_too, "{basis:?}");
            assert_eq!(costs.of(Engine::Nic, Cipher::Aes128Gcm).per_byte_ns == 0.0, here_too, "{basis:?}");
            assert_eq!(
                costs.of(Engine::Kernel, Cipher::Aes128Gcm).per_byte_ns,
                0.0,
                "the rest is of this machine"
            );
        }
    }

    #[test]
    fn the_one_in_the_state_directory_is_used_unless_another_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.toml");
        let unnamed =
            Settings::from_toml(Path::new("f"), b"[[site]]\nroot = \"r\"\n", &Flags::default()).unwrap();
        let load = || load_for(&unnamed, Some(path.clone()), &here()).unwrap();
        assert_eq!(load(), (Basis::Defaults, Costs::defaults()));
        fs::write(&path, text()).unwrap();
        assert!(matches!(load().0, Basis::Calibrated { .. }));
        let named = folder.path().join("missing.toml");
        assert!(load_for(&settings(&named), Some(path.clone()), &here()).is_err());
        // Nobody asked for it: a fault in it keeps no server from starting.
        fs::write(&path, "schema = 7").unwrap();
        let (basis, costs) = load();
        assert!(basis.in_words().starts_with("published figures; of "), "{}", basis.in_words());
        assert!(basis.in_words().contains("`linerate calibrate` writes a new file"), "{}", basis.in_words());
        assert_eq!(costs, Costs::defaults());
    }

    #[test]
    fn faults_have_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.toml");
        let fault = || load_for(&settings(&path), None, &here()).unwrap_err();
        assert!(
            fault()
                .starts_with(&format!("--calibration: the calibration {} cannot be read: ", path.display()))
        );
        fs::write(&path, text().replace("[machine]", "[machine")).unwrap();
        assert!(fault().contains(": line "), "{}", fault());
        fs::write(&path, vec![b' '; 2 << 20]).unwrap();
        assert!(fault().contains("2097152 bytes"), "{}", fault());
    }
}
