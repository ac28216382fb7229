//! A run sorted for the eye: which variable is the axis, which were held, which make panels of their own.

use std::collections::BTreeSet;

use super::number;
use crate::floor;
use crate::quantity::{Quantity, values_by_round};
use crate::{
    result::{ExperimentRun, FloorPoint, Measurement, Point, Reading, Round, Variable},
    statistics::{Ratio, Summary},
};

/// A run as panels: one for each combination of the variables beside the axis.
pub(super) struct Sweep<'run> {
    /// The run.
    pub run: &'run ExperimentRun,
    /// Names of the servers, in the order of the definition. A series has the same position in every plot.
    pub servers: Vec<&'run str>,
    /// Variables that had one value throughout, in words.
    pub held: Vec<String>,
    /// The panels, in the order in which they were run.
    pub panels: Vec<Panel<'run>>,
}

/// The points that differ in server and axis alone.
pub(super) struct Panel<'run> {
    /// The values of the other variables that vary: "TLS 1.3 · cold". Empty if there is one panel.
    pub label: String,
    /// The values of the axis: numbers in their order, words as they came.
    pub places: Vec<&'run Variable>,
    /// For each server, for each place.
    cells: Vec<Vec<Option<&'run Point>>>,
}

/// What a server did at a place.
#[derive(Clone, Copy)]
pub(super) struct Cell<'run> {
    /// Position of the server.
    pub server: usize,
    /// Position of the place.
    pub place: usize,
    /// What was measured.
    pub point: &'run Point,
}

static WITHOUT: Variable = Variable::Word(String::new());

impl<'run> Sweep<'run> {
    /// Sorts a run.
    pub(super) fn of(run: &'run ExperimentRun) -> Self {
        let mut servers: Vec<&str> = run.servers.iter().map(|server| server.name.as_str()).collect();
        for point in &run.points {
            if !servers.contains(&point.server.as_str()) {
                servers.push(&point.server);
            }
        }
        let names: BTreeSet<&String> = run
            .points
            .iter()
            .flat_map(|point| point.variables.keys())
            .filter(|name| **name != run.axis)
            .collect();
        let is_held = |name: &&String| {
            let mut values = run.points.iter().filter_map(|point| point.variables.get(*name));
            let first = values.next();
            values.all(|value| Some(value) == first)
        };
        let (held, varied): (Vec<&String>, Vec<&String>) = names.into_iter().partition(is_held);
        let value = |name: &String| run.points.iter().find_map(|point| point.variables.get(name));
        let mut held: Vec<String> =
            held.into_iter().filter_map(|name| Some(pair(name, value(name)?))).collect();
        // What the command line set to one value, no point has among its variables.
        held.extend(
            run.changed
                .iter()
                .filter(|(_, values)| values.len() == 1)
                .map(|(name, values)| pair(name, &values[0])),
        );
        let panels = combinations(run, &varied)
            .into_iter()
            .map(|combination| {
                let label: Vec<String> = combination.iter().map(|(name, value)| pair(name, value)).collect();
                let belongs =
                    |point: &&Point| combination.iter().all(|(name, value)| admits(point, name, value));
                let points: Vec<&Point> = run.points.iter().filter(belongs).collect();
                Panel::of(label.join(" · "), &run.axis, &servers, &points)
            })
            .collect();
        Self { run, servers, held, panels }
    }

    /// The position of the server that others are held against: the first that speaks plaintext.
    pub(super) fn baseline(&self) -> Option<usize> {
        self.run.servers.iter().position(|server| server.plaintext)
    }

    /// Whether the server at this position speaks plaintext.
    pub(super) fn is_plaintext(&self, server: usize) -> bool {
        self.run.servers.get(server).is_some_and(|server| server.plaintext)
    }

    /// Whether servers can be held against a floor.
    pub(super) fn has_floor(&self) -> bool {
        self.run.floor.value().is_some()
    }

    /// The floor of the servers at a place of a panel.
    pub(super) fn floor(&self, panel: &Panel<'run>, place: usize) -> Option<&'run FloorPoint> {
        let encrypting = (0..self.servers.len()).filter(|server| !self.is_plaintext(*server));
        encrypting
            .filter_map(|server| panel.point(server, place))
            .find_map(|point| floor::at(self.run, &point.variables))
    }

    /// A server that encrypts beside the floor, paired by round.
    pub(super) fn beside_floor(
        &self,
        panel: &Panel<'run>,
        server: usize,
        place: usize,
        quantity: &Quantity,
    ) -> Option<Ratio> {
        let point = panel.point(server, place).filter(|_| !self.is_plaintext(server))?;
        let floor = floor::at(self.run, &point.variables)?;
        Ratio::paired(&values_by_round(point, quantity), &floor.values_by_round(quantity))
    }

    /// A place in words: "100 connections", "64 KiB", "AES".
    pub(super) fn place_name(&self, place: &Variable) -> String {
        match place {
            Variable::Word(word) if word.is_empty() => "all".to_owned(),
            Variable::Word(word) => word.clone(),
            Variable::Number(value) if self.run.axis.ends_with("_bytes") => number::bytes(*value),
            Variable::Number(value) => number::chosen(*value),
        }
    }

    /// A place in a sentence: "at 100 connections", "at 64 kB".
    pub(super) fn at(&self, place: &Variable) -> String {
        match place {
            Variable::Number(_) if !self.run.axis.ends_with("_bytes") => {
                let mut noun = self.run.axis.replace('_', " ");
                if *place == Variable::Number(1.0) {
                    noun = noun.trim_end_matches('s').to_owned();
                }
                format!("at {} {noun}", self.place_name(place))
            }
            Variable::Number(_) => format!("at {}", self.place_name(place)),
            Variable::Word(word) if word.is_empty() => "at its only point".to_owned(),
            Variable::Word(word) => format!("with {} {word}", words(&self.run.axis)),
        }
    }

    /// A place as a heading: "100 connections", "64 kB", "hot".
    pub(super) fn place_title(&self, place: &Variable) -> String {
        match place {
            Variable::Number(_) => self.at(place).trim_start_matches("at ").to_owned(),
            Variable::Word(_) => self.place_name(place),
        }
    }
}

/// A variable and its value.
type Setting<'run> = (&'run str, &'run Variable);

/// What panels there are: the combinations of varied variables that occur. A point that lacks one of them, as a
/// plaintext server lacks the cipher, makes no combination of its own where others are compatible with it.
fn combinations<'run>(run: &'run ExperimentRun, varied: &[&'run String]) -> Vec<Vec<Setting<'run>>> {
    let mut combinations: Vec<Vec<Setting<'run>>> = Vec::new();
    for point in &run.points {
        let settings: Vec<Setting<'run>> =
            varied.iter().filter_map(|name| Some((name.as_str(), point.variables.get(*name)?))).collect();
        if !combinations.contains(&settings) {
            combinations.push(settings);
        }
    }
    let is_part = |small: &Vec<Setting<'_>>, large: &Vec<Setting<'_>>| {
        small.len() < large.len() && small.iter().all(|setting| large.contains(setting))
    };
    let whole = combinations.clone();
    combinations.retain(|small| !whole.iter().any(|large| is_part(small, large)));
    combinations
}

/// The point was measured with this value, or the variable means nothing to it.
fn admits(point: &Point, name: &str, value: &Variable) -> bool {
    point.variables.get(name).is_none_or(|other| other == value)
}

impl<'run> Panel<'run> {
    fn of(label: String, axis: &str, servers: &[&str], points: &[&'run Point]) -> Self {
        let mut places: Vec<&Variable> = Vec::new();
        for place in points.iter().filter_map(|point| point.variables.get(axis)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        if let Some(mut numbers) =
            places.iter().map(|place| Some((as_number(place)?, *place))).collect::<Option<Vec<_>>>()
        {
            numbers.sort_by(|one, other| one.0.total_cmp(&other.0));
            places = numbers.into_iter().map(|(_, place)| place).collect();
        }
        if places.is_empty() {
            places.push(&WITHOUT);
        }
        let mut cells = vec![vec![None; places.len()]; servers.len()];
        for point in points {
            let Some(server) = servers.iter().position(|server| *server == point.server) else { continue };
            for (column, place) in places.iter().enumerate() {
                // A point to which the axis means nothing is the same at every place.
                match point.variables.get(axis) {
                    Some(own) if own == *place => cells[server][column] = Some(*point),
                    None if cells[server][column].is_none() => cells[server][column] = Some(*point),
                    _ => {}
                }
            }
        }
        Self { label, places, cells }
    }

    /// What was measured of a server at a place.
    pub(super) fn point(&self, server: usize, place: usize) -> Option<&'run Point> {
        *self.cells.get(server)?.get(place)?
    }

    /// All that was measured, place by place.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell<'run>> + '_ {
        let servers = self.cells.len();
        (0..self.places.len()).flat_map(move |place| {
            (0..servers)
                .filter_map(move |server| Some(Cell { server, place, point: self.point(server, place)? }))
        })
    }

    /// A point in words: "nginx TLS at 100 connections (TLS 1.3)".
    pub(super) fn name_of(&self, sweep: &Sweep<'_>, cell: Cell<'_>) -> String {
        let name = format!("{} {}", sweep.servers[cell.server], sweep.at(self.places[cell.place]));
        if self.label.is_empty() { name } else { format!("{name} ({})", self.label) }
    }

    /// The values of the axis, if all are numbers.
    pub(super) fn numbers(&self) -> Option<Vec<f64>> {
        self.places.iter().map(|place| as_number(place)).collect()
    }

    /// `ours` to `theirs` at a place, paired by round.
    pub(super) fn ratio(
        &self,
        ours: usize,
        theirs: usize,
        place: usize,
        quantity: &Quantity,
    ) -> Option<Ratio> {
        let ours = values_by_round(self.point(ours, place)?, quantity);
        let theirs = values_by_round(self.point(theirs, place)?, quantity);
        Ratio::paired(&ours, &theirs)
    }
}

fn as_number(place: &Variable) -> Option<f64> {
    match place {
        Variable::Number(value) => Some(*value),
        Variable::Word(_) => None,
    }
}

/// A variable and its value in words: "file 2 GB", "connections 100", "TLS_AES_256_GCM_SHA384".
fn pair(name: &str, value: &Variable) -> String {
    match value {
        Variable::Word(word) => format!("{} {word}", words(name)),
        Variable::Number(value) if name.ends_with("_bytes") => {
            format!("{} {}", words(name.trim_end_matches("_bytes")), number::bytes(*value))
        }
        Variable::Number(value) => format!("{} {}", words(name), number::chosen(*value)),
    }
}

fn words(name: &str) -> String {
    let words = name.replace('_', " ");
    if words == "tls" { "TLS".to_owned() } else { words }
}

/// The name of an axis: "Connections", "File size".
pub(super) fn axis_name(axis: &str) -> String {
    let name = match axis.strip_suffix("_bytes") {
        Some(what) => format!("{} size", words(what)),
        None => words(axis),
    };
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The rounds of a point that were measured.
pub(super) fn measured(point: &Point) -> impl Iterator<Item = &Measurement> {
    point.rounds.iter().filter_map(|round| match round {
        Round::Measured(measurement) => Some(&**measurement),
        Round::Failed { .. } => None,
    })
}

/// The rounds of a point that failed: reason and log.
pub(super) fn failures(point: &Point) -> impl Iterator<Item = (&str, &[String])> {
    point.rounds.iter().filter_map(|round| match round {
        Round::Failed { reason, log } => Some((reason.as_str(), log.as_slice())),
        Round::Measured(_) => None,
    })
}

/// A quantity over all rounds of a point.
pub(super) fn summary(point: &Point, quantity: &Quantity) -> Option<Summary> {
    Summary::of(&values_by_round(point, quantity).into_iter().flatten().collect::<Vec<_>>())
}

/// Why no round of the point has a value, if one was measured.
pub(super) fn unavailable(point: &Point, quantity: &Quantity) -> Option<String> {
    measured(point).find_map(|round| match (quantity.read)(round) {
        Reading::NotAvailable(reason) => Some(reason),
        Reading::Value(value) if !value.is_finite() => Some("what was computed is not a number".to_owned()),
        Reading::Value(_) => None,
    })
}

/// Why the load client is thought to have been the limit in most rounds of a point.
pub(super) fn client_limited(point: &Point) -> Option<&str> {
    let reasons: Vec<&str> = measured(point)
        .filter_map(|round| round.load.iter().find_map(|load| load.client_limited.as_deref()))
        .collect();
    (2 * reasons.len() > measured(point).count()).then(|| reasons[0])
}

/// Whether bodies were thrown away unread in any round of a point.
pub(super) fn discarded(point: &Point) -> bool {
    measured(point).any(|round| round.load.iter().any(|load| load.discarded))
}

/// Whether every byte was compared in all rounds of a point.
pub(super) fn verified(point: &Point) -> bool {
    measured(point).count() > 0 && measured(point).all(|round| round.load.iter().all(|load| load.verified))
}
