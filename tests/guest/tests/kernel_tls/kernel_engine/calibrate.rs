//! `linerate calibrate` with kernel TLS at hand: it measures it, and a server decides by what it wrote.

use super::{
    fixture::{Fixture, LARGE},
    placement::fetch,
};
use linerate_end_to_end::{Program, ServerSetup, linerate_binary};
use linerate_placement::{Calibration, Cipher, Costs, Engine, EngineFigures, Placer, Policy};
use rustls::version::TLS13;
use std::{fs, path::Path};

/// What clients of [`Fixture::client`] speak.
const CIPHER: Cipher = Cipher::Aes128Gcm;

fn figures(calibration: &Calibration, engine: Engine, cipher: Cipher) -> &EngineFigures {
    let is_it = |figures: &&EngineFigures| figures.engine == engine.name() && figures.cipher == cipher.name();
    calibration
        .engines
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{engine} with {cipher} was not measured"))
}

/// From which size on the kernel engine pays, as a server decides it.
fn pays_from(calibration: &Calibration, cipher: Cipher) -> Option<u64> {
    Placer::new(Policy::default(), Costs::from(calibration)).break_even_bytes(Engine::Kernel, cipher)
}

/// A server that finds the calibration in its state directory says what follows from it, and does it.
fn serves_by(fixture: &Fixture, state: &Path, calibration: &Calibration) -> bool {
    let path = state.join("linerate/calibration.toml");
    fs::write(&path, calibration.to_text().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let configuration = folder.path().join("linerate.toml");
    fs::write(&configuration, "[placement]\nlearning = false\n").unwrap();
    let server = ServerSetup::tls(&fixture.site, &fixture.pair)
        .env("XDG_STATE_HOME", state)
        .flag("--config")
        .flag(&configuration)
        .flags(["--engine", "auto", "--access-log", "-", "--log-format", "json"])
        .admin()
        .start();
    server.wait_for_stderr(&format!("costs: {}, measured at {}", path.display(), calibration.measured_at));
    server.wait_for_stderr(&match pays_from(calibration, Cipher::Aes256Gcm) {
        Some(bytes) => {
            format!("engine auto: kernel from {} (AES-256-GCM)", linerate_figures::bytes(bytes as f64, 2))
        }
        // It costs more, or saves too little to be sure.
        None => "engine auto: user for all; the kernel engine ".to_owned(),
    });
    let mut client = fixture.client(&TLS13).connect(server.address());
    let pays = pays_from(calibration, CIPHER).is_some_and(|bytes| bytes <= 3_000_001);
    let expected = if pays { "kernel: pays" } else { "user: not_cheaper" };
    assert_eq!(fetch(fixture, &server, &mut client, &[LARGE]), [expected], "{calibration:?}");
    pays
}

#[test]
fn what_is_measured_of_kernel_tls_is_decided_by() {
    let Some(fixture) = Fixture::new("what_is_measured_of_kernel_tls_is_decided_by") else { return };
    let (state, before) = (tempfile::tempdir().unwrap(), fixture.statistics());
    let run = Program::new(linerate_binary().to_str().unwrap(), ["calibrate", "--quick"])
        .env("XDG_STATE_HOME", state.path())
        .env("STATE_DIRECTORY", "")
        .run();
    let said = run.text();
    assert!(run.status.success(), "{said}{}", run.stderr);
    // Six connections for each cipher in each of three rounds: it was the kernel's TLS that was measured.
    assert_eq!((before.moved("TlsTxSw"), before.moved("TlsTxDevice")), (6 * 3 * 3, 0), "{said}");
    assert!(
        !said.contains("kernel TLS was not measured") && !said.contains("was not measured: this kernel"),
        "{said}"
    );

    let path = state.path().join("linerate/calibration.toml");
    let measured = Calibration::parse(&fs::read_to_string(path).unwrap()).unwrap();
    for cipher in Cipher::ALL {
        let kernel = figures(&measured, Engine::Kernel, cipher);
        let of_user = figures(&measured, Engine::User, cipher).costs().slope_ns_per_byte();
        let share = kernel.costs().slope_ns_per_byte() / of_user;
        // An emulated processor on a busy host; but a factor of a hundred is a wrong unit.
        assert!((0.05..20.0).contains(&share), "{cipher}: {share} of the user engine's\n{said}");
        assert!((1_000.0..1e8).contains(&kernel.set_up_ns), "{cipher}: {kernel:?}");
        assert!(said.contains(&format!("{cipher}: ")), "{said}");
    }

    // By what was measured, whatever that is; then by figures that turn it round.
    let mut cheap = measured.clone();
    let mut dear = measured.clone();
    for (calibration, factor) in [(&mut cheap, 0.25), (&mut dear, 4.0)] {
        for cipher in Cipher::ALL {
            let slope_ns = figures(calibration, Engine::User, cipher).costs().slope_ns_per_byte();
            let is_it = |figures: &&mut EngineFigures| {
                figures.engine == Engine::Kernel.name() && figures.cipher == cipher.name()
            };
            let kernel = calibration.engines.iter_mut().find(is_it).unwrap();
            (kernel.per_byte_ns, kernel.per_record_ns, kernel.per_call_ns) = (slope_ns * factor, 0.0, 0.0);
            (kernel.per_response_ns, kernel.set_up_ns) = (0.0, kernel.set_up_ns.min(1e6));
        }
    }
    serves_by(&fixture, state.path(), &measured);
    assert!(serves_by(&fixture, state.path(), &cheap), "3 MB pay for it");
    assert!(!serves_by(&fixture, state.path(), &dear));
    assert_eq!(before.new_faults(), []);
}
