//! A plan and a check as tables for people.

use std::fmt::{self, Write};

use crate::published::Published;
use crate::sensitivity::Sensitivity;
use crate::{Constant, Kind, Machine, Outcome, Quantity, Role, Row, Workload};

/// Reasons with a smaller share are left out of the text.
const LEAST_SHARE: f64 = 0.005;

/// A plan: one line for each rate and engine, and what `auto` did.
#[must_use]
pub fn plan(machine: &Machine, workload: &Workload, rows: &[Row]) -> String {
    let mut text = format!("Machine:  {}\nWorkload: {}\n\n", machine.title, workload.title);
    // Writing to a text cannot fail.
    let _ = table(&mut text, rows);
    let _ = placements(&mut text, rows);
    text
}

fn table(text: &mut String, rows: &[Row]) -> fmt::Result {
    writeln!(
        text,
        "{:>5}  {:<9} {:>8} {:>6} {:>8} {:>9}  bottleneck",
        "NIC", "engine", "Gb/s", "CPU", "CPU s/GB", "DRAM GB/s"
    )?;
    let mut last = None;
    for row in rows {
        let found = &row.prediction;
        let nic = if last == Some(row.nic_gbit) { String::new() } else { figure(row.nic_gbit) };
        if last.is_some() && !nic.is_empty() {
            text.push('\n');
        }
        last = Some(row.nic_gbit);
        write!(
            text,
            "{nic:>5}  {:<9} {:>8} {:>4} % {:>8.3} {:>9.1}  {}",
            row.engine,
            figure(found.gbit_s),
            (found.cpu_share * 100.0).round(),
            found.cpu_s_per_gb,
            found.dram_gb_per_s,
            found.bottleneck.words()
        )?;
        match &row.note {
            Some(note) => writeln!(text, "; {note}")?,
            None => text.push('\n'),
        }
    }
    Ok(())
}

/// What `auto` did, rates at which it did the same in one.
fn placements(text: &mut String, rows: &[Row]) -> fmt::Result {
    let mut groups: Vec<(Vec<&Row>, String)> = Vec::new();
    for row in rows.iter().filter(|row| row.placement.is_some()) {
        let same = same(row);
        match groups.last_mut() {
            Some((group, known)) if *known == same => group.push(row),
            _ => groups.push((vec![row], same)),
        }
    }
    for (group, _) in groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        write!(text, "\nauto at {}", figure(first.nic_gbit))?;
        if group.len() > 1 {
            write!(text, " to {}", figure(last.nic_gbit))?;
        }
        placement(text, last)?;
    }
    Ok(())
}

/// Shares and reasons as they are shown, without the examples: what is the same has the same text.
fn same(row: &Row) -> String {
    let Some(placement) = &row.placement else { return String::new() };
    let mut text = [placement.user_bytes, placement.kernel_bytes, placement.nic_bytes].map(percent).join(" ");
    for reason in placement.reasons.iter().filter(|reason| reason.share >= LEAST_SHARE) {
        let _ = write!(text, " {} {}", reason.reason, percent(reason.share));
    }
    text
}

/// What `auto` did at one rate.
fn placement(text: &mut String, row: &Row) -> fmt::Result {
    let Some(placement) = &row.placement else { return Ok(()) };
    write!(
        text,
        " Gb/s: bytes by user {}, kernel {}, nic {}",
        percent(placement.user_bytes),
        percent(placement.kernel_bytes),
        percent(placement.nic_bytes)
    )?;
    if placement.nic_bytes > 0.0 {
        write!(
            text,
            "; up to {} set-ups/s and {:.0} flows at once",
            figure(placement.nic_set_ups_per_s),
            placement.nic_most_flows
        )?;
    }
    text.push('\n');
    for reason in placement.reasons.iter().filter(|reason| reason.share >= LEAST_SHARE) {
        writeln!(
            text,
            "  {:>5} of responses: {} ({})",
            percent(reason.share),
            reason.reason,
            reason.example
        )?;
    }
    Ok(())
}

/// The published points beside the predictions, as a table that Markdown knows as well.
#[must_use]
pub fn check(outcomes: &[Outcome]) -> String {
    let mut rows =
        vec![["point", "role", "published", "predicted", "error", "bottleneck"].map(str::to_owned)];
    for role in [Role::Fitted, Role::HeldOut] {
        rows.extend(outcomes.iter().filter(|outcome| outcome.point.role == role).map(|outcome| {
            let unit = unit(outcome.point.quantity);
            [
                outcome.point.name.clone(),
                if role == Role::Fitted { "fitted" } else { "held out" }.to_owned(),
                published(outcome.point.published, outcome.point.quantity),
                format!("{}{unit}", scaled(outcome.predicted, outcome.point.quantity)),
                error(outcome),
                outcome.bottleneck.to_owned(),
            ]
        }));
    }
    markdown(&rows)
}

/// The constants and their sources, likewise.
#[must_use]
pub fn constants(constants: &[Constant]) -> String {
    let mut rows = vec![["constant", "value", "", "source"].map(str::to_owned)];
    rows.extend(constants.iter().map(|constant| {
        let kind = match constant.kind {
            Kind::Measured => "measured",
            Kind::Published => "published",
            Kind::Fitted => "fitted",
            Kind::Estimated => "estimated",
        };
        [constant.name.to_owned(), constant.value.to_string(), kind.to_owned(), constant.source.to_owned()]
    }));
    markdown(&rows)
}

/// What a fifth more or less of a constant does, likewise.
#[must_use]
pub fn sensitivities(rows: &[Sensitivity]) -> String {
    let mut table =
        vec![["constant", "worst held-out error with a fifth less", "a fifth more"].map(str::to_owned)];
    table.extend(rows.iter().map(|row| [row.name.to_owned(), signed(row.less), signed(row.more)]));
    markdown(&table)
}

/// Columns of equal width.
fn markdown<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(text, "| {cell:width$} ");
        }
        text.push_str("|\n");
        if index == 0 {
            for width in widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}

fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::GbitS => " Gb/s",
        Quantity::MbyteS => " MB/s",
        Quantity::CpuShare => " % CPU",
        Quantity::PlaintextOverThis => " ×",
        Quantity::UsefulFromMbyte => " MB",
        Quantity::LineRateFromIoKib => " KiB",
    }
}

fn scaled(value: f64, quantity: Quantity) -> String {
    figure(if quantity == Quantity::CpuShare { value * 100.0 } else { value })
}

fn published(published: Published, quantity: Quantity) -> String {
    let unit = unit(quantity);
    match published {
        Published::Value(value) => format!("{}{unit}", scaled(value, quantity)),
        Published::Range([least, most]) => {
            format!("{} to {}{unit}", scaled(least, quantity), scaled(most, quantity))
        }
    }
}

fn error(outcome: &Outcome) -> String {
    match outcome.point.published {
        Published::Range(_) if outcome.error == 0.0 => "within".to_owned(),
        _ => signed(outcome.error),
    }
}

fn signed(part: f64) -> String {
    let percent = part * 100.0;
    // No minus in front of what rounds to nothing.
    if percent.abs() < 0.05 { "0.0 %".to_owned() } else { format!("{percent:+.1} %") }
}

fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent > 0.0 && percent < 1.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Three digits that count.
fn figure(value: f64) -> String {
    linerate_figures::figure(value, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_percentages() {
        assert_eq!(
            (percent(0.0), percent(0.004), percent(0.5)),
            ("0 %".into(), "0.4 %".into(), "50 %".into())
        );
        assert_eq!((signed(-0.0001), signed(0.046)), ("0.0 %".into(), "+4.6 %".into()));
    }

    #[test]
    fn tables_have_columns_of_equal_width() {
        let rows = [["a".to_owned(), "b".to_owned()], ["µµ".to_owned(), "c".to_owned()]];
        assert_eq!(markdown(&rows), "| a  | b |\n|----|---|\n| µµ | c |\n");
    }
}
