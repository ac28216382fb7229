//! Conditional requests: entity tags, dates, and in which order they count (RFC 9110 section 13).

use crate::date::parse_http_date;
use crate::field_lines::FieldLines;

/// An entity tag (RFC 9110 section 8.8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// Written with `W/` before it.
    pub is_weak: bool,
    /// What stands between the quotes.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Parses a tag that is the whole of `value`.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        Self::parse_prefix(value).and_then(|(tag, rest)| rest.is_empty().then_some(tag))
    }

    /// The tag at the beginning of `value`, and what follows it.
    fn parse_prefix(value: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (is_weak, quoted) = match value.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, value),
        };
        let inner = quoted.strip_prefix(b"\"")?;
        let end = inner.iter().position(|byte| *byte == b'"')?;
        let opaque = &inner[..end];
        let is_sound = opaque.iter().all(|byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..=0xff));
        is_sound.then_some((Self { is_weak, opaque }, &inner[end + 1..]))
    }

    /// Equal, and neither is weak: the two stand for the same bytes (RFC 9110 section 8.8.3.2).
    #[must_use]
    pub(crate) fn matches_strongly(&self, other: &Self) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }

    /// Equal, weak or not.
    #[must_use]
    pub(crate) fn matches_weakly(&self, other: &Self) -> bool {
        self.opaque == other.opaque
    }
}

/// The tags of a list; ends at the first thing that is none, as nothing after it can be trusted.
struct EntityTags<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for EntityTags<'a> {
    type Item = EntityTag<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        while let [b' ' | b'\t' | b',', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let parsed = EntityTag::parse_prefix(self.rest);
        self.rest = b"";
        let (tag, mut rest) = parsed?;
        while let [b' ' | b'\t', after @ ..] = rest {
            rest = after;
        }
        if !matches!(rest, [] | [b',', ..]) {
            return None;
        }
        self.rest = rest;
        Some(tag)
    }
}

/// How old a time of change must be to stand for the bytes (RFC 9110 section 8.8.2.2): a file that changed just
/// now may change again within the same second and keep its date.
///
/// The RFC asks for a second where both times are by one clock. A file's can be by another, a file server's or
/// that of the machine that it was copied from; the minute of RFC 7232 allows for clocks that differ. A client
/// that has to be refused gets the whole file, which is never wrong, and most come with a tag, which is strong
/// after two seconds.
const STRONG_DATE_AGE_S: i64 = 60;

/// What a condition is weighed against: the representation as it is now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The entity tag as it stands in the ETag header, quotes included; `None` when none is sent.
    pub etag: Option<&'a str>,
    /// Last-Modified in seconds since the Unix epoch; `None` when none is sent.
    pub modified_unix_s: Option<i64>,
}

impl<'a> Validators<'a> {
    fn tag(&self) -> Option<EntityTag<'a>> {
        EntityTag::parse(self.etag?.as_bytes())
    }
}

/// The conditions of a request. A date header that is repeated is absent here (RFC 9110 sections 13.1.3 and
/// 13.1.4).
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions<'a> {
    /// If-Match
    pub if_match: FieldLines<'a>,
    /// If-None-Match
    pub if_none_match: FieldLines<'a>,
    /// If-Modified-Since
    pub if_modified_since: Option<&'a [u8]>,
    /// If-Unmodified-Since
    pub if_unmodified_since: Option<&'a [u8]>,
    /// If-Range
    pub if_range: Option<&'a [u8]>,
}

/// What the conditions of a GET or HEAD come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// Answer as if there were no condition.
    Proceed,
    /// 304
    NotModified,
    /// 412
    Failed,
}

impl Conditions<'_> {
    /// Weighs all but If-Range for a GET or HEAD, in the order of RFC 9110 section 13.2.2.
    ///
    /// A list of tags counts up to the first malformed member. Dates that are none are ignored.
    #[must_use]
    pub fn evaluate(&self, validators: &Validators<'_>) -> Precondition {
        if !self.if_match.is_absent() {
            if !any_tag(&self.if_match, validators, |one, other| one.matches_strongly(other)) {
                return Precondition::Failed;
            }
        } else if let (Some(limit), Some(modified)) =
            (self.if_unmodified_since.and_then(parse_http_date), validators.modified_unix_s)
            && modified > limit
        {
            return Precondition::Failed;
        }
        if !self.if_none_match.is_absent() {
            if any_tag(&self.if_none_match, validators, |one, other| one.matches_weakly(other)) {
                return Precondition::NotModified;
            }
        } else if let (Some(since), Some(modified)) =
            (self.if_modified_since.and_then(parse_http_date), validators.modified_unix_s)
            && modified <= since
        {
            return Precondition::NotModified;
        }
        Precondition::Proceed
    }

    /// Whether Range counts at `now_unix_s`, the time in Date: If-Range is absent or names exactly this
    /// representation (RFC 9110 section 13.1.5). A tag must match strongly, a date exactly, and the date must be
    /// a strong validator.
    #[must_use]
    pub fn allow_range(&self, validators: &Validators<'_>, now_unix_s: i64) -> bool {
        let Some(value) = self.if_range else { return true };
        match EntityTag::parse(value) {
            Some(tag) => validators.tag().is_some_and(|current| current.matches_strongly(&tag)),
            None => parse_http_date(value).is_some_and(|date| {
                let age_s = now_unix_s.saturating_sub(date);
                validators.modified_unix_s == Some(date) && age_s >= STRONG_DATE_AGE_S
            }),
        }
    }
}

/// Whether the lines hold `*` (which anything that exists matches) or a tag that matches the current one.
fn any_tag(
    lines: &FieldLines<'_>,
    validators: &Validators<'_>,
    matches: fn(&EntityTag<'_>, &EntityTag<'_>) -> bool,
) -> bool {
    let current = validators.tag();
    lines.iter().any(|line| {
        line == b"*"
            || current.is_some_and(|current| EntityTags { rest: line }.any(|tag| matches(&current, &tag)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &[u8] = b"Sun, 06 Nov 1994 08:49:36 GMT";
    const SAME: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &[u8] = b"Sun, 06 Nov 1994 08:49:38 GMT";
    const STRONG: Validators<'static> =
        Validators { etag: Some("\"v1\""), modified_unix_s: Some(784_111_777) };
    const WEAK: Validators<'static> =
        Validators { etag: Some("W/\"v1\""), modified_unix_s: Some(784_111_777) };

    fn lines(value: &'static str) -> FieldLines<'static> {
        FieldLines::from(value.as_bytes())
    }

    #[test]
    fn parses_tags() {
        assert_eq!(EntityTag::parse(b"\"\""), Some(EntityTag { is_weak: false, opaque: b"" }));
        assert_eq!(EntityTag::parse(b"W/\"a,b\""), Some(EntityTag { is_weak: true, opaque: b"a,b" }));
        for wrong in ["", "a", "\"", "\"a", "w/\"a\"", "\"a\"b", "\"a b\"", "W/ \"a\""] {
            assert_eq!(EntityTag::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn compares_as_the_table_of_rfc_9110_8_8_3_2() {
        let tag = |value: &'static str| EntityTag::parse(value.as_bytes()).unwrap();
        for (one, other, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ] {
            assert_eq!(tag(one).matches_strongly(&tag(other)), strong, "{one} {other}");
            assert_eq!(tag(one).matches_weakly(&tag(other)), weak, "{one} {other}");
        }
    }

    #[test]
    fn if_none_match_wins_over_if_modified_since() {
        let with = |value, if_modified_since| Conditions {
            if_none_match: lines(value),
            if_modified_since,
            ..Conditions::default()
        };
        assert_eq!(with("\"v1\"", None).evaluate(&STRONG), Precondition::NotModified);
        assert_eq!(with("W/\"v1\"", None).evaluate(&STRONG), Precondition::NotModified);
        assert_eq!(with("\"v1\"", None).evaluate(&WEAK), Precondition::NotModified);
        assert_eq!(with("*", None).evaluate(&STRONG), Precondition::NotModified);
        assert_eq!(with("\"a\" ,, \"x,\",\"v1\"", None).evaluate(&STRONG), Precondition::NotModified);
        assert_eq!(with("\"v2\"", Some(LATER)).evaluate(&STRONG), Precondition::Proceed);
        assert_eq!(with("\"v1\"", Some(EARLIER)).evaluate(&STRONG), Precondition::NotModified);
        assert_eq!(with("v1", None).evaluate(&STRONG), Precondition::Proceed);
        assert_eq!(with("\"a\" x, \"v1\"", None).evaluate(&STRONG), Precondition::Proceed);
        assert_eq!(with("\"v1\"", None).evaluate(&Validators::default()), Precondition::Proceed);
    }

    #[test]
    fn if_match_is_strong_and_wins_over_if_unmodified_since() {
        let with = |value, if_unmodified_since| Conditions {
            if_match: lines(value),
            if_unmodified_since,
            ..Conditions::default()
        };
        assert_eq!(with("\"v1\"", Some(EARLIER)).evaluate(&STRONG), Precondition::Proceed);
        assert_eq!(with("\"v1\"", None).evaluate(&WEAK), Precondition::Failed);
        assert_eq!(with("\"v2\"", Some(LATER)).evaluate(&STRONG), Precondition::Failed);
        assert_eq!(with("*", None).evaluate(&STRONG), Precondition::Proceed);
        assert_eq!(with("nonsense", None).evaluate(&STRONG), Precondition::Failed);
    }

    #[test]
    fn a_failed_if_match_comes_before_a_304() {
        let both =
            Conditions { if_match: lines("\"v2\""), if_none_match: lines("\"v1\""), ..Conditions::default() };
        assert_eq!(both.evaluate(&STRONG), Precondition::Failed);
        let passed =
            Conditions { if_match: lines("\"v1\""), if_none_match: lines("\"v1\""), ..Conditions::default() };
        assert_eq!(passed.evaluate(&STRONG), Precondition::NotModified);
    }

    #[test]
    fn tags_count_over_several_lines() {
        let mut if_none_match = lines("\"a\"");
        if_none_match.push(b"\"v1\"").unwrap();
        let conditions = Conditions { if_none_match, ..Conditions::default() };
        assert_eq!(conditions.evaluate(&STRONG), Precondition::NotModified);
    }

    #[test]
    fn dates_count_in_whole_seconds() {
        let since = |date| Conditions { if_modified_since: Some(date), ..Conditions::default() };
        assert_eq!(since(EARLIER).evaluate(&STRONG), Precondition::Proceed);
        assert_eq!(since(SAME).evaluate(&STRONG), Precondition::NotModified);
        assert_eq!(since(LATER).evaluate(&STRONG), Precondition::NotModified);
        assert_eq!(since(b"yesterday").evaluate(&STRONG), Precondition::Proceed);
        let unmodified = |date| Conditions { if_unmodified_since: Some(date), ..Conditions::default() };
        assert_eq!(unmodified(EARLIER).evaluate(&STRONG), Precondition::Failed);
        assert_eq!(unmodified(SAME).evaluate(&STRONG), Precondition::Proceed);
        assert_eq!(unmodified(b"yesterday").evaluate(&STRONG), Precondition::Proceed);
    }

    #[test]
    fn if_range_needs_exactly_this_representation() {
        const CHANGED: i64 = 784_111_777;
        let allow_at = |value: &'static [u8], validators: &Validators<'_>, now_unix_s| {
            Conditions { if_range: Some(value), ..Conditions::default() }.allow_range(validators, now_unix_s)
        };
        let allow = |value, validators: &Validators<'_>| allow_at(value, validators, CHANGED + 3600);
        assert!(Conditions::default().allow_range(&STRONG, CHANGED));
        assert!(allow(b"\"v1\"", &STRONG));
        assert!(!allow(b"\"v2\"", &STRONG));
        assert!(!allow(b"W/\"v1\"", &STRONG));
        assert!(!allow(b"W/\"v1\"", &WEAK));
        assert!(allow(SAME, &STRONG));
        assert!(!allow(EARLIER, &STRONG));
        assert!(!allow(LATER, &STRONG));
        assert!(!allow(b"*", &STRONG));
        assert!(!allow(b"", &STRONG));
        assert!(!allow(SAME, &Validators::default()));
        // A date is a strong validator only of what has not changed for a while, a tag always.
        assert!(allow_at(SAME, &STRONG, CHANGED + STRONG_DATE_AGE_S));
        assert!(!allow_at(SAME, &STRONG, CHANGED + STRONG_DATE_AGE_S - 1));
        assert!(!allow_at(SAME, &STRONG, CHANGED));
        assert!(!allow_at(SAME, &STRONG, CHANGED - 3600));
        assert!(allow_at(b"\"v1\"", &STRONG, CHANGED));
    }
}
