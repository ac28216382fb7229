//! What is measured: engines, adapters, sizes, and how many responses of each make a count.

use serde::{Deserialize, Serialize};

use super::super::client::counted::Manner;

/// Lengths of files, if nothing else is said.
pub(super) const SIZES_BYTES: [u64; 7] =
    [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// From here on rounds of one engine differ by up to a half: how acknowledgements and bursts fall decides how often the
/// driver is called. There are so many times as many of them.
const SCATTERED_BYTES: u64 = 500_000;
const MORE_ROUNDS: u32 = 3;

/// From here on a point is a single transfer, or one for each that is under way at a time, and what it brings is not
/// decrypted: that would take hours.
const LONG_BYTES: u64 = 50_000_000;

/// Bytes of a count, about: enough that what begins and ends it does not show.
const COUNT_BYTES: u64 = 4_000_000;

/// What encrypts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Subject {
    /// The user engine.
    User,
    /// Kernel TLS from the first byte of every response.
    Kernel,
    /// The adapter from the first byte of every response.
    Nic,
    /// The engine that placement chooses.
    Auto,
}

impl Subject {
    pub(super) const ALL: [Self; 4] = [Self::User, Self::Kernel, Self::Nic, Self::Auto];

    /// What is measured behind an adapter, or without one that encrypts.
    pub(super) fn behind(adapter: Option<Adapter>) -> [Self; 2] {
        if adapter.is_some() { [Self::Nic, Self::Auto] } else { [Self::User, Self::Kernel] }
    }

    /// As the command line has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Nic => "nic",
            Self::Auto => "auto",
        }
    }

    /// As the experiment `never-lose` of `linerate bench` calls it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::User => "linerate user",
            Self::Kernel => "kernel for everything",
            Self::Nic => "nic for everything",
            Self::Auto => "linerate auto",
        }
    }

    /// What it needs in its configuration: the fixed ones no threshold, and placement no learning. An adapter of silicon
    /// takes no time of the processor; the model does, in the server's own turns, and that would be learnt. A guest that
    /// waits for the host has nothing to do, and its clock jumps to the next timer, so these are far away.
    pub(super) fn configuration(self) -> String {
        let engine = match self {
            Self::User => "",
            Self::Kernel | Self::Nic => "[kernel_engine]\nfrom = \"1B\"\n",
            Self::Auto => "[placement]\nlearning = false\n",
        };
        const FAR: &str = "\"1h\"";
        format!(
            "[limits]\nleast_rate = \"0B\"\n[timeouts]\nidle = {FAR}\nheader = {FAR}\nwrite_progress = {FAR}\nhandshake = {FAR}\n{engine}"
        )
    }
}

/// What an adapter can set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Adapter {
    /// A ConnectX-6 Dx as its owner saw it.
    SetUps850,
    /// NVIDIA's figure with recycled objects.
    SetUps16500,
    /// What NVIDIA aimed at with keys from a pool.
    SetUps100000,
}

impl Adapter {
    pub(super) const ALL: [Self; 3] = [Self::SetUps850, Self::SetUps16500, Self::SetUps100000];

    /// Parameters of the module; nic/README.md has where the figures are from.
    pub(super) fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::SetUps850 => &["preset=connectx6dx"],
            Self::SetUps16500 => &["preset=connectx7"],
            Self::SetUps100000 => {
                &["preset=connectx7", "setup_commands=0", "teardown_commands=0", "setups_per_second=100000"]
            }
        }
    }

    pub(super) fn set_ups_per_s(self) -> u32 {
        match self {
            Self::SetUps850 => 850,
            Self::SetUps16500 => 16_500,
            Self::SetUps100000 => 100_000,
        }
    }
}

/// One size in one manner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    /// Length of the file.
    pub(super) file_bytes: u64,
    /// How it is asked for.
    pub(super) manner: Manner,
    /// Connections that are kept.
    pub(super) connections: u32,
    /// Requests that are under way at a time.
    pub(super) at_a_time: u32,
    /// Responses of each.
    pub(super) responses: u32,
}

impl Point {
    /// The points of a size: on kept connections and with one each, or, where it is long, one that stands for both.
    pub(super) fn of(file_bytes: u64, at_a_time: u32) -> Vec<Self> {
        if file_bytes >= LONG_BYTES {
            let manner = Manner::Discarded;
            return vec![Self { file_bytes, manner, connections: at_a_time, responses: 1, at_a_time }];
        }
        let least_connections = u64::from(at_a_time);
        let of = |manner, most_connections: u64, most_responses: u64| {
            let most_connections = most_connections.max(least_connections);
            // Two responses at least: a connection that is asked once is not a kept one.
            let total = (COUNT_BYTES / file_bytes.max(1))
                .clamp(2 * least_connections, most_connections * most_responses);
            let connections = most_connections.min(total / 2);
            let responses = total.div_ceil(connections);
            let [connections, responses] = [connections, responses].map(|number| number as u32);
            Self { file_bytes, manner, connections, responses, at_a_time }
        };
        vec![of(Manner::Kept, 4, 100), of(Manner::OneEach, 2, 20)]
    }

    /// Rounds of it, where short ones have so many.
    pub(super) fn rounds(&self, rounds: u32) -> u32 {
        if self.manner == Manner::Discarded {
            rounds.div_ceil(2)
        } else if self.file_bytes >= SCATTERED_BYTES {
            rounds.saturating_mul(MORE_ROUNDS)
        } else {
            rounds
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_long_enough_and_kept_connections_are_kept() {
        for (bytes, at_a_time) in
            [1, 4, 7].map(|at_a_time| SIZES_BYTES.map(|bytes| (bytes, at_a_time))).concat()
        {
            for point in Point::of(bytes, at_a_time) {
                assert!(point.connections >= at_a_time || point.manner == Manner::OneEach, "{point:?}");
                let total = u64::from(point.connections) * u64::from(point.responses);
                assert!(point.manner == Manner::Discarded || point.responses >= 2, "{point:?}");
                assert!(total >= 40 || total * bytes >= 4_000_000, "{point:?}");
                assert!(total * bytes <= u64::from(at_a_time) * 1_000_000_000, "{point:?}");
            }
        }
        assert_eq!(Point::of(1_000_000_000, 1).len(), 1);
        assert_eq!(Point::of(1_000_000, 1)[0].manner, Manner::Kept);
    }

    #[test]
    fn what_scatters_has_more_rounds() {
        let rounds = |bytes: u64| Point::of(bytes, 1)[0].rounds(5);
        assert_eq!([100_000, 1_000_000, 1_000_000_000].map(rounds), [5, 15, 3]);
    }
}
