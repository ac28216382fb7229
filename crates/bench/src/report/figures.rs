//! Which quantities of a run are drawn, and how points become marks.

use super::{
    conditions, number,
    panel::{self, Cell, Panel, Sweep},
    plot::{Failure, Horizontal, Mark, Plot, Published, PublishedValue, Series},
};
use crate::floor::FLOOR;
use crate::quantity::{
    self, APPLICATION, CPU_PER_GB, CPU_PER_RESPONSE, CPU_SHARE, PER_CONNECTION, Quantity, SENDER_DEMAND, WIRE,
};
use crate::result::Variable;

/// A plot and the name of its file.
pub(super) struct Figure {
    /// The plot.
    pub plot: Plot,
    /// Experiment and panel.
    pub context: String,
    /// Congestion control, processor, kernel.
    pub conditions: String,
    /// "t7-connections-application_gbit_s.svg"
    pub file: String,
}

/// From this many connections on, memory per connection is a question.
const MANY_CONNECTIONS: f64 = 1000.0;

/// All figures of a panel. `number` tells panels of a run apart in file names.
pub(super) fn figures(sweep: &Sweep<'_>, panel: &Panel<'_>, number: usize) -> Vec<Figure> {
    let quantities = quantities(sweep, panel);
    let figure = |quantity: &Quantity| {
        let plot = plot(sweep, panel, quantity);
        let context = match panel.label.as_str() {
            "" => sweep.run.name.clone(),
            label => format!("{}: {label}", sweep.run.name),
        };
        let middle = if sweep.panels.len() > 1 { format!("-{}", number + 1) } else { String::new() };
        let file = format!("{}{middle}-{}.svg", file_name(&sweep.run.name), quantity.key);
        let conditions = conditions::of_panel(sweep.run, panel);
        (!plot.is_empty()).then_some(Figure { plot, context, conditions, file })
    };
    quantities.iter().filter_map(figure).collect()
}

/// A name that is safe in a path: the experiment's, which a user may have chosen.
pub(super) fn file_name(name: &str) -> String {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '-' };
    let name: String = name.chars().take(60).map(safe).collect();
    if name.is_empty() { "experiment".to_owned() } else { name }
}

/// What the experiment says that it is about; where it says nothing, throughput and CPU, as the papers draw them.
fn quantities(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<Quantity> {
    let named = sweep.run.quantities.iter().filter_map(|key| quantity::named(key));
    // The wire is drawn beside the application.
    let mut drawn: Vec<Quantity> = named.filter(|quantity| quantity.key != WIRE.key).collect();
    if drawn.is_empty() {
        drawn = vec![APPLICATION, CPU_PER_GB];
    }
    let is_of_streams = drawn.iter().any(|quantity| quantity.key == SENDER_DEMAND.key);
    let mut add = |wanted: bool, quantity: Quantity| {
        if wanted && !drawn.iter().any(|other| other.key == quantity.key) {
            drawn.push(quantity);
        }
    };
    let has_bytes = !measures_handshakes(sweep);
    add(has_bytes && !is_of_streams, CPU_SHARE);
    add(has_bytes && sweep.run.axis == "file_bytes", CPU_PER_RESPONSE);
    let most = panel.numbers().unwrap_or_default().into_iter().fold(0.0, f64::max);
    add(sweep.run.axis == "connections" && most >= MANY_CONNECTIONS, PER_CONNECTION);
    for published in &sweep.run.published {
        if let Some(quantity) = quantity::named(&published.quantity) {
            add(quantity.key != WIRE.key, quantity);
        }
    }
    drawn
}

/// The experiment is about handshakes: bytes are beside the point.
pub(super) fn measures_handshakes(sweep: &Sweep<'_>) -> bool {
    quantity::is_about_handshakes(&sweep.run.quantities)
}

/// The plot of one quantity.
pub(super) fn plot(sweep: &Sweep<'_>, panel: &Panel<'_>, quantity: &Quantity) -> Plot {
    let numbers = panel.numbers().filter(|numbers| numbers.len() > 2);
    let at = |place: usize| numbers.as_ref().map_or(place as f64, |numbers| numbers[place]);
    let mut series: Vec<Series> = sweep
        .servers
        .iter()
        .enumerate()
        .map(|(position, name)| Series {
            name: (*name).to_owned(),
            position,
            marks: Vec::new(),
            second: Vec::new(),
        })
        .collect();
    let mut failures = Vec::new();
    for cell in panel.cells() {
        if let Some(summary) = panel::summary(cell.point, quantity) {
            let hollow = panel::client_limited(cell.point).is_some();
            let says = says(sweep, panel, cell, quantity);
            series[cell.server].marks.push(Mark { at: at(cell.place), summary, hollow, says });
        } else if panel::measured(cell.point).next().is_none()
            && let Some((reason, _)) = panel::failures(cell.point).next()
        {
            let says = format!("{}: failed: {reason}", place(sweep, panel, cell));
            let name = sweep.servers[cell.server].to_owned();
            failures.push(Failure { name, position: cell.server, at: at(cell.place), says });
        }
        if quantity.key == APPLICATION.key
            && numbers.is_some()
            && let Some(wire) = panel::summary(cell.point, &WIRE)
        {
            series[cell.server].second.push((at(cell.place), wire.median));
        }
    }
    series.extend(floor(sweep, panel, quantity, at));
    let bytes = sweep.run.axis.ends_with("_bytes");
    let horizontal = match &numbers {
        Some(values) => {
            Horizontal::Numbers { values: values.clone(), bytes, logarithmic: sweep.run.axis_is_logarithmic }
        }
        None => Horizontal::Categories(panel.places.iter().map(|value| sweep.place_title(value)).collect()),
    };
    Plot {
        title: quantity.title.to_owned(),
        note: note(panel),
        horizontal,
        horizontal_name: panel::axis_name(&sweep.run.axis),
        unit: quantity.unit,
        series,
        published: published(sweep, panel, quantity, numbers.is_some()),
        failures,
    }
}

/// What is computed beside the servers, of a quantity that has a floor.
fn floor(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    quantity: &Quantity,
    at: impl Fn(usize) -> f64,
) -> Option<Series> {
    let mark = |place: usize| {
        let floor = sweep.floor(panel, place)?;
        let summary = floor.summary(quantity)?;
        let (value, parts) = (number::short(summary.median), floor.parts()?);
        let says = format!(
            "the floor {}: {value} {}, computed: {parts}",
            sweep.at(panel.places[place]),
            quantity.unit
        );
        Some(Mark { at: at(place), summary, hollow: false, says })
    };
    let marks: Vec<Mark> = (0..panel.places.len()).filter_map(mark).collect();
    let name = format!("{FLOOR} (computed)");
    (!marks.is_empty()).then(|| Series { name, position: sweep.servers.len(), marks, second: Vec::new() })
}

/// The published series of a quantity; those of the wire are seen beside application throughput. Where places are
/// categories, a place on the axis is the position of the category.
fn published(sweep: &Sweep<'_>, panel: &Panel<'_>, quantity: &Quantity, is_line: bool) -> Vec<Published> {
    let fits = |key: &str| key == quantity.key || (quantity.key == APPLICATION.key && key == WIRE.key);
    let place = |at: &Variable| match at {
        Variable::Number(at) if is_line => Some(*at),
        at => panel.places.iter().position(|place| *place == at).map(|position| position as f64),
    };
    let mut series: Vec<Published> = Vec::new();
    for published in sweep.run.published.iter().filter(|series| fits(&series.quantity)) {
        let finite = published.values.iter().filter(|value| value.low.is_finite() && value.high.is_finite());
        let values: Vec<PublishedValue> = finite
            .map(|value| PublishedValue {
                at: place(&value.at),
                low: value.low * quantity.scale,
                high: value.high * quantity.scale,
            })
            .collect();
        if !values.is_empty() {
            series.push(Published { name: published.name.clone(), source: published.source.clone(), values });
        }
    }
    series
}

/// How the points were made, in a sentence or two.
pub(super) fn note(panel: &Panel<'_>) -> String {
    let counts = || panel.cells().map(|cell| panel::measured(cell.point).count()).filter(|count| *count > 0);
    let mut note = match (counts().min(), counts().max()) {
        (Some(1), Some(1)) => "One round for each point: no spread is known.".to_owned(),
        (Some(least), Some(most)) if least == most => {
            format!("Medians of {most} rounds; whiskers from quartile to quartile.")
        }
        (Some(least), Some(most)) => {
            format!("Medians of {least} to {most} rounds; whiskers from quartile to quartile.")
        }
        _ => return String::new(),
    };
    let discarded = panel.cells().filter(|cell| panel::discarded(cell.point)).count();
    if discarded > 0 {
        let which = if discarded == panel.cells().count() { "Bodies" } else { "At some points bodies" };
        note.push_str(&format!(
            " {which} were thrown away unread by the client: the sender is what was measured."
        ));
    }
    note
}

fn place(sweep: &Sweep<'_>, panel: &Panel<'_>, cell: Cell<'_>) -> String {
    format!("{} {}", sweep.servers[cell.server], sweep.at(panel.places[cell.place]))
}

/// A point in words.
fn says(sweep: &Sweep<'_>, panel: &Panel<'_>, cell: Cell<'_>, quantity: &Quantity) -> String {
    let Some(summary) = panel::summary(cell.point, quantity) else { return String::new() };
    let mut text =
        format!("{}: {} {}", place(sweep, panel, cell), number::short(summary.median), quantity.unit);
    if summary.count > 1 {
        let (low, high) = (number::short(summary.lower_quartile), number::short(summary.upper_quartile));
        text.push_str(&format!(" (quartiles {low}–{high}, {} rounds)", summary.count));
    } else {
        text.push_str(" (one round)");
    }
    if let Some(reason) = panel::client_limited(cell.point) {
        text.push_str(&format!("; client-limited: {reason}"));
    }
    match panel::failures(cell.point).count() {
        0 => {}
        failed => text.push_str(&format!("; {} failed", number::plural(failed, "round"))),
    }
    text
}
