//! Costs as measured on one machine, as a file: `linerate calibrate` writes it, `serve` and `plan` read it.
//!
//! TOML, because people read it and may correct it; units are in the names of keys. A file that was measured on another
//! kernel or processor says nothing about this one: [`Calibration::misfit`] tells.

use crate::{Cipher, Costs, Engine, EngineCosts, NicLimits};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// The version of the form. A file with another one is not read.
pub const SCHEMA: &str = "linerate-calibration-1";

/// Where and when it was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What `uname -s` and `-r` say, with a blank between them: `Linux 6.12.41+deb13-amd64`.
    pub kernel: String,
    /// The model, as `/proc/cpuinfo` names it.
    pub cpu: String,
}

/// What was measured of an engine with a cipher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineFigures {
    /// `user`, `kernel` or `nic`.
    pub engine: String,
    /// `AES-128-GCM`, `AES-256-GCM` or `ChaCha20-Poly1305`.
    pub cipher: String,
    /// See [`EngineCosts::set_up_ns`], as for all that follow.
    #[serde(default)]
    pub set_up_ns: f64,
    /// See [`EngineCosts::set_up_wait_ns`].
    #[serde(default)]
    pub set_up_wait_ns: f64,
    /// See [`EngineCosts::per_byte_ns`].
    pub per_byte_ns: f64,
    /// See [`EngineCosts::per_record_ns`].
    #[serde(default)]
    pub per_record_ns: f64,
    /// See [`EngineCosts::per_call_ns`].
    #[serde(default)]
    pub per_call_ns: f64,
    /// See [`EngineCosts::per_response_ns`].
    #[serde(default)]
    pub per_response_ns: f64,
    /// See [`EngineCosts::record_bytes`].
    #[serde(default = "full_record")]
    pub record_bytes: u64,
    /// See [`EngineCosts::call_bytes`].
    #[serde(default = "long_call")]
    pub call_bytes: u64,
}

fn full_record() -> u64 {
    EngineCosts::FREE.record_bytes
}

fn long_call() -> u64 {
    EngineCosts::FREE.call_bytes
}

impl EngineFigures {
    /// The figures of an engine with a cipher.
    #[must_use]
    pub fn new(engine: Engine, cipher: Cipher, costs: &EngineCosts) -> Self {
        Self {
            engine: engine.name().to_owned(),
            cipher: cipher.name().to_owned(),
            set_up_ns: costs.set_up_ns,
            set_up_wait_ns: costs.set_up_wait_ns,
            per_byte_ns: costs.per_byte_ns,
            per_record_ns: costs.per_record_ns,
            per_call_ns: costs.per_call_ns,
            per_response_ns: costs.per_response_ns,
            record_bytes: costs.record_bytes,
            call_bytes: costs.call_bytes,
        }
    }

    /// The same as costs.
    #[must_use]
    pub fn costs(&self) -> EngineCosts {
        EngineCosts {
            set_up_ns: self.set_up_ns,
            set_up_wait_ns: self.set_up_wait_ns,
            per_byte_ns: self.per_byte_ns,
            per_record_ns: self.per_record_ns,
            per_call_ns: self.per_call_ns,
            per_response_ns: self.per_response_ns,
            record_bytes: self.record_bytes,
            call_bytes: self.call_bytes,
        }
    }
}

/// What was measured of the adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicFigures {
    /// Its name in the system: `eth0`.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// See [`NicLimits::set_ups_per_s`].
    pub set_ups_per_s: f64,
    /// See [`NicLimits::flow_table_flows`].
    pub flow_table_flows: u64,
}

/// Costs as measured on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: String,
    /// When: RFC 3339, UTC.
    pub measured_at: String,
    /// By which linerate: version and commit.
    pub measured_by: String,
    /// On what.
    pub machine: Machine,
    /// Other figures that were measured on the way, for people: names with their units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measured: BTreeMap<String, f64>,
    /// What to know of how it was measured, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The adapter, if there is one that encrypts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicFigures>,
    /// The engines. The user engine is there with each cipher that any engine has.
    #[serde(rename = "engine")]
    pub engines: Vec<EngineFigures>,
}

/// Why a file is not used: a fault in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalibrationError {
    /// The line that it is about, from 1; `None`: the file as a whole.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for CalibrationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
        }
        write!(formatter, "{}; `linerate calibrate` writes a new file", self.message)
    }
}

impl std::error::Error for CalibrationError {}

/// Why a file is not used: it is about another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    what: &'static str,
    measured: String,
    here: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, measured, here } = self;
        write!(
            formatter,
            "it was measured on another {what} ({measured}; this is {here}), so its figures are not used: \
             `linerate calibrate` measures this machine"
        )
    }
}

impl Calibration {
    /// Reads a file.
    ///
    /// # Errors
    /// The first fault, with its line.
    pub fn parse(text: &str) -> Result<Self, CalibrationError> {
        // The schema first: a newer form may have keys that this one does not know.
        #[derive(Deserialize)]
        struct Schema {
            schema: Option<String>,
        }
        let schema: Schema = toml::from_str(text).map_err(|error| located(text, &error))?;
        if schema.schema.as_deref() != Some(SCHEMA) {
            let found = schema.schema.map_or("no schema".to_owned(), |schema| format!("schema {schema:?}"));
            let line = line_of_key(text, "schema");
            let message = format!("it has {found}, and this linerate reads {SCHEMA:?}");
            return Err(CalibrationError { line, message });
        }
        let calibration: Self = toml::from_str(text).map_err(|error| located(text, &error))?;
        match calibration.fault() {
            None => Ok(calibration),
            Some((engine, message)) => {
                let line = engine.and_then(|index| line_of_engine(text, index));
                Err(CalibrationError { line, message })
            }
        }
    }

    /// The file's text, which [`Calibration::parse`] reads.
    ///
    /// # Errors
    /// A fault in the figures: what would not be read is not written.
    pub fn to_text(&self) -> Result<String, CalibrationError> {
        let whole = |message: String| CalibrationError { line: None, message };
        if let Some((_, message)) = self.fault() {
            return Err(whole(message));
        }
        let body = toml::to_string(self).map_err(|error| whole(error.to_string()))?;
        Ok(format!(
            "# What encrypting costs on this machine, measured by `linerate calibrate`.\n\
             # `linerate serve --calibration FILE` places connections by it. Times are CPU time.\n{body}"
        ))
    }

    /// What is wrong with the figures, and with which entry of `engines`.
    fn fault(&self) -> Option<(Option<usize>, String)> {
        let mut seen = Vec::new();
        for (index, figures) in self.engines.iter().enumerate() {
            let fault = |message: String| Some((Some(index), message));
            let Some(engine) = Engine::named(&figures.engine) else {
                return fault(format!("there is no engine {:?} (user, kernel, nic)", figures.engine));
            };
            let Some(cipher) = Cipher::named(&figures.cipher) else {
                let known = Cipher::ALL.map(Cipher::name).join(", ");
                return fault(format!("there is no cipher {:?} ({known})", figures.cipher));
            };
            if !figures.costs().is_sound() {
                return fault(format!(
                    "{engine} with {cipher}: times are from 0 to 1e12 ns, sizes from 1 byte"
                ));
            }
            if figures.costs().slope_ns_per_byte() <= 0.0 && engine == Engine::User {
                return fault(format!("{engine} with {cipher}: no byte is free"));
            }
            if seen.contains(&(engine, cipher)) {
                return fault(format!("{engine} with {cipher} is there twice"));
            }
            seen.push((engine, cipher));
        }
        if let Some((index, (engine, cipher))) =
            seen.iter().enumerate().find(|(_, (_, cipher))| !seen.contains(&(Engine::User, *cipher)))
        {
            let message = format!("{engine} with {cipher} has nothing to be compared with: user is missing");
            return Some((Some(index), message));
        }
        if seen.is_empty() {
            return Some((None, "it has no engines".to_owned()));
        }
        let nic = self.nic.as_ref()?;
        let sound = nic.set_ups_per_s.is_finite() && nic.set_ups_per_s > 0.0;
        (!sound).then(|| (None, "nic: set_ups_per_s is a number above 0".to_owned()))
    }

    /// The same without the adapter.
    #[must_use]
    pub fn without_adapter(mut self) -> Self {
        self.nic = None;
        self.engines.retain(|figures| Engine::named(&figures.engine) != Some(Engine::Nic));
        self
    }

    /// Why it says nothing about this machine, if it is another one that it was measured on.
    #[must_use]
    pub fn misfit(&self, here: &Machine) -> Option<Misfit> {
        let differing = |what, measured: &str, here: &str| {
            (measured != here).then(|| Misfit { what, measured: measured.to_owned(), here: here.to_owned() })
        };
        differing("processor", &self.machine.cpu, &here.cpu)
            .or_else(|| differing("kernel", &self.machine.kernel, &here.kernel))
    }
}

impl NicFigures {
    /// Why they say nothing about this machine, if their adapter is not in it: `driver_here` is the driver of the interface of
    /// that name here, if there is one.
    #[must_use]
    pub fn misfit(&self, driver_here: Option<&str>) -> Option<String> {
        let Self { device, driver, .. } = self;
        let here = match driver_here {
            Some(here) if here == driver => return None,
            Some(here) => format!("which {here} drives here"),
            None => "which is not here".to_owned(),
        };
        Some(format!(
            "it was measured with the adapter {device} ({driver}), {here}, so what it says of adapters is not used: \
             `linerate calibrate --peer` measures the one that is"
        ))
    }
}

/// What a calibration does not tell is taken from the defaults, in proportion: a processor on which the user engine costs
/// three times as much as where the defaults come from makes software kernel TLS as much dearer.
impl From<&Calibration> for Costs {
    fn from(calibration: &Calibration) -> Self {
        let defaults = Costs::defaults();
        let mut costs = defaults.clone();
        let told = |engine: Engine, cipher: Cipher| {
            let is_it = |figures: &&EngineFigures| {
                Engine::named(&figures.engine) == Some(engine)
                    && Cipher::named(&figures.cipher) == Some(cipher)
            };
            calibration.engines.iter().find(is_it).map(EngineFigures::costs)
        };
        for cipher in Cipher::ALL {
            let Some(user) = told(Engine::User, cipher) else { continue };
            let slower = user.slope_ns_per_byte() / defaults.of(Engine::User, cipher).slope_ns_per_byte();
            let kernel = defaults.of(Engine::Kernel, cipher);
            let scaled_kernel = EngineCosts {
                per_byte_ns: kernel.per_byte_ns * slower,
                per_record_ns: kernel.per_record_ns * slower,
                per_call_ns: kernel.per_call_ns * slower,
                ..*kernel
            };
            costs.set(Engine::User, cipher, user);
            costs.set(Engine::Kernel, cipher, told(Engine::Kernel, cipher).unwrap_or(scaled_kernel));
            if let Some(nic) = told(Engine::Nic, cipher) {
                costs.set(Engine::Nic, cipher, nic);
            }
        }
        if let Some(nic) = &calibration.nic {
            let NicFigures { set_ups_per_s, flow_table_flows, .. } = *nic;
            costs.nic_limits = NicLimits { set_ups_per_s, flow_table_flows };
            for cipher in Cipher::ALL.into_iter().filter(|&cipher| told(Engine::Nic, cipher).is_none()) {
                let set_up_wait_ns = 1e9 / set_ups_per_s;
                costs.set(
                    Engine::Nic,
                    cipher,
                    EngineCosts { set_up_wait_ns, ..*costs.of(Engine::Nic, cipher) },
                );
            }
        }
        costs
    }
}

fn located(text: &str, error: &toml::de::Error) -> CalibrationError {
    let line = error.span().map(|span| line_at(text, span.start));
    CalibrationError { line, message: error.message().replace('\n', " ") }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

fn line_of_key(text: &str, key: &str) -> Option<usize> {
    text.lines().position(|line| line.trim_start().starts_with(key)).map(|index| index + 1)
}

/// The heading of the entry with this index.
fn line_of_engine(text: &str, index: usize) -> Option<usize> {
    let headings = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("[[engine]]"));
    headings.map(|(number, _)| number + 1).nth(index)
}

#[cfg(test)]
mod tests;
