//! How much of the model's success hangs on a constant: each is changed by a fifth, what is fitted is fitted anew, and the
//! worst of the held-out errors is looked at.

use crate::Constants;
use crate::error::Result;
use crate::fit;
use crate::published::{Role, check};

/// What a change of a constant does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// The constant.
    pub name: &'static str,
    /// The worst error of a held-out point with a fifth less of it.
    pub less: f64,
    /// With a fifth more.
    pub more: f64,
}

/// Points that are missed for reasons that are no constant's are left out: docs/PLAN.md explains them.
pub const EXPLAINED_MISSES: [&str; 3] = ["netflix-2015-early-ratio", "t5-line-rate-from", "t6-sender-cpu"];

/// The error of a held-out point that is furthest from zero, explained misses left out.
///
/// # Errors
/// A built-in file is wrong.
pub fn worst_error(constants: &Constants) -> Result<f64> {
    let held_out = check(constants)?.into_iter().filter(|outcome| {
        outcome.point.role == Role::HeldOut && !EXPLAINED_MISSES.contains(&outcome.point.name.as_str())
    });
    let errors = held_out.map(|outcome| outcome.error);
    Ok(errors.max_by(|one, other| one.abs().total_cmp(&other.abs())).unwrap_or(0.0))
}

/// Every constant that is not fitted and that a point could notice.
///
/// # Errors
/// A built-in file is wrong.
pub fn sensitivities() -> Result<Vec<Sensitivity>> {
    type Change = fn(&mut Constants, f64);
    let changes: [(&str, Change); 7] = [
        ("the ciphers' cycles, all together", |constants, factor| {
            constants.aead_cycles_per_byte =
                constants.aead_cycles_per_byte.map(|row| row.map(|cycles| cycles * factor));
        }),
        ("miss_ns_per_byte", |constants, factor| constants.miss_ns_per_byte *= factor),
        ("bounce_ns_per_byte", |constants, factor| constants.bounce_ns_per_byte *= factor),
        ("freebsd_read_write_factor", |constants, factor| constants.freebsd_read_write_factor *= factor),
        ("copy_cycles_per_byte", |constants, factor| constants.copy_cycles_per_byte *= factor),
        ("request_cycles", |constants, factor| constants.request_cycles *= factor),
        ("classic_handshake_cycles", |constants, factor| constants.classic_handshake_cycles *= factor),
    ];
    let mut rows = Vec::new();
    for (name, change) in changes {
        let error_with = |factor: f64| -> Result<f64> {
            let mut constants = Constants::PRESENT;
            change(&mut constants, factor);
            worst_error(&fit::fitted(constants)?)
        };
        rows.push(Sensitivity { name, less: error_with(0.8)?, more: error_with(1.2)? });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model that no constant can move away from what was published would be no model.
    #[test]
    fn constants_matter() {
        let rows = sensitivities().unwrap();
        let largest = rows.iter().flat_map(|row| [row.less.abs(), row.more.abs()]).fold(0.0, f64::max);
        assert!(largest > worst_error(&Constants::PRESENT).unwrap().abs() + 0.02, "{rows:?}");
    }
}
