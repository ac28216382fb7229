//! Computes constants from the points that are fitted: each from one point, by halves.
//!
//! What comes out stands in [`Constants::PRESENT`], rounded to three or four digits; a test holds the two together. So
//! nobody can turn a constant by hand to please a point that is held out.

use crate::Constants;
use crate::error::{Error, Result};
use crate::published::{Point, Role, points};

/// Those constants that points set, computed anew; the others as they are given.
///
/// # Errors
/// A built-in file is wrong, or a point sets what there is not.
pub fn fitted(mut constants: Constants) -> Result<Constants> {
    for point in points()?.into_iter().filter(|point| point.role == Role::Fitted) {
        let sets = point.sets.clone().unwrap_or_default();
        if sets == "nic_set_ups_per_s of connectx6dx" {
            // It stands in the machine's file: requests a second, which the point gives itself.
            continue;
        }
        let value = solve(&point, |value| with(constants, &sets, value))?;
        constants = with(constants, &sets, value)?;
    }
    Ok(constants)
}

/// The constants with one of them replaced.
fn with(constants: Constants, sets: &str, value: f64) -> Result<Constants> {
    Ok(match sets {
        "path_cycles_per_byte of linux" => Constants { linux_path_cycles_per_byte: value, ..constants },
        "path_cycles_per_byte of freebsd-2015" => {
            Constants { freebsd_2015_path_cycles_per_byte: value, ..constants }
        }
        "path_cycles_per_byte of freebsd-2021" => {
            Constants { freebsd_2021_path_cycles_per_byte: value, ..constants }
        }
        "segment_cycles" => Constants { segment_cycles: value, ..constants },
        _ => return Err(Error::new(format!("published.toml: no constant is called \"{sets}\""))),
    })
}

/// The value of a constant with which the point is met. All of them make the machine slower when they grow.
fn solve(point: &Point, with: impl Fn(f64) -> Result<Constants>) -> Result<f64> {
    let off = |value: f64| -> Result<f64> { Ok(point.clone().outcome(&with(value)?)?.error) };
    let (mut low, mut high) = (0.0, 1e5);
    let grows = off(high)? > off(low)?;
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if (off(middle)? > 0.0) == grows {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_that_the_fitted_points_give() {
        let (fitted, present) = (fitted(Constants::PRESENT).unwrap(), Constants::PRESENT);
        for (name, fitted, present) in [
            ("linux", fitted.linux_path_cycles_per_byte, present.linux_path_cycles_per_byte),
            ("2015", fitted.freebsd_2015_path_cycles_per_byte, present.freebsd_2015_path_cycles_per_byte),
            ("2021", fitted.freebsd_2021_path_cycles_per_byte, present.freebsd_2021_path_cycles_per_byte),
            ("segment", fitted.segment_cycles, present.segment_cycles),
        ] {
            assert!((fitted / present - 1.0).abs() < 2e-3, "{name}: fitted {fitted}, present {present}");
        }
    }
}
