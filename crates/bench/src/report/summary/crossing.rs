//! Where one thing begins to outweigh another: the size at which bytes cost as much as the handshake, and the places
//! where one server overtakes another.

use crate::{
    report::{
        number,
        panel::{self, Panel, Sweep},
        quantity::{APPLICATION, CPU_PER_GB, CPU_PER_RESPONSE, Quantity, handshakes, responses},
    },
    statistics::Verdict,
};

/// More break-even points than these are a matter for the plots.
const BREAK_EVENS: usize = 6;

/// For each server that encrypts, the size of file at which the bytes cost as much as connection and handshake.
///
/// The price of a byte is taken from the two largest sizes, where the rest matters least; what the smallest size costs
/// beyond its bytes is the fixed part.
pub(super) fn fixed_costs(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    let sizes = match panel.numbers() {
        Some(sizes) if sweep.run.axis == "file_bytes" && sizes.len() > 2 => sizes,
        _ => return Vec::new(),
    };
    let sentence = |server: usize| {
        let a_handshake_each = (0..sizes.len())
            .filter_map(|place| panel.point(server, place))
            .all(|point| panel::measured(point).all(|round| handshakes(round) >= 0.9 * responses(round)));
        let costs: Vec<(f64, crate::statistics::Summary)> = sizes
            .iter()
            .enumerate()
            .filter_map(|(place, size)| {
                Some((*size, panel::summary(panel.point(server, place)?, &CPU_PER_RESPONSE)?))
            })
            .collect();
        let [first, .., before_last, last] = costs.as_slice() else { return None };
        let per_byte = (last.1.median - before_last.1.median) / (last.0 - before_last.0);
        let fixed = first.1.median - per_byte * first.0;
        let noise = first.1.upper_quartile - first.1.lower_quartile;
        if !a_handshake_each || per_byte <= 0.0 || fixed <= noise || first.1.count < 2 {
            return None;
        }
        let name = sweep.servers[server];
        let even = fixed / per_byte;
        let fixed = number::microseconds(fixed);
        Some(if even < first.0 {
            format!("{name}: bytes outweigh connection and handshake ({fixed}) at every size measured.")
        } else if even > last.0 {
            format!("{name}: connection and handshake ({fixed}) outweigh the bytes at every size measured.")
        } else {
            format!(
                "{name}: below about {} connection and handshake ({fixed} of server CPU) cost more than the bytes, above \
                 it less.",
                number::bytes(two_digits(even))
            )
        })
    };
    (0..sweep.servers.len()).filter(|server| !sweep.is_plaintext(*server)).filter_map(sentence).collect()
}

/// Where one of two servers that encrypt becomes the better one.
pub(super) fn break_even(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    let Some(numbers) = panel.numbers() else { return Vec::new() };
    let encrypting: Vec<usize> =
        (0..sweep.servers.len()).filter(|server| !sweep.is_plaintext(*server)).collect();
    let mut found = Vec::new();
    for quantity in [CPU_PER_GB, APPLICATION] {
        for (count, ours) in encrypting.iter().enumerate() {
            for theirs in &encrypting[count + 1..] {
                found.extend(crossings(sweep, panel, &numbers, &quantity, (*ours, *theirs)));
            }
        }
    }
    found.truncate(BREAK_EVENS);
    found
}

/// Between two places with opposite verdicts and none in between that decides, the ratio passes 1.
fn crossings(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    numbers: &[f64],
    quantity: &Quantity,
    (ours, theirs): (usize, usize),
) -> Vec<String> {
    let mut found = Vec::new();
    let mut before: Option<(f64, f64, Verdict)> = None;
    for (place, number) in numbers.iter().enumerate() {
        let Some(ratio) = panel.ratio(ours, theirs, place, quantity) else { continue };
        let verdict = ratio.verdict();
        if !matches!(verdict, Verdict::Less | Verdict::More) {
            continue;
        }
        if let Some((at, was, decided)) = before
            && decided != verdict
        {
            let even = interpolated((at, was), (*number, ratio.ratio));
            let ours_is_better = (verdict == Verdict::More) == quantity.more_is_better;
            let (better, worse) = if ours_is_better { (ours, theirs) } else { (theirs, ours) };
            let (better, worse) = (sweep.servers[better], sweep.servers[worse]);
            let even = two_digits(even);
            let even = if sweep.run.axis.ends_with("_bytes") {
                number::bytes(even)
            } else {
                format!("{} {}", number::chosen(even), sweep.run.axis.replace('_', " "))
            };
            let what = if quantity.more_is_better { "gives more" } else { "costs less CPU per byte" };
            found.push(format!(
                "Break-even at about {even}: from there on {better} {what} than {worse}, before it is \
                                the other way round."
            ));
        }
        before = Some((*number, ratio.ratio, verdict));
    }
    found
}

/// Where the logarithm of the ratio is zero between two places; sweeps over decades are interpolated by logarithm too.
fn interpolated((low, low_ratio): (f64, f64), (high, high_ratio): (f64, f64)) -> f64 {
    let share = low_ratio.ln() / (low_ratio.ln() - high_ratio.ln());
    if low > 0.0 { (low.ln() + share * (high.ln() - low.ln())).exp() } else { low + share * (high - low) }
}

/// An estimate deserves no more digits.
fn two_digits(value: f64) -> f64 {
    let unit = 10f64.powf(value.abs().max(f64::MIN_POSITIVE).log10().floor() - 1.0);
    (value / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_lies_where_the_ratio_is_one() {
        let even = interpolated((1e4, 2.0), (1e6, 0.5));
        assert!((even / 1e5 - 1.0).abs() < 1e-9, "{even}");
        let even = interpolated((0.0, 1.1), (10.0, 1.0 / 1.1));
        assert!((even - 5.0).abs() < 1e-9, "{even}");
        assert_eq!(two_digits(63_417.0), 63_000.0);
    }
}
