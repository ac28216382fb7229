//! Targets as rows of a table, for the page and for the terminal.

use super::{number, panel::Sweep};
use crate::quantity::{self, Quantity};
use crate::{
    result::Variable,
    targets::{Beside, Found, Judged},
};

/// A target in words.
pub(super) struct Row {
    /// Which server, and where.
    pub server: String,
    /// What is divided by what, or the figure.
    pub of: String,
    /// What was found.
    pub found: String,
    /// What was asked for.
    pub most: String,
    /// "met", "MISSED", and how sure that is.
    pub verdict: String,
    /// It is known to be missed, or likely.
    pub is_missed: bool,
}

/// A row for each target at each of its points.
pub(super) fn rows(sweep: &Sweep<'_>, judged: &[Judged<'_>]) -> Vec<Row> {
    judged.iter().map(|judged| row(sweep, judged)).collect()
}

fn row(sweep: &Sweep<'_>, judged: &Judged<'_>) -> Row {
    let Judged { target, point: place, beside, found } = judged;
    let point = |place: usize| {
        let point = &sweep.run.points[place];
        let values: Vec<String> = point.variables.iter().map(|(name, value)| pair(name, value)).collect();
        if values.is_empty() {
            point.server.clone()
        } else {
            format!("{} ({})", point.server, values.join(", "))
        }
    };
    let named = target.quantity.as_ref().and_then(|name| quantity::named(name));
    let quantity = named.unwrap_or_else(|| quantity::price(&sweep.run.quantities));
    let what = quantity.title.to_lowercase().replace("cpu", "CPU");
    let of = match beside {
        Some(Beside::Floor) => format!("{what} / the floor"),
        Some(Beside::Point(beside)) if sweep.run.points[*beside].server == target.server => {
            format!("{what} / {}", point(*beside))
        }
        Some(Beside::Point(beside)) => format!("{what} / {}", sweep.run.points[*beside].server),
        None => what,
    };
    let is_missed = found.is_some_and(|found| found.value() > target.most);
    let verdict = match found {
        None => "not measured".to_owned(),
        Some(found) => {
            let word = if is_missed { "MISSED" } else { "met" };
            if found.is_settled() { word.to_owned() } else { format!("{word}, not settled") }
        }
    };
    Row {
        server: point(*place),
        of,
        found: found.as_ref().map_or_else(|| "–".to_owned(), |found| found_text(found, &quantity)),
        most: match beside {
            Some(_) => number::times(target.most),
            None => figure(target.most, &quantity),
        },
        verdict,
        is_missed,
    }
}

fn found_text(found: &Found, quantity: &Quantity) -> String {
    match found {
        Found::Ratio(ratio) => format!(
            "{} ({}–{})",
            number::times(ratio.ratio),
            number::times(ratio.low).trim_end_matches(" ×"),
            number::times(ratio.high).trim_end_matches(" ×")
        ),
        Found::Figure(summary) => figure(summary.median, quantity),
    }
}

/// A value of the field, in the reader's unit.
fn figure(value: f64, quantity: &Quantity) -> String {
    format!("{} {}", number::short(value * quantity.scale), quantity.unit)
}

fn pair(name: &str, value: &Variable) -> String {
    match value {
        Variable::Number(value) if name.ends_with("_bytes") => number::bytes(*value),
        Variable::Number(value) => format!("{} {}", number::chosen(*value), name.replace('_', " ")),
        Variable::Word(word) => word.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        sample::{run_of, target},
        targets::judged,
    };

    fn verdicts(most: f64, rounds: usize) -> Vec<(String, String, bool)> {
        let mut run = run_of(&[("nginx tls", &vec![0.4; rounds]), ("linerate user", &vec![0.2; rounds])]);
        run.targets.push(target(most));
        let rows = rows(&Sweep::of(&run), &judged(&run));
        rows.into_iter().map(|row| (row.found, row.verdict, row.is_missed)).collect()
    }

    #[test]
    fn a_target_is_met_at_its_value() {
        let found =
            |verdict: &str, missed| vec![("0.50 × (0.50–0.50)".to_owned(), verdict.to_owned(), missed)];
        assert_eq!(verdicts(0.5, 5), found("met", false));
        assert_eq!(verdicts(0.499, 5), found("MISSED", true));
        assert_eq!(verdicts(0.5, 2), found("met, not settled", false));
    }
}
