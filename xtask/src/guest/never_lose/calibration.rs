//! The costs by which `auto` decides in the guest: `linerate calibrate` measures them there.
//!
//! What the model of an adapter computes in the place of silicon is time of the guest's processor, and `calibrate`, which
//! takes an adapter's bytes for as dear as they are to the sender, has it in its figures. The module says how much it was
//! (`tx_model_ns`), and it is taken off: that is the one correction, and the adapter's alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use linerate_bench::network::{Network, VETH_CLIENT};
use linerate_placement::{Calibration, Engine};

use super::inside::Counters;

/// Where the far end takes what calibration sends.
const SINK_PORT: u16 = 9000;

/// What an adapter of silicon leaves to the processor for each byte is no less than this part of what was measured.
const LEAST_LEFT: f64 = 0.01;

/// The far end of a calibration. Dropped, it ends.
struct Sink(Child);

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures through `network`, and writes what was found to a file in `folder`.
pub(super) fn measure(linerate: &Path, network: &Network, folder: &Path) -> Result<PathBuf> {
    let sink = format!("{VETH_CLIENT}:{SINK_PORT}");
    let child =
        network.client_command(linerate).args(["calibrate", "--sink", &sink]).stdout(Stdio::null()).spawn();
    let sink_process = Sink(child.context("cannot start the far end of the calibration")?);
    std::thread::sleep(Duration::from_millis(500));
    let file = folder.join("calibration.toml");
    let before = Counters::read()?;
    let output = Command::new(linerate)
        .args(["calibrate", "--quick", "--peer", &sink, "--output"])
        .arg(&file)
        .output()
        .context("cannot run linerate calibrate")?;
    let model = Counters::read()?.since(&before);
    drop(sink_process);
    if !output.status.success() {
        bail!("linerate calibrate: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let corrected = without_model(Calibration::parse(&text)?, model)?;
    fs::write(&file, corrected.to_text()?)?;
    Ok(file)
}

fn without_model(mut calibration: Calibration, model: Counters) -> Result<Calibration> {
    if model.encrypted_bytes == 0 || calibration.nic.is_none() {
        bail!("calibrate found no adapter that encrypts: {:?}", calibration.notes);
    }
    let model_ns = model.model_ns as f64 / model.encrypted_bytes as f64;
    for figures in calibration.engines.iter_mut().filter(|one| one.engine == Engine::Nic.name()) {
        let least_ns = LEAST_LEFT * figures.per_byte_ns;
        figures.per_byte_ns = (figures.per_byte_ns - model_ns).max(least_ns);
    }
    calibration
        .notes
        .push(format!("the model of an adapter took {model_ns:.3} ns a byte, which were taken off"));
    Ok(calibration)
}
