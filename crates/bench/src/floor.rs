//! The floor of a TLS server: what no server that seals in software, out of the page cache and into a socket, goes below.
//!
//! ```text
//! floor = the cipher alone + one copy of a byte + the same server without TLS
//! ```
//! The first two are measured after each slice of a server that encrypts, on the servers' cores
//! ([`crate::result::Measurement::seal_and_copy`]); the third is [`OWN_PLAINTEXT`] in the same round. So a floor is computed,
//! round by round, and a server's distance from it is paired by round as all ratios are.

use std::collections::BTreeMap;

use crate::compare::counterpart;
use crate::quantity::{CPU_PER_GB, CPU_PER_RESPONSE, DEMAND, Quantity};
use crate::report::number;
use crate::result::{
    ExperimentRun, FloorPoint, FloorRound, Measurement, Point, Reading, Round, SealAndCopy, Variable,
};
use crate::statistics::Summary;

/// What targets call it; no server may have this name.
pub(crate) const FLOOR: &str = "floor";

/// The server whose cost is a part of it.
pub(crate) const OWN_PLAINTEXT: &str = "linerate plaintext";

/// What a service demand in µs per KB is times s/GB: 1024 bytes of 10⁹, in µs.
const DEMAND_OF_COST: f64 = 1.024;

/// The floors of a run: one for each combination of variables at which a server encrypted. Not available, with the reason,
/// where no round has one.
pub(crate) fn of(run: &ExperimentRun) -> Reading<Vec<FloorPoint>> {
    let is_plaintext = |name: &str| run.servers.iter().any(|used| used.plaintext && used.name == name);
    let encrypting: Vec<&Point> = run.points.iter().filter(|point| !is_plaintext(&point.server)).collect();
    let mut floors: Vec<FloorPoint> = Vec::new();
    for point in &encrypting {
        if !floors.iter().any(|known| known.variables == point.variables) {
            floors.extend(at_point(run, point, &encrypting));
        }
    }
    if floors.iter().any(|floor| floor.rounds.iter().any(Option::is_some)) {
        return Reading::Value(floors);
    }
    let reason = encrypting.iter().flat_map(|point| measured(point)).find_map(|(_, round)| {
        match &round.seal_and_copy {
            Reading::Value(_) => None,
            Reading::NotAvailable(reason) => Some(reason.clone()),
        }
    });
    Reading::NotAvailable(reason.unwrap_or_else(|| {
        format!(
            "no round has both a server that encrypts and {OWN_PLAINTEXT}, whose cost is a part of the floor"
        )
    }))
}

/// The floor where `point` is; nothing where plaintext was not to be measured there.
fn at_point(run: &ExperimentRun, point: &Point, encrypting: &[&Point]) -> Option<FloorPoint> {
    let plaintext = counterpart(run, point, OWN_PLAINTEXT)?;
    let here = || encrypting.iter().filter(|other| other.variables == point.variables);
    let rounds = here().map(|point| point.rounds.len()).max().unwrap_or(0);
    let round = |number: usize| {
        let samples: Vec<&SealAndCopy> = here()
            .flat_map(|point| measured(point))
            .filter(|(at, _)| *at == number)
            .filter_map(|(_, round)| round.seal_and_copy.value())
            .collect();
        let (_, plaintext) = measured(plaintext).find(|(at, _)| *at == number)?;
        FloorRound::of(&samples, plaintext)
    };
    Some(FloorPoint {
        variables: point.variables.clone(),
        plaintext: plaintext.server.clone(),
        rounds: (0..rounds).map(round).collect(),
    })
}

/// The rounds of a point that were measured, with their numbers.
fn measured(point: &Point) -> impl Iterator<Item = (usize, &Measurement)> {
    point.rounds.iter().enumerate().filter_map(|(number, round)| match round {
        Round::Measured(measurement) => Some((number, &**measurement)),
        Round::Failed { .. } => None,
    })
}

impl FloorRound {
    /// Of the samples of one round, as many as servers encrypted in it, and of plaintext's slice in this round.
    fn of(samples: &[&SealAndCopy], plaintext: &Measurement) -> Option<Self> {
        let median = |figure: fn(&SealAndCopy) -> f64| {
            let values: Vec<f64> = samples.iter().map(|sample| figure(sample)).collect();
            Some(Summary::of(&values)?.median)
        };
        let seal_s_per_gb = median(|sample| sample.seal_s_per_gb)?;
        let copy_s_per_gb = median(|sample| sample.copy_s_per_gb)?;
        let plaintext_s_per_gb = *plaintext.server_s_per_gb.value()?;
        let s_per_gb = seal_s_per_gb + copy_s_per_gb + plaintext_s_per_gb;
        // A response has so many bytes as make up the difference between plaintext's two costs.
        let us_per_response =
            plaintext.server_us_per_response.clone().map(|us| us * s_per_gb / plaintext_s_per_gb);
        Some(Self { seal_s_per_gb, copy_s_per_gb, plaintext_s_per_gb, s_per_gb, us_per_response })
    }

    fn value(&self, quantity: &Quantity) -> Option<f64> {
        match quantity.key {
            key if key == CPU_PER_GB.key => Some(self.s_per_gb),
            key if key == DEMAND.key => Some(DEMAND_OF_COST * self.s_per_gb),
            key if key == CPU_PER_RESPONSE.key => self.us_per_response.value().copied(),
            _ => None,
        }
    }
}

impl FloorPoint {
    /// The floor of a quantity in each round, `None` where there is none; of a quantity that is no CPU time of the server
    /// there never is.
    pub(crate) fn values_by_round(&self, quantity: &Quantity) -> Vec<Option<f64>> {
        self.rounds.iter().map(|round| round.as_ref()?.value(quantity)).collect()
    }

    /// The floor of a quantity over all rounds.
    pub(crate) fn summary(&self, quantity: &Quantity) -> Option<Summary> {
        Summary::of(&self.values_by_round(quantity).into_iter().flatten().collect::<Vec<_>>())
    }

    /// What it is the sum of, in words: "cipher 0.081 + copy 0.031 + linerate plaintext 0.135 s/GB".
    pub(crate) fn parts(&self) -> Option<String> {
        let median = |part: fn(&FloorRound) -> f64| {
            let values: Vec<f64> = self.rounds.iter().flatten().map(part).collect();
            Some(number::short(Summary::of(&values)?.median))
        };
        Some(format!(
            "cipher {} + copy {} + {} {} {}",
            median(|round| round.seal_s_per_gb)?,
            median(|round| round.copy_s_per_gb)?,
            self.plaintext,
            median(|round| round.plaintext_s_per_gb)?,
            CPU_PER_GB.unit
        ))
    }
}

/// The floor at these variables of a server that encrypts.
pub(crate) fn at<'run>(
    run: &'run ExperimentRun,
    variables: &BTreeMap<String, Variable>,
) -> Option<&'run FloorPoint> {
    run.floor.value()?.iter().find(|floor| floor.variables == *variables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{run_of, seal_and_copy};

    fn run_with(name: &str, plaintext: &[f64]) -> ExperimentRun {
        let mut run =
            run_of(&[(name, plaintext), ("linerate user", &[0.30, 0.33]), ("nginx tls", &[0.8, 0.8])]);
        for (point, sample) in [(1, seal_and_copy(0.08, 0.02)), (2, seal_and_copy(0.10, 0.04))] {
            for round in &mut run.points[point].rounds {
                let Round::Measured(measurement) = round else { panic!("it was measured") };
                measurement.seal_and_copy = Reading::Value(sample.clone());
            }
        }
        run
    }

    #[test]
    fn a_floor_is_the_sum_of_its_parts_in_each_round() {
        let mut run = run_with(OWN_PLAINTEXT, &[0.1, 0.2]);
        run.floor = of(&run);
        let floor = at(&run, &run.points[1].variables).unwrap();
        let close = |found: Option<f64>, wanted: f64| assert!((found.unwrap() - wanted).abs() < 1e-9);
        let values = floor.values_by_round(&CPU_PER_GB);
        close(values[0], 0.22);
        close(values[1], 0.32);
        close(floor.values_by_round(&DEMAND)[0], 0.22 * 1.024);
        assert_eq!(floor.values_by_round(&crate::quantity::APPLICATION), [None, None]);
        assert_eq!(floor.parts().unwrap(), "cipher 0.0900 + copy 0.0300 + linerate plaintext 0.150 s/GB");
    }

    #[test]
    fn a_response_costs_as_much_as_its_bytes() {
        let mut run = run_with(OWN_PLAINTEXT, &[0.1]);
        let Round::Measured(plaintext) = &mut run.points[0].rounds[0] else { panic!("it was measured") };
        // 1 MB: 0.1 s/GB are 100 µs.
        plaintext.server_us_per_response = Reading::Value(100.0);
        run.floor = of(&run);
        let floor = at(&run, &run.points[1].variables).unwrap();
        assert!((floor.values_by_round(&CPU_PER_RESPONSE)[0].unwrap() - 220.0).abs() < 1e-9);
        // The second round has no plaintext.
        assert_eq!(floor.values_by_round(&CPU_PER_RESPONSE)[1], None);
    }

    #[test]
    fn there_is_none_without_own_plaintext_and_it_is_named() {
        let Reading::NotAvailable(reason) = of(&run_with("nginx plaintext", &[0.1, 0.1])) else {
            panic!("nginx is not ours")
        };
        assert!(reason.contains("linerate plaintext"), "{reason}");
    }

    #[test]
    fn the_reason_of_the_rounds_is_that_of_the_run() {
        let mut run = run_with(OWN_PLAINTEXT, &[0.1, 0.1]);
        for round in run.points.iter_mut().flat_map(|point| &mut point.rounds) {
            let Round::Measured(measurement) = round else { panic!("it was measured") };
            measurement.seal_and_copy = Reading::NotAvailable("each request has a handshake".to_owned());
        }
        assert_eq!(of(&run), Reading::NotAvailable("each request has a handshake".to_owned()));
    }
}
