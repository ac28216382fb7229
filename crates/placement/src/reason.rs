//! A decision and its reason, which carries the figures that it was made by.

use crate::{Engine, Lack, labels::labels};
use linerate_figures as figures;
use std::fmt;

/// Which engine, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// What carries the response from here on.
    pub engine: Engine,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Decision {
    /// `user: 10 kB response, break-even 380 kB`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.engine, self.reason)
    }
}

/// When there is a use in deciding anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Never: nothing that it rests on changes while the connection lives.
    Never,
    /// When the next response begins.
    NextResponse,
    /// At the next record boundary: it rests on something that passes.
    NextRecord,
}

/// Why an engine carries a response.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The operator chose it.
    Fixed(Engine),
    /// The operator chose another, from a size of response that this one does not have.
    BelowFrom {
        /// The response's.
        bytes: u64,
        /// `kernel_engine.from`.
        from_bytes: u64,
    },
    /// The operator chose another, after more bytes than have been sent.
    BeforeAfter {
        /// Sent on this connection.
        sent_bytes: u64,
        /// `kernel_engine.after`.
        after_bytes: u64,
    },
    /// What is left of the response does not pay for the move, nor do the responses before it say that it will be paid.
    TooSmall {
        /// Left of the response.
        bytes: u64,
        /// Sent by the responses before.
        before_bytes: u64,
        /// What would pay.
        break_even_bytes: u64,
    },
    /// The best other engine costs as much or more for each byte.
    NotCheaper {
        /// The other engine.
        engine: Engine,
        /// What each byte costs more there; negative where it costs less, but not enough to be sure.
        more_ns_per_byte: f64,
    },
    /// What is left of the response alone pays for the move.
    Pays {
        /// Left of the response.
        bytes: u64,
        /// What is enough.
        break_even_bytes: u64,
    },
    /// What is left of the response pays for the move together with what is to be expected after what was sent before.
    ExpectedToPay {
        /// Left of the response.
        bytes: u64,
        /// Sent by the responses before.
        before_bytes: u64,
        /// What is enough.
        break_even_bytes: u64,
    },
    /// One of a few that are moved to learn what the other engine costs.
    Trial {
        /// One of so many.
        every: u32,
    },
    /// It moved there with an earlier response.
    MovedBefore,
    /// The best engine for it cannot carry it.
    Lacking(Lack),
    /// The adapter is not asked for more set-ups at this moment.
    BudgetSpent {
        /// What it is asked for at most.
        set_ups_per_s: f64,
    },
    /// Set-ups on the adapter are short, and go to responses that save more.
    OthersSaveMore {
        /// What a set-up would save here, itself deducted.
        gain_ns: f64,
        /// What it has to save at this moment.
        price_ns: f64,
    },
    /// The adapter has as many flows as it keeps.
    FlowTableFull {
        /// Flows it has.
        flows: u64,
        /// Flows it keeps.
        limit: u64,
    },
    /// It loses packets, which costs an adapter more than it saves.
    Lossy {
        /// The part of its bytes that was sent again.
        retransmitted: f64,
        /// The part from which on it counts as lossy.
        limit: f64,
    },
    /// The rest of the response may need more records than the key has left, and the other engine takes no other key.
    RecordLimit {
        /// Records that the rest may need.
        needed: u64,
        /// Records left.
        left: u64,
    },
    /// The connection was made before a reload that allows the other engine: its key was not kept for that.
    BeforeReload,
    /// The peer has closed its side: the kernel takes established connections only.
    NotConnected,
    /// The key was about to change, or the connection to end.
    NotReady,
    /// The kernel refused it otherwise.
    Refused,
    /// It was given to the adapter, and the kernel kept it.
    FellBack,
}

labels! {
    Reason {
        Fixed => "fixed",
        BelowFrom => "below_from",
        BeforeAfter => "before_after",
        TooSmall => "below_break_even",
        NotCheaper => "not_cheaper",
        Pays => "pays",
        ExpectedToPay => "expected_to_pay",
        Trial => "trial",
        MovedBefore => "moved_before",
        BudgetSpent => "budget_spent",
        OthersSaveMore => "others_save_more",
        FlowTableFull => "flow_table_full",
        Lossy => "lossy",
        RecordLimit => "record_limit",
        BeforeReload => "before_reload",
        NotConnected => "not_connected",
        NotReady => "not_ready",
        Refused => "refused",
        FellBack => "fell_back",
        ..Lacking(Lack)
    }
}

impl Reason {
    /// When there is a use in deciding anew, while the connection stays where it is.
    #[must_use]
    pub fn again(&self) -> Again {
        match self {
            Self::Fixed(_)
            | Self::BeforeReload
            | Self::NotConnected
            | Self::Refused
            | Self::RecordLimit { .. } => Again::Never,
            Self::BudgetSpent { .. }
            | Self::OthersSaveMore { .. }
            | Self::BeforeAfter { .. }
            | Self::NotReady => Again::NextRecord,
            _ => Again::NextResponse,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |bytes: u64| figures::bytes(bytes as f64, 2);
        match *self {
            Self::Fixed(engine) => write!(formatter, "fixed by --engine {engine}"),
            Self::BelowFrom { bytes, from_bytes } => {
                write!(formatter, "{} response, kernel_engine.from is {}", words(bytes), words(from_bytes))
            }
            Self::BeforeAfter { sent_bytes, after_bytes } => {
                write!(formatter, "{} sent, kernel_engine.after is {}", words(sent_bytes), words(after_bytes))
            }
            Self::TooSmall { bytes, before_bytes: 0, break_even_bytes }
            | Self::Pays { bytes, break_even_bytes } => {
                write!(formatter, "{} response, break-even {}", words(bytes), words(break_even_bytes))
            }
            Self::TooSmall { bytes, before_bytes, break_even_bytes }
            | Self::ExpectedToPay { bytes, before_bytes, break_even_bytes } => write!(
                formatter,
                "{} response after {}, break-even {}",
                words(bytes),
                words(before_bytes),
                words(break_even_bytes)
            ),
            Self::NotCheaper { engine, more_ns_per_byte } if more_ns_per_byte < 0.0 => write!(
                formatter,
                "the {engine} engine saves {:.3} ns a byte, too little to be sure",
                -more_ns_per_byte
            ),
            Self::NotCheaper { engine, more_ns_per_byte } => {
                write!(formatter, "the {engine} engine costs {more_ns_per_byte:.3} ns a byte more")
            }
            Self::Trial { every } => write!(formatter, "one of {every}, to learn what it costs"),
            Self::MovedBefore => formatter.write_str("moved there before"),
            Self::Lacking(lack) => lack.fmt(formatter),
            Self::BudgetSpent { set_ups_per_s } => {
                write!(formatter, "set-up budget spent ({set_ups_per_s:.0}/s)")
            }
            Self::OthersSaveMore { gain_ns, price_ns } => write!(
                formatter,
                "set-ups are short: it would save {}, others save over {}",
                figures::time(gain_ns, 2),
                figures::time(price_ns, 2)
            ),
            Self::FlowTableFull { flows, limit } => {
                write!(formatter, "the adapter has {flows} flows, and keeps {limit}")
            }
            Self::Lossy { retransmitted, limit } => write!(
                formatter,
                "{} of its bytes were retransmitted, over {}",
                figures::share(retransmitted, 2),
                figures::share(limit, 2)
            ),
            Self::RecordLimit { needed, left } => {
                write!(formatter, "it may need {needed} records, its key has {left} left")
            }
            Self::BeforeReload => {
                formatter.write_str("the connection is older than the reload that allows it")
            }
            Self::NotConnected => formatter.write_str("the client has closed its side"),
            Self::NotReady => formatter.write_str("the key was about to change"),
            Self::Refused => formatter.write_str("the kernel refused it"),
            Self::FellBack => {
                formatter.write_str("the adapter did not take it, the kernel encrypts in software")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cipher, Combination, Name, Release, Version};

    fn all() -> Vec<Reason> {
        let combination = Combination { version: Version::Tls13, cipher: Cipher::Aes128Gcm };
        let lacks = [
            Lack::NotAskedFor(Engine::Kernel),
            Lack::OperatingSystem(Engine::Nic),
            Lack::Module,
            Lack::NotInKernel(combination),
            Lack::SelfTest(combination),
            Lack::NotKnown(Engine::Kernel),
            Lack::AdapterGoesFirst,
            Lack::NoAdapter,
            Lack::FeatureOff(Name::new("eth0")),
            Lack::VersionNotInNic {
                version: Version::Tls13,
                driver: Name::new("mlx5_core"),
                release: Release { major: 6, minor: 12 },
            },
            Lack::CipherNotInNic(Cipher::ChaCha20Poly1305),
            Lack::AdapterRefuses { adapter: Name::new("eth0"), flows: 20_000 },
            Lack::BondMode(Name::new("bond0")),
            Lack::BondPolicy(Name::new("bond0")),
            Lack::NotBeneath(Name::new("bond0.7")),
            Lack::FilesMayChange,
        ];
        let own = [
            Reason::Fixed(Engine::User),
            Reason::BelowFrom { bytes: 10_000, from_bytes: 65_536 },
            Reason::BeforeAfter { sent_bytes: 10, after_bytes: 20 },
            Reason::TooSmall { bytes: 10_000, before_bytes: 0, break_even_bytes: 380_000 },
            Reason::NotCheaper { engine: Engine::Kernel, more_ns_per_byte: 0.072 },
            Reason::Pays { bytes: 10_000_000, break_even_bytes: 380_000 },
            Reason::ExpectedToPay { bytes: 10_000, before_bytes: 400_000, break_even_bytes: 380_000 },
            Reason::Trial { every: 1000 },
            Reason::MovedBefore,
            Reason::BudgetSpent { set_ups_per_s: 850.0 },
            Reason::OthersSaveMore { gain_ns: 124_000.0, price_ns: 1_300_000.0 },
            Reason::FlowTableFull { flows: 20_000, limit: 20_000 },
            Reason::Lossy { retransmitted: 0.014, limit: 0.01 },
            Reason::RecordLimit { needed: 50, left: 20 },
            Reason::BeforeReload,
            Reason::NotConnected,
            Reason::NotReady,
            Reason::Refused,
            Reason::FellBack,
        ];
        own.into_iter().chain(lacks.map(Reason::Lacking)).collect()
    }

    #[test]
    fn labels_stand_where_their_index_says() {
        let reasons = all();
        assert_eq!(reasons.len(), Reason::LABELS.len());
        for (index, reason) in reasons.iter().enumerate() {
            assert_eq!(reason.index(), index, "{reason:?}");
            assert_eq!(reason.label(), Reason::LABELS[index]);
            assert!(reason.label().bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')));
            assert_eq!(Reason::LABELS.iter().filter(|&&label| label == reason.label()).count(), 1);
        }
    }

    /// By their indices in [`all`].
    #[test]
    fn only_what_passes_is_asked_about_again() {
        for (index, reason) in all().iter().enumerate() {
            let expected = match index {
                0 | 13..=15 | 17 => Again::Never,
                2 | 9 | 10 | 16 => Again::NextRecord,
                _ => Again::NextResponse,
            };
            assert_eq!(reason.again(), expected, "{reason:?}");
        }
    }

    #[test]
    fn reasons_are_sentences_with_their_figures() {
        let said = |engine, index: usize| Decision { engine, reason: all()[index] }.to_string();
        assert_eq!(said(Engine::User, 0), "user: fixed by --engine user");
        assert_eq!(said(Engine::User, 3), "user: 10 kB response, break-even 380 kB");
        assert_eq!(said(Engine::User, 4), "user: the kernel engine costs 0.072 ns a byte more");
        assert_eq!(said(Engine::Kernel, 5), "kernel: 10 MB response, break-even 380 kB");
        assert_eq!(said(Engine::Kernel, 6), "kernel: 10 kB response after 400 kB, break-even 380 kB");
        assert_eq!(said(Engine::User, 9), "user: set-up budget spent (850/s)");
        assert_eq!(
            said(Engine::User, 10),
            "user: set-ups are short: it would save 124 µs, others save over 1.3 ms"
        );
        assert_eq!(said(Engine::User, 12), "user: 1.4 % of its bytes were retransmitted, over 1 %");
        assert_eq!(said(Engine::Kernel, 28), "kernel: TLS 1.3 is not offloaded by mlx5_core on 6.12");
        assert_eq!(said(Engine::User, 29), "user: cipher ChaCha20-Poly1305 not in NIC");
        let little = Reason::NotCheaper { engine: Engine::Kernel, more_ns_per_byte: -0.002 };
        assert_eq!(little.to_string(), "the kernel engine saves 0.002 ns a byte, too little to be sure");
        for reason in all() {
            assert!(!reason.to_string().is_empty());
        }
    }
}
