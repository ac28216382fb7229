//! Content codings: which of the precompressed siblings of a file the client prefers (RFC 9110 section
//! 12.5.3).

use crate::field_lines::{list_elements, trim_whitespace};

/// A content coding that a file may be kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `br` (RFC 7932)
    Brotli,
    /// `zstd` (RFC 8878)
    Zstd,
    /// `gzip` (RFC 1952)
    Gzip,
}

impl Coding {
    /// All, in the order in which they are tried where the client has no preference: smallest files first.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// The name in Content-Encoding.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// What is appended to a file's name for its sibling in this coding, e.g. `.br`.
    #[must_use]
    pub fn file_suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

/// A weight in thousandths (RFC 9110 section 12.4.2).
type Weight = u16;

const FULL_WEIGHT: Weight = 1000;

/// What an Accept-Encoding header comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedCodings {
    preferred: [Coding; 3],
    count: usize,
}

/// The weights as they stand in the header; `None` is "not named".
#[derive(Default)]
struct Weights {
    codings: [Option<Weight>; 3],
    identity: Option<Weight>,
    any: Option<Weight>,
}

impl AcceptedCodings {
    /// Only the file as it is: what a request without Accept-Encoding gets. RFC 9110 would allow any coding
    /// there, but a client that does not mention codings seldom understands one.
    pub const IDENTITY_ONLY: Self = Self { preferred: Coding::ALL, count: 0 };

    /// Reads the lines of Accept-Encoding; none is [`Self::IDENTITY_ONLY`]. Members with a malformed weight
    /// are ignored.
    #[must_use]
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut weights = Weights::default();
        for element in lines.into_iter().flat_map(list_elements) {
            weights.note(element);
        }
        weights.accepted()
    }

    /// The codings to look for, best first. Those that the client likes less than the file as it is are left
    /// out. A client that refuses the file as it is gets it if there is no sibling, as RFC 9110 section 12.5.3 allows.
    pub fn iter(&self) -> impl Iterator<Item = Coding> + '_ {
        self.preferred[..self.count].iter().copied()
    }
}

impl Weights {
    fn note(&mut self, element: &[u8]) {
        let (name, parameters) = match element.iter().position(|byte| *byte == b';') {
            Some(end) => (trim_whitespace(&element[..end]), Some(trim_whitespace(&element[end + 1..]))),
            None => (element, None),
        };
        let Some(weight) = parameters.map_or(Some(FULL_WEIGHT), parse_weight) else { return };
        let is = |token: &str| name.eq_ignore_ascii_case(token.as_bytes());
        if is("identity") {
            self.identity = Some(weight);
        } else if name == b"*" {
            self.any = Some(weight);
        } else if is("x-gzip") {
            // RFC 9110 section 8.4.1.3: the same as gzip.
            self.codings[Coding::Gzip as usize] = Some(weight);
        } else if let Some(coding) = Coding::ALL.into_iter().find(|coding| is(coding.token())) {
            self.codings[coding as usize] = Some(weight);
        }
    }

    fn accepted(&self) -> AcceptedCodings {
        // The least that a coding must weigh to come before the file as it is.
        let least = self.identity.unwrap_or(0).max(1);
        let weight_of = |coding: Coding| self.codings[coding as usize].or(self.any).unwrap_or(0);
        let mut accepted = AcceptedCodings::IDENTITY_ONLY;
        // `ALL` is in the order of preference between equals, and the sort is stable.
        accepted.preferred.sort_by_key(|coding| std::cmp::Reverse(weight_of(*coding)));
        accepted.count = accepted.preferred.iter().take_while(|coding| weight_of(**coding) >= least).count();
        accepted
    }
}

/// `q=` and a number from 0 to 1 with at most three decimals, in thousandths.
fn parse_weight(parameter: &[u8]) -> Option<Weight> {
    let [b'q' | b'Q', b'=', number @ ..] = parameter else { return None };
    let (whole, decimals) = match number {
        [whole] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    if !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let decimal = |index: usize| decimals.get(index).map_or(0, |digit| Weight::from(digit - b'0'));
    let thousandths = decimal(0) * 100 + decimal(1) * 10 + decimal(2);
    match whole {
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(FULL_WEIGHT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Coding::*;
    use super::*;

    fn accepted(value: &str) -> Vec<Coding> {
        AcceptedCodings::parse([value.as_bytes()]).iter().collect()
    }

    #[test]
    fn orders_by_weight_then_by_our_preference() {
        for (value, codings) in [
            ("gzip, deflate, br, zstd", vec![Brotli, Zstd, Gzip]),
            ("gzip", vec![Gzip]),
            ("x-gzip", vec![Gzip]),
            ("GZIP;q=1.0, br;q=0.5", vec![Gzip, Brotli]),
            ("gzip;q=0.8, zstd;q=0.9, br;q=0.85", vec![Zstd, Brotli, Gzip]),
            ("br;q=0.81, gzip;q=0.82", vec![Gzip, Brotli]),
            ("br;q=0.001, gzip;q=0.002", vec![Gzip, Brotli]),
            ("br;q=0, gzip", vec![Gzip]),
            ("*", vec![Brotli, Zstd, Gzip]),
            ("*;q=0.5, gzip;q=0.7", vec![Gzip, Brotli, Zstd]),
            ("br;q=0, *", vec![Zstd, Gzip]),
            ("gzip ; q=0.5", vec![Gzip]),
            ("deflate", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(accepted(value), codings, "{value}");
        }
    }

    #[test]
    fn the_file_as_it_is_can_be_preferred() {
        assert_eq!(accepted("identity;q=0, br"), vec![Brotli]);
        assert_eq!(accepted("*;q=0"), vec![]);
        assert_eq!(accepted("gzip, *;q=0"), vec![Gzip]);
        assert_eq!(accepted("identity;q=0.1, *;q=0"), vec![]);
        assert_eq!(accepted("identity, gzip;q=0.5"), vec![]);
        assert_eq!(accepted("identity;q=0.5, gzip;q=0.5, br;q=0.4"), vec![Gzip]);
    }

    #[test]
    fn no_header_means_the_file_as_it_is() {
        assert_eq!(AcceptedCodings::parse([]), AcceptedCodings::IDENTITY_ONLY);
        let two_lines = AcceptedCodings::parse([&b"gzip"[..], b"br"]);
        assert_eq!(two_lines.iter().collect::<Vec<_>>(), [Brotli, Gzip]);
    }

    #[test]
    fn malformed_weights_void_their_member_only() {
        for wrong in
            ["br;q=2", "br;q=1.001", "br;q=0.1234", "br;q=", "br;q=.5", "br;x=1", "br;q=-1", "br;q=0.a"]
        {
            assert_eq!(accepted(&format!("{wrong}, gzip")), vec![Gzip], "{wrong}");
        }
        assert_eq!(accepted("br;q=0.,gzip;q=1."), vec![Gzip]);
    }

    #[test]
    fn tokens_and_suffixes() {
        assert_eq!(Coding::ALL.map(Coding::token), ["br", "zstd", "gzip"]);
        assert_eq!(Coding::ALL.map(Coding::file_suffix), [".br", ".zst", ".gz"]);
        // The weights are indexed by coding.
        assert_eq!(Coding::ALL.map(|coding| coding as usize), [0, 1, 2]);
    }
}
