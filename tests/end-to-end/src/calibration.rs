//! Calibration files for this machine, with the costs that a test wants.

use linerate_placement::{
    CALIBRATION_SCHEMA, Calibration, Cipher, Costs, Engine, EngineCosts, EngineFigures, Machine, NicFigures,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Writes a calibration of the machine that this runs on: for all ciphers the user engine costs 1 ns a byte, the kernel
/// engine `kernel_ns_per_byte`, and `set_up_ns` once.
///
/// # Panics
/// If it cannot be written.
#[must_use]
pub fn calibration(folder: &Path, kernel_ns_per_byte: f64, set_up_ns: f64) -> PathBuf {
    calibration_with_nic(folder, kernel_ns_per_byte, set_up_ns, None)
}

/// The same, with an adapter: what it costs, and how many set-ups a second it can do.
///
/// # Panics
/// If it cannot be written.
#[must_use]
pub fn calibration_with_nic(
    folder: &Path,
    kernel_ns_per_byte: f64,
    set_up_ns: f64,
    nic: Option<(EngineCosts, NicFigures)>,
) -> PathBuf {
    let mut costs = Costs::defaults();
    for cipher in Cipher::ALL {
        let of = |per_byte_ns, set_up_ns| EngineCosts { per_byte_ns, set_up_ns, ..EngineCosts::FREE };
        costs.set(Engine::User, cipher, of(1.0, 0.0));
        costs.set(Engine::Kernel, cipher, of(kernel_ns_per_byte, set_up_ns));
        if let Some((nic, _)) = &nic {
            costs.set(Engine::Nic, cipher, *nic);
        }
    }
    let engines: &[Engine] = if nic.is_some() { &Engine::ALL } else { &[Engine::User, Engine::Kernel] };
    let figures = engines.iter().flat_map(|&engine| Cipher::ALL.map(|cipher| (engine, cipher)));
    let (kernel, cpu) = linerate_environment::kernel_and_processor();
    let calibration = Calibration {
        schema: CALIBRATION_SCHEMA.to_owned(),
        measured_at: "2026-11-21T12:00:00Z".to_owned(),
        measured_by: "nobody: made up by a test".to_owned(),
        machine: Machine { kernel, cpu },
        measured: Default::default(),
        notes: Vec::new(),
        nic: nic.map(|(_, figures)| figures),
        engines: figures
            .map(|(engine, cipher)| EngineFigures::new(engine, cipher, costs.of(engine, cipher)))
            .collect(),
    };
    let path = folder.join("calibration.toml");
    fs::write(&path, calibration.to_text().expect("sound figures")).expect("a file");
    path
}
