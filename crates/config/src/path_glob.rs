//! Patterns over the paths of a site: `/static/**`, `*.m4s`.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::choice::shortened;

/// The most elements of a pattern: a match in progress is one bit for each of them, and one for the end.
const LIMIT_ELEMENTS: usize = 127;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    /// This character.
    Character(char),
    /// `?`: any one character but `/`.
    AnyCharacter,
    /// `*`: any characters but `/`.
    AnyInSegment,
    /// `**`: any characters.
    Anything,
    /// `**/`: any number of whole segments, none as well.
    AnySegments,
}

/// A pattern over the decoded path of a file within its site.
///
/// `?` stands for one character and `*` for any number of them within a segment, `**` for anything, and `/**/` also
/// for `/` alone. A pattern without `/` is one over the file's name, in whatever folder it is.
/// Brackets, braces and backslashes are refused, since other patterns give them a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathGlob {
    text: String,
    elements: Vec<Element>,
}

impl PathGlob {
    /// Whether the pattern covers `path`, which begins with `/`.
    ///
    /// Takes a step per character of the path and element of the pattern, whatever they are, and does not allocate.
    /// The path comes as characters, so that a caller that has it in bytes, or in parts, need not allocate either.
    #[must_use]
    pub fn matches(&self, path: impl IntoIterator<Item = char>) -> bool {
        // All places in the pattern that the path so far can have reached are followed at once, as bits.
        let mut reached = self.entered(0);
        for character in path {
            let mut next = 0;
            for (index, element) in self.elements.iter().enumerate() {
                if reached & (1 << index) != 0 {
                    next |= self.after(index, *element, character);
                }
            }
            if next == 0 {
                return false;
            }
            reached = next;
        }
        reached & (1 << self.elements.len()) != 0
    }

    /// The places reached from `index`, at which `element` stands, by `character`.
    fn after(&self, index: usize, element: Element, character: char) -> u128 {
        match element {
            Element::Character(wanted) if wanted == character => self.entered(index + 1),
            Element::AnyCharacter if character != '/' => self.entered(index + 1),
            Element::AnyInSegment if character != '/' => self.entered(index),
            Element::Anything => self.entered(index),
            Element::AnySegments if character == '/' => 1 << index | self.entered(index + 1),
            Element::AnySegments => 1 << index,
            _ => 0,
        }
    }

    /// The place `index` and those beyond it that are reached without another character.
    fn entered(&self, index: usize) -> u128 {
        let skipped = self.elements[index.min(self.elements.len())..]
            .iter()
            .take_while(|element| {
                matches!(element, Element::AnyInSegment | Element::Anything | Element::AnySegments)
            })
            .count();
        (index..=index + skipped).fold(0, |places, place| places | 1 << place)
    }
}

impl FromStr for PathGlob {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |reason: &str| Err(Error::value(format!("pattern \"{}\" {reason}", shortened(text))));
        if text.is_empty() || text.contains(char::is_control) {
            return refused("is empty or contains control characters");
        }
        if let Some((place, character)) =
            text.chars().enumerate().find(|(_, character)| "[]{}\\".contains(*character))
        {
            let place = place + 1;
            return refused(&format!(
                "has a {character} (character {place}): only ? and * have a meaning here; write ? for any one character, \
                 and several rules instead of sets or alternatives"
            ));
        }
        if text.contains('/') && !text.starts_with('/') {
            return refused("has to begin with /, or contain none to be about file names, like *.m4s");
        }
        let mut elements = Vec::new();
        if !text.contains('/') {
            elements.extend([Element::Character('/'), Element::AnySegments]);
        }
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            // Elsewhere `**/` is anything and a slash: `/a**/b` covers `/axx/b` and not `/ab`.
            let at_segment = matches!(elements.last(), Some(Element::Character('/') | Element::AnySegments))
                && rest != text;
            let (element, length) = match character {
                _ if rest.starts_with("***") => return refused("has more than two * in a row"),
                _ if at_segment && rest.starts_with("**/") => (Element::AnySegments, 3),
                _ if rest.starts_with("**") => (Element::Anything, 2),
                '*' => (Element::AnyInSegment, 1),
                '?' => (Element::AnyCharacter, 1),
                character => (Element::Character(character), character.len_utf8()),
            };
            elements.push(element);
            rest = &rest[length..];
        }
        if elements.len() > LIMIT_ELEMENTS {
            return refused("is longer than 127 characters");
        }
        Ok(PathGlob { text: text.to_owned(), elements })
    }
}

impl fmt::Display for PathGlob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_they_say() {
        for (pattern, matching, other) in [
            (
                "/static/**",
                &["/static/", "/static/a", "/static/a/b.js"][..],
                &["/static", "/x/static/a", "/statics/a"][..],
            ),
            ("*.m4s", &["/a.m4s", "/x/y/a.m4s", "/.m4s"], &["/a.m4", "/a.m4s/b", "/a.m4sx"]),
            ("/a/*/c", &["/a/b/c", "/a//c"], &["/a/c", "/a/b/b/c"]),
            ("/a/**/c", &["/a/c", "/a/b/c", "/a/b/b/c", "/a/c/c"], &["/ac", "/a/bc", "/a/b/cc"]),
            ("/**", &["/", "/a", "/a/b"], &[""]),
            ("/?.txt", &["/a.txt", "/ä.txt"], &["/.txt", "/ab.txt", "//.txt"]),
            ("/exact", &["/exact"], &["/exac", "/exact/", "/Exact"]),
            ("/a*b*c", &["/abc", "/axxbxxc", "/abbcc"], &["/ab", "/a/bc"]),
            ("/**/x/**/y", &["/x/y", "/a/x/b/y", "/x/x/y/y"], &["/xy", "/x/by"]),
            ("/a**/b", &["/a/b", "/ax/b", "/ax/y/b"], &["/ab"]),
            ("name", &["/name", "/a/name"], &["/aname", "/name/a"]),
        ] {
            let pattern: PathGlob = pattern.parse().unwrap();
            for path in matching {
                assert!(pattern.matches(path.chars()), "{pattern} {path}");
            }
            for path in other {
                assert!(!pattern.matches(path.chars()), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn no_pattern_takes_exponential_time() {
        let pattern: PathGlob = format!("/{}", "**/*a".repeat(30)).parse().unwrap();
        assert!(!pattern.matches("/a".repeat(4096)[..8191].chars()));
    }

    #[test]
    fn the_longest_pattern_uses_the_last_bit() {
        let longest = format!("/{}", "a".repeat(LIMIT_ELEMENTS - 1));
        assert!(longest.parse::<PathGlob>().unwrap().matches(longest.chars()));
        assert!(format!("{longest}a").parse::<PathGlob>().is_err());
    }

    #[test]
    fn faulty_patterns_are_refused() {
        for text in ["", "static/**", "/a***", "/a\n"] {
            assert!(text.parse::<PathGlob>().is_err(), "{text:?}");
        }
    }

    /// They mean something to shells, and would match nothing here without a word.
    #[test]
    fn sets_alternatives_and_escapes_are_refused_with_their_place() {
        for (text, place) in [
            ("foo[", "a [ (character 4)"),
            ("*.[jt]s", "a [ (character 3)"),
            ("*.{jpg,png}", "a { (character 3)"),
            ("/ä/x]", "a ] (character 5)"),
            ("/a\\*", "a \\ (character 3)"),
        ] {
            let message = text.parse::<PathGlob>().unwrap_err().to_string();
            assert!(message.contains(place), "{message}");
        }
    }
}
