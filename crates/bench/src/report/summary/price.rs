//! What servers cost beside the one that speaks plaintext, and beside the floor.

use crate::quantity::{CPU_PER_GB, CPU_PER_RESPONSE, Quantity};
use crate::{
    report::{
        number,
        panel::{Panel, Sweep},
    },
    statistics::{Ratio, Verdict},
};

/// The ratios of one server to plaintext, by place.
struct Price {
    server: usize,
    ratios: Vec<(usize, Ratio)>,
}

/// CPU per byte of every server that encrypts, beside plaintext.
pub(super) fn of_tls(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    beside_plaintext(sweep, panel, &CPU_PER_GB, "server CPU per byte")
}

/// The same beside the floor.
pub(super) fn of_floor(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    sentences(sweep, panel, "the floor", "server CPU per byte", |server, place| {
        sweep.beside_floor(panel, server, place, &CPU_PER_GB)
    })
}

/// The same for each response.
pub(super) fn per_response(sweep: &Sweep<'_>, panel: &Panel<'_>) -> Vec<String> {
    beside_plaintext(sweep, panel, &CPU_PER_RESPONSE, "server CPU per response")
}

fn beside_plaintext(sweep: &Sweep<'_>, panel: &Panel<'_>, quantity: &Quantity, what: &str) -> Vec<String> {
    let Some(baseline) = sweep.baseline() else { return Vec::new() };
    sentences(sweep, panel, sweep.servers[baseline], what, |server, place| {
        panel.ratio(server, baseline, place, quantity)
    })
}

/// One sentence for all that cost something else than `beside`, one for each that does not.
fn sentences(
    sweep: &Sweep<'_>,
    panel: &Panel<'_>,
    beside: &str,
    what: &str,
    ratio_at: impl Fn(usize, usize) -> Option<Ratio>,
) -> Vec<String> {
    let price = |server: usize| {
        let ratio = |place: usize| Some((place, ratio_at(server, place)?));
        let ratios: Vec<(usize, Ratio)> = (0..panel.places.len()).filter_map(ratio).collect();
        (!ratios.is_empty()).then_some(Price { server, ratios })
    };
    let encrypting = (0..sweep.servers.len()).filter(|server| !sweep.is_plaintext(*server));
    let (same, differing): (Vec<Price>, Vec<Price>) =
        encrypting.filter_map(price).partition(Price::is_the_same);
    let mut said = Vec::new();
    if !differing.is_empty() {
        let doubt = doubt(&differing);
        let everywhere = if panel.places.len() > 1 { " at every point" } else { "" };
        said.push(if differing.iter().all(Price::is_constant) {
            let mut prices: Vec<String> = differing
                .iter()
                .map(|price| format!("{} {}", sweep.servers[price.server], price.constant()))
                .collect();
            let first = &differing[0];
            prices[0] = format!("{} costs {}", sweep.servers[first.server], first.constant());
            format!("{} {beside} in {what}{everywhere}{doubt}.", number::list(&prices))
        } else {
            let prices: Vec<String> = differing
                .iter()
                .map(|price| format!("{} {}", sweep.servers[price.server], price.range(sweep, panel)))
                .collect();
            format!("Beside {beside}, in {what}: {}{doubt}.", prices.join("; "))
        });
    }
    said.extend(same.iter().map(|price| {
        let everywhere = if price.ratios.len() > 1 { " at any point" } else { "" };
        let (low, high) = price.interval();
        format!(
            "{} and {beside}: no difference in {what} was found{everywhere} ({} to {}).",
            sweep.servers[price.server],
            number::times(low),
            number::times(high)
        )
    }));
    said
}

/// Words for ratios that come from too few rounds; nothing where none does.
fn doubt(prices: &[Price]) -> String {
    let ratios = || prices.iter().flat_map(|price| &price.ratios);
    let rounds = number::plural(ratios().map(|(_, ratio)| ratio.rounds).min().unwrap_or(0), "round");
    if ratios().any(|(_, ratio)| ratio.verdict() == Verdict::TooFewRounds) {
        return format!(" ({rounds}: too few to be sure)");
    }
    let open = ratios().any(|(_, ratio)| ratio.verdict() != Verdict::NoDifference && !ratio.is_settled());
    if open { format!(" ({rounds}: more are needed for one figure)") } else { String::new() }
}

impl Price {
    /// No place shows a difference.
    fn is_the_same(&self) -> bool {
        self.ratios.iter().all(|(_, ratio)| ratio.verdict() == Verdict::NoDifference)
    }

    /// All places say the same to within a tenth.
    fn is_constant(&self) -> bool {
        let differs = |(_, ratio): &(usize, Ratio)| ratio.verdict() != Verdict::NoDifference;
        self.ratios.iter().all(differs) && self.extreme(f64::gt).1.ratio / self.extreme(f64::lt).1.ratio < 1.1
    }

    /// The price of all places together: "1.20 ×" between the least and the most; where one of them is not settled "1.15 to
    /// 1.26 ×", which holds all that they may be.
    fn constant(&self) -> String {
        let middle = number::times((self.extreme(f64::lt).1.ratio * self.extreme(f64::gt).1.ratio).sqrt());
        let any = |is: fn(&Ratio) -> bool| self.ratios.iter().any(|(_, ratio)| is(ratio));
        if any(|ratio| ratio.verdict() == Verdict::TooFewRounds) {
            return format!("about {middle}");
        }
        if any(|ratio| !ratio.is_settled()) {
            let (low, high) = self.interval();
            return format!("{} to {}", number::times(low).trim_end_matches(" ×"), number::times(high));
        }
        middle
    }

    /// "1.20 × (at 100 MB) to 12 × (at 10 kB)".
    fn range(&self, sweep: &Sweep<'_>, panel: &Panel<'_>) -> String {
        if self.is_constant() {
            return self.constant();
        }
        let end = |(place, ratio): (usize, Ratio)| {
            let claim = match ratio.verdict() {
                Verdict::NoDifference => "no difference".to_owned(),
                _ if ratio.is_settled() => number::times(ratio.ratio),
                _ => format!("about {}", number::times(ratio.ratio)),
            };
            format!("{claim} ({})", sweep.at(panel.places[place]))
        };
        if self.ratios.len() == 1 {
            return end(self.ratios[0]);
        }
        format!("{} to {}", end(self.extreme(f64::lt)), end(self.extreme(f64::gt)))
    }

    /// The place whose ratio beats all others. There is one: a price has ratios.
    fn extreme(&self, beats: fn(&f64, &f64) -> bool) -> (usize, Ratio) {
        let better = |best: (usize, Ratio), next: &(usize, Ratio)| {
            if beats(&next.1.ratio, &best.1.ratio) { *next } else { best }
        };
        self.ratios[1..].iter().fold(self.ratios[0], better)
    }

    /// The hull of all intervals.
    fn interval(&self) -> (f64, f64) {
        let low = self.ratios.iter().map(|(_, ratio)| ratio.low).fold(f64::INFINITY, f64::min);
        let high = self.ratios.iter().map(|(_, ratio)| ratio.high).fold(0.0, f64::max);
        (low, high)
    }
}
